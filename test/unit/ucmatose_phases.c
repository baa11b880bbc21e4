/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=privileges_drop */
/* Runs of ucmatose at both ends: the phases, the limits of time, the failures of single connections, and the verdict.
 */
#include "test/unit/unit.h"

#include "cmd/run.h"
#include "cmd/ucmatose/ucmatose.h"

#define FAKE_FIELDS                                                                                                    \
	struct ucmatose_options options;                                                                               \
	char *output;                                                                                                  \
	size_t output_length;

#include "test/unit/fake_transport.h"
#include "test/unit/pattern.h"

#define MS CLOCK_NS_PER_MS

static int set_up(void **state)
{
	fake_create(&ucmatose_command, HELLO_UCMATOSE);
	fake.environment.output = open_memstream(&fake.output, &fake.output_length);
	fake.domain.max_qp_wr = 100;
	fake.domain.max_message = 1 << 20;
	fake.options = (struct ucmatose_options){
		.common = { .timeout = 400 * MS, .path = PATH_OPEN },
		.port_space = PORT_SPACE_TCP,
		.connections = 1,
		.count = 1,
		.size = 100,
		.port = 7471,
	};
	return 0;
}

static int clean_up(void **state)
{
	fclose(fake.environment.output);
	free(fake.output);
	return tear_down(state);
}

static struct endpoint *endpoint_of(size_t number)
{
	assert_true(number < fake.endpoint_count);
	return &fake.endpoints[number]->base;
}

static void interrupt(enum interruption reason)
{
	ucmatose_command.interrupt(fake.state, reason);
}

/* Of the same test: the one before is over. */
static void another_run(void)
{
	clean_up(NULL);
	set_up(NULL);
}

/* What a peer of ours says that runs with the options of this end. */
static struct hello hello_of(uint32_t connection)
{
	return (struct hello){ .tool = HELLO_UCMATOSE,
			       .capacity = (uint32_t)fake.options.size,
			       .connections = (uint32_t)fake.options.connections,
			       .count = (uint64_t)fake.options.count,
			       .connection = connection,
			       .window = (uint32_t)fake.options.count };
}

/* The run has ended, and that was on stderr. */
static void assert_over(enum outcome outcome, const char *errors)
{
	assert_true(fake.environment.ended);
	fflush(fake.environment.output);
	assert_ended(outcome, errors);
	assert_string_equal(fake.errors.text, errors);
}

static void assert_says(const char *words)
{
	fflush(fake.environment.output);
	if (!strstr(fake.output, words))
		fail_msg("\"%s\" is not in: %s", words, fake.output);
}

static void assert_says_not(const char *words)
{
	fflush(fake.environment.output);
	if (strstr(fake.output, words))
		fail_msg("\"%s\" is in: %s", words, fake.output);
}

static unsigned times_said(const char *text, const char *words)
{
	unsigned times = 0;

	while ((text = strstr(text, words))) {
		text++;
		times++;
	}
	return times;
}

/* The peer's messages, of the connection that its hello says: a client's seed is twice its number, a server's one more.
 */
static void receive(struct endpoint *endpoint, uint32_t seed, uint32_t number)
{
	struct work receive = next_receive(endpoint);

	pattern_write(receive.region->memory + receive.offset, receive.length, seed, number);
	complete(endpoint, WORK_RECEIVE, 0, receive.length);
}

/* A send that reports has arrived. */
static void sent(struct endpoint *endpoint)
{
	complete(endpoint, WORK_SEND, 1, 0);
}

/* All is transferred: the server disconnects. */
static void finish(void)
{
	run_for(11 * MS);
	for (size_t i = 0; i < fake.endpoint_count; i++) {
		enum endpoint_state state = endpoint_of(i)->state;

		if (state == ENDPOINT_DISCONNECTING || state == ENDPOINT_ESTABLISHED)
			disconnect(endpoint_of(i));
	}
}

/* ---- a server ---- */

static void start_server(int64_t connections)
{
	fake.options.connections = connections;
	start();
	assert_int_equal(endpoint_of(0)->state, ENDPOINT_LISTENING);
}

static struct endpoint *ask(uint32_t connection, bool ours)
{
	struct hello hello = hello_of(connection);

	return request_connection(ours ? &hello : NULL);
}

static struct endpoint *take(uint32_t connection, bool ours)
{
	struct endpoint *endpoint = ask(connection, ours);

	assert_int_equal(endpoint->state, ENDPOINT_ACCEPTING);
	endpoint_established(endpoint, NULL, 0);
	return endpoint;
}

/* And what is said of it. */
#define OTHER_SIZE                                                                                                     \
	"ucmatose: 10.0.0.2:4242: the two ends do not agree: the peer runs with -c 2 -C 1 -S 200, "                    \
	"this end with -c 2 -C 1 -S 100\n"

static struct endpoint *ask_with_other_size(void)
{
	struct hello hello = hello_of(0);

	hello.capacity = 200;
	return request_connection(&hello);
}

/* All messages of a connection, which then disconnects. */
static void transfer(struct endpoint *endpoint, uint32_t connection)
{
	uint64_t count = (uint64_t)fake.options.count;

	for (uint32_t i = 0; i < count; i++)
		sent(endpoint);
	for (uint32_t i = 0; i < count; i++)
		receive(endpoint, 2 * connection, i);
}

/* A server's run of some connections that all go well. */
static void serve(uint32_t count, bool ours)
{
	struct endpoint *endpoints[4];

	start_server(count);
	for (uint32_t i = 0; i < count; i++)
		endpoints[i] = take(i, ours);
	for (uint32_t i = 0; i < count; i++)
		transfer(endpoints[i], i);
	finish();
}

