/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=confinement_enter */
/* Both ends of rping against peers that break the rules, which no stock tool does. */
#include "test/unit/unit.h"

#include "cmd/rping/protocol.h"
#include "cmd/rping/rping.h"
#include "cmd/table.h"
#include "core/payload.h"

/* A server's peer has memory to be read, and to be written. */
#define FAKE_FIELDS                                                                                                    \
	struct rping_options options;                                                                                  \
	uint8_t source[256], sink[256];

#include "test/unit/fake_transport.h"

static int set_up(void **state)
{
	struct fake *fake = fake_create(&rping_command, HELLO_RPING);

	fake->options = (struct rping_options){
		.common.timeout = 400 * CLOCK_NS_PER_MS, .port = 7174, .size = 32, .max_connected = 16384
	};
	*state = fake;
	return 0;
}

/* A message from the peer lands in the receive that was posted first. */
static void message_of(struct endpoint *endpoint, const struct advertisement *advertisement, uint32_t length)
{
	struct work receive = next_receive(endpoint);

	advertisement_write(advertisement, receive.region->memory + receive.offset);
	complete(endpoint, WORK_RECEIVE, receive.tag, length);
}

/* The server as a client sees it. */

static struct endpoint *connected_client(struct fake *fake, const struct hello *server)
{
	fake->options.client = true;
	fake->options.addresses = (struct option_list){ .texts = { "10.0.0.1" }, .count = 1 };
	start(fake);
	return connect_endpoint(fake, &fake->endpoints[0]->base, server);
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

/* The news that a ping's messages have gone, which a client asks for now and then. */
static void sink_sent(struct endpoint *endpoint)
{
	complete(endpoint, WORK_SEND, 1, 0);
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

/* Whole pings; returns whether news of the last one is to come. */
static bool pings(struct endpoint *endpoint, unsigned count)
{
	bool news = false;

	while (count--) {
		answer_ping(endpoint, 32, SIZE_MAX);
		news = !of(endpoint)->sends[0].silent;
		go_ahead(endpoint);
	}
	return news;
}

static void client_is_done_after_its_last_answer(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.validate = true;
	fake->options.count = 2;
	endpoint = connected_client(fake, NULL);
	assert_false(pings(endpoint, 1));
	assert_false(of(endpoint)->disconnected);
	assert_false(pings(endpoint, 1));
	assert_true(of(endpoint)->disconnected);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_OK, "");
}

static void client_is_done_after_its_last_news(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.validate = true;
	fake->options.count = RPING_SIGNAL_EVERY;
	endpoint = connected_client(fake, NULL);
	assert_true(pings(endpoint, RPING_SIGNAL_EVERY));
	assert_false(of(endpoint)->disconnected);
	sink_sent(endpoint);
	assert_true(of(endpoint)->disconnected);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_OK, "");
}

static void client_gives_up_privileges_before_its_first_ping(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->environment.to_confine = &fake->options.common;
	fake->options.count = 1;
	endpoint = connected_client(fake, NULL);
	assert_true(fake->confined);
	assert_false(fake->sent_before_confined);
	assert_true(of(endpoint)->send_count > 0);
	pings(endpoint, 1);
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
	go_ahead(endpoint);
	assert_true(of(endpoint)->disconnected);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_FAILED, "ping 0: payload differs at byte 20 of 32: sent 0x48, found 0x23");
}

static void client_notices_that_nothing_was_written(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.validate = true;
	fake->options.size = 1;
	endpoint = connected_client(fake, NULL);
	go_ahead(endpoint);
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

	fake->options.count = RPING_SIGNAL_EVERY;
	endpoint = connected_client(fake, NULL);
	pings(endpoint, RPING_SIGNAL_EVERY);
	go_ahead(endpoint);
	assert_ended(fake, OUTCOME_FAILED,
		     "ping 16: a message out of order, while waiting for send completions");
}

/* The news may be late until there is more of it, but no longer: the queue would run over. */
static void client_goes_on_ahead_of_the_news(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.validate = true;
	fake->options.count = 2 * RPING_SIGNAL_EVERY + 1;
	endpoint = connected_client(fake, NULL);
	assert_true(pings(endpoint, RPING_SIGNAL_EVERY));
	assert_false(pings(endpoint, RPING_SIGNAL_EVERY - 1));
	answer_ping(endpoint, 32, SIZE_MAX);
	assert_false(of(endpoint)->sends[0].silent);
	of(endpoint)->send_count = 0;
	go_ahead(endpoint);
	assert_int_equal(of(endpoint)->send_count, 0);
	sink_sent(endpoint);
	assert_int_equal(of(endpoint)->send_count, 1);
	assert_false(pings(endpoint, 1));
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
	assert_ended(fake, OUTCOME_FAILED, "waiting for the server to read the ping: timed out after 0.4 s in ping 0");
}

static void client_obeys_the_servers_limit(void **state)
{
	struct fake *fake = *state;
	struct hello hello = { .tool = HELLO_RPING, .capacity = 31 };
	struct endpoint *endpoint = connected_client(fake, &hello);

	assert_int_equal(of(endpoint)->send_count, 0);
	assert_true(of(endpoint)->disconnected);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_FAILED, "the server accepts pings of at most 31 bytes, not 32");
}

static void client_says_that_the_server_went_away(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.count = 3;
	endpoint = connected_client(fake, NULL);
	pings(endpoint, 1);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_FAILED, "the server went away after 1 of 3 pings");
}

/* A stock one that is no longer there: at its default it takes what a client without -S sends. */
static void client_hints_at_the_size_that_a_stock_server_may_not_take(void **state)
{
	static const struct {
		int64_t size;
		const char *words;
	} rows[] = { { 0, "" }, { 64, "" }, { 65, "hint: a stock server ends when a ping is longer than its own -S" } };

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct fake *fake;

		if (i) {
			tear_down(state);
			set_up(state);
		}
		fake = *state;
		fake->options.size = rows[i].size;
		disconnect(connected_client(fake, NULL));
		assert_ended(fake, OUTCOME_FAILED, "the server went away after 0 pings");
		assert_int_equal(!!strstr(fake->errors.text, "stock server"), !!*rows[i].words);
		assert_non_null(strstr(fake->errors.text, rows[i].words));
	}
}

