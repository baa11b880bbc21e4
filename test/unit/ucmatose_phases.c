/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=privileges_drop -Wl,--wrap=route_cause */
/* Runs of ucmatose at both ends: the phases, the time limits, failures of single connections, and the verdict. */
#include "test/unit/unit.h"

#include "cmd/command.h"
#include "cmd/ucmatose/ucmatose.h"

/* Each client's number, and each connection's received messages. */
#define FAKE_FIELDS                                                                                                    \
	struct ucmatose_options options;                                                                               \
	char *output;                                                                                                  \
	size_t output_length;                                                                                          \
	uint16_t client_run;                                                                                           \
	uint32_t numbers[ENDPOINTS_MAX];                                                                               \
	uint32_t received[ENDPOINTS_MAX];

#include "test/unit/fake_transport.h"
#include "test/unit/pattern.h"

#define MS CLOCK_NS_PER_MS

static int set_up(void **state)
{
	fake_create(&ucmatose_command, HELLO_UCMATOSE);
	fake.printed.stream = open_memstream(&fake.output, &fake.output_length);
	fake.domain.max_qp_wr = 100;
	fake.domain.max_message = 1 << 20;
	fake.options.common.path = (struct path_options)PATH_OPEN;
	fake.usual = "--timeout 400ms -C 1";
	return 0;
}

static int clean_up(void **state)
{
	fclose(fake.printed.stream);
	free(fake.output);
	return tear_down(state);
}

/* ---- a run's peers and events ---- */

WORD(iwarp)
{
	fake.domain.fabric = FABRIC_IWARP;
}

/* As if its name had that many addresses, from 10.0.0.1 on. */
WORD(addresses)
{
	struct ucmatose *run = fake.state;

	for (size_t i = 1; i < number; i++) {
		run->dial.resolver.addresses[i] = run->dial.resolver.addresses[0];
		run->dial.resolver.addresses[i].bytes[3] = (uint8_t)(1 + i);
	}
	run->dial.resolver.count = number;
}

WORD(another_device)
{
	fake.domain.device = "fake1";
}

/* The hello of an rdmatest peer with this end's options. */
static struct hello hello_of(uint32_t number)
{
	return (struct hello){ .tool = HELLO_UCMATOSE,
			       .capacity = (uint32_t)fake.options.size,
			       .connections = (uint32_t)fake.options.connections,
			       .count = (uint64_t)fake.options.count,
			       .connection = number,
			       .run = fake.client_run,
			       .window = (uint32_t)fake.options.count };
}

WORD(client_run)
{
	fake.client_run = (uint16_t)number;
}

/* An rdmatest client requests its connection of that number, or a stock client. */
WORD(ask)
{
	struct hello hello = hello_of(number);

	fake.numbers[fake.endpoint_count - 1] = number;
	request_connection(strcmp(text, "stock") ? &hello : NULL);
}

WORD(ask_with_other_size)
{
	struct hello hello = hello_of(0);

	hello.capacity = 200;
	request_connection(&hello);
}

WORD(take)
{
	word_ask(number, text);
	word_confirm((unsigned)fake.endpoint_count - 2, text);
}

/* An rdmatest server accepts, or a stock one. "2 1": the third endpoint is the second connection. */
WORD(meet)
{
	const char *of = strchr(text, ' ');
	unsigned connected = of ? (unsigned)strtoul(of, NULL, 10) : number;
	struct hello hello = hello_of(connected);

	fake.numbers[number] = connected;
	connect_endpoint(connection(number), &hello);
}

WORD(meet_stock)
{
	connect_endpoint(connection(number), NULL);
}

WORD(address)
{
	connection(number)->domain = &fake.domain;
	endpoint_deliver_kind(connection(number), EVENT_ADDRESS_RESOLVED);
	endpoint_enter(connection(number), ENDPOINT_RESOLVING_ROUTE);
}

WORD(route)
{
	endpoint_deliver_kind(connection(number), EVENT_ROUTE_RESOLVED);
}

