/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=privileges_drop */
/* The client and the server of rping against peers that violate the protocol, which stock tools do not. */
#include "test/unit/unit.h"

#include "cmd/rping/protocol.h"
#include "cmd/rping/rping.h"
#include "cmd/run.h"

/* The source and the sink of the client that a server accesses. */
#define FAKE_FIELDS                                                                                                    \
	struct rping_options options;                                                                                  \
	uint8_t source[256], sink[256];

#include "test/unit/fake_transport.h"
#include "test/unit/stock_ping.h"

static int set_up(void **state)
{
	fake_create(&rping_command, HELLO_RPING);
	fake.options = (struct rping_options){ .common = { .timeout = 400 * CLOCK_NS_PER_MS, .path = PATH_OPEN },
					       .port = 7174,
					       .size = 32 };
	return 0;
}

/* Delivers a message of the peer to the receive that was posted first. */
static void receive_message(struct endpoint *endpoint, const struct advertisement *advertisement, uint32_t length)
{
	struct work receive = next_receive(endpoint);

	advertisement_write(advertisement, receive.region->memory + receive.offset);
	complete(endpoint, WORK_RECEIVE, receive.tag, length);
}

/* ---- the client; the test plays the server ---- */

static struct endpoint *connected_client(const struct hello *server)
{
	fake.options.client = true;
	fake.options.addresses = (struct option_list){ .texts = { "10.0.0.1" }, .count = 1 };
	start();
	return connect_endpoint(&fake.endpoints[0]->base, server);
}

static void go_ahead(struct endpoint *endpoint)
{
	receive_message(endpoint, &(struct advertisement){ 0 }, ADVERTISEMENT_SIZE);
}

/* Returns the memory that the client's current message advertises. */
static uint8_t *advertised_memory(struct endpoint *endpoint, uint32_t size)
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

/* Completes the signalled send of a sink advertisement. */
static void complete_sink_send(struct endpoint *endpoint)
{
	complete(endpoint, WORK_SEND, 1, 0);
}

/* Plays the server up to the last go-ahead. It writes back what it read, except the byte at wrong. */
static void answer_ping(struct endpoint *endpoint, uint32_t size, size_t wrong)
{
	uint8_t ping[256];
	uint8_t *sink;

	memcpy(ping, advertised_memory(endpoint, size), size);
	go_ahead(endpoint);
	sink = advertised_memory(endpoint, size);
	for (size_t i = 0; i < size; i++)
		sink[i] = i == wrong ? '#' : ping[i];
}

/* Plays whole pings. Returns true if the last advertisement is signalled. */
static bool pings(struct endpoint *endpoint, unsigned count)
{
	bool signalled = false;

	while (count--) {
		answer_ping(endpoint, 32, SIZE_MAX);
		signalled = !of(endpoint)->sends[0].unsignalled;
		go_ahead(endpoint);
	}
	return signalled;
}

/* A signalled send frees the send queue. The server's answer has proved its delivery: nothing waits for it. */
TEST(client_signals_one_send_in_many, set_up, tear_down)
{
	struct endpoint *endpoint;

	fake.options.validate = true;
	fake.options.count = 2 * RPING_SIGNAL_EVERY;
	endpoint = connected_client(NULL);
	assert_false(pings(endpoint, RPING_SIGNAL_EVERY - 1));
	assert_true(pings(endpoint, 1));
	assert_false(pings(endpoint, RPING_SIGNAL_EVERY - 1));
	complete_sink_send(endpoint);
	assert_true(pings(endpoint, 1));
	assert_true(of(endpoint)->disconnected);
	disconnect(endpoint);
	assert_ended(OUTCOME_OK, "");
}

TEST(client_drops_privileges_before_the_first_ping, set_up, tear_down)
{
	struct endpoint *endpoint;

	fake.options.common.transport = "soft";
	fake.environment.to_set_up = &fake.options.common;
	fake.options.count = 1;
	endpoint = connected_client(NULL);
	assert_true(fake.dropped);
	assert_false(fake.sent_before_drop);
	assert_true(of(endpoint)->send_count > 0);
	pings(endpoint, 1);
	disconnect(endpoint);
	assert_ended(OUTCOME_OK, "");
}

/* The third region is for messages. */
TEST(client_exposes_two_buffers, set_up, tear_down)
{
	struct endpoint *endpoint;

	fake.options.count = 2;
	endpoint = connected_client(NULL);
	pings(endpoint, 2);
	assert_int_equal(fake.regions_with[REGION_REMOTE_READ], 1);
	assert_int_equal(fake.regions_with[REGION_REMOTE_WRITE], 1);
	assert_int_equal(fake.regions_with[REGION_LOCAL], 1);
	assert_int_equal(fake.regions_created, 3);
	disconnect(endpoint);
	assert_ended(OUTCOME_OK, "");
}

TEST(client_reports_a_wrong_byte, set_up, tear_down)
{
	struct endpoint *endpoint;

	fake.options.validate = true;
	endpoint = connected_client(NULL);
	answer_ping(endpoint, 32, 20);
	go_ahead(endpoint);
	assert_true(of(endpoint)->disconnected);
	disconnect(endpoint);
	assert_ended(OUTCOME_FAILED, "ping 0: payload differs at byte 20 of 32: expected 0x48, found 0x23");
}

TEST(client_detects_a_missing_write, set_up, tear_down)
{
	struct endpoint *endpoint;

	fake.options.validate = true;
	fake.options.size = 1;
	endpoint = connected_client(NULL);
	go_ahead(endpoint);
	go_ahead(endpoint);
	disconnect(endpoint);
	assert_ended(OUTCOME_FAILED, "differs at byte 0 of 1: expected 0x00, found 0xff");
}

