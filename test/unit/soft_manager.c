/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/unit/soft_manager.wrap */
/*
 * The connection manager of the user-space backend: the real one, both ends in this process, with a network and a clock
 * that are played here. The network drops, doubles and reorders by a seeded die; time is what the next thing in the
 * agenda says.
 */
#include "test/unit/unit.h"

#include <errno.h>

#include "core/clock.h"
#include "test/unit/soft_vectors.h"
#include "transport/soft/delivery.h"
#include "transport/soft/manager.h"

/* ---- the world: an agenda of timers, packets and intentions ---- */

enum {
	HOSTS = 3, /* two that talk, one that is hostile */
	OUTGOING_MOST = 4096,
	PORT = 7174,
	DATA_SIZE = 8,
};

struct host;
struct party;

struct thing {
	int64_t due;
	uint64_t order;
	struct loop_timer *timer; /* one of these three */
	struct flight *flight;
	struct intention *intention;
};

struct flight {
	struct address from, to;
	uint8_t bytes[MAD_SIZE];
};

struct intention {
	struct party *party;
	void (*act)(struct party *party);
};

struct soft_socket {
	struct host *host;
};

struct soft_queue {
	uint32_t number;
	enum {
		QUEUE_RESET,
		QUEUE_CONNECTED,
		QUEUE_STARTED,
		QUEUE_STOPPED
	} state;
	unsigned probes, doubts;
	bool waiting; /* for an acknowledgement */
	struct soft_agreement agreement;
};

struct host {
	struct soft_transport transport;
	struct soft_socket socket, other; /* other: of another address of this host's */
	struct address address;
	uint32_t mtu;
	struct soft_endpoint listener, second; /* on PORT and PORT + 1 */
	bool listens;
	struct {
		struct soft_path path;
		const uint8_t *payload;
	} outgoing[OUTGOING_MOST];
	size_t outgoing_count;
	unsigned entered;
};

/* One end of a connection, as a command would hold it. */
struct party {
	struct soft_endpoint endpoint;
	struct soft_queue queue;
	struct host *host;
	struct party *next;
	unsigned told[SOFT_EVENT_FAILED + 1];
	enum soft_event_kind last;
	int code;
	const char *code_name;
	char cause[120];
	uint8_t data[256];
	size_t data_length;
	bool gone;
	unsigned number; /* the connection's in a storm */
};

static struct {
	struct thing *agenda; /* a heap by time */
	size_t count, room;
	uint64_t order;
	int64_t now;
	uint64_t die;
	unsigned drop, twice; /* per cent */
	int64_t slowest;      /* of a flight; the fastest takes none */
	bool (*allowed)(const struct flight *flight);
	struct flight seen[64]; /* the last ones that left */
	size_t seen_count;
	unsigned flown;
	struct host hosts[HOSTS];
	struct party *parties;
	void (*requested)(struct party *party); /* the command's answer to a request */
	void (*established)(struct party *party);
	uint32_t next_queue;
} world;

static struct log quiet = { .name = "test" };

static uint64_t roll(void)
{
	world.die ^= world.die << 13;
	world.die ^= world.die >> 7;
	world.die ^= world.die << 17;
	return world.die;
}

static bool chance(unsigned per_cent)
{
	return roll() % 100 < per_cent;
}

static int64_t some_time(int64_t most)
{
	return most ? (int64_t)(roll() % (uint64_t)most) : 0;
}

static size_t *place_of(struct thing *thing)
{
	return thing->timer ? (size_t *)(void *)thing->timer->storage : NULL;
}

static bool is_before(const struct thing *one, const struct thing *other)
{
	return one->due < other->due || (one->due == other->due && one->order < other->order);
}

/* A timer's storage holds its place in the agenda, counted from 1. */
static void place(size_t index, struct thing thing)
{
	world.agenda[index] = thing;
	if (place_of(&thing))
		*place_of(&thing) = index + 1;
}

static void settle(size_t index)
{
	struct thing thing = world.agenda[index];

	while (index && is_before(&thing, &world.agenda[(index - 1) / 2])) {
		place(index, world.agenda[(index - 1) / 2]);
		index = (index - 1) / 2;
	}
	for (;;) {
		size_t child = 2 * index + 1;

		if (child + 1 < world.count && is_before(&world.agenda[child + 1], &world.agenda[child]))
			child++;
		if (child >= world.count || !is_before(&world.agenda[child], &thing))
			break;
		place(index, world.agenda[child]);
		index = child;
	}
	place(index, thing);
}

static void note(struct thing thing, int64_t delay)
{
	if (world.count == world.room) {
		world.room = world.room ? 2 * world.room : 1024;
		world.agenda = realloc(world.agenda, world.room * sizeof(*world.agenda));
		assert_non_null(world.agenda);
	}
	thing.due = world.now + delay;
	thing.order = world.order++;
	world.agenda[world.count++] = thing;
	settle(world.count - 1);
}

static struct thing strike(size_t index)
{
	struct thing thing = world.agenda[index];

	if (place_of(&thing))
		*place_of(&thing) = 0;
	world.count--;
	if (index < world.count) {
		world.agenda[index] = world.agenda[world.count];
		settle(index);
	}
	return thing;
}

static void intend(struct party *party, int64_t delay, void (*act)(struct party *party))
{
	struct intention *intention = malloc(sizeof(*intention));

	assert_non_null(intention);
	*intention = (struct intention){ party, act };
	note((struct thing){ .intention = intention }, delay);
}

static struct host *host_at(const struct address *address)
{
	for (unsigned i = 0; i < HOSTS; i++)
		if (address_same_host(&world.hosts[i].address, address))
			return &world.hosts[i];
	return NULL;
}

static const struct icrc_case sound = { .verdict = ICRC_GOOD };

static void arrive(const struct flight *flight)
{
	struct host *host = host_at(&flight->to);
	/* Of exactly that size, so that a look beyond it is noticed. */
	uint8_t *bytes = malloc(MAD_SIZE);

	assert_non_null(host);
	assert_non_null(bytes);
	memcpy(bytes, flight->bytes, MAD_SIZE);
	soft_enter(&host->transport);
	if (host->transport.manager)
		soft_manager_receive(&host->transport, &host->socket, &flight->from, bytes, MAD_SIZE, &sound);
	soft_leave(&host->transport);
	free(bytes);
}

static void flush_all(void)
{
	for (unsigned i = 0; i < HOSTS; i++)
		soft_flush(&world.hosts[i].transport);
}

/* Does what is next. Returns false if nothing is. */
static bool turn(void)
{
	struct thing thing;

	flush_all();
	if (!world.count)
		return false;
	thing = strike(0);
	world.now = thing.due;
	if (thing.timer) {
		thing.timer->callback(thing.timer->owner);
	} else if (thing.flight) {
		arrive(thing.flight);
		free(thing.flight);
	} else {
		thing.intention->act(thing.intention->party);
		free(thing.intention);
	}
	for (unsigned i = 0; i < HOSTS; i++)
		assert_int_equal(world.hosts[i].entered, 0);
	flush_all();
	return true;
}

static void run_for(int64_t time)
{
	int64_t end = world.now + time;

	flush_all();
	while (world.count && world.agenda[0].due <= end)
		turn();
	world.now = end;
}

static void run_until_quiet(void)
{
	while (turn())
		;
}

/* ---- the neighbours of the manager ---- */

void __wrap_loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t nanoseconds, loop_callback *callback,
			     void *owner);
void __wrap_loop_timer_stop(struct loop_timer *timer);
void __wrap_soft_transmit(struct soft_transport *transport, const struct soft_path *path, const struct packet *packet);
void __wrap_soft_flush(struct soft_transport *transport);
uint64_t __wrap_soft_random(void);
void __wrap_soft_path_back(struct soft_socket *socket, const struct address *from, struct soft_path *path);
struct soft_endpoint *__wrap_soft_listener_find(struct soft_transport *transport, enum port_space port_space,
						uint16_t port, const struct address *local);
struct soft_endpoint *__wrap_soft_requested_create(struct soft_endpoint *listener, const struct soft_path *path,
						   const struct address *peer);
void __wrap_soft_enter(struct soft_transport *transport);
void __wrap_soft_leave(struct soft_transport *transport);
void __wrap_soft_stir(struct soft_transport *transport);
void __wrap_soft_tell(struct soft_endpoint *endpoint, enum soft_event_kind kind, const void *data, size_t length);
void __wrap_soft_tell_failure(struct soft_endpoint *endpoint, const char *cause, const char *code_name, int code);
void __wrap_soft_tell_refusal(struct soft_endpoint *endpoint, const char *cause, int reason, const void *data,
			      size_t length);
uint32_t __wrap_soft_queue_number(const struct soft_queue *queue);
void __wrap_soft_queue_connect(struct soft_queue *queue, const struct soft_agreement *agreement);
void __wrap_soft_queue_start(struct soft_queue *queue);
void __wrap_soft_queue_stop(struct soft_queue *queue);
bool __wrap_soft_queue_is_waiting(const struct soft_queue *queue);
void __wrap_soft_queue_probe(struct soft_queue *queue);
void __wrap_soft_queue_doubt(struct soft_queue *queue);

void __wrap_loop_timer_stop(struct loop_timer *timer)
{
	size_t *index = (size_t *)(void *)timer->storage;

	if (*index)
		strike(*index - 1);
}

void __wrap_loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t nanoseconds, loop_callback *callback,
			     void *owner)
{
	(void)loop;
	assert_true(nanoseconds >= 0);
	__wrap_loop_timer_stop(timer);
	timer->callback = callback;
	timer->owner = owner;
	note((struct thing){ .timer = timer }, nanoseconds);
}

static struct host *host_of(struct soft_transport *transport)
{
	return (struct host *)transport;
}

void __wrap_soft_transmit(struct soft_transport *transport, const struct soft_path *path, const struct packet *packet)
{
	struct host *host = host_of(transport);

	assert_int_equal(packet->opcode, OPCODE_DATAGRAM);
	assert_int_equal(packet->pkey, PACKET_PKEY);
	assert_int_equal(packet->destination, 1);
	assert_int_equal(packet->datagram.key, 0x80010000u);
	assert_int_equal(packet->datagram.source, 1);
	assert_int_equal(packet->length, MAD_SIZE);
	assert_ptr_equal(path->socket->host, host);
	assert_true(host->outgoing_count < OUTGOING_MOST);
	host->outgoing[host->outgoing_count].path = *path;
	host->outgoing[host->outgoing_count++].payload = packet->payload;
}

static void fly(const struct flight *flight)
{
	unsigned copies = chance(world.drop) ? 0 : chance(world.twice) ? 2 : 1;

	world.flown++;
	world.seen[world.seen_count++ % LENGTH(world.seen)] = *flight;
	if (world.allowed && !world.allowed(flight))
		return;
	while (copies--) {
		struct flight *copy = malloc(sizeof(*copy));

		assert_non_null(copy);
		*copy = *flight;
		note((struct thing){ .flight = copy }, some_time(world.slowest));
	}
}

/* Payloads are read only here: they must have stayed. */
void __wrap_soft_flush(struct soft_transport *transport)
{
	struct host *host = host_of(transport);
	size_t count = host->outgoing_count;

	host->outgoing_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct flight flight = { host->outgoing[i].path.local, host->outgoing[i].path.peer, { 0 } };

		memcpy(flight.bytes, host->outgoing[i].payload, MAD_SIZE);
		fly(&flight);
	}
}

uint64_t __wrap_soft_random(void)
{
	return roll() ^ roll() << 32;
}

void __wrap_soft_path_back(struct soft_socket *socket, const struct address *from, struct soft_path *path)
{
	*path = (struct soft_path){
		.socket = socket,
		.local = socket->host->address,
		.peer = *from,
		.mtu = socket->host->mtu,
	};
}

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