WORD(refuse)
{
	const char *reason = strstr(text, "busy") ? HELLO_BUSY : strstr(text, "full") ? HELLO_FULL : "";

	word_address(number, text);
	word_route(number, text);
	failed_for(connection(number), ERROR_OTHER, "refused by the peer");
	endpoint_rejected(connection(number), (const uint8_t *)reason, strlen(reason));
}

WORD(refuse_options)
{
	struct hello hello = hello_of(0);
	uint8_t bytes[HELLO_SIZE];

	hello.count = 9;
	hello_write(&hello, bytes);
	word_address(number, text);
	word_route(number, text);
	/* It needs no separate line then. */
	failed_for(connection(number), ERROR_OTHER, "refused by the peer");
	endpoint_rejected(connection(number), bytes, sizeof(bytes));
}

WORD(no_listener)
{
	failed_for(connection(number), ERROR_NO_LISTENER, "it failed");
	endpoint_fail(connection(number), OUTCOME_NO_CONNECTION);
}

WORD(no_reply)
{
	failed_for(connection(number), ERROR_NO_REPLY, "it failed");
	endpoint_fail(connection(number), OUTCOME_NO_CONNECTION);
}

/* The transport had no endpoint for that many requests. */
WORD(lost)
{
	while (number--)
		endpoint_request_failed(&fake.endpoints[0]->base, OUTCOME_INTERNAL);
}

/* A signalled send has arrived. */
WORD(sent)
{
	complete(connection(number), WORK_SEND, 1, 0);
}

/* The next message. A client's seed is twice its number, a server's one more. */
WORD(receive)
{
	struct endpoint *endpoint = connection(number);
	struct work work = next_receive(endpoint);

	pattern_write(work.region->memory + work.offset, work.length,
		      2 * fake.numbers[number] + (fake.options.server != NULL), fake.received[number]++);
	complete(endpoint, WORK_RECEIVE, 0, work.length);
}

WORD(grant)
{
	complete(connection(number), WORK_RECEIVE, 0, 0);
}

/* All messages of a connection. */
WORD(transfer)
{
	for (unsigned direction = 0; direction < 2; direction++)
		for (int64_t i = 0; i < fake.options.count; i++)
			(direction == !fake.options.server ? word_receive : word_sent)(number, text);
}

/* All messages are transferred: the server disconnects. */
WORD(finish)
{
	run_for(11 * MS);
	for (size_t i = 0; i < fake.endpoint_count; i++) {
		enum endpoint_state state = fake.endpoints[i]->base.state;

		if (state == ENDPOINT_DISCONNECTING || state == ENDPOINT_ESTABLISHED)
			disconnect(&fake.endpoints[i]->base);
	}
}

/* ---- expectations ---- */

WORD(sending)
{
	assert_int_equal(of(connection(number))->send_count, 1);
}

WORD(peer)
{
	assert_string_equal(connection(number)->name, strchr(text, ' ') + 1);
}

WORD(channel)
{
	assert_ptr_equal(connection(0)->channel, &fake.channels[number]);
}

WORD(says)
{
	fflush(fake.printed.stream);
	if (!strstr(fake.output, text))
		fail_saying("\"%s\" is not in: %s", text, fake.output);
}

WORD(says_not)
{
	fflush(fake.printed.stream);
	if (strstr(fake.output, text))
		fail_saying("\"%s\" is in: %s", text, fake.output);
}

/* ---- a server ---- */

#define PEER "ucmatose: 10.0.0.2:4242: "