TEST(server_serves_its_connections, set_up, clean_up)
{
	struct endpoint *first, *second;

	start_server(2);
	first = take(0, true);
	assert_int_equal(of(first)->hello.connection, 0);
	assert_int_equal(of(first)->hello.connections, 2);
	assert_int_equal(of(first)->hello.capacity, 100);
	assert_int_equal(of(first)->hello.count, 1);
	assert_int_equal(of(first)->hello.window, 1);
	run_for(MS);
	/* Nothing moves before all are connected. */
	assert_int_equal(of(first)->send_count, 0);
	second = ask(1, true);
	assert_int_equal(of(second)->hello.connection, 1);
	assert_int_equal(of(first)->send_count, 0);
	endpoint_established(second, NULL, 0);
	assert_int_equal(of(first)->send_count, 1);
	assert_int_equal(of(second)->send_count, 1);
	transfer(first, 0);
	run_for(20 * MS);
	assert_false(of(first)->disconnected);
	assert_says_not("receiving");
	sent(second);
	assert_says("receiving data transfers\n");
	receive(second, 2, 0);
	run_for(9 * MS);
	assert_false(of(first)->disconnected);
	run_for(2 * MS);
	assert_true(of(first)->disconnected);
	assert_true(of(second)->disconnected);
	disconnect(first);
	assert_false(fake.environment.ended);
	disconnect(second);
	assert_over(OUTCOME_OK, "");
	assert_string_equal(fake.output,
			    "cmatose: starting server\n"
			    "cmatose: listening on 0.0.0.0:7471\n"
			    "initiating data transfers\n"
			    "completing sends\n"
			    "receiving data transfers\n"
			    "data transfers complete\n"
			    "cmatose: disconnecting\n"
			    "disconnected\n"
			    "test complete\n"
			    "ucmatose: 2 connections, 2 messages of 100 bytes each way verified (fake, fake0)\n"
			    "return status 0\n");
}

/* Which need not be that in which they come. */
TEST(server_takes_the_clients_numbers, set_up, clean_up)
{
	struct endpoint *first, *second;

	start_server(2);
	first = take(1, true);
	fake.domain.device = "fake1";
	second = take(0, true);
	transfer(first, 1);
	transfer(second, 0);
	finish();
	assert_over(OUTCOME_OK, "");
	assert_says("verified (fake, several devices)\n");
}

TEST(server_refuses_connections_beyond_its_number, set_up, clean_up)
{
	struct endpoint *endpoint;

	start_server(1);
	endpoint = ask(0, true);
	/* Also while the last one is being accepted. */
	for (uint32_t i = 1; i <= 3; i++) {
		struct endpoint *more = ask(i, i % 2);

		assert_true(of(more)->rejected);
		assert_string_equal(of(more)->rejection, "all connections of -c are taken");
		assert_int_equal(more->state, ENDPOINT_DESTROYED);
	}
	endpoint_established(endpoint, NULL, 0);
	assert_true(of(ask(4, false))->rejected);
	transfer(endpoint, 0);
	finish();
	assert_reports("\"asked\":1,\"made\":1,\"failed\":0,\"refused\":4,");
	assert_over(OUTCOME_OK, "");
	assert_int_equal(times_said(fake.output, "cmatose: refusing a connection: all connections of -c are taken\n"),
			 1);
	assert_says("verified (fake, fake0)\n");
}

TEST(server_goes_on_with_those_that_came, set_up, clean_up)
{
	int64_t began = clock_now();
	struct endpoint *endpoint;

	start_server(3);
	run_for(1000 * MS);
	endpoint = ask(0, true);
	began = clock_now();
	run_for(300 * MS);
	/* What happens to a connection is progress too. */
	endpoint_established(endpoint, NULL, 0);
	run_for(399 * MS);
	assert_int_equal(of(endpoint)->send_count, 0);
	run_for(2 * MS);
	assert_int_equal(of(endpoint)->send_count, 1);
	assert_true(of(ask(1, true))->rejected);
	transfer(endpoint, 0);
	finish();
	assert_over(OUTCOME_FAILED, "ucmatose: received only 1 of 3 connection requests: timed out after 0.4 s\n");
	assert_says_not("data transfers complete");
	assert_says_not("verified");
	assert_says("test complete\nucmatose: FAILED: 1 of 3 connections completed (fake, fake0)\nreturn status 1\n");
	assert_true(clock_now() - began < 800 * MS);
}

TEST(every_request_prolongs_the_wait, set_up, clean_up)
{
	start_server(5);
	for (uint32_t i = 0; i < 3; i++) {
		take(i, true);
		run_for(300 * MS);
	}
	/* Also that of one that is lost. */
	endpoint_request_failed(endpoint_of(0), OUTCOME_INTERNAL);
	run_for(300 * MS);
	take(4, true);
	assert_reports("\"made\":4,\"failed\":1,");
	for (uint32_t i = 0; i < 4; i++)
		transfer(endpoint_of(1 + i), i < 3 ? i : 4);
	finish();
	assert_over(OUTCOME_INTERNAL, "");
}

static void assert_ends_within(int64_t least, int64_t max)
{
	run_for(least - MS);
	assert_false(fake.environment.ended);
	run_for(max - least + 2 * MS);
	assert_true(fake.environment.ended);
}

TEST(every_option_that_differs_is_refused, set_up, clean_up)
{
	static const struct hello others[] = {
		{ .capacity = 99, .connections = 2, .count = 1 },  { .capacity = 101, .connections = 2, .count = 1 },
		{ .capacity = 100, .connections = 1, .count = 1 }, { .capacity = 100, .connections = 3, .count = 1 },
		{ .capacity = 100, .connections = 2, .count = 2 },
	};

	for (size_t i = 0; i < LENGTH(others); i++) {
		struct hello hello = others[i];
		struct endpoint *request;

		if (i)
			another_run();
		hello.tool = HELLO_UCMATOSE;
		start_server(2);
		request = request_connection(&hello);
		assert_true(of(request)->rejected);
		assert_true(hello_read((uint8_t *)of(request)->rejection, HELLO_SIZE, HELLO_UCMATOSE, &hello));
		assert_int_equal(hello.capacity, 100);
		assert_int_equal(hello.connections, 2);
		assert_int_equal(hello.window, 0);
		assert_int_equal(times_said(capture_end(&fake.errors), "the two ends do not agree"), 1);
		capture_begin(&fake.errors);
		assert_over(OUTCOME_FAILED, "");
	}
}

