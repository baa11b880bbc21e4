/* SPDX-License-Identifier: BSD-2-Clause */
/* Domains: a port of a device with its PD and completion channel, the device's asynchronous events, its removal. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "transport/verbs/verbs.h"

void verbs_set_nonblocking(int descriptor)
{
	fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
	fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

/* Starts the timer once: one that is restarted in every turn of a busy loop never expires. */
void verbs_reap_later(struct verbs_transport *transport)
{
	if (transport->reaping)
		return;
	transport->reaping = true;
	loop_timer_start(transport->base.loop, &transport->reaper, 0, transport->reap, transport);
}

/*
 * Fails the endpoints of the domain, or those of one QP or CQ, and logs the cause for each unless it is NULL. Handlers
 * may destroy endpoints: the slots remain until the reaper runs.
 */
static void fail_endpoints(struct verbs_domain *domain, const struct ibv_qp *qp, const struct ibv_cq *cq,
			   const char *cause)
{
	struct verbs_transport *transport = verbs_of(domain->base.transport);

	for (uint32_t slot = 0; slot < transport->slot_count; slot++) {
		struct verbs_endpoint *endpoint = transport->slots[slot].endpoint;

		if (!endpoint || endpoint->base.state >= ENDPOINT_FAILED)
			continue;
		/* Any port's domain may read an event of the device: its QP or CQ may belong to another port. */
		if (!qp && !cq && endpoint->base.domain != &domain->base)
			continue;
		if (qp && endpoint->qp != qp)
			continue;
		if (cq && (!endpoint->completions || endpoint->completions->cq != cq))
			continue;
		error_clear(endpoint_error(&endpoint->base));
		if (cause)
			error_set(endpoint_error(&endpoint->base), endpoint->base.name, "the queue pair failed: %s",
				  cause);
		endpoint_fail(&endpoint->base, OUTCOME_FAILED);
	}
}

static void domain_stop(struct verbs_domain *domain)
{
	domain->base.removed = true;
	verbs_reap_later(verbs_of(domain->base.transport));
	/* The channel of a removed device may stay readable. */
	loop_io_stop(&domain->completion_readable);
}

/* Whether an endpoint expects completions. One that is done or disconnecting is not harmed by a failed device. */
static bool has_active_endpoint(const struct verbs_domain *domain)
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
	bool needed = has_active_endpoint(domain);

	if (!domain->base.removed && needed)
		log_errno(domain->base.transport->log, domain->base.device, error, "%s", what);
	domain_stop(domain);
	if (needed)
		fail_endpoints(domain, NULL, NULL, NULL);
}

void verbs_domain_removed(struct verbs_domain *domain)
{
	if (domain->base.removed)
		return;
	log_error(domain->base.transport->log, domain->base.device, "the device was removed or has failed");
	for (struct verbs_domain *port = verbs_of(domain->base.transport)->domains; port; port = port->next)
		if (port->context == domain->context && !port->base.removed) {
			domain_stop(port);
			fail_endpoints(port, NULL, NULL, NULL);
		}
}

void verbs_domain_unplugged(struct verbs_domain *domain)
{
	for (struct verbs_domain *port = verbs_of(domain->base.transport)->domains; port; port = port->next)
		port->unplugged |= port->context == domain->context;
	verbs_domain_removed(domain);
}

static void bound_id_readable(void *context)
{
	struct verbs_domain *domain = context;
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(domain->bound_id->channel, &event)) {
		if (errno != EAGAIN && errno != EINTR)
			loop_io_stop(&domain->bound_id_readable);
		return;
	}
	type = event->event;
	rdma_ack_cm_event(event);
	if (type == RDMA_CM_EVENT_DEVICE_REMOVAL)
		verbs_domain_unplugged(domain);
}

/* Binds bound_id to the device, by the local address of id. The kernel may refuse that. */
static void bind_id(struct verbs_domain *domain, struct rdma_cm_id *id, const struct endpoint_options *options)
{
	struct sockaddr_storage storage;
	struct address local;

	if (rdma_create_id(NULL, &domain->bound_id, NULL, (enum rdma_port_space)options->port_space)) {
		domain->bound_id = NULL;
		return;
	}
	verbs_address(rdma_get_local_addr(id), &local);
	local.port = 0;
	if (rdma_bind_addr(domain->bound_id, verbs_socket_address(&local, options, &storage)) ||
	    domain->bound_id->verbs != domain->context) {
		rdma_destroy_id(domain->bound_id);
		domain->bound_id = NULL;
		return;
	}
	verbs_set_nonblocking(domain->bound_id->channel->fd);
	loop_io_start(domain->base.transport->loop, &domain->bound_id_readable, domain->bound_id->channel->fd,
		      bound_id_readable, domain);
}

/*
 * The removal of a soft-RoCE or soft-iWARP device waits until every process has closed it. librdmacm closes it only
 * when it opens another device. So /dev/null replaces the descriptors of the device, and librdmacm may close that.
 */