static unsigned reported_times(struct fake *fake, const char *words)
{
	char *text = report_text_of(fake, REPORT_TOTAL);
	unsigned times = 0;

	for (const char *place = strstr(text, words); place; place = strstr(place + 1, words))
		times++;
	free(text);
	return times;
}

static void client_does_not_count_pings_to_warm_up(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.validate = true;
	fake->options.warmup = 3;
	fake->options.count = 2;
	endpoint = connected_client(fake, NULL);
	for (int i = 0; i < 5; i++) {
		assert_false(of(endpoint)->disconnected);
		pings(endpoint, 1);
	}
	assert_true(of(endpoint)->disconnected);
	assert_reports(fake, "\"warmup\":3,\"sent\":2,\"answered\":2,\"verified\":2,\"lost\":0");
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_OK, "");
}

static void client_promises_the_pings_to_warm_up_too(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.warmup = INT32_MAX;
	fake->options.count = INT64_MAX;
	endpoint = connected_client(fake, NULL);
	assert_true(of(endpoint)->hello.count == (uint64_t)INT64_MAX + INT32_MAX);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_FAILED, "the server went away after 0 of 9223372036854775807 pings");
}

static void client_fails_if_a_ping_to_warm_up_does(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.validate = true;
	fake->options.warmup = 3;
	endpoint = connected_client(fake, NULL);
	answer_ping(endpoint, 32, 20);
	go_ahead(endpoint);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_FAILED, "ping 0: payload differs at byte 20");
}

static void client_counts_the_lost_ping(void **state)
{
	struct fake *fake = *state;

	pings(connected_client(fake, NULL), 1);
	loop_run(fake->environment.loop);
	assert_reports(fake, "\"sent\":2,\"answered\":1,\"verified\":0,\"lost\":1");
	assert_reports(
		fake,
		"\"verdict\":\"fail\",\"error\":\"waiting for the server to read the ping: timed out after 0.4 s in ping 1");
	assert_ended(fake, OUTCOME_FAILED, "waiting for the server to read the ping: timed out after 0.4 s in ping 1");
}

static void client_keeps_its_interval(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.common.timeout = 10 * CLOCK_NS_PER_S;
	fake->options.interval = CLOCK_NS_PER_S;
	endpoint = connected_client(fake, NULL);
	pings(endpoint, 1);
	of(endpoint)->send_count = 0;
	run_for(fake, 5 * CLOCK_NS_PER_MS);
	assert_int_equal(of(endpoint)->send_count, 0);
	run_for(fake, CLOCK_NS_PER_S);
	assert_int_equal(of(endpoint)->send_count, 1);
	pings(endpoint, 1);
	rping_command.interrupt(fake->state, INTERRUPTION_SIGNAL);
	assert_true(of(endpoint)->disconnected);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_OK, "");
}

static void client_ends_in_order_after_its_duration(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.common.timeout = 10 * CLOCK_NS_PER_S;
	fake->options.duration = 10 * CLOCK_NS_PER_MS;
	fake->options.count = 100;
	endpoint = connected_client(fake, NULL);
	run_for(fake, 30 * CLOCK_NS_PER_MS);
	assert_false(of(endpoint)->disconnected);
	pings(endpoint, 1);
	assert_true(of(endpoint)->disconnected);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_OK, "");
}

/* Whatever the pings take, n of them take n beats, and their rate is that of the beats. */
static void client_pings_at_its_pace_for_its_duration(void **state)
{
	static const struct {
		int64_t interval, duration, count;
		unsigned pings;
		const char *rate;
	} rows[] = {
		{ 100 * CLOCK_NS_PER_MS, 950 * CLOCK_NS_PER_MS, 0, 10, "\"rate_per_second\":10.000" },
		{ 200 * CLOCK_NS_PER_MS, 0, 2, 2, "\"rate_per_second\":5.000" },
		{ CLOCK_NS_PER_S, 5 * CLOCK_NS_PER_S / 2, 0, 3, "\"rate_per_second\":1.000" },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct fake *fake = *state;
		struct endpoint *endpoint;
		unsigned count = 0;

		fake->options.common.timeout = 10 * CLOCK_NS_PER_S;
		fake->options.interval = rows[i].interval;
		fake->options.duration = rows[i].duration;
		fake->options.count = rows[i].count;
		endpoint = connected_client(fake, NULL);
		rping_command.interval_over(fake->state);
		while (!of(endpoint)->disconnected) {
			fake_clock_pass(rows[i].interval / 4);
			pings(endpoint, 1);
			count++;
			if (!of(endpoint)->disconnected)
				run_for(fake, 3 * rows[i].interval / 4);
			/* An interval that ends between two beats has the whole ones. */
			if (count % 4 == 0) {
				assert_reports_of(fake, REPORT_INTERVAL, rows[i].rate);
				rping_command.interval_over(fake->state);
			}
		}
		assert_int_equal(count, rows[i].pings);
		assert_reports(fake, rows[i].rate);
		disconnect(endpoint);
		assert_ended(fake, OUTCOME_OK, "");
		tear_down(state);
		set_up(state);
	}
	capture_end(&((struct fake *)*state)->errors);
}

static void start_targets(struct fake *fake, const char *first, const char *second)
{
	fake->options.client = true;
	fake->options.addresses = (struct option_list){ .texts = { first, second }, .count = 2 };
	start(fake);
	run_for(fake, CLOCK_NS_PER_MS);
	assert_int_equal(fake->endpoint_count, 2);
}

static void two_targets(struct fake *fake)
{
	start_targets(fake, "10.0.0.1", "10.0.0.3");
}

