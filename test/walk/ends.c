/* SPDX-License-Identifier: BSD-2-Clause */
/* The endpoints of a run, their scenarios, and the network between them. */
#include "test/walk/walk.h"

#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "test/network/network.h"
#include "test/network/rules.h"
#include "test/unit/pattern.h"
#include "transport/soft/base/queue.h"
#include "transport/soft/cm/cm_internal.h"
#include "transport/soft/qp/qp_internal.h"

enum {
	PORT = 7174,
	SERVER = 1, /* last byte of the address */
	CLIENT = 2,
	WORKS_MAX = 6,
	AREA = 1024, /* bytes of memory for each work request */
	OVERWRITTEN = 0xa5,
	IN_FLIGHT_MAX = 64,
	HELD_MAX = WALK_DEPTH_MAX,
	OVERTAKERS_MAX = 3,
	RELEASES_MAX = 2,
	MTU = 356, /* of the interfaces; PAYLOAD is the path MTU */
	PAYLOAD = 256,
	BUFFER = 212992,
};

/* A MAD that is duplicated within this time is recognised: timewait lasts 20 s. */
#define DUPLICATE_TIME (19 * CLOCK_NS_PER_S)
/* Limit for a run, whatever the network does. A connection to an unresponsive peer fails after 73 s. */
#define TIME_MAX (150 * CLOCK_NS_PER_S)
/* Limit for a run in which no timer is due before a packet. */
#define TIME_WITHOUT_TIMERS (5 * CLOCK_NS_PER_S)
/* The timewait of all connections is over after this time. */
#define TIMEWAIT_TIME (30 * CLOCK_NS_PER_S)

/* How an endpoint can end. */
enum result {
	RUNNING = 0,
	DISCONNECTED = 1,
	FAILED = 2,	/* EVENT_FAILED or a failed completion */
	DESTROYED = 4,	/* destroyed by its command */
	NO_REQUEST = 8, /* server: no request arrived */
};

/* Which side ends the connection, and when. */
enum end {
	SERVER_DISCONNECTS = 1, /* when it has received all, and its work requests are complete */
	CLIENT_DISCONNECTS,	/* the same for the client */
	BOTH_DISCONNECT,	/* both sides, when established */
	CLIENT_CANCELS,		/* client destroys its endpoint while connecting */
	CLIENT_DESTROYS,	/* client destroys its endpoint when established */
	SERVER_DESTROYS,
	SERVER_DESTROYS_REQUEST, /* server destroys the request */
	SERVER_REJECTS,
};

struct plan {
	enum work_kind kind; /* 0: end of the list */
	uint32_t length;
};

struct scenario {
	const char *name;
	enum end end;
	struct plan client[WORKS_MAX + 1], server[WORKS_MAX + 1];
	bool no_listener;			/* there is no listener */
	bool late_receives;			/* the server posts its receives 3 ms late */
	unsigned client_result, server_results; /* allowed, unless the network is cut; 0: DISCONNECTED */
};

/* The side that READs must end the connection: a closed peer does not repeat a lost READ response. */
static const struct scenario scenarios[] = {
	{ "connect", SERVER_DISCONNECTS },
	{ "both", BOTH_DISCONNECT },
	{ "no-listener", SERVER_DISCONNECTS, .no_listener = true, .client_result = FAILED,
	  .server_results = NO_REQUEST },
	{ "reject", SERVER_REJECTS, .client_result = FAILED, .server_results = DESTROYED },
	{ "destroy-request", SERVER_DESTROYS_REQUEST, .client_result = FAILED, .server_results = DESTROYED },
	{ "cancel", CLIENT_CANCELS, .client_result = DESTROYED, .server_results = FAILED | NO_REQUEST },
	{ "client-destroys", CLIENT_DESTROYS, .client_result = DESTROYED },
	{ "server-destroys", SERVER_DESTROYS, .server_results = DESTROYED },
	{ "send", SERVER_DISCONNECTS, { { WORK_SEND, 600 } } },
	{ "reply", CLIENT_DISCONNECTS, { { WORK_SEND, 10 } }, { { WORK_SEND, 300 } } },
	{ "write", SERVER_DISCONNECTS, { { WORK_WRITE, 600 }, { WORK_SEND, 1 } } },
	{ "read", CLIENT_DISCONNECTS, { { WORK_READ, 600 } } },
	{ "late-receives", SERVER_DISCONNECTS, { { WORK_SEND, 300 }, { WORK_SEND, 0 } }, .late_receives = true },
	{ "mixed",
	  CLIENT_DISCONNECTS,
	  { { WORK_SEND, 300 }, { WORK_READ, 300 }, { WORK_WRITE, 300 }, { WORK_READ, 1 }, { WORK_SEND, 256 } },
	  { { WORK_SEND, 257 }, { WORK_WRITE, 10 }, { WORK_SEND, 0 } } },
};