TEST(client_rejects_an_unexpected_go_ahead, set_up, tear_down)
{
	struct endpoint *endpoint;

	fake.options.interval = CLOCK_NS_PER_S;
	endpoint = connected_client(NULL);
	pings(endpoint, 1);
	go_ahead(endpoint);
	assert_ended(OUTCOME_FAILED, "ping 1: a message out of order, while waiting for the next slot");
}

TEST(client_respects_the_size_limit_of_the_server, set_up, tear_down)
{
	struct hello hello = { .tool = HELLO_RPING, .capacity = 31 };
	struct endpoint *endpoint = connected_client(&hello);

	assert_int_equal(of(endpoint)->send_count, 0);
	assert_true(of(endpoint)->disconnected);
	disconnect(endpoint);
	assert_ended(OUTCOME_FAILED, "the server accepts pings of at most 31 bytes, not 32");
}

/* A stock server without -S accepts the pings of a client without -S. */
TEST(client_hints_at_the_size_limit_of_a_stock_server, set_up, tear_down)
{
	static const struct {
		int64_t size;
		const char *words;
	} rows[] = { { 0, "" }, { 64, "" }, { 65, "hint: a stock server ends when a ping is longer than its own -S" } };

	for (size_t i = 0; i < LENGTH(rows); i++) {
		if (i) {
			tear_down(state);
			set_up(state);
		}
		fake.options.size = rows[i].size;
		disconnect(connected_client(NULL));
		assert_ended(OUTCOME_FAILED, "the server disconnected after 0 pings");
		assert_int_equal(!!strstr(fake.errors.text, "stock server"), !!*rows[i].words);
		assert_non_null(strstr(fake.errors.text, rows[i].words));
	}
}

static unsigned reported_times(const char *words)
{
	char *text = report_text_since(fake.command->figures(fake.state), NULL, 0);
	unsigned times = 0;

	for (const char *place = strstr(text, words); place; place = strstr(place + 1, words))
		times++;
	free(text);
	return times;
}

TEST(client_does_not_count_warm_up_pings, set_up, tear_down)
{
	struct endpoint *endpoint;

	fake.options.validate = true;
	fake.options.warmup = 3;
	fake.options.count = 2;
	endpoint = connected_client(NULL);
	for (int i = 0; i < 5; i++) {
		assert_false(of(endpoint)->disconnected);
		pings(endpoint, 1);
	}
	assert_true(of(endpoint)->disconnected);
	assert_reports("\"warmup\":3,\"sent\":2,\"answered\":2,\"verified\":2,\"lost\":0");
	disconnect(endpoint);
	assert_ended(OUTCOME_OK, "");
}

TEST(client_hello_includes_warm_up_pings, set_up, tear_down)
{
	struct endpoint *endpoint;

	fake.options.warmup = INT32_MAX;
	fake.options.count = INT64_MAX;
	endpoint = connected_client(NULL);
	assert_true(of(endpoint)->hello.count == (uint64_t)INT64_MAX + INT32_MAX);
	disconnect(endpoint);
	assert_ended(OUTCOME_FAILED, "the server disconnected after 0 of 9223372036854775807 pings");
}

TEST(client_counts_a_lost_ping, set_up, tear_down)
{
	pings(connected_client(NULL), 1);
	loop_run(fake.environment.loop);
	assert_reports("\"sent\":2,\"answered\":1,\"verified\":0,\"lost\":1");
	assert_reports("\"verdict\":\"fail\",\"error\":\"waiting for the server to read the ping: timed out "
		       "after 0.4 s in ping 1");
	assert_ended(OUTCOME_FAILED, "waiting for the server to read the ping: timed out after 0.4 s in ping 1");
}

/* A ping that took longer than its slot is followed at once by one more, and that by the next slot. */
TEST(client_skips_missed_slots, set_up, tear_down)
{
	struct endpoint *endpoint;

	fake.options.common.timeout = 10 * CLOCK_NS_PER_S;
	fake.options.interval = CLOCK_NS_PER_S;
	endpoint = connected_client(NULL);
	run_for(5 * CLOCK_NS_PER_S / 2);
	pings(endpoint, 1);
	answer_ping(endpoint, 32, SIZE_MAX);
	of(endpoint)->send_count = 0;
	go_ahead(endpoint);
	assert_int_equal(of(endpoint)->send_count, 0);
	rping_command.interrupt(fake.state, INTERRUPTION_SIGNAL);
	disconnect(endpoint);
	assert_ended(OUTCOME_OK, "");
}

/* n pings take n periods, and their reported rate is that of the schedule. */
TEST(client_pings_at_its_rate_for_its_duration, set_up, tear_down)
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
		struct endpoint *endpoint;
		unsigned count = 0;

		fake.options.common.timeout = 10 * CLOCK_NS_PER_S;
		fake.options.interval = rows[i].interval;
		fake.options.duration = rows[i].duration;
		fake.options.count = rows[i].count;
		endpoint = connected_client(NULL);
		next_interval();
		while (!of(endpoint)->disconnected) {
			fake_clock_pass(rows[i].interval / 4);
			pings(endpoint, 1);
			count++;
			if (!of(endpoint)->disconnected)
				run_for(3 * rows[i].interval / 4);
			/* An interval that ends within a slot has the rate of the completed slots. */
			if (count % 4 == 0) {
				assert_reports_interval(rows[i].rate);
				next_interval();
			}
		}
		assert_int_equal(count, rows[i].pings);
		assert_reports(rows[i].rate);
		disconnect(endpoint);
		assert_ended(OUTCOME_OK, "");
		tear_down(state);
		set_up(state);
	}
	capture_end(&fake.errors);
}

