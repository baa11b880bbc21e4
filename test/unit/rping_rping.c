/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=privileges_drop -Wl,--wrap=route_cause */
/* The client and the server of rping against peers that violate the protocol, which stock tools do not. */
#include "test/unit/unit.h"

#include "cmd/command.h"
#include "cmd/rping/protocol.h"
#include "cmd/rping/rping.h"

/* The source and the sink of the client that a server accesses, and the numbers of the connections' next pings. */
#define FAKE_FIELDS                                                                                                    \
	struct rping_options options;                                                                                  \
	uint8_t source[256], sink[256];                                                                                \
	uint32_t pings[ENDPOINTS_MAX];                                                                                 \
	uint32_t asked_with; /* the tag of a server that requests a confirmation */                                    \
	unsigned met;	     /* the connection whose server the test plays */                                          \
	unsigned signals;    /* advertisements of sinks that were signalled */

#include "test/unit/fake_transport.h"
#include "test/unit/stock_ping.h"

static int set_up(void **state)
{
	fake_create(&rping_command, HELLO_RPING);
	fake.options.common.path = (struct path_options)PATH_OPEN;
	fake.usual = "--timeout 400ms";
	return 0;
}

/* Delivers a peer's message to the receive posted first. */
static void receive_message(struct endpoint *endpoint, const struct advertisement *advertisement, uint32_t length)
{
	struct work receive = next_receive(endpoint);

	advertisement_write(advertisement, receive.region->memory + receive.offset);
	complete(endpoint, WORK_RECEIVE, receive.tag, length);
}

/* The number of buffers readable by the peer, writable by it, for READs from it, and for messages. */
WORD(buffers)
{
	const unsigned of_kind[] = { REGION_REMOTE_READ, REGION_REMOTE_WRITE, REGION_READ_SINK, REGION_LOCAL };
	unsigned wanted[LENGTH(of_kind)], sum = 0;

	assert_int_equal(sscanf(text, "%u %u %u %u", &wanted[0], &wanted[1], &wanted[2], &wanted[3]), 4);
	for (size_t i = 0; i < LENGTH(of_kind); i++) {
		assert_int_equal(fake.regions_with[of_kind[i]], wanted[i]);
		sum += wanted[i];
	}
	assert_int_equal(fake.regions_created, sum);
}

/* ---- the client; the test plays the server ---- */

/* A stock server accepts, or one with a maximum ping size in its hello. */
WORD(meet)
{
	struct hello hello = { .tool = HELLO_RPING };
	bool ours = sscanf(text, "%*u %u", &hello.capacity) == 1;

	fake.met = number;
	connect_endpoint(connection(number), ours ? &hello : NULL);
}

/* The next words are for that connection's server, which has already accepted. */
WORD(of)
{
	fake.met = number;
}

WORD(resolved)
{
	resolved(connection(number));
}

WORD(refuse)
{
	failed_for(connection(number), ERROR_OTHER, "refused by the peer");
	endpoint_fail(connection(number), OUTCOME_NO_CONNECTION);
}

WORD(busy)
{
	failed_for(connection(number), ERROR_OTHER, "refused by the peer");
	endpoint_rejected(connection(number), (const uint8_t *)HELLO_BUSY, strlen(HELLO_BUSY));
}

/* Reads the client's current advertisement. */
static struct advertisement advertised(void)
{
	const struct work *send = &of(connection(fake.met))->sends[0];
	struct advertisement advertisement;

	assert_int_equal(send->kind, WORK_SEND);
	assert_int_equal(send->length, ADVERTISEMENT_SIZE);
	advertisement_read(send->region->memory + send->offset, &advertisement);
	assert_int_equal(advertisement.key, 7);
	return advertisement;
}

WORD(go_ahead)
{
	of(connection(fake.met))->send_count = 0;
	receive_message(connection(fake.met), &(struct advertisement){ 0 }, ADVERTISEMENT_SIZE);
}

/* Plays the server up to the last go-ahead. It writes back the bytes that it read, except the byte of that number. */
WORD(answer_but)
{
	struct advertisement source = advertised(), sink;
	uint8_t ping[256];

	assert_true(source.size <= sizeof(ping));
	memcpy(ping, (uint8_t *)(uintptr_t)(source.address - FAKE_ADDRESSES), source.size);
	play("go_ahead");
	sink = advertised();
	assert_int_equal(sink.size, source.size);
	for (size_t i = 0; i < sink.size; i++)
		((uint8_t *)(uintptr_t)(sink.address - FAKE_ADDRESSES))[i] = i == number ? '#' : ping[i];
	fake.signals += !of(connection(fake.met))->sends[0].unsignalled;
}

/* Complete pings. */
WORD(pings)
{
	while (number--)
		play("answer_but 256; go_ahead");
}

/* The signalled send of a sink's advertisement has arrived. */
/* Each takes a millisecond. */
WORD(slow_pings)
{
	while (number--)
		play("pass 1; pings 1");
}

WORD(sent)
{
	complete(connection(fake.met), WORK_SEND, 1, 0);
}

/* Nothing was sent with privileges. */
WORD(unsent)
{
	assert_false(fake.sent_before_drop);
}

WORD(signals)
{
	assert_int_equal(fake.signals, number);
}

WORD(size)
{
	assert_int_equal(advertised().size, number);
}