struct side {
	struct testbed *testbed;
	struct transport *transport;
	struct channel *channel;
	struct endpoint *endpoint;
	const struct plan *plans, *peer_plans;
	unsigned count, sends; /* work requests; messages to receive */
	unsigned done, received, receives;
	unsigned writes_checked;	     /* number of peer plans whose WRITEs were checked */
	struct region *local, *inbox, *open; /* open: accessible to the peer */
	bool established, disconnecting;
	enum result result;
	int64_t ended_at;
};

struct testbed {
	const struct scenario *scenario;
	struct choices *choices;
	struct endpoint *listener;
	struct side client, server;
	unsigned in_flight_count, held_count;
	int64_t began;
	bool cut;	  /* all packets are dropped */
	bool timer_first; /* a timer ran before a packet that was in flight */
	bool finishing;	  /* both sides have ended: held packets are delivered, without choices */
	struct loop_timer receive_timer;
	struct rules rules;
	struct log log;
	/* What follows is large, and not cleared for a run. */
	struct errors errors;
	struct frame in_flight[IN_FLIGHT_MAX], held[HELD_MAX];
};

static struct side *other(const struct side *side)
{
	return side == &side->testbed->client ? &side->testbed->server : &side->testbed->client;
}

/* ---- memory ---- */

static const uint8_t *bytes_of(const struct side *sender, unsigned work)
{
	return pattern() + payload_pattern_offset(AREA, sender == &sender->testbed->client, work);
}

/* Checks the sender's bytes and overwrites them: check_overwritten() detects a second transfer. */
static void check_and_overwrite(const struct side *sender, struct region *region, unsigned slot, unsigned work,
				const char *what)
{
	uint8_t *bytes = region->memory + slot * AREA;

	if (memcmp(bytes, bytes_of(sender, work), sender->plans[work].length) != 0)
		violation("%s %u differs", what, work);
	memset(bytes, OVERWRITTEN, AREA);
}

static void check_overwritten(const struct region *region, unsigned slot, const char *what)
{
	for (size_t at = 0; at < AREA; at++)
		if (region->memory[slot * AREA + at] != OVERWRITTEN)
			violation("%s %u is written again at byte %zu", what, slot, at);
}

static void open_memory(struct side *side)
{
	struct domain *domain = side->endpoint->domain;

	MUST(region_create(domain, WORKS_MAX * AREA, REGION_READ_SINK, &side->local));
	MUST(region_create(domain, WORKS_MAX * AREA, REGION_LOCAL, &side->inbox));
	MUST(region_create(domain, WORKS_MAX * AREA, REGION_REMOTE_READ | REGION_REMOTE_WRITE, &side->open));
	for (unsigned work = 0; work < WORKS_MAX; work++) {
		/* The source of a READ is the peer's open region. */
		if (work < side->count && side->plans[work].kind != WORK_READ)
			memcpy(side->local->memory + work * AREA, bytes_of(side, work), AREA);
		if (other(side)->plans[work].kind != WORK_WRITE)
			memcpy(side->open->memory + work * AREA, bytes_of(other(side), work), AREA);
	}
}

static void check_memory(const struct side *side)
{
	if (!side->local)
		return;
	for (unsigned slot = 0; slot < side->received; slot++)
		check_overwritten(side->inbox, slot, "message");
	for (unsigned work = 0; work < side->done; work++)
		if (side->plans[work].kind == WORK_READ)
			check_overwritten(side->local, work, "the data of READ");
	for (unsigned work = 0; work < side->writes_checked; work++)
		if (side->peer_plans[work].kind == WORK_WRITE)
			check_overwritten(side->open, work, "the data of WRITE");
}