static void bad_target_disturbs_no_other(void **state)
{
	struct fake *fake = *state;
	struct endpoint *good;

	fake->options.count = 1;
	two_targets(fake);
	endpoint_fail(&fake->endpoints[0]->base, OUTCOME_NO_CONNECTION);
	good = connect_endpoint(fake, &fake->endpoints[1]->base, NULL);
	pings(good, 1);
	disconnect(good);
	assert_reports(fake, "{\"target\":\"10.0.0.1:7174\",\"pings\":{\"size\":0,\"warmup\":0,\"sent\":0");
	assert_reports(fake, "{\"target\":\"10.0.0.3:7174\",\"pings\":{\"size\":32,\"warmup\":0,\"sent\":1");
	assert_int_equal(reported_times(fake, "\"verdict\":\"fail\""), 1);
	assert_int_equal(reported_times(fake, "\"verdict\":\"pass\""), 1);
	assert_ended(fake, OUTCOME_NO_CONNECTION, "");
}

/* Also where two go to one address. */
static void error_is_of_the_target_that_had_it(void **state)
{
	struct fake *fake = *state;
	struct endpoint *good, *bad;

	fake->options.count = 1;
	start_targets(fake, "10.0.0.1", "10.0.0.1");
	bad = &fake->endpoints[1]->base;
	log_failure(bad->log, &(struct failure){ .object = bad->name, .phase = "connecting" }, "refused by the peer");
	endpoint_fail(bad, OUTCOME_NO_CONNECTION);
	good = connect_endpoint(fake, &fake->endpoints[0]->base, NULL);
	pings(good, 1);
	disconnect(good);
	assert_int_equal(reported_times(fake, "\"verdict\":\"fail\",\"error\":\"connecting: refused by the peer\""), 1);
	assert_int_equal(reported_times(fake, "\"verdict\":\"pass\",\"error\":null"), 1);
	assert_ended(fake, OUTCOME_NO_CONNECTION, "rping: 10.0.0.1:7174: connecting: refused by the peer\n");
}

static void total_claims_no_more_than_was_verified(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;
	size_t length;
	char *text;

	fake->environment.output = open_memstream(&text, &length);
	fake->options.validate = true;
	fake->options.count = 1;
	two_targets(fake);
	endpoint = connect_endpoint(fake, &fake->endpoints[0]->base, NULL);
	pings(endpoint, 1);
	disconnect(endpoint);
	endpoint = connect_endpoint(fake, &fake->endpoints[1]->base, NULL);
	answer_ping(endpoint, 32, 20);
	go_ahead(endpoint);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_FAILED, "ping 0: payload differs at byte 20");
	fclose(fake->environment.output);
	assert_non_null(strstr(text, "rping: FAILED: total: 2 pings answered, 1 of 2 targets passed (fake)\n"));
	free(text);
}

static void client_waits_for_its_server(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.client = true;
	fake->options.count = 1;
	fake->options.wait_server = 10 * CLOCK_NS_PER_S;
	fake->options.addresses = (struct option_list){ .texts = { "10.0.0.1" }, .count = 1 };
	start(fake);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(fake->endpoint_count, i + 1);
		absent(&fake->endpoints[i]->base);
		loop_run(fake->environment.loop);
	}
	endpoint = connect_endpoint(fake, &fake->endpoints[3]->base, NULL);
	pings(endpoint, 1);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_OK, "");
}

static void client_waits_as_long_as_it_was_told(void **state)
{
	struct fake *fake = *state;
	int64_t began = clock_now();

	fake->options.client = true;
	fake->options.wait_server = 150 * CLOCK_NS_PER_MS;
	fake->options.addresses = (struct option_list){ .texts = { "10.0.0.1" }, .count = 1 };
	start(fake);
	/* At once, after a pause, and when the time is over. */
	for (size_t i = 0; !fake->environment.outcome; i++) {
		absent(&fake->endpoints[i]->base);
		loop_run(fake->environment.loop);
	}
	assert_true(fake->endpoint_count >= 2 && fake->endpoint_count <= 4);
	assert_true(clock_now() - began >= 150 * CLOCK_NS_PER_MS);
	assert_ended(fake, OUTCOME_NO_CONNECTION,
		     "rping: 10.0.0.1:7174: connecting: nobody listens there\n"
		     "rping: hint: the server was waited for 0.15 s (--wait-server)\n");
}

static void client_does_not_wait_after_a_refusal(void **state)
{
	struct fake *fake = *state;

	fake->options.client = true;
	fake->options.wait_server = 10 * CLOCK_NS_PER_S;
	fake->options.addresses = (struct option_list){ .texts = { "10.0.0.1" }, .count = 1 };
	start(fake);
	log_failure(fake->endpoints[0]->base.log,
		    &(struct failure){ .object = fake->endpoints[0]->base.name, .phase = "connecting" },
		    "refused by the peer");
	endpoint_fail(&fake->endpoints[0]->base, OUTCOME_NO_CONNECTION);
	assert_ended(fake, OUTCOME_NO_CONNECTION, "rping: 10.0.0.1:7174: connecting: refused by the peer\n");
}

/* Of the try that ended it, not of one before. */
static void client_reports_why_it_ended(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.client = true;
	fake->options.wait_server = 10 * CLOCK_NS_PER_S;
	fake->options.addresses = (struct option_list){ .texts = { "10.0.0.1" }, .count = 1 };
	start(fake);
	absent(&fake->endpoints[0]->base);
	loop_run(fake->environment.loop);
	endpoint = &fake->endpoints[1]->base;
	log_failure(endpoint->log, &(struct failure){ .object = endpoint->name, .phase = "connecting" },
		    "refused by the peer");
	endpoint_fail(endpoint, OUTCOME_NO_CONNECTION);
	assert_int_equal(reported_times(fake, "\"error\":\"connecting: refused by the peer\""), 1);
	assert_ended(fake, OUTCOME_NO_CONNECTION, "rping: 10.0.0.1:7174: connecting: refused by the peer\n");
}

/* The client as a server sees it. */

static struct endpoint *ask(struct fake *fake, uint64_t promised)
{
	struct hello hello = { .tool = HELLO_RPING, .count = promised };

