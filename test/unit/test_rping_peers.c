/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both ends of rping against peers that break the rules, which no stock tool does: through the real life of endpoints
 * and a backend that only writes down what it is asked for. The test plays the device and the peer.
 */
#include "test/unit/unit.h"

#include "cmd/hello.h"
#include "cmd/rping/protocol.h"
#include "cmd/rping/rping.h"
#include "cmd/table.h"
#include "core/payload.h"
#include "transport/backend.h"

enum {
	ENDPOINTS_MOST = 8,
	RECEIVES_MOST = 16
};

/* An endpoint, and what was posted on it. */
struct fake_endpoint {
	struct endpoint base; /* first, so that one can be had from the other */
	struct work receives[RECEIVES_MOST];
	size_t first_receive;
	size_t receive_count;
	struct work sends[4]; /* of the last post that was no receive */
	size_t send_count;
	bool disconnected;
	bool rejected;
};

struct fake {
	struct transport transport;
	struct channel channel;
	struct domain domain;
	struct fake_endpoint *endpoints[ENDPOINTS_MOST];
	size_t endpoint_count;
	struct environment environment;
	struct rping_options options;
	void *state;
	struct capture errors;
	/* What the peer of a server has: memory to be read, and to be written. */
	uint8_t source[256];
	uint8_t sink[256];
};

static struct fake *fake_of(struct endpoint *endpoint)
{
	return (struct fake *)endpoint->transport;
}

static struct fake_endpoint *of(struct endpoint *endpoint)
{
	return (struct fake_endpoint *)endpoint;
}

static enum outcome fake_channel_create(struct transport *transport, struct channel **channel)
{
	*channel = &((struct fake *)transport)->channel;
	return OUTCOME_OK;
}

static enum outcome fake_region_create(struct domain *domain, size_t length, unsigned access, struct region **region)
{
	(void)access;
	*region = calloc(1, sizeof(**region));
	**region = (struct region){ .domain = domain, .memory = calloc(1, length), .length = length, .remote_key = 7 };
	return OUTCOME_OK;
}

static void fake_region_destroy(struct region *region)
{
	free(region->memory);
	free(region);
}

static struct endpoint *add_endpoint(struct fake *fake, enum endpoint_kind kind, const struct endpoint_options *options)
{
	struct fake_endpoint *endpoint = calloc(1, sizeof(*endpoint));

	assert_true(fake->endpoint_count < ENDPOINTS_MOST);
	fake->endpoints[fake->endpoint_count++] = endpoint;
	endpoint_initialise(&endpoint->base, &fake->channel, kind, options);
	return &endpoint->base;
}

static enum outcome fake_endpoint_create(struct channel *channel, enum endpoint_kind kind,
					 const struct endpoint_options *options, struct endpoint **endpoint)
{
	*endpoint = add_endpoint((struct fake *)channel->transport, kind, options);
	return OUTCOME_OK;
}

static void fake_endpoint_destroy(struct endpoint *endpoint)
{
	loop_timer_stop(&endpoint->deadline);
}

static enum outcome fake_listen(struct endpoint *endpoint, const struct address *address)
{
	(void)address;
	loop_stop(endpoint->transport->loop);
	return OUTCOME_OK;
}

static enum outcome fake_resolve(struct endpoint *endpoint, const struct address *source,
				 const struct address *destination)
{
	(void)source;
	(void)destination;
	loop_stop(endpoint->transport->loop);
	return OUTCOME_OK;
}

static enum outcome fake_open_queue(struct endpoint *endpoint)
{
	(void)endpoint;
	return OUTCOME_OK;
}

static enum outcome fake_connect(struct endpoint *endpoint, const void *data, size_t length)
{
	struct hello hello;

	(void)endpoint;
	assert_true(hello_read(data, length, HELLO_RPING, &hello));
	return OUTCOME_OK;
}

static enum outcome fake_reject(struct endpoint *endpoint, const void *data, size_t length)
{
	(void)data;
	(void)length;
	of(endpoint)->rejected = true;
	return OUTCOME_OK;
}