static const struct script server_runs[] = {
	{ "nothing moves before all are connected, and nobody is disconnected before all have all",
	  "run -c 2; take 0; wait 1; idle 0; ask 1; idle 0; confirm 1; sending 0; sending 1; transfer 0; wait 20; open "
	  "0; says_not receiving; sent 1; says receiving data transfers\n; receive 1; wait 9; open 0; wait 2; ending "
	  "0; ending 1; leave 0; running; leave 1; verdict 2 connections, 2 messages of 100 bytes each way verified "
	  "(fake, fake0); says cmatose: starting server\ncmatose: listening on 0.0.0.0:7471\ninitiating data "
	  "transfers\ncompleting sends\nreceiving data transfers\ndata transfers complete\ncmatose: "
	  "disconnecting\ndisconnected\ntest complete\n",
	  OUTCOME_OK, "" },
	{ "the clients' numbers need not be those in which they come",
	  "run -c 2; take 1; another_device; take 0; transfer 0; transfer 1; finish; verdict verified (fake, several "
	  "devices)",
	  OUTCOME_OK, "" },
	{ "connections beyond the number are refused, also while the last one is accepted, which is said once",
	  "run; ask 0; ask 1; rejected all -c connections are taken; ask stock; rejected all -c connections are taken; "
	  "confirm 0; ask stock; rejected all -c connections are taken; says 7471\ncmatose: refusing a "
	  "connection: all -c connections are taken\ninitiating; transfer 0; finish; reports "
	  "\"asked\":1,\"made\":1,\"failed\":0,\"refused\":3,",
	  OUTCOME_OK, "" },
	{ "it goes on with those that came; what happens to a connection is progress too",
	  "run -c 3; wait 1000; ask 0; wait 300; confirm 0; wait 399; idle 0; wait 2; sending 0; ask 1; rejected all "
	  "-c connections are taken; transfer 0; finish; says_not data transfers complete; verdict 1 of 3 "
	  "connections completed (fake, fake0)",
	  OUTCOME_FAILED, "ucmatose: received only 1 of 3 connection requests: timed out after 0.4 s\n" },
	{ "every request prolongs the wait, also one that is lost",
	  "run -c 5; take 0; wait 300; take 1; wait 300; take 2; wait 300; lost 1; wait 300; take 4; reports "
	  "\"made\":4,\"failed\":1,; transfer 0; transfer 1; transfer 2; transfer 3; finish",
	  OUTCOME_INTERNAL, "" },
	{ "another size ends the wait",
	  "run -c 2; take 0; ask_with_other_size; transfer 0; finish; says test complete\n", OUTCOME_FAILED,
	  PEER "the two ends do not agree: the peer runs with -c 2 -C 1 -S 200, this end with -c 2 -C 1 -S 100\n" },
	/* Its sender may not exist: a forged request holds a place only during its time limit. */
	{ "a request that is never confirmed is no connection; then the first is waited for again, without a limit",
	  "run -c 2 --idle-timeout 3600000ms; ask 7; fails 0 4; next accept 4; ask 7; rejected it cannot be accepted; "
	  "wait 1800000; take 0; ask 8; ask 9; rejected all -c connections are taken; fails 3 4; idle 2; pass 1000; "
	  "take stock; transfer 2; transfer 5; finish; reports \"asked\":2,\"made\":2,\"failed\":0,\"refused\":1,; "
	  "reports \"rate_per_second\":2.000; verdict lengths checked",
	  OUTCOME_OK, PEER "it cannot be accepted\n" },
	{ "another request takes the place of one that is never confirmed, also behind a later one",
	  "run -c 2; ask 0; ask 1; fails 0 4; take 0; confirm 1; transfer 1; transfer 2; finish", OUTCOME_OK, "" },
	{ "the device of a request that is never confirmed is not the run's",
	  "run; ask 0; fails 0 4; another_device; take 0; transfer 1; finish; verdict verified (fake, fake1)",
	  OUTCOME_OK, "" },
	{ "nobody in the place of a lost request is waited for longer than others",
	  "run -c 2; take 0; ask 1; fails 1 4; wait 401; transfer 0; finish", OUTCOME_FAILED,
	  "ucmatose: received only 1 of 2 connection requests: timed out after 0.4 s\n" },
	{ "without a listener nobody can come in its place", "run -c 2; ask 0; listener_fails 3; fails 0 4",
	  OUTCOME_NO_DEVICE, "" },
	{ "the connections of one client, of two at once; an older one does not say which it is",
	  "run -c 2; client_run 6; ask 5; fails 0 4; client_run 7; ask 0; client_run 8; ask 0; rejected busy with "
	  "another client; client_run 0; ask 1; confirm 1; confirm 3; transfer 1; transfer 3; finish; reports "
	  "\"made\":2,\"failed\":0,\"refused\":1,; says refusing a connection: busy with another client\n",
	  OUTCOME_OK, "" },
	{ "a connection that cannot be accepted has failed",
	  "run -c 3; next accept 5; ask 0; rejected it cannot be accepted; longest 99; ask 1; rejected -S 100: the "
	  "longest message of device fake0 has 99 b...; longest 100; take 2; transfer 2; finish",
	  OUTCOME_INTERNAL,
	  PEER "it cannot be accepted\n" PEER "-S 100: the longest message of device fake0 has 99 bytes\n" },
	{ "a request that is lost here has failed; when all have come none is waited for",
	  "run -c 2 --timeout 10000ms; lost 1; wait 9000; ask 1; lost 1; confirm 0; sending 0; transfer 0; finish",
	  OUTCOME_INTERNAL, "" },
	{ "but what is under way is waited for",
	  "run -c 256; lost 255; ask stock; wait 700; confirm 0; transfer 0; finish", OUTCOME_INTERNAL, "" },
	{ "all requests are lost", "run; lost 1", OUTCOME_INTERNAL, "" },
	{ "without its listener it goes on with those that came",
	  "run -c 2; take 0; listener_fails 3; sending 0; transfer 0; finish", OUTCOME_NO_DEVICE, "" },
	/* Its client may not be ready yet, and does not report when it is. */
	{ "a pause for a stock client on iWARP",
	  "iwarp; run; take stock; wait 99; idle 0; says_not initiating; wait 2; sending 0; transfer 0; finish",
	  OUTCOME_OK, "" },
	{ "no pause for one of ours", "iwarp; run; take 0; says initiating; grant 0; transfer 0; finish", OUTCOME_OK,
	  "" },
	{ "no pause for a stock one on RoCE", "run; take stock; sending 0; transfer 0; finish", OUTCOME_OK, "" },
	{ "the client leaves in the pause", "iwarp; run; take stock; leave 0; wait 99; running; wait 3", OUTCOME_FAILED,
	  PEER "connection 0 (established): the peer disconnected: sent 0, received 0 of 1 message\n" },
	{ "where each client left",
	  "run -c 4 -C 3; take 0; take 1; leave 0; take 2; take 3; sent 1; sent 2; sent 2; sent 2; receive 2; leave 1; "
	  "leave 2; transfer 3; finish",
	  OUTCOME_FAILED,
	  PEER "connection 0 (established): the peer disconnected: sent 0, received 0 of 3 messages\n" PEER
	       "connection 1 (sending): the peer disconnected: sent 1, received 0 of 3 messages\n" PEER
	       "connection 2 (receiving): the peer disconnected: sent 3, received 1 of 3 messages\n" },
	/* As it does when it has all its messages before the server knows. */
	{ "a client may leave when all is transferred",
	  "run -c 2; take 0; take 1; transfer 0; leave 0; over 0; transfer 1; finish", OUTCOME_OK, "" },
	{ "silent clients fail",
	  "run -c 3 -C 3; take 0; take 1; take 2; sent 0; sent 1; sent 1; sent 1; receive 1; receive 1; wait 300; "
	  "transfer 2; wait 399; open 0; wait 2; over 0; finish; says_not data transfers complete",
	  OUTCOME_FAILED,
	  PEER "connection 0 (sending): timed out after 0.4 s: sent 1, received 0 of 3 messages\n" PEER
	       "connection 1 (receiving): timed out after 0.4 s: sent 3, received 2 of 3 messages\n" },
	{ "a request that is lost when none is awaited prolongs nothing",
	  "run; take 0; wait 300; lost 1; wait 102; over 0", OUTCOME_FAILED,
	  PEER "connection 0 (sending): timed out after 0.4 s: sent 0, received 0 of 1 message\n" },
	{ "the steps are timed",
	  "run; ask 0; pass 40; confirm 0; transfer 0; wait 11; pass 1000; leave 0; reports "
	  "\"accept\":{\"count\":1,\"min_ns\":40000000,; reports \"connect\":{\"count\":0,; reports "
	  "\"disconnect\":{\"count\":1,\"min_ns\":100",
	  OUTCOME_OK, "" },
	/* A client replies when it has all messages, perhaps long before the server knows. */
	{ "the rate of what is received begins with the last send",
	  "run; rows 0; take 0; rows 1; reports \"received_rate_per_second\":null,; pass 4000; sent 0; receive 0; "
	  "finish; reports "
	  "\"sent_rate_per_second\":0.250,\"received_rate_per_second\":0.250,",
	  OUTCOME_OK, "" },
	{ "without a connection nothing moves to another channel, if the peer leaves at the last moment",
	  "run -m; take 0; transfer 0; fails 0 1; wait 11", OUTCOME_FAILED, "" },
	/* Then both channels have some: both stay as long as the endpoints. */
	{ "a move that fails is a failure",
	  "next migrate 5; run -c 2 -m; take 0; take 1; transfer 0; transfer 1; finish; says cmatose: disconnecting\n",
	  OUTCOME_INTERNAL, "" },
	{ "a move without a channel", "run -m; next channel 5; take 0; transfer 0; finish; channel 0", OUTCOME_INTERNAL,
	  "" },
	{ "an interrupted run drops its connections",
	  "run -c 4; take 0; take 1; take 2; take 3; transfer 0; sent 1; fails 3 1; interrupt; over 0; over 1; over 2; "
	  "says_not test complete; says_not disconnected\n; verdict 0 of 4 connections completed",
	  OUTCOME_FAILED, "ucmatose: interrupted\n" },
	{ "an interrupted run drops its requests", "run -c 2; ask 0; interrupt", OUTCOME_FAILED,
	  "ucmatose: interrupted\n" },
};