/* The client's hello has that many pings. */
WORD(announces)
{
	assert_true(of(connection(fake.met))->hello.count == strtoull(text, NULL, 10));
}

/* On that connection so many packets of the client, and of the server, were lost. */
WORD(lose)
{
	struct losses *losses = &connection(number)->losses;

	assert_int_equal(sscanf(text, "%*u %u %u", &losses->out, &losses->back), 2);
}

WORD(reports_not)
{
	char *report = report_text_since(fake.command->figures(fake.state), NULL, 0);

	if (strstr(report, text))
		fail_saying("%s is in: %s", text, report);
	free(report);
}

#define RUN	"run 10.0.0.1 "
#define TARGET	"rping: 10.0.0.1:7174: "
#define REFUSED TARGET "connecting: refused by the peer\n"

static const struct script client_runs[] = {
	/* A signalled send frees the send queue. The server's answer has proved its delivery: nothing waits for it. */
	{ "one send in many is signalled",
	  RUN
	  "-V -C 32; meet 0; pings 15; signals 0; pings 1; signals 1; pings 15; signals 1; sent; pings 1; signals 2; "
	  "ending 0; leave 0",
	  OUTCOME_OK, "" },
	{ "two buffers are exposed", RUN "-C 2; meet 0; pings 2; buffers 1 1 0 1; leave 0", OUTCOME_OK, "" },
	{ "a wrong byte", RUN "-V -S 32; meet 0; answer_but 20; go_ahead", OUTCOME_FAILED,
	  "~ping 0: payload differs at byte 20 of 32: expected 0x48, found 0x23" },
	{ "a missing write", RUN "-V -S 1; meet 0; go_ahead; go_ahead", OUTCOME_FAILED,
	  "~differs at byte 0 of 1: expected 0x00, found 0xff" },
	{ "an unexpected go-ahead", RUN "--interval 1s; meet 0; pings 1; go_ahead", OUTCOME_FAILED,
	  "~waiting for the next slot: unexpected message in ping 1" },
	{ "the size limit of the server", RUN "-S 32; meet 0 31", OUTCOME_FAILED,
	  "~the server accepts pings of at most 31 bytes, not 32" },
	{ "the size without -S", RUN "; meet 0 1048576; size 100; leave 0", OUTCOME_FAILED, "~disconnected in ping 0" },
	{ "a server that takes less than that", RUN "; meet 0 50; size 50; leave 0", OUTCOME_FAILED,
	  "~disconnected in ping 0" },
	{ "a server that takes nothing", RUN "; meet 0 0", OUTCOME_FAILED,
	  "~the server accepts pings of at most 0 bytes, not 1" },
	{ "the size limit of a stock server", RUN "-S 65536; meet 0", OUTCOME_FAILED,
	  "~the server accepts pings of at most 65535 bytes, not 65536" },
	/* A stock server without -S accepts the pings of a client without -S. */
	{ "no hint at the size limit of a stock server", RUN "; meet 0; size 64; leave 0", OUTCOME_FAILED,
	  TARGET "waiting for the server to read the ping: the peer disconnected in ping 0\n" },
	{ "a hint at the size limit of a stock server", RUN "-S 65; meet 0; leave 0", OUTCOME_FAILED,
	  "~hint: a stock server ends when a ping is longer than its own -S" },
	{ "rows go on until the last answer",
	  RUN "-C 2 --warmup 1; rows 0; meet 0; rows 1; go_ahead; rows 1; go_ahead; "
	      "rows 1; pings 2; rows 1; ending 0; leave 0",
	  OUTCOME_OK, "" },
	{ "warm-up pings are not counted",
	  RUN "-V --warmup 3 -C 2; meet 0; pings 4; open 0; pings 1; ending 0; reports "
	      "\"warmup\":3,\"sent\":2,\"answered\":2,\"verified\":2,\"lost\":0; leave 0",
	  OUTCOME_OK, "" },
	{ "the hello has the warm-up pings, too",
	  RUN "--warmup 2147483647 -C 5000000000000000000; meet 0; announces 5000000002147483647; leave 0",
	  OUTCOME_FAILED, "~the peer disconnected in ping 0" },
	{ "a lost ping",
	  RUN
	  "; meet 0; pings 1; again; reports \"sent\":2,\"answered\":1,\"verified\":0,\"lost\":1; reports "
	  "\"verdict\":\"fail\",\"error\":\"waiting for the server to read the ping: timed out after 0.4 s in ping 1",
	  OUTCOME_FAILED, TARGET "waiting for the server to read the ping: timed out after 0.4 s in ping 1\n" },
	{ "a ping that took longer than its slot is followed at once by one more, and that by the next slot",
	  RUN "--timeout 10s --interval 1s; meet 0; wait 2500; pings 2; idle 0; interrupt; leave 0", OUTCOME_OK, "" },
	{ "a sweep up to the server's size limit",
	  RUN "-V -C 1 -S 32-128; meet 0 128; size 32; pings 1; size 64; pings 1; size 128; pings 1; ending 0; leave 0",
	  OUTCOME_OK, "" },
	{ "a sweep beyond the server's size limit", RUN "-C 1 -S 32-128; meet 0 127; pings 2; ending 0; leave 0",
	  OUTCOME_OK, "~hint: sizes above 127 are skipped: the server does not accept longer pings" },
	{ "a sweep beyond the device's size limit",
	  RUN "-C 1 -S 32-128; longest 64; meet 0 4294967295; pings 2; ending 0; leave 0", OUTCOME_OK,
	  "~hint: sizes above 64 are skipped: the server does not accept longer pings" },
	{ "the time of a size ends while the client waits for a slot, and the next size begins in that",
	  RUN "-V -S 32-64 --timeout 10s --interval 100ms --duration 150ms; meet 0; size 32; pings 1; wait 110; size "
	      "32; pings 1; wait 100; size 64; pings 1; wait 100; open 0; pings 1; wait 100; ending 0; leave 0",
	  OUTCOME_OK, "" },
	{ "the time of a size and the wait for a slot end in one iteration of the loop",
	  RUN "-V -S 32-64 --timeout 10s --interval 100ms --duration 50ms; meet 0; pings 1; pass 120; wait 1; size 64; "
	      "pings 1; wait 60; ending 0; leave 0",
	  OUTCOME_OK, "" },
	{ "a sweep that is interrupted is not complete",
	  RUN "-C 1 -S 32-64 --interval 1s; meet 0; pings 1; interrupt; leave 0", OUTCOME_FAILED,
	  TARGET "disconnecting: interrupted in ping 1\n" },
	/* Short packets pass, long ones are lost: a server that cannot read the ping ends, or does not answer. */
	{ "the sizes that passed", RUN "-C 1 -S 64-4096; meet 0 1048576; pings 2; leave 0", OUTCOME_FAILED,
	  "~hint: pings of up to 128 bytes passed, none of 256: a hop with a smaller MTU may drop long packets" },
	{ "what makes packets shorter", RUN "-C 1 -S 256-512; meet 0 1048576; pings 1; leave 0", OUTCOME_FAILED,
	  "~hint: shorter packets: --mtu 256" },
	{ "no packets are shorter than those of 256 bytes, which were lost",
	  RUN "-C 1 -S 128-256; meet 0 1048576; pings 1; leave 0", OUTCOME_FAILED,
	  TARGET "waiting for the server to read the ping: the peer disconnected in ping 1\n"
		 "rping: hint: pings of up to 128 bytes passed, none of 256: a hop with a smaller MTU may drop long "
		 "packets\n" },
	{ "a packet of the path MTU has passed", RUN "-C 1 -S 256-512; mtu 256; meet 0 1048576; pings 1; leave 0",
	  OUTCOME_FAILED, TARGET "waiting for the server to read the ping: the peer disconnected in ping 1\n" },
	{ "a wrong byte after a ping of that size", RUN "-V -S 200 --warmup 1; meet 0 1048576; answer_but 20; go_ahead",
	  OUTCOME_FAILED, TARGET "ping 0: payload differs at byte 20 of 200: expected 0x48, found 0x23\n" },
	{ "pings of that size have passed, to warm up", RUN "-S 200 --warmup 1; meet 0 1048576; pings 1; leave 0",
	  OUTCOME_FAILED, TARGET "waiting for the server to read the ping: the peer disconnected in ping 1\n" },
	{ "a long ping that did not pass", RUN "-S 4096; meet 0 1048576; wait 1400", OUTCOME_FAILED,
	  "~hint: if pings with -S 100 pass, a hop with a smaller MTU may drop" },
	{ "an error is of its target, also where two have one address",
	  RUN "10.0.0.1 -C 1; connections 1; meet 0; connections 2; refuse 1; pings 1; leave 0; reports "
	      "\"verdict\":\"fail\",\"error\":\"connecting: refused by the peer\"; reports "
	      "\"verdict\":\"pass\",\"error\":null",
	  OUTCOME_NO_CONNECTION, REFUSED },
	{ "a path waits for the others to its server, and for none to a dead one",
	  RUN "10.0.0.2 --paths 3 -C 1; wait 1; connections 1; meet 0; idle 0; connections 2; meet 1; connections 4; "
	      "pings 1; leave 1; of 0; pings 1; leave 0; meet 2; pings 1; leave 2; wait 100; connections 6; refuse 3; "
	      "refuse 4; refuse 5",
	  OUTCOME_NO_CONNECTION, "~connecting: refused by the peer" },
	{ "the losses of a path are known from its first answer on, and of one that failed if it had some",
	  RUN "--paths 2 -C 2; reports_not \"losses_out\":0; meet 0; meet 1; reports_not \"losses_out\":0; of 0; "
	      "pings 1; reports \"losses_out\":0,\"losses_back\":0; lose 0 3 1; reports "
	      "\"losses_out\":3,\"losses_back\":1; pings 1; leave 0; reports \"losses_out\":3,\"losses_back\":1; of 1; "
	      "pings 1; reports \"losses_out\":0; wait 500; reports_not \"losses_out\":0",
	  OUTCOME_FAILED, "~timed out after 0.4 s in ping 1" },
	{ "the losses of a path are those of all its connections",
	  RUN
	  "--paths 2 -C 3 --reconnect; meet 0; meet 1; pings 3; leave 1; of 0; pings 1; lose 0 3 1; leave 0; wait 150; "
	  "meet 2; lose 2 1 0; reports \"losses_out\":4,\"losses_back\":1; pings 1; leave 2; reports \"losses_out\":4",
	  OUTCOME_FAILED, "~the peer disconnected in ping 1" },
	{ "a path that passes few pings in the same time is slow",
	  RUN "--paths 3 --duration 150ms --equal-paths; meet 0; meet 1; meet 2; of 0; pings 40; of 1; pings 40; of 2; "
	      "pings 1; wait 160; of 0; pings 1; leave 0; of 1; pings 1; leave 1; of 2; pings 1; leave 2",
	  OUTCOME_FAILED, "~worse than the others: UDP port 49154" },
	{ "and if most do",
	  RUN "--paths 3 --duration 150ms --equal-paths; meet 0; meet 1; meet 2; of 0; pings 40; of 1; pings 1; of 2; "
	      "pings 1; wait 160; of 0; pings 1; leave 0; of 1; pings 1; leave 1; of 2; pings 1; leave 2",
	  OUTCOME_FAILED, "~worse than the others: UDP ports 49153, 49154" },
	{ "the slow paths may be most of them",
	  RUN "--paths 5 -C 12 --equal-paths; meet 0; meet 1; meet 2; meet 3; meet 4; of 0; pings 12; leave 0; of 1; "
	      "pings 12; leave 1; of 2; slow_pings 12; leave 2; of 3; slow_pings 12; leave 3; of 4; slow_pings 12; "
	      "leave 4",
	  OUTCOME_FAILED, "~worse than the others: UDP ports 49154, 49155, 49156" },
	{ "of busy servers the hint comes once", RUN "10.0.0.2 -C 1; wait 1; connections 2; busy 0; busy 1",
	  OUTCOME_NO_CONNECTION,
	  REFUSED "rping: hint: a server with -P serves many at once\n"
		  "rping: 10.0.0.2:7174: connecting: refused by the peer\n" },
	{ "the times of connecting are those of the last attempt",
	  RUN "-C 1 --wait-server 10s; pass 1000; resolved 0; reports \"connect\":{\"resolve_address_ns\":1000000000,; "
	      "nobody 0; again; connections 2; pass 1; meet 1; reports \"connect\":{\"resolve_address_ns\":1000000,; "
	      "reports_not 1000000000; pings 1; leave 1",
	  OUTCOME_OK, "" },
	{ "a peer that still has older connections of the queue pairs drops each, and takes the next one",
	  RUN "-C 1; all_stale 0 3; connections 4; meet 3; pings 1; leave 3", OUTCOME_OK, "" },
	{ "unless it rejects them without end", RUN "-C 1; all_stale 0 65; connections 65", OUTCOME_NO_CONNECTION,
	  TARGET "connecting: an older connection\n" },
	{ "with --wait-server each round tries again",
	  RUN
	  "-C 1 --wait-server 10s; all_stale 0 65; wait 150; connections 66; stale 65; connections 67; meet 66; pings "
	  "1; leave 66",
	  OUTCOME_OK, "" },
	{ "privileges are dropped before the first ping",
	  "soft; " RUN "-C 1 --transport soft; meet 0; dropped 1; unsent; pings 1; leave 0", OUTCOME_OK, "" },
	{ "of two targets one does not answer: neither the other one's pings nor dropping privileges wait for it",
	  "soft; " RUN
	  "10.0.0.2 -C 1 --transport soft; meet 0; dropped 1; unsent; pings 1; leave 0; meet 1; pings 1; leave 1",
	  OUTCOME_OK, "" },
	{ "the error of the final attempt is reported",
	  RUN "--wait-server 10s; nobody 0; again; refuse 1; reports \"error\":\"connecting: refused by the peer\"",
	  OUTCOME_NO_CONNECTION, REFUSED },
};

