/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/network/cm.h"

struct world world;

static struct log quiet = { .name = "test" };

uint64_t world_random(void)
{
	world.die ^= world.die << 13;
	world.die ^= world.die >> 7;
	world.die ^= world.die << 17;
	return world.die;
}

bool world_chance(unsigned per_cent)
{
	return world_random() % 100 < per_cent;
}

int64_t world_time(int64_t most)
{
	return most ? (int64_t)(world_random() % (uint64_t)most) : 0;
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

void world_call(struct party *party, int64_t delay, void (*act)(struct party *party))
{
	struct intention *intention = malloc(sizeof(*intention));

	assert_non_null(intention);
	*intention = (struct intention){ party, act };
	note((struct thing){ .intention = intention }, delay);
}

struct host *host_at(const struct address *address)
{
	for (unsigned i = 0; i < HOSTS; i++)
		if (address_same_host(&world.hosts[i].address, address))
			return &world.hosts[i];
	return NULL;
}

const struct icrc_case icrc_good = { .verdict = ICRC_GOOD };

void world_arrive(const struct flight *flight)
{
	struct host *host = host_at(&flight->to);
	/* Of exactly that size, so that a look beyond it is noticed. */
	uint8_t *bytes = malloc(MAD_SIZE);

	assert_non_null(host);
	assert_non_null(bytes);
	memcpy(bytes, flight->bytes, MAD_SIZE);
	soft_enter(&host->transport);
	if (host->transport.manager)
		soft_manager_receive(&host->transport, &host->socket, &flight->from, bytes, MAD_SIZE, &icrc_good);
	soft_leave(&host->transport);
	free(bytes);
}

void world_flush(void)
{
	for (unsigned i = 0; i < HOSTS; i++)
		soft_flush(&world.hosts[i].transport);
}

/* Does what is next. Returns false if nothing is. */
static bool turn(void)
{
	struct thing thing;

	world_flush();
	if (!world.count)
		return false;
	thing = strike(0);
	world.now = thing.due;
	if (thing.timer) {
		thing.timer->callback(thing.timer->owner);
	} else if (thing.flight) {
		world_arrive(thing.flight);
		free(thing.flight);
	} else {
		thing.intention->act(thing.intention->party);
		free(thing.intention);
	}
	for (unsigned i = 0; i < HOSTS; i++)
		assert_int_equal(world.hosts[i].entered, 0);
	world_flush();
	return true;
}

void world_run(int64_t time)
{
	int64_t end = world.now + time;

	world_flush();
	while (world.count && world.agenda[0].due <= end)
		turn();
	world.now = end;
}

void world_drain(void)
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
	unsigned copies = world_chance(world.drop) ? 0 : world_chance(world.twice) ? 2 : 1;

	world.flown++;
	world.seen[world.seen_count++ % LENGTH(world.seen)] = *flight;
	if (world.allowed && !world.allowed(flight))
		return;
	while (copies--) {
		struct flight *copy = malloc(sizeof(*copy));

		assert_non_null(copy);
		*copy = *flight;
		note((struct thing){ .flight = copy }, world_time(world.slowest));
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
	return world_random() ^ world_random() << 32;
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

struct party *party_create(struct host *host)
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
		world_call(party, 0, world.requested);
	if (kind == SOFT_EVENT_ESTABLISHED && world.established)
		world_call(party, 0, world.established);
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

int world_open(void **state)
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