TEST(servers, set_up, clean_up)
{
	play_runs(server_runs, LENGTH(server_runs), set_up, clean_up);
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
		struct fake_endpoint *request;

		if (i) {
			clean_up(state);
			set_up(state);
		}
		hello.tool = HELLO_UCMATOSE;
		play("run -c 2");
		request = of(request_connection(&hello));
		assert_true(request->rejected);
		assert_true(hello_read((uint8_t *)request->rejection, HELLO_SIZE, HELLO_UCMATOSE, &hello));
		assert_int_equal(hello.capacity, 100);
		assert_int_equal(hello.connections, 2);
		assert_int_equal(hello.window, 0);
		assert_ended(OUTCOME_FAILED, "the two ends do not agree");
	}
}

TEST(server_accepts_a_stock_client_for_longer, set_up, clean_up)
{
	static const struct {
		const char *run, *client;
		int64_t times;
	} rows[] = { { "run -c 255", "stock", 1 },
		     { "run -c 256", "stock", 2 },
		     { "run -c 1000", "stock", 4 },
		     { "run -c 1000", "0", 1 } };

	for (size_t i = 0; i < LENGTH(rows); i++) {
		if (i) {
			clean_up(state);
			set_up(state);
		}
		play(rows[i].run);
		word_ask(0, rows[i].client);
		assert_int_equal(connection(0)->options.timeout, rows[i].times * 400 * MS);
		play("deadline");
		assert_ended(OUTCOME_FAILED, "");
	}
}