TEST(clients, set_up, tear_down)
{
	play_runs(client_runs, LENGTH(client_runs), set_up, tear_down);
}

/* A traffic class or another path would have saved no packet of the outage. */
TEST(no_remedy_is_untried_after_an_outage, set_up, tear_down)
{
	play("run 10.0.0.1 -C 2 --interval 10ms --reconnect; meet 0; pings 1");
	fake.transport.untried = UNTRIED_PATH;
	play("leave 0; wait 100");
	assert_int_equal(fake.transport.untried, 0);
	assert_ended(OUTCOME_FAILED, TARGET "waiting for the next slot: the peer disconnected in ping 1\n");
}

/* doctor asks for long pings without knowing the server. */
TEST(pings_of_doctor_do_not_end_a_stock_server, set_up, tear_down)
{
	struct ping_facts facts = { .answered = 0 };

	fake.run.ping = &facts;
	play("run 10.0.0.1 -S 4096 -C 1; meet 0; size 64; pings 1; leave 0");
	assert_ended(OUTCOME_OK, "");
}

/* doctor divides the bytes of both directions by their times. */
TEST(times_of_the_pings_of_doctor, set_up, tear_down)
{
	struct ping_facts facts = { .answered = 0 };

	fake.run.ping = &facts;
	play("run 10.0.0.1 -S 200 -C 2; meet 0 4096; pass 3; answer_but 256; pass 5; go_ahead; pass 7; answer_but 256");
	play("pass 11; go_ahead; leave 0");
	assert_ended(OUTCOME_OK, "");
	assert_int_equal(facts.answered, 2);
	assert_int_equal(facts.size, 200);
	assert_int_equal(facts.there, 10 * CLOCK_NS_PER_MS);
	assert_int_equal(facts.both, 26 * CLOCK_NS_PER_MS);
}