static void release_device(struct verbs_domain *domain)
{
	const struct verbs_transport *transport = verbs_of(domain->base.transport);
	const int files[] = { domain->context->cmd_fd, domain->context->async_fd };
	bool unplugged = domain->unplugged;
	int null_device;

	for (uint32_t slot = 0; slot < transport->slot_count; slot++)
		if (transport->slots[slot].endpoint && transport->slots[slot].endpoint->id->verbs == domain->context)
			unplugged = false; /* the id of a listener, which is not yet destroyed */
	for (const struct verbs_domain *port = transport->domains; port; port = port->next)
		if (port->context == domain->context)
			unplugged = false; /* the last port closes the device */
	rdma_destroy_id(domain->bound_id);
	null_device = unplugged ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
	if (null_device < 0)
		return;
	for (size_t index = 0; index < sizeof(files) / sizeof(*files); index++)
		if (fcntl(files[index], F_GETFD) >= 0) /* librdmacm has not closed it */
			dup3(null_device, files[index], O_CLOEXEC);
	close(null_device);
}

static void store_port_event(const struct verbs_domain *domain, const struct ibv_async_event *event)
{
	for (struct verbs_domain *port = verbs_of(domain->base.transport)->domains; port; port = port->next)
		if (port->context == domain->context && port->port == event->element.port_num)
			port->port_event = ibv_event_type_str(event->event_type);
}

void verbs_timeout_cause(const struct endpoint *base, char text[ENDPOINT_TIMEOUT_CAUSE_SIZE])
{
	const struct verbs_domain *domain = (const struct verbs_domain *)base->domain;
	struct ibv_port_attr port = { .state = IBV_PORT_NOP };

	if (!domain || domain->base.removed)
		return;
	if (!ibv_query_port(domain->context, domain->port, &port) && port.state < IBV_PORT_ACTIVE)
		snprintf(text, ENDPOINT_TIMEOUT_CAUSE_SIZE, "; port %u of %s is %s", domain->port, domain->base.device,
			 port.state == IBV_PORT_DOWN ? "down" : "not active");
	else if (domain->port_event)
		snprintf(text, ENDPOINT_TIMEOUT_CAUSE_SIZE, "; last event of port %u of %s: %s", domain->port,
			 domain->base.device, domain->port_event);
}

static void async_readable(void *context)
{
	struct verbs_domain *domain = context;
	const struct log *log = domain->base.transport->log;
	struct ibv_async_event event;

	while (!ibv_get_async_event(domain->context, &event)) {
		/* Destroying a QP or CQ waits for the acknowledgement of its events, and handlers may destroy it. */
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
		case IBV_EVENT_PORT_ACTIVE:
		case IBV_EVENT_PORT_ERR:
		case IBV_EVENT_LID_CHANGE:
		case IBV_EVENT_PKEY_CHANGE:
		case IBV_EVENT_SM_CHANGE:
		case IBV_EVENT_CLIENT_REREGISTER:
		case IBV_EVENT_GID_CHANGE:
			store_port_event(domain, &event);
			break;
		default:
			break;
		}
	}
	/* The descriptor of a removed device stays readable. */
	if (errno != EAGAIN && errno != EINTR)
		loop_io_stop(&domain->async_readable);
}

static enum fabric fabric_of(const struct ibv_context *context, const struct ibv_port_attr *port)
{
	if (context->device->transport_type == IBV_TRANSPORT_IWARP)
		return FABRIC_IWARP;
	return port->link_layer == IBV_LINK_LAYER_ETHERNET ? FABRIC_ROCE : FABRIC_INFINIBAND;
}

static const char *name_of(struct verbs_transport *transport, const char *device)
{
	struct verbs_name *name = transport->names;

	while (name && strcmp(name->text, device) != 0)
		name = name->next;
	if (name)
		return name->text;
	name = calloc(1, sizeof(*name));
	if (!name)
		return NULL;
	snprintf(name->text, sizeof(name->text), "%s", device);
	name->next = transport->names;
	transport->names = name;
	return name->text;
}

static enum outcome domain_create(struct verbs_transport *transport, struct rdma_cm_id *id, struct error *reason,
				  struct verbs_domain **result)
{
	const char *device = name_of(transport, ibv_get_device_name(id->verbs->device));
	struct verbs_domain *domain = device ? calloc(1, sizeof(*domain)) : NULL;
	struct ibv_port_attr port;
	int error;

