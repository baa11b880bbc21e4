/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A command on a backend that only records its calls, with the real endpoint states. The test plays the device and the
 * peer. Before including this it defines FAKE_FIELDS: its members of struct fake, at least the command's options.
 */
#pragma once

#include "test/unit/figures.h"

#include "cmd/command.h"
#include "cmd/hello.h"
#include "test/unit/fake_clock.h"
#include "transport/backend.h"

enum {
	ENDPOINTS_MAX = 80,
	RECEIVES_MAX = 16,
	FAKE_ADDRESSES = 0x5000 /* a region's remote address minus its memory's address */
};

/* An endpoint, and the work posted on it. */
struct fake_endpoint {
	struct endpoint base; /* first, so that one can be had from the other */
	struct work receives[RECEIVES_MAX];
	size_t first_receive;
	size_t receive_count;
	struct work sends[16]; /* of the last post, except receives */
	size_t send_count;
	bool disconnected;
	bool rejected;
	struct hello hello;		  /* sent with connect or accept */
	char rejection[PRIVATE_DATA_MAX]; /* its rejection's private data */
};

/* The running test's state. */
static struct fake {
	struct transport transport;
	struct channel channels[2];
	size_t channel_count;
	struct domain domain;
	struct fake_endpoint *endpoints[ENDPOINTS_MAX];
	size_t endpoint_count;
	struct run run;
	struct output printed; /* standard output, or the test's choice */
	struct errors reported;
	const struct command *command;
	void *state;
	int64_t interval_began;
	enum hello_tool tool;
	struct capture errors;
	unsigned regions_created, regions_destroyed;
	unsigned regions_with[REGION_READ_SINK + 1]; /* number created with these rights */
	struct {
		enum outcome channel, endpoint, resolve, create_qp, connect, accept, disconnect, migrate;
	} next;			      /* the result of the next call */
	unsigned char hello_other_by; /* how far the version of a client's hello is from ours */
	bool dropped, sent_before_drop;
	bool begins; /* an endpoint listens or resolves */
	bool time_is_over;
	FAKE_FIELDS
	char arguments[256];
	const char *usual; /* arguments of every run */
	const char *cause; /* endpoint_timeout_cause()'s; NULL: none */
	uint32_t mtu;	   /* of each path; 0: unknown */
} fake;

static inline struct fake_endpoint *of(struct endpoint *endpoint)
{
	return (struct fake_endpoint *)endpoint;
}

static inline enum outcome once(enum outcome *next)
{
	enum outcome outcome = *next;

	*next = OUTCOME_OK;
	return outcome;
}

static inline enum outcome fake_channel_create(struct transport *transport, struct channel **channel)
{
	if (fake.next.channel)
		return once(&fake.next.channel);
	assert_true(fake.channel_count < LENGTH(fake.channels));
	*channel = &fake.channels[fake.channel_count++];
	(*channel)->transport = transport;
	return OUTCOME_OK;
}

static inline enum outcome fake_region_create(struct domain *domain, size_t length, unsigned access,
					      struct region **region)
{
	assert_true(access < LENGTH(fake.regions_with));
	fake.regions_with[access]++;
	fake.regions_created++;
	*region = calloc(1, sizeof(**region));
	**region = (struct region){ .domain = domain, .memory = calloc(1, length), .length = length, .remote_key = 7 };
	(*region)->remote_address = (uintptr_t)(*region)->memory + FAKE_ADDRESSES;
	return OUTCOME_OK;
}

static inline void fake_region_destroy(struct region *region)
{
	fake.regions_destroyed++;
	free(region->memory);
	free(region);
}

static inline enum outcome fake_endpoint_create(struct channel *channel, enum endpoint_kind kind,
						const struct endpoint_options *options, struct endpoint **endpoint)
{
	struct fake_endpoint *created;

	if (fake.next.endpoint)
		return once(&fake.next.endpoint);
	created = calloc(1, sizeof(*created));
	assert_true(fake.endpoint_count < ENDPOINTS_MAX);
	fake.endpoints[fake.endpoint_count++] = created;
	endpoint_initialise(&created->base, channel, kind, options);
	*endpoint = &created->base;
	return OUTCOME_OK;
}

static inline void fake_endpoint_destroy(struct endpoint *endpoint)
{
	loop_timer_stop(&endpoint->timer);
}

