/* SPDX-License-Identifier: BSD-2-Clause */
/* An endpoint: its rdma_cm_id, address resolution, CM events, migration, and freeing. */
#include <errno.h>
#include <stdlib.h>
#include <sys/param.h>

#include "core/clock.h"
#include "transport/verbs/verbs.h"

/* Delay of EVENT_DISCONNECTED, until the acknowledgements of outstanding sends have arrived. */
#define DISCONNECT_DELAY (500 * CLOCK_NS_PER_MS)

enum {
	BACKLOG = 1024, /* of a listener; the kernel's default limit, net.rdma_ucm.max_backlog */
	/* Time limits of the kernel's resolution attempts, milliseconds. The stock tools use 2 s. */
	ADDRESS_TRY_FIRST = 20,
	ADDRESS_TRY_LONGEST = 2000,
	ROUTE_TRY_FIRST = 2000,
	ROUTE_TRY_LONGEST = 60000,
};

/* ---- the table of endpoints ---- */

/* False if the table is full. */
static bool slot_take(struct verbs_transport *transport, struct verbs_endpoint *endpoint)
{
	uint32_t slot = transport->first_free;

	if (slot == VERBS_SLOTS_MAX)
		return false;
	if (slot == transport->slot_count)
		transport->slots[slot].next_free = ++transport->slot_count;
	transport->first_free = transport->slots[slot].next_free;
	transport->slots[slot].endpoint = endpoint;
	endpoint->slot = slot;
	return true;
}

static void slot_release(struct verbs_transport *transport, struct verbs_endpoint *endpoint)
{
	struct verbs_slot *slot = &transport->slots[endpoint->slot];

	slot->endpoint = NULL;
	slot->generation++;
	slot->next_free = transport->first_free;
	transport->first_free = endpoint->slot;
}

/* ---- creation and the free ---- */

/* id: of a request, or NULL. */
static struct verbs_endpoint *allocate_endpoint(struct channel *channel, enum endpoint_kind kind,
						const struct endpoint_options *options, struct rdma_cm_id *id)
{
	struct verbs_endpoint *endpoint = calloc(1, sizeof(*endpoint));

	if (!endpoint)
		return NULL;
	endpoint_initialise(&endpoint->base, channel, kind, options);
	/* librdmacm would set its path record's service level. A group's is in its address handle. */
	if (kind != ENDPOINT_GROUP && endpoint_option(&endpoint->base, service_level) != PATH_UNSET)
		endpoint->base.options.own_qp = true;
	if (!slot_take(verbs_of(channel->transport), endpoint)) {
		free(endpoint);
		return NULL;
	}
	endpoint->group_gid_index = PATH_UNSET;
	endpoint->id = id;
	if (id)
		id->context = endpoint;
	return endpoint;
}

enum outcome verbs_endpoint_create(struct channel *channel, enum endpoint_kind kind,
				   const struct endpoint_options *options, struct endpoint **result)
{
	struct verbs_endpoint *endpoint = allocate_endpoint(channel, kind, options, NULL);
	struct error *reason = &channel->transport->error;
	int error;

	if (!endpoint)
		return verbs_error_resources(reason, NULL, "creating an endpoint", ENOMEM);
	if (rdma_create_id(((struct verbs_channel *)channel)->events, &endpoint->id, endpoint,
			   (enum rdma_port_space)options->port_space)) {
		error = errno;
		endpoint->id = NULL;
		verbs_endpoint_free(endpoint);
		return verbs_error_resources(reason, NULL, "creating a connection identifier", error);
	}
	*result = &endpoint->base;
	return OUTCOME_OK;
}

void verbs_endpoint_destroy(struct endpoint *base)
{
	struct verbs_transport *transport = verbs_of(base->transport);
	struct verbs_endpoint *endpoint = (struct verbs_endpoint *)base;

	endpoint->next = transport->destroyed_endpoints;
	transport->destroyed_endpoints = endpoint;
	verbs_reap_later(transport);
}

void verbs_endpoint_free(struct verbs_endpoint *endpoint)
{
	loop_timer_stop(&endpoint->timer);
	/* First: verbs_qp_destroy() handles completions, and those of this endpoint must no longer find it. */
	slot_release(verbs_of(endpoint->base.transport), endpoint);
	/* A group is left, and freed, at the end of a run. */
	if (TRANSPORT_CLEANS_UP)
		verbs_group_abandon(endpoint);
	verbs_qp_destroy(endpoint);
	if (TRANSPORT_CLEANS_UP && endpoint->group_handle)
		ibv_destroy_ah(endpoint->group_handle);
	if (endpoint->base.domain)
		verbs_domain_release(verbs_domain_of(endpoint));
	if (endpoint->id)
		rdma_destroy_id(endpoint->id);
	free(endpoint);
}

