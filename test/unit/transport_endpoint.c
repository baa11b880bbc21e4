/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=loop_phase_start,--wrap=loop_timer_stop,--wrap=clock_gettime */
/* Endpoint states and errors, the same for each backend, with a fake backend. */
#include "test/unit/unit.h"

#include <netinet/in.h>
#include <time.h>

#include "core/clock.h"
#include "transport/backend.h"

/* The last call to the backend, and the result that it returns. Each call takes a nanosecond. */
static const char *called;
static enum outcome result;
static int64_t now = CLOCK_NS_PER_S;
static unsigned destroyed;

static enum outcome fake_create(struct channel *channel, enum endpoint_kind kind,
				const struct endpoint_options *options, struct endpoint **endpoint)
{
	if (result)
		return result;
	*endpoint = calloc(1, sizeof(**endpoint));
	endpoint_initialise(*endpoint, channel, kind, options);
	return OUTCOME_OK;
}

static void fake_destroy(struct endpoint *endpoint)
{
	destroyed++;
}

#define FAKE(name, ...)                                                                                                \
	static enum outcome fake_##name(struct endpoint *endpoint __VA_ARGS__)                                         \
	{                                                                                                              \
		(void)endpoint;                                                                                        \
		called = #name;                                                                                        \
		now++;                                                                                                 \
		return result;                                                                                         \
	}
FAKE(listen)
FAKE(resolve)
FAKE(connect, , const void *data, size_t length)
FAKE(accept, , const void *data, size_t length)
FAKE(disconnect)
FAKE(join)
FAKE(create_qp)
FAKE(post, , const struct work *work, size_t count)

static const struct backend backend = {
	.name = "fake",
	.endpoint_create = fake_create,
	.endpoint_destroy = fake_destroy,
	.listen = fake_listen,
	.resolve = fake_resolve,
	.connect = fake_connect,
	.accept = fake_accept,
	.disconnect = fake_disconnect,
	.join = fake_join,
	.create_qp = fake_create_qp,
	.post = fake_post,
};

/* The only timer, and the clock. */
static struct {
	const struct loop_timer *started;
	bool running;
	int64_t nanoseconds;
	loop_callback *callback;
	void *context;
} timer;

void __wrap_loop_phase_start(struct loop *loop, struct loop_timer *started, int64_t nanoseconds,
			     loop_callback *callback, void *context)
{
	timer.started = started;
	timer.running = true;
	timer.nanoseconds = nanoseconds;
	timer.callback = callback;
	timer.context = context;
}

void __wrap_loop_timer_stop(struct loop_timer *stopped)
{
	if (stopped == timer.started)
		timer.running = false;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	*time = clock_timespec(now);
	return 0;
}

static enum error_kind last_kind; /* of the errors of events */

static const struct log log_ = { .name = "tool" };
static struct transport transport = { .backend = &backend, .log = &log_ };
static struct channel channel = { .transport = &transport };

/* The command's events and completions. */
static struct {
	unsigned events, completions;
	struct endpoint_event event;
	struct completion completion;
} reported;

static void on_event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	assert_ptr_equal(context, &reported);
	reported.events++;
	reported.event = *event;
	last_kind = endpoint->transport->error.kind;
	log_report(&log_, &endpoint->transport->error);
	error_clear(&endpoint->transport->error);
}

static void on_completion(void *context, struct endpoint *endpoint, const struct completion *completion)
{
	reported.completions++;
	reported.completion = *completion;
	log_report(&log_, &endpoint->transport->error);
	error_clear(&endpoint->transport->error);
}

static const struct endpoint_handlers handlers = { .event = on_event, .completion = on_completion };
static struct capture capture;

static struct endpoint *create(enum endpoint_kind kind, const struct path_options *path)
{
	const struct endpoint_options options = { .timeout = 5 * CLOCK_NS_PER_S, .path = path };
	struct endpoint *endpoint;