static struct party *party_create(struct host *host)
{
	struct party *party = calloc(1, sizeof(*party));

	assert_non_null(party);
	party->host = host;
	party->next = world.parties;
	world.parties = party;
	party->endpoint.base.transport = &host->transport.base;
	party->endpoint.base.options = (struct endpoint_options){
		.port_space = PORT_SPACE_TCP,
	};
	party->queue.number = world.next_queue++;
	party->endpoint.queue = &party->queue;
	return party;
}

struct soft_endpoint *__wrap_soft_requested_create(struct soft_endpoint *listener, const struct soft_path *path,
						   const struct address *peer)
{
	struct party *party = party_create(path->socket->host);

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
}

void __wrap_soft_leave(struct soft_transport *transport)
{
	host_of(transport)->entered--;
	__wrap_soft_flush(transport);
}

void __wrap_soft_stir(struct soft_transport *transport)
{
	(void)transport; /* every turn ends with a flush here */
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
		assert_int_equal(party->queue.state, QUEUE_STARTED);
	else if (kind != SOFT_EVENT_REQUESTED && party->queue.state != QUEUE_RESET)
		assert_int_equal(party->queue.state, QUEUE_STOPPED);
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
		intend(party, 0, world.requested);
	if (kind == SOFT_EVENT_ESTABLISHED && world.established)
		intend(party, 0, world.established);
}

void __wrap_soft_tell(struct soft_endpoint *endpoint, enum soft_event_kind kind, const void *data, size_t length)
{
	told(party_of(endpoint), kind, data, length);
}

void __wrap_soft_tell_failure(struct soft_endpoint *endpoint, const char *cause, const char *code_name, int code)
{
	struct party *party = party_of(endpoint);

	told(party, SOFT_EVENT_FAILED, NULL, 0);
	snprintf(party->cause, sizeof(party->cause), "%s", cause);
	party->code_name = code_name;
	party->code = code;
}

void __wrap_soft_tell_refusal(struct soft_endpoint *endpoint, const char *cause, int reason, const void *data,
			      size_t length)
{
	__wrap_soft_tell_failure(endpoint, cause, "reject reason", reason);
	party_of(endpoint)->data_length = length;
	memcpy(party_of(endpoint)->data, data, length);
}

uint32_t __wrap_soft_queue_number(const struct soft_queue *queue)
{
	return queue->number;
}

void __wrap_soft_queue_connect(struct soft_queue *queue, const struct soft_agreement *agreement)
{
	assert_int_equal(queue->state, QUEUE_RESET);
	queue->state = QUEUE_CONNECTED;
	queue->agreement = *agreement;
}

void __wrap_soft_queue_start(struct soft_queue *queue)
{
	assert_int_equal(queue->state, QUEUE_CONNECTED);
	queue->state = QUEUE_STARTED;
}

void __wrap_soft_queue_stop(struct soft_queue *queue)
{
	queue->state = QUEUE_STOPPED;
}

bool __wrap_soft_queue_is_waiting(const struct soft_queue *queue)
{
	return queue->state == QUEUE_STARTED && queue->waiting;
}

void __wrap_soft_queue_probe(struct soft_queue *queue)
{
	assert_int_equal(queue->state, QUEUE_STARTED);
	queue->probes++;
}

void __wrap_soft_queue_doubt(struct soft_queue *queue)
{
	assert_int_equal(queue->state, QUEUE_STARTED);
	queue->doubts++;
}

/* ---- beginning and ending of every test ---- */

static int begin(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	world.die = 0x9e3779b97f4a7c15;
	world.next_queue = 0x1234;
	for (unsigned i = 0; i < HOSTS; i++) {
		struct host *host = &world.hosts[i];

		host->transport.base.log = &quiet;
		host->transport.guid = __wrap_soft_random();
		host->socket.host = host->other.host = host;
		host->address = (struct address){ .family = ADDRESS_IP4, .bytes = { 10, 0, 0, (uint8_t)(i + 1) } };
		host->mtu = 1024;
		host->listener.base.transport = &host->transport.base;
		host->listener.base.state = ENDPOINT_LISTENING;
		host->transport.manager = soft_manager_open(&host->transport);
		assert_non_null(host->transport.manager);
	}
	world.hosts[1].listens = true;
	return 0;
}

static void forget_parties(void)
{
	while (world.parties) {
		struct party *party = world.parties;

		world.parties = party->next;
		free(party);
	}
}

static int end(void **state)
{
	(void)state;
	for (unsigned i = 0; i < HOSTS; i++)
		soft_manager_close(world.hosts[i].transport.manager);
	for (size_t i = 0; i < world.count; i++) {
		assert_null(world.agenda[i].timer);
		free(world.agenda[i].flight);
		free(world.agenda[i].intention);
	}
	free(world.agenda);
	forget_parties();
	return 0;
}

/* ---- what commands do ---- */

static struct party *connect_from(struct host *host, const struct host *to, uint16_t port)
{
	struct party *party = party_create(host);

	party->endpoint.path = (struct soft_path){
		.socket = &host->socket,
		.local = host->address,
		.peer = to->address,
		.mtu = host->mtu,
	};
	party->endpoint.base.local = host->address;
	party->endpoint.base.local.port = 40000;
	party->endpoint.base.peer = to->address;
	party->endpoint.base.peer.port = port;
	assert_int_equal(soft_manager_connect(&party->endpoint, "connect", DATA_SIZE), OUTCOME_OK);
	return party;
}

static struct party *connect_one(void)
{
	return connect_from(&world.hosts[0], &world.hosts[1], PORT);
}

static void do_accept(struct party *party)
{
	if (!party->gone && !party->told[SOFT_EVENT_FAILED])
		assert_int_equal(soft_manager_accept(&party->endpoint, "accept!", DATA_SIZE), OUTCOME_OK);
}

static void do_forget(struct party *party)
{
	if (party->gone)
		return;
	soft_manager_forget(&party->endpoint);
	assert_null(party->endpoint.link);
	party->gone = true;
}

static void do_reject(struct party *party)
{
	if (party->gone)
		return;
	assert_int_equal(soft_manager_reject(&party->endpoint, "not you", DATA_SIZE), OUTCOME_OK);
	do_forget(party);
}

static bool is_up(const struct party *party)
{
	return !party->gone && party->last == SOFT_EVENT_ESTABLISHED;
}

static void do_disconnect(struct party *party)
{
	if (is_up(party))
		assert_int_equal(soft_manager_disconnect(&party->endpoint), OUTCOME_OK);
}

static void do_hear(struct party *party)
{
	if (!party->gone && party->queue.state >= QUEUE_CONNECTED && party->queue.state < QUEUE_STOPPED)
		soft_manager_heard(&party->endpoint);
}

/* The other end, if the request got there: the newest party of host B that was asked. */
static struct party *guest(void)
{
	for (struct party *party = world.parties; party; party = party->next)
		if (party->told[SOFT_EVENT_REQUESTED])
			return party;
	return NULL;
}

static enum link_state state_of(const struct party *party)
{
	return party->endpoint.link ? party->endpoint.link->state : LINK_NEW;
}

/* ---- MADs that fly ---- */

static bool parse(const struct flight *flight, struct mad *mad)
{
	return mad_parse(flight->bytes, MAD_SIZE, mad);
}

/* The last one of a kind that left a host. mad points into the world's memory. */
static const struct flight *last_of(enum mad_kind kind, const struct host *host, struct mad *mad)
{
	for (size_t i = 0; i < LENGTH(world.seen) && i < world.seen_count; i++) {
		const struct flight *flight = &world.seen[(world.seen_count - 1 - i) % LENGTH(world.seen)];

		if (parse(flight, mad) && mad->kind == kind && address_same_host(&flight->from, &host->address))
			return flight;
	}
	return NULL;
}

static unsigned count_of(enum mad_kind kind)
{
	unsigned count = 0;
	struct mad mad;

	assert_true(world.seen_count <= LENGTH(world.seen));
	for (size_t i = 0; i < world.seen_count; i++)
		count += parse(&world.seen[i], &mad) && mad.kind == kind;
	return count;
}

static void inject(const struct host *from, const struct host *to, const struct mad *mad)
{
	struct flight flight = { from->address, to->address, { 0 } };

	mad_write(mad, flight.bytes);
	arrive(&flight);
	flush_all();
}

static bool no_ready(const struct flight *flight)
{
	struct mad mad;

	return !parse(flight, &mad) || mad.kind != MAD_RTU;
}

static bool no_reply(const struct flight *flight)
{
	struct mad mad;

	return !parse(flight, &mad) || mad.kind != MAD_REP;
}

static bool no_goodbye(const struct flight *flight)
{
	struct mad mad;

	return !parse(flight, &mad) || (mad.kind != MAD_DREQ && mad.kind != MAD_DREP);
}

static bool no_refusal(const struct flight *flight)
{
	struct mad mad;

	return !parse(flight, &mad) || mad.kind != MAD_REJ;
}

static bool nothing_at_all(const struct flight *flight)
{
	(void)flight;
	return false;
}

static void check_nothing_left(void)
{
	for (unsigned i = 0; i < HOSTS; i++) {
		const struct soft_manager *manager = world.hosts[i].transport.manager;

		assert_int_equal(world.hosts[i].listener.asked, 0);
		assert_int_equal(world.hosts[i].second.asked, 0);
		assert_int_equal(manager->half_open, 0);
		assert_int_equal(manager->dying, 0);
		assert_int_equal(manager->ended.count, 0);
		assert_null(manager->ended.first);
		assert_null(manager->unconfirmed.first);
		for (unsigned index = 0; index < LINK_INDEXES; index++)
			assert_int_equal(manager->tables[index].count, 0);
	}
}

static void forget_all(void)
{
	for (struct party *party = world.parties; party; party = party->next)
		do_forget(party);
	run_until_quiet();
	check_nothing_left();
}

static unsigned count_up(void)
{
	unsigned count = 0;

	for (struct party *party = world.parties; party; party = party->next)
		count += is_up(party);
	return count;
}

/* A pair that is connected, over a perfect network. */
static struct party *connect_pair(struct party **other)
{
	struct party *active;

	world.requested = do_accept;
	active = connect_one();
	run_for(CLOCK_NS_PER_MS);
	*other = guest();
	assert_true(is_up(active) && is_up(*other));
	return active;
}

/* ---- single stories ---- */

static void test_request(void **state)
{
	struct party *active;
	struct mad mad;
	struct mad_address address;
	static const uint8_t gids[2][MAD_GID_SIZE] = {
		{ [10] = 0xff, 0xff, 10, 0, 0, 1 },
		{ [10] = 0xff, 0xff, 10, 0, 0, 2 },
	};

	(void)state;
	active = connect_one();
	flush_all();
	assert_non_null(last_of(MAD_REQ, &world.hosts[0], &mad));
	assert_int_equal(mad.local_id, active->endpoint.link->id);
	assert_int_equal(mad.remote_id, 0);
	assert_int_equal(mad.req.service_id, 0x01060000 + PORT);
	assert_int_equal(mad.req.ca_guid, world.hosts[0].transport.guid);
	assert_int_equal(mad.req.queue_number, active->queue.number);
	assert_int_equal(mad.req.transport, MAD_TRANSPORT_RC);
	assert_int_equal(mad.req.local_response_timeout, 18);
	assert_int_equal(mad.req.remote_response_timeout, 20);
	assert_int_equal(mad.req.max_cm_retries, 15);
	assert_int_equal(mad.req.retry_count, 7);
	assert_int_equal(mad.req.rnr_retry_count, 7);
	assert_int_equal(mad.req.pkey, 0xffff);
	assert_int_equal(mad.req.path_mtu, 3);
	assert_true(mad.req.responder_resources && mad.req.initiator_depth);
	assert_int_equal(mad.req.path.ack_timeout, 18);
	assert_int_equal(mad.req.path.local_lid, 0xffff);
	assert_int_equal(mad.req.path.remote_lid, 0xffff);
	assert_memory_equal(mad.req.path.local_gid, gids[0], MAD_GID_SIZE);
	assert_memory_equal(mad.req.path.remote_gid, gids[1], MAD_GID_SIZE);
	assert_true(mad.req.path.hop_limit > 1 && mad.req.path.packet_rate && !mad.req.path.subnet_local);
	assert_false(mad.req.alternate_path);
	assert_true(mad_address_parse(mad.private_data, mad.private_length, &address));
	assert_int_equal(address.version, 4);
	assert_int_equal(address.port, 40000);
	assert_memory_equal(address.source, world.hosts[0].address.bytes, 4);
	assert_memory_equal(address.destination, world.hosts[1].address.bytes, 4);
	assert_memory_equal(mad.private_data + MAD_ADDRESS_SIZE, "connect", DATA_SIZE);
	do_forget(active);
}