/* Returns 0 or an errno value. */
static int verbs_set_option(struct verbs_endpoint *endpoint, int option, int64_t value)
{
	uint8_t byte = (uint8_t)value;

	if (value == PATH_UNSET || !rdma_set_option(endpoint->id, RDMA_OPTION_ID, option, &byte, sizeof(byte)))
		return 0;
	return errno;
}

/* Sets type of service and ACK timeout of the id. */
static enum outcome set_options(struct verbs_endpoint *endpoint)
{
	struct error *reason = endpoint_error(&endpoint->base);
	int type_of_service = path_type_of_service(endpoint->base.options.path);
	int64_t ack_timeout = endpoint->base.options.path->ack_timeout;
	int error = verbs_set_option(endpoint, RDMA_OPTION_ID_TOS, type_of_service);

	if (error) {
		error_errno(reason, endpoint->base.name, error, "setting the type of service to %d", type_of_service);
		return OUTCOME_FAILED;
	}
	if (ack_timeout != PATH_UNSET && endpoint->base.domain->fabric == FABRIC_IWARP) {
		error_set(reason, endpoint->base.name, "iWARP has no acknowledgement timeout to set: TCP has its own");
		return OUTCOME_FAILED;
	}
	error = verbs_set_option(endpoint, RDMA_OPTION_ID_ACK_TIMEOUT, ack_timeout);
	if (!error)
		return OUTCOME_OK;
	/* A kernel without this option: verbs_qp_modify() sets the ACK timeout of an own QP. */
	endpoint->base.options.own_qp = true;
	if (error == ENOSYS)
		return OUTCOME_OK;
	error_errno(reason, endpoint->base.name, error, "setting the acknowledgement timeout to %d", (int)ack_timeout);
	return OUTCOME_FAILED;
}

/* The id is bound to a device. */
static enum outcome attach_device(struct verbs_endpoint *endpoint)
{
	enum outcome outcome = verbs_domain_attach(endpoint);

	if (!outcome)
		outcome = verbs_path_check(endpoint);
	return outcome ? outcome : set_options(endpoint);
}

/* For an address of this host, names the addresses with a device. */
static enum outcome report_binding(const struct endpoint *listener)
{
	bool in_use = errno == EADDRINUSE;
	enum outcome outcome = verbs_error_address(listener, "binding");

	if (WITH_EXTRAS && !in_use)
		verbs_hint_route(listener);
	return outcome;
}

enum outcome verbs_listen(struct endpoint *base)
{
	struct verbs_endpoint *endpoint = (struct verbs_endpoint *)base;
	struct sockaddr_storage storage;

	if (rdma_bind_addr(endpoint->id, verbs_socket_address(&base->local, &base->options, &storage)))
		return report_binding(base);
	if (rdma_listen(endpoint->id, (int)endpoint_option_or(base, backlog, BACKLOG)))
		return verbs_error_address(base, "listening");
	verbs_address(rdma_get_local_addr(endpoint->id), &base->local);
	return OUTCOME_OK;
}

/*
 * Returns the time limit of the kernel's next attempt, milliseconds. The kernel requests a neighbour's link-layer
 * address before it waits for the answer: it misses an immediate one, and looks again when the limit is over. So the
 * first limit is short, and each further one twice as long.
 */
static int next_try(struct verbs_endpoint *endpoint, int first, int longest)
{
	endpoint->last_try = endpoint->last_try ? MIN(2 * endpoint->last_try, longest) : first;
	return endpoint->last_try;
}

static enum outcome resolve_address(struct verbs_endpoint *endpoint)
{
	struct sockaddr_storage source, destination;
	struct endpoint *base = &endpoint->base;

	if (!rdma_resolve_addr(endpoint->id, verbs_socket_address(&base->local, &base->options, &source),
			       verbs_socket_address(&base->peer, &base->options, &destination),
			       next_try(endpoint, ADDRESS_TRY_FIRST, ADDRESS_TRY_LONGEST)))
		return OUTCOME_OK;
	return verbs_error_address(base, "resolving the address");
}

/* With a new id: before 5.14 the kernel leaves a failed id with its route's source address. */
static enum outcome resolve_address_again(struct verbs_endpoint *endpoint)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(endpoint->id->channel, &id, endpoint, endpoint->id->ps))
		return verbs_error_resources(endpoint_error(&endpoint->base), endpoint->base.name,
					     "creating a connection identifier", errno);
	rdma_destroy_id(endpoint->id);
	endpoint->id = id;
	return resolve_address(endpoint);
}