	result = OUTCOME_OK;
	called = "";
	destroyed = 0;
	timer.running = false;
	memset(&reported, 0, sizeof(reported));
	assert_int_equal(endpoint_create(kind, &channel, &options, &handlers, &reported, &endpoint), OUTCOME_OK);
	strcpy(endpoint->name, "peer");
	capture_begin(&capture);
	return endpoint;
}

/* Returns the text written to stderr. */
static const char *finish(struct endpoint *endpoint)
{
	log_report(&log_, &transport.error); /* of the last call */
	error_clear(&transport.error);
	endpoint_destroy(endpoint);
	endpoint_destroy(endpoint);
	assert_int_equal(destroyed, 1);
	assert_false(timer.running);
	free(endpoint);
	return capture_end(&capture);
}

static int create_loop(void **state)
{
	transport.loop = loop_create();
	return !transport.loop;
}

static int destroy_loop(void **state)
{
	loop_destroy(transport.loop);
	return 0;
}

#define STATES (ENDPOINT_DESTROYED + 1)

/* For each state its successors, besides FAILED and DESTROYED, and whether it has a deadline. */
static const struct {
	enum endpoint_state next[3];
	bool has_deadline;
} states[STATES] = {
	[ENDPOINT_IDLE] = { { ENDPOINT_RESOLVING_ADDRESS, ENDPOINT_LISTENING, ENDPOINT_REQUESTED }, false },
	[ENDPOINT_RESOLVING_ADDRESS] = { { ENDPOINT_ADDRESS_RESOLVED }, true },
	[ENDPOINT_ADDRESS_RESOLVED] = { { ENDPOINT_RESOLVING_ROUTE, ENDPOINT_JOINING }, false },
	[ENDPOINT_RESOLVING_ROUTE] = { { ENDPOINT_ROUTE_RESOLVED }, true },
	[ENDPOINT_ROUTE_RESOLVED] = { { ENDPOINT_CONNECTING }, false },
	[ENDPOINT_CONNECTING] = { { ENDPOINT_ESTABLISHED }, true },
	[ENDPOINT_REQUESTED] = { { ENDPOINT_ACCEPTING }, false },
	[ENDPOINT_ACCEPTING] = { { ENDPOINT_ESTABLISHED }, true },
	[ENDPOINT_ESTABLISHED] = { { ENDPOINT_DISCONNECTING, ENDPOINT_DISCONNECTED }, false },
	[ENDPOINT_DISCONNECTING] = { { ENDPOINT_DISCONNECTED }, true },
	[ENDPOINT_JOINING] = { { ENDPOINT_JOINED }, true },
	[ENDPOINT_JOINED] = { { ENDPOINT_IDLE }, false },
};

static bool is_allowed(enum endpoint_state from, enum endpoint_state to)
{
	if (to == ENDPOINT_DESTROYED)
		return true;
	if (to == ENDPOINT_FAILED)
		return from < ENDPOINT_FAILED;
	for (size_t index = 0; index < LENGTH(states[from].next); index++)
		if (to != ENDPOINT_IDLE && states[from].next[index] == to)
			return true;
	return false;
}

TEST(state_transitions, create_loop, destroy_loop)
{
	for (enum endpoint_state from = 0; from < STATES; from++)
		for (enum endpoint_state to = 0; to < STATES; to++) {
			struct endpoint *endpoint = create(ENDPOINT_CONNECTION, NULL);
			bool allowed = is_allowed(from, to);

			endpoint->state = from;
			assert_int_equal(endpoint_enter(endpoint, to), allowed);
			assert_int_equal(endpoint->state, allowed ? to : from);
			assert_int_equal(timer.running, allowed && states[to].has_deadline);
			if (timer.running)
				assert_int_equal(timer.nanoseconds, 5 * CLOCK_NS_PER_S);
			endpoint->state = ENDPOINT_IDLE;
			if (allowed)
				assert_string_equal(finish(endpoint), "");
			else
				assert_non_null(strstr(finish(endpoint), "defect"));
		}
}