static enum outcome fake_disconnect(struct endpoint *endpoint)
{
	of(endpoint)->disconnected = true;
	return OUTCOME_OK;
}

static enum outcome fake_post(struct endpoint *base, const struct work *work, size_t count)
{
	struct fake_endpoint *endpoint = of(base);

	if (work->kind == WORK_RECEIVE) {
		for (size_t i = 0; i < count; i++) {
			assert_true(endpoint->receive_count < RECEIVES_MOST);
			endpoint->receives[(endpoint->first_receive + endpoint->receive_count++) % RECEIVES_MOST] =
				work[i];
		}
		return OUTCOME_OK;
	}
	assert_true(count <= LENGTH(endpoint->sends));
	memcpy(endpoint->sends, work, count * sizeof(*work));
	endpoint->send_count = count;
	return OUTCOME_OK;
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
	.open_queue = fake_open_queue,
	.connect = fake_connect,
	.accept = fake_connect,
	.reject = fake_reject,
	.disconnect = fake_disconnect,
	.post = fake_post,
};

static int set_up(void **state)
{
	struct fake *fake = calloc(1, sizeof(*fake));

	fake->environment = (struct environment){ .loop = loop_create(), .log.name = "rping", .output = stdout };
	fake->transport = (struct transport){
		.backend = &fake_backend,
		.loop = fake->environment.loop,
		.log = &fake->environment.log,
	};
	fake->environment.transport = &fake->transport;
	fake->channel.transport = &fake->transport;
	fake->domain = (struct domain){ .transport = &fake->transport, .device = "fake0" };
	fake->options = (struct rping_options){ .common.timeout = 20 * CLOCK_NS_PER_MS, .port = 7174, .size = 32 };
	capture_begin(&fake->errors);
	*state = fake;
	return 0;
}

static int tear_down(void **state)
{
	struct fake *fake = *state;

	for (size_t i = 0; i < fake->endpoint_count; i++)
		free(fake->endpoints[i]);
	loop_destroy(fake->environment.loop);
	free(fake);
	return 0;
}

static void start(struct fake *fake)
{
	assert_int_equal(rping_command.start(&fake->environment, &fake->options, &fake->state), OUTCOME_OK);
	loop_run(fake->environment.loop);
}

/* The run is over: with that outcome, after those words on stderr ("" for none at all). */
static void assert_ended(struct fake *fake, enum outcome outcome, const char *words)
{
	const char *text;

	rping_command.stop(fake->state);
	text = capture_end(&fake->errors);
	if (!*words && *text)
		fail_msg("unexpected on stderr: %s", text);
	if (!strstr(text, words))
		fail_msg("\"%s\" is not in: %s", words, text);
	assert_int_equal(fake->environment.outcome, outcome);
	for (size_t i = 0; i < fake->endpoint_count; i++)
		assert_int_equal(fake->endpoints[i]->base.state, ENDPOINT_DESTROYED);
}

static void complete(struct endpoint *endpoint, enum work_kind kind, uint32_t tag, uint32_t length)
{
	struct completion completion = { .kind = kind, .tag = tag, .length = length };

	endpoint_complete(endpoint, &completion, 0, NULL);
}

/* A message from the peer lands in the receive that was posted first. */
static void message_of(struct endpoint *endpoint, const struct advertisement *advertisement, uint32_t length)
{
	struct fake_endpoint *fake = of(endpoint);
	struct work receive = fake->receives[fake->first_receive];

	assert_true(fake->receive_count > 0);
	fake->first_receive = (fake->first_receive + 1) % RECEIVES_MOST;
	fake->receive_count--;
	advertisement_write(advertisement, receive.region->memory + receive.offset);
	complete(endpoint, WORK_RECEIVE, receive.tag, length);
}

/* The server as a client sees it. */

static struct endpoint *connected_client(struct fake *fake, const struct hello *server)
{
	struct endpoint *endpoint;
	uint8_t bytes[HELLO_SIZE];