/* It goes on with the connections that it has. */
TEST(another_size_ends_the_wait, set_up, clean_up)
{
	struct endpoint *first;

	start_server(2);
	first = take(0, true);
	ask_with_other_size();
	transfer(first, 0);
	finish();
	assert_over(OUTCOME_FAILED, OTHER_SIZE);
	assert_says("test complete\nucmatose: FAILED: 1 of 2 connections completed (fake, fake0)\nreturn status 1\n");
}

/* Its sender may be nobody: a forged request holds a place only as long as it is waited for. */
TEST(request_that_is_never_confirmed_is_no_connection, set_up, clean_up)
{
	struct endpoint *first, *second;

	fake.options.idle_timeout = 3600 * CLOCK_NS_PER_S;
	start_server(2);
	endpoint_fail(ask(7, true), OUTCOME_NO_CONNECTION);
	fake.next.accept = OUTCOME_NO_CONNECTION;
	assert_true(of(ask(7, true))->rejected);
	/* Then it waits for the first client again, without a limit. */
	run_for(1800 * CLOCK_NS_PER_S);
	first = take(0, true);
	second = ask(8, true);
	assert_true(of(ask(9, true))->rejected);
	endpoint_fail(second, OUTCOME_NO_CONNECTION);
	assert_int_equal(of(first)->send_count, 0);
	fake_clock_pass(CLOCK_NS_PER_S);
	second = take(1, false);
	assert_int_equal(of(second)->hello.connection, 1);
	transfer(first, 0);
	transfer(second, 1);
	finish();
	assert_reports("\"asked\":2,\"made\":2,\"failed\":0,\"refused\":1,");
	assert_reports("\"rate_per_second\":2.000");
	assert_over(OUTCOME_OK, "ucmatose: 10.0.0.2:4242: it cannot be accepted\n");
	assert_says("lengths checked");
}

/* Of those that came and were gone again none is waited for longer than of others. */
TEST(nobody_in_the_place_of_a_lost_request, set_up, clean_up)
{
	struct endpoint *first;

	start_server(2);
	first = take(0, true);
	endpoint_fail(ask(1, true), OUTCOME_NO_CONNECTION);
	run_for(401 * MS);
	transfer(first, 0);
	finish();
	assert_over(OUTCOME_FAILED, "ucmatose: received only 1 of 2 connection requests: timed out after 0.4 s\n");

	/* Without a listener nobody else can come. */
	another_run();
	start_server(2);
	first = ask(0, true);
	endpoint_fail(endpoint_of(0), OUTCOME_NO_DEVICE);
	endpoint_fail(first, OUTCOME_NO_CONNECTION);
	assert_over(OUTCOME_NO_DEVICE, "");
}

/* Of two clients at once. */
TEST(server_takes_the_connections_of_one_client, set_up, clean_up)
{
	struct hello hello;
	struct endpoint *first, *second;

	start_server(2);
	hello = hello_of(5);
	hello.run = 6;
	endpoint_fail(request_connection(&hello), OUTCOME_NO_CONNECTION);
	hello = hello_of(0);
	hello.run = 7;
	first = request_connection(&hello);
	hello.run = 8;
	second = request_connection(&hello);
	assert_true(of(second)->rejected);
	assert_string_equal(of(second)->rejection, "busy with another client");
	/* An older one does not say which it is. */
	hello.connection = 1;
	hello.run = 0;
	second = request_connection(&hello);
	endpoint_established(first, NULL, 0);
	endpoint_established(second, NULL, 0);
	transfer(first, 0);
	transfer(second, 1);
	finish();
	assert_reports("\"made\":2,\"failed\":0,\"refused\":1,");
	assert_over(OUTCOME_OK, "");
	assert_says("cmatose: refusing a connection: busy with another client\n");
}

TEST(server_accepts_a_stock_client_for_longer, set_up, clean_up)
{
	static const struct {
		int64_t connections;
		bool ours;
		int64_t times;
	} rows[] = { { 1, false, 1 }, { 255, false, 1 }, { 256, false, 2 }, { 1000, false, 4 }, { 1000, true, 1 } };

	for (size_t i = 0; i < LENGTH(rows); i++) {
		if (i)
			another_run();
		start_server(rows[i].connections);
		assert_int_equal(ask(0, rows[i].ours)->options.timeout, rows[i].times * 400 * MS);
		interrupt(INTERRUPTION_DEADLINE);
		assert_over(OUTCOME_FAILED, "");
	}
}

TEST(connection_that_cannot_be_accepted_has_failed, set_up, clean_up)
{
	struct endpoint *endpoint;

	start_server(3);
	fake.next.accept = OUTCOME_INTERNAL;
	endpoint = ask(0, true);
	assert_true(of(endpoint)->rejected);
	assert_string_equal(of(endpoint)->rejection, "it cannot be accepted");
	fake.domain.max_message = 99;
	endpoint = ask(1, true);
	assert_true(of(endpoint)->rejected);
	assert_string_equal(of(endpoint)->rejection, "-S 100: the longest message of device fake0 has 99 b...");
	fake.domain.max_message = 100;
	transfer(take(2, true), 2);
	finish();
	assert_over(OUTCOME_INTERNAL,
		    "ucmatose: 10.0.0.2:4242: it cannot be accepted\n"
		    "ucmatose: 10.0.0.2:4242: -S 100: the longest message of device fake0 has 99 bytes\n");
}

TEST(request_that_is_lost_here_has_failed, set_up, clean_up)
{
	struct endpoint *endpoint;

	fake.options.common.timeout = 10 * CLOCK_NS_PER_S;
	start_server(2);
	endpoint_request_failed(endpoint_of(0), OUTCOME_INTERNAL);
	run_for(9 * CLOCK_NS_PER_S);
	endpoint = ask(1, true);
	/* All that are wanted have come. */
	endpoint_request_failed(endpoint_of(0), OUTCOME_INTERNAL);
	endpoint_established(endpoint, NULL, 0);
	assert_int_equal(of(endpoint)->send_count, 1);
	transfer(endpoint, 1);
	finish();
	assert_over(OUTCOME_INTERNAL, "");
}