/* Plays pings of a size. */
static void pings_of(struct endpoint *endpoint, uint32_t size, unsigned count)
{
	while (count--) {
		answer_ping(endpoint, size, SIZE_MAX);
		go_ahead(endpoint);
	}
}

static struct endpoint *sweeping_client(int64_t last_size, const struct hello *server)
{
	fake.options.validate = true;
	fake.options.last_size = last_size;
	return connected_client(server);
}

TEST(client_sweeps_up_to_the_size_limit_of_the_server, set_up, tear_down)
{
	static const struct {
		uint32_t capacity, device;
		const char *hint;
	} rows[] = { { 128, 1 << 30, "" },
		     { 127, 1 << 30, "hint: sizes above 127 are left out: the server accepts no longer pings" },
		     { UINT32_MAX, 64, "hint: sizes above 64 are left out: the server accepts no longer pings" } };

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct hello hello = { .tool = HELLO_RPING, .capacity = rows[i].capacity };
		struct endpoint *endpoint;

		if (i) {
			tear_down(state);
			set_up(state);
		}
		fake.domain.max_message = rows[i].device;
		fake.options.count = 1;
		endpoint = sweeping_client(128, &hello);
		pings_of(endpoint, 32, 1);
		pings_of(endpoint, 64, 1);
		assert_int_equal(of(endpoint)->disconnected, *rows[i].hint != 0);
		if (!*rows[i].hint)
			pings_of(endpoint, 128, 1);
		disconnect(endpoint);
		assert_ended(OUTCOME_OK, rows[i].hint);
	}
}

/* The time of a size ends while the client waits for a slot, and the next size begins in that. */
TEST(client_sweeps_for_a_time_each, set_up, tear_down)
{
	struct endpoint *endpoint;

	fake.options.common.timeout = 10 * CLOCK_NS_PER_S;
	fake.options.interval = 100 * CLOCK_NS_PER_MS;
	fake.options.duration = 150 * CLOCK_NS_PER_MS;
	endpoint = sweeping_client(64, NULL);
	pings_of(endpoint, 32, 1);
	run_for(110 * CLOCK_NS_PER_MS);
	pings_of(endpoint, 32, 1);
	run_for(100 * CLOCK_NS_PER_MS);
	pings_of(endpoint, 64, 1);
	run_for(100 * CLOCK_NS_PER_MS);
	assert_false(of(endpoint)->disconnected);
	pings_of(endpoint, 64, 1);
	run_for(100 * CLOCK_NS_PER_MS);
	assert_true(of(endpoint)->disconnected);
	disconnect(endpoint);
	assert_ended(OUTCOME_OK, "");
}

/* The time of a size and the wait for a slot end in one iteration of the loop. */
TEST(client_begins_a_size_in_a_late_slot, set_up, tear_down)
{
	struct endpoint *endpoint;

	fake.options.common.timeout = 10 * CLOCK_NS_PER_S;
	fake.options.interval = 100 * CLOCK_NS_PER_MS;
	fake.options.duration = 50 * CLOCK_NS_PER_MS;
	endpoint = sweeping_client(64, NULL);
	pings_of(endpoint, 32, 1);
	fake_clock_pass(120 * CLOCK_NS_PER_MS);
	run_for(CLOCK_NS_PER_MS);
	pings_of(endpoint, 64, 1);
	run_for(60 * CLOCK_NS_PER_MS);
	assert_true(of(endpoint)->disconnected);
	disconnect(endpoint);
	assert_ended(OUTCOME_OK, "");
}

/* Short packets pass, and long ones vanish: a server that cannot read the ping ends, or does not answer. */
TEST(client_names_the_sizes_that_passed, set_up, tear_down)
{
	const struct hello hello = { .tool = HELLO_RPING, .capacity = PING_SIZE_MAX };
	struct endpoint *endpoint;

	fake.options.size = 64;
	fake.options.count = 1;
	endpoint = sweeping_client(4096, &hello);
	pings_of(endpoint, 64, 1);
	pings_of(endpoint, 128, 1);
	disconnect(endpoint);
	assert_ended(
		OUTCOME_FAILED,
		"hint: pings of up to 128 bytes passed, of 256 none: a hop with a smaller MTU may drop long packets");
	tear_down(state);
	set_up(state);
	fake.options.size = 4096;
	endpoint = connected_client(&hello);
	run_for(fake.options.common.timeout + CLOCK_NS_PER_S);
	assert_ended(OUTCOME_FAILED, "hint: if pings with -S 100 pass, a hop with a smaller MTU may drop");
}

/* Two targets may have the same address. */
TEST(error_belongs_to_its_target, set_up, tear_down)
{
	struct endpoint *good, *bad;

	fake.options.count = 1;
	fake.options.client = true;
	fake.options.addresses = (struct option_list){ .texts = { "10.0.0.1", "10.0.0.1" }, .count = 2 };
	start();
	run_for(CLOCK_NS_PER_MS);
	assert_int_equal(fake.endpoint_count, 2);
	bad = &fake.endpoints[1]->base;
	error_failure(&bad->transport->error, &(struct failure){ .object = bad->name, .phase = "connecting" },
		      "refused by the peer");
	endpoint_fail(bad, OUTCOME_NO_CONNECTION);
	good = connect_endpoint(&fake.endpoints[0]->base, NULL);
	pings(good, 1);
	disconnect(good);
	assert_int_equal(reported_times("\"verdict\":\"fail\",\"error\":\"connecting: refused by the peer\""), 1);
	assert_int_equal(reported_times("\"verdict\":\"pass\",\"error\":null"), 1);
	assert_ended(OUTCOME_NO_CONNECTION, "rping: 10.0.0.1:7174: connecting: refused by the peer\n");
}

