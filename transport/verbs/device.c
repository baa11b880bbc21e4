/* SPDX-License-Identifier: BSD-2-Clause */
/* One domain per device: protection domain, completion channel, and the errors the device reports by itself. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "transport/verbs/verbs.h"

static void set_nonblocking(int descriptor)
{
	fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
	fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

/*
 * Fails the endpoints of the domain, or only those of one queue pair or completion queue, with a word on each unless
 * cause is NULL. Handlers only mark what they destroy, so the table stays as it is.
 */
static void fail_endpoints(struct verbs_domain *domain, const struct ibv_qp *queue, const struct ibv_cq *completions,
			   const char *cause)
{
	struct verbs_transport *transport = verbs_of(domain->base.transport);

	for (uint32_t slot = 0; slot < transport->slot_count; slot++) {
		struct verbs_endpoint *endpoint = transport->slots[slot].endpoint;

		if (!endpoint || endpoint->base.domain != &domain->base || endpoint->base.state >= ENDPOINT_FAILED)
			continue;
		if (queue && endpoint->queue != queue)
			continue;
		if (completions && (!endpoint->completions || endpoint->completions->queue != completions))
			continue;
		if (cause)
			log_error(transport->base.log, endpoint->base.name, "the queue pair failed: %s", cause);
		endpoint_fail(&endpoint->base, OUTCOME_FAILED);
	}
}

static void give_up(struct verbs_domain *domain)
{
	domain->base.removed = true;
	/* It may stay readable for ever. */
	loop_io_stop(&domain->completion_readable);
}

/*
 * True if somebody waits for a completion, or will: what fails later harms no one, least of all who waits to be
 * disconnected.
 */
static bool is_needed(const struct verbs_domain *domain)
{
	const struct verbs_transport *transport = verbs_of(domain->base.transport);

	for (uint32_t slot = 0; slot < transport->slot_count; slot++) {
		const struct verbs_endpoint *endpoint = transport->slots[slot].endpoint;

		if (endpoint && endpoint->base.domain == &domain->base && !endpoint->base.done &&
		    endpoint->base.state != ENDPOINT_DISCONNECTING && endpoint->base.state != ENDPOINT_DISCONNECTED &&
		    endpoint->base.state < ENDPOINT_FAILED)
			return true;
	}
	return false;
}

void verbs_domain_failed(struct verbs_domain *domain, int error, const char *what)
{
	bool needed = is_needed(domain);

	if (!domain->base.removed && needed)
		log_errno(domain->base.transport->log, domain->base.device, error, "%s", what);
	give_up(domain);
	if (needed)
		fail_endpoints(domain, NULL, NULL, NULL);
}

void verbs_domain_removed(struct verbs_domain *domain)
{
	if (domain->base.removed)
		return;
	log_error(domain->base.transport->log, domain->base.device, "the device was removed");
	give_up(domain);
	fail_endpoints(domain, NULL, NULL, NULL);
}

static void asynchronous_readable(void *owner)
{
	struct verbs_domain *domain = owner;
	const struct log *log = domain->base.transport->log;
	struct ibv_async_event event;

	while (!ibv_get_async_event(domain->context, &event)) {
		/* Destroying the object waits for the acknowledgement, and the handlers may destroy it. */
		ibv_ack_async_event(&event);
		log_debug(log, "%s: %s", domain->base.device, ibv_event_type_str(event.event_type));
		switch (event.event_type) {
		case IBV_EVENT_QP_FATAL:
		case IBV_EVENT_QP_REQ_ERR:
		case IBV_EVENT_QP_ACCESS_ERR:
			fail_endpoints(domain, event.element.qp, NULL, ibv_event_type_str(event.event_type));
			break;
		case IBV_EVENT_CQ_ERR:
			fail_endpoints(domain, NULL, event.element.cq, ibv_event_type_str(event.event_type));
			break;
		case IBV_EVENT_DEVICE_FATAL:
			verbs_domain_removed(domain);
			break;
		default:
			break;
		}
	}
	/* A device that is gone leaves its descriptor readable for ever. */
	if (errno != EAGAIN && errno != EINTR)
		loop_io_stop(&domain->asynchronous_readable);
}

static enum fabric fabric_of(struct ibv_context *context, uint8_t port)
{
	struct ibv_port_attr attributes;

