/* SPDX-License-Identifier: BSD-2-Clause */
/* The device of a domain while it is in use: asynchronous events, its failure and its removal. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "transport/verbs/verbs.h"

void verbs_watch(struct transport *transport, struct loop_io *io, int fd, loop_callback *callback, void *context)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	loop_io_start(transport->loop, io, fd, callback, context);
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

/* Whether an endpoint expects completions. A failed device does not harm one that is done or disconnecting. */
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

void verbs_device_bind(struct verbs_domain *domain, struct rdma_cm_id *id, const struct endpoint_options *options)
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
	verbs_watch(domain->base.transport, &domain->bound_id_readable, domain->bound_id->channel->fd,
		    bound_id_readable, domain);
}

/* Whether this process still uses the device: the id of a listener that is not yet destroyed, or another port. */
static bool is_in_use(const struct verbs_domain *domain)
{
	const struct verbs_transport *transport = verbs_of(domain->base.transport);

	for (uint32_t slot = 0; slot < transport->slot_count; slot++)
		if (transport->slots[slot].endpoint && transport->slots[slot].endpoint->id->verbs == domain->context)
			return true;
	for (const struct verbs_domain *port = transport->domains; port; port = port->next)
		if (port->context == domain->context)
			return true;
	return false;
}

/*
 * The removal of a soft-RoCE or soft-iWARP device waits until every process has closed it. librdmacm closes it only
 * when it opens another device. So /dev/null replaces the descriptors of the device, and librdmacm may close that.
 */
static void close_device(const int files[2])
{
	int null_device = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null_device < 0)
		return;
	for (unsigned i = 0; i < 2; i++)
		if (fcntl(files[i], F_GETFD) >= 0) /* librdmacm has not closed it */
			dup3(null_device, files[i], O_CLOEXEC);
	close(null_device);
}

/* The domain is no longer in the transport's list. librdmacm may free its context with the id. */
void verbs_device_release(struct verbs_domain *domain)
{
	const int files[] = { domain->context->cmd_fd, domain->context->async_fd };
	bool unplugged = domain->unplugged && !is_in_use(domain);

	loop_io_stop(&domain->async_readable);
	loop_io_stop(&domain->bound_id_readable);
	if (!domain->bound_id)
		return;
	rdma_destroy_id(domain->bound_id);
	if (unplugged)
		close_device(files);
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
		log_text(text, ENDPOINT_TIMEOUT_CAUSE_SIZE, "; port %u of %s is %s", domain->port, domain->base.device,
			 port.state == IBV_PORT_DOWN ? "down" : "not active");
	else if (domain->port_event)
		log_text(text, ENDPOINT_TIMEOUT_CAUSE_SIZE, "; last event of port %u of %s: %s", domain->port,
			 domain->base.device, domain->port_event);
}

static void async_readable(void *context)
{
	struct verbs_domain *domain = context;
	const struct log *log = domain->base.transport->log;
	struct ibv_async_event event;

	while (!ibv_get_async_event(domain->context, &event)) {
		/* Destroying a QP or CQ waits until its events are acknowledged, and handlers may destroy it. */
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

void verbs_device_watch(struct verbs_domain *domain)
{
	verbs_watch(domain->base.transport, &domain->async_readable, domain->context->async_fd, async_readable, domain);
}