static void check_agreement(const struct party *one, const struct party *other)
{
	const struct soft_agreement *here = &one->queue.agreement;
	const struct soft_agreement *there = &other->queue.agreement;

	assert_int_equal(here->first_psn_sent, there->first_psn_expected);
	assert_int_equal(here->first_psn_expected, there->first_psn_sent);
	assert_int_equal(here->peer_queue, other->queue.number);
	assert_int_equal(there->peer_queue, one->queue.number);
	assert_int_equal(here->path.mtu, there->path.mtu);
	assert_int_equal(here->reads_out, there->reads_in);
	assert_int_equal(here->reads_in, there->reads_out);
	assert_true(here->reads_in && here->reads_out);
	assert_int_equal(here->rnr_retry_count, 7);
	assert_int_equal(there->rnr_retry_count, 7);
	assert_int_equal(there->retry_count, 7);
	assert_int_equal(there->ack_timeout, 18);
	assert_true(address_same_host(&here->path.peer, &other->host->address));
	assert_true(address_same_host(&there->path.peer, &one->host->address));
}

static void test_connect_and_disconnect(void **state)
{
	struct party *active, *passive;

	(void)state;
	active = connect_pair(&passive);
	check_agreement(active, passive);
	assert_int_equal(active->data_length, MAD_REP_PRIVATE);
	assert_memory_equal(active->data, "accept!", DATA_SIZE);
	assert_int_equal(passive->endpoint.base.peer.port, 40000);
	assert_int_equal(world.flown, 3);
	do_disconnect(active);
	run_for(CLOCK_NS_PER_MS);
	assert_int_equal(active->last, SOFT_EVENT_DISCONNECTED);
	assert_int_equal(passive->last, SOFT_EVENT_DISCONNECTED);
	assert_int_equal(world.flown, 5);
	/* Late: the command is still about to disconnect. */
	assert_int_equal(soft_manager_disconnect(&passive->endpoint), OUTCOME_OK);
	do_forget(active);
	do_forget(passive);
	run_until_quiet();
	assert_int_equal(world.flown, 5);
	check_nothing_left();
}

static void test_private_data_of_the_request(void **state)
{
	struct party *active;

	(void)state;
	active = connect_one();
	run_for(CLOCK_NS_PER_MS);
	assert_int_equal(guest()->data_length, PRIVATE_DATA_MOST);
	assert_memory_equal(guest()->data, "connect", DATA_SIZE);
	do_forget(active);
	run_for(CLOCK_NS_PER_MS);
	assert_int_equal(guest()->last, SOFT_EVENT_FAILED);
	assert_int_equal(guest()->code, MAD_REASON_TIMEOUT);
	/* The command has not heard of it yet. */
	assert_int_equal(soft_manager_accept(&guest()->endpoint, NULL, 0), OUTCOME_OK);
	do_forget(guest());
	run_until_quiet();
	check_nothing_left();
}

static void test_reject(void **state)
{
	struct party *active;
	struct mad mad;

	(void)state;
	world.requested = do_reject;
	active = connect_one();
	run_for(CLOCK_NS_PER_MS);
	assert_int_equal(active->last, SOFT_EVENT_FAILED);
	assert_string_equal(active->code_name, "reject reason");
	assert_int_equal(active->code, MAD_REASON_CONSUMER);
	assert_memory_equal(active->data, "not you", DATA_SIZE);
	assert_non_null(last_of(MAD_REJ, &world.hosts[1], &mad));
	assert_int_equal(mad.local_id, 0);
	assert_int_equal(mad.rej.answered, MAD_ANSWERED_REQ);
	do_forget(active);
	run_until_quiet();
	assert_int_equal(world.flown, 2);
	check_nothing_left();
}

/* The refusal was lost: a repeated request brings it again, and asks nobody twice. */
static void test_lost_reject(void **state)
{
	struct party *active;

	(void)state;
	world.requested = do_reject;
	world.allowed = no_refusal;
	active = connect_one();
	run_for(50 * CLOCK_NS_PER_MS);
	world.allowed = NULL;
	run_for(CLOCK_NS_PER_S);
	assert_int_equal(active->code, MAD_REASON_CONSUMER);
	assert_memory_equal(active->data, "not you", DATA_SIZE);
	do_forget(active);
}

static void test_nobody_listens(void **state)
{
	struct party *active;

	(void)state;
	active = connect_from(&world.hosts[0], &world.hosts[1], PORT + 2);
	run_for(CLOCK_NS_PER_MS);
	assert_int_equal(active->last, SOFT_EVENT_FAILED);
	assert_int_equal(active->code, MAD_REASON_SERVICE_ID);
	assert_null(guest());
	do_forget(active);
}

static void test_lost_ready(void **state)
{
	struct party *active;

	(void)state;
	world.requested = do_accept;
	world.allowed = no_ready;
	active = connect_one();
	run_for(50 * CLOCK_NS_PER_MS);
	assert_true(is_up(active));
	assert_int_equal(state_of(guest()), LINK_REP_SENT);
	do_hear(guest());
	assert_true(is_up(guest()));
	do_hear(guest());
	do_forget(active);
	run_for(CLOCK_NS_PER_MS);
	assert_int_equal(guest()->last, SOFT_EVENT_DISCONNECTED);
	do_forget(guest());
}

/* Without a packet the repeated REP brings another RTU. */
static void test_ready_again(void **state)
{
	struct party *active;

	(void)state;
	world.requested = do_accept;
	world.allowed = no_ready;
	active = connect_one();
	run_for(50 * CLOCK_NS_PER_MS);
	world.allowed = NULL;
	run_for(100 * CLOCK_NS_PER_MS);
	assert_true(is_up(guest()));
	assert_int_equal(count_of(MAD_RTU), 2);
	do_forget(active);
	do_forget(guest());
	run_until_quiet();
	check_nothing_left();
}

/* The RTU got lost and the peer leaves at once: it was connected all the same. */
static void test_goodbye_without_ready(void **state)
{
	struct party *active;

	(void)state;
	world.requested = do_accept;
	world.allowed = no_ready;
	active = connect_one();
	run_for(50 * CLOCK_NS_PER_MS);
	do_disconnect(active);
	run_for(CLOCK_NS_PER_MS);
	assert_int_equal(guest()->told[SOFT_EVENT_ESTABLISHED], 1);
	assert_int_equal(guest()->last, SOFT_EVENT_DISCONNECTED);
	assert_int_equal(active->last, SOFT_EVENT_DISCONNECTED);
	do_forget(active);
	do_forget(guest());
}

static void test_crossing_goodbyes(void **state)
{
	struct party *active, *passive;

	(void)state;
	active = connect_pair(&passive);
	do_disconnect(active);
	do_disconnect(passive);
	run_for(CLOCK_NS_PER_MS);
	assert_int_equal(count_of(MAD_DREQ), 2);
	assert_int_equal(count_of(MAD_DREP), 2);
	assert_int_equal(active->last, SOFT_EVENT_DISCONNECTED);
	assert_int_equal(passive->last, SOFT_EVENT_DISCONNECTED);
	do_forget(active);
	do_forget(passive);
	run_until_quiet();
	check_nothing_left();
}

/* A lost DREP: the repeated DREQ finds an end that has ended long ago, and gets its answer. */
static void test_repeated_goodbye(void **state)
{
	struct party *active, *passive;

	(void)state;
	active = connect_pair(&passive);
	world.allowed = no_goodbye;
	do_disconnect(active);
	run_for(50 * CLOCK_NS_PER_MS);
	do_forget(passive); /* says DREQ too, in vain */
	run_for(5 * CLOCK_NS_PER_S);
	assert_int_equal(state_of(active), LINK_DREQ_SENT);
	world.allowed = NULL;
	run_for(3 * CLOCK_NS_PER_S);
	assert_int_equal(active->last, SOFT_EVENT_DISCONNECTED);
	do_forget(active);
	run_until_quiet();
	check_nothing_left();
}

/* Nobody is left who could answer a repeated DREQ: the answer is given more than once, as the question is. */
static void test_last_words(void **state)
{
	struct party *active, *passive;

	(void)state;
	active = connect_pair(&passive);
	do_disconnect(active);
	run_for(CLOCK_NS_PER_MS);
	assert_int_equal(count_of(MAD_DREP), 1);
	do_forget(passive);
	soft_manager_close(world.hosts[1].transport.manager);
	world.hosts[1].transport.manager = NULL;
	assert_int_equal(count_of(MAD_DREP), 3);
	do_forget(active);
	run_until_quiet();
}

static void test_goodbye_unheard(void **state)
{
	struct party *active, *passive;

	(void)state;
	active = connect_pair(&passive);
	do_forget(active);
	flush_all();
	assert_int_equal(count_of(MAD_DREQ), 1);
	soft_manager_close(world.hosts[0].transport.manager);
	world.hosts[0].transport.manager = NULL;
	assert_int_equal(count_of(MAD_DREQ), 3);
	run_for(CLOCK_NS_PER_MS);
	assert_int_equal(passive->told[SOFT_EVENT_DISCONNECTED], 1);
	do_forget(passive);
	run_until_quiet();
}

/* The peer leaves while we wait for an acknowledgement: its repeats give that some time, but not for ever. */
static void test_goodbye_while_waiting(void **state)
{
	struct party *active, *passive;

	(void)state;
	for (unsigned comes = 0; comes < 2; comes++) {
		active = connect_pair(&passive);
		passive->queue.waiting = true;
		do_disconnect(active);
		run_for(80 * CLOCK_NS_PER_MS);
		assert_int_equal(passive->told[SOFT_EVENT_DISCONNECTED], 0);
		assert_int_equal(state_of(active), LINK_DREQ_SENT);
		passive->queue.waiting = !comes;
		run_for(CLOCK_NS_PER_MS * 170);
		assert_int_equal(passive->told[SOFT_EVENT_DISCONNECTED], comes);
		assert_int_equal(active->told[SOFT_EVENT_DISCONNECTED], comes);
		run_for(300 * CLOCK_NS_PER_MS);
		assert_int_equal(passive->told[SOFT_EVENT_DISCONNECTED], 1);
		assert_int_equal(active->told[SOFT_EVENT_DISCONNECTED], 1);
		do_forget(active);
		do_forget(passive);
	}
	run_until_quiet();
	check_nothing_left();
}

/* Both leave then, or the end that waits goes. */
static void test_goodbyes_while_waiting(void **state)
{
	struct party *active, *passive;

	(void)state;
	for (unsigned goes = 0; goes < 2; goes++) {
		active = connect_pair(&passive);
		passive->queue.waiting = true;
		do_disconnect(active);
		run_for(80 * CLOCK_NS_PER_MS);
		(goes ? do_forget : do_disconnect)(passive);
		run_for(CLOCK_NS_PER_S);
		assert_int_equal(active->told[SOFT_EVENT_DISCONNECTED], 1);
		do_forget(active);
		if (!goes)
			do_forget(passive);
	}
	run_until_quiet();
	check_nothing_left();
}