	if (context->device->transport_type == IBV_TRANSPORT_IWARP)
		return FABRIC_IWARP;
	if (!ibv_query_port(context, port, &attributes) && attributes.link_layer == IBV_LINK_LAYER_ETHERNET)
		return FABRIC_ROCE;
	return FABRIC_INFINIBAND;
}

static enum outcome domain_create(struct verbs_transport *transport, struct rdma_cm_id *id,
				  struct verbs_domain **result)
{
	const struct log *log = transport->base.log;
	const char *device = ibv_get_device_name(id->verbs->device);
	struct verbs_domain *domain = calloc(1, sizeof(*domain));
	struct ibv_port_attr port;
	int error;

	if (!domain)
		return verbs_explain_resources(log, device, "opening the device", ENOMEM);
	domain->base.transport = &transport->base;
	domain->base.device = device;
	domain->context = id->verbs;
	error = ibv_query_device(id->verbs, &domain->limits);
	if (!error)
		error = ibv_query_port(id->verbs, id->port_num, &port);
	if (error) {
		free(domain);
		return verbs_explain_resources(log, device, "asking for the device's limits", error);
	}
	domain->base.fabric = fabric_of(id->verbs, id->port_num);
	domain->base.multicast = domain->base.fabric != FABRIC_IWARP;
	domain->base.longest_message = port.max_msg_sz;
	domain->base.most_queue_entries = (uint32_t)domain->limits.max_qp_wr;
	domain->protection = ibv_alloc_pd(id->verbs);
	if (domain->protection)
		domain->completions = ibv_create_comp_channel(id->verbs);
	if (!domain->completions) {
		error = errno;
		verbs_domain_destroy(domain);
		return verbs_explain_resources(log, device, "creating a protection domain and completion channel",
					       error);
	}
	set_nonblocking(domain->completions->fd);
	set_nonblocking(id->verbs->async_fd);
	loop_io_start(transport->base.loop, &domain->completion_readable, domain->completions->fd,
		      verbs_completion_readable, domain);
	if (WITH_SPIN)
		verbs_completion_poller_start(domain);
	loop_io_start(transport->base.loop, &domain->asynchronous_readable, id->verbs->async_fd, asynchronous_readable,
		      domain);
	domain->next = transport->domains;
	transport->domains = domain;
	*result = domain;
	return OUTCOME_OK;
}

enum outcome verbs_domain_attach(struct verbs_endpoint *endpoint)
{
	struct verbs_transport *transport = verbs_of(endpoint->base.transport);
	struct verbs_domain *domain = transport->domains;
	struct ibv_port_attr port;
	int error;

	while (domain && domain->context != endpoint->id->verbs)
		domain = domain->next;
	if (!domain) {
		enum outcome outcome = domain_create(transport, endpoint->id, &domain);

		if (outcome)
			return outcome;
	}
	endpoint->base.domain = &domain->base;
	if (domain->base.removed) {
		log_error(transport->base.log, domain->base.device, "the device has failed before");
		return OUTCOME_FAILED;
	}
	if (verbs_path_check(endpoint))
		return OUTCOME_NO_CONNECTION;
	if (endpoint->base.kind != ENDPOINT_GROUP)
		return OUTCOME_OK;
	error = ibv_query_port(domain->context, endpoint->id->port_num, &port);
	if (error)
		return verbs_explain_resources(transport->base.log, domain->base.device, "asking for the port's MTU",
					       error);
	/* MTUs are numbered from 1 for 256 bytes: ibv_query_port(3). */
	endpoint->base.datagram_most = 128u << port.active_mtu;
	return OUTCOME_OK;
}

/* The endpoints and regions are gone; in the reverse of the order in which it was made. */
void verbs_domain_destroy(struct verbs_domain *domain)
{
	loop_io_stop(&domain->asynchronous_readable);
	if (WITH_SPIN)
		loop_poller_stop(domain->base.transport->loop, &domain->completion_poller);
	while (domain->queues) {
		struct verbs_completion_queue *completions = domain->queues;

		domain->queues = completions->next;
		verbs_completion_queue_destroy(completions);
	}
	loop_io_stop(&domain->completion_readable);
	if (domain->completions)
		ibv_destroy_comp_channel(domain->completions);
	if (domain->protection)
		ibv_dealloc_pd(domain->protection);
	free(domain);
}