	return request_connection(fake, promised ? &hello : NULL);
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
	assert_true(works[1].silent);
	memcpy((uint8_t *)(uintptr_t)works[0].remote_address, works[0].region->memory, works[0].length);
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

/* The queue may still need the buffer of an answer that has arrived. */
static void server_keeps_a_buffer_it_has_outgrown(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint = connected_guest(fake, 0);

	ping(endpoint, 32, 0);
	payload_ping_fill(fake->source, 64, 1);
	offer(endpoint, fake->source, 64);
	assert_int_equal(fake->regions_destroyed, 0);
	read_done(endpoint);
	assert_int_equal(fake->regions_destroyed, 1);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_FAILED,
		     "waiting for the client's sink: the client went away in the middle of ping 1");
}

static void server_ended_from_outside_settles_first(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;
	const struct work *nothing;

	fake->options.persistent = true;
	endpoint = connected_guest(fake, 0);
	ping(endpoint, 32, 0);
	assert_reports(fake, "\"pings\":{\"answered\":0");
	rping_command.interrupt(fake->state, INTERRUPTION_SIGNAL);
	assert_false(of(endpoint)->disconnected);
	nothing = &of(endpoint)->sends[0];
	assert_int_equal(nothing->kind, WORK_WRITE);
	assert_int_equal(nothing->length, 0);
	assert_false(nothing->silent);
	complete(endpoint, WORK_WRITE, nothing->tag, 0);
	assert_true(of(endpoint)->disconnected);
	assert_reports(fake, "\"pings\":{\"answered\":1");
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_OK, "");
}

static void server_ended_from_outside_takes_a_ping_for_the_news(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.persistent = true;
	endpoint = connected_guest(fake, 0);
	ping(endpoint, 32, 0);
	rping_command.interrupt(fake->state, INTERRUPTION_SIGNAL);
	offer(endpoint, fake->source, 32);
	assert_true(of(endpoint)->disconnected);
	assert_reports(fake, "\"pings\":{\"answered\":1");
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_OK, "");
}

/* Its only client may have everything, or nothing. The run's own limit of --timeout would say "cut short". */
static void persistent_server_that_ends_leaves_an_answer_unconfirmed(void **state)
{
	struct fake *fake = *state;
	char *text;
	size_t length;

	fake->options.persistent = true;
	fake->environment.output = open_memstream(&text, &length);
	ping(connected_guest(fake, 0), 32, 0);
	rping_command.interrupt(fake->state, INTERRUPTION_SIGNAL);
	run_for(fake, 300 * CLOCK_NS_PER_MS);
	fclose(fake->environment.output);
	assert_non_null(strstr(text, "0 pings from 10.0.0.2:4242 answered, and one whose answer is unconfirmed"));
	free(text);
	assert_reports(fake, "\"pings\":{\"answered\":0");
	assert_ended(fake, OUTCOME_OK, "");
}

static void server_ended_from_outside_does_not_settle_for_ever(void **state)
{
	struct fake *fake = *state;

	ping(connected_guest(fake, 0), 32, 0);
	rping_command.interrupt(fake->state, INTERRUPTION_SIGNAL);
	loop_run(fake->environment.loop);
	assert_ended(fake, OUTCOME_FAILED,
		     "waiting for the acknowledgement of the answer: timed out after 0.4 s in ping 0");
}

/* No longer than that: on a machine that stands still the next limit is not far. */
static const struct work *run_until_asked(struct fake *fake, struct endpoint *endpoint)
{
	const struct work *last = &of(endpoint)->sends[0];

	for (unsigned turn = 0; (last->kind != WORK_WRITE || last->length) && turn < 1000; turn++)
		run_for(fake, CLOCK_NS_PER_MS);
	return last;
}

/* The next ping is far off: the proof is asked for, and then the client may rest as long as it likes. */
static void server_asks_for_the_news_of_its_answer(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint = connected_guest(fake, 2);
	const struct work *nothing;

	ping(endpoint, 32, 0);
	write_done(endpoint);
	nothing = run_until_asked(fake, endpoint);
	assert_int_equal(nothing->kind, WORK_WRITE);
	assert_int_equal(nothing->length, 0);
	assert_false(nothing->silent);
	complete(endpoint, WORK_WRITE, nothing->tag, 0);
	assert_reports(fake, "\"pings\":{\"answered\":1");
	run_for(fake, 600 * CLOCK_NS_PER_MS);
	ping(endpoint, 32, 1);
	write_done(endpoint);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_OK, "");
}

static void server_does_not_wait_for_ever_for_that_news(void **state)
{
	struct fake *fake = *state;

	ping(connected_guest(fake, 2), 32, 0);
	loop_run(fake->environment.loop);
	assert_ended(fake, OUTCOME_FAILED,
		     "waiting for the acknowledgement of the answer: timed out after 0.4 s in ping 0");
}

/* A client whose queue pair is gone acknowledges nothing, and its disconnect may be late. It may want more, too. */
static void persistent_server_leaves_a_last_answer_unconfirmed(void **state)
{
	static const struct {
		uint64_t promised;
		bool fails;
	} rows[] = { { 0, false }, { 1, false }, { 2, true } };

	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct fake *fake = *state;
		char *text;
		size_t length;

		fake->options.persistent = true;
		fake->environment.output = open_memstream(&text, &length);
		ping(connected_guest(fake, rows[row].promised), 32, 0);
		run_for(fake, 3 * fake->options.common.timeout);
		assert_reports(fake, rows[row].fails ? "\"clients\":0,\"failed\":1" : "\"clients\":1,\"failed\":0");
		assert_reports(fake, "\"pings\":{\"answered\":0");
		rping_command.interrupt(fake->state, INTERRUPTION_SIGNAL);
		fclose(fake->environment.output);
		assert_true(!strstr(text, "served 1 client, 0 pings, 1 unconfirmed (fake)") == rows[row].fails);
		free(text);
		if (rows[row].fails)
			assert_ended(fake, OUTCOME_FAILED, "waiting for the acknowledgement of the answer: timed out");
		else
			assert_ended(fake, OUTCOME_OK, "");
		tear_down(state);
		set_up(state);
	}
	capture_end(&((struct fake *)*state)->errors);
}