static void test_forgotten_while_up(void **state)
{
	struct party *active, *passive;

	(void)state;
	active = connect_pair(&passive);
	world.allowed = no_goodbye;
	do_forget(passive);
	run_for(CLOCK_NS_PER_S);
	assert_int_equal(world.hosts[1].transport.manager->dying, 1);
	world.allowed = NULL;
	run_for(CLOCK_NS_PER_S);
	assert_int_equal(active->last, SOFT_EVENT_DISCONNECTED);
	do_forget(active);
	run_until_quiet();
	check_nothing_left();
}

/* We gave up, and then the peer accepts. */
static void test_reply_too_late(void **state)
{
	struct party *active;
	struct mad mad;

	(void)state;
	active = connect_one();
	run_for(CLOCK_NS_PER_MS);
	world.allowed = no_refusal;
	do_forget(active);
	run_for(CLOCK_NS_PER_MS);
	world.allowed = NULL;
	do_accept(guest());
	run_for(CLOCK_NS_PER_MS);
	assert_int_equal(guest()->last, SOFT_EVENT_FAILED);
	assert_non_null(last_of(MAD_REJ, &world.hosts[0], &mad));
	assert_int_equal(mad.rej.answered, MAD_ANSWERED_REP);
	assert_int_equal(mad.remote_id, guest()->endpoint.link->id);
	do_forget(guest());
	run_until_quiet();
	check_nothing_left();
}

/* It accepts so late that even the memory of it is gone. */
static void test_reply_much_too_late(void **state)
{
	struct party *active;

	(void)state;
	active = connect_one();
	run_for(CLOCK_NS_PER_MS);
	world.allowed = no_refusal;
	do_forget(active);
	run_for(60 * CLOCK_NS_PER_S);
	world.allowed = NULL;
	do_accept(guest());
	run_for(CLOCK_NS_PER_MS);
	assert_int_equal(guest()->code, MAD_REASON_INVALID_ID);
	do_forget(guest());
}

/* Who accepted is gone before the other end has heard of it. */
static void test_accepted_and_gone(void **state)
{
	struct party *active;

	(void)state;
	world.allowed = no_reply;
	world.requested = do_accept;
	active = connect_one();
	run_for(50 * CLOCK_NS_PER_MS);
	do_forget(guest());
	run_for(CLOCK_NS_PER_MS);
	assert_int_equal(active->last, SOFT_EVENT_FAILED);
	assert_int_equal(active->code, MAD_REASON_CONSUMER);
	do_forget(active);
	run_until_quiet();
	check_nothing_left();
}

/* The same, and the refusal is lost too: a stock peer understands only one that looks like the answer to its REQ. */
static void test_accepted_and_gone_unheard(void **state)
{
	struct party *active;
	struct mad mad;

	(void)state;
	world.allowed = no_reply;
	world.requested = do_accept;
	active = connect_one();
	run_for(50 * CLOCK_NS_PER_MS);
	world.allowed = nothing_at_all;
	do_forget(guest());
	run_for(CLOCK_NS_PER_MS);
	assert_non_null(last_of(MAD_REJ, &world.hosts[1], &mad));
	assert_int_equal(mad.rej.answered, MAD_ANSWERED_OTHER);
	world.allowed = NULL;
	run_for(CLOCK_NS_PER_S);
	assert_non_null(last_of(MAD_REJ, &world.hosts[1], &mad));
	assert_int_equal(mad.rej.answered, MAD_ANSWERED_REQ);
	assert_int_equal(mad.local_id, 0);
	assert_int_equal(active->code, MAD_REASON_CONSUMER);
	do_forget(active);
	run_until_quiet();
	check_nothing_left();
}

/* The same, but the other end had heard the reply: its confirmation brings the refusal once more. */
static void test_confirmed_too_late(void **state)
{
	struct party *active;
	struct mad ready;

	(void)state;
	world.allowed = no_ready;
	world.requested = do_accept;
	active = connect_one();
	run_for(50 * CLOCK_NS_PER_MS);
	assert_true(is_up(active));
	assert_non_null(last_of(MAD_RTU, &world.hosts[0], &ready));
	world.allowed = no_refusal;
	do_forget(guest());
	run_for(CLOCK_NS_PER_MS);
	world.allowed = NULL;
	inject(&world.hosts[0], &world.hosts[1], &ready);
	run_for(CLOCK_NS_PER_MS);
	assert_int_equal(active->last, SOFT_EVENT_FAILED);
	do_forget(active);
	run_until_quiet();
	check_nothing_left();
}

/* A repeated REQ is answered at once, without waiting for the turn of REP. */
static void test_repeated_request(void **state)
{
	struct party *active;
	struct mad mad;

	(void)state;
	world.allowed = no_reply;
	world.requested = do_accept;
	active = connect_one();
	run_for(CLOCK_NS_PER_MS);
	assert_non_null(last_of(MAD_REQ, &world.hosts[0], &mad));
	world.allowed = NULL;
	inject(&world.hosts[0], &world.hosts[1], &mad);
	run_for(CLOCK_NS_PER_MS);
	assert_true(is_up(active) && is_up(guest()));
	assert_int_equal(count_of(MAD_REP), 2);
	/* And with nothing at all once it is connected. */
	inject(&world.hosts[0], &world.hosts[1], &mad);
	run_for(CLOCK_NS_PER_MS);
	assert_true(is_up(active) && is_up(guest()));
	assert_int_equal(world.flown, 4);
	forget_all();
}

/* More at once than there are buffers: each must leave as it was written. */
static void test_many_at_once(void **state)
{
	enum {
		CONNECTIONS = 5 * MANAGER_OUTGOING / 2
	};

	(void)state;
	world.requested = do_accept;
	for (unsigned i = 0; i < CONNECTIONS; i++)
		connect_one();
	run_for(CLOCK_NS_PER_MS);
	assert_int_equal(count_up(), 2 * CONNECTIONS);
	assert_int_equal(world.flown, 3 * CONNECTIONS);
	forget_all();
}

static void test_patience(void **state)
{
	struct party *active;
	struct mad mad;

	(void)state;
	active = connect_one();
	run_for(200 * CLOCK_NS_PER_MS);
	assert_int_equal(state_of(guest()), LINK_REQ_RECEIVED);
	assert_non_null(last_of(MAD_MRA, &world.hosts[1], &mad));
	assert_int_equal(mad.mra.answered, MAD_ANSWERED_REQ);
	assert_int_equal(count_of(MAD_REQ), 2);
	run_for(1500 * CLOCK_NS_PER_MS);
	assert_int_equal(count_of(MAD_REQ), 2);
	run_for(60 * CLOCK_NS_PER_S);
	assert_int_equal(state_of(active), LINK_REQ_SENT);
	do_accept(guest());
	run_for(CLOCK_NS_PER_MS);
	assert_true(is_up(active) && is_up(guest()));
	do_forget(active);
	do_forget(guest());
}

static void test_silence(void **state)
{
	struct party *active;

	(void)state;
	world.allowed = nothing_at_all;
	active = connect_one();
	run_for(3 * CLOCK_NS_PER_S);
	assert_true(count_of(MAD_REQ) >= 5 && count_of(MAD_REQ) <= 7);
	run_for(57 * CLOCK_NS_PER_S);
	assert_int_equal(state_of(active), LINK_REQ_SENT);
	run_until_quiet();
	assert_true(world.now < 100 * CLOCK_NS_PER_S);
	assert_int_equal(active->last, SOFT_EVENT_FAILED);
	assert_int_equal(active->code, ETIMEDOUT);
	do_forget(active);
	check_nothing_left();
}

/* The same for REP, and for DREQ, which gets what it wants. */
static void test_silence_later(void **state)
{
	struct party *active, *passive;

	(void)state;
	active = connect_pair(&passive);
	world.allowed = nothing_at_all;
	do_disconnect(active);
	run_until_quiet();
	assert_int_equal(active->last, SOFT_EVENT_DISCONNECTED);
	assert_true(is_up(passive));
	do_forget(passive);
	do_forget(active);
	world.allowed = no_reply;
	active = connect_one();
	run_for(CLOCK_NS_PER_MS);
	passive = guest();
	do_forget(active);
	run_until_quiet();
	assert_int_equal(passive->last, SOFT_EVENT_FAILED);
	do_forget(passive);
	run_until_quiet();
	check_nothing_left();
}

/* What ICMP quotes of a packet to that queue pair of the peer: a message from that identifier if it is 1. */
static void complain(struct host *host, const struct host *peer, int error, uint32_t queue, uint32_t id, size_t length)
{
	uint8_t quoted[64] = { 0 };

	bytes_write(quoted + 5, 3, queue);
	if (queue == MAD_QUEUE_NUMBER)
		bytes_write(quoted + 44, 4, id);
	soft_manager_unreachable(&host->transport, &host->socket, &peer->address, error, quoted, length);
}

static void refuse(struct host *host, const struct host *peer, uint32_t queue, uint32_t id, size_t length)
{
	complain(host, peer, ECONNREFUSED, queue, id, length);
}

static void refuse_message(struct host *host, const struct party *party)
{
	refuse(host, &world.hosts[1], MAD_QUEUE_NUMBER, party->endpoint.link->id, 48);
}

static void test_unreachable(void **state)
{
	struct host *host = &world.hosts[0], *peer = &world.hosts[1], *stranger = &world.hosts[2];
	struct party *active, *connecting, *leaving, *passive;
	uint32_t id;

	(void)state;
	leaving = connect_pair(&passive);
	active = connect_pair(&passive);
	world.allowed = nothing_at_all;
	connecting = connect_one();
	do_disconnect(leaving);
	id = connecting->endpoint.link->id;
	/* Whoever forges one knows the addresses, and not what was sent. */
	for (size_t length = 0; length < 48; length++)
		refuse(host, peer, MAD_QUEUE_NUMBER, id, length);
	refuse(host, stranger, MAD_QUEUE_NUMBER, id, 48);
	refuse(host, peer, MAD_QUEUE_NUMBER, id + 1, 48);
	refuse(host, peer, MAD_QUEUE_NUMBER, 0, 48);
	refuse(host, peer, passive->queue.number + 1, 0, 48);
	refuse(host, stranger, passive->queue.number, 0, 48);
	refuse(host, peer, passive->queue.number, 0, 11);
	assert_int_equal(connecting->told[SOFT_EVENT_FAILED], 0);
	assert_int_equal(active->queue.doubts, 0);

	refuse_message(host, connecting);
	assert_int_equal(connecting->code, ECONNREFUSED);
	assert_string_equal(connecting->cause, "nothing holds UDP port 4791 there (no RoCE v2)");
	refuse_message(host, leaving);
	assert_int_equal(leaving->last, SOFT_EVENT_DISCONNECTED);
	/* What is established asks first. */
	refuse(host, peer, passive->queue.number, 0, 12);
	assert_int_equal(active->queue.doubts, 1);
	refuse_message(host, active);
	assert_int_equal(active->queue.doubts, 2);
	assert_true(is_up(active));
	forget_all();
}