TEST(client_waits_for_the_server, set_up, tear_down)
{
	struct endpoint *endpoint;

	fake.options.client = true;
	fake.options.count = 1;
	fake.options.wait_server = 10 * CLOCK_NS_PER_S;
	fake.options.addresses = (struct option_list){ .texts = { "10.0.0.1" }, .count = 1 };
	start();
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(fake.endpoint_count, i + 1);
		fake_clock_pass(CLOCK_NS_PER_S);
		resolved(&fake.endpoints[i]->base);
		assert_reports("\"connect\":{\"resolve_address_ns\":1000000000,");
		absent(&fake.endpoints[i]->base);
		loop_run(fake.environment.loop);
	}
	fake_clock_pass(CLOCK_NS_PER_MS);
	endpoint = connect_endpoint(&fake.endpoints[3]->base, NULL);
	/* Of the run, and of its target. */
	assert_int_equal(reported_times("\"connect\":{\"resolve_address_ns\":1000000,"), 2);
	pings(endpoint, 1);
	disconnect(endpoint);
	assert_ended(OUTCOME_OK, "");
}

/* Errors of earlier attempts are not reported. */
TEST(client_reports_the_error_of_the_final_attempt, set_up, tear_down)
{
	struct endpoint *endpoint;

	fake.options.client = true;
	fake.options.wait_server = 10 * CLOCK_NS_PER_S;
	fake.options.addresses = (struct option_list){ .texts = { "10.0.0.1" }, .count = 1 };
	start();
	absent(&fake.endpoints[0]->base);
	loop_run(fake.environment.loop);
	endpoint = &fake.endpoints[1]->base;
	error_failure(&endpoint->transport->error, &(struct failure){ .object = endpoint->name, .phase = "connecting" },
		      "refused by the peer");
	endpoint_fail(endpoint, OUTCOME_NO_CONNECTION);
	assert_int_equal(reported_times("\"error\":\"connecting: refused by the peer\""), 1);
	assert_ended(OUTCOME_NO_CONNECTION, "rping: 10.0.0.1:7174: connecting: refused by the peer\n");
}

/* ---- the server; the test plays the client ---- */

static struct endpoint *request_session(uint64_t expected_pings)
{
	struct hello hello = { .tool = HELLO_RPING, .count = expected_pings };

	return request_connection(expected_pings ? &hello : NULL);
}

static struct endpoint *connected_session(uint64_t expected_pings)
{
	struct endpoint *request;

	if (!fake.state) {
		fake.options.server = true;
		start();
	}
	request = request_session(expected_pings);
	assert_int_equal(request->state, ENDPOINT_ACCEPTING);
	endpoint_established(request, NULL, 0);
	return request;
}

static void advertise(struct endpoint *endpoint, const uint8_t *memory, uint32_t size)
{
	struct advertisement advertisement = { .address = (uintptr_t)memory, .key = 9, .size = size };

	receive_message(endpoint, &advertisement, ADVERTISEMENT_SIZE);
}

/* Plays the device: executes the RDMA READ. */
static void perform_read(struct endpoint *endpoint)
{
	const struct work *read = &of(endpoint)->sends[0];

	assert_int_equal(read->kind, WORK_READ);
	assert_int_equal(read->remote_key, 9);
	assert_true(read->length <= read->region->length);
	memcpy(read->region->memory, (const uint8_t *)(uintptr_t)read->remote_address, read->length);
	complete(endpoint, WORK_READ, read->tag, 0);
}

/* Checks the RDMA WRITE and the go-ahead, and executes the WRITE. */
static void perform_write(struct endpoint *endpoint)
{
	const struct work *works = of(endpoint)->sends;

	assert_int_equal(of(endpoint)->send_count, 2);
	assert_int_equal(works[0].kind, WORK_WRITE);
	assert_int_equal(works[0].remote_key, 9);
	assert_true(works[0].unsignalled);
	assert_int_equal(works[1].kind, WORK_SEND);
	assert_true(works[1].unsignalled);
	memcpy((uint8_t *)(uintptr_t)works[0].remote_address, works[0].region->memory, works[0].length);
}

/* Plays a ping until the server has posted its answer. */
static void ping(struct endpoint *endpoint, uint32_t size, uint32_t number)
{
	stock_ping(fake.source, size, number);
	advertise(endpoint, fake.source, size);
	perform_read(endpoint);
	advertise(endpoint, fake.sink, size);
}

TEST(server_exposes_no_buffer, set_up, tear_down)
{
	struct endpoint *endpoint = connected_session(2);

	ping(endpoint, 32, 0);
	ping(endpoint, 64, 1);
	assert_int_equal(fake.regions_with[REGION_READ_SINK], 2);
	assert_int_equal(fake.regions_with[REGION_LOCAL], 1);
	assert_int_equal(fake.regions_created, 3);
	disconnect(endpoint);
	assert_ended(OUTCOME_OK, "");
}

/* The send queue may still use the buffer of an answer that was delivered. */
TEST(server_keeps_the_old_buffer_until_the_next_read, set_up, tear_down)
{
	struct endpoint *endpoint = connected_session(0);

	ping(endpoint, 32, 0);
	stock_ping(fake.source, 64, 1);
	advertise(endpoint, fake.source, 64);
	assert_int_equal(fake.regions_destroyed, 0);
	perform_read(endpoint);
	assert_int_equal(fake.regions_destroyed, 1);
	disconnect(endpoint);
	assert_ended(OUTCOME_FAILED, "waiting for the client's sink: the client went away in the middle of ping 1");
}