static inline void fake_begins(const struct endpoint *endpoint)
{
	fake.begins = true;
	loop_stop(endpoint->transport->loop);
}

static inline enum outcome fake_listen(struct endpoint *endpoint)
{
	fake_begins(endpoint);
	return OUTCOME_OK;
}

static inline enum outcome fake_resolve(struct endpoint *endpoint)
{
	fake_begins(endpoint);
	return once(&fake.next.resolve);
}

static inline enum outcome fake_create_qp(struct endpoint *endpoint)
{
	endpoint->qpn = (uint32_t)fake.endpoint_count + 1;
	if (fake.next.create_qp)
		error_set(&endpoint->transport->error, endpoint->name, "no queue pair left");
	return once(&fake.next.create_qp);
}

static inline enum outcome fake_connect(struct endpoint *endpoint, const void *data, size_t length)
{
	assert_true(hello_read(data, length, fake.tool, &of(endpoint)->hello));
	return once(&fake.next.connect);
}

static inline enum outcome fake_accept(struct endpoint *endpoint, const void *data, size_t length)
{
	assert_true(hello_read(data, length, fake.tool, &of(endpoint)->hello));
	if (fake.next.accept)
		error_set(&endpoint->transport->error, endpoint->name, "it cannot be accepted");
	return once(&fake.next.accept);
}

static inline void fake_reject(struct endpoint *endpoint, const void *data, size_t length)
{
	assert_true(length < PRIVATE_DATA_MAX);
	of(endpoint)->rejected = true;
	memcpy(of(endpoint)->rejection, data, length);
}

static inline enum outcome fake_disconnect(struct endpoint *endpoint)
{
	of(endpoint)->disconnected = true;
	return once(&fake.next.disconnect);
}

static inline enum outcome fake_post(struct endpoint *base, const struct work *work, size_t count)
{
	struct fake_endpoint *endpoint = of(base);

	if (work->kind == WORK_RECEIVE) {
		for (size_t i = 0; i < count; i++) {
			assert_true(endpoint->receive_count < RECEIVES_MAX);
			endpoint->receives[(endpoint->first_receive + endpoint->receive_count++) % RECEIVES_MAX] =
				work[i];
		}
		return OUTCOME_OK;
	}
	assert_true(count <= LENGTH(endpoint->sends));
	memcpy(endpoint->sends, work, count * sizeof(*work));
	endpoint->send_count = count;
	return OUTCOME_OK;
}

static inline enum outcome fake_join(struct endpoint *endpoint)
{
	return OUTCOME_OK;
}

static inline enum outcome fake_migrate(struct endpoint *endpoint, struct channel *channel)
{
	return once(&fake.next.migrate);
}

/* The kernel's tables, which do not have these peers. */
bool __wrap_route_cause(const struct address *local, const struct address *peer, char text[])
{
	*text = '\0';
	return false;
}

static inline void fake_timeout_cause(const struct endpoint *endpoint, char text[])
{
	if (fake.cause)
		strcpy(text, fake.cause);
}

static inline void fake_path(const struct endpoint *endpoint, struct path *path)
{
	(void)endpoint;
	path->mtu = fake.mtu;
}

static const struct backend fake_backend = {
	.name = "fake",
	.channel_create = fake_channel_create,
	.region_create = fake_region_create,
	.region_destroy = fake_region_destroy,
	.endpoint_create = fake_endpoint_create,
	.endpoint_destroy = fake_endpoint_destroy,
	.listen = fake_listen,
	.resolve = fake_resolve,
	.create_qp = fake_create_qp,
	.connect = fake_connect,
	.accept = fake_accept,
	.reject = fake_reject,
	.disconnect = fake_disconnect,
	.post = fake_post,
	.join = fake_join,
	.migrate = fake_migrate,
	.timeout_cause = fake_timeout_cause,
	.path = fake_path,
};

/* Wrapped at link time: a command drops its privileges. */
void __wrap_privileges_drop(const struct log *log, unsigned kept)
{
	fake.dropped = true;
	for (size_t i = 0; i < fake.endpoint_count; i++)
		fake.sent_before_drop |= fake.endpoints[i]->send_count > 0;
}