static bool was_connected(enum endpoint_state state)
{
	return state == ENDPOINT_ESTABLISHED || state == ENDPOINT_DISCONNECTING || state == ENDPOINT_DISCONNECTED ||
	       state == ENDPOINT_JOINED || state == ENDPOINT_LISTENING;
}

static void enter(struct endpoint *endpoint, enum endpoint_state state)
{
	for (enum endpoint_state from = 0; from < STATES; from++)
		if (is_allowed(from, state))
			endpoint->state = from;
	assert_true(endpoint_enter(endpoint, state));
}

static void loop_is_stopped(void *loop)
{
	loop_stop(loop);
}

/*
 * A state that waits too long fails the endpoint, and so does the run's deadline: same outcome and kind, another
 * reason. While connecting, the kind is ERROR_NO_REPLY. A deadline may be too short for a verdict.
 */
TEST(deadlines, create_loop, destroy_loop)
{
	for (unsigned round = 0; round < 2 * STATES; round++) {
		const enum endpoint_state at = round % STATES;
		const bool of_run = round >= STATES;
		struct endpoint *endpoint;
		char line[256];

		if (round == STATES) {
			loop_deadline_start(transport.loop, CLOCK_NS_PER_MS, loop_is_stopped, transport.loop);
			now += 2 * CLOCK_NS_PER_MS;
			loop_run(transport.loop);
		}
		if (!states[at].has_deadline)
			continue;
		endpoint = create(ENDPOINT_CONNECTION, NULL);
		enter(endpoint, at);
		now += 5 * CLOCK_NS_PER_S;
		timer.callback(timer.context);
		assert_int_equal(reported.events, 1);
		assert_int_equal(reported.event.kind, EVENT_FAILED);
		assert_int_equal(reported.event.outcome, was_connected(at) ? OUTCOME_FAILED : OUTCOME_NO_CONNECTION);
		assert_int_equal(last_kind, at <= ENDPOINT_ACCEPTING ? ERROR_NO_REPLY : ERROR_OTHER);
		assert_int_equal(endpoint->state, ENDPOINT_FAILED);
		snprintf(line, sizeof(line), "tool: peer: %s: %s\n%s", endpoint_state_text(at),
			 of_run ? "deadline of 0.001 s exceeded" : "timed out after 5 s",
			 at == ENDPOINT_ACCEPTING && !of_run
				 ? "tool: hint: requests arrive, answers do not: a firewall or route passes one "
				   "direction only\n"
				 : "");
		assert_string_equal(finish(endpoint), line);
		/* Timeout 0: no deadline. */
		endpoint = create(ENDPOINT_CONNECTION, NULL);
		endpoint->options.timeout = 0;
		enter(endpoint, at);
		assert_false(timer.running);
		finish(endpoint);
	}
	loop_deadline_stop(transport.loop);
}