TEST(interrupted_server_confirms_the_last_answer, set_up, tear_down)
{
	struct endpoint *endpoint;
	const struct work *confirmation;

	fake.options.persistent = true;
	endpoint = connected_session(0);
	ping(endpoint, 32, 0);
	assert_reports("\"pings\":{\"answered\":0");
	rping_command.interrupt(fake.state, INTERRUPTION_SIGNAL);
	assert_false(of(endpoint)->disconnected);
	confirmation = &of(endpoint)->sends[0];
	assert_int_equal(confirmation->kind, WORK_WRITE);
	assert_int_equal(confirmation->length, 0);
	assert_false(confirmation->unsignalled);
	complete(endpoint, WORK_WRITE, confirmation->tag, 0);
	assert_true(of(endpoint)->disconnected);
	assert_reports("\"pings\":{\"answered\":1");
	disconnect(endpoint);
	assert_ended(OUTCOME_OK, "");
}

TEST(ping_confirms_the_last_answer_of_an_interrupted_server, set_up, tear_down)
{
	struct endpoint *endpoint;

	fake.options.persistent = true;
	endpoint = connected_session(0);
	ping(endpoint, 32, 0);
	rping_command.interrupt(fake.state, INTERRUPTION_SIGNAL);
	advertise(endpoint, fake.source, 32);
	assert_true(of(endpoint)->disconnected);
	assert_reports("\"pings\":{\"answered\":1");
	disconnect(endpoint);
	assert_ended(OUTCOME_OK, "");
}

/* Stops at the request, because on a stalled machine the next timer may expire soon. */
static const struct work *run_until_confirmation_request(struct endpoint *endpoint)
{
	const struct work *last = &of(endpoint)->sends[0];

	for (unsigned turn = 0; (last->kind != WORK_WRITE || last->length) && turn < 1000; turn++)
		run_for(CLOCK_NS_PER_MS);
	return last;
}

/* After the confirmation the client may pause without limit. */
TEST(server_requests_confirmation_of_an_answer, set_up, tear_down)
{
	struct endpoint *endpoint = connected_session(2);
	const struct work *confirmation;

	ping(endpoint, 32, 0);
	perform_write(endpoint);
	confirmation = run_until_confirmation_request(endpoint);
	assert_int_equal(confirmation->kind, WORK_WRITE);
	assert_int_equal(confirmation->length, 0);
	assert_false(confirmation->unsignalled);
	complete(endpoint, WORK_WRITE, confirmation->tag, 0);
	assert_reports("\"pings\":{\"answered\":1");
	run_for(600 * CLOCK_NS_PER_MS);
	ping(endpoint, 32, 1);
	perform_write(endpoint);
	disconnect(endpoint);
	assert_ended(OUTCOME_OK, "");
}

/* The next ping arrives before the completion of the confirmation. */
TEST(server_ignores_a_late_confirmation, set_up, tear_down)
{
	struct endpoint *endpoint = connected_session(2);
	uint32_t tag;

	ping(endpoint, 32, 0);
	tag = run_until_confirmation_request(endpoint)->tag;
	stock_ping(fake.source, 32, 1);
	advertise(endpoint, fake.source, 32);
	complete(endpoint, WORK_WRITE, tag, 0);
	perform_read(endpoint);
	advertise(endpoint, fake.sink, 32);
	perform_write(endpoint);
	disconnect(endpoint);
	assert_ended(OUTCOME_OK, "");
}

/* What a client does, and its device. */
enum step {
	NOTHING,
	SOURCE, /* an advertisement of so many bytes */
	READ,
	SINK,
	PING,  /* a whole one */
	EMPTY, /* a message of no bytes */
	FAILED_READ,
	SILENCE,
	LEAVE,
};

static void play(struct endpoint *endpoint, enum step step, uint32_t size)
{
	switch (step) {
	case NOTHING:
		break;
	case SOURCE:
	case SINK:
		advertise(endpoint, step == SOURCE ? fake.source : fake.sink, size);
		break;
	case READ:
		perform_read(endpoint);
		break;
	case PING:
		ping(endpoint, size, 0);
		break;
	case EMPTY:
		receive_message(endpoint, &(struct advertisement){ 0 }, 0);
		break;
	case FAILED_READ:
		endpoint->handlers->completion(
			endpoint->context, endpoint,
			&(struct completion){ .kind = WORK_READ, .status = COMPLETION_REMOTE_ACCESS });
		break;
	case SILENCE:
		loop_run(fake.environment.loop);
		break;
	case LEAVE:
		disconnect(endpoint);
		break;
	}
}