/* When all have come nobody is waited for, but what is under way is. */
TEST(server_waits_for_a_stock_client_that_it_accepts, set_up, clean_up)
{
	struct endpoint *endpoint;

	start_server(256);
	for (uint32_t i = 0; i < 255; i++)
		endpoint_request_failed(endpoint_of(0), OUTCOME_INTERNAL);
	endpoint = ask(0, false);
	run_for(700 * MS);
	endpoint_established(endpoint, NULL, 0);
	transfer(endpoint, 0);
	finish();
	assert_over(OUTCOME_INTERNAL, "");
}

TEST(server_whose_requests_are_all_lost_ends, set_up, clean_up)
{
	start_server(1);
	endpoint_request_failed(endpoint_of(0), OUTCOME_INTERNAL);
	assert_over(OUTCOME_INTERNAL, "");
}

TEST(server_whose_listener_failed_goes_on_with_those_that_came, set_up, clean_up)
{
	struct endpoint *endpoint;

	start_server(2);
	endpoint = take(0, true);
	endpoint_fail(endpoint_of(0), OUTCOME_NO_DEVICE);
	assert_int_equal(of(endpoint)->send_count, 1);
	transfer(endpoint, 0);
	finish();
	assert_over(OUTCOME_NO_DEVICE, "");
}

/* Its client may not be ready yet, and does not say when it is. */
TEST(server_pauses_for_stock_clients_on_iwarp, set_up, clean_up)
{
	static const struct {
		enum fabric fabric;
		bool ours, pauses;
	} rows[] = { { FABRIC_IWARP, false, true }, { FABRIC_IWARP, true, false }, { FABRIC_ROCE, false, false } };

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct endpoint *endpoint;

		fake.domain.fabric = rows[i].fabric;
		start_server(1);
		endpoint = take(0, rows[i].ours);
		if (rows[i].pauses) {
			run_for(99 * MS);
			assert_int_equal(of(endpoint)->send_count, 0);
			assert_says_not("initiating");
			run_for(2 * MS);
			assert_int_equal(of(endpoint)->send_count, 1);
		}
		assert_says("initiating data transfers\n");
		if (rows[i].fabric == FABRIC_IWARP && rows[i].ours)
			complete(endpoint, WORK_RECEIVE, 0, 0);
		transfer(endpoint, 0);
		finish();
		assert_over(OUTCOME_OK, "");
		another_run();
	}
	fake.domain.fabric = FABRIC_IWARP;
	fake.options.count = 0;
	start_server(1);
	take(0, false);
	finish();
	assert_over(OUTCOME_OK, "");
}

TEST(server_ends_whose_clients_leave_in_the_pause, set_up, clean_up)
{
	fake.domain.fabric = FABRIC_IWARP;
	start_server(1);
	disconnect(take(0, false));
	assert_ends_within(100 * MS, 100 * MS);
	assert_over(OUTCOME_FAILED,
		    "ucmatose: 10.0.0.2:4242: connection 0 (established): the peer disconnected: sent 0, received 0 of "
		    "1 message\n");
}

TEST(server_says_where_its_client_left, set_up, clean_up)
{
	struct endpoint *endpoints[3];

	fake.options.count = 3;
	start_server(4);
	endpoints[0] = take(0, true);
	endpoints[1] = take(1, true);
	disconnect(endpoints[0]);
	endpoints[2] = take(2, true);
	take(3, true);
	sent(endpoints[1]);
	for (uint32_t i = 0; i < 3; i++)
		sent(endpoints[2]);
	receive(endpoints[2], 4, 0);
	disconnect(endpoints[1]);
	disconnect(endpoints[2]);
	transfer(endpoint_of(4), 3);
	finish();
	assert_over(OUTCOME_FAILED,
		    "ucmatose: 10.0.0.2:4242: connection 0 (established): the peer disconnected: sent 0, received 0 of "
		    "3 messages\n"
		    "ucmatose: 10.0.0.2:4242: connection 1 (sending): the peer disconnected: sent 1, received 0 of 3 "
		    "messages\n"
		    "ucmatose: 10.0.0.2:4242: connection 2 (receiving): the peer disconnected: sent 3, received 1 of 3 "
		    "messages\n");
}

/* As it does when it has all its messages before the server has heard of that. */
TEST(client_may_leave_when_all_is_transferred, set_up, clean_up)
{
	struct endpoint *first, *second;

	start_server(2);
	first = take(0, true);
	second = take(1, true);
	transfer(first, 0);
	disconnect(first);
	assert_int_equal(first->state, ENDPOINT_DESTROYED);
	transfer(second, 1);
	finish();
	assert_over(OUTCOME_OK, "");
}

TEST(server_fails_silent_clients, set_up, clean_up)
{
	struct endpoint *endpoints[3];

	fake.options.count = 3;
	start_server(3);
	for (uint32_t i = 0; i < 3; i++)
		endpoints[i] = take(i, true);
	sent(endpoints[0]);
	for (uint32_t i = 0; i < 3; i++)
		sent(endpoints[1]);
	receive(endpoints[1], 2, 0);
	receive(endpoints[1], 2, 1);
	run_for(300 * MS);
	transfer(endpoints[2], 2);
	run_for(399 * MS);
	assert_int_equal(endpoints[0]->state, ENDPOINT_ESTABLISHED);
	run_for(2 * MS);
	assert_int_equal(endpoints[0]->state, ENDPOINT_DESTROYED);
	finish();
	assert_over(OUTCOME_FAILED,
		    "ucmatose: 10.0.0.2:4242: connection 0 (sending): timed out after 0.4 s: sent 1, received 0 of 3 "
		    "messages\n"
		    "ucmatose: 10.0.0.2:4242: connection 1 (receiving): timed out after 0.4 s: sent 3, received 2 of 3 "
		    "messages\n");
	assert_says_not("data transfers complete");
}