/* No way there: it may come back, so that nothing ends, and it is told should nothing else come. */
static void test_no_way(void **state)
{
	struct host *host = &world.hosts[0], *peer = &world.hosts[1];
	struct party *active, *connecting, *leaving, *passive;
	uint32_t id;

	(void)state;
	leaving = connect_pair(&passive);
	do_disconnect(leaving);
	active = connect_pair(&passive);
	world.allowed = nothing_at_all;
	connecting = connect_one();
	id = connecting->endpoint.link->id;
	complain(host, peer, EHOSTUNREACH, MAD_QUEUE_NUMBER, id + 1, 48);
	assert_int_equal(connecting->endpoint.no_way, 0);
	complain(host, peer, EHOSTUNREACH, MAD_QUEUE_NUMBER, id, 48);
	assert_int_equal(connecting->endpoint.no_way, EHOSTUNREACH);
	complain(host, peer, ENETUNREACH, passive->queue.number, 0, 12);
	assert_int_equal(active->endpoint.no_way, ENETUNREACH);
	assert_int_equal(active->queue.doubts, 0);
	assert_true(is_up(active));
	assert_int_equal(connecting->told[SOFT_EVENT_FAILED], 0);
	forget_all();
}

/* The answer comes after we gave up on the peer: it hears so, and need not wait for its own time-out. */
static void test_reply_after_the_end(void **state)
{
	struct party *active;

	(void)state;
	world.requested = do_accept;
	world.allowed = no_reply;
	active = connect_one();
	run_for(CLOCK_NS_PER_MS);
	refuse_message(&world.hosts[0], active);
	assert_int_equal(state_of(active), LINK_ENDED);
	world.allowed = NULL;
	run_for(CLOCK_NS_PER_S);
	assert_int_equal(guest()->last, SOFT_EVENT_FAILED);
	assert_int_equal(guest()->code, MAD_REASON_INVALID_ID);
	forget_all();
}

/* A queue number may be guessed, and is no reason to fail who waits to be confirmed. */
static void test_unreachable_half_open(void **state)
{
	struct party *active;

	(void)state;
	world.requested = do_accept;
	world.allowed = no_ready;
	active = connect_one();
	run_for(CLOCK_NS_PER_MS);
	assert_int_equal(state_of(guest()), LINK_REP_SENT);
	refuse(&world.hosts[1], &world.hosts[0], active->queue.number, 0, 64);
	assert_int_equal(state_of(guest()), LINK_REP_SENT);
	refuse(&world.hosts[1], &world.hosts[0], MAD_QUEUE_NUMBER, guest()->endpoint.link->id, 64);
	assert_int_equal(guest()->code, ECONNREFUSED);
	forget_all();
}

/* The other end has a smaller interface: what it offers is taken. */
static void test_smaller_mtu(void **state)
{
	struct party *active;

	(void)state;
	world.hosts[0].mtu = 4096;
	world.requested = do_accept;
	active = connect_one();
	run_for(CLOCK_NS_PER_MS);
	assert_true(is_up(active) && is_up(guest()));
	check_agreement(active, guest());
	assert_int_equal(active->queue.agreement.path.mtu, 1024);
	assert_int_equal(active->endpoint.path.mtu, 1024);
	do_forget(active);
	do_forget(guest());
	/* And the other way round. */
	world.hosts[0].mtu = 256;
	active = connect_one();
	run_for(CLOCK_NS_PER_MS);
	check_agreement(active, guest());
	assert_int_equal(active->queue.agreement.path.mtu, 256);
	do_forget(active);
	do_forget(guest());
	run_until_quiet();
	check_nothing_left();
}

static void test_options(void **state)
{
	struct path_options path = PATH_OPEN;
	struct party *active;

	(void)state;
	world.requested = do_accept;
	active = connect_one();
	do_forget(active);
	active = party_create(&world.hosts[0]);
	active->endpoint.path = (struct soft_path){ .socket = &world.hosts[0].socket,
						    .local = world.hosts[0].address,
						    .peer = world.hosts[1].address,
						    .mtu = 1024,
						    .type_of_service = 0x20 };
	path.ack_timeout = 14;
	active->endpoint.base.options.path = &path;
	active->endpoint.base.peer.port = PORT;
	assert_int_equal(soft_manager_connect(&active->endpoint, NULL, 0), OUTCOME_OK);
	run_for(CLOCK_NS_PER_MS);
	assert_true(is_up(active));
	assert_int_equal(active->queue.agreement.ack_timeout, 14);
	assert_int_equal(guest()->queue.agreement.ack_timeout, 14);
	assert_int_equal(guest()->queue.agreement.path.type_of_service, 0x20);
	do_forget(active);
	do_forget(guest());
}

static void test_with_oneself(void **state)
{
	struct party *active, *passive;

	(void)state;
	world.requested = do_accept;
	active = connect_from(&world.hosts[1], &world.hosts[1], PORT);
	run_for(CLOCK_NS_PER_MS);
	passive = guest();
	assert_true(is_up(active) && is_up(passive));
	check_agreement(active, passive);
	do_disconnect(passive);
	run_for(CLOCK_NS_PER_MS);
	assert_int_equal(active->last, SOFT_EVENT_DISCONNECTED);
	do_forget(active);
	do_forget(passive);
	run_until_quiet();
	check_nothing_left();
}

static void test_ip6(void **state)
{
	struct party *active, *passive;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		world.hosts[i].address = (struct address){ .family = ADDRESS_IP6,
							   .bytes = { 0xfe, 0x80, [15] = (uint8_t)(i + 1) },
							   .scope = 4 };
	active = connect_pair(&passive);
	check_agreement(active, passive);
	do_forget(active);
	do_forget(passive);
	run_until_quiet();
	check_nothing_left();
}

/* ---- messages of a real peer: soft-RoCE of Linux 6.1, 10.0.0.1 or .2 as ours are ---- */

enum {
	REAL_MAD_4 = 20 + 8 + 12 + 8, /* behind IP, UDP, BTH and DETH */
	REAL_MAD_6 = 40 + 8 + 12 + 8,
};

/* As captured, but for what it would have learnt from us. */
static struct mad real(const char *name, const struct party *to)
{
	const struct vector *vector = vector_named(name);
	struct mad mad;

	assert_non_null(vector);
	assert_true(mad_parse(vector->bytes + (vector->bytes[0] >> 4 == 4 ? REAL_MAD_4 : REAL_MAD_6), MAD_SIZE, &mad));
	if (to) {
		mad.remote_id = to->endpoint.link->id;
		if (mad.kind == MAD_DREQ)
			mad.dreq.remote_queue_number = to->queue.number;
	}
	return mad;
}

static void real_client(const char *request, const char *ready, const char *disconnect)
{
	const struct host *client = &world.hosts[1], *server = &world.hosts[0];
	struct mad mad = real(request, NULL), answer;
	struct party *passive;

	world.hosts[0].listens = true;
	world.allowed = nothing_at_all;
	world.requested = do_accept;
	inject(client, server, &mad);
	run_for(CLOCK_NS_PER_MS);
	passive = guest();
	assert_non_null(passive);
	assert_int_equal(passive->queue.agreement.peer_queue, mad.req.queue_number);
	assert_int_equal(passive->queue.agreement.first_psn_sent, mad.req.starting_psn);
	assert_int_equal(passive->queue.agreement.reads_out, 1);
	assert_int_equal(passive->queue.agreement.ack_timeout, 19);
	assert_non_null(last_of(MAD_REP, server, &answer));
	assert_int_equal(answer.transaction, mad.transaction);
	assert_int_equal(answer.remote_id, mad.local_id);
	assert_int_equal(answer.rep.responder_resources, 1);
	assert_int_equal(answer.rep.initiator_depth, 1);
	mad = real(ready, passive);
	inject(client, server, &mad);
	assert_true(is_up(passive));
	mad = real(disconnect, passive);
	inject(client, server, &mad);
	assert_int_equal(passive->last, SOFT_EVENT_DISCONNECTED);
	assert_non_null(last_of(MAD_DREP, server, &answer));
	assert_int_equal(answer.remote_id, mad.local_id);
	assert_int_equal(answer.transaction, mad.transaction);
	forget_all();
}

static void test_real_client(void **state)
{
	(void)state;
	real_client("request4", "ready4", "disconnect4");
	for (unsigned i = 0; i < 2; i++)
		world.hosts[i].address =
			(struct address){ .family = ADDRESS_IP6, .bytes = { 0xfd, [15] = (uint8_t)(i + 1) } };
	real_client("request6", "ready6", "disconnect6");
}

static void test_real_server(void **state)
{
	const struct host *client = &world.hosts[1], *server = &world.hosts[0];
	struct party *active;
	struct mad mad, answer;

	(void)state;
	world.allowed = nothing_at_all;
	active = connect_from(&world.hosts[1], server, PORT);
	mad = real("patience4", active);
	inject(server, client, &mad);
	assert_int_equal(active->endpoint.link->repeats, MANAGER_SLOWEST);
	mad = real("reply4", active);
	inject(server, client, &mad);
	assert_true(is_up(active));
	assert_int_equal(active->queue.agreement.peer_queue, 0x11);
	assert_int_equal(active->queue.agreement.first_psn_sent, 0xd30ce0);
	assert_int_equal(active->queue.agreement.reads_out, 1);
	assert_int_equal(active->queue.agreement.reads_in, 1);
	assert_non_null(last_of(MAD_RTU, client, &answer));
	assert_int_equal(answer.remote_id, mad.local_id);
	do_disconnect(active);
	flush_all();
	assert_non_null(last_of(MAD_DREQ, client, &answer));
	assert_int_equal(answer.dreq.remote_queue_number, 0x11);
	mad.kind = MAD_DREP;
	inject(server, client, &mad);
	assert_int_equal(active->last, SOFT_EVENT_DISCONNECTED);
	forget_all();
}

static void test_real_refusals(void **state)
{
	const struct host *client = &world.hosts[1], *server = &world.hosts[0];
	struct party *active;
	struct mad mad;

	(void)state;
	world.allowed = nothing_at_all;
	active = connect_from(&world.hosts[1], server, PORT);
	mad = real("refused4", active);
	inject(server, client, &mad);
	assert_int_equal(active->code, MAD_REASON_SERVICE_ID);
	assert_string_equal(active->cause, "nobody listens there");
	active = connect_from(&world.hosts[1], server, PORT);
	mad = real("refused_by_user4", active);
	inject(server, client, &mad);
	assert_int_equal(active->code, MAD_REASON_CONSUMER);
	assert_memory_equal(active->data, "busy with another client", 24);
	forget_all();
}

/* ---- peers that do what they should not ---- */

/* Everything a message could change. */
static uint64_t fingerprint(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < 2; i++) {
		const struct soft_manager *manager = world.hosts[i].transport.manager;

		sum = sum * 31 + world.hosts[i].listener.asked;
		sum = sum * 31 + manager->half_open;
		sum = sum * 31 + manager->dying;
		sum = sum * 31 + manager->ended.count;
		for (unsigned index = 0; index < LINK_INDEXES; index++)
			sum = sum * 31 + manager->tables[index].count;
	}
	for (const struct party *party = world.parties; party; party = party->next) {
		const struct soft_link *link = party->endpoint.link;

		sum = sum * 31 + party->queue.state;
		for (unsigned kind = SOFT_EVENT_REQUESTED; kind <= SOFT_EVENT_FAILED; kind++)
			sum = sum * 31 + party->told[kind];
		if (!link)
			continue;
		sum = sum * 31 + link->state;
		sum = sum * 31 + link->id;
		sum = sum * 31 + link->peer_id;
		sum = sum * 31 + link->repeats;
		for (unsigned byte = 0; byte < MAD_SIZE; byte++)
			sum = sum * 31 + link->message[byte];
	}
	return sum;
}