	fake->options.client = true;
	fake->options.address = "10.0.0.1";
	start(fake);
	endpoint = &fake->endpoints[0]->base;
	endpoint->domain = &fake->domain;
	endpoint_enter(endpoint, ENDPOINT_ADDRESS_RESOLVED);
	endpoint_report(endpoint, &(struct endpoint_event){ .kind = EVENT_ADDRESS_RESOLVED });
	endpoint_enter(endpoint, ENDPOINT_RESOLVING_ROUTE);
	endpoint_enter(endpoint, ENDPOINT_ROUTE_RESOLVED);
	endpoint_report(endpoint, &(struct endpoint_event){ .kind = EVENT_ROUTE_RESOLVED });
	assert_int_equal(endpoint->state, ENDPOINT_CONNECTING);
	if (server)
		hello_write(server, bytes);
	endpoint_established(endpoint, server ? bytes : NULL, server ? sizeof(bytes) : 0);
	return endpoint;
}

static void go_ahead(struct endpoint *endpoint)
{
	message_of(endpoint, &(struct advertisement){ 0 }, ADVERTISEMENT_SIZE);
}

/* The memory that the client's message under way advertises. */
static uint8_t *advertised(struct endpoint *endpoint, uint32_t size)
{
	const struct work *send = &of(endpoint)->sends[0];
	struct advertisement advertisement;

	assert_int_equal(send->kind, WORK_SEND);
	assert_int_equal(send->length, ADVERTISEMENT_SIZE);
	advertisement_read(send->region->memory + send->offset, &advertisement);
	assert_int_equal(advertisement.key, 7);
	assert_int_equal(advertisement.size, size);
	return (uint8_t *)(uintptr_t)advertisement.address;
}

static void sink_sent(struct endpoint *endpoint)
{
	complete(endpoint, WORK_SEND, of(endpoint)->sends[0].tag, 0);
}

/* As far as the go-ahead that ends the ping; the server writes back what it read, but for the byte at wrong. */
static void answer_ping(struct endpoint *endpoint, uint32_t size, size_t wrong)
{
	uint8_t ping[256];
	uint8_t *sink;

	memcpy(ping, advertised(endpoint, size), size);
	go_ahead(endpoint);
	sink = advertised(endpoint, size);
	for (size_t i = 0; i < size; i++)
		sink[i] = i == wrong ? '#' : ping[i];
}

static void disconnect(struct endpoint *endpoint)
{
	endpoint_enter(endpoint, ENDPOINT_DISCONNECTED);
	endpoint_report(endpoint, &(struct endpoint_event){ .kind = EVENT_DISCONNECTED });
}

static void client_is_done_after_its_last_completion(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.validate = true;
	fake->options.count = 2;
	endpoint = connected_client(fake, NULL);
	answer_ping(endpoint, 32, SIZE_MAX);
	sink_sent(endpoint);
	go_ahead(endpoint);
	/* And the other way round: the news of the send comes last. */
	answer_ping(endpoint, 32, SIZE_MAX);
	go_ahead(endpoint);
	assert_false(of(endpoint)->disconnected);
	sink_sent(endpoint);
	assert_true(of(endpoint)->disconnected);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_OK, "");
}

static void client_finds_the_wrong_byte(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.validate = true;
	endpoint = connected_client(fake, NULL);
	answer_ping(endpoint, 32, 20);
	sink_sent(endpoint);
	go_ahead(endpoint);
	assert_true(of(endpoint)->disconnected);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_FAILED, "ping 0: what came back differs at byte 20 of 32: sent 0x48, found 0x23");
}

static void client_notices_that_nothing_was_written(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.validate = true;
	fake->options.size = 1;
	endpoint = connected_client(fake, NULL);
	go_ahead(endpoint);
	sink_sent(endpoint);
	go_ahead(endpoint);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_FAILED, "differs at byte 0 of 1: sent 0x00, found 0xff");
}

static void client_refuses_a_message_of_another_length(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint = connected_client(fake, NULL);

	message_of(endpoint, &(struct advertisement){ 0 }, ADVERTISEMENT_SIZE - 1);
	assert_ended(fake, OUTCOME_FAILED, "a message of 15 bytes instead of 16");
}

