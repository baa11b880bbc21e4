/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection identifiers and the connection manager: IBTA's REQ, REP, RTU, REJ, DREQ and DREP between ends in one
 * process.
 */
#include "test/verbs/provider/provider.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/ib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"

enum {
	REJECTED_TIMEOUT = 4,
	REJECTED_NO_LISTENER = 8,
	REJECTED_BY_CONSUMER = 28,
	/* A message's private data for the program on IP, padded to this size. */
	REQ_DATA = 56,
	REP_DATA = 196,
	REJ_DATA = 148,
	NATIVE_REQ_DATA = 92,
	FIRST_PORT = 40000,
};

static struct cm_id *cm(struct rdma_cm_id *id)
{
	return (struct cm_id *)id;
}

static int fails_with(int error)
{
	errno = error;
	return -1;
}

const char *cm_text(const struct sockaddr *address)
{
	static char text[4][160];
	static unsigned turn;
	char *result = text[turn++ % 4];
	char host[INET6_ADDRSTRLEN];

	if (!address)
		return "none";
	if (address->sa_family == AF_IB) {
		const struct sockaddr_ib *native = (const struct sockaddr_ib *)(const void *)address;

		inet_ntop(AF_INET6, native->sib_addr.sib_raw, host, sizeof(host));
		snprintf(result, sizeof(text[0]), "gid %s sid %llx mask %llx", host,
			 (unsigned long long)be64toh(native->sib_sid),
			 (unsigned long long)be64toh(native->sib_sid_mask));
	} else if (address->sa_family == AF_INET6) {
		const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)address;

		inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof(host));
		snprintf(result, sizeof(text[0]), "[%s]:%u", host, ntohs(six->sin6_port));
	} else {
		const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)address;

		inet_ntop(AF_INET, &four->sin_addr, host, sizeof(host));
		snprintf(result, sizeof(text[0]), "%s:%u", host, ntohs(four->sin_port));
	}
	return result;
}

/* ---- addresses ---- */

static size_t size_of(const struct sockaddr *address)
{
	return address->sa_family == AF_IB     ? sizeof(struct sockaddr_ib)
	       : address->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					       : sizeof(struct sockaddr_in6);
}

static uint16_t port_of(const struct sockaddr *address)
{
	if (address->sa_family == AF_IB)
		return (uint16_t)be64toh(((const struct sockaddr_ib *)(const void *)address)->sib_sid);
	/* At the same offset in both. */
	return ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port);
}

static void set_port(struct sockaddr *address, uint16_t port)
{
	struct sockaddr_ib *native = (struct sockaddr_ib *)(void *)address;

	if (address->sa_family == AF_IB)
		native->sib_sid = htobe64((be64toh(native->sib_sid) & ~0xffffULL) | port);
	else
		((struct sockaddr_in *)(void *)address)->sin_port = htons(port);
}