/* ---- endpoints ---- */

static void set_result(struct side *side, enum result result)
{
	if (side->result)
		violation("an endpoint ends twice");
	side->result = result;
	side->ended_at = network->now;
}

static void destroy_endpoint(struct side *side)
{
	endpoint_destroy(side->endpoint);
	side->endpoint = NULL;
	set_result(side, DESTROYED);
}

static void disconnect(struct side *side)
{
	if (side->disconnecting || side->endpoint->state != ENDPOINT_ESTABLISHED)
		return;
	side->disconnecting = true;
	MUST(endpoint_disconnect(side->endpoint));
}

static void side_continue(struct side *side)
{
	bool complete = side->established && side->done == side->count && side->received == side->sends;
	bool is_server = side == &side->testbed->server;

	switch (side->testbed->scenario->end) {
	case SERVER_DISCONNECTS:
	case CLIENT_DISCONNECTS:
		if (complete && is_server == (side->testbed->scenario->end == SERVER_DISCONNECTS))
			disconnect(side);
		break;
	case BOTH_DISCONNECT:
		if (side->established)
			disconnect(side);
		break;
	case CLIENT_DESTROYS:
	case SERVER_DESTROYS:
		if (side->established && is_server == (side->testbed->scenario->end == SERVER_DESTROYS))
			destroy_endpoint(side);
		break;
	default:
		break;
	}
}

static void post_receives(struct side *side)
{
	for (; side->receives < side->sends; side->receives++)
		MUST(endpoint_post(side->endpoint,
				   &(struct work){ .kind = WORK_RECEIVE,
						   .tag = side->receives,
						   .region = side->inbox,
						   .offset = side->receives * AREA,
						   .length = AREA },
				   1));
}

static void post_receives_late(void *context)
{
	struct side *side = context;

	soft_callback_begin(soft_of(side->transport));
	if (side->endpoint && !side->result)
		post_receives(side);
	soft_callback_end(soft_of(side->transport));
}

static void prepare(struct side *side)
{
	MUST(endpoint_create_qp(side->endpoint));
	open_memory(side);
	if (side->testbed->scenario->late_receives && side == &side->testbed->server)
		loop_timer_start(NULL, &side->testbed->receive_timer, 3 * CLOCK_NS_PER_MS, post_receives_late, side);
	else
		post_receives(side);
}

static void post_works(struct side *side)
{
	const struct region *remote = other(side)->open;

	for (unsigned work = 0; work < side->count; work++)
		MUST(endpoint_post(side->endpoint,
				   &(struct work){ .kind = side->plans[work].kind,
						   .tag = 100 + work,
						   .region = side->local,
						   .offset = work * AREA,
						   .length = side->plans[work].length,
						   .remote_address = remote->remote_address + work * AREA,
						   .remote_key = remote->remote_key },
				   1));
}

static void receive_completed(struct side *side, const struct completion *completion)
{
	const struct side *sender = other(side);
	unsigned send = 0, work = 0;

	if (completion->tag != side->received || side->received == side->sends)
		violation("message %u arrives as number %u of %u", completion->tag, side->received, side->sends);
	for (;; work++)
		if (sender->plans[work].kind == WORK_SEND && send++ == side->received)
			break;
	if (completion->length != sender->plans[work].length)
		violation("message %u has %u bytes", side->received, completion->length);
	check_and_overwrite(sender, side->inbox, side->received, work, "the message of SEND");
	side->received++;
	/* WRITEs before the SEND have arrived. */
	for (; side->writes_checked < work; side->writes_checked++)
		if (sender->plans[side->writes_checked].kind == WORK_WRITE)
			check_and_overwrite(sender, side->open, side->writes_checked, side->writes_checked,
					    "the data of WRITE");
}