/* n pings take n periods, and their reported rate is the schedule's. */
TEST(client_pings_at_its_rate_for_its_duration, set_up, tear_down)
{
	static const struct {
		const char *run;
		int64_t interval;
		unsigned pings;
		const char *rate;
	} rows[] = {
		{ "run 10.0.0.1 --timeout 10s --interval 100ms --duration 950ms", 100, 10,
		  "\"rate_per_second\":10.000" },
		{ "run 10.0.0.1 --timeout 10s --interval 200ms -C 2", 200, 2, "\"rate_per_second\":5.000" },
		{ "run 10.0.0.1 --timeout 10s --interval 1s --duration 2.5s", 1000, 3, "\"rate_per_second\":1.000" },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		const int64_t quarter = rows[i].interval * CLOCK_NS_PER_MS / 4;
		unsigned count = 0;

		if (i) {
			tear_down(state);
			set_up(state);
		}
		play(rows[i].run);
		play("meet 0");
		next_interval();
		while (!of(connection(0))->disconnected) {
			fake_clock_pass(quarter);
			play("pings 1");
			count++;
			if (!of(connection(0))->disconnected)
				run_for(3 * quarter);
			/* An interval that ends within a slot has the rate of the completed slots. */
			if (count % 4 == 0) {
				assert_reports_interval(rows[i].rate);
				next_interval();
			}
		}
		assert_int_equal(count, rows[i].pings);
		assert_reports(rows[i].rate);
		play("leave 0");
		assert_ended(OUTCOME_OK, "");
	}
}