/* Each has its own time limit, so they do not wait for each other, except for those in progress. */
TEST(server_ends_48_connections_at_once, set_up, clean_up)
{
	uint32_t ending = 0;

	play("run -c 60");
	for (uint32_t i = 0; i < 60; i++)
		word_take(i, "");
	for (uint32_t i = 0; i < 60; i++)
		word_transfer(i, "");
	run_for(11 * MS);
	for (uint32_t i = 0; i < 60; i++)
		ending += connection(i)->state == ENDPOINT_DISCONNECTING;
	assert_int_equal(ending, 48);
	play("leave 0; ending 48; open 49");
	/* One that is never answered: perhaps the others are not, either. */
	play("fails 1 1");
	for (uint32_t i = 2; i < 60; i++) {
		word_ending(i, "");
		word_leave(i, "");
	}
	assert_ended(OUTCOME_FAILED, "");
}

/* ---- a client ---- */

#define SERVER "ucmatose: 10.0.0.1:7471: "
#define NEXT_ADDRESS                                                                                                   \
	"ucmatose: hint: 10.0.0.1:7471: connecting: nobody listens there\n"                                            \
	"ucmatose: hint: trying the next address of 10.0.0.1: 10.0.0.2:7471\n"
#define TO_RUN "ucmatose: hint: if the host and port are right, start a server there: rdmatest ucmatose "