/* Each has its time limit, so they do not wait for each other, but for those that are under way. */
TEST(server_ends_48_connections_at_once, set_up, clean_up)
{
	uint32_t ending = 0;

	start_server(60);
	for (uint32_t i = 0; i < 60; i++)
		take(i, true);
	for (uint32_t i = 0; i < 60; i++)
		transfer(endpoint_of(1 + i), i);
	run_for(11 * MS);
	for (uint32_t i = 0; i < 60; i++)
		ending += endpoint_of(1 + i)->state == ENDPOINT_DISCONNECTING;
	assert_int_equal(ending, 48);
	disconnect(endpoint_of(1));
	assert_int_equal(endpoint_of(1 + 48)->state, ENDPOINT_DISCONNECTING);
	assert_int_equal(endpoint_of(1 + 49)->state, ENDPOINT_ESTABLISHED);
	/* One that is never answered: the others are not either, perhaps. */
	endpoint_fail(endpoint_of(2), OUTCOME_FAILED);
	for (uint32_t i = 2; i < 60; i++) {
		assert_int_equal(endpoint_of(1 + i)->state, ENDPOINT_DISCONNECTING);
		disconnect(endpoint_of(1 + i));
	}
	assert_over(OUTCOME_FAILED, "");
}

/* ---- a client ---- */

static void start_client(int64_t connections)
{
	fake.options.server = "10.0.0.1";
	fake.options.connections = connections;
	start();
}

/* The connection of that number, to a server of ours or to a stock one. */
static struct endpoint *connect_one(uint32_t number, bool ours)
{
	struct hello hello = hello_of(number);

	return connect_endpoint(endpoint_of(number), ours ? &hello : NULL);
}

/* All messages of a client's connection. */
static void reply(struct endpoint *endpoint, uint32_t connection)
{
	uint64_t count = (uint64_t)fake.options.count;

	for (uint32_t i = 0; i < count; i++)
		receive(endpoint, 2 * connection + 1, i);
	for (uint32_t i = 0; i < count; i++)
		sent(endpoint);
}

TEST(client_makes_its_connections, set_up, clean_up)
{
	struct endpoint *first, *second;

	fake.options.bind = "10.0.0.9";
	start_client(2);
	assert_int_equal(fake.endpoint_count, 1);
	assert_int_equal(endpoint_of(0)->local.bytes[3], 9);
	first = connect_one(0, true);
	assert_int_equal(of(first)->hello.connection, 0);
	assert_int_equal(of(first)->hello.window, 1);
	assert_int_equal(fake.endpoint_count, 2);
	second = connect_one(1, true);
	assert_int_equal(of(second)->hello.connection, 1);
	/* What is reported as the path is that of the first one. */
	assert_int_equal(((struct ucmatose *)fake.state)->figures.path.qpn, first->qpn);
	assert_int_not_equal(first->qpn, second->qpn);
	reply(first, 0);
	run_for(300 * MS);
	assert_says_not("sending");
	receive(second, 3, 0);
	assert_says("sending replies\n");
	sent(second);
	run_for(300 * MS);
	assert_false(of(first)->disconnected);
	disconnect(first);
	disconnect(second);
	assert_over(OUTCOME_OK, "");
	assert_string_equal(fake.output,
			    "cmatose: starting client\n"
			    "cmatose: connecting\n"
			    "receiving data transfers\n"
			    "sending replies\n"
			    "data transfers complete\n"
			    "test complete\n"
			    "ucmatose: 2 connections, 2 messages of 100 bytes each way verified (fake, fake0)\n"
			    "return status 0\n");
}

TEST(client_gives_up_privileges_when_all_are_connected, set_up, clean_up)
{
	fake.options.common.transport = "soft";
	fake.environment.to_set_up = &fake.options.common;
	start_client(2);
	reply(connect_one(0, true), 0);
	assert_false(fake.dropped);
	reply(connect_one(1, true), 1);
	assert_true(fake.dropped);
	finish();
	assert_over(OUTCOME_OK, "");
}

TEST(client_has_48_connections_under_way, set_up, clean_up)
{
	fake.options.count = 0;
	start_client(60);
	run_for(MS);
	assert_int_equal(fake.endpoint_count, 1);
	connect_one(0, true);
	assert_int_equal(fake.endpoint_count, 1 + 48);
	connect_one(1, true);
	assert_int_equal(fake.endpoint_count, 2 + 48);
	endpoint_fail(endpoint_of(2), OUTCOME_NO_CONNECTION);
	assert_int_equal(fake.endpoint_count, 3 + 48);
	for (uint32_t i = 3; i < 60; i++)
		connect_one(i, true);
	finish();
	assert_over(OUTCOME_NO_CONNECTION, "");
}

/* And so that the server can tell it from others, every run has a number of its own. */
TEST(connections_of_a_client_have_the_number_of_its_run, set_up, clean_up)
{
	uint16_t run;

	start_client(2);
	connect_one(0, true);
	connect_one(1, false);
	run = of(endpoint_of(0))->hello.run;
	assert_int_not_equal(run, 0);
	assert_int_equal(of(endpoint_of(1))->hello.run, run);
	interrupt(INTERRUPTION_DEADLINE);
	assert_over(OUTCOME_FAILED, "");
}

TEST(client_does_not_wait_for_ever_for_the_end, set_up, clean_up)
{
	start_client(1);
	reply(connect_one(0, true), 0);
	assert_ends_within(400 * MS, 401 * MS);
	assert_over(OUTCOME_FAILED,
		    "ucmatose: 10.0.0.1:7471: connection 0 (transferred): timed out after 0.4 s: sent 1, received 1 of "
		    "1 message\n");
}