static void client_refuses_a_go_ahead_too_many(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.count = 1;
	endpoint = connected_client(fake, NULL);
	go_ahead(endpoint);
	go_ahead(endpoint);
	go_ahead(endpoint);
	assert_ended(fake, OUTCOME_FAILED,
		     "ping 1: a message out of order, while waiting for the news of what it sent");
}

/* The news that the sink's advertisement was sent may be late by one ping, but not by two. */
static void client_goes_one_ping_ahead_of_the_news(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.validate = true;
	fake->options.count = 3;
	endpoint = connected_client(fake, NULL);
	answer_ping(endpoint, 32, SIZE_MAX);
	go_ahead(endpoint);
	/* The second is under way, the first not settled. */
	answer_ping(endpoint, 32, SIZE_MAX);
	of(endpoint)->send_count = 0;
	go_ahead(endpoint);
	assert_int_equal(of(endpoint)->send_count, 0);
	sink_sent(endpoint);
	assert_int_equal(of(endpoint)->send_count, 1);
	sink_sent(endpoint);
	answer_ping(endpoint, 32, SIZE_MAX);
	go_ahead(endpoint);
	assert_false(of(endpoint)->disconnected);
	sink_sent(endpoint);
	assert_true(of(endpoint)->disconnected);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_OK, "");
}

static void client_does_not_wait_for_ever(void **state)
{
	struct fake *fake = *state;

	connected_client(fake, NULL);
	loop_run(fake->environment.loop);
	assert_ended(fake, OUTCOME_FAILED, "ping 0: waiting for the server to read it: timed out after 0.02 s");
}

static void client_obeys_the_servers_limit(void **state)
{
	struct fake *fake = *state;
	struct hello hello = { .tool = HELLO_RPING, .capacity = 31 };
	struct endpoint *endpoint = connected_client(fake, &hello);

	assert_int_equal(of(endpoint)->send_count, 0);
	assert_true(of(endpoint)->disconnected);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_FAILED, "the server takes pings of at most 31 bytes, and -S asks for 32");
}

static void client_says_that_the_server_went_away(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.count = 3;
	endpoint = connected_client(fake, NULL);
	answer_ping(endpoint, 32, SIZE_MAX);
	sink_sent(endpoint);
	go_ahead(endpoint);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_FAILED, "the server went away after 1 of 3 pings");
}

/* The client as a server sees it. */

static struct endpoint *ask(struct fake *fake, uint64_t promised)
{
	struct endpoint *listener = &fake->endpoints[0]->base;
	struct endpoint *request = add_endpoint(fake, ENDPOINT_CONNECTION, &listener->options);
	struct hello hello = { .tool = HELLO_RPING, .count = promised };
	uint8_t bytes[HELLO_SIZE];

	request->domain = &fake->domain;
	request->peer = (struct address){ .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 2 }, .port = 4242 };
	endpoint_name(request);
	endpoint_enter(request, ENDPOINT_REQUESTED);
	hello_write(&hello, bytes);
	endpoint_report(listener, &(struct endpoint_event){
					  .kind = EVENT_REQUEST,
					  .request = request,
					  .private_data = promised ? bytes : NULL,
					  .private_length = promised ? sizeof(bytes) : 0,
				  });
	return request;
}

static struct endpoint *connected_guest(struct fake *fake, uint64_t promised)
{
	struct endpoint *request;

	if (!fake->state) {
		fake->options.server = true;
		start(fake);
	}
	request = ask(fake, promised);
	assert_int_equal(request->state, ENDPOINT_ACCEPTING);
	endpoint_established(request, NULL, 0);
	return request;
}

static void offer(struct endpoint *endpoint, const uint8_t *memory, uint32_t size)
{
	struct advertisement advertisement = { .address = (uintptr_t)memory, .key = 9, .size = size };

	message_of(endpoint, &advertisement, ADVERTISEMENT_SIZE);
}