/* Links in every state, the two hosts deaf to each other from here on. All messages seen lie in world.seen. */
static void make_every_state(struct party *kept[10])
{
	struct party *passive;

	kept[0] = connect_pair(&passive);
	kept[1] = passive;
	kept[2] = connect_pair(&passive); /* DREQ sent */
	kept[3] = passive;
	kept[4] = connect_pair(&passive); /* ended */
	kept[5] = passive;
	do_disconnect(kept[4]);
	run_for(CLOCK_NS_PER_MS);
	world.requested = NULL;
	kept[6] = connect_one();
	run_for(CLOCK_NS_PER_MS);
	kept[7] = guest(); /* REQ received */
	world.allowed = no_reply;
	world.requested = do_accept;
	kept[8] = connect_one();
	run_for(CLOCK_NS_PER_MS);
	kept[9] = guest(); /* REP sent */
	world.requested = do_reject;
	do_forget(connect_one());
	run_for(CLOCK_NS_PER_MS);
	world.allowed = nothing_at_all;
	do_disconnect(kept[2]);
	flush_all();
	assert_int_equal(state_of(kept[0]), LINK_ESTABLISHED);
	assert_int_equal(state_of(kept[1]), LINK_ESTABLISHED);
	assert_int_equal(state_of(kept[2]), LINK_DREQ_SENT);
	assert_int_equal(state_of(kept[3]), LINK_ESTABLISHED);
	assert_int_equal(state_of(kept[4]), LINK_ENDED);
	assert_int_equal(state_of(kept[5]), LINK_ENDED);
	assert_int_equal(state_of(kept[6]), LINK_REQ_SENT);
	assert_int_equal(state_of(kept[7]), LINK_REQ_RECEIVED);
	assert_int_equal(state_of(kept[8]), LINK_REQ_SENT);
	assert_int_equal(state_of(kept[9]), LINK_REP_SENT);
}

/* A message of every kind for a link, as its peer would write it. */
static struct mad forge(enum mad_kind kind, const struct party *target, const struct host *peer)
{
	const struct soft_link *link = target->endpoint.link;
	static const uint8_t no_guid[8];
	struct mad mad = {
		.kind = kind,
		.transaction = link->transaction,
		.local_id = link->peer_known ? link->peer_id : 0x5a5a5a5a,
		.remote_id = link->id,
	};

	if (kind == MAD_REP)
		mad.rep = (struct mad_rep){ .queue_number = 77, .ca_guid = peer->transport.guid };
	if (kind == MAD_DREQ)
		mad.dreq.remote_queue_number = target->queue.number;
	if (kind == MAD_REJ)
		mad.rej = (struct mad_rej){ .answered = MAD_ANSWERED_OTHER,
					    .reason = MAD_REASON_CONSUMER,
					    .information = no_guid,
					    .information_length = 8 };
	return mad;
}

static const enum mad_kind answers[] = { MAD_MRA, MAD_REJ, MAD_REP, MAD_RTU, MAD_DREQ, MAD_DREP };

static void test_wrong_source(void **state)
{
	struct party *kept[10];
	uint64_t before;

	(void)state;
	make_every_state(kept);
	before = fingerprint();
	for (unsigned i = 0; i < LENGTH(kept); i++)
		for (unsigned kind = 0; kind < LENGTH(answers); kind++) {
			struct mad mad = forge(answers[kind], kept[i], &world.hosts[0]);

			inject(&world.hosts[2], kept[i]->host, &mad);
			assert_int_equal(fingerprint(), before);
		}
	/* The requests too: another host repeats what it has overheard. */
	for (size_t i = 0; i < world.seen_count && i < LENGTH(world.seen); i++) {
		struct flight flight = world.seen[i];

		flight.from = world.hosts[2].address;
		if (!address_same_host(&flight.to, &flight.from))
			arrive(&flight);
		flush_all();
		assert_int_equal(fingerprint(), before);
	}
	forget_all();
}

/* The peer itself, but to another of our addresses than that of the connection. */
static void test_wrong_destination(void **state)
{
	struct party *kept[10];
	uint8_t bytes[MAD_SIZE];
	uint64_t before;

	(void)state;
	make_every_state(kept);
	before = fingerprint();
	for (unsigned i = 0; i < LENGTH(kept); i++)
		for (unsigned kind = 0; kind < LENGTH(answers); kind++) {
			const struct host *peer = &world.hosts[kept[i]->host == &world.hosts[0]];
			struct mad mad = forge(answers[kind], kept[i], peer);

			mad_write(&mad, bytes);
			soft_manager_receive(&kept[i]->host->transport, &kept[i]->host->other, &peer->address, bytes,
					     MAD_SIZE, &sound);
			flush_all();
			assert_int_equal(fingerprint(), before);
		}
	forget_all();
}

static void test_wrong_identifiers(void **state)
{
	struct party *kept[10];
	uint64_t before;

	(void)state;
	make_every_state(kept);
	before = fingerprint();
	for (unsigned i = 0; i < LENGTH(kept); i++)
		for (unsigned kind = 0; kind < LENGTH(answers); kind++) {
			const struct host *peer = &world.hosts[kept[i]->host == &world.hosts[0]];
			struct mad mad = forge(answers[kind], kept[i], peer);

			mad.remote_id ^= 1;
			inject(peer, kept[i]->host, &mad);
			mad.remote_id ^= 1;
			mad.local_id ^= 1;
			if (kept[i]->endpoint.link->peer_known)
				inject(peer, kept[i]->host, &mad);
			mad.local_id ^= 1;
			if (answers[kind] == MAD_DREQ) {
				mad.dreq.remote_queue_number ^= 1;
				inject(peer, kept[i]->host, &mad);
			}
			assert_int_equal(fingerprint(), before);
		}
	forget_all();
}

/* What does not say whether an identifier exists: the same answer to a right one from elsewhere and to a wrong one. */
static void test_no_oracle(void **state)
{
	struct party *active, *passive;
	struct mad mad, right, wrong;

	(void)state;
	active = connect_pair(&passive);
	for (unsigned kind = 0; kind < LENGTH(answers); kind++) {
		unsigned flown = world.flown, answered;

		mad = forge(answers[kind], active, &world.hosts[2]);
		inject(&world.hosts[2], active->host, &mad);
		answered = world.flown - flown;
		if (answered)
			parse(&world.seen[(world.seen_count - 1) % LENGTH(world.seen)], &right);
		mad.remote_id ^= 0x10101;
		inject(&world.hosts[2], active->host, &mad);
		assert_int_equal(world.flown - flown, 2 * answered);
		if (!answered)
			continue;
		parse(&world.seen[(world.seen_count - 1) % LENGTH(world.seen)], &wrong);
		assert_int_equal(right.kind, wrong.kind);
		assert_int_equal(right.transaction, wrong.transaction);
		assert_int_equal(right.local_id ^ 0x10101, wrong.local_id);
	}
	forget_all();
}

/* Of the messages in a peer's name those count that have a link, and no REQ: anybody may say one. */
static void test_marks_of_strangers(void **state)
{
	struct party *kept[10];
	struct icrc_judge judge = { .known = true, .last.identification = 100 }, before = judge;
	struct icrc_case open = { .judge = &judge, .verdict = ICRC_SOLVED, .mark.identification = 101 };
	unsigned requests = 0, heard = 0;

	(void)state;
	make_every_state(kept);
	for (unsigned i = 0; i < LENGTH(kept); i++)
		for (unsigned kind = 0; kind < LENGTH(answers); kind++) {
			struct host *host = kept[i]->host;
			const struct host *peer = &world.hosts[host == &world.hosts[0]];
			struct mad mad = forge(answers[kind], kept[i], peer);
			uint8_t bytes[MAD_SIZE];

			mad.remote_id ^= 0x10101;
			mad_write(&mad, bytes);
			soft_manager_receive(&host->transport, &host->socket, &peer->address, bytes, MAD_SIZE, &open);
			flush_all();
			assert_memory_equal(&judge, &before, sizeof(judge));
		}
	for (size_t i = 0; i < world.seen_count && i < LENGTH(world.seen); i++) {
		struct host *host = host_at(&world.seen[i].to);
		struct mad mad;

		parse(&world.seen[i], &mad);
		if (mad.kind != MAD_REQ)
			continue;
		soft_manager_receive(&host->transport, &host->socket, &world.seen[i].from, world.seen[i].bytes,
				     MAD_SIZE, &open);
		assert_memory_equal(&judge, &before, sizeof(judge));
		requests++;
	}
	assert_true(requests > 0);
	for (unsigned i = 0; i < LENGTH(kept); i++) {
		const struct host *peer = &world.hosts[kept[i]->host == &world.hosts[0]];
		struct mad mad = forge(MAD_MRA, kept[i], peer);
		uint8_t bytes[MAD_SIZE];

		judge = before;
		mad_write(&mad, bytes);
		soft_manager_receive(&kept[i]->host->transport, &kept[i]->host->socket, &peer->address, bytes, MAD_SIZE,
				     &open);
		heard += judge.last.identification == 101;
	}
	assert_true(heard > 0);
	forget_all();
}

static void test_truncated(void **state)
{
	struct party *kept[10];
	uint64_t before;
	size_t count;

	(void)state;
	make_every_state(kept);
	count = world.seen_count < LENGTH(world.seen) ? world.seen_count : LENGTH(world.seen);
	before = fingerprint();
	for (size_t i = 0; i < count; i++)
		for (size_t length = 0; length < MAD_SIZE; length++) {
			struct host *host = host_at(&world.seen[i].to);
			uint8_t *bytes = malloc(length + 1);

			assert_non_null(bytes);
			memcpy(bytes, world.seen[i].bytes, length);
			soft_manager_receive(&host->transport, &host->socket, &world.seen[i].from, bytes, length,
					     &sound);
			free(bytes);
			assert_int_equal(host->outgoing_count, 0);
		}
	assert_int_equal(fingerprint(), before);
	forget_all();
}

static void test_random_bytes(void **state)
{
	struct party *kept[10];
	uint64_t before;

	(void)state;
	make_every_state(kept);
	before = fingerprint();
	for (unsigned i = 0; i < 30000; i++) {
		struct flight flight = { world.hosts[i % 3].address, world.hosts[i / 3 % 2].address, { 0 } };
		static const uint8_t header[8] = { 1, 7, 2, 3 };

		for (unsigned byte = 0; byte < MAD_SIZE; byte += 8) {
			uint64_t word = roll();

			memcpy(flight.bytes + byte, &word, 8);
		}
		/* Most of them with a header that is right, so that they get somewhere. */
		if (i % 8) {
			memcpy(flight.bytes, header, sizeof(header));
			flight.bytes[16] = 0;
			flight.bytes[17] = (uint8_t)(0x10 + roll() % 8);
		}
		arrive(&flight);
	}
	assert_int_equal(fingerprint(), before);
	forget_all();
}

/* Bytes changed in messages that do count: anything may happen, but nothing breaks, and nothing stays. */
static void test_changed_bytes(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 60; round++) {
		struct party *kept[10];
		struct flight seen[LENGTH(world.seen)];
		size_t count;

		world.allowed = NULL;
		make_every_state(kept);
		memcpy(seen, world.seen, sizeof(seen));
		count = world.seen_count < LENGTH(seen) ? world.seen_count : LENGTH(seen);
		for (unsigned i = 0; i < 200; i++) {
			struct flight flight = seen[roll() % count];

			for (unsigned changes = (unsigned)roll() % 3 + 1; changes; changes--)
				flight.bytes[roll() % 20 ? 24 + roll() % 100 : roll() % MAD_SIZE] = (uint8_t)roll();
			arrive(&flight);
			flush_all();
		}
		world.allowed = NULL;
		run_for(2 * CLOCK_NS_PER_S);
		forget_all();
	}
}