/* Captures stderr for assert_ended(). */
static inline void fake_create(const struct command *command, enum hello_tool tool)
{
	fake = (struct fake){ .command = command, .tool = tool, .printed.stream = stdout };
	fake.run = (struct run){
		.command = command,
		.loop = loop_create(),
		.log = { .name = command->name, .errors = &fake.reported },
		.output = &fake.printed,
	};
	fake.transport = (struct transport){
		.backend = &fake_backend,
		.loop = fake.run.loop,
		.log = &fake.run.log,
	};
	fake.run.transport = &fake.transport;
	fake.domain = (struct domain){ .transport = &fake.transport, .device = "fake0", .max_message = 1 << 30 };
	capture_begin(&fake.errors);
}

static inline int tear_down(void **state)
{
	for (size_t i = 0; i < fake.endpoint_count; i++)
		free(fake.endpoints[i]);
	loop_destroy(fake.run.loop);
	return 0;
}

/* Runs up to an endpoint that listens or resolves. */
static inline void await_endpoint(void)
{
	while (!fake.begins && !fake.run.ended)
		loop_run(fake.run.loop);
	fake.begins = false;
}

static inline void start(void)
{
	assert_int_equal(fake.command->start(&fake.run, &fake.options, &fake.state), OUTCOME_OK);
	await_endpoint();
}

/* The run has ended with that outcome, and these words on stderr ("": no output). */
static inline void assert_ended(enum outcome outcome, const char *words)
{
	const char *text;

	run_print_verdict(&fake.run);
	fake.command->stop(fake.state);
	text = capture_end(&fake.errors);
	if (*words ? !strstr(text, words) : *text)
		fail_saying("expected \"%s\" on stderr, not: %s", words, text);
	assert_int_equal(fake.run.outcome, outcome);
	assert_int_equal(fake.regions_destroyed, fake.regions_created);
	for (size_t i = 0; i < fake.endpoint_count; i++)
		assert_int_equal(fake.endpoints[i]->base.state, ENDPOINT_DESTROYED);
}

static inline void complete(struct endpoint *endpoint, enum work_kind kind, uint32_t tag, uint32_t length)
{
	struct completion completion = { .kind = kind, .tag = tag, .length = length };

	endpoint_complete(endpoint, &completion, NULL, 0, NULL);
}

/* The device uses the receive posted first. */
static inline struct work next_receive(struct endpoint *endpoint)
{
	struct fake_endpoint *taker = of(endpoint);
	struct work receive = taker->receives[taker->first_receive];

	assert_true(taker->receive_count > 0);
	taker->first_receive = (taker->first_receive + 1) % RECEIVES_MAX;
	taker->receive_count--;
	return receive;
}

/* Takes a client's endpoint up to its connection request. */
static inline void resolved(struct endpoint *endpoint)
{
	if (endpoint->state == ENDPOINT_RESOLVING_ADDRESS) {
		endpoint->domain = &fake.domain;
		endpoint_deliver_kind(endpoint, EVENT_ADDRESS_RESOLVED);
		endpoint_enter(endpoint, ENDPOINT_RESOLVING_ROUTE);
	}
	endpoint_deliver_kind(endpoint, EVENT_ROUTE_RESOLVED);
}

/* server: the accept's hello, or NULL for a stock server. */
static inline struct endpoint *connect_endpoint(struct endpoint *endpoint, const struct hello *server)
{
	uint8_t bytes[HELLO_SIZE];

	resolved(endpoint);
	assert_int_equal(endpoint->state, ENDPOINT_CONNECTING);
	if (server)
		hello_write(server, bytes);
	endpoint_established(endpoint, server ? bytes : NULL, server ? sizeof(bytes) : 0);
	return endpoint;
}

/* A client sends a request, with a hello or as a stock client. */
static inline struct endpoint *request_connection(const struct hello *hello)
{
	struct endpoint *listener = &fake.endpoints[0]->base, *request;
	uint8_t bytes[HELLO_SIZE];

	fake_endpoint_create(listener->channel, ENDPOINT_CONNECTION, &listener->options, &request);
	request->domain = &fake.domain;
	request->peer = (struct address){ .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 2 }, .port = 4242 };
	endpoint_set_name(request);
	endpoint_enter(request, ENDPOINT_REQUESTED);
	if (hello) {
		hello_write(hello, bytes);
		bytes[4] ^= fake.hello_other_by;
	}
	endpoint_deliver(listener, &(struct endpoint_event){
					   .kind = EVENT_REQUEST,
					   .request = request,
					   .private_data = hello ? bytes : NULL,
					   .private_length = hello ? sizeof(bytes) : 0,
				   });
	return request;
}