/* A limit shorter than a round trip looks like silence, at either end, and after a slower connection. */
TEST(limits_are_short, create_loop, destroy_loop)
{
	static const struct {
		enum endpoint_state at;
		int64_t timeout, waited, took; /* ms; took: by the connection */
		int ack_timeout, retry;
		const char *text;
	} rows[] = {
		{ ENDPOINT_CONNECTING, 150, 150, 0, PATH_UNSET, PATH_UNSET,
		  "connecting: timed out after 0.15 s\ntool: hint: gave up after 150 ms: this timeout may be shorter "
		  "than a round trip\n" },
		{ ENDPOINT_CONNECTING, 1000, 1000, 0, PATH_UNSET, PATH_UNSET, "connecting: timed out after 1 s\n" },
		{ ENDPOINT_CONNECTING, 5000, 150, 0, PATH_UNSET, PATH_UNSET, "connecting: timed out after 5 s\n" },
		{ ENDPOINT_ACCEPTING, 5000, 50, 0, PATH_UNSET, PATH_UNSET,
		  "accepting: timed out after 5 s\ntool: hint: requests arrive, answers do not: a firewall or route "
		  "passes one direction only; gave up after 50.0 ms: the peer's timeout may be "
		  "shorter than a round trip\n" },
		{ ENDPOINT_DISCONNECTING, 350, 350, 200, PATH_UNSET, PATH_UNSET,
		  "disconnecting: timed out after 0.35 s; connecting took 200 ms: try a longer timeout\n" },
		{ ENDPOINT_DISCONNECTING, 400, 400, 200, PATH_UNSET, PATH_UNSET,
		  "disconnecting: timed out after 0.4 s\n" },
		{ ENDPOINT_DISCONNECTING, 5000, 5000, 200, 8, 0,
		  "disconnecting: timed out after 5 s; connecting took 200 ms: try a longer ACK timeout, or more "
		  "retries\n" },
		{ ENDPOINT_DISCONNECTING, 5000, 5000, 200, 18, 0, "disconnecting: timed out after 5 s\n" },
		{ ENDPOINT_DISCONNECTING, 5000, 5000, 200, 16, 1, "disconnecting: timed out after 5 s\n" },
		{ ENDPOINT_DISCONNECTING, 5000, 5000, 200, 0, 0, "disconnecting: timed out after 5 s\n" },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct path_options path = PATH_OPEN;
		struct endpoint *endpoint = create(ENDPOINT_CONNECTION, &path);
		char line[256];

		path.ack_timeout = rows[i].ack_timeout;
		path.retry = rows[i].retry;
		endpoint->options.timeout = rows[i].timeout * CLOCK_NS_PER_MS;
		if (rows[i].took) {
			enter(endpoint, ENDPOINT_CONNECTING);
			now += rows[i].took * CLOCK_NS_PER_MS;
			endpoint_established(endpoint, NULL, 0);
		}
		enter(endpoint, rows[i].at);
		now += rows[i].waited * CLOCK_NS_PER_MS;
		timer.callback(timer.context);
		snprintf(line, sizeof(line), "tool: peer: %s", rows[i].text);
		assert_string_equal(finish(endpoint), line);
	}
}

TEST(failure_is_reported_once, create_loop, destroy_loop)
{
	struct endpoint *endpoint = create(ENDPOINT_CONNECTION, NULL);

	endpoint->state = ENDPOINT_ESTABLISHED;
	endpoint_fail(endpoint, OUTCOME_INTERNAL);
	assert_int_equal(endpoint->state, ENDPOINT_FAILED);
	assert_int_equal(reported.event.outcome, OUTCOME_INTERNAL);
	endpoint_fail(endpoint, OUTCOME_FAILED);
	endpoint_rejected(endpoint, (const uint8_t *)"no", 2);
	endpoint_established(endpoint, NULL, 0);
	assert_int_equal(reported.events, 1);
	endpoint_destroy(endpoint);
	endpoint_fail(endpoint, OUTCOME_FAILED);
	endpoint_deliver(endpoint, &(struct endpoint_event){ .kind = EVENT_DISCONNECTED });
	assert_int_equal(reported.events, 1);
	assert_string_equal(finish(endpoint), "");
}

TEST(reject_texts, create_loop, destroy_loop)
{
	char text[ENDPOINT_REJECT_TEXT_SIZE], longest[PRIVATE_DATA_MAX + 40], expected[sizeof(longest)];

	assert_string_equal(endpoint_reject_text(NULL, 10, text), "");
	assert_string_equal(endpoint_reject_text((const uint8_t *)"", 1, text), "");
	assert_string_equal(endpoint_reject_text((const uint8_t *)"busy", 0, text), "");
	assert_string_equal(endpoint_reject_text((const uint8_t *)"busy", 3, text), ": \"bus\"");
	assert_string_equal(endpoint_reject_text((const uint8_t *)"bu\nsy", 5, text), ": \"bu\"");
	memset(longest, 'x', sizeof(longest));
	snprintf(expected, sizeof(expected), ": \"%.*s\"", PRIVATE_DATA_MAX, longest);
	assert_string_equal(endpoint_reject_text((const uint8_t *)longest, sizeof(longest), text), expected);
}