/* The device reads what the server asked for. */
static void read_done(struct endpoint *endpoint)
{
	const struct work *read = &of(endpoint)->sends[0];

	assert_int_equal(read->kind, WORK_READ);
	assert_int_equal(read->remote_key, 9);
	assert_true(read->length <= read->region->length);
	memcpy(read->region->memory, (const uint8_t *)(uintptr_t)read->remote_address, read->length);
	complete(endpoint, WORK_READ, read->tag, 0);
}

static void write_done(struct endpoint *endpoint)
{
	const struct work *works = of(endpoint)->sends;

	assert_int_equal(of(endpoint)->send_count, 2);
	assert_int_equal(works[0].kind, WORK_WRITE);
	assert_int_equal(works[0].remote_key, 9);
	assert_true(works[0].silent);
	assert_int_equal(works[1].kind, WORK_SEND);
	assert_false(works[1].silent);
	memcpy((uint8_t *)(uintptr_t)works[0].remote_address, works[0].region->memory, works[0].length);
	complete(endpoint, WORK_SEND, works[1].tag, 0);
}

/* A ping as far as the server's answer being under way. */
static void ping(struct endpoint *endpoint, uint32_t size, uint32_t number)
{
	struct fake *fake = fake_of(endpoint);

	payload_ping_fill(fake->source, size, number);
	offer(endpoint, fake->source, size);
	read_done(endpoint);
	offer(endpoint, fake->sink, size);
}

static void server_answers_what_it_read(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.validate = true;
	endpoint = connected_guest(fake, 3);
	ping(endpoint, 32, 0);
	write_done(endpoint);
	assert_memory_equal(fake->source, fake->sink, 32);
	ping(endpoint, 200, 1);
	write_done(endpoint);
	assert_memory_equal(fake->source, fake->sink, 200);
	ping(endpoint, 1, 2);
	/* The last answer is under way when the client, who has it, leaves. */
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_OK, "");
}

static void server_takes_the_next_ping_before_the_news(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint = connected_guest(fake, 0);

	ping(endpoint, 32, 0);
	offer(endpoint, fake->source, 16);
	assert_int_equal(of(endpoint)->sends[0].kind, WORK_WRITE);
	write_done(endpoint);
	assert_int_equal(of(endpoint)->sends[0].kind, WORK_READ);
	assert_int_equal(of(endpoint)->sends[0].length, 16);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_FAILED, "ping 1: reading it: the client went away in the middle");
}

static void server_refuses_two_early_pings(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint = connected_guest(fake, 0);

	ping(endpoint, 32, 0);
	offer(endpoint, fake->source, 32);
	offer(endpoint, fake->source, 32);
	assert_ended(fake, OUTCOME_FAILED, "ping 0: a message out of order, while writing it back");
}

static void server_refuses_a_message_while_it_reads(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint = connected_guest(fake, 0);

	offer(endpoint, fake->source, 32);
	offer(endpoint, fake->sink, 32);
	assert_ended(fake, OUTCOME_FAILED, "ping 0: a message out of order, while reading it");
}

static void server_refuses_an_empty_source(void **state)
{
	struct fake *fake = *state;

	offer(connected_guest(fake, 0), fake->source, 0);
	assert_ended(fake, OUTCOME_FAILED, "source of 0 bytes cannot be used: it is empty");
}

static void server_refuses_a_source_beyond_its_limit(void **state)
{
	struct fake *fake = *state;

	offer(connected_guest(fake, 0), fake->source, PING_SIZE_MOST + 1);
	assert_ended(fake, OUTCOME_FAILED, "source of 65536 bytes cannot be used: it is longer than a ping may be");
}

static void server_refuses_a_sink_that_is_too_small(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint = connected_guest(fake, 0);

	offer(endpoint, fake->source, 32);
	read_done(endpoint);
	offer(endpoint, fake->sink, 31);
	assert_ended(fake, OUTCOME_FAILED, "sink of 31 bytes cannot be used: it is smaller than the ping");
}

static void server_refuses_a_message_of_another_length(void **state)
{
	struct fake *fake = *state;

	message_of(connected_guest(fake, 0), &(struct advertisement){ 0 }, 0);
	assert_ended(fake, OUTCOME_FAILED, "a message of 0 bytes instead of 16");
}