static inline void disconnect(struct endpoint *endpoint)
{
	endpoint_deliver_kind(endpoint, EVENT_DISCONNECTED);
}

/* The next failure's cause. */
static inline void failed_for(struct endpoint *endpoint, enum error_kind kind, const char *cause)
{
	const struct failure failure = { .object = endpoint->name, .phase = "connecting", .kind = kind };

	error_failure(&endpoint->transport->error, &failure, "%s", cause);
}

static inline void absent(struct endpoint *endpoint)
{
	failed_for(endpoint, ERROR_NO_LISTENER, "nobody listens there");
	endpoint_fail(endpoint, OUTCOME_NO_CONNECTION);
}

static inline void assert_reports(const char *words)
{
	assert_reports_since(fake.command->figures(fake.state), NULL, 0, words);
}

/* An interval begins. */
static inline void next_interval(void)
{
	figures_copy(fake.command->figures(fake.state));
	fake.interval_began = clock_now();
}

static inline void assert_reports_interval(const char *words)
{
	struct figures figures = fake.command->figures(fake.state);

	assert_reports_since(figures, figures.before, fake.interval_began, words);
}

static inline void time_is_over(void *context)
{
	fake.time_is_over = true;
	loop_stop(fake.run.loop);
}

/* Or until the run has ended. */
static inline void run_for(int64_t nanoseconds)
{
	struct loop_timer timer = { 0 };

	fake.time_is_over = false;
	loop_timer_start(fake.run.loop, &timer, nanoseconds, time_is_over, NULL);
	while (!fake.time_is_over && !fake.run.ended)
		loop_run(fake.run.loop);
	fake.begins = false;
	loop_timer_stop(&timer);
}

/*
 * ---- runs as words ----
 *
 * A run is a script of words for the ends, the device, the clock and expectations, each followed by a number or a text:
 * "run -c 1; take 0; wait 400; over 0".
 */
struct word {
	const char *name;
	void (*play)(unsigned number, const char *text);
};