/* The client goes on just when it was asked. */
static void server_takes_late_news_for_none(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint = connected_guest(fake, 2);
	uint32_t tag;

	ping(endpoint, 32, 0);
	tag = run_until_asked(fake, endpoint)->tag;
	payload_ping_fill(fake->source, 32, 1);
	offer(endpoint, fake->source, 32);
	complete(endpoint, WORK_WRITE, tag, 0);
	read_done(endpoint);
	offer(endpoint, fake->sink, 32);
	write_done(endpoint);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_OK, "");
}

static void server_refuses_a_message_while_it_reads(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint = connected_guest(fake, 0);

	offer(endpoint, fake->source, 32);
	offer(endpoint, fake->sink, 32);
	assert_ended(fake, OUTCOME_FAILED, "ping 0: a message out of order, while reading the ping");
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
	assert_ended(fake, OUTCOME_FAILED, "ping 0: payload differs at byte 31 of 32: expected 0x00, found 0x78");
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

/* A stock client promises nothing, and if it is killed between two pings it seems to leave in order. */
static void server_expects_what_it_was_told_of_a_stock_client(void **state)
{
	for (int hello = 0; hello <= 1; hello++) {
		struct fake *fake;
		struct endpoint *endpoint;

		if (hello) {
			tear_down(state);
			set_up(state);
		}
		fake = *state;
		fake->options.count = 3;
		endpoint = connected_guest(fake, (uint64_t)hello);
		ping(endpoint, 32, 0);
		disconnect(endpoint);
		if (hello)
			assert_ended(fake, OUTCOME_OK, "");
		else
			assert_ended(fake, OUTCOME_FAILED, "the client ended early, after 1 of 3 pings");
	}
}

static void server_needs_memory_that_it_may_read(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint = connected_guest(fake, 3);

	endpoint->no_reads = true;
	offer(endpoint, fake->source, 32);
	assert_ended(fake, OUTCOME_FAILED, "10.0.0.2:4242: the peer allows no RDMA READ (responder resources 0)");
}

static void server_of_one_client_expects_a_ping(void **state)
{
	struct fake *fake = *state;

	disconnect(connected_guest(fake, 0));
	assert_ended(fake, OUTCOME_FAILED, "10.0.0.2:4242: the client ended early, after 0 pings");
}

static void server_does_not_wait_for_ever_for_a_beginning(void **state)
{
	struct fake *fake = *state;

	connected_guest(fake, 0);
	loop_run(fake->environment.loop);
	assert_ended(fake, OUTCOME_FAILED, "waiting for the first ping: timed out after 0.4 s");
}

static void server_does_not_wait_for_ever_for_a_source(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint = connected_guest(fake, 0);

	offer(endpoint, fake->source, 32);
	loop_run(fake->environment.loop);
	assert_ended(fake, OUTCOME_FAILED, "reading the ping: timed out after 0.4 s in ping 0");
}

static void server_takes_no_failed_work_for_done(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint = connected_guest(fake, 0);

	offer(endpoint, fake->source, 32);
	endpoint->handlers->completion(endpoint->owner, endpoint,
				       &(struct completion){ .kind = WORK_READ, .status = COMPLETION_REMOTE_ACCESS });
	assert_ended(fake, OUTCOME_FAILED, "");
}

static void server_does_not_wait_for_ever_for_a_sink(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint = connected_guest(fake, 0);

	offer(endpoint, fake->source, 32);
	read_done(endpoint);
	loop_run(fake->environment.loop);
	assert_ended(fake, OUTCOME_FAILED, "waiting for the client's sink: timed out after 0.4 s");
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

/* A client that comes, pings once and goes. */
static void serve_one(struct fake *fake)
{
	struct endpoint *endpoint = connected_guest(fake, 0);

	ping(endpoint, 32, 0);
	write_done(endpoint);
	disconnect(endpoint);
}

/* Nobody is a client yet, and it is no one's fault but the server's. */
static void server_that_cannot_serve_has_failed(void **state)
{
	struct fake *fake = *state;
	struct endpoint *listener;
	unsigned lines = 0;

	fake->options.server = true;
	fake->options.persistent = true;
	start(fake);
	listener = &fake->endpoints[0]->base;
	endpoint_request_failed(listener, OUTCOME_NO_CONNECTION);
	assert_int_equal(fake->environment.outcome, OUTCOME_OK);
	for (unsigned count = 0; count < 20; count++)
		endpoint_request_no_memory(listener);
	assert_int_equal(fake->environment.outcome, OUTCOME_INTERNAL);
	serve_one(fake);
	rping_command.interrupt(fake->state, INTERRUPTION_SIGNAL);
	assert_ended(fake, OUTCOME_INTERNAL, "0.0.0.0:7174: a request is refused: out of memory\n");
	/* Who asks again and again does not fill the log. */
	for (const char *at = fake->errors.text; (at = strchr(at, '\n')); at++)
		lines++;
	assert_int_equal(lines, 10);
}

static void server_that_cannot_go_on_with_a_request_has_failed(void **state)
{
	struct fake *fake = *state;

	fake->options.server = true;
	fake->options.persistent = true;
	start(fake);
	endpoint_fail(ask(fake, 0), OUTCOME_INTERNAL);
	assert_int_equal(fake->endpoints[0]->base.state, ENDPOINT_LISTENING);
	rping_command.interrupt(fake->state, INTERRUPTION_SIGNAL);
	assert_ended(fake, OUTCOME_INTERNAL, "");
}

static void server_of_one_client_that_cannot_serve_ends(void **state)
{
	struct fake *fake = *state;

	fake->options.server = true;
	start(fake);
	endpoint_request_no_memory(&fake->endpoints[0]->base);
	loop_run(fake->environment.loop);
	assert_ended(fake, OUTCOME_INTERNAL, "0.0.0.0:7174: a request is refused: out of memory\n");
}

/* It would have refused the other one in any case. */
static void server_of_one_client_goes_on_with_it(void **state)
{
	struct fake *fake = *state;
	struct endpoint *session = connected_guest(fake, 1);

	endpoint_request_failed(&fake->endpoints[0]->base, OUTCOME_INTERNAL);
	assert_false(of(session)->disconnected);
	ping(session, 32, 0);
	disconnect(session);
	assert_ended(fake, OUTCOME_OK, "");
}

static void server_ends_after_its_clients(void **state)
{
	struct fake *fake = *state;

	fake->options.max_clients = 2;
	serve_one(fake);
	assert_int_equal(fake->endpoints[0]->base.state, ENDPOINT_LISTENING);
	serve_one(fake);
	assert_int_equal(fake->endpoints[0]->base.state, ENDPOINT_DESTROYED);
	assert_reports(fake, "\"served\":{\"clients\":2,\"failed\":0,\"connected\":0}");
	assert_reports(fake, "{\"peer\":\"10.0.0.2:4242\",\"pings\":1,\"verdict\":\"pass\"}");
	assert_ended(fake, OUTCOME_OK, "");
}

static void server_takes_no_more_clients_than_it_is_to(void **state)
{
	struct fake *fake = *state;
	struct endpoint *first, *third;

	fake->options.persistent = true;
	fake->options.max_clients = 2;
	first = connected_guest(fake, 0);
	connected_guest(fake, 0);
	third = ask(fake, 0);
	assert_string_equal(of(third)->rejection, "client limit reached");
	ping(first, 32, 0);
	write_done(first);
	disconnect(first);
	assert_true(of(ask(fake, 0))->rejected);
	rping_command.interrupt(fake->state, INTERRUPTION_SIGNAL);
	disconnect(&fake->endpoints[2]->base);
	assert_ended(fake, OUTCOME_OK, "");
}

/* Anybody can send a request in the name of somebody. */
static void request_that_is_not_confirmed_is_no_client(void **state)
{
	struct fake *fake = *state;
	struct endpoint *asking, *refused, *first;

	fake->options.persistent = true;
	fake->options.max_clients = 2;
	first = connected_guest(fake, 0);
	asking = ask(fake, 0);
	assert_reports(fake, "\"served\":{\"clients\":0,\"failed\":0,\"connected\":1}");
	/* It keeps a place for a while: that is no reason to say that the server is through. */
	refused = ask(fake, 0);
	assert_string_equal(of(refused)->rejection, PING_BUSY);
	endpoint_fail(asking, OUTCOME_NO_CONNECTION);
	assert_false(of(ask(fake, 0))->rejected);
	ping(first, 32, 0);
	write_done(first);
	disconnect(first);
	rping_command.interrupt(fake->state, INTERRUPTION_SIGNAL);
	assert_ended(fake, OUTCOME_FAILED, "ended early, after 1 of 2 clients");
}

/* One that has only asked takes no place: its address may be forged. */
static void persistent_server_refuses_clients_above_its_limit(void **state)
{
	struct fake *fake = *state;
	struct endpoint *first, *second, *refused;

	fake->options.persistent = true;
	fake->options.max_connected = 1;
	fake->options.server = true;
	start(fake);
	ask(fake, 0);
	first = connected_guest(fake, 0);
	refused = ask(fake, 0);
	assert_true(of(refused)->rejected);
	assert_string_equal((const char *)of(refused)->rejection, PING_BUSY);
	disconnect(first);
	second = connected_guest(fake, 0);
	ping(second, 32, 0);
	assert_true(of(ask(fake, 0))->rejected);
	disconnect(second);
	rping_command.interrupt(fake->state, INTERRUPTION_SIGNAL);
	assert_ended(fake, OUTCOME_OK, "");
}

static void server_says_that_clients_are_missing(void **state)
{
	struct fake *fake = *state;

	fake->options.max_clients = 3;
	serve_one(fake);
	rping_command.interrupt(fake->state, INTERRUPTION_SIGNAL);
	assert_ended(fake, OUTCOME_FAILED, "rping: ended early, after 1 of 3 clients: interrupted");
}

static void one_off_server_ends_after_one_also_with_persistence(void **state)
{
	struct fake *fake = *state;

	fake->options.persistent = true;
	fake->options.one_off = true;
	serve_one(fake);
	assert_int_equal(fake->endpoints[0]->base.state, ENDPOINT_DESTROYED);
	assert_ended(fake, OUTCOME_OK, "");
}

static void server_keeps_the_last_clients_and_exact_totals(void **state)
{
	struct fake *fake = *state;

	fake->options.persistent = true;
	fake->options.server = true;
	start(fake);
	for (unsigned i = 0; i < 100; i++) {
		serve_one(fake);
		free(fake->endpoints[--fake->endpoint_count]);
	}
	assert_reports(fake, "\"served\":{\"clients\":100,\"failed\":0,\"connected\":0},\"pings\":{\"answered\":100");
	assert_int_equal(reported_times(fake, "\"peer\""), 32);
	rping_command.interrupt(fake->state, INTERRUPTION_SIGNAL);
	assert_ended(fake, OUTCOME_OK, "");
}

static void server_reports_what_came_in_an_interval(void **state)
{
	struct fake *fake = *state;

	fake->options.persistent = true;
	fake->options.server = true;
	start(fake);
	serve_one(fake);
	serve_one(fake);
	rping_command.interval_over(fake->state);
	serve_one(fake);
	assert_reports_of(fake, REPORT_INTERVAL,
			  "\"served\":{\"clients\":1,\"failed\":0,\"connected\":0},\"pings\":{\"answered\":1,");
	assert_reports(fake, "\"served\":{\"clients\":3,\"failed\":0,\"connected\":0},\"pings\":{\"answered\":3,");
	rping_command.interrupt(fake->state, INTERRUPTION_SIGNAL);
	assert_ended(fake, OUTCOME_OK, "");
}

static void server_that_nobody_wants_ends(void **state)
{
	struct fake *fake = *state;

	fake->options.server = true;
	fake->options.persistent = true;
	fake->options.idle_timeout = 20 * CLOCK_NS_PER_MS;
	start(fake);
	loop_run(fake->environment.loop);
	assert_ended(fake, OUTCOME_FAILED, "rping: no client came for 0.02 s (--idle-timeout)\n");
}

static void server_that_has_served_may_be_idle(void **state)
{
	struct fake *fake = *state;

	fake->options.persistent = true;
	fake->options.idle_timeout = 20 * CLOCK_NS_PER_MS;
	serve_one(fake);
	loop_run(fake->environment.loop);
	assert_ended(fake, OUTCOME_OK, "");
}

static void idle_client_is_failed_and_dismissed(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.persistent = true;
	fake->options.idle_timeout = 5 * CLOCK_NS_PER_MS;
	endpoint = connected_guest(fake, 5);
	ping(endpoint, 32, 0);
	write_done(endpoint);
	/* First the client is dismissed, then nobody is there. */
	loop_run(fake->environment.loop);
	assert_int_equal(endpoint->state, ENDPOINT_DESTROYED);
	assert_ended(fake, OUTCOME_FAILED,
		     "10.0.0.2:4242: the client sent nothing for 0.005 s after 1 of 5 pings (--idle-timeout)\n");
}

static void silent_client_is_failed_before_its_first_ping(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.persistent = true;
	fake->options.idle_timeout = 5 * CLOCK_NS_PER_MS;
	endpoint = connected_guest(fake, 5);
	loop_run(fake->environment.loop);
	assert_int_equal(endpoint->state, ENDPOINT_DESTROYED);
	assert_ended(fake, OUTCOME_FAILED,
		     "10.0.0.2:4242: the client sent nothing for 0.005 s after 0 of 5 pings (--idle-timeout)\n");
}

/* Doubled, so that longer and longer pings do not take memory each; no longer than the longest ping. */
static void server_buffer_grows_to_its_limit(void **state)
{
	static const uint32_t pairs[][2] = {
		{ 100, 100 },	  { 101, 200 },	    { 200, 200 },     { 300, 400 },
		{ 40000, 40000 }, { 40001, 65535 }, { 65535, 65535 },
	};
	struct fake *fake = *state;
	struct endpoint *endpoint = connected_guest(fake, 0);

	for (size_t i = 0; i < LENGTH(pairs); i++) {
		offer(endpoint, fake->source, pairs[i][0]);
		assert_int_equal(of(endpoint)->sends[0].kind, WORK_READ);
		assert_int_equal(of(endpoint)->sends[0].region->length, pairs[i][1]);
		complete(endpoint, WORK_READ, 0, 0);
		offer(endpoint, fake->sink, pairs[i][0]);
	}
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_OK, "");
}

/* What was outgrown is held until the READ that follows is done, and here there is none. */
static void server_releases_what_a_client_leaves_behind(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint = connected_guest(fake, 0);

	ping(endpoint, 32, 0);
	offer(endpoint, fake->source, 64);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_FAILED, "reading the ping: the client went away in the middle of ping 1");
}