static bool is_any(const struct sockaddr *address)
{
	static const uint8_t zeros[16];

	if (address->sa_family == AF_IB)
		return !memcmp(&((const struct sockaddr_ib *)(const void *)address)->sib_addr, zeros, 16);
	if (address->sa_family == AF_INET)
		return !((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr;
	return !memcmp(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, zeros, 16);
}

static bool is_multicast(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return IN_MULTICAST(ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr)) ||
		       is_any(address);
	return address->sa_family == AF_INET6 &&
	       ((const struct sockaddr_in6 *)(const void *)address)->sin6_addr.s6_addr[0] == 0xff;
}

static bool same_host(const struct sockaddr *left, const struct sockaddr *right)
{
	uint8_t port;

	return left->sa_family == right->sa_family && device_at(left, &port) == device_at(right, &port) &&
	       !memcmp((const uint8_t *)left + 4, (const uint8_t *)right + 4, left->sa_family == AF_INET ? 4 : 20);
}

/* The listener for a port on an address, or on all addresses. */
static struct cm_id *listener_at(const struct sockaddr *address, enum rdma_port_space space)
{
	struct cm_id *id = provider.ids;

	while (id && !(id->state == CM_LISTENING && id->base.ps == space &&
		       port_of(&id->base.route.addr.src_addr) == port_of(address) &&
		       (is_any(&id->base.route.addr.src_addr) || is_any(address) ||
			same_host(&id->base.route.addr.src_addr, address))))
		id = id->next;
	return id;
}

static void bind_to_device(struct cm_id *id)
{
	uint8_t index;

	device_get(id);
	id->base.route.addr.addr.ibaddr.sgid =
		device_gid(id->device, id->base.port_num, &id->base.route.addr.src_addr, &index);
}

/* The library learns the local address once the kernel has found a device. */
static void no_source(struct cm_id *id)
{
	memset(&id->base.route.addr.src_storage, 0, sizeof(id->base.route.addr.src_storage));
}

static int set_source(struct cm_id *id, const struct sockaddr *source)
{
	memcpy(&id->base.route.addr.src_storage, source, size_of(source));
	if (!port_of(source))
		set_port(&id->base.route.addr.src_addr, (uint16_t)(FIRST_PORT + id->number));
	if (is_any(source))
		return 0;
	id->device = device_at(source, &id->base.port_num);
	if (id->device)
		return 0;
	no_source(id);
	return fails_with(EADDRNOTAVAIL);
}

/* ---- channels and events ---- */

static struct rdma_event_channel *new_channel(void)
{
	struct cm_channel *channel = provider_allocate(sizeof(*channel));

	doorbell_open(&channel->bell);
	channel->base.fd = channel->bell.fd;
	LIST_APPEND(provider.channels, channel);
	return &channel->base;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct ibv_device **devices;
	int count;

	if (provider_fails(__func__))
		return NULL;
	devices = ibv_get_device_list(&count);
	ibv_free_device_list(devices);
	errno = count ? ENOENT : ENODEV;
	return count && provider_has("/dev/infiniband/rdma_cm") ? new_channel() : NULL;
}

static void free_events(struct cm_event *event)
{
	while (event) {
		struct cm_event *next = event->next;

		free(event);
		event = next;
	}
}

void rdma_destroy_event_channel(struct rdma_event_channel *base)
{
	struct cm_channel *channel = (struct cm_channel *)base;

	for (const struct cm_id *id = provider.ids; id; id = id->next)
		if (id->base.channel == base)
			provider_die("%s: an identifier is still on it", __func__);
	LIST_REMOVE(provider.channels, channel);
	free_events(channel->waiting);
	free_events(channel->taken);
	close(channel->bell.fd);
	free(channel);
}

struct cm_id *cm_find(unsigned number)
{
	struct cm_id *id = provider.ids;

	while (id && id->number != number)
		id = id->next;
	return id;
}

static struct cm_id *end_of(const struct action *action)
{
	struct cm_id *id = provider.ids;

	while (id && !(id->connection == action->connection && id->passive == action->passive))
		id = id->next;
	return id;
}

static struct cm_event *raise_on(struct cm_id *counted, struct cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct cm_channel *channel = (struct cm_channel *)counted->base.channel;
	struct cm_event *event = provider_allocate(sizeof(*event));

	event->base = (struct rdma_cm_event){ .id = &id->base, .event = type, .status = status };
	event->counted = counted;
	LIST_APPEND(channel->waiting, event);
	doorbell_set(&channel->bell, true);
	return event;
}

struct cm_event *cm_raise(struct cm_id *id, enum rdma_cm_event_type type, int status)
{
	return raise_on(id, id, type, status);
}

/* A message's data as in the receiver's library: padded, except on iWARP. */
static void add_data(struct cm_event *event, const struct action *action, size_t padded)
{
	struct rdma_conn_param *parameters = &event->base.param.conn;

	*parameters = action->parameters;
	if (((struct cm_id *)event->base.id)->device->fabric != PROVIDER_IWARP)
		parameters->private_data_len = (uint8_t)padded;
	memcpy(event->data, action->data, action->parameters.private_data_len);
	parameters->private_data = parameters->private_data_len ? event->data : NULL;
	/* One end's outstanding READs are the other's responder resources. */
	parameters->responder_resources = action->parameters.initiator_depth;
	parameters->initiator_depth = action->parameters.responder_resources;
	parameters->srq = 1; /* the sender's receives are shared */
}

static void send_on(struct cm_id *id, action_run *run, const struct rdma_conn_param *parameters, int status)
{
	struct action *action = provider_action(run, id->number);

	action->id = id->number;
	action->connection = id->connection;
	action->passive = !id->passive;
	action->status = status;
	if (!parameters)
		return;
	action->parameters = *parameters;
	if (parameters->private_data_len)
		memcpy(action->data, parameters->private_data, parameters->private_data_len);
}

static void rtu_arrives(struct action *action)
{
	struct cm_id *id = end_of(action);

	if (!id || id->state != CM_REP_SENT || provider.rtu_lost)
		return;
	id->state = CM_ESTABLISHED;
	cm_raise(id, RDMA_CM_EVENT_ESTABLISHED, 0);
}

static struct queue_pair *qp_of(const struct cm_id *id)
{
	return id->base.qp ? (struct queue_pair *)id->base.qp : qp_find(id->local.qp_num);
}

/* Modifies an identifier's queue pair with the connection manager's values, limited to the negotiated ones. */
static int move(struct cm_id *id, struct queue_pair *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attributes = { .qp_state = state };
	int mask = IBV_QP_STATE, error;

	if (state != IBV_QPS_ERR && rdma_init_qp_attr(&id->base, &attributes, &mask))
		return -1;
	if (id->passive) {
		attributes.max_dest_rd_atomic = id->local.responder_resources;
		attributes.max_rd_atomic = id->local.initiator_depth;
	}
	error = qp_modify(qp, &attributes, mask);
	return error ? fails_with(error) : 0;
}

static int move_to_work(struct cm_id *id, struct queue_pair *qp)
{
	if (id->device->fabric == PROVIDER_IWARP)
		qp->attributes.dest_qp_num = id->remote.qp_num;
	if (qp->base.state == IBV_QPS_RTS)
		return 0;
	return move(id, qp, IBV_QPS_RTR) || move(id, qp, IBV_QPS_RTS) ? -1 : 0;
}

/* The library's own actions when an event is taken. */
static void event_taken(struct cm_id *id, struct rdma_cm_event *event)
{
	struct queue_pair *qp = (struct queue_pair *)id->base.qp;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (provider_fails("ucma_get_device") || (!device_is_known(id->device) && fails_with(ENODEV))) {
			event->event = RDMA_CM_EVENT_ADDR_ERROR;
			event->status = -1;
			break;
		}
		bind_to_device(id);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		if (!qp)
			break;
		event->event = RDMA_CM_EVENT_ESTABLISHED;
		if (provider_fails("ucma_modify_qp") || move_to_work(id, qp)) {
			event->event = RDMA_CM_EVENT_CONNECT_ERROR;
			event->status = -1;
			break;
		}
		id->state = CM_ESTABLISHED;
		send_on(id, rtu_arrives, NULL, 0);
		break;
	case RDMA_CM_EVENT_REJECTED:
		if (qp)
			move(id, qp, IBV_QPS_ERR);
		break;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
		group_join_taken(id, event);
		break;
	default:
		break;
	}
}