/* A connection reports completions while established, a group until it failed. The first message establishes an
 * endpoint that accepts or connects. */
TEST(completions_in_every_state, create_loop, destroy_loop)
{
	static const enum endpoint_kind kinds[] = { ENDPOINT_CONNECTION, ENDPOINT_GROUP };

	for (size_t kind = 0; kind < LENGTH(kinds); kind++)
		for (unsigned status = 0; status <= COMPLETION_RNR_EXCEEDED + 1; status++)
			for (enum endpoint_state at = 0;
			     at < STATES && (completion_status_text(status) || status == COMPLETION_OTHER); at++) {
				const struct completion completion = { .kind = WORK_SEND, .tag = 5, .status = status };
				struct endpoint *endpoint = create(kinds[kind], NULL);
				bool establishes = (at == ENDPOINT_ACCEPTING || at == ENDPOINT_CONNECTING) && !status;
				bool delivered = kinds[kind] == ENDPOINT_GROUP
							 ? at < ENDPOINT_FAILED
							 : establishes || at == ENDPOINT_ESTABLISHED;

				endpoint->state = at;
				endpoint_complete(endpoint, &completion, "completion status", 12,
						  status == COMPLETION_OTHER ? "words" : NULL);
				assert_int_equal(reported.completions, delivered);
				assert_int_equal(reported.events, establishes);
				assert_int_equal(endpoint->state, establishes ? ENDPOINT_ESTABLISHED : at);
				if (delivered)
					assert_int_equal(reported.completion.tag, 5);
				endpoint->state = ENDPOINT_IDLE;
				if (!delivered || !status)
					assert_string_equal(finish(endpoint), "");
				else
					assert_non_null(strstr(finish(endpoint),
							       status == COMPLETION_OTHER
								       ? "send failed: words (completion status 12)"
								       : "(completion status 12)"));
			}
}

/* At most ten log lines in ten seconds about requests that never became connections. Other lines are not limited. */
TEST(request_log_lines_are_limited, create_loop, destroy_loop)
{
	struct endpoint *endpoint = create(ENDPOINT_CONNECTION, NULL);

	transport.request_log_limit = (struct log_limit){ 0 };
	for (unsigned period = 0; period < 3; period++) {
		endpoint->state = period == 1 ? ENDPOINT_LISTENING : ENDPOINT_ACCEPTING;
		for (unsigned count = 0; count < 30; count++)
			assert_int_equal(endpoint_take_log_line(endpoint), count < 10);
		endpoint->state = ENDPOINT_ESTABLISHED;
		assert_true(endpoint_take_log_line(endpoint));
		endpoint->state = ENDPOINT_CONNECTING;
		assert_true(endpoint_take_log_line(endpoint));
		now += 10 * CLOCK_NS_PER_S - 1;
		endpoint->state = ENDPOINT_ACCEPTING;
		assert_false(endpoint_take_log_line(endpoint));
		now++;
	}
	endpoint->state = ENDPOINT_IDLE;
	finish(endpoint);
}

static enum outcome resolve_address(struct endpoint *endpoint)
{
	const struct address to = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 1 }, .port = 7 };

	return endpoint_resolve(endpoint, NULL, &to);
}

static enum outcome listen_address(struct endpoint *endpoint)
{
	const struct address at = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 2 }, .port = 9 };

	return endpoint_listen(endpoint, &at);
}

static enum outcome connect_empty(struct endpoint *endpoint)
{
	return endpoint_connect(endpoint, NULL, 0);
}

static enum outcome accept_empty(struct endpoint *endpoint)
{
	return endpoint_accept(endpoint, NULL, 0);
}

static enum outcome join_group(struct endpoint *endpoint)
{
	return endpoint_join(endpoint);
}

/* The time of the event that ends the wait in a state, which lasts that long. */
static int64_t took(struct endpoint *endpoint, enum event_kind kind, int64_t wait)
{
	now += wait;
	endpoint_deliver_kind(endpoint, kind);
	assert_int_equal(reported.event.kind, kind);
	return reported.event.took;
}