static void send_completed(struct side *side, const struct completion *completion)
{
	const struct plan *plan = &side->plans[side->done];

	if (side->done == side->count || completion->tag != 100 + side->done || completion->kind != plan->kind)
		violation("work %u completes as number %u of %u", completion->tag - 100, side->done, side->count);
	if (plan->kind == WORK_READ)
		check_and_overwrite(side, side->local, side->done, side->done, "the data of READ");
	side->done++;
}

static void on_completion(void *context, struct endpoint *endpoint, const struct completion *completion)
{
	struct side *side = context;

	if (endpoint != side->endpoint || side->result)
		violation("a completion after the end");
	if (!side->established)
		violation("a completion before the connection is established");
	if (completion->status) {
		set_result(side, FAILED);
		return;
	}
	if (completion->kind == WORK_RECEIVE)
		receive_completed(side, completion);
	else
		send_completed(side, completion);
	side_continue(side);
}

static void event(void *context, struct endpoint *endpoint, const struct endpoint_event *event);

static const struct endpoint_handlers handlers = { .event = event, .completion = on_completion };

static void on_request(struct testbed *testbed, struct endpoint *request)
{
	struct side *server = &testbed->server;

	request->handlers = &handlers;
	request->context = server;
	if (server->endpoint || server->result) {
		if (!server->result || network->now - server->ended_at < DUPLICATE_TIME)
			violation("a request is reported twice");
		endpoint_reject(request, NULL, 0);
		return;
	}
	server->endpoint = request;
	if (testbed->scenario->end == SERVER_REJECTS) {
		endpoint_reject(request, "no", 3);
		server->endpoint = NULL;
		set_result(server, DESTROYED);
	} else if (testbed->scenario->end == SERVER_DESTROYS_REQUEST) {
		destroy_endpoint(server);
	} else {
		prepare(server);
		MUST(endpoint_accept(request, "yes", 4));
	}
}

static void event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct side *side = context;

	if (event->kind == EVENT_REQUEST) {
		on_request(context, event->request);
		return;
	}
	if (endpoint != side->endpoint)
		violation("an event of a destroyed endpoint");
	switch (event->kind) {
	case EVENT_ADDRESS_RESOLVED:
		prepare(side);
		break;
	case EVENT_ROUTE_RESOLVED:
		MUST(endpoint_connect(endpoint, "walk", 5));
		if (side->testbed->scenario->end == CLIENT_CANCELS)
			destroy_endpoint(side);
		break;
	case EVENT_ESTABLISHED:
		if (side->established || side->result)
			violation("a connection is established twice");
		side->established = true;
		post_works(side);
		side_continue(side);
		break;
	case EVENT_DISCONNECTED:
		if (!side->established)
			violation("a disconnect event before the connection is established");
		set_result(side, DISCONNECTED);
		break;
	case EVENT_FAILED:
		/* A failed completion has already set the result. */
		if (side->result != FAILED)
			set_result(side, FAILED);
		break;
	default:
		violation("an event of kind %d", (int)event->kind);
	}
}

/* ---- the network ---- */

static void copy_frame(struct frame *to, const struct frame *from)
{
	memcpy(to, from, offsetof(struct frame, bytes) + from->length);
}

static bool capture_frame(void *context, const struct frame *frame)
{
	struct testbed *testbed = context;
	struct packet packet;

	if (!packet_parse(frame->bytes, frame->length, &packet))
		violation("a packet is invalid");
	rules_check(&testbed->rules, frame->from.bytes[3] == CLIENT, &packet, PAYLOAD);
	if (testbed->cut)
		return true;
	if (testbed->in_flight_count == IN_FLIGHT_MAX)
		violation("more than %d packets are in flight", IN_FLIGHT_MAX);
	copy_frame(&testbed->in_flight[testbed->in_flight_count++], frame);
	return true;
}

static void remove_frame(struct frame *frames, unsigned *count, unsigned slot, struct frame *taken)
{
	copy_frame(taken, &frames[slot]);
	for (--*count; slot < *count; slot++)
		copy_frame(&frames[slot], &frames[slot + 1]);
}

static void deliver(struct frame *frames, unsigned *count, unsigned slot)
{
	struct frame frame;

	remove_frame(frames, count, slot, &frame);
	network_deliver(&frame);
}