/* On InfiniBand the kernel repeats its subnet manager query after a tenth of the limit. */
static enum outcome resolve_route(struct verbs_endpoint *endpoint)
{
	if (!rdma_resolve_route(endpoint->id, next_try(endpoint, ROUTE_TRY_FIRST, ROUTE_TRY_LONGEST)))
		return OUTCOME_OK;
	return verbs_error_call(&endpoint->base, "resolving the route");
}

/* The kernel's -ETIMEDOUT ends an attempt; any other status is final. */
static void try_ended(struct verbs_endpoint *endpoint)
{
	enum outcome outcome = endpoint->base.state == ENDPOINT_RESOLVING_ADDRESS ? resolve_address_again(endpoint)
										  : resolve_route(endpoint);

	if (outcome)
		endpoint_fail(&endpoint->base, outcome);
}

static void begin_route(struct verbs_endpoint *endpoint)
{
	enum outcome outcome;

	endpoint->last_try = 0;
	outcome = resolve_route(endpoint);
	if (outcome)
		endpoint_fail(&endpoint->base, outcome);
	else
		endpoint_enter(&endpoint->base, ENDPOINT_RESOLVING_ROUTE);
}

static void address_resolved(void *context)
{
	struct verbs_endpoint *endpoint = context;
	enum outcome outcome = attach_device(endpoint);

	if (outcome) {
		endpoint_fail(&endpoint->base, outcome);
		return;
	}
	verbs_address(rdma_get_local_addr(endpoint->id), &endpoint->base.local);
	endpoint_deliver_kind(&endpoint->base, EVENT_ADDRESS_RESOLVED);
	if (endpoint->base.kind == ENDPOINT_CONNECTION && endpoint->base.state == ENDPOINT_ADDRESS_RESOLVED)
		begin_route(endpoint);
}

/* A native multicast GID is not resolved: binding to the source address selects the device. */
static enum outcome bind_group(struct verbs_endpoint *endpoint)
{
	struct sockaddr_storage storage;
	struct endpoint *base = &endpoint->base;

	if (rdma_bind_addr(endpoint->id, verbs_socket_address(&base->local, &base->options, &storage)))
		return verbs_error_address(base, "binding");
	if (!endpoint->id->verbs) {
		errno = EADDRNOTAVAIL;
		return verbs_error_call(base, "binding");
	}
	verbs_timer_start(endpoint, 0, address_resolved);
	return OUTCOME_OK;
}

enum outcome verbs_resolve(struct endpoint *base)
{
	struct verbs_endpoint *endpoint = (struct verbs_endpoint *)base;

	return endpoint_is_group(base) && base->peer.family == ADDRESS_GID ? bind_group(endpoint)
									   : resolve_address(endpoint);
}

enum outcome verbs_migrate(struct endpoint *base, struct channel *channel)
{
	struct verbs_endpoint *endpoint = (struct verbs_endpoint *)base;

	if (!rdma_migrate_id(endpoint->id, ((struct verbs_channel *)channel)->events))
		return OUTCOME_OK;
	error_errno(endpoint_error(base), base->name, errno, "migrating to another event channel");
	return OUTCOME_FAILED;
}

static void verbs_request(struct verbs_endpoint *listener, const struct rdma_cm_event *event)
{
	struct verbs_endpoint *endpoint = NULL;
	bool listens = listener->base.state == ENDPOINT_LISTENING;
	enum outcome outcome;

	if (listens)
		endpoint = allocate_endpoint(listener->base.channel, ENDPOINT_CONNECTION, &listener->base.options,
					     event->id);
	if (!endpoint) {
		rdma_reject(event->id, NULL, 0);
		rdma_destroy_id(event->id);
		if (listens)
			endpoint_request_no_memory(&listener->base);
		return;
	}
	endpoint->request = event->param.conn;
	verbs_address(rdma_get_local_addr(event->id), &endpoint->base.local);
	verbs_address(rdma_get_peer_addr(event->id), &endpoint->base.peer);
	endpoint_set_name(&endpoint->base);
	endpoint_enter(&endpoint->base, ENDPOINT_REQUESTED);
	outcome = attach_device(endpoint);
	if (outcome) {
		endpoint_refuse(&listener->base, &endpoint->base, outcome);
		return;
	}
	endpoint_deliver_request(&listener->base, &endpoint->base, event->param.conn.private_data,
				 event->param.conn.private_data_len);
}

