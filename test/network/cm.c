/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/network/cm.h"

#include "transport/soft/net/packet_io.h"

struct world world;

static struct host *host_of(const struct soft_transport *transport)
{
	for (unsigned i = 0; i < HOSTS; i++)
		if (world.hosts[i].transport == transport)
			return &world.hosts[i];
	fail();
	return NULL;
}

struct host *host_at(const struct address *address)
{
	for (unsigned i = 0; i < HOSTS; i++)
		if (address_same_host(&world.hosts[i].address, address))
			return &world.hosts[i];
	return NULL;
}

bool world_chance(unsigned per_cent)
{
	return network_roll(100) < per_cent;
}

int64_t world_time(int64_t most)
{
	return most ? (int64_t)(network_random() % (uint64_t)most) : 0;
}

/* ---- what is to be done later ---- */

struct call {
	struct loop_timer timer;
	struct party *party;
	void (*act)(struct party *party);
	struct call *next, **link_to_this;
};

static void call_free(struct call *call)
{
	*call->link_to_this = call->next;
	if (call->next)
		call->next->link_to_this = call->link_to_this;
	loop_timer_stop(&call->timer);
	free(call);
}

static void call_due(void *owner)
{
	struct call *call = owner;
	struct party *party = call->party;
	void (*act)(struct party *) = call->act;

	call_free(call);
	act(party);
}

void world_call(struct party *party, int64_t delay, void (*act)(struct party *party))
{
	struct call *call = calloc(1, sizeof(*call));

	assert_non_null(call);
	call->party = party;
	call->act = act;
	call->next = world.calls;
	call->link_to_this = &world.calls;
	if (call->next)
		call->next->link_to_this = &call->next;
	world.calls = call;
	loop_timer_start(NULL, &call->timer, delay, call_due, call);
}

/* ---- messages ---- */

static const struct packet mad_packet = {
	.opcode = OPCODE_DATAGRAM,
	.pkey = PACKET_PKEY,
	.destination = MAD_QPN,
	.datagram = { .key = MAD_QKEY, .source = MAD_QPN },
	.length = MAD_SIZE,
};

void world_arrive(const struct flight *flight)
{
	struct frame frame = { .from = flight->from, .to = flight->to };
	size_t header = packet_write(&mad_packet, frame.bytes);

	assert_non_null(host_at(&flight->to));
	frame.length = header + MAD_SIZE;
	memcpy(frame.bytes + header, flight->bytes, MAD_SIZE);
	network_seal(&frame, &world.hosts[0].transport->icrc);
	network_deliver(&frame);
	network_read();
}

/* Every message that leaves a host. What leaves must be as the format of the connection manager has it. */
static bool departs(void *owner, const struct frame *frame)
{
	struct flight *flight = &world.seen[world.seen_count++ % LENGTH(world.seen)];
	const struct host *to = host_at(&frame->to);
	struct packet packet;

	(void)owner;
	assert_true(packet_parse(frame->bytes, frame->length, &packet));
	assert_int_equal(packet.opcode, mad_packet.opcode);
	assert_int_equal(packet.pkey, mad_packet.pkey);
	assert_int_equal(packet.destination, mad_packet.destination);
	assert_int_equal(packet.datagram.key, mad_packet.datagram.key);
	assert_int_equal(packet.datagram.source, mad_packet.datagram.source);
	assert_int_equal(packet.length, MAD_SIZE);
	*flight = (struct flight){ frame->from, frame->to, { 0 } };
	memcpy(flight->bytes, packet.payload, MAD_SIZE);
	return !(to && to->transport->cm) || (world.allowed && !world.allowed(flight));
}

void world_flush(void)
{
	for (unsigned i = 0; i < HOSTS; i++)
		soft_flush(world.hosts[i].transport);
}

/* ---- the neighbours of the manager ---- */

void __real_soft_enter(struct soft_transport *transport);
void __real_soft_leave(struct soft_transport *transport);
struct soft_endpoint *__wrap_soft_listener_find(struct soft_transport *transport, enum port_space port_space,
						uint16_t port, const struct address *local);