TEST(server_fails_clients_that_break_the_protocol, set_up, tear_down)
{
	static const struct {
		struct {
			enum step step;
			uint32_t size;
		} steps[3];
		const char *words;
		bool short_device, no_reads;
	} rows[] = {
		{ { { SOURCE, 0 } }, "source of 0 bytes cannot be used: it is empty" },
		{ { { SOURCE, PING_SIZE_MAX + 1 } },
		  "source of 1048577 bytes cannot be used: it is longer than a ping may be" },
		{ { { SOURCE, 4097 } },
		  "source of 4097 bytes cannot be used: it is longer than a ping may be",
		  .short_device = true },
		{ { { SOURCE, 32 } }, "the peer allows no RDMA READ (responder resources 0)", .no_reads = true },
		{ { { SOURCE, 32 }, { READ }, { SINK, 31 } },
		  "sink of 31 bytes cannot be used: it is smaller than the ping" },
		{ { { SOURCE, 32 }, { SINK, 32 } }, "ping 0: a message out of order, while reading the ping" },
		{ { { EMPTY } }, "a message of 0 bytes instead of 16" },
		{ { { SOURCE, 32 }, { FAILED_READ } }, "" },
		{ { { LEAVE } }, "10.0.0.2:4242: the client disconnected after 0 pings" },
		/* No READ completes, which would have freed the old buffer. */
		{ { { PING, 32 }, { SOURCE, 64 }, { LEAVE } },
		  "reading the ping: the client went away in the middle of ping 1" },
		{ { { SILENCE } }, "waiting for the first ping: timed out after 0.4 s" },
		{ { { SOURCE, 32 }, { SILENCE } }, "reading the ping: timed out after 0.4 s in ping 0" },
		{ { { SOURCE, 32 }, { READ }, { SILENCE } }, "waiting for the client's sink: timed out after 0.4 s" },
		{ { { PING, 32 }, { SILENCE } },
		  "waiting for the acknowledgement of the answer: timed out after 0.2 s in ping 0" },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct endpoint *endpoint;

		if (i) {
			tear_down(state);
			set_up(state);
		}
		if (rows[i].short_device)
			fake.domain.max_message = 4096;
		endpoint = connected_session(0);
		endpoint->no_reads = rows[i].no_reads;
		for (size_t step = 0; step < LENGTH(rows[i].steps); step++)
			play(endpoint, rows[i].steps[step].step, rows[i].steps[step].size);
		assert_ended(OUTCOME_FAILED, rows[i].words);
	}
}

/* It compares and prints when the answer is posted: the client measures the time until then. */
TEST(server_reports_a_wrong_byte_after_the_answer, set_up, tear_down)
{
	const struct fake_endpoint *posted;
	struct endpoint *endpoint;
	char *text = NULL;
	size_t length;

	fake.options.validate = true;
	fake.options.verbose = true;
	fake.environment.output = open_memstream(&text, &length);
	endpoint = connected_session(0);
	posted = of(endpoint);
	ping(endpoint, 32, 0);
	perform_write(endpoint);
	stock_ping(fake.source, 32, 1);
	fake.source[31] = 'x';
	advertise(endpoint, fake.source, 32);
	perform_read(endpoint);
	assert_int_equal(posted->send_count, 1);
	assert_int_equal(posted->sends[0].kind, WORK_SEND);
	fflush(fake.environment.output);
	assert_non_null(strstr(text, "rdma-ping-0: "));
	assert_null(strstr(text, "rdma-ping-1: "));
	advertise(endpoint, fake.sink, 32);
	assert_int_equal(posted->send_count, 2);
	assert_int_equal(posted->sends[0].kind, WORK_WRITE);
	assert_int_equal(posted->sends[1].kind, WORK_SEND);
	fclose(fake.environment.output);
	fake.environment.output = stdout;
	free(text);
	assert_ended(OUTCOME_FAILED, "ping 1: payload differs at byte 31 of 32: expected 0x00, found 0x78");
}

TEST(server_expects_the_pings_of_the_hello, set_up, tear_down)
{
	struct endpoint *endpoint = connected_session(10);

	for (uint32_t number = 0; number < 3; number++) {
		ping(endpoint, 32, number);
		perform_write(endpoint);
	}
	disconnect(endpoint);
	assert_ended(OUTCOME_FAILED, "10.0.0.2:4242: the client disconnected after 3 of 10 pings");
}

/* A stock client sends no hello, and if it is killed between two pings the kernel disconnects. */
TEST(server_expects_count_pings_of_a_stock_client, set_up, tear_down)
{
	for (int hello = 0; hello <= 1; hello++) {
		struct endpoint *endpoint;

		if (hello) {
			tear_down(state);
			set_up(state);
		}
		fake.options.count = 3;
		endpoint = connected_session((uint64_t)hello);
		ping(endpoint, 32, 0);
		disconnect(endpoint);
		if (hello)
			assert_ended(OUTCOME_OK, "");
		else
			assert_ended(OUTCOME_FAILED, "the client disconnected after 1 of 3 pings");
	}
}

TEST(failed_client_does_not_affect_others, set_up, tear_down)
{
	struct endpoint *good, *bad;

	fake.options.persistent = true;
	good = connected_session(0);
	bad = connected_session(0);
	ping(good, 32, 0);
	advertise(bad, fake.source, 0);
	assert_int_equal(bad->state, ENDPOINT_DESTROYED);
	perform_write(good);
	ping(good, 32, 1);
	perform_write(good);
	disconnect(good);
	assert_int_equal(fake.endpoints[0]->base.state, ENDPOINT_LISTENING);
	rping_command.interrupt(fake.state, INTERRUPTION_SIGNAL);
	assert_ended(OUTCOME_FAILED, "source of 0 bytes");
}

/* Plays a client that connects, pings once and disconnects. */
static void serve_one_client(void)
{
	struct endpoint *endpoint = connected_session(0);

	ping(endpoint, 32, 0);
	perform_write(endpoint);
	disconnect(endpoint);
}

TEST(server_serves_one_client_at_a_time, set_up, tear_down)
{
	struct endpoint *endpoint, *second;

	fake.options.max_clients = 2;
	endpoint = connected_session(0);
	second = request_session(0);
	assert_true(of(second)->rejected);
	assert_int_equal(second->state, ENDPOINT_DESTROYED);
	ping(endpoint, 32, 0);
	perform_write(endpoint);
	disconnect(endpoint);
	serve_one_client();
	assert_ended(OUTCOME_OK, "");
}