/* One that is still being made has a limit of its own. */
TEST(connection_waits_for_those_that_are_being_made, set_up, clean_up)
{
	struct endpoint *first, *second;

	start_client(2);
	first = connect_one(0, true);
	run_for(500 * MS);
	assert_int_equal(first->state, ENDPOINT_ESTABLISHED);
	second = connect_one(1, true);
	reply(first, 0);
	reply(second, 1);
	disconnect(first);
	disconnect(second);
	assert_over(OUTCOME_OK, "");
}

TEST(connection_that_has_everything_is_not_silent, set_up, clean_up)
{
	struct endpoint *first, *second;

	start_client(2);
	first = connect_one(0, true);
	second = connect_one(1, true);
	reply(first, 0);
	receive(second, 3, 0);
	run_for(401 * MS);
	assert_int_equal(first->state, ENDPOINT_ESTABLISHED);
	disconnect(first);
	assert_over(OUTCOME_FAILED,
		    "ucmatose: 10.0.0.1:7471: connection 1 (sending): timed out after 0.4 s: sent 0, received 1 of 1 "
		    "message\n");
}

TEST(client_is_told_of_other_options, set_up, clean_up)
{
	static const char words[] =
		"ucmatose: 10.0.0.1:7471: the two ends do not agree: the peer runs with -c 2 -C 9 -S 100, "
		"this end with -c 2 -C 1 -S 100\n";
	uint8_t bytes[HELLO_SIZE];
	struct hello hello;

	for (size_t waits = 0; waits <= 1; waits++) {
		if (waits)
			another_run();
		fake.options.wait_server = waits ? CLOCK_NS_PER_S : 0;
		start_client(2);
		if (waits) {
			absent(endpoint_of(0));
			loop_run(fake.environment.loop);
		}
		hello = hello_of(0);
		hello.count = 9;
		hello_write(&hello, bytes);
		resolved(endpoint_of(waits));
		/* Neither that nor the first attempt needs a line of its own then. */
		error_failure(&endpoint_of(waits)->transport->error,
			      &(struct failure){ .object = endpoint_of(waits)->name, .phase = "connecting" },
			      "refused by the peer");
		endpoint_rejected(endpoint_of(waits), bytes, sizeof(bytes));
		assert_over(OUTCOME_FAILED, words);
	}
}

TEST(client_is_told_of_a_refusal, set_up, clean_up)
{
	for (int waits = 0; waits <= 1; waits++) {
		if (waits)
			another_run();
		fake.options.wait_server = waits * CLOCK_NS_PER_S;
		start_client(1);
		resolved(endpoint_of(0));
		error_failure(&endpoint_of(0)->transport->error,
			      &(struct failure){ .object = endpoint_of(0)->name, .phase = "connecting" },
			      "refused by the peer");
		endpoint_rejected(endpoint_of(0), NULL, 0);
		assert_over(OUTCOME_NO_CONNECTION, "ucmatose: 10.0.0.1:7471: connecting: refused by the peer\n");
	}
}

/* Where nobody listens with -P ib, somebody may do so with -P tcp: the command has the port space. */
TEST(hint_after_a_failure, set_up, clean_up)
{
	static const char failed[] = "ucmatose: 10.0.0.1:7471: it failed\n";
	static const struct {
		enum port_space port_space;
		int64_t wait_server;
		enum error_kind kind;
		const char *errors;
	} rows[] = {
		{ PORT_SPACE_IB, 0, ERROR_NO_LISTENER,
		  "ucmatose: 10.0.0.1:7471: it failed\n"
		  "ucmatose: hint: if host and port are right, run there: rdmatest ucmatose -P ib -p 7471 --transport "
		  "fake\n" },
		{ PORT_SPACE_IB, 0, ERROR_OTHER, failed },
		{ PORT_SPACE_IB, 1, ERROR_NO_REPLY,
		  "ucmatose: 10.0.0.1:7471: it failed\nucmatose: hint: no server within 1e-09 s "
		  "(--wait-server)\n" },
		{ PORT_SPACE_TCP, 0, ERROR_NO_LISTENER,
		  "ucmatose: 10.0.0.1:7471: it failed\n"
		  "ucmatose: hint: if host and port are right, run there: rdmatest ucmatose -p 7471 --transport "
		  "fake\n" },
		{ PORT_SPACE_TCP, 0, ERROR_NO_REPLY,
		  "ucmatose: 10.0.0.1:7471: it failed\n"
		  "ucmatose: hint: to check the way there: rdmatest doctor 10.0.0.1 --transport fake\n" },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct endpoint *endpoint;

		if (i)
			another_run();
		fake.options.port_space = rows[i].port_space;
		fake.options.wait_server = rows[i].wait_server;
		start_client(1);
		endpoint = endpoint_of(0);
		resolved(endpoint);
		fake_clock_pass(MS);
		error_failure(&endpoint->transport->error,
			      &(struct failure){ .object = endpoint->name, .kind = rows[i].kind }, "it failed");
		endpoint_fail(endpoint, OUTCOME_NO_CONNECTION);
		assert_over(OUTCOME_NO_CONNECTION, rows[i].errors);
	}
}

TEST(no_hint_at_the_server_once_connected, set_up, clean_up)
{
	struct endpoint *endpoint;

	fake.options.port_space = PORT_SPACE_IB;
	start_client(1);
	endpoint = connect_one(0, true);
	error_failure(&endpoint->transport->error,
		      &(struct failure){ .object = endpoint->name, .kind = ERROR_NO_REPLY }, "it failed");
	endpoint_fail(endpoint, OUTCOME_FAILED);
	assert_over(OUTCOME_FAILED, "ucmatose: 10.0.0.1:7471: it failed\n");
}