/* A step lasts from its call to its event; the route step, without a call, from its state. */
TEST(steps_are_timed, create_loop, destroy_loop)
{
	struct endpoint *endpoint = create(ENDPOINT_CONNECTION, NULL);

	assert_int_equal(resolve_address(endpoint), OUTCOME_OK);
	assert_int_equal(took(endpoint, EVENT_ADDRESS_RESOLVED, 10), 11);
	now += 1000;
	endpoint_enter(endpoint, ENDPOINT_RESOLVING_ROUTE);
	assert_int_equal(took(endpoint, EVENT_ROUTE_RESOLVED, 20), 20);
	now += 1000;
	endpoint->qpn = 1;
	assert_int_equal(connect_empty(endpoint), OUTCOME_OK);
	assert_int_equal(took(endpoint, EVENT_ESTABLISHED, 30), 31);
	now += 1000;
	assert_int_equal(endpoint_disconnect(endpoint), OUTCOME_OK);
	assert_int_equal(took(endpoint, EVENT_DISCONNECTED, 40), 41);
	finish(endpoint);
	endpoint = create(ENDPOINT_CONNECTION, NULL);
	endpoint->qpn = 1;
	endpoint->state = ENDPOINT_REQUESTED;
	assert_int_equal(accept_empty(endpoint), OUTCOME_OK);
	assert_int_equal(took(endpoint, EVENT_ESTABLISHED, 50), 51);
	/* This end did not request the peer's disconnect. */
	assert_int_equal(took(endpoint, EVENT_DISCONNECTED, 60), 0);
	finish(endpoint);
}

static uint8_t memory[100];
static const struct region region = { .memory = memory, .length = sizeof(memory) };

static enum outcome post_receive(struct endpoint *endpoint)
{
	return endpoint_post(endpoint, &(struct work){ .kind = WORK_RECEIVE, .region = &region }, 1);
}

#define BIT(name) (1u << ENDPOINT_##name)

/* Each call reaches the backend, from every state in which it is allowed, and changes the state only if that succeeds.
 */
TEST(calls_reach_backend, create_loop, destroy_loop)
{
	static const struct {
		const char *name;
		enum outcome (*call)(struct endpoint *endpoint);
		unsigned kinds, states;
		enum endpoint_state after; /* IDLE: unchanged */
		bool queue;
	} rows[] = {
		{ "listen", listen_address, BIT(LISTENER), BIT(IDLE), ENDPOINT_LISTENING, false },
		{ "resolve", resolve_address, BIT(CONNECTION) | BIT(GROUP), BIT(IDLE), ENDPOINT_RESOLVING_ADDRESS,
		  false },
		{ "create_qp", endpoint_create_qp, BIT(CONNECTION) | BIT(GROUP),
		  BIT(ADDRESS_RESOLVED) | BIT(RESOLVING_ROUTE) | BIT(ROUTE_RESOLVED) | BIT(REQUESTED), ENDPOINT_IDLE,
		  false },
		{ "connect", connect_empty, BIT(CONNECTION), BIT(ROUTE_RESOLVED), ENDPOINT_CONNECTING, true },
		{ "accept", accept_empty, BIT(CONNECTION), BIT(REQUESTED), ENDPOINT_ACCEPTING, true },
		{ "disconnect", endpoint_disconnect, BIT(CONNECTION), BIT(ESTABLISHED), ENDPOINT_DISCONNECTING, true },
		{ "join", join_group, BIT(GROUP), BIT(ADDRESS_RESOLVED), ENDPOINT_JOINING, true },
		{ "post", post_receive, BIT(CONNECTION) | BIT(GROUP), ~(BIT(IDLE) | BIT(LISTENING) | BIT(DESTROYED)),
		  ENDPOINT_IDLE, true },
	};

	for (size_t row = 0; row < LENGTH(rows); row++)
		for (unsigned round = 0; round < 2 * ENDPOINT_DESTROYED * (ENDPOINT_GROUP + 1); round++) {
			const unsigned kind = round / 2 / ENDPOINT_DESTROYED, at = round / 2 % ENDPOINT_DESTROYED;
			const bool changes = round % 2 == 0 && rows[row].after != ENDPOINT_IDLE;
			struct endpoint *endpoint;

			if (!(rows[row].kinds >> kind & 1 && rows[row].states >> at & 1))
				continue;
			endpoint = create((enum endpoint_kind)kind, NULL);
			endpoint->state = (enum endpoint_state)at;
			endpoint->qpn = rows[row].queue;
			result = round % 2 ? OUTCOME_INTERNAL : OUTCOME_OK;
			assert_int_equal(rows[row].call(endpoint), result);
			assert_string_equal(called, rows[row].name);
			assert_int_equal(endpoint->state, changes ? rows[row].after : at);
			if (rows[row].call == listen_address)
				assert_string_equal(endpoint->name, "10.0.0.2:9");
			if (rows[row].call == resolve_address && kind == ENDPOINT_CONNECTION)
				assert_string_equal(endpoint->name, "10.0.0.1:7");
			timer.running = false;
			assert_string_equal(finish(endpoint), "");
		}
}