static void server_finds_the_wrong_byte(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.validate = true;
	endpoint = connected_guest(fake, 0);
	payload_ping_fill(fake->source, 32, 0);
	fake->source[31] = 'x';
	offer(endpoint, fake->source, 32);
	read_done(endpoint);
	assert_ended(fake, OUTCOME_FAILED, "ping 0: what was read differs at byte 31 of 32: expected 0x00, found 0x78");
}

static void server_expects_what_was_promised(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint = connected_guest(fake, 10);

	for (uint32_t number = 0; number < 3; number++) {
		ping(endpoint, 32, number);
		write_done(endpoint);
	}
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_FAILED, "10.0.0.2:4242: the client ended early, after 3 of 10 pings");
}

static void server_does_not_wait_for_ever_for_a_beginning(void **state)
{
	struct fake *fake = *state;

	connected_guest(fake, 0);
	loop_run(fake->environment.loop);
	assert_ended(fake, OUTCOME_FAILED, "waiting for it to begin: timed out after 0.02 s");
}

static void server_does_not_wait_for_ever_for_a_sink(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint = connected_guest(fake, 0);

	offer(endpoint, fake->source, 32);
	read_done(endpoint);
	loop_run(fake->environment.loop);
	assert_ended(fake, OUTCOME_FAILED, "waiting for the client's sink: timed out after 0.02 s");
}

static void server_serves_one_at_a_time(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint = connected_guest(fake, 0);
	struct endpoint *second = ask(fake, 0);

	assert_true(of(second)->rejected);
	assert_int_equal(second->state, ENDPOINT_DESTROYED);
	ping(endpoint, 32, 0);
	write_done(endpoint);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_OK, "");
}

static void request_that_fails_is_no_client(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.server = true;
	start(fake);
	endpoint_fail(ask(fake, 0), OUTCOME_NO_CONNECTION);
	endpoint = connected_guest(fake, 0);
	ping(endpoint, 32, 0);
	write_done(endpoint);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_OK, "");
}

static void bad_client_disturbs_no_other(void **state)
{
	struct fake *fake = *state;
	struct endpoint *good, *bad;

	fake->options.persistent = true;
	good = connected_guest(fake, 0);
	bad = connected_guest(fake, 0);
	ping(good, 32, 0);
	offer(bad, fake->source, 0);
	assert_int_equal(bad->state, ENDPOINT_DESTROYED);
	write_done(good);
	ping(good, 32, 1);
	write_done(good);
	disconnect(good);
	assert_int_equal(fake->endpoints[0]->base.state, ENDPOINT_LISTENING);
	rping_command.interrupt(fake->state, INTERRUPTION_SIGNAL);
	assert_ended(fake, OUTCOME_FAILED, "source of 0 bytes");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(client_is_done_after_its_last_completion),
		TEST(client_finds_the_wrong_byte),
		TEST(client_notices_that_nothing_was_written),
		TEST(client_refuses_a_message_of_another_length),
		TEST(client_refuses_a_go_ahead_too_many),
		TEST(client_goes_one_ping_ahead_of_the_news),
		TEST(client_does_not_wait_for_ever),
		TEST(client_obeys_the_servers_limit),
		TEST(client_says_that_the_server_went_away),
		TEST(server_answers_what_it_read),
		TEST(server_takes_the_next_ping_before_the_news),
		TEST(server_refuses_two_early_pings),
		TEST(server_refuses_a_message_while_it_reads),
		TEST(server_refuses_an_empty_source),
		TEST(server_refuses_a_source_beyond_its_limit),
		TEST(server_refuses_a_sink_that_is_too_small),
		TEST(server_refuses_a_message_of_another_length),
		TEST(server_finds_the_wrong_byte),
		TEST(server_expects_what_was_promised),
		TEST(server_does_not_wait_for_ever_for_a_beginning),
		TEST(server_does_not_wait_for_ever_for_a_sink),
		TEST(server_serves_one_at_a_time),
		TEST(request_that_fails_is_no_client),
		TEST(bad_client_disturbs_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