static const struct script client_runs[] = {
	{ "it makes its connections, and waits for the server's end",
	  "run -s 10.0.0.1 -c 2; connections 1; meet 0; connections 2; meet 1; transfer 0; wait 300; says_not sending; "
	  "receive 1; says sending replies\n; sent 1; wait 300; open 0; leave 0; leave 1; says cmatose: starting "
	  "client\ncmatose: connecting\nreceiving data transfers\nsending replies\ndata transfers complete\ntest "
	  "complete\n",
	  OUTCOME_OK, "" },
	{ "it does not wait for ever for the end", "run -s 10.0.0.1; meet 0; transfer 0; wait 399; running; wait 3",
	  OUTCOME_FAILED,
	  SERVER "connection 0 (transferred): timed out after 0.4 s: sent 1, received 1 of 1 message\n" },
	{ "each connection passes older ones of its queue pair at the peer",
	  "run -s 10.0.0.1 -c 2; stale 0; connections 2; meet 1 0; connections 3; stale 2; connections 4; meet 3 1; "
	  "transfer 1; transfer 3; finish",
	  OUTCOME_OK, "" },
	{ "as many of them as if it were alone",
	  "run -s 10.0.0.1 -c 3; meet 0; all_stale 1 66; connections 69; meet 67 1; meet 68 2; transfer 0; transfer "
	  "67; transfer 68; finish",
	  OUTCOME_OK, "" },
	{ "unless it is rejected without end",
	  "run -s 10.0.0.1 -c 2; meet 0; all_stale 1 65; connections 66; transfer 0; finish", OUTCOME_NO_CONNECTION,
	  SERVER "connecting: an older connection\n" },
	/* A connection in progress has its own limit. */
	{ "a connection waits for those that are being made",
	  "run -s 10.0.0.1 -c 2; meet 0; wait 300; address 1; wait 200; open 0; meet 1; transfer 0; transfer 1; finish",
	  OUTCOME_OK, "" },
	{ "a connection that has everything is not silent",
	  "run -s 10.0.0.1 -c 2; meet 0; meet 1; transfer 0; receive 1; wait 401; open 0; finish", OUTCOME_FAILED,
	  SERVER "connection 1 (sending): timed out after 0.4 s: sent 0, received 1 of 1 message\n" },
	{ "the server names other options", "run -s 10.0.0.1 -c 2; refuse_options 0", OUTCOME_FAILED,
	  SERVER "the two ends do not agree: the peer runs with -c 2 -C 9 -S 100, this end with -c 2 -C 1 -S 100\n" },
	{ "and then it has waited for long enough",
	  "run -s 10.0.0.1 -c 2 --wait-server 1000ms; nobody 0; again; refuse_options 1", OUTCOME_FAILED,
	  SERVER "the two ends do not agree: the peer runs with -c 2 -C 9 -S 100, this end with -c 2 -C 1 -S 100\n" },
	{ "the server refuses", "run -s 10.0.0.1; refuse 0", OUTCOME_NO_CONNECTION,
	  SERVER "connecting: refused by the peer\n" },
	{ "it does not wait for a server that refuses", "run -s 10.0.0.1 --wait-server 1000ms; refuse 0",
	  OUTCOME_NO_CONNECTION, SERVER "connecting: refused by the peer\n" },
	/* Without a listener for -P ib there may be one for -P tcp: the command has the port space. */
	{ "the hint at the server, over ib", "run -s 10.0.0.1 -P ib; no_listener 0", OUTCOME_NO_CONNECTION,
	  SERVER "connecting: it failed\n" TO_RUN "-P ib -p 7471 --transport fake\n" },
	{ "no hint after another error", "run -s 10.0.0.1 -P ib; refuse 0", OUTCOME_NO_CONNECTION,
	  SERVER "connecting: refused by the peer\n" },
	{ "the hint at the limit", "run -s 10.0.0.1 -P ib --wait-server 1ms; pass 2; no_reply 0", OUTCOME_NO_CONNECTION,
	  SERVER "connecting: it failed\nucmatose: hint: no server within 0.001 s (--wait-server)\n" },
	{ "the hint at the path", "run -s 10.0.0.1; no_reply 0", OUTCOME_NO_CONNECTION,
	  SERVER
	  "connecting: it failed\nucmatose: hint: to check the path: rdmatest doctor 10.0.0.1 -p 7471 --transport "
	  "fake\n" },
	{ "no hint once connected", "run -s 10.0.0.1; meet 0; no_reply 0", OUTCOME_NO_CONNECTION,
	  SERVER "connecting: it failed\n" },
	{ "it waits for a server that is absent or busy",
	  "run -s 10.0.0.1 --wait-server 10000ms; nobody 0; again; connections 2; refuse 1 busy; over 1; again; "
	  "address 2; route 2; nobody 2; again; refuse 3 full; again; nobody 4; again; connections 6; meet 5; transfer "
	  "5; finish",
	  OUTCOME_OK, "" },
	{ "it waits for its first connection only: that was there",
	  "run -s 10.0.0.1 -c 2 --wait-server 10000ms; meet 0; nobody 1; connections 2; transfer 0; finish",
	  OUTCOME_NO_CONNECTION, SERVER "connecting: nobody listens there\n" },
	{ "it tries the next address; no route leads to the second, and another device to the third",
	  "run -s 10.0.0.1 -c 2; addresses 3; address 0; route 0; next resolve 4; another_device; nobody 0; over 0; "
	  "over 1; peer 2 10.0.0.3:7471; meet_stock 2; transfer 2; peer 3 10.0.0.3:7471; meet_stock 3; transfer 3; "
	  "finish; verdict lengths checked (fake, fake1)",
	  OUTCOME_OK, NEXT_ADDRESS "ucmatose: hint: trying the next address of 10.0.0.1: 10.0.0.3:7471\n" },
	{ "without memory or queue pairs another address would not help either",
	  "run -s 10.0.0.1 --wait-server 10000ms; addresses 3; nobody 0; address 1; next create_qp 5; route 1; "
	  "connections 2",
	  OUTCOME_INTERNAL, "ucmatose: 10.0.0.2:7471: no queue pair left\n" },
	{ "nor without an endpoint", "run -s 10.0.0.1; addresses 3; next resolve 5; nobody 0; connections 2",
	  OUTCOME_INTERNAL, NEXT_ADDRESS },
	{ "it ends after its last address", "run -s 10.0.0.1; addresses 2; nobody 0; nobody 1; connections 2",
	  OUTCOME_NO_CONNECTION,
	  NEXT_ADDRESS "ucmatose: 10.0.0.2:7471: connecting: nobody listens there\n" TO_RUN
		       "-p 7471 --transport fake\n" },
	{ "it begins with the first address again",
	  "run -s 10.0.0.1 --wait-server 10000ms; addresses 2; nobody 0; nobody 1; wait 99; connections 2; next "
	  "resolve 4; wait 2; peer 2 10.0.0.1:7471; peer 3 10.0.0.2:7471; deadline",
	  OUTCOME_FAILED, "ucmatose: hint: last error of 10.0.0.2:7471: connecting: nobody listens there\n" },
	{ "it ends when it cannot ask again",
	  "run -s 10.0.0.1 --wait-server 10000ms; nobody 0; next resolve 3; wait 101", OUTCOME_NO_DEVICE,
	  SERVER "connecting: nobody listens there\n" },
	{ "the steps are timed",
	  "run -s 10.0.0.1; pass 1; address 0; pass 20; route 0; pass 300; confirm 0; transfer 0; finish; reports "
	  "\"asked\":1,\"made\":1,\"failed\":0,\"refused\":0,; reports "
	  "\"resolve_address\":{\"count\":1,\"min_ns\":1000000,; reports "
	  "\"resolve_route\":{\"count\":1,\"min_ns\":20000000,; reports "
	  "\"connect\":{\"count\":1,\"min_ns\":300000000,; reports \"disconnect\":{\"count\":0,",
	  OUTCOME_OK, "" },
	{ "the rate of connections lasts until the last one is made",
	  "run -s 10.0.0.1; address 0; route 0; pass 500; confirm 0; transfer 0; finish; reports "
	  "\"rate_per_second\":2.000",
	  OUTCOME_OK, "" },
	/* The first connection waits for messages while the others are made: that time is no part of the rate. */
	{ "rates are over the time of each phase",
	  "run -s 10.0.0.1 -c 2; meet 0; pass 2000; meet 1; pass 4000; receive 0; receive 1; pass 8000; sent 0; sent "
	  "1; finish; reports \"rate_per_second\":1.000; reports "
	  "\"sent_rate_per_second\":0.250,\"received_rate_per_second\":0.500,; reports "
	  "\"sent_bytes_per_second\":25.000,\"received_bytes_per_second\":50.000",
	  OUTCOME_OK, "" },
	{ "it moves to a new channel, also if the server was quick to end a connection",
	  "run -s 10.0.0.1 -c 3 -m; meet 0; meet 1; fails 2 4; transfer 1; leave 1; over 1; transfer 0; wait 1; "
	  "channel 1; leave 0",
	  OUTCOME_NO_CONNECTION, "" },
	{ "privileges are dropped when all are connected",
	  "soft; run -s 10.0.0.1 -c 2; meet 0; transfer 0; dropped 0; meet 1; transfer 1; dropped 1; finish 0",
	  OUTCOME_OK, "" },
	{ "a deadline drops what is being made", "run -s 10.0.0.1 -c 2; deadline; connections 1", OUTCOME_FAILED, "" },
};

TEST(clients, set_up, clean_up)
{
	play_runs(client_runs, LENGTH(client_runs), set_up, clean_up);
}

/* Every run has its own number, so that the server can tell it from others. */
TEST(client_has_48_connections_in_progress, set_up, clean_up)
{
	play("run -s 10.0.0.1 -c 60 -C 0");
	run_for(MS);
	play("connections 1; meet 0; connections 49; meet_stock 1; connections 50; fails 2 4; connections 51");
	for (uint32_t i = 3; i < 60; i++)
		word_meet(i, "");
	assert_int_not_equal(of(connection(0))->hello.run, 0);
	/* The reported path is the first connection's. */
	assert_int_equal(((struct ucmatose *)fake.state)->figures.path.qpn, connection(0)->qpn);
	for (uint32_t i = 3; i < 60; i++) {
		assert_int_equal(of(connection(i))->hello.connection, i);
		assert_int_equal(of(connection(i))->hello.run, of(connection(0))->hello.run);
	}
	play("finish 0");
	assert_ended(OUTCOME_NO_CONNECTION, "");
}