/* It is absent, or busy. */
TEST(client_waits_for_its_server, set_up, clean_up)
{
	static const char *const reasons[] = { NULL, HELLO_BUSY, NULL, HELLO_FULL, NULL };

	fake.options.wait_server = 10 * CLOCK_NS_PER_S;
	start_client(1);
	for (size_t i = 0; i < LENGTH(reasons); i++) {
		assert_int_equal(fake.endpoint_count, i + 1);
		resolved(endpoint_of(i));
		assert_int_equal(of(endpoint_of(i))->receive_count, 1);
		if (reasons[i])
			endpoint_rejected(endpoint_of(i), (const uint8_t *)reasons[i], strlen(reasons[i]));
		else
			absent(endpoint_of(i));
		assert_int_equal(endpoint_of(i)->state, ENDPOINT_DESTROYED);
		loop_run(fake.environment.loop);
	}
	reply(connect_endpoint(
		      endpoint_of(5),
		      &(struct hello){
			      .tool = HELLO_UCMATOSE, .capacity = 100, .connections = 1, .count = 1, .window = 1 }),
	      0);
	finish();
	assert_over(OUTCOME_OK, "");
}

/* It was there. */
TEST(client_waits_for_its_first_connection_only, set_up, clean_up)
{
	fake.options.wait_server = 10 * CLOCK_NS_PER_S;
	start_client(2);
	connect_one(0, true);
	absent(endpoint_of(1));
	assert_int_equal(fake.endpoint_count, 2);
	reply(endpoint_of(0), 0);
	finish();
	assert_over(OUTCOME_NO_CONNECTION, "ucmatose: 10.0.0.1:7471: connecting: nobody listens there\n");
}

/* As if its name had several addresses, from 10.0.0.1 on. */
static void start_with_addresses(int64_t connections, size_t count)
{
	struct ucmatose *run;

	start_client(connections);
	run = fake.state;
	for (size_t i = 1; i < count; i++) {
		run->dial.resolver.addresses[i] = run->dial.resolver.addresses[0];
		run->dial.resolver.addresses[i].bytes[3] = (uint8_t)(1 + i);
	}
	run->dial.resolver.count = count;
}

TEST(client_tries_the_next_address, set_up, clean_up)
{
	start_with_addresses(2, 3);
	resolved(endpoint_of(0));
	/* No route leads to the second one, and to the third one another device does. */
	fake.next.resolve = OUTCOME_NO_CONNECTION;
	fake.domain.device = "fake1";
	absent(endpoint_of(0));
	assert_int_equal(endpoint_of(0)->state, ENDPOINT_DESTROYED);
	assert_int_equal(endpoint_of(1)->state, ENDPOINT_DESTROYED);
	assert_string_equal(endpoint_of(2)->name, "10.0.0.3:7471");
	reply(connect_endpoint(endpoint_of(2), NULL), 0);
	assert_string_equal(endpoint_of(3)->name, "10.0.0.3:7471");
	reply(connect_endpoint(endpoint_of(3), NULL), 1);
	finish();
	assert_over(OUTCOME_OK, "ucmatose: hint: 10.0.0.1:7471: connecting: nobody listens there\n"
				"ucmatose: hint: trying the next address of 10.0.0.1: 10.0.0.2:7471\n"
				"ucmatose: hint: trying the next address of 10.0.0.1: 10.0.0.3:7471\n");
	assert_says("lengths checked (fake, fake1)\n");
}

TEST(client_ends_after_its_last_address, set_up, clean_up)
{
	start_with_addresses(1, 2);
	absent(endpoint_of(0));
	absent(endpoint_of(1));
	assert_int_equal(fake.endpoint_count, 2);
	assert_over(
		OUTCOME_NO_CONNECTION,
		"ucmatose: hint: 10.0.0.1:7471: connecting: nobody listens there\n"
		"ucmatose: hint: trying the next address of 10.0.0.1: 10.0.0.2:7471\n"
		"ucmatose: 10.0.0.2:7471: connecting: nobody listens there\n"
		"ucmatose: hint: if host and port are right, run there: rdmatest ucmatose -p 7471 --transport fake\n");
}

TEST(client_begins_with_the_first_address_again, set_up, clean_up)
{
	fake.options.wait_server = 10 * CLOCK_NS_PER_S;
	start_with_addresses(1, 2);
	absent(endpoint_of(0));
	absent(endpoint_of(1));
	run_for(99 * MS);
	assert_int_equal(fake.endpoint_count, 2);
	fake.next.resolve = OUTCOME_NO_CONNECTION;
	run_for(2 * MS);
	assert_string_equal(endpoint_of(2)->name, "10.0.0.1:7471");
	assert_string_equal(endpoint_of(3)->name, "10.0.0.2:7471");
	interrupt(INTERRUPTION_DEADLINE);
	assert_over(OUTCOME_FAILED, "ucmatose: hint: last error of 10.0.0.2:7471: connecting: nobody listens there\n");
}

/* It ends when it cannot ask any more. */
TEST(client_that_cannot_ask_again_ends, set_up, clean_up)
{
	fake.options.wait_server = 10 * CLOCK_NS_PER_S;
	start_client(1);
	absent(endpoint_of(0));
	fake.next.resolve = OUTCOME_NO_DEVICE;
	run_for(101 * MS);
	assert_over(OUTCOME_NO_DEVICE, "ucmatose: 10.0.0.1:7471: connecting: nobody listens there\n");
}

/* ---- the times of the steps ---- */

TEST(steps_are_timed_at_the_client, set_up, clean_up)
{
	struct endpoint *endpoint;

	start_client(1);
	endpoint = endpoint_of(0);
	fake_clock_pass(1);
	endpoint->domain = &fake.domain;
	endpoint_reached(endpoint, EVENT_ADDRESS_RESOLVED);
	endpoint_enter(endpoint, ENDPOINT_RESOLVING_ROUTE);
	fake_clock_pass(20);
	endpoint_reached(endpoint, EVENT_ROUTE_RESOLVED);
	fake_clock_pass(300);
	endpoint_established(endpoint, NULL, 0);
	reply(endpoint, 0);
	finish();
	assert_reports("\"asked\":1,\"made\":1,\"failed\":0,\"refused\":0,");
	assert_reports("\"resolve_address\":{\"count\":1,\"min_ns\":1,");
	assert_reports("\"resolve_route\":{\"count\":1,\"min_ns\":20,");
	assert_reports("\"connect\":{\"count\":1,\"min_ns\":300,");
	assert_reports("\"disconnect\":{\"count\":0,");
	assert_over(OUTCOME_OK, "");
}