static void server_says_the_sizes_that_came(void **state)
{
	struct fake *fake = *state;
	FILE *kept = fake->environment.output;
	struct endpoint *endpoint;
	size_t length;
	char *text;

	fake->environment.output = open_memstream(&text, &length);
	endpoint = connected_guest(fake, 0);
	ping(endpoint, 32, 0);
	ping(endpoint, 200, 1);
	ping(endpoint, 7, 2);
	ping(endpoint, 50, 3);
	disconnect(endpoint);
	fclose(fake->environment.output);
	fake->environment.output = kept;
	assert_non_null(strstr(text, "rping: 4 pings of 7 to 200 bytes from 10.0.0.2:4242 answered"));
	free(text);
	assert_ended(fake, OUTCOME_OK, "");
}

/* That the time is over is no client's success, although a server with -P is ended from outside in any case. */
static void server_out_of_time_fails_its_clients(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.persistent = true;
	endpoint = connected_guest(fake, 0);
	ping(endpoint, 32, 0);
	rping_command.interrupt(fake->state, INTERRUPTION_DEADLINE);
	assert_true(of(endpoint)->disconnected);
	disconnect(endpoint);
	assert_reports(fake, "\"served\":{\"clients\":0,\"failed\":1,");
	assert_ended(fake, OUTCOME_FAILED, "");
}