	if (!domain)
		return verbs_report_resources(reason, device, "opening the device", ENOMEM);
	domain->base.transport = &transport->base;
	domain->base.device = device;
	domain->context = id->verbs;
	error = ibv_query_device(id->verbs, &domain->limits);
	if (!error)
		error = ibv_query_port(id->verbs, id->port_num, &port);
	if (error) {
		free(domain);
		return verbs_report_resources(reason, device, "querying the device", error);
	}
	domain->port = id->port_num;
	domain->mtu = 128u << port.active_mtu; /* enum ibv_mtu: 1 is 256 bytes, 2 is 512, ... */
	domain->base.fabric = fabric_of(id->verbs, &port);
	/* Some RoCE cards have none either. */
	domain->base.multicast = domain->base.fabric != FABRIC_IWARP && domain->limits.max_mcast_grp > 0;
	/* Linux's RDMA CM does not support them on RoCE v2. */
	domain->base.ip6_multicast = domain->base.fabric == FABRIC_INFINIBAND;
	domain->base.max_message = port.max_msg_sz;
	/* One completion queue takes the completions of both queues of a queue pair. */
	domain->base.max_qp_wr = (uint32_t)MIN(domain->limits.max_qp_wr, domain->limits.max_cqe / 2);
	domain->pd = ibv_alloc_pd(id->verbs);
	if (domain->pd)
		domain->completion_channel = ibv_create_comp_channel(id->verbs);
	if (!domain->completion_channel) {
		error = errno;
		verbs_domain_destroy(domain);
		return verbs_report_resources(reason, device, "creating a protection domain and completion channel",
					      error);
	}
	verbs_set_nonblocking(domain->completion_channel->fd);
	verbs_set_nonblocking(id->verbs->async_fd);
	loop_io_start(transport->base.loop, &domain->async_readable, id->verbs->async_fd, async_readable, domain);
	domain->next = transport->domains;
	transport->domains = domain;
	*result = domain;
	return OUTCOME_OK;
}

/* Finds or creates the domain of a bound id. */
static enum outcome domain_use(struct verbs_transport *transport, struct rdma_cm_id *id,
			       const struct endpoint_options *options, struct error *reason,
			       struct verbs_domain **result)
{
	struct verbs_domain *domain = transport->domains;

	while (domain && (domain->context != id->verbs || domain->port != id->port_num))
		domain = domain->next;
	if (!domain) {
		enum outcome outcome = domain_create(transport, id, reason, &domain);

		if (outcome)
			return outcome;
	}
	domain->users++;
	if (!domain->bound_id)
		bind_id(domain, id, options);
	*result = domain;
	return OUTCOME_OK;
}

void verbs_domain_watch(struct verbs_transport *transport, struct rdma_cm_id *id,
			const struct endpoint_options *options)
{
	struct verbs_domain *domain;
	struct error ignored;

	if (!domain_use(transport, id, options, &ignored, &domain))
		verbs_domain_release(domain);
}

enum outcome verbs_domain_attach(struct verbs_endpoint *endpoint)
{
	struct verbs_transport *transport = verbs_of(endpoint->base.transport);
	struct verbs_domain *domain;
	enum outcome outcome =
		domain_use(transport, endpoint->id, &endpoint->base.options, &transport->base.error, &domain);

	if (outcome)
		return outcome;
	endpoint->base.domain = &domain->base;
	if (domain->base.removed) {
		error_set(&transport->base.error, domain->base.device, "the device has failed before");
		return OUTCOME_FAILED;
	}
	if (endpoint->base.kind == ENDPOINT_GROUP)
		endpoint->base.max_datagram = domain->mtu;
	return OUTCOME_OK;
}

/* Without a bound_id librdmacm may close the device with the last endpoint's id. */
void verbs_domain_release(struct verbs_domain *domain)
{
	if (!--domain->users && !domain->bound_id)
		verbs_domain_destroy(domain);
}

void verbs_domains_reap(struct verbs_transport *transport)
{
	for (struct verbs_domain *domain = transport->domains, *next; domain; domain = next) {
		next = domain->next;
		if (domain->base.removed && !domain->users)
			verbs_domain_destroy(domain);
	}
}

/* ibv_destroy_cq() blocks unless the acknowledged events are as many as the events read. */
void verbs_completion_queue_destroy(struct verbs_completion_queue *completions)
{
	loop_timer_stop(&completions->again);
	if (completions->unacknowledged)
		ibv_ack_cq_events(completions->cq, completions->unacknowledged);
	ibv_destroy_cq(completions->cq);
	free(completions);
}

/* Its endpoints and regions are freed. Frees in reverse order of creation. */
void verbs_domain_destroy(struct verbs_domain *domain)
{
	struct verbs_domain **pprev = &verbs_of(domain->base.transport)->domains;

	while (*pprev && *pprev != domain)
		pprev = &(*pprev)->next;
	if (*pprev)
		*pprev = domain->next;
	loop_io_stop(&domain->async_readable);
	if (WITH_EXTRAS)
		loop_poller_stop(domain->base.transport->loop, &domain->completion_poller);
	while (domain->completion_queues) {
		struct verbs_completion_queue *completions = domain->completion_queues;

		domain->completion_queues = completions->next;
		verbs_completion_queue_destroy(completions);
	}
	loop_io_stop(&domain->completion_readable);
	if (domain->completion_channel)
		ibv_destroy_comp_channel(domain->completion_channel);
	if (domain->pd)
		ibv_dealloc_pd(domain->pd);
	loop_io_stop(&domain->bound_id_readable);
	if (domain->bound_id)
		release_device(domain);
	free(domain);
}