/* Begins a word's function. */
#define WORD(name)                                                                                                     \
	static void word_##name(unsigned number, const char *text);                                                    \
	static const struct word name##_word                                                                           \
		__attribute__((used, section("words"), aligned(__alignof__(struct word)))) = { #name, word_##name };   \
	static void word_##name(unsigned number, const char *text)

extern const struct word __start_words[], __stop_words[];

struct script {
	const char *what;
	const char *words;
	enum outcome outcome;
	const char *errors; /* on stderr: all of it, or after "~" a part */
};

/* The command starts, with those arguments after the usual ones. */
WORD(run)
{
	char *argv[32], *rest = NULL;
	uint64_t given;
	int argc = 0;

	snprintf(fake.arguments, sizeof(fake.arguments), "command %s %s", fake.usual, text);
	for (char *word = strtok_r(fake.arguments, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	assert_int_equal(options_parse(fake.command->options, &fake.run.log, argc, argv, &fake.options, &given),
			 OUTCOME_OK);
	start();
}

/* In milliseconds. */
WORD(wait)
{
	run_for(number * CLOCK_NS_PER_MS);
}

WORD(pass)
{
	fake_clock_pass(number * CLOCK_NS_PER_MS);
}

/* Waits until the command connects again. */
WORD(again)
{
	await_endpoint();
}

WORD(interrupt)
{
	fake.command->interrupt(fake.state, INTERRUPTION_SIGNAL);
}

WORD(deadline)
{
	fake.command->interrupt(fake.state, INTERRUPTION_DEADLINE);
}

WORD(running)
{
	assert_false(fake.run.ended);
}

WORD(reports)
{
	assert_reports(text);
}

/* A second in which nothing is counted has a row, or not. */
WORD(rows)
{
	assert_int_equal(fake.command->figures(fake.state).under_way, number);
}

WORD(verdict)
{
	if (!strstr(fake.run.verdict, text))
		fail_saying("%s is not in: %s", text, fake.run.verdict);
}

/* The connection of that number, in order of request. */
static inline struct endpoint *connection(unsigned number)
{
	size_t index = number + (fake.endpoints[0]->base.kind == ENDPOINT_LISTENER);

	assert_true(index < fake.endpoint_count);
	return &fake.endpoints[index]->base;
}

/* The device's features, */
WORD(longest)
{
	fake.domain.max_message = number;
}

WORD(mtu)
{
	fake.mtu = number;
}

/* and the next failure, with its exit code: "next accept 5". */
WORD(next)
{
	const struct {
		const char *name;
		enum outcome *outcome;
	} calls[] = {
		{ "accept", &fake.next.accept },       { "channel", &fake.next.channel },
		{ "create_qp", &fake.next.create_qp }, { "migrate", &fake.next.migrate },
		{ "resolve", &fake.next.resolve },
	};

	for (size_t i = 0; i < LENGTH(calls); i++)
		if (!strncmp(text, calls[i].name, strlen(calls[i].name))) {
			*calls[i].outcome = (enum outcome)atoi(strchr(text, ' '));
			return;
		}
	fail_saying("no call has the name %s", text);
}

/* A connection's events. */
WORD(confirm)
{
	endpoint_established(connection(number), NULL, 0);
}

WORD(nobody)
{
	absent(connection(number));
}

/* The endpoint fails, with that exit code: "fails 0 4". */
WORD(fails)
{
	unsigned outcome;

	assert_int_equal(sscanf(text, "%*u %u", &outcome), 1);
	endpoint_fail(connection(number), (enum outcome)outcome);
}

WORD(listener_fails)
{
	endpoint_fail(&fake.endpoints[0]->base, (enum outcome)number);
}

WORD(leave)
{
	disconnect(connection(number));
}

WORD(stale)
{
	failed_for(connection(number), endpoint_rejection_kind(REJECTED_STALE), "an older connection");
	endpoint_fail(connection(number), OUTCOME_NO_CONNECTION);
}

/* The first one, and that many in all, one after the other: "all_stale 0 3". */
WORD(all_stale)
{
	unsigned count;

	assert_int_equal(sscanf(text, "%*u %u", &count), 1);
	while (count--)
		word_stale(number++, text);
}

/* Over soft a command that is set up drops its privileges, */
WORD(soft)
{
	fake.options.common.transport = "soft";
	fake.run.to_set_up = &fake.options.common;
}

/* which it has done (1), or not. */
WORD(dropped)
{
	assert_int_equal(fake.dropped, number);
}

/* Expectations: nothing was sent, */
WORD(idle)
{
	assert_int_equal(of(connection(number))->send_count, 0);
}

WORD(open)
{
	assert_int_equal(connection(number)->state, ENDPOINT_ESTABLISHED);
	assert_false(of(connection(number))->disconnected);
}

WORD(ending)
{
	assert_int_equal(connection(number)->state, ENDPOINT_DISCONNECTING);
}

WORD(over)
{
	assert_int_equal(connection(number)->state, ENDPOINT_DESTROYED);
}

/* the last requested one is rejected, with that reason, */
WORD(rejected)
{
	const struct fake_endpoint *last = fake.endpoints[fake.endpoint_count - 1];

	assert_true(last->rejected);
	assert_string_equal(last->rejection, text);
	assert_int_equal(last->base.state, ENDPOINT_DESTROYED);
}

/* this many have been made or requested. */
WORD(connections)
{
	assert_int_equal(fake.endpoint_count - (fake.endpoints[0]->base.kind == ENDPOINT_LISTENER), number);
}

static inline void play_word(const char *word)
{
	size_t length = strcspn(word, " ");
	const char *text = word + length + (word[length] == ' ');

	for (const struct word *known = __start_words; known < __stop_words; known++)
		if (strlen(known->name) == length && !memcmp(known->name, word, length)) {
			known->play((unsigned)strtoul(text, NULL, 10), text);
			return;
		}
	fail_saying("\"%s\" is no word", word);
}

static inline void play(const char *words)
{
	char *all = strdup(words), *rest = NULL;

	for (char *word = strtok_r(all, ";", &rest); word; word = strtok_r(NULL, ";", &rest))
		play_word(word + (*word == ' '));
	free(all);
}

static inline void play_runs(const struct script *runs, size_t count, int (*set_up)(void **state),
			     int (*clean_up)(void **state))
{
	for (size_t i = 0; i < count; i++) {
		bool is_part = *runs[i].errors == '~';

		if (i) {
			clean_up(NULL);
			set_up(NULL);
		}
		print_message("# %s\n", runs[i].what);
		play(runs[i].words);
		assert_true(fake.run.ended);
		assert_ended(runs[i].outcome, runs[i].errors + is_part);
		if (!is_part)
			assert_string_equal(fake.errors.text, runs[i].errors);
	}
}