static void hold_oldest(struct testbed *testbed)
{
	if (testbed->held_count < HELD_MAX)
		copy_frame(&testbed->held[testbed->held_count++], &testbed->in_flight[0]);
}

/* Delivers all packets in flight to the destination of the oldest one. */
static void deliver_together(struct testbed *testbed)
{
	struct address to = testbed->in_flight[0].to;

	for (unsigned slot = 0; slot < testbed->in_flight_count;)
		if (address_same_host(&testbed->in_flight[slot].to, &to))
			deliver(testbed->in_flight, &testbed->in_flight_count, slot);
		else
			slot++;
}

static void tick(const struct testbed *testbed)
{
	int64_t max = testbed->cut || testbed->timer_first ? TIME_MAX : TIME_WITHOUT_TIMERS;

	if (!network_tick() && !testbed->in_flight_count)
		violation("no event is left, and an endpoint has not ended (%d, %d)", (int)testbed->client.result,
			  (int)testbed->server.result);
	if (network->now - testbed->began > max)
		violation("the run exceeds %lld s (%d, %d)", (long long)(max / CLOCK_NS_PER_S),
			  (int)testbed->client.result, (int)testbed->server.result);
}

static void cut(struct testbed *testbed)
{
	testbed->cut = true;
	testbed->in_flight_count = 0;
	testbed->held_count = 0;
}

static unsigned minimum(unsigned one, unsigned max)
{
	return one < max ? one : max;
}

/* The choices are in the order of walk.h. */
static void run_step(struct testbed *testbed)
{
	unsigned overtakers = testbed->in_flight_count ? minimum(testbed->in_flight_count - 1, OVERTAKERS_MAX) : 0;
	unsigned releases = minimum(testbed->held_count, RELEASES_MAX);
	bool any = testbed->in_flight_count;
	unsigned count = 1 + overtakers + (any ? 3 : 0) + (overtakers ? 1 : 0) + releases + 1;
	unsigned choice = testbed->cut || testbed->finishing ? 0 : choose(testbed->choices, count);

	if (!choice && any)
		deliver(testbed->in_flight, &testbed->in_flight_count, 0);
	else if (!choice)
		tick(testbed);
	else if (choice <= overtakers)
		deliver(testbed->in_flight, &testbed->in_flight_count, choice);
	else if (choice -= overtakers, choice <= releases)
		deliver(testbed->held, &testbed->held_count, choice - 1);
	else if (choice -= releases, choice == 1)
		cut(testbed);
	else if (choice == 2) {
		testbed->timer_first = true;
		tick(testbed);
	} else if (choice == 3) {
		struct frame frame;

		hold_oldest(testbed);
		remove_frame(testbed->in_flight, &testbed->in_flight_count, 0, &frame);
	} else if (choice == 4) {
		hold_oldest(testbed);
		deliver(testbed->in_flight, &testbed->in_flight_count, 0);
	} else {
		deliver_together(testbed);
	}
	network_run_due();
}

static bool has_ended(const struct testbed *testbed)
{
	bool requested_once = testbed->server.endpoint || testbed->server.result;

	return !testbed->in_flight_count && testbed->client.result && (!requested_once || testbed->server.result);
}

/* ---- a run ---- */

static void open_side(struct side *side, struct testbed *testbed, const struct plan *plans,
		      const struct plan *peer_plans)
{
	side->testbed = testbed;
	side->plans = plans;
	side->peer_plans = peer_plans;
	while (plans[side->count].kind)
		side->count++;
	for (; peer_plans->kind; peer_plans++)
		side->sends += peer_plans->kind == WORK_SEND;
	MUST(transport_open("soft", NULL, &testbed->log, &(struct error){ 0 }, &side->transport));
	MUST(channel_create(side->transport, &side->channel));
}