/* A request that fails for lack of resources is a failure of the server. */
TEST(server_without_memory_for_requests_fails, set_up, tear_down)
{
	struct endpoint *listener;
	unsigned lines = 0;

	fake.options.server = true;
	fake.options.persistent = true;
	start();
	listener = &fake.endpoints[0]->base;
	endpoint_request_failed(listener, OUTCOME_NO_CONNECTION);
	assert_int_equal(fake.environment.outcome, OUTCOME_OK);
	for (unsigned count = 0; count < 20; count++)
		endpoint_request_no_memory(listener);
	assert_int_equal(fake.environment.outcome, OUTCOME_INTERNAL);
	serve_one_client();
	rping_command.interrupt(fake.state, INTERRUPTION_SIGNAL);
	assert_ended(OUTCOME_INTERNAL, "0.0.0.0:7174: a request is refused: out of memory\n");
	/* Repeated requests do not fill the log. */
	for (const char *at = fake.errors.text; (at = strchr(at, '\n')); at++)
		lines++;
	assert_int_equal(lines, 1);
}

TEST(silent_clients_do_not_fill_the_log, set_up, tear_down)
{
	unsigned lines = 0;

	fake.options.persistent = true;
	for (unsigned i = 0; i < 30; i++) {
		struct endpoint *client = connected_session(0);

		snprintf(client->name, sizeof(client->name), "10.0.0.2:%u", 1000 + i);
	}
	run_for(500 * CLOCK_NS_PER_MS);
	rping_command.interrupt(fake.state, INTERRUPTION_SIGNAL);
	assert_reports("\"served\":{\"clients\":0,\"failed\":30,");
	assert_ended(OUTCOME_FAILED, "waiting for the first ping");
	for (const char *at = fake.errors.text; (at = strstr(at, "waiting for the first ping")); at++)
		lines++;
	assert_int_equal(lines, 10);
}

/* Clients that were answered do not use up the lines of one that sends no ping. */
TEST(silent_client_among_many_has_a_line, set_up, tear_down)
{
	fake.options.persistent = true;
	for (unsigned i = 0; i < 30; i++) {
		struct endpoint *client = connected_session(0);

		ping(client, 32, 0);
		ping(client, 32, 1);
		disconnect(client);
	}
	connected_session(0);
	run_for(500 * CLOCK_NS_PER_MS);
	rping_command.interrupt(fake.state, INTERRUPTION_SIGNAL);
	assert_ended(OUTCOME_FAILED, "waiting for the first ping");
}

TEST(server_fails_if_a_pending_request_has_no_resources, set_up, tear_down)
{
	fake.options.server = true;
	fake.options.persistent = true;
	start();
	endpoint_fail(request_session(0), OUTCOME_INTERNAL);
	assert_int_equal(fake.endpoints[0]->base.state, ENDPOINT_LISTENING);
	rping_command.interrupt(fake.state, INTERRUPTION_SIGNAL);
	assert_ended(OUTCOME_INTERNAL, "");
}

TEST(rejection_names_the_cause, set_up, tear_down)
{
	struct endpoint *request;

	fake.options.server = true;
	fake.options.persistent = true;
	start();
	fake.next.create_qp = OUTCOME_INTERNAL;
	request = request_session(0);
	assert_true(of(request)->rejected);
	assert_string_equal(of(request)->rejection, "no queue pair left");
	fake.next.accept = OUTCOME_INTERNAL;
	request = request_session(0);
	assert_true(of(request)->rejected);
	assert_string_equal(of(request)->rejection, "it cannot be accepted");
	serve_one_client();
	rping_command.interrupt(fake.state, INTERRUPTION_SIGNAL);
	assert_ended(OUTCOME_INTERNAL, "10.0.0.2:4242: no queue pair left\n");
}

TEST(one_shot_server_without_memory_ends, set_up, tear_down)
{
	fake.options.server = true;
	start();
	endpoint_request_no_memory(&fake.endpoints[0]->base);
	loop_run(fake.environment.loop);
	assert_ended(OUTCOME_INTERNAL, "0.0.0.0:7174: a request is refused: out of memory\n");
}

/* The server would have rejected the second client anyway. */
TEST(one_shot_server_continues_after_a_failed_request, set_up, tear_down)
{
	struct endpoint *session = connected_session(1);

	endpoint_request_failed(&fake.endpoints[0]->base, OUTCOME_INTERNAL);
	assert_false(of(session)->disconnected);
	ping(session, 32, 0);
	disconnect(session);
	assert_ended(OUTCOME_OK, "");
}

TEST(server_rejects_clients_above_max_clients, set_up, tear_down)
{
	struct endpoint *first, *third;

	fake.options.persistent = true;
	fake.options.max_clients = 2;
	first = connected_session(0);
	connected_session(0);
	third = request_session(0);
	assert_string_equal(of(third)->rejection, HELLO_BUSY);
	ping(first, 32, 0);
	perform_write(first);
	disconnect(first);
	assert_true(of(request_session(0))->rejected);
	rping_command.interrupt(fake.state, INTERRUPTION_SIGNAL);
	disconnect(&fake.endpoints[2]->base);
	assert_ended(OUTCOME_OK, "");
}