struct soft_endpoint *__wrap_soft_requested_create(struct soft_endpoint *listener, const struct soft_path *path,
						   const struct address *peer);
void __wrap_soft_enter(struct soft_transport *transport);
void __wrap_soft_leave(struct soft_transport *transport);
void __wrap_soft_event_queue(struct soft_endpoint *endpoint, enum soft_event_kind kind, const void *data,
			     size_t length);
void __wrap_soft_event_failed(struct soft_endpoint *endpoint, const char *cause, const char *code_name, int code);
void __wrap_soft_event_rejected(struct soft_endpoint *endpoint, const char *cause, int reason, const void *data,
				size_t length);
uint32_t __wrap_soft_qp_qpn(const struct soft_qp *qp);
void __wrap_soft_qp_connect(struct soft_qp *qp, const struct soft_agreement *agreement);
void __wrap_soft_qp_start(struct soft_qp *qp);
void __wrap_soft_qp_stop(struct soft_qp *qp);
bool __wrap_soft_qp_has_unacked_work(const struct soft_qp *qp);
void __wrap_soft_qp_probe(struct soft_qp *qp);
void __wrap_soft_qp_suspect(struct soft_qp *qp);

struct soft_endpoint *__wrap_soft_listener_find(struct soft_transport *transport, enum port_space port_space,
						uint16_t port, const struct address *local)
{
	struct host *host = host_of(transport);

	assert_true(address_same_host(local, &host->address));
	if (!host->listens || port_space != PORT_SPACE_TCP)
		return NULL;
	return port == PORT ? &host->listener : port == PORT + 1 ? &host->second : NULL;
}

static struct party *party_of(struct soft_endpoint *endpoint)
{
	return (struct party *)endpoint;
}

struct party *party_create(struct host *host)
{
	struct party *party = calloc(1, sizeof(*party));

	assert_non_null(party);
	party->host = host;
	party->next = world.parties;
	world.parties = party;
	party->endpoint.base.transport = &host->transport->base;
	party->endpoint.base.log = host->transport->base.log;
	party->endpoint.base.options = (struct endpoint_options){
		.port_space = PORT_SPACE_TCP,
	};
	party->qp.number = world.next_queue++;
	party->endpoint.qp = &party->qp;
	return party;
}

struct soft_endpoint *__wrap_soft_requested_create(struct soft_endpoint *listener, const struct soft_path *path,
						   const struct address *peer)
{
	struct party *party = party_create(host_of(path->socket->transport));

	assert_true(listener == &party->host->listener || listener == &party->host->second);
	party->endpoint.listener = listener;
	party->endpoint.path = *path;
	party->endpoint.base.local = path->local;
	party->endpoint.base.peer = *peer;
	return &party->endpoint;
}

void __wrap_soft_enter(struct soft_transport *transport)
{
	assert_int_equal(host_of(transport)->entered++, 0);
	__real_soft_enter(transport);
}

void __wrap_soft_leave(struct soft_transport *transport)
{
	host_of(transport)->entered--;
	__real_soft_leave(transport);
}

/* The order of news that any endpoint may see. */
static void check_order(const struct party *party, enum soft_event_kind kind)
{
	assert_false(party->gone);
	assert_true(party->told[kind] == 0);
	assert_int_equal(party->told[SOFT_EVENT_DISCONNECTED] + party->told[SOFT_EVENT_FAILED], 0);
	if (kind == SOFT_EVENT_DISCONNECTED)
		assert_int_equal(party->told[SOFT_EVENT_ESTABLISHED], 1);
	if (kind == SOFT_EVENT_ESTABLISHED)
		assert_int_equal(party->qp.state, QP_RTS);
	else if (kind != SOFT_EVENT_REQUESTED && party->qp.state != QP_RESET)
		assert_int_equal(party->qp.state, QP_ERROR);
}