/* A request whose contents make no sense is refused for the right reason, and leaves nothing. */
static void refused_request(void (*spoil)(struct mad *mad, uint8_t private_data[MAD_REQ_PRIVATE]), unsigned reason)
{
	uint8_t private_data[MAD_REQ_PRIVATE];
	struct party *active;
	struct mad mad, answer;
	uint64_t before;

	world.allowed = nothing_at_all;
	active = connect_one();
	flush_all();
	assert_non_null(last_of(MAD_REQ, &world.hosts[0], &mad));
	memcpy(private_data, mad.private_data, sizeof(private_data));
	mad.private_data = private_data;
	do_forget(active);
	flush_all();
	before = fingerprint();
	spoil(&mad, private_data);
	inject(&world.hosts[0], &world.hosts[1], &mad);
	assert_int_equal(fingerprint(), before);
	assert_non_null(last_of(MAD_REJ, &world.hosts[1], &answer));
	assert_int_equal(answer.transaction, mad.transaction);
	assert_int_equal(answer.remote_id, mad.local_id);
	assert_int_equal(answer.local_id, 0);
	assert_int_equal(answer.rej.answered, MAD_ANSWERED_REQ);
	assert_int_equal(answer.rej.reason, reason);
}

static void spoil_transport(struct mad *mad, uint8_t *private_data)
{
	(void)private_data;
	mad->req.transport = MAD_TRANSPORT_UC;
}

static void spoil_mtu(struct mad *mad, uint8_t *private_data)
{
	(void)private_data;
	mad->req.path_mtu = 0;
}

static void spoil_larger_mtu(struct mad *mad, uint8_t *private_data)
{
	(void)private_data;
	mad->req.path_mtu = 5;
}

static void spoil_unknown_mtu(struct mad *mad, uint8_t *private_data)
{
	(void)private_data;
	mad->req.path_mtu = 6;
}

static void spoil_queue(struct mad *mad, uint8_t *private_data)
{
	(void)private_data;
	mad->req.queue_number = 0;
}

static void spoil_group_queue(struct mad *mad, uint8_t *private_data)
{
	(void)private_data;
	mad->req.queue_number = 0xffffff;
}

static void spoil_source(struct mad *mad, uint8_t *private_data)
{
	(void)mad;
	private_data[19] ^= 1;
}

static void spoil_destination(struct mad *mad, uint8_t *private_data)
{
	(void)mad;
	private_data[35] ^= 1;
}

static void spoil_header(struct mad *mad, uint8_t *private_data)
{
	(void)mad;
	private_data[1] = 0;
}

static void spoil_gid(struct mad *mad, uint8_t *private_data)
{
	(void)private_data;
	mad->req.path.local_gid[15] ^= 1;
}

static void spoil_service(struct mad *mad, uint8_t *private_data)
{
	(void)private_data;
	mad->req.service_id |= UINT64_C(1) << 40;
}

static void test_senseless_requests(void **state)
{
	(void)state;
	refused_request(spoil_transport, MAD_REASON_TRANSPORT);
	refused_request(spoil_mtu, MAD_REASON_MTU);
	refused_request(spoil_larger_mtu, MAD_REASON_MTU);
	refused_request(spoil_unknown_mtu, MAD_REASON_MTU);
	refused_request(spoil_queue, MAD_REASON_CONSUMER);
	refused_request(spoil_group_queue, MAD_REASON_CONSUMER);
	refused_request(spoil_source, MAD_REASON_CONSUMER);
	refused_request(spoil_destination, MAD_REASON_CONSUMER);
	refused_request(spoil_header, MAD_REASON_CONSUMER);
	refused_request(spoil_gid, MAD_REASON_GID);
	refused_request(spoil_service, MAD_REASON_SERVICE_ID);
}

static void test_senseless_reply(void **state)
{
	struct party *active;
	struct mad mad, answer;

	(void)state;
	world.allowed = nothing_at_all;
	active = connect_one();
	mad = forge(MAD_REP, active, &world.hosts[1]);
	mad.rep.queue_number = 1;
	inject(&world.hosts[1], &world.hosts[0], &mad);
	assert_int_equal(active->last, SOFT_EVENT_FAILED);
	assert_int_equal(active->queue.state, QUEUE_RESET);
	assert_non_null(last_of(MAD_REJ, &world.hosts[0], &answer));
	assert_int_equal(answer.remote_id, mad.local_id);
	forget_all();
}

/* A queue pair in two connections: a request cannot end the older one, it only puts it to the test. */
static void test_stale_queue(void **state)
{
	struct party *active, *passive;
	struct mad mad, answer;
	uint64_t before;

	(void)state;
	active = connect_pair(&passive);
	assert_non_null(last_of(MAD_REQ, &world.hosts[0], &mad));
	mad.local_id ^= 1;
	before = fingerprint();
	inject(&world.hosts[0], &world.hosts[1], &mad);
	assert_int_equal(fingerprint(), before);
	assert_non_null(last_of(MAD_REJ, &world.hosts[1], &answer));
	assert_int_equal(answer.rej.reason, MAD_REASON_STALE);
	assert_int_equal(passive->queue.probes, 1);
	assert_int_equal(active->last, SOFT_EVENT_ESTABLISHED);
	/* Once it has ended, the queue pair may be used again; the identifiers may not. */
	do_disconnect(active);
	run_for(CLOCK_NS_PER_MS);
	do_forget(active);
	do_forget(passive);
	mad.local_id ^= 1;
	inject(&world.hosts[0], &world.hosts[1], &mad);
	assert_non_null(last_of(MAD_REJ, &world.hosts[1], &answer));
	assert_int_equal(answer.rej.reason, MAD_REASON_STALE);
	mad.local_id ^= 1;
	mad.transaction++;
	world.allowed = nothing_at_all;
	inject(&world.hosts[0], &world.hosts[1], &mad);
	assert_ptr_not_equal(guest(), passive);
	forget_all();
}

/* A host that started anew answers with a queue pair that it had before: the older connection is lost. */
static void test_peer_begins_anew(void **state)
{
	struct party *older, *newer, *passive;
	struct mad mad;

	(void)state;
	older = connect_pair(&passive);
	world.allowed = nothing_at_all;
	newer = connect_one();
	mad = forge(MAD_REP, newer, &world.hosts[1]);
	mad.rep.queue_number = passive->queue.number;
	inject(&world.hosts[1], &world.hosts[0], &mad);
	assert_true(is_up(newer));
	assert_int_equal(older->last, SOFT_EVENT_FAILED);
	assert_int_equal(older->code, ECONNRESET);
	forget_all();
}

/* Requests under the address of the third host, which knows nothing of them and answers nothing. */
struct flood {
	struct mad request;
	uint8_t private_data[MAD_REQ_PRIVATE];
};

static bool not_to_the_third(const struct flight *flight)
{
	return !address_same_host(&flight->to, &world.hosts[2].address);
}

/* As the last request of a host. */
static void flood_copy(struct flood *flood, const struct host *host)
{
	assert_non_null(last_of(MAD_REQ, host, &flood->request));
	memcpy(flood->private_data, flood->request.private_data, sizeof(flood->private_data));
	flood->request.private_data = flood->private_data;
}

static void flood_prepare(struct flood *flood)
{
	world.allowed = nothing_at_all;
	do_forget(connect_from(&world.hosts[2], &world.hosts[1], PORT));
	flush_all();
	flood_copy(flood, &world.hosts[2]);
	world.allowed = not_to_the_third;
}

static void flood_say(struct flood *flood)
{
	flood->request.local_id++;
	flood->request.req.queue_number++;
	flood->request.req.ca_guid += flood->request.local_id % 7 == 0;
	inject(&world.hosts[2], &world.hosts[1], &flood->request);
}

/* What waits for an answer of the command is bounded for each listener, by itself. */
static void test_flood_of_a_slow_command(void **state)
{
	struct host *server = &world.hosts[1];
	const struct soft_manager *manager = server->transport.manager;
	struct flood flood;

	(void)state;
	flood_prepare(&flood);
	for (unsigned i = 0; i < 2 * MANAGER_BACKLOG; i++)
		flood_say(&flood);
	assert_int_equal(server->listener.asked, MANAGER_BACKLOG);
	flood.request.req.service_id++;
	flood_say(&flood);
	assert_int_equal(server->listener.asked, MANAGER_BACKLOG);
	assert_int_equal(server->second.asked, 1);
	flood.request.req.service_id--;
	/* Room again: the next one is served. */
	for (struct party *party = world.parties; party; party = party->next)
		do_forget(party);
	assert_int_equal(manager->half_open, 0);
	flood_say(&flood);
	assert_int_equal(server->listener.asked, 1);
	forget_all();
}

static unsigned failures(void)
{
	unsigned count = 0;

	for (const struct party *party = world.parties; party; party = party->next)
		count += party->told[SOFT_EVENT_FAILED];
	return count;
}

/*
 * What was accepted and is never confirmed: the oldest gives way, who is there gets connected, and what stands is left
 * alone.
 */
static void test_flood(void **state)
{
	struct path_options path = PATH_OPEN;
	struct host *server = &world.hosts[1];
	const struct soft_manager *manager = server->transport.manager;
	struct party *active, *passive, *first = NULL, *late;
	struct flood flood;
	struct capture capture;
	const char said[] =
		"test: : 200 connections are half open, the most: the oldest give way to new ones (--backlog)\n";
	unsigned real = 0, lines = 0;
	uint64_t before;

	(void)state;
	active = connect_pair(&passive);
	before = active->queue.state * 31 + passive->queue.state;
	flood_prepare(&flood);
	path.backlog = 100;
	server->listener.base.options.path = &path;
	world.requested = do_accept;
	for (unsigned i = 0; i < 200; i++) {
		flood_say(&flood);
		run_for(0);
		if (!i)
			first = guest();
	}
	assert_int_equal(manager->half_open, 200);
	assert_int_equal(failures(), 0);
	capture_begin(&capture);
	for (unsigned i = 0; i < 5000; i++) {
		flood_say(&flood);
		run_for(0);
		assert_int_equal(manager->half_open, 200);
		assert_int_equal(failures(), i + 1 + real);
		if (!i)
			assert_int_equal(first->last, SOFT_EVENT_FAILED);
		if (i % 1000 == 500) {
			world.requested = do_accept;
			late = connect_one();
			run_for(CLOCK_NS_PER_MS);
			assert_true(is_up(late) && is_up(guest()));
			do_disconnect(late);
			run_for(CLOCK_NS_PER_MS);
			flood_say(&flood);
			run_for(0);
			real++;
		}
	}
	/* Told a few times, not five thousand. */
	capture_end(&capture);
	for (const char *at = capture.text; *at; at += sizeof(said) - 1, lines++)
		assert_memory_equal(at, said, sizeof(said) - 1);
	assert_in_range(lines, 1, 10);
	assert_int_equal(active->queue.state * 31 + passive->queue.state, before);
	assert_true(is_up(active) && is_up(passive));
	server->listener.base.options.path = NULL;
	forget_all();
}

/* One that gave way and confirms after all is told so, and fails at once instead of waiting for an answer. */
static void test_flood_takes_a_slow_one(void **state)
{
	struct party *slow;
	struct flood flood;
	struct mad ready;
	struct capture capture;

	(void)state;
	flood_prepare(&flood);
	world.requested = do_accept;
	world.allowed = no_ready;
	slow = connect_one();
	run_for(CLOCK_NS_PER_MS);
	assert_true(is_up(slow));
	assert_non_null(last_of(MAD_RTU, &world.hosts[0], &ready));
	world.allowed = not_to_the_third;
	capture_begin(&capture);
	for (unsigned i = 0; i < 2 * MANAGER_BACKLOG; i++) {
		flood_say(&flood);
		run_for(0);
	}
	capture_end(&capture);
	inject(&world.hosts[0], &world.hosts[1], &ready);
	run_for(CLOCK_NS_PER_MS);
	assert_int_equal(slow->last, SOFT_EVENT_FAILED);
	assert_int_equal(slow->code, MAD_REASON_NO_RESOURCES);
	forget_all();
}