static void one_off_server_with_persistence_expects_a_ping(void **state)
{
	struct fake *fake = *state;

	fake->options.persistent = true;
	fake->options.one_off = true;
	disconnect(connected_guest(fake, 0));
	assert_ended(fake, OUTCOME_FAILED, "10.0.0.2:4242: the client ended early, after 0 pings");
}

/* From its answer on, of which the wait for the proof is a part. */
static void idle_time_begins_with_the_answer(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.idle_timeout = CLOCK_NS_PER_S;
	endpoint = connected_guest(fake, 5);
	ping(endpoint, 32, 0);
	write_done(endpoint);
	complete(endpoint, WORK_WRITE, run_until_asked(fake, endpoint)->tag, 0);
	run_for(fake, 750 * CLOCK_NS_PER_MS);
	assert_int_equal(endpoint->state, ENDPOINT_ESTABLISHED);
	run_for(fake, 100 * CLOCK_NS_PER_MS);
	assert_ended(fake, OUTCOME_FAILED, "10.0.0.2:4242: the client sent nothing for 1 s after 1 of 5 pings (--idle-timeout)\n");
}

/* Before the first ping the shorter of the two limits counts. */
static void a_long_idle_time_does_not_extend_the_beginning(void **state)
{
	struct fake *fake = *state;

	fake->options.idle_timeout = 10 * CLOCK_NS_PER_S;
	connected_guest(fake, 5);
	run_for(fake, 500 * CLOCK_NS_PER_MS);
	assert_ended(fake, OUTCOME_FAILED, "waiting for the first ping: timed out after 0.4 s");
}

/* The server's own idle time is that without a client. */
static void server_with_a_client_is_not_idle(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.persistent = true;
	fake->options.idle_timeout = CLOCK_NS_PER_S;
	endpoint = connected_guest(fake, 0);
	for (uint32_t number = 0; number < 20; number++) {
		ping(endpoint, 32, number);
		write_done(endpoint);
		run_for(fake, 100 * CLOCK_NS_PER_MS);
	}
	assert_int_equal(fake->endpoints[0]->base.state, ENDPOINT_LISTENING);
	disconnect(endpoint);
	loop_run(fake->environment.loop);
	assert_ended(fake, OUTCOME_OK, "");
}