int rdma_get_cm_event(struct rdma_event_channel *base, struct rdma_cm_event **result)
{
	struct cm_channel *channel = (struct cm_channel *)base;
	struct cm_event *event;

	provider_pump();
	if (provider_fails(__func__)) {
		doorbell_set(&channel->bell, true); /* a failed channel stays readable */
		return -1;
	}
	if (provider.events_without_end && provider.ids) {
		event = cm_raise(provider.ids, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		LIST_REMOVE(channel->waiting, event);
		event->next = channel->waiting;
		channel->waiting = event;
	}
	event = channel->waiting;
	if (!event)
		return doorbell_empty(&channel->bell, __func__);
	channel->waiting = event->next;
	event->next = channel->taken;
	channel->taken = event;
	event->counted->taken++;
	*result = &event->base;
	event_taken((struct cm_id *)event->base.id, &event->base);
	doorbell_set(&channel->bell, channel->waiting || provider.actions || provider.events_without_end);
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *base)
{
	struct cm_event *event = (struct cm_event *)base;

	if (event->acknowledged)
		provider_die("%s: twice", __func__);
	event->acknowledged = true;
	memset(event->data, 0xa5, sizeof(event->data));
	event->counted->acknowledged++;
	return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type type)
{
	static char text[32];

	snprintf(text, sizeof(text), "event %d", (int)type);
	return text;
}

/* ---- arriving messages ---- */

static void reject_arrives(struct action *action)
{
	struct cm_id *id = end_of(action);
	struct cm_event *event;
	bool answered;

	if (!id || id->state < CM_REQ_SENT || id->state == CM_CLOSED)
		return;
	/* The kernel reports nothing of a request before its answer. */
	answered = id->state != CM_REQ_RECEIVED;
	id->state = CM_CLOSED;
	if (!answered)
		return;
	event = cm_raise(id, RDMA_CM_EVENT_REJECTED, action->status);
	if (action->status == REJECTED_BY_CONSUMER || action->status == -ECONNRESET)
		add_data(event, action, REJ_DATA);
}

static void refuse(struct cm_id *id)
{
	id->state = CM_CLOSED;
	cm_raise(id, RDMA_CM_EVENT_REJECTED,
		 id->device->fabric == PROVIDER_IWARP ? -ECONNREFUSED : REJECTED_NO_LISTENER);
}

static int waiting_at(const struct cm_id *listener)
{
	int count = 0;

	for (const struct cm_id *id = provider.ids; id; id = id->next)
		count += id->listener == listener && id->state == CM_REQ_RECEIVED;
	return count;
}

static struct cm_id *new_id(struct rdma_event_channel *channel, void *context, enum rdma_port_space space)
{
	struct cm_id *id = provider_allocate(sizeof(*id));

	id->base.channel = channel;
	id->base.context = context;
	id->base.ps = space;
	id->number = ++provider.last_number;
	id->type_of_service = id->ack_timeout = -1;
	LIST_APPEND(provider.ids, id);
	return id;
}

static void request_arrives(struct action *action)
{
	struct cm_id *from = cm_find(action->id), *listener, *id;
	struct cm_event *event;

	if (!from || from->state != CM_REQ_SENT)
		return;
	listener = listener_at(&from->base.route.addr.dst_addr, from->base.ps);
	if (!listener) {
		if (!provider.unheard)
			refuse(from);
		return;
	}
	/* Dropped: a real peer would repeat it for seconds. */
	if (waiting_at(listener) >= listener->backlog)
		return;
	id = new_id(listener->base.channel, listener->base.context, listener->base.ps);
	id->state = CM_REQ_RECEIVED;
	id->passive = true;
	id->connection = from->connection;
	id->listener = listener;
	id->base.route.addr.src_storage = from->base.route.addr.dst_storage;
	id->base.route.addr.dst_storage = from->base.route.addr.src_storage;
	id->device = device_at(&id->base.route.addr.src_addr, &id->base.port_num);
	bind_to_device(id);
	id->base.route.addr.addr.ibaddr.dgid = from->base.route.addr.addr.ibaddr.sgid;
	event = raise_on(listener, id, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	event->base.listen_id = &listener->base;
	add_data(event, action, from->base.route.addr.src_addr.sa_family == AF_IB ? NATIVE_REQ_DATA : REQ_DATA);
	id->remote = event->base.param.conn;
}

static void reply_arrives(struct action *action)
{
	struct cm_id *id = end_of(action);
	struct cm_event *event;

	if (!id || id->state != CM_REQ_SENT)
		return;
	id->state = CM_REP_RECEIVED;
	event = cm_raise(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	add_data(event, action, REP_DATA);
	id->remote = event->base.param.conn;
	if (id->device->fabric != PROVIDER_IWARP)
		return;
	/* There the kernel moves the queue pair, without a third message. */
	event->base.event = RDMA_CM_EVENT_ESTABLISHED;
	id->state = CM_ESTABLISHED;
	if (qp_of(id))
		move_to_work(id, qp_of(id));
	send_on(id, rtu_arrives, NULL, 0);
}

static void timewait_ends(struct action *action)
{
	struct cm_id *id = cm_find(action->id);

	if (id)
		cm_raise(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
}

static void close_id(struct cm_id *id)
{
	id->state = CM_CLOSED;
	if (id->device->fabric == PROVIDER_IWARP && qp_of(id))
		move(id, qp_of(id), IBV_QPS_ERR);
	provider_action(timewait_ends, id->number)->id = id->number;
}

void cm_lost(const struct queue_pair *qp)
{
	for (struct cm_id *id = provider.ids; id; id = id->next)
		if (id->state >= CM_REP_SENT && id->state != CM_CLOSED && qp_of(id) == qp) {
			close_id(id);
			cm_raise(id, RDMA_CM_EVENT_DISCONNECTED, 0);
		}
}

static void drep_arrives(struct action *action)
{
	struct cm_id *id = end_of(action);

	if (!id || id->state != CM_DREQ_SENT)
		return;
	close_id(id);
	cm_raise(id, RDMA_CM_EVENT_DISCONNECTED, 0);
}

static void dreq_arrives(struct action *action)
{
	struct cm_id *id = end_of(action);

	if (!id || id->state < CM_REP_SENT || id->state == CM_CLOSED || id->state == CM_DREQ_RECEIVED)
		return;
	if (id->state == CM_DREQ_SENT || id->device->fabric == PROVIDER_IWARP) {
		send_on(id, drep_arrives, NULL, 0);
		close_id(id);
	} else {
		id->state = CM_DREQ_RECEIVED;
	}
	cm_raise(id, RDMA_CM_EVENT_DISCONNECTED, 0);
}

/* ---- librdmacm ---- */

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space space)
{
	if (provider_fails(__func__))
		return -1;
	if (channel)
		provider_trace("create_id space %#06x\n", (unsigned)space);
	*id = &new_id(channel ? channel : new_channel(), context, space)->base;
	cm(*id)->synchronous = !channel;
	return 0;
}

static void drop_events(struct cm_channel *channel, const struct cm_id *id)
{
	for (struct cm_event *event = channel->waiting, *next; event; event = next) {
		next = event->next;
		if (event->counted != id)
			continue;
		LIST_REMOVE(channel->waiting, event);
		if (event->base.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			rdma_destroy_id(event->base.id);
			next = channel->waiting;
		}
		free(event);
	}
}

static void must_be_acknowledged(const struct cm_id *id, const char *call)
{
	if (id->taken != id->acknowledged)
		provider_die("%s: %u events taken, %u acknowledged: would wait forever", call, id->taken,
			     id->acknowledged);
}

static void say_goodbye(struct cm_id *id)
{
	switch (id->state) {
	case CM_REQ_SENT:
		send_on(id, reject_arrives, NULL, REJECTED_TIMEOUT);
		break;
	case CM_REQ_RECEIVED:
	case CM_REP_SENT:
	case CM_REP_RECEIVED:
		send_on(id, reject_arrives, NULL,
			id->device->fabric == PROVIDER_IWARP ? -ECONNRESET : REJECTED_BY_CONSUMER);
		break;
	case CM_ESTABLISHED:
		send_on(id, dreq_arrives, NULL, 0);
		break;
	case CM_DREQ_RECEIVED:
		send_on(id, drep_arrives, NULL, 0);
		break;
	default:
		break;
	}
}

int rdma_destroy_id(struct rdma_cm_id *base)
{
	struct cm_id *id = cm(base);

	must_be_acknowledged(id, __func__);
	if (base->qp)
		provider_die("%s: its queue pair is still there", __func__);
	say_goodbye(id);
	group_leave_all(id);
	drop_events((struct cm_channel *)base->channel, id);
	/* A request not yet taken is destroyed with its listener; a taken one is independent. */
	for (struct cm_id *other = provider.ids; other; other = other->next)
		if (other->listener == id)
			other->listener = NULL;
	LIST_REMOVE(provider.ids, id);
	if (id->synchronous)
		rdma_destroy_event_channel(base->channel);
	if (base->verbs)
		device_put(id->device);
	free(id);
	return 0;
}

int rdma_migrate_id(struct rdma_cm_id *base, struct rdma_event_channel *channel)
{
	struct cm_channel *old = (struct cm_channel *)base->channel, *new = (struct cm_channel *)channel;
	struct cm_id *id = cm(base);

	if (provider_fails(__func__))
		return -1;
	must_be_acknowledged(id, __func__);
	for (struct cm_event *event = old->waiting, *next; event; event = next) {
		next = event->next;
		if (event->counted != id)
			continue;
		LIST_REMOVE(old->waiting, event);
		LIST_APPEND(new->waiting, event);
		if (event->base.event == RDMA_CM_EVENT_CONNECT_REQUEST)
			event->base.id->channel = channel;
	}
	base->channel = channel;
	doorbell_set(&new->bell, true);
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *base, struct sockaddr *address)
{
	if (!cm(base)->synchronous)
		provider_trace("bind %s\n", cm_text(address));
	if (provider_fails(__func__))
		return -1;
	if (port_of(address) && listener_at(address, base->ps))
		return fails_with(EADDRINUSE);
	if (provider.binds_no_holder && cm(base)->synchronous)
		return fails_with(EINVAL);
	if (set_source(cm(base), address))
		return -1;
	if (cm(base)->device && !device_is_known(cm(base)->device))
		return fails_with(ENODEV);
	if (cm(base)->device)
		bind_to_device(cm(base));
	cm(base)->state = CM_ADDRESS;
	return 0;
}

int rdma_listen(struct rdma_cm_id *base, int backlog)
{
	if (provider_fails(__func__))
		return -1;
	cm(base)->state = CM_LISTENING;
	cm(base)->backlog = backlog;
	if (provider.listening)
		provider.listening(cm(base));
	return 0;
}

static void address_resolved(struct action *action)
{
	struct cm_id *id = cm_find(action->id);

	if (!id)
		return;
	id->state = CM_ADDRESS;
	if (action->status && !id->base.verbs)
		no_source(id);
	cm_raise(id, action->status ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, action->status);
}

static void route_resolved(struct action *action)
{
	struct cm_id *id = cm_find(action->id);

	if (!id)
		return;
	if (!action->status)
		id->state = CM_ROUTE;
	cm_raise(id, action->status ? RDMA_CM_EVENT_ROUTE_ERROR : RDMA_CM_EVENT_ROUTE_RESOLVED, action->status);
}

/* Ends a resolution attempt, perhaps only at its limit, milliseconds. */
static struct action *try_resolve(action_run *resolved, struct cm_id *id, int limit)
{
	struct action *action = provider_action(resolved, id->number);

	action->id = id->number;
	if (provider.tries_unanswered) {
		provider.tries_unanswered--;
		action->status = -ETIMEDOUT;
	}
	if (provider.route_held && resolved == route_resolved)
		action->until = INT64_MAX;
	else if (action->status || (provider.answer_missed && resolved != route_resolved))
		action->until = clock_now() + limit * CLOCK_NS_PER_MS;
	return action;
}

int rdma_resolve_addr(struct rdma_cm_id *base, struct sockaddr *source, struct sockaddr *destination, int timeout)
{
	struct sockaddr_storage storage = { .ss_family = AF_INET };
	struct sockaddr *any = (struct sockaddr *)&storage;
	struct cm_id *id = cm(base);
	struct action *action;
	uint8_t port;

	provider_trace("resolve %s from %s in %d ms\n", cm_text(destination), cm_text(source), timeout);
	if (provider_fails(__func__))
		return -1;
	if (!source && is_multicast(destination)) {
		memcpy(any, &provider.devices[0]->ports[0].address, sizeof(struct sockaddr_in));
		source = any;
	} else if (!source) {
		memcpy(any, destination, size_of(destination));
		set_port(any, 0);
		source = any;
	}
	if (set_source(id, source))
		return -1;
	memcpy(&base->route.addr.dst_storage, destination, size_of(destination));
	action = try_resolve(address_resolved, id, timeout);
	if (action->status)
		return 0;
	if (provider.address_status)
		action->status = provider.address_status;
	else if (!is_multicast(destination) && !device_at(destination, &port))
		action->status = -EHOSTUNREACH;
	else if (!id->device)
		action->status = -ENODEV;
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *base, int timeout)
{
	provider_trace("resolve the route in %d ms\n", timeout);
	if (provider_fails(__func__))
		return -1;
	if (cm(base)->state != CM_ADDRESS)
		return fails_with(EINVAL);
	try_resolve(route_resolved, cm(base), timeout);
	return 0;
}

int rdma_set_option(struct rdma_cm_id *base, int level, int name, void *value, size_t length)
{
	uint8_t number = *(uint8_t *)value;

	if (provider_fails(__func__))
		return -1;
	if (level != RDMA_OPTION_ID || length != 1)
		return fails_with(EINVAL);
	if (name == RDMA_OPTION_ID_TOS) {
		provider_trace("option tos %u\n", number);
		cm(base)->type_of_service = number;
	} else if (name == RDMA_OPTION_ID_ACK_TIMEOUT && cm(base)->device->fabric != PROVIDER_IWARP) {
		provider_trace("option ack %u\n", number);
		cm(base)->ack_timeout = number;
	} else {
		return fails_with(EOPNOTSUPP);
	}
	return 0;
}

static int parameters_fit(const struct cm_id *id, const struct rdma_conn_param *parameters, size_t max)
{
	const struct ibv_device_attr *limits = &id->device->limits;

	if (parameters->responder_resources > limits->max_qp_rd_atom ||
	    parameters->initiator_depth > limits->max_qp_init_rd_atom)
		return fails_with(EINVAL);
	if (id->device->fabric != PROVIDER_IWARP && parameters->private_data_len > max)
		return fails_with(EINVAL);
	if (!id->base.qp && !parameters->qp_num)
		return fails_with(EINVAL);
	return 0;
}

int rdma_connect(struct rdma_cm_id *base, struct rdma_conn_param *parameters)
{
	struct cm_id *id = cm(base);

	provider_trace("connect reads %u/%u retry %u rnr %u data %u\n", parameters->initiator_depth,
		       parameters->responder_resources, parameters->retry_count, parameters->rnr_retry_count,
		       parameters->private_data_len);
	if (provider_fails(__func__))
		return -1;
	if (id->state != CM_ROUTE)
		return fails_with(EINVAL);
	if (parameters_fit(id, parameters, base->route.addr.src_addr.sa_family == AF_IB ? NATIVE_REQ_DATA : REQ_DATA))
		return -1;
	id->state = CM_REQ_SENT;
	id->connection = id->number;
	id->local = *parameters;
	if (base->qp)
		id->local.qp_num = base->qp->qp_num;
	send_on(id, request_arrives, &id->local, 0);
	return 0;
}

int rdma_accept(struct rdma_cm_id *base, struct rdma_conn_param *parameters)
{
	struct cm_id *id = cm(base);
	struct queue_pair *qp;

	if (provider_fails(__func__))
		return -1;
	if (id->state != CM_REQ_RECEIVED)
		return fails_with(EINVAL);
	if (parameters_fit(id, parameters, REP_DATA))
		return -1;
	if (parameters->srq && !base->qp)
		provider_die("%s: no queue pair has shared receives", __func__);
	id->local = *parameters;
	/* The REQ sets these two. */
	id->local.retry_count = id->remote.retry_count;
	if (base->qp)
		id->local.qp_num = base->qp->qp_num;
	qp = qp_of(id);
	if ((base->qp || id->device->fabric == PROVIDER_IWARP) && qp && move_to_work(id, qp))
		return -1;
	id->state = CM_REP_SENT;
	send_on(id, reply_arrives, &id->local, 0);
	return 0;
}

int rdma_establish(struct rdma_cm_id *base)
{
	struct cm_id *id = cm(base);

	if (provider_fails(__func__))
		return -1;
	if (id->state != CM_REP_RECEIVED || base->qp)
		return fails_with(EINVAL);
	id->state = CM_ESTABLISHED;
	send_on(id, rtu_arrives, NULL, 0);
	return 0;
}

int rdma_reject(struct rdma_cm_id *base, const void *data, uint8_t length)
{
	struct rdma_conn_param parameters = { .private_data = data, .private_data_len = length };
	struct cm_id *id = cm(base);

	provider_trace("reject\n");
	if (provider_fails(__func__))
		return -1;
	if (id->state != CM_REQ_RECEIVED)
		return fails_with(EINVAL);
	if (length > REJ_DATA)
		return fails_with(EINVAL);
	send_on(id, reject_arrives, &parameters,
		id->device->fabric == PROVIDER_IWARP ? -ECONNRESET : REJECTED_BY_CONSUMER);
	id->state = CM_CLOSED;
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *base)
{
	struct cm_id *id = cm(base);

	if (provider_fails(__func__))
		return -1;
	if (id->state < CM_REP_SENT || id->device->removed)
		return fails_with(EINVAL);
	if (base->qp)
		move(id, (struct queue_pair *)base->qp, IBV_QPS_ERR);
	if (id->state == CM_DREQ_RECEIVED) {
		send_on(id, drep_arrives, NULL, 0);
		close_id(id);
	} else if (id->state == CM_ESTABLISHED) {
		send_on(id, dreq_arrives, NULL, 0);
		id->state = CM_DREQ_SENT;
	}
	return 0;
}

/* ---- its queue pair ---- */

int rdma_create_qp_ex(struct rdma_cm_id *base, struct ibv_qp_init_attr_ex *attributes)
{
	bool datagrams = attributes->qp_type == IBV_QPT_UD;
	struct cm_id *id = cm(base);

	provider_trace("create_qp %s by the manager%s\n", datagrams ? "UD" : "RC",
		       (attributes->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) &&
				       attributes->create_flags == IBV_QP_CREATE_BLOCK_SELF_MCAST_LB
			       ? ", no loopback"
			       : "");
	if (provider_fails(__func__))
		return -1;
	if (!base->verbs || base->qp || id->state == CM_CLOSED)
		return fails_with(EINVAL);
	base->qp = qp_create_extended(base->verbs, attributes);
	if (!base->qp)
		return -1;
	id->local.qp_num = base->qp->qp_num;
	if (move(id, (struct queue_pair *)base->qp, IBV_QPS_INIT))
		return -1;
	if (datagrams) {
		qp_modify((struct queue_pair *)base->qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR },
			  IBV_QP_STATE);
		qp_modify((struct queue_pair *)base->qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS },
			  IBV_QP_STATE | IBV_QP_SQ_PSN);
	}
	return 0;
}

/* The connection manager's attributes for a state. */
int rdma_init_qp_attr(struct rdma_cm_id *base, struct ibv_qp_attr *attributes, int *mask)
{
	struct cm_id *id = cm(base);
	uint8_t index = 0;

	*mask = IBV_QP_STATE;
	if (provider_fails(__func__))
		return -1;
	if (!id->device || id->state == CM_CLOSED)
		return fails_with(EINVAL);
	if (id->device->fabric == PROVIDER_IWARP) {
		attributes->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
		*mask |= IBV_QP_ACCESS_FLAGS;
		return 0;
	}
	if (attributes->qp_state == IBV_QPS_INIT) {
		attributes->port_num = base->port_num;
		attributes->pkey_index = 0;
		*mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT;
		if (base->ps == RDMA_PS_UDP || base->ps == RDMA_PS_IPOIB) {
			attributes->qkey = UDP_QKEY;
			*mask |= IBV_QP_QKEY;
		} else {
			attributes->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
			*mask |= IBV_QP_ACCESS_FLAGS;
		}
		return 0;
	}
	if (id->state < CM_REQ_RECEIVED)
		return fails_with(EINVAL);
	if (attributes->qp_state == IBV_QPS_RTR) {
		attributes->path_mtu = id->device->ports[base->port_num - 1].mtu;
		attributes->dest_qp_num = id->remote.qp_num;
		attributes->max_dest_rd_atomic =
			id->passive ? id->remote.responder_resources : id->local.responder_resources;
		attributes->min_rnr_timer = 0;
		attributes->ah_attr = (struct ibv_ah_attr){ .is_global = 1, .port_num = base->port_num };
		device_gid(id->device, base->port_num, &base->route.addr.src_addr, &index);
		attributes->ah_attr.grh.sgid_index = index;
		attributes->ah_attr.grh.dgid = base->route.addr.addr.ibaddr.dgid;
		*mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			 IBV_QP_MIN_RNR_TIMER;
	} else {
		attributes->timeout = (uint8_t)(id->ack_timeout < 0 ? 18 : id->ack_timeout);
		attributes->retry_cnt = id->passive ? id->remote.retry_count : id->local.retry_count;
		attributes->rnr_retry = id->remote.rnr_retry_count;
		attributes->max_rd_atomic = id->passive ? id->remote.initiator_depth : id->local.initiator_depth;
		*mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
	}
	return 0;
}

/* ---- a client for the tests ---- */

static void take(struct cm_id *id, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	while (rdma_get_cm_event(id->base.channel, &event))
		;
	if (event->event != type)
		provider_die("cm_ask: event %d, not %d", (int)event->event, (int)type);
	rdma_ack_cm_event(event);
}

struct cm_id *cm_ask(const struct sockaddr *source, const struct sockaddr *destination,
		     const struct rdma_conn_param *parameters)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param copied = *parameters;
	size_t traced = strlen(provider.trace);
	struct rdma_cm_id *id;

	fcntl(channel->fd, F_SETFL, O_NONBLOCK);
	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, (struct sockaddr *)(uintptr_t)source, (struct sockaddr *)(uintptr_t)destination,
			      1000))
		provider_die("cm_ask: %s", strerror(errno));
	take(cm(id), RDMA_CM_EVENT_ADDR_RESOLVED);
	rdma_resolve_route(id, 1000);
	take(cm(id), RDMA_CM_EVENT_ROUTE_RESOLVED);
	if (rdma_connect(id, &copied))
		provider_die("cm_ask: %s", strerror(errno));
	provider.trace[traced] = '\0';
	return cm(id);
}

void cm_ask_end(struct cm_id *id)
{
	struct rdma_event_channel *channel = id->base.channel;

	rdma_destroy_id(&id->base);
	rdma_destroy_event_channel(channel);
}