/* ---- the server; the test plays the clients ---- */

/* A client with that many pings sends a request, or for 0 a stock client. */
WORD(ask)
{
	struct hello hello = { .tool = HELLO_RPING, .count = number };

	request_connection(number ? &hello : NULL);
}

/* A client, with a hello that far from our version, wants answers from a port. */
WORD(ask_port)
{
	const struct hello hello = { .tool = HELLO_RPING, .udp_port = UDP_PORT_FIRST };

	fake.hello_other_by = (unsigned char)number;
	assert_int_equal(request_connection(&hello)->options.udp_port, number ? 0 : UDP_PORT_FIRST);
}

WORD(take)
{
	struct endpoint *request;

	word_ask(number, text);
	request = &fake.endpoints[fake.endpoint_count - 1]->base;
	assert_int_equal(request->state, ENDPOINT_ACCEPTING);
	endpoint_established(request, NULL, 0);
}

/* The client of that number advertises that many bytes: "source 0 32". */
static void advertise(unsigned number, const char *text, const uint8_t *memory)
{
	struct advertisement advertisement = { .address = (uintptr_t)memory, .key = 9 };

	assert_int_equal(sscanf(text, "%*u %u", &advertisement.size), 1);
	receive_message(connection(number), &advertisement, ADVERTISEMENT_SIZE);
}

WORD(source)
{
	advertise(number, text, fake.source);
}

WORD(sink)
{
	advertise(number, text, fake.sink);
}

/* Plays the device: executes the RDMA READ. */
WORD(read)
{
	const struct work *read = &of(connection(number))->sends[0];

	assert_int_equal(read->kind, WORK_READ);
	assert_int_equal(read->remote_key, 9);
	assert_true(read->length <= read->region->length);
	if (read->length <= sizeof(fake.source))
		memcpy(read->region->memory, (const uint8_t *)(uintptr_t)read->remote_address, read->length);
	complete(connection(number), WORK_READ, read->tag, 0);
}

WORD(read_fails)
{
	connection(number)->handlers->completion(
		connection(number)->context, connection(number),
		&(struct completion){ .kind = WORK_READ, .status = COMPLETION_REMOTE_ACCESS });
}

/* Checks the RDMA WRITE and the go-ahead. */
WORD(answered)
{
	const struct work *works = of(connection(number))->sends;

	assert_int_equal(of(connection(number))->send_count, 2);
	assert_int_equal(works[0].kind, WORK_WRITE);
	assert_int_equal(works[0].remote_key, 9);
	assert_true(works[0].unsignalled);
	assert_int_equal(works[1].kind, WORK_SEND);
	assert_true(works[1].unsignalled);
}

/* A ping, up to the server's posted answer. */
WORD(ping)
{
	unsigned size;

	assert_int_equal(sscanf(text, "%*u %u", &size), 1);
	if (size <= sizeof(fake.source))
		stock_ping(fake.source, size, fake.pings[number]++);
	advertise(number, text, fake.source);
	word_read(number, text);
	advertise(number, text, fake.sink);
	word_answered(number, text);
}

WORD(empty_message)
{
	receive_message(connection(number), &(struct advertisement){ 0 }, 0);
}

WORD(no_reads)
{
	connection(number)->no_reads = true;
}

WORD(iwarp)
{
	fake.domain.fabric = FABRIC_IWARP;
}

static enum work_kind confirmation_kind(void)
{
	return fake.domain.fabric == FABRIC_IWARP ? WORK_READ : WORK_WRITE;
}

/* The server requests confirmation of its last answer: an empty RDMA WRITE, over iWARP a READ of a byte of the source.
 */
WORD(wants_confirmation)
{
	const struct work *confirmation = &of(connection(number))->sends[0];

	assert_int_equal(confirmation->kind, confirmation_kind());
	assert_int_equal(confirmation->length, confirmation->kind == WORK_READ);
	assert_int_equal(confirmation->remote_key, 9);
	assert_false(confirmation->unsignalled);
	fake.asked_with = confirmation->tag;
}