/* Its client may finish, and the failure is not forgotten over that. */
static void server_whose_listener_failed_has_failed(void **state)
{
	struct fake *fake = *state;
	struct endpoint *endpoint;

	fake->options.persistent = true;
	endpoint = connected_guest(fake, 1);
	endpoint_fail(&fake->endpoints[0]->base, OUTCOME_INTERNAL);
	assert_int_equal(endpoint->state, ENDPOINT_ESTABLISHED);
	ping(endpoint, 32, 0);
	write_done(endpoint);
	disconnect(endpoint);
	assert_ended(fake, OUTCOME_INTERNAL, "");
}

/* Who withdrew a request is no failure of the server; what is missing here is one. */
static void request_that_cannot_be_accepted(void **state)
{
	struct fake *fake = *state;

	fake->options.server = true;
	start(fake);
	fake->next.accept = OUTCOME_NO_CONNECTION;
	ask(fake, 1);
	assert_int_equal(fake->endpoints[0]->base.state, ENDPOINT_LISTENING);
	assert_int_equal(fake->environment.outcome, OUTCOME_OK);
	fake->next.accept = OUTCOME_INTERNAL;
	ask(fake, 1);
	assert_ended(fake, OUTCOME_INTERNAL, "");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(client_is_done_after_its_last_answer),
		TEST(client_is_done_after_its_last_news),
		TEST(client_gives_up_privileges_before_its_first_ping),
		TEST(client_finds_the_wrong_byte),
		TEST(client_notices_that_nothing_was_written),
		TEST(client_refuses_a_message_of_another_length),
		TEST(client_refuses_a_go_ahead_too_many),
		TEST(client_goes_on_ahead_of_the_news),
		TEST(client_does_not_wait_for_ever),
		TEST(client_obeys_the_servers_limit),
		TEST(client_says_that_the_server_went_away),
		TEST(client_hints_at_the_size_that_a_stock_server_may_not_take),
		TEST(client_does_not_count_pings_to_warm_up),
		TEST(client_promises_the_pings_to_warm_up_too),
		TEST(client_fails_if_a_ping_to_warm_up_does),
		TEST(client_counts_the_lost_ping),
		TEST(client_keeps_its_interval),
		TEST(client_ends_in_order_after_its_duration),
		TEST(client_pings_at_its_pace_for_its_duration),
		TEST(bad_target_disturbs_no_other),
		TEST(error_is_of_the_target_that_had_it),
		TEST(total_claims_no_more_than_was_verified),
		TEST(client_waits_for_its_server),
		TEST(client_waits_as_long_as_it_was_told),
		TEST(client_does_not_wait_after_a_refusal),
		TEST(client_reports_why_it_ended),
		TEST(server_answers_what_it_read),
		TEST(server_keeps_a_buffer_it_has_outgrown),
		TEST(server_ended_from_outside_settles_first),
		TEST(server_ended_from_outside_takes_a_ping_for_the_news),
		TEST(persistent_server_that_ends_leaves_an_answer_unconfirmed),
		TEST(persistent_server_leaves_a_last_answer_unconfirmed),
		TEST(server_ended_from_outside_does_not_settle_for_ever),
		TEST(server_asks_for_the_news_of_its_answer),
		TEST(server_does_not_wait_for_ever_for_that_news),
		TEST(server_takes_late_news_for_none),
		TEST(server_refuses_a_message_while_it_reads),
		TEST(server_refuses_an_empty_source),
		TEST(server_refuses_a_source_beyond_its_limit),
		TEST(server_refuses_a_sink_that_is_too_small),
		TEST(server_refuses_a_message_of_another_length),
		TEST(server_finds_the_wrong_byte),
		TEST(server_expects_what_was_promised),
		TEST(server_expects_what_it_was_told_of_a_stock_client),
		TEST(server_needs_memory_that_it_may_read),
		TEST(server_of_one_client_expects_a_ping),
		TEST(server_does_not_wait_for_ever_for_a_beginning),
		TEST(server_does_not_wait_for_ever_for_a_source),
		TEST(server_takes_no_failed_work_for_done),
		TEST(server_does_not_wait_for_ever_for_a_sink),
		TEST(server_serves_one_at_a_time),
		TEST(request_that_fails_is_no_client),
		TEST(server_that_cannot_serve_has_failed),
		TEST(server_that_cannot_go_on_with_a_request_has_failed),
		TEST(server_of_one_client_that_cannot_serve_ends),
		TEST(server_of_one_client_goes_on_with_it),
		TEST(bad_client_disturbs_no_other),
		TEST(server_ends_after_its_clients),
		TEST(server_takes_no_more_clients_than_it_is_to),
		TEST(request_that_is_not_confirmed_is_no_client),
		TEST(persistent_server_refuses_clients_above_its_limit),
		TEST(server_says_that_clients_are_missing),
		TEST(one_off_server_ends_after_one_also_with_persistence),
		TEST(server_keeps_the_last_clients_and_exact_totals),
		TEST(server_reports_what_came_in_an_interval),
		TEST(server_that_nobody_wants_ends),
		TEST(server_that_has_served_may_be_idle),
		TEST(idle_client_is_failed_and_dismissed),
		TEST(silent_client_is_failed_before_its_first_ping),
		TEST(server_buffer_grows_to_its_limit),
		TEST(server_releases_what_a_client_leaves_behind),
		TEST(server_says_the_sizes_that_came),
		TEST(server_out_of_time_fails_its_clients),
		TEST(one_off_server_with_persistence_expects_a_ping),
		TEST(idle_time_begins_with_the_answer),
		TEST(a_long_idle_time_does_not_extend_the_beginning),
		TEST(server_with_a_client_is_not_idle),
		TEST(server_whose_listener_failed_has_failed),
		TEST(request_that_cannot_be_accepted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