static void testbed_open(struct testbed *testbed)
{
	struct endpoint_options options = { .port_space = PORT_SPACE_TCP,
					    .send_depth = WORKS_MAX,
					    .receive_depth = WORKS_MAX };
	struct address here = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, SERVER }, .port = PORT };
	struct address there = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, CLIENT } };

	network_open(1, MTU, BUFFER);
	network->intercept = capture_frame;
	network->intercept_owner = testbed;
	testbed->began = network->now;
	open_side(&testbed->server, testbed, testbed->scenario->server, testbed->scenario->client);
	open_side(&testbed->client, testbed, testbed->scenario->client, testbed->scenario->server);
	MUST(endpoint_create(ENDPOINT_LISTENER, testbed->server.channel, &options, &handlers, testbed,
			     &testbed->listener));
	MUST(endpoint_listen(testbed->listener, &here));
	here.port = testbed->scenario->no_listener ? PORT + 1 : PORT;
	MUST(endpoint_create(ENDPOINT_CONNECTION, testbed->client.channel, &options, &handlers, &testbed->client,
			     &testbed->client.endpoint));
	MUST(endpoint_resolve(testbed->client.endpoint, &there, &here));
	network_run_due();
}

/* If both sides disconnect, all work is complete on both. */
static void check_done(const struct side *side, const char *name)
{
	if (side->received != side->sends)
		violation("the %s has %u of %u messages", name, side->received, side->sends);
	if (side->done != side->count)
		violation("the %s has %u of %u work completions", name, side->done, side->count);
}

static void check_result(const struct side *side, unsigned allowed, const char *name)
{
	unsigned result = side->result ? side->result : NO_REQUEST;

	check_memory(side);
	if (side->testbed->cut)
		return;
	if (!(result & (allowed ? allowed : DISCONNECTED)))
		violation("the %s ends with result %u, not %u", name, result, allowed);
	if (result == DISCONNECTED && other(side)->result == DISCONNECTED)
		check_done(side, name);
}

static void check_side_cm_empty(const struct side *side, const char *name)
{
	const struct soft_cm *cm = soft_of(side->transport)->cm;

	for (unsigned index = 0; index < CM_INDEXES; index++)
		if (cm->tables[index].count)
			violation("the %s keeps %zu connections", name, cm->tables[index].count);
	if (cm->half_open || cm->orphans || cm->timewait.count || cm->rep_sent.count)
		violation("the %s counts closed connections: %u half open, %u orphans, %u in timewait", name,
			  cm->half_open, cm->orphans, cm->timewait.count);
}

static void close_side(struct side *side)
{
	endpoint_destroy(side->endpoint);
	region_destroy(side->local);
	region_destroy(side->inbox);
	region_destroy(side->open);
	network_run_due();
}

void scenario_run(const struct scenario *scenario, struct choices *choices)
{
	static struct testbed testbed;

	memset(&testbed, 0, offsetof(struct testbed, errors));
	testbed.scenario = scenario;
	testbed.choices = choices;
	testbed.errors.count = 0;
	testbed.log = network_log(&testbed.errors);
	testbed_open(&testbed);
	while (!has_ended(&testbed) || testbed.held_count) {
		if (has_ended(&testbed)) {
			/* Late packets have no effect. */
			testbed.finishing = true;
			while (testbed.held_count)
				deliver(testbed.held, &testbed.held_count, 0);
			network_run_due();
		} else {
			run_step(&testbed);
		}
	}
	check_result(&testbed.client, scenario->client_result, "client");
	check_result(&testbed.server, scenario->server_results, "server");
	loop_timer_stop(&testbed.receive_timer);
	close_side(&testbed.client);
	close_side(&testbed.server);
	network->intercept = NULL;
	network_advance(TIMEWAIT_TIME, UINT32_MAX);
	check_side_cm_empty(&testbed.client, "client");
	check_side_cm_empty(&testbed.server, "server");
	transport_close(testbed.client.transport);
	transport_close(testbed.server.transport);
	network_close();
}

const struct scenario *scenario_next(const struct scenario *scenario)
{
	if (!scenario)
		return scenarios;
	return ++scenario < scenarios + sizeof(scenarios) / sizeof(scenarios[0]) ? scenario : NULL;
}

const struct scenario *scenario_find(const char *name)
{
	const struct scenario *scenario = scenario_next(NULL);

	while (scenario && strcmp(scenario->name, name) != 0)
		scenario = scenario_next(scenario);
	return scenario;
}

const char *scenario_name(const struct scenario *scenario)
{
	return scenario->name;
}