WORD(confirmed)
{
	complete(connection(number), confirmation_kind(), fake.asked_with, 0);
}

/* Requests fail: by the client's fault, ours, or for lack of memory. */
WORD(lost_by_client)
{
	endpoint_request_failed(&fake.endpoints[0]->base, OUTCOME_NO_CONNECTION);
}

WORD(lost)
{
	endpoint_request_failed(&fake.endpoints[0]->base, OUTCOME_INTERNAL);
}

WORD(no_memory)
{
	while (number--)
		endpoint_request_no_memory(&fake.endpoints[0]->base);
}

WORD(listens)
{
	assert_int_equal(fake.endpoints[0]->base.state, ENDPOINT_LISTENING);
}

/* That many buffers are freed. */
WORD(freed)
{
	assert_int_equal(fake.regions_destroyed, number);
}

/* The current RDMA READ's buffer. */
WORD(buffer_of)
{
	assert_int_equal(of(connection(0))->sends[0].region->length, number);
}

#define CLIENT "rping: 10.0.0.2:4242: "
#define BUSY   "rejected " HELLO_BUSY "; "

static const struct script server_runs[] = {
	{ "no buffer is exposed", "run -s; take 2; ping 0 32; ping 0 64; buffers 0 0 2 1; leave 0", OUTCOME_OK, "" },
	{ "the send queue may still use the buffer of an answer that was delivered",
	  "run -s; take 0; ping 0 32; source 0 64; freed 0; read 0; freed 1; leave 0", OUTCOME_FAILED,
	  "~waiting for the client's sink: the peer disconnected in ping 1" },
	{ "a buffer is as long as the longest ping",
	  "run -s; take 0; source 0 100; buffer_of 100; read 0; sink 0 100; source 0 101; buffer_of 101; read 0; sink "
	  "0 101; source 0 50; buffer_of 101; read 0; sink 0 50; source 0 1048576; buffer_of 1048576; read 0; sink 0 "
	  "1048576; leave 0",
	  OUTCOME_OK, "" },
	{ "the range of sizes",
	  "run -s; take 0; ping 0 32; ping 0 200; ping 0 7; ping 0 50; leave 0; verdict 4 pings of 7 to 200 bytes from "
	  "10.0.0.2:4242 answered",
	  OUTCOME_OK, "" },
	{ "rows while a client is connected",
	  "run -s -P; rows 0; take 0; rows 1; ping 0 32; rows 1; leave 0; rows 0; "
	  "interrupt",
	  OUTCOME_OK, "" },
	{ "an interrupted server has its last answer confirmed",
	  "run -s -P; take 0; ping 0 32; reports \"pings\":{\"answered\":0; interrupt; open 0; wants_confirmation 0; "
	  "confirmed 0; ending 0; reports \"pings\":{\"answered\":1; leave 0",
	  OUTCOME_OK, "" },
	{ "the next ping confirms it, too",
	  "run -s -P; take 0; ping 0 32; interrupt; source 0 32; ending 0; reports \"pings\":{\"answered\":1; leave 0",
	  OUTCOME_OK, "" },
	{ "after the confirmation of an answer the client may pause without limit",
	  "run -s; take 2; ping 0 32; wait 201; wants_confirmation 0; confirmed 0; reports \"pings\":{\"answered\":1; "
	  "wait 600; ping 0 32; leave 0",
	  OUTCOME_OK, "" },
	{ "the next ping arrives before the confirmation",
	  "run -s; take 2; ping 0 32; wait 201; wants_confirmation 0; source 0 32; confirmed 0; read 0; sink 0 32; "
	  "answered 0; leave 0",
	  OUTCOME_OK, "" },
	{ "over iWARP, too",
	  "run -s; iwarp; take 2; ping 0 32; wait 201; wants_confirmation 0; source 0 32; confirmed 0; read 0; "
	  "sink 0 32; answered 0; leave 0",
	  OUTCOME_OK, "" },
	{ "an empty source", "run -s; take 0; source 0 0", OUTCOME_FAILED,
	  CLIENT "ping 0: the client's source has 0 bytes, not 1 to 1048576\n" },
	{ "a source that is too long", "run -s; take 0; source 0 1048577", OUTCOME_FAILED,
	  CLIENT "ping 0: the client's source has 1048577 bytes, not 1 to 1048576\n" },
	{ "a source that is too long for the device", "run -s; longest 4096; take 0; source 0 4097", OUTCOME_FAILED,
	  CLIENT "ping 0: the client's source has 4097 bytes, not 1 to 4096\n" },
	{ "a source that may not be read", "run -s; take 0; no_reads 0; source 0 32", OUTCOME_FAILED,
	  CLIENT "the peer does not allow RDMA READs (responder_resources 0)\n" },
	{ "a sink that is too short", "run -s; take 0; source 0 32; read 0; sink 0 31", OUTCOME_FAILED,
	  CLIENT "ping 0: the client's sink has 31 bytes, not 32 to 1048576\n" },
	{ "a sink before the ping is read", "run -s; take 0; source 0 32; sink 0 32", OUTCOME_FAILED,
	  "~reading the ping: unexpected message in ping 0" },
	{ "a message without an advertisement", "run -s; take 0; empty_message 0", OUTCOME_FAILED,
	  "~a message of 0 bytes, not 16" },
	{ "a READ that fails", "run -s; take 0; source 0 32; read_fails 0", OUTCOME_FAILED, "" },
	{ "a client that leaves at once", "run -s; take 0; leave 0", OUTCOME_FAILED,
	  CLIENT "waiting for the first ping: the peer disconnected in ping 0\n" },
	/* No READ completes, which would have freed the old buffer. */
	{ "a client that leaves in the middle of a ping", "run -s; take 0; ping 0 32; source 0 64; leave 0",
	  OUTCOME_FAILED, CLIENT "reading the ping: the peer disconnected in ping 1\n" },
	{ "no first ping", "run -s; take 0; again", OUTCOME_FAILED,
	  CLIENT "waiting for the first ping: timed out after 0.4 s in ping 0\n" },
	{ "a READ that does not end", "run -s; take 0; source 0 32; again", OUTCOME_FAILED,
	  CLIENT "reading the ping: timed out after 0.4 s in ping 0\n" },
	{ "no sink", "run -s; take 0; source 0 32; read 0; again", OUTCOME_FAILED,
	  "~waiting for the client's sink: timed out after 0.4 s" },
	{ "an answer that is not acknowledged", "run -s; take 0; ping 0 32; again", OUTCOME_FAILED,
	  CLIENT "waiting for the acknowledgement of the answer: timed out after 0.2 s in ping 0\n" },
	{ "the pings of the hello are expected", "run -s; take 10; ping 0 32; ping 0 32; ping 0 32; leave 0",
	  OUTCOME_FAILED, CLIENT "waiting for the next ping: the peer disconnected in ping 3\n" },
	/* It sends no hello, and if it is killed between two pings the kernel disconnects. */
	{ "-C pings of a stock client are expected", "run -s -C 3; take 0; ping 0 32; leave 0", OUTCOME_FAILED,
	  CLIENT "waiting for the next ping: the peer disconnected in ping 1\n" },
	{ "but not of one of ours", "run -s -C 3; take 1; ping 0 32; leave 0", OUTCOME_OK, "" },
	{ "a failed client does not affect others",
	  "run -s -P; take 0; take 0; ping 0 32; source 1 0; over 1; ping 0 32; leave 0; listens; interrupt",
	  OUTCOME_FAILED, CLIENT "ping 0: the client's source has 0 bytes, not 1 to 1048576\n" },
	{ "one client at a time",
	  "run -s --max-clients 2; take 0; ask 0; " BUSY "ping 0 32; leave 0; take 0; ping 2 32; leave 2", OUTCOME_OK,
	  "" },
	{ "a request that fails for want of resources is our failure; its line is printed once",
	  "run -s -P; lost_by_client; no_memory 20; take 0; ping 0 32; leave 0; interrupt", OUTCOME_INTERNAL,
	  "rping: 0.0.0.0:7174: refused a connection request: out of memory\n" },
	{ "a pending request without resources is a failure", "run -s -P; ask 0; fails 0 5; listens; interrupt",
	  OUTCOME_INTERNAL, "" },
	{ "only a hello of our version names a port", "run -s -P; ask_port 1; ask_port 0; interrupt", OUTCOME_OK, "" },
	{ "a rejection names the cause",
	  "run -s -P; next create_qp 5; ask 0; rejected no queue pair left; next accept 5; ask 0; rejected it cannot "
	  "be accepted; take 0; ping 2 32; leave 2; interrupt",
	  OUTCOME_INTERNAL, CLIENT "no queue pair left\n" CLIENT "it cannot be accepted\n" },
	{ "a server of one client without memory ends", "run -s; no_memory 1; again", OUTCOME_INTERNAL,
	  "rping: 0.0.0.0:7174: refused a connection request: out of memory\n" },
	/* It would have rejected the second client anyway. */
	{ "with its client it goes on", "run -s; take 1; lost; open 0; ping 0 32; leave 0", OUTCOME_OK, "" },
	{ "clients above --max-clients are rejected",
	  "run -s -P --max-clients 2; take 0; take 0; ask 0; " BUSY "ping 0 32; leave 0; ask 0; " BUSY
	  "ping 1 32; leave 1",
	  OUTCOME_OK, "" },
	{ "a client that leaves without a ping is not served",
	  "run -s -P --max-clients 1; take 0; leave 0; listens; take 0; ping 1 32; leave 1", OUTCOME_OK, "" },
	/* It may have a forged source address. For now it occupies a place: the server is busy, but below its limit. */
	{ "a pending request is not counted",
	  "run -s -P --max-clients 2; take 0; ask 0; reports \"served\":{\"clients\":0,\"failed\":0,\"connected\":1}; "
	  "ask 0; " BUSY "fails 1 4; ask 0; ping 0 32; leave 0; interrupt",
	  OUTCOME_FAILED, "~interrupted after 1 of 2 clients" },
	{ "--deadline is a failure, although interrupting a server with -P is not",
	  "run -s -P; take 0; ping 0 32; deadline; ending 0; leave 0; reports \"served\":{\"clients\":0,\"failed\":1,",
	  OUTCOME_FAILED, "" },
	{ "a server is idle only if it has no client",
	  "run -s -P --idle-timeout 1s --timeout 10s; take 0; ping 0 32; wait 900; ping 0 32; wait 900; listens; leave "
	  "0; again",
	  OUTCOME_OK, "" },
	{ "a pending request is no client", "run -s -P --idle-timeout 200ms; wait 150; ask 0; wait 100; fails 0 4",
	  OUTCOME_FAILED, "rping: no client came for 0.2 s (--idle-timeout)\n" },
	{ "the listener fails: the connected client may finish, and the run fails",
	  "run -s -P; take 1; listener_fails 3; open 0; ping 0 32; leave 0", OUTCOME_NO_DEVICE, "" },
	{ "a request that is withdrawn is no failure, one that cannot be accepted is",
	  "run -s; next accept 4; ask 1; listens; next accept 5; ask 1", OUTCOME_INTERNAL,
	  CLIENT "it cannot be accepted\n" },
};