TEST(steps_are_timed_at_the_server, set_up, clean_up)
{
	struct endpoint *endpoint;

	start_server(1);
	endpoint = ask(0, true);
	fake_clock_pass(40);
	endpoint_established(endpoint, NULL, 0);
	transfer(endpoint, 0);
	run_for(11 * MS);
	fake_clock_pass(CLOCK_NS_PER_S);
	disconnect(endpoint);
	assert_reports("\"accept\":{\"count\":1,\"min_ns\":40,");
	assert_reports("\"connect\":{\"count\":0,");
	assert_reports("\"disconnect\":{\"count\":1,\"min_ns\":100");
	assert_over(OUTCOME_OK, "");
}

/* Its first connection waits for messages while the others are made: that time is no part of the rate. */
TEST(rates_are_over_the_time_of_each_phase, set_up, clean_up)
{
	start_client(2);
	connect_one(0, true);
	fake_clock_pass(2 * CLOCK_NS_PER_S);
	connect_one(1, true);
	fake_clock_pass(4 * CLOCK_NS_PER_S);
	receive(endpoint_of(0), 1, 0);
	receive(endpoint_of(1), 3, 0);
	fake_clock_pass(8 * CLOCK_NS_PER_S);
	sent(endpoint_of(0));
	sent(endpoint_of(1));
	finish();
	assert_reports("\"rate_per_second\":1.000");
	assert_reports("\"sent_rate_per_second\":0.250,\"received_rate_per_second\":0.500,");
	assert_reports("\"sent_bytes_per_second\":25.000,\"received_bytes_per_second\":50.000");
	assert_over(OUTCOME_OK, "");
}

/* A client replies when it has all, which may be long before the server hears of that. */
TEST(received_rate_of_a_server_begins_with_its_last_send, set_up, clean_up)
{
	struct endpoint *endpoint;

	start_server(1);
	endpoint = take(0, true);
	assert_reports("\"received_rate_per_second\":null,");
	fake_clock_pass(4 * CLOCK_NS_PER_S);
	sent(endpoint);
	receive(endpoint, 0, 0);
	finish();
	assert_reports("\"sent_rate_per_second\":0.250,\"received_rate_per_second\":0.250,");
	assert_over(OUTCOME_OK, "");
}

/* ---- another event channel, with -m ---- */

/* If the peer leaves at the last moment. */
TEST(run_without_a_connection_moves_nothing, set_up, clean_up)
{
	struct endpoint *endpoint;

	fake.options.migrate = true;
	start_server(1);
	endpoint = take(0, true);
	transfer(endpoint, 0);
	endpoint_fail(endpoint, OUTCOME_FAILED);
	run_for(11 * MS);
	assert_int_equal(fake.channel_count, 1);
	assert_over(OUTCOME_FAILED, "");
}

/* Also the connections that the server was quick to end. */
TEST(client_moves_to_a_new_channel, set_up, clean_up)
{
	struct endpoint *first, *second;

	fake.options.migrate = true;
	start_client(3);
	first = connect_one(0, true);
	second = connect_one(1, true);
	endpoint_fail(endpoint_of(2), OUTCOME_NO_CONNECTION);
	reply(first, 0);
	disconnect(first);
	assert_int_equal(first->state, ENDPOINT_DESTROYED);
	reply(second, 1);
	run_for(MS);
	assert_int_equal(first->state, ENDPOINT_DESTROYED);
	assert_ptr_equal(second->channel, &fake.channels[1]);
	disconnect(second);
	assert_int_equal(second->state, ENDPOINT_DESTROYED);
	assert_over(OUTCOME_NO_CONNECTION, "");
}

/* Some are here and some there then: both channels stay as long as the endpoints. */
TEST(move_that_fails_is_a_failure, set_up, clean_up)
{
	fake.options.migrate = true;
	fake.next.migrate = OUTCOME_INTERNAL;
	serve(2, true);
	assert_false(fake.channels_destroyed[0]);
	assert_over(OUTCOME_INTERNAL, "");
	assert_says("cmatose: disconnecting\n");

	another_run();
	fake.options.migrate = true;
	start_server(1);
	fake.next.channel = OUTCOME_INTERNAL;
	transfer(take(0, true), 0);
	finish();
	assert_ptr_equal(endpoint_of(1)->channel, &fake.channels[0]);
	assert_over(OUTCOME_INTERNAL, "");
}

/* ---- ended from outside ---- */

TEST(interrupted_run_drops_its_connections, set_up, clean_up)
{
	struct endpoint *first, *second;

	start_server(4);
	first = take(0, true);
	second = take(1, true);
	take(2, true);
	take(3, true);
	transfer(first, 0);
	sent(second);
	endpoint_fail(endpoint_of(4), OUTCOME_FAILED);
	interrupt(INTERRUPTION_SIGNAL);
	assert_int_equal(endpoint_of(0)->state, ENDPOINT_DESTROYED);
	assert_int_equal(first->state, ENDPOINT_DESTROYED);
	assert_int_equal(second->state, ENDPOINT_DESTROYED);
	assert_over(OUTCOME_FAILED, "ucmatose: interrupted\n");
	assert_says_not("test complete");
	assert_says_not("disconnected\n");
	assert_says("ucmatose: FAILED: 0 of 4 connections completed (fake, fake0)\nreturn status 1\n");
}

/* Nobody waits for those that are not connected. */
TEST(interrupted_run_drops_its_requests, set_up, clean_up)
{
	start_server(2);
	ask(0, true);
	interrupt(INTERRUPTION_SIGNAL);
	assert_over(OUTCOME_FAILED, "ucmatose: interrupted\n");

	another_run();
	start_client(2);
	interrupt(INTERRUPTION_DEADLINE);
	assert_int_equal(fake.endpoint_count, 1);
	assert_over(OUTCOME_FAILED, "");
}