static void event_failed(struct verbs_endpoint *endpoint, const struct rdma_cm_event *event)
{
	enum outcome outcome;

	if (endpoint->base.state >= ENDPOINT_FAILED)
		return;
	if (event->status == -ETIMEDOUT &&
	    (endpoint->base.state == ENDPOINT_RESOLVING_ADDRESS || endpoint->base.state == ENDPOINT_RESOLVING_ROUTE)) {
		try_ended(endpoint);
		return;
	}
	if (event->event == RDMA_CM_EVENT_ADDR_ERROR) {
		outcome = verbs_error_shortage(&endpoint->base, endpoint_state_text(endpoint->base.state),
					       -event->status);
		if (outcome) {
			endpoint_fail(&endpoint->base, outcome);
			return;
		}
	}
	verbs_error_event(&endpoint->base, event);
	if (WITH_EXTRAS && event->event == RDMA_CM_EVENT_ADDR_ERROR &&
	    (event->status == -ENODEV || event->status == -1))
		verbs_hint_route(&endpoint->base);
	if (event->event == RDMA_CM_EVENT_REJECTED)
		endpoint_rejected(&endpoint->base, event->param.conn.private_data, event->param.conn.private_data_len);
	else
		endpoint_fail(&endpoint->base, endpoint_outcome(&endpoint->base));
}

static void verbs_established(struct verbs_endpoint *endpoint, const struct rdma_cm_event *event)
{
	const void *data = event->param.conn.private_data;
	size_t length = event->param.conn.private_data_len;

	if (endpoint->base.state == ENDPOINT_CONNECTING) {
		if (verbs_gid_check(endpoint)) {
			endpoint_fail(&endpoint->base, OUTCOME_NO_CONNECTION);
			return;
		}
		verbs_qp_set_rnr_timer(endpoint);
		if (verbs_delay_established(endpoint, data, length))
			return;
	}
	endpoint_established(&endpoint->base, data, length);
}

/*
 * Completions of the last messages are reported first. The DREQ comes over QP 1 and may overtake the acknowledgements
 * of our last sends: EVENT_DISCONNECTED waits for their completions, DISCONNECT_DELAY at most.
 */
static void verbs_disconnect_event(struct verbs_endpoint *endpoint, const struct rdma_cm_event *event)
{
	if (endpoint->base.domain)
		verbs_completion_drain(verbs_domain_of(endpoint));
	switch (endpoint->base.state) {
	case ENDPOINT_ESTABLISHED:
		endpoint->disconnect_pending = endpoint->outstanding && endpoint->base.domain->fabric != FABRIC_IWARP;
		if (endpoint->disconnect_pending)
			verbs_timer_start(endpoint, DISCONNECT_DELAY, verbs_deliver_disconnected);
		else
			verbs_deliver_disconnected(endpoint);
		break;
	case ENDPOINT_DISCONNECTING:
		verbs_deliver_disconnected(endpoint);
		break;
	case ENDPOINT_CONNECTING:
	case ENDPOINT_ACCEPTING:
		event_failed(endpoint, event);
		break;
	default:
		break;
	}
}

void verbs_endpoint_event(struct verbs_endpoint *endpoint, const struct rdma_cm_event *event)
{
	enum outcome outcome;

	/* A request's id has its listener's context. */
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		verbs_request(endpoint, event);
		return;
	}
	verbs_deliver_established(endpoint);
	if (endpoint->base.state >= ENDPOINT_FAILED)
		return;
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		address_resolved(endpoint);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		endpoint_deliver_kind(&endpoint->base, EVENT_ROUTE_RESOLVED);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		outcome = verbs_establish(endpoint);
		if (outcome)
			endpoint_fail(&endpoint->base, outcome);
		if (endpoint->base.state == ENDPOINT_CONNECTING)
			verbs_established(endpoint, event);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		/*
		 * The kernel sends no DREQ before the RTU: one requested after the peer's first message is due now.
		 * Announcing that message with rdma_notify() would be worse: if a DREQ follows before the kernel's
		 * worker runs, the REP is sent again for a minute, and rdma_destroy_id() waits for that (cm_establish()
		 * in drivers/infiniband/core/cm.c).
		 */
		if (endpoint->base.state == ENDPOINT_DISCONNECTING)
			verbs_send_disconnect(endpoint);
		else
			verbs_established(endpoint, event);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		verbs_disconnect_event(endpoint, event);
		break;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
		if (HAS_GROUPS)
			verbs_joined(endpoint, &event->param.ud);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
		event_failed(endpoint, event);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		if (WITH_DIAGNOSTICS && endpoint->base.domain)
			verbs_domain_of(endpoint)->port_event = "the address has moved to another interface";
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		if (endpoint->base.domain)
			verbs_domain_unplugged(verbs_domain_of(endpoint));
		else
			event_failed(endpoint, event);
		break;
	default:
		break;
	}
}