/* A request may have a forged source address. */
TEST(pending_request_is_not_counted, set_up, tear_down)
{
	struct endpoint *pending, *rejected, *first;

	fake.options.persistent = true;
	fake.options.max_clients = 2;
	first = connected_session(0);
	pending = request_session(0);
	assert_reports("\"served\":{\"clients\":0,\"failed\":0,\"connected\":1}");
	/* The pending request occupies a place for now: the server is busy, but its limit is not reached. */
	rejected = request_session(0);
	assert_string_equal(of(rejected)->rejection, HELLO_BUSY);
	endpoint_fail(pending, OUTCOME_NO_CONNECTION);
	assert_false(of(request_session(0))->rejected);
	ping(first, 32, 0);
	perform_write(first);
	disconnect(first);
	rping_command.interrupt(fake.state, INTERRUPTION_SIGNAL);
	assert_ended(OUTCOME_FAILED, "ended early, after 1 of 2 clients");
}

/* A pending request does not count: its source address may be forged. */
TEST(persistent_server_limits_its_clients, set_up, tear_down)
{
	struct fake_endpoint **clients = calloc(RPING_CLIENTS_MAX, sizeof(*clients));
	struct endpoint *rejected;

	fake.options.persistent = true;
	fake.options.server = true;
	start();
	request_session(0);
	for (size_t i = 0; i < RPING_CLIENTS_MAX; i++) {
		connected_session(0);
		clients[i] = fake.endpoints[--fake.endpoint_count];
	}
	rejected = request_session(0);
	assert_true(of(rejected)->rejected);
	assert_string_equal((const char *)of(rejected)->rejection, HELLO_BUSY);
	for (size_t i = 0; i < RPING_CLIENTS_MAX; i++) {
		disconnect(&clients[i]->base);
		free(clients[i]);
	}
	free(clients);
	assert_false(of(request_session(0))->rejected);
	rping_command.interrupt(fake.state, INTERRUPTION_SIGNAL);
	assert_ended(OUTCOME_OK, "");
}

TEST(server_buffer_is_as_long_as_the_longest_ping, set_up, tear_down)
{
	static const uint32_t pairs[][2] = {
		{ 100, 100 },
		{ 101, 101 },
		{ 50, 101 },
		{ PING_SIZE_MAX, PING_SIZE_MAX },
	};
	struct endpoint *endpoint = connected_session(0);

	for (size_t i = 0; i < LENGTH(pairs); i++) {
		advertise(endpoint, fake.source, pairs[i][0]);
		assert_int_equal(of(endpoint)->sends[0].kind, WORK_READ);
		assert_int_equal(of(endpoint)->sends[0].region->length, pairs[i][1]);
		complete(endpoint, WORK_READ, 0, 0);
		advertise(endpoint, fake.sink, pairs[i][0]);
	}
	disconnect(endpoint);
	assert_ended(OUTCOME_OK, "");
}

TEST(server_prints_the_range_of_sizes, set_up, tear_down)
{
	struct endpoint *endpoint = connected_session(0);

	ping(endpoint, 32, 0);
	ping(endpoint, 200, 1);
	ping(endpoint, 7, 2);
	ping(endpoint, 50, 3);
	disconnect(endpoint);
	assert_non_null(strstr(fake.environment.verdict, "4 pings of 7 to 200 bytes from 10.0.0.2:4242 answered"));
	assert_ended(OUTCOME_OK, "");
}

/* --deadline is a failure, although interrupting a server with -P is not. */
TEST(deadline_fails_the_clients_of_a_server, set_up, tear_down)
{
	struct endpoint *endpoint;

	fake.options.persistent = true;
	endpoint = connected_session(0);
	ping(endpoint, 32, 0);
	rping_command.interrupt(fake.state, INTERRUPTION_DEADLINE);
	assert_true(of(endpoint)->disconnected);
	disconnect(endpoint);
	assert_reports("\"served\":{\"clients\":0,\"failed\":1,");
	assert_ended(OUTCOME_FAILED, "");
}

/* The server is idle only if it has no client. */
TEST(server_with_a_client_is_not_idle, set_up, tear_down)
{
	struct endpoint *endpoint;

	fake.options.persistent = true;
	fake.options.idle_timeout = CLOCK_NS_PER_S;
	endpoint = connected_session(0);
	for (uint32_t number = 0; number < 20; number++) {
		ping(endpoint, 32, number);
		perform_write(endpoint);
		run_for(100 * CLOCK_NS_PER_MS);
	}
	assert_int_equal(fake.endpoints[0]->base.state, ENDPOINT_LISTENING);
	disconnect(endpoint);
	loop_run(fake.environment.loop);
	assert_ended(OUTCOME_OK, "");
}

/* The connected client may finish, and the run still fails. */
TEST(server_fails_if_its_listener_fails, set_up, tear_down)
{
	struct endpoint *endpoint;

	fake.options.persistent = true;
	endpoint = connected_session(1);
	endpoint_fail(&fake.endpoints[0]->base, OUTCOME_INTERNAL);
	assert_int_equal(endpoint->state, ENDPOINT_ESTABLISHED);
	ping(endpoint, 32, 0);
	perform_write(endpoint);
	disconnect(endpoint);
	assert_ended(OUTCOME_INTERNAL, "");
}

/* OUTCOME_NO_CONNECTION: the client withdrew its request. OUTCOME_INTERNAL: the server lacks resources. */
TEST(failed_accept_fails_the_server_unless_withdrawn, set_up, tear_down)
{
	fake.options.server = true;
	start();
	fake.next.accept = OUTCOME_NO_CONNECTION;
	request_session(1);
	assert_int_equal(fake.endpoints[0]->base.state, ENDPOINT_LISTENING);
	assert_int_equal(fake.environment.outcome, OUTCOME_OK);
	fake.next.accept = OUTCOME_INTERNAL;
	request_session(1);
	assert_ended(OUTCOME_INTERNAL, "rping: 10.0.0.2:4242: it cannot be accepted\n");
}