/* Who was named as sender is sent as much as came in its name, and a few repeats as long as few are half open. */
static void test_flood_is_not_amplified(void **state)
{
	const unsigned floods[] = { MANAGER_REPEATED_MOST, 2000 };
	struct flood flood;
	unsigned flown;

	(void)state;
	flood_prepare(&flood);
	world.requested = do_accept;
	for (size_t i = 0; i < LENGTH(floods); i++) {
		flown = world.flown;
		for (unsigned count = 0; count < floods[i]; count++) {
			flood_say(&flood);
			run_for(0);
		}
		assert_int_equal(world.flown - flown, floods[i]);
		run_for(10 * CLOCK_NS_PER_S);
		if (i)
			assert_int_equal(world.flown - flown, floods[i]);
		else
			assert_in_range(world.flown - flown, 5 * floods[i], 10 * floods[i]);
		world.allowed = nothing_at_all;
		forget_all();
		flood_prepare(&flood);
	}
}

/* The most links in a bucket of any table. */
static unsigned longest_chain(const struct soft_manager *manager)
{
	unsigned longest = 0;

	for (unsigned index = 0; index < LINK_INDEXES; index++)
		for (size_t i = 0; i < manager->tables[index].size; i++) {
			unsigned length = 0;

			for (const struct soft_link *link = manager->tables[index].buckets[i]; link;
			     link = link->next_in[index])
				length++;
			if (length > longest)
				longest = length;
		}
	return longest;
}

/*
 * Requests that all name one queue pair, each under another GUID: none has to be compared with all before it. The
 * connection that the queue pair does belong to is found all the same.
 */
static void test_flood_of_one_queue(void **state)
{
	enum {
		LINKS = 2000,
		LONGEST = 16 /* of as many by chance, and not once in a million runs */
	};
	struct host *client = &world.hosts[0], *server = &world.hosts[1];
	struct party *active, *passive;
	struct flood flood;
	struct mad answer;

	(void)state;
	active = connect_pair(&passive);
	flood_copy(&flood, client);
	world.allowed = nothing_at_all;
	for (unsigned i = 0; i < LINKS; i++) {
		flood.request.local_id++;
		flood.request.req.ca_guid++;
		inject(client, server, &flood.request);
		run_for(0);
	}
	assert_int_equal(server->transport.manager->half_open, LINKS);
	assert_in_range(longest_chain(server->transport.manager), 1, LONGEST);
	refuse(server, client, active->queue.number, 0, 12);
	assert_int_equal(passive->queue.doubts, 1);
	/* Each GUID has that queue pair once; the first is the connection's. */
	for (unsigned i = 0; i <= LINKS; i += LINKS / 20) {
		flood.request.local_id++;
		inject(client, server, &flood.request);
		assert_non_null(last_of(MAD_REJ, server, &answer));
		assert_int_equal(answer.remote_id, flood.request.local_id);
		assert_int_equal(answer.rej.reason, MAD_REASON_STALE);
		flood.request.req.ca_guid -= LINKS / 20;
	}
	assert_int_equal(passive->queue.probes, 1);
	assert_int_equal(server->transport.manager->half_open, LINKS);
	forget_all();
}

/* More ends than are remembered: the oldest make room, endpoint or not. */
static void test_many_ends(void **state)
{
	struct soft_manager *manager = world.hosts[0].transport.manager;
	struct party *active = NULL, *first = NULL;

	(void)state;
	world.allowed = nothing_at_all;
	for (unsigned i = 0; i < MANAGER_ENDED_MOST + 1000; i++) {
		active = connect_one();
		if (!first)
			first = active;
		refuse_message(&world.hosts[0], active);
		assert_int_equal(active->last, SOFT_EVENT_FAILED);
		if (i > 64)
			world.hosts[0].outgoing_count = 0;
	}
	assert_int_equal(manager->ended.count, MANAGER_ENDED_MOST);
	assert_null(first->endpoint.link);
	assert_non_null(active->endpoint.link);
	assert_int_equal(soft_manager_accept(&first->endpoint, NULL, 0), OUTCOME_OK);
	assert_int_equal(soft_manager_disconnect(&first->endpoint), OUTCOME_OK);
	forget_all();
}

/* As many goodbyes as nobody answers. */
static void test_many_dying(void **state)
{
	const struct soft_manager *manager = world.hosts[0].transport.manager;

	(void)state;
	for (unsigned i = 0; i < MANAGER_DYING_MOST + 10; i++) {
		struct party *passive, *active;

		world.allowed = NULL;
		active = connect_pair(&passive);
		world.allowed = nothing_at_all;
		do_forget(active);
		do_forget(passive);
		flush_all();
		assert_true(manager->dying <= MANAGER_DYING_MOST);
	}
	forget_all();
}

static int compare(const void *one, const void *other)
{
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;

	return a < b ? -1 : a > b;
}

enum {
	MANY_CONNECTIONS = 100000
};

static void test_identifiers(void **state)
{
	uint32_t *ids = calloc(MANY_CONNECTIONS, sizeof(*ids));
	unsigned close_by = 0;

	(void)state;
	assert_non_null(ids);
	world.allowed = nothing_at_all;
	for (unsigned i = 0; i < MANY_CONNECTIONS; i++) {
		struct party *active = connect_one();

		ids[i] = active->endpoint.link->id;
		assert_int_not_equal(ids[i], 0);
		do_forget(active);
		flush_all();
		world.parties = active->next;
		free(active);
		if (i && ids[i] - ids[i - 1] + 65536 < 131072)
			close_by++;
	}
	/* Neighbours look like any two random numbers: about 3 of them are that close. */
	assert_true(close_by < 20);
	qsort(ids, MANY_CONNECTIONS, sizeof(*ids), compare);
	for (unsigned i = 1; i < MANY_CONNECTIONS; i++)
		assert_int_not_equal(ids[i], ids[i - 1]);
	free(ids);
	run_until_quiet();
	check_nothing_left();
}

/* ---- storms: many connections over a bad network, with commands that do anything at any time ---- */

enum {
	STORM_CONNECTIONS = 24
};

static void do_begin(struct party *party)
{
	/* party is none: a storm's connections begin at different times. */
	(void)party;
	connect_one();
}

static void do_leave(struct party *party)
{
	switch (roll() % 3) {
	case 0:
		do_disconnect(party);
		break;
	case 1:
		do_forget(party);
		break;
	default: /* the other end is to leave */
		break;
	}
}

static void storm_requested(struct party *party)
{
	static void (*const answers_of_commands[])(struct party *) = { do_accept, do_accept, do_accept, do_reject,
								       do_forget };

	intend(party, some_time(2 * CLOCK_NS_PER_S), answers_of_commands[roll() % LENGTH(answers_of_commands)]);
}

static void storm_established(struct party *party)
{
	for (struct party *other = world.parties; other; other = other->next)
		if (other->queue.number == party->queue.agreement.peer_queue && chance(50))
			intend(other, some_time(300 * CLOCK_NS_PER_MS), do_hear);
	intend(party, some_time(5 * CLOCK_NS_PER_S), do_leave);
}

/* How much of a storm's business came about: else a manager that refuses everything would pass. */
static unsigned count_told(enum soft_event_kind kind)
{
	unsigned count = 0;

	for (struct party *party = world.parties; party; party = party->next)
		count += party->told[kind];
	return count;
}

static void storm(unsigned drop, unsigned twice, int64_t slowest)
{
	world.drop = drop;
	world.twice = twice;
	world.slowest = slowest;
	world.requested = storm_requested;
	world.established = storm_established;
	for (unsigned i = 0; i < STORM_CONNECTIONS; i++)
		intend(NULL, some_time(3 * CLOCK_NS_PER_S), do_begin);
	run_until_quiet();
	/* Everybody has an answer; who is still up has a peer that is still up, or one that left unheard. */
	for (struct party *party = world.parties; party; party = party->next) {
		if (party->gone)
			continue;
		assert_true(party->last == SOFT_EVENT_ESTABLISHED || party->last == SOFT_EVENT_DISCONNECTED ||
			    party->last == SOFT_EVENT_FAILED);
		if (is_up(party))
			assert_int_equal(state_of(party), LINK_ESTABLISHED);
	}
	for (struct party *party = world.parties; party; party = party->next)
		do_disconnect(party);
	world.established = NULL;
	run_until_quiet();
	assert_int_equal(count_up(), 0);
	forget_all();
	/* Three of five requests are accepted: both ends were told, and those that stayed were told of the end. */
	assert_in_range(count_told(SOFT_EVENT_REQUESTED), STORM_CONNECTIONS, STORM_CONNECTIONS);
	assert_in_range(count_told(SOFT_EVENT_ESTABLISHED), STORM_CONNECTIONS / 2, 2 * STORM_CONNECTIONS);
	assert_in_range(count_told(SOFT_EVENT_DISCONNECTED), STORM_CONNECTIONS / 4, 2 * STORM_CONNECTIONS);
	forget_parties();
}

static void test_fair_weather(void **state)
{
	(void)state;
	storm(0, 0, 0);
	storm(0, 20, 30 * CLOCK_NS_PER_MS);
}

static void test_storms(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 120; seed++) {
		world.die = seed * UINT64_C(0x9e3779b97f4a7c15);
		storm(seed % 4 * 10, seed % 3 * 20, (int64_t)(seed % 5) * 150 * CLOCK_NS_PER_MS);
	}
}

/* ---- the price ---- */

static void test_size(void **state)
{
	(void)state;
	assert_true(sizeof(struct soft_link) < 1024);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_request),
		TEST(test_connect_and_disconnect),
		TEST(test_private_data_of_the_request),
		TEST(test_reject),
		TEST(test_lost_reject),
		TEST(test_nobody_listens),
		TEST(test_lost_ready),
		TEST(test_ready_again),
		TEST(test_goodbye_without_ready),
		TEST(test_crossing_goodbyes),
		TEST(test_repeated_goodbye),
		TEST(test_last_words),
		TEST(test_goodbye_unheard),
		TEST(test_goodbye_while_waiting),
		TEST(test_goodbyes_while_waiting),
		TEST(test_forgotten_while_up),
		TEST(test_reply_too_late),
		TEST(test_reply_much_too_late),
		TEST(test_accepted_and_gone),
		TEST(test_accepted_and_gone_unheard),
		TEST(test_confirmed_too_late),
		TEST(test_repeated_request),
		TEST(test_many_at_once),
		TEST(test_patience),
		TEST(test_silence),
		TEST(test_silence_later),
		TEST(test_unreachable),
		TEST(test_no_way),
		TEST(test_unreachable_half_open),
		TEST(test_reply_after_the_end),
		TEST(test_smaller_mtu),
		TEST(test_options),
		TEST(test_with_oneself),
		TEST(test_ip6),
		TEST(test_real_client),
		TEST(test_real_server),
		TEST(test_real_refusals),
		TEST(test_wrong_source),
		TEST(test_wrong_destination),
		TEST(test_wrong_identifiers),
		TEST(test_no_oracle),
		TEST(test_marks_of_strangers),
		TEST(test_truncated),
		TEST(test_random_bytes),
		TEST(test_changed_bytes),
		TEST(test_senseless_requests),
		TEST(test_senseless_reply),
		TEST(test_stale_queue),
		TEST(test_peer_begins_anew),
		TEST(test_flood_of_a_slow_command),
		TEST(test_flood),
		TEST(test_flood_takes_a_slow_one),
		TEST(test_flood_is_not_amplified),
		TEST(test_flood_of_one_queue),
		TEST(test_many_ends),
		TEST(test_many_dying),
		TEST(test_identifiers),
		TEST(test_fair_weather),
		TEST(test_storms),
		TEST(test_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