static void told(struct party *party, enum soft_event_kind kind, const void *data, size_t length)
{
	check_order(party, kind);
	party->told[kind]++;
	party->last = kind;
	assert_true(length <= sizeof(party->data));
	party->data_length = length;
	if (length)
		memcpy(party->data, data, length);
	/* As the delivery does it: not before the manager has returned. */
	if (kind == SOFT_EVENT_REQUESTED && world.requested)
		world_call(party, 0, world.requested);
	if (kind == SOFT_EVENT_ESTABLISHED && world.established)
		world_call(party, 0, world.established);
}

void __wrap_soft_event_queue(struct soft_endpoint *endpoint, enum soft_event_kind kind, const void *data, size_t length)
{
	told(party_of(endpoint), kind, data, length);
}

void __wrap_soft_event_failed(struct soft_endpoint *endpoint, const char *cause, const char *code_name, int code)
{
	struct party *party = party_of(endpoint);

	told(party, SOFT_EVENT_FAILED, NULL, 0);
	snprintf(party->cause, sizeof(party->cause), "%s", cause);
	party->code_name = code_name;
	party->code = code;
}

void __wrap_soft_event_rejected(struct soft_endpoint *endpoint, const char *cause, int reason, const void *data,
				size_t length)
{
	__wrap_soft_event_failed(endpoint, cause, "reject reason", reason);
	party_of(endpoint)->data_length = length;
	memcpy(party_of(endpoint)->data, data, length);
}

uint32_t __wrap_soft_qp_qpn(const struct soft_qp *qp)
{
	return qp->number;
}

void __wrap_soft_qp_connect(struct soft_qp *qp, const struct soft_agreement *agreement)
{
	assert_int_equal(qp->state, QP_RESET);
	qp->state = QP_CONNECTED;
	qp->agreement = *agreement;
}

void __wrap_soft_qp_start(struct soft_qp *qp)
{
	assert_int_equal(qp->state, QP_CONNECTED);
	qp->state = QP_RTS;
}

void __wrap_soft_qp_stop(struct soft_qp *qp)
{
	qp->state = QP_ERROR;
}

bool __wrap_soft_qp_has_unacked_work(const struct soft_qp *qp)
{
	return qp->state == QP_RTS && qp->waiting;
}

void __wrap_soft_qp_probe(struct soft_qp *qp)
{
	assert_int_equal(qp->state, QP_RTS);
	qp->probes++;
}

void __wrap_soft_qp_suspect(struct soft_qp *qp)
{
	assert_int_equal(qp->state, QP_RTS);
	qp->doubts++;
}

/* ---- beginning and ending of every test ---- */

void host_move(struct host *host, const struct address *address)
{
	host->address = *address;
	host->socket = stack_socket(host->transport, address);
}

void host_stop(struct host *host)
{
	soft_cm_close(host->transport->cm);
	host->transport->cm = NULL;
}

int world_open(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	network_open(0, MTU + PACKET_OVERHEAD_MOST, 212992);
	network->hold = departs;
	world.next_queue = 0x1234;
	for (unsigned i = 0; i < HOSTS; i++) {
		struct address address = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, (uint8_t)(i + 1) } };
		struct host *host = &world.hosts[i];

		host->transport = stack_open();
		host_move(host, &address);
		address.bytes[2] = 1;
		host->other = stack_socket(host->transport, &address);
		host->mtu = MTU;
		host->listener.base.transport = &host->transport->base;
		host->listener.base.log = host->transport->base.log;
		host->listener.base.state = ENDPOINT_LISTENING;
	}
	world.hosts[1].listens = true;
	return 0;
}

void forget_parties(void)
{
	while (world.parties) {
		struct party *party = world.parties;

		world.parties = party->next;
		free(party);
	}
}

int world_close(void **state)
{
	(void)state;
	while (world.calls)
		call_free(world.calls);
	for (unsigned i = 0; i < HOSTS; i++)
		host_stop(&world.hosts[i]);
	for (unsigned i = 0; i < HOSTS; i++)
		stack_close(world.hosts[i].transport);
	network_close();
	forget_parties();
	return 0;
}