TEST(servers, set_up, tear_down)
{
	play_runs(server_runs, LENGTH(server_runs), set_up, tear_down);
}

/* It compares and prints after posting the answer, which ends the client's time measurement. */
TEST(server_reports_a_wrong_byte_after_the_answer, set_up, tear_down)
{
	char *text = NULL;
	size_t length;

	fake.printed.stream = open_memstream(&text, &length);
	play("run -s -V -v; take 0; ping 0 32");
	stock_ping(fake.source, 32, 1);
	fake.source[31] = 'x';
	play("source 0 32; read 0");
	assert_int_equal(of(connection(0))->send_count, 1);
	assert_int_equal(of(connection(0))->sends[0].kind, WORK_SEND);
	fflush(fake.printed.stream);
	assert_non_null(strstr(text, "rdma-ping-0: "));
	assert_null(strstr(text, "rdma-ping-1: "));
	play("sink 0 32; answered 0");
	fclose(fake.printed.stream);
	fake.printed.stream = stdout;
	free(text);
	assert_ended(OUTCOME_FAILED, "ping 1: payload differs at byte 31 of 32: expected 0x00, found 0x78");
}

static unsigned occurrences(const char *text, const char *words)
{
	unsigned count = 0;

	for (const char *at = text; (at = strstr(at, words)); at++)
		count++;
	return count;
}