/* The untried remedies of a client's connection to another host over RoCE. */
TEST(untried_remedies_are_named, create_loop, destroy_loop)
{
	static const struct {
		const char *local, *peer;
		int64_t dscp;
		enum fabric fabric;
		enum endpoint_state state;
		unsigned untried;
	} rows[] = {
		{ "10.0.0.1", "10.0.0.2", PATH_UNSET, FABRIC_ROCE, ENDPOINT_CONNECTING, UNTRIED_CLASS | UNTRIED_PATH },
		{ "10.0.0.1", "10.0.0.2", 0, FABRIC_ROCE, ENDPOINT_CONNECTING, UNTRIED_PATH },
		{ "10.0.0.1", "10.0.0.1", PATH_UNSET, FABRIC_ROCE, ENDPOINT_CONNECTING, 0 },
		{ "127.0.0.2", "127.0.0.1", PATH_UNSET, FABRIC_ROCE, ENDPOINT_CONNECTING, 0 },
		{ "10.0.0.1", "10.0.0.2", PATH_UNSET, FABRIC_IWARP, ENDPOINT_CONNECTING, 0 },
		{ "10.0.0.1", "10.0.0.2", PATH_UNSET, FABRIC_ROCE, ENDPOINT_ACCEPTING, 0 },
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct path_options path = PATH_OPEN;
		struct endpoint *endpoint = create(ENDPOINT_CONNECTION, &path);
		struct domain domain = { .fabric = rows[row].fabric };

		path.dscp = rows[row].dscp;
		endpoint->domain = &domain;
		endpoint->state = rows[row].state;
		address_parse(rows[row].local, ADDRESS_FORMAT_IP, &endpoint->local);
		address_parse(rows[row].peer, ADDRESS_FORMAT_IP, &endpoint->peer);
		endpoint->transport->untried = 0;
		endpoint_established(endpoint, NULL, 0);
		assert_int_equal(endpoint->transport->untried, rows[row].untried);
		finish(endpoint);
	}
}

TEST(type_of_service, create_loop, destroy_loop)
{
	struct path_options path = PATH_OPEN;
	struct endpoint *endpoint = create(ENDPOINT_CONNECTION, &path);

	assert_int_equal(path_type_of_service(endpoint->options.path), PATH_UNSET);
	path.type_of_service = 0x61;
	assert_int_equal(path_type_of_service(endpoint->options.path), 0x61);
	path.type_of_service = PATH_UNSET;
	path.dscp = 46;
	assert_int_equal(path_type_of_service(endpoint->options.path), 0xb8);
	finish(endpoint);
	endpoint = create(ENDPOINT_CONNECTION, NULL);
	assert_int_equal(path_type_of_service(endpoint->options.path), PATH_UNSET);
	finish(endpoint);
}