/* Clients that send no ping: every other one a message that is too long, with -v. */
static void take_silent_clients(unsigned first)
{
	for (unsigned i = first; i < first + 30; i++) {
		play("take 0");
		snprintf(connection(i)->name, sizeof(connection(i)->name), "10.0.0.2:%u", 1000 + i);
		if (i % 2)
			endpoint_complete(connection(i),
					  &(struct completion){ .kind = WORK_RECEIVE, .status = COMPLETION_LENGTH },
					  "status", 1, NULL);
	}
}

/* Answered clients do not use up the lines for clients without a ping, and those do not fill the log. */
TEST(silent_clients_have_few_lines, set_up, tear_down)
{
	play("run -s -P");
	for (unsigned i = 0; i < 20; i++) {
		play("take 0");
		for (unsigned ping = 0; ping < 2; ping++)
			word_ping(i, "0 32");
		word_leave(i, "");
	}
	take_silent_clients(20);
	play("wait 500; interrupt; reports \"served\":{\"clients\":20,\"failed\":30,");
	assert_ended(OUTCOME_FAILED, "waiting for the first ping");
	assert_int_equal(occurrences(fake.errors.text, "waiting for the first ping") +
				 occurrences(fake.errors.text, "receive failed"),
			 10);
}

/* Nor a JSON stream, nor -v's output. */
TEST(silent_clients_have_few_records, set_up, tear_down)
{
	const struct reporting_options options = { .json_stream = true };
	struct reporting reporting = { .run = &fake.run, .options = &options };
	FILE *kept = stdout;
	char *text = NULL;
	size_t length;

	fake.run.reporting = &reporting;
	fake.run.log.reported = reporting_json_error;
	fake.run.log.context = &reporting;
	fake.printed.stream = stdout = open_memstream(&text, &length);
	play("run -s -P -v");
	take_silent_clients(0);
	for (unsigned i = 0; i < 30; i += 2)
		word_leave(i, "");
	play("interrupt");
	fclose(stdout);
	fake.printed.stream = stdout = kept;
	assert_ended(OUTCOME_FAILED, "receive failed");
	assert_int_equal(occurrences(text, "\"client\""), 10);
	assert_int_equal(occurrences(text, "\"error\""), 5);
	assert_int_equal(occurrences(text, "DISCONNECT"), 5);
	assert_int_equal(fake.reported.count, 15);
	free(text);
}

/* A pending request does not count: its source address may be forged. */
TEST(persistent_server_limits_its_clients, set_up, tear_down)
{
	struct fake_endpoint **clients = calloc(RPING_CLIENTS_MAX, sizeof(*clients));

	play("run -s -P; ask 0");
	for (size_t i = 0; i < RPING_CLIENTS_MAX; i++) {
		play("take 0");
		clients[i] = fake.endpoints[--fake.endpoint_count];
	}
	play("ask 0; rejected " HELLO_BUSY);
	for (size_t i = 0; i < RPING_CLIENTS_MAX; i++) {
		disconnect(&clients[i]->base);
		free(clients[i]);
	}
	free(clients);
	play("ask 0; interrupt");
	assert_ended(OUTCOME_OK, "");
}
