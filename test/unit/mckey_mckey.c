/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs of mckey: a receiver with datagrams of our sender, a stock, a broken or a hostile one, and a sender whose device
 * completes sends, or none.
 */
#include "unit.h"

#include <sys/resource.h>

#include "cmd/command.h"
#include "cmd/mckey/mckey.h"

#define FAKE_FIELDS struct mckey_options options;

#include "test/unit/fake_transport.h"
#include "test/unit/pattern.h"

#define MS CLOCK_NS_PER_MS

enum {
	SIZE = 100,
	MTU = 1024,
};

static int set_up(void **state)
{
	fake_create(&mckey_command, 0);
	fake.domain.max_qp_wr = RECEIVES_MAX;
	fake.domain.multicast = true;
	fake.domain.fabric = FABRIC_ROCE;
	fake.options.common.path = (struct path_options)PATH_OPEN;
	fake.usual = "239.1.1.1 --timeout 400ms";
	return 0;
}

static struct mckey *run_of(void)
{
	return fake.state;
}

/* A member. */
WORD(address_of)
{
	struct endpoint *endpoint = connection(number);

	endpoint->domain = &fake.domain;
	endpoint->max_datagram = MTU;
	endpoint_deliver_kind(endpoint, EVENT_ADDRESS_RESOLVED);
}

WORD(joined)
{
	const struct group_address group = { .gid = { 0xff, 0x0e }, .qkey = 1 };

	endpoint_deliver(connection(number), &(struct endpoint_event){ .kind = EVENT_JOINED, .group = &group });
}

/* All of that many members. */
WORD(join)
{
	for (unsigned i = 0; i < number; i++)
		word_address_of(i, text);
	for (unsigned i = 0; i < number; i++)
		word_joined(i, text);
}

/* The run ends by itself. */
WORD(ends)
{
	run_for(1000 * CLOCK_NS_PER_S);
	assert_true(fake.run.ended);
}

struct datagram {
	unsigned queue;
	unsigned host; /* 10.0.0.HOST */
	unsigned length;
	unsigned total;	 /* 0: without a mark */
	unsigned damage; /* the datagram's changed byte, 0 for none */
	bool foreign;	 /* without every mckey's immediate data */
};

static void receive(unsigned number, uint32_t sequence, const struct datagram *datagram)
{
	struct endpoint *endpoint = connection(number);
	size_t receives = of(endpoint)->receive_count;
	struct work work = next_receive(endpoint);
	uint8_t *memory = work.region->memory + work.offset;
	const struct datagram_mark mark = { .sequence = sequence, .total = datagram->total };
	const struct completion completion = {
		.kind = WORK_RECEIVE,
		.tag = work.tag,
		.length = datagram->length,
		.has_immediate = !datagram->foreign,
		.immediate = datagram->queue,
		.source_qpn = datagram->queue,
	};

	assert_int_equal(work.length, DATAGRAM_HEADER_SIZE + MTU);
	memset(memory, 0, work.length);
	memory[20] = 0x45;
	memory[32] = 10;
	memory[35] = (uint8_t)datagram->host;
	if (datagram->total)
		datagram_write(memory + DATAGRAM_HEADER_SIZE, datagram->length, pattern(), datagram->queue, &mark);
	if (datagram->damage)
		memory[DATAGRAM_HEADER_SIZE + datagram->damage] ^= 1;
	endpoint_complete(endpoint, &completion, NULL, 0, NULL);
	/* In any case its receive is used up and must be replaced. */
	assert_true(of(endpoint)->receive_count == receives || fake.run.ended);
}

/*
 * "data 0 17.1 2-5/10": member 0 gets datagrams 2 to 4 of ten, from QP 17 at 10.0.0.1; a total of 0 means a stock
 * sender.
 */
WORD(data)
{
	struct datagram datagram = { .length = SIZE, .foreign = strstr(text, "foreign") };
	unsigned from, to;

	assert_int_equal(
		sscanf(text, "%*u %u.%u %u-%u/%u", &datagram.queue, &datagram.host, &from, &to, &datagram.total), 5);
	if (strstr(text, "length"))
		sscanf(strstr(text, "length"), "length %u", &datagram.length);
	if (strstr(text, "damaged"))
		sscanf(strstr(text, "damaged"), "damaged at %u", &datagram.damage);
	for (uint32_t sequence = from; sequence < to; sequence++)
		receive(number, sequence, &datagram);
}

WORD(reports_interval)
{
	assert_reports_interval(text);
}

WORD(next_interval)
{
	next_interval();
}

#define SENDER "mckey: QP 17 at 10.0.0.1: "
#define NO_SENDER_HINT                                                                                                 \
	"mckey: hint: is there a sender in this network? routers may block multicast, and switches that snoop IGMP "   \
	"or MLD need a querier\n"
#define STOCK_HINT "mckey: hint: a stock mckey -s on soft-RoCE loses datagrams: run rdmatest mckey -s there\n"
#define SILENCE	   "no datagram for 5 s (--idle-timeout)\n"

static const struct script receiver_runs[] = {
	/* The same QP number on another host is another sender, and one of our QPs misses it. */
	{ "every member expects every sender",
	  "run -c 2 -C 3; join 2; data 0 17.1 0-3/3; data 1 17.1 0-3/3; data 0 17.2 0-3/3; ends", OUTCOME_FAILED,
	  "mckey: QP 17 at 10.0.0.2: 3 of 6 datagrams did not arrive: " SILENCE },
	{ "datagrams that arrive before the last member has joined: their run ends, too",
	  "run -c 2 -C 1 --idle-timeout 20ms; address_of 0; joined 0; data 0 17.1 0-1/1; wait 200; running; address_of "
	  "1; joined 1; ends",
	  OUTCOME_FAILED, SENDER "1 of 2 datagrams did not arrive: no datagram for 0.02 s (--idle-timeout)\n" },
	{ "a loss; the first datagram is waited for",
	  "run; join 1; rows 0; wait 20000; running; data 0 17.1 0-9/10; rows 1; ends", OUTCOME_FAILED,
	  SENDER "1 of 10 datagrams did not arrive: " SILENCE },
	/* A stock sender that sends more than -C must not hide that another has stopped. */
	{ "datagrams beyond the count do not prolong the wait",
	  "run -C 4; join 1; data 0 17.1 0-3/4; data 0 18.1 0-4/0; wait 4000; data 0 18.1 0-1/0; wait 990; data 0 18.1 "
	  "0-1/0; running; wait 20",
	  OUTCOME_FAILED, SENDER "1 of 4 datagrams did not arrive: " SILENCE STOCK_HINT },
	{ "damage is reported once, and fails",
	  "run -C 4; join 1; data 0 17.1 0-1/4; data 0 17.1 1-2/4 damaged at 50; data 0 17.1 2-3/4 damaged at 60; data "
	  "0 17.1 3-4/4 damaged at 9; ends",
	  OUTCOME_FAILED,
	  SENDER "a datagram is damaged: byte 50 is 0xe1 instead of 0xe0\n" SENDER "3 damaged datagrams\n" },
	{ "a sender with a smaller -S", "run; join 1; data 0 17.1 0-1/10 length 99", OUTCOME_FAILED,
	  SENDER "sends with -S 99: expected -S 100\n" },
	{ "a sender with a larger -S", "run; join 1; data 0 17.1 0-1/10 length 101", OUTCOME_FAILED,
	  SENDER "sends with -S 101: expected -S 100\n" },
	{ "a stock sender with the largest -S", "run; join 1; data 0 17.1 0-1/0 length 1024", OUTCOME_FAILED,
	  SENDER "sends with -S 1024: expected -S 100\n" },
	{ "a stock sender with the smallest -S", "run; join 1; data 0 17.1 0-1/0 length 1", OUTCOME_FAILED,
	  SENDER "sends with -S 1: expected -S 100\n" },
	{ "a sender with a smaller -C", "run; join 1; data 0 17.1 0-1/9", OUTCOME_FAILED,
	  SENDER "sends with -C 9: expected -C 10\n" },
	{ "a sender with a larger -C", "run; join 1; data 0 17.1 0-1/11", OUTCOME_FAILED,
	  SENDER "sends with -C 11: expected -C 10\n" },
	{ "beside a sender those with another -S or -C are strangers",
	  "run -C 2; join 1; data 0 17.1 0-1/2; data 0 99.9 0-1/2 length 50; data 0 99.8 0-1/3; data 0 17.1 1-2/2; "
	  "reports \"foreign\":2; ends",
	  OUTCOME_OK, "" },
	/* The last one is longer than any of our receives. */
	{ "foreign datagrams are ignored",
	  "run -C 2; join 1; data 0 99.9 0-1/0 foreign; data 0 99.9 0-1/0 length 1024 foreign; data 0 99.9 0-1/0 "
	  "length 4294967256; data 0 17.1 0-2/2; reports \"foreign\":3; ends",
	  OUTCOME_OK, "" },
	/* The QPs of a stock sender send one after another: 200 ms is the wait for the second. */
	{ "a time for a second sender",
	  "run -C 2 --idle-timeout 60s; join 1; data 0 17.1 0-2/2; wait 195; running; data 0 18.1 0-1/2; wait 10000; "
	  "running; data 0 18.1 1-2/2; wait 205",
	  OUTCOME_OK, "" },
	{ "a stock sender is counted", "run; join 1; data 0 17.1 0-10/0; ends", OUTCOME_OK, "" },
	{ "a stock sender of which one is missing", "run; join 1; data 0 17.1 0-9/0; ends", OUTCOME_FAILED,
	  SENDER "1 of 10 datagrams did not arrive: " SILENCE STOCK_HINT },
	{ "during the run only gaps in the sequence are losses",
	  "run; join 1; data 0 17.1 0-3/10; next_interval; data 0 17.1 5-7/10; data 0 17.1 2-3/10; data 0 17.1 4-5/10; "
	  "reports \"received\":6,\"lost\":1,\"duplicated\":1,\"out_of_order\":1,\"damaged\":0,; reports_interval "
	  "\"received\":3,\"lost\":1,\"duplicated\":1,\"out_of_order\":1,\"damaged\":0,; wait 5001; reports "
	  "\"received\":6,\"lost\":4,\"duplicated\":1,\"out_of_order\":1,\"damaged\":0,",
	  OUTCOME_FAILED, SENDER "4 of 10 datagrams did not arrive: " SILENCE },
	/* Datagrams within less than a millisecond may have been queued: their time is the receiver's own. */
	{ "a rate needs time",
	  "run -C 6; join 1; data 0 17.1 0-5/6; reports \"rate_per_second\":null,\"bytes_per_second\":null; pass 1000; "
	  "data 0 17.1 5-6/6; reports \"rate_per_second\":5.000,\"bytes_per_second\":500.000; ends",
	  OUTCOME_OK, "" },
	{ "interrupted before the first datagram: nothing is verified",
	  "run; join 1; interrupt; verdict 0 of 10 datagrams received (", OUTCOME_FAILED,
	  "mckey: 239.1.1.1: 10 of 10 datagrams not received: interrupted\n" NO_SENDER_HINT },
	{ "the first member that fails ends the run, and is the only one that fails",
	  "run -c 3; address_of 0; joined 0; address_of 1; fails 1 4; fails 2 4; reports "
	  "\"connections\":{\"asked\":3,\"joined\":1,\"failed\":1}",
	  OUTCOME_NO_CONNECTION, "" },
};

TEST(receivers, set_up, tear_down)
{
	play_runs(receiver_runs, LENGTH(receiver_runs), set_up, tear_down);
}

TEST(too_many_senders_end_the_run, set_up, tear_down)
{
	play("run -C 1; join 1");
	for (uint32_t queue = 1; queue <= SENDERS_MAX + 1; queue++) {
		play("running");
		receive(0, 0, &(struct datagram){ .queue = queue, .host = 1, .length = SIZE, .total = 1 });
	}
	assert_ended(OUTCOME_FAILED, "mckey: 239.1.1.1: more than 1024 senders\n");
}

/* 1,024 receives, limited by the device, and by half of the lockable memory. */
TEST(number_of_receives, set_up, tear_down)
{
	static const struct {
		const char *run;
		uint32_t device, depth;
		rlim_t locked; /* KiB */
	} rows[] = { { "run -C 100000; join 1", 16, 16, 6144 },
		     { "run -C 100000; join 1", 5, 5, 6144 },
		     { "run -C 100000 -c 2; join 2", 5000, 16, 8 },
		     { "run -C 100000; join 1", 5000, 16, 34 } };
	struct rlimit kept;

	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &kept), 0);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rlimit few = { .rlim_cur = rows[i].locked << 10, .rlim_max = kept.rlim_max };

		/* An ordinary user's limit may be low: then those rows are left out. */
		if (setrlimit(RLIMIT_MEMLOCK, &few))
			continue;
		fake.domain.max_qp_wr = rows[i].device;
		play(rows[i].run);
		assert_int_equal(of(connection(0))->receive_count, rows[i].depth);
		assert_int_equal(connection(0)->options.receive_depth, rows[i].depth);
		play("interrupt");
		assert_ended(OUTCOME_FAILED, "datagrams not received: interrupted");
		assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &kept), 0);
		tear_down(state);
		set_up(state);
	}
	capture_end(&fake.errors);
}

/* ---- the sender ---- */

static uint64_t posted(void)
{
	return run_of()->members[0].posted;
}

/* That many sends fit into the queue. */
WORD(slots)
{
	fake.domain.max_qp_wr = number;
}

WORD(sent)
{
	complete(connection(number), WORK_SEND, 0, 0);
}

WORD(posted)
{
	assert_int_equal(posted(), number);
	assert_int_equal(of(connection(0))->sends[0].immediate, connection(0)->qpn);
}

WORD(port_is_down)
{
	fake.cause = "; the port is down";
}

static const struct script sender_runs[] = {
	{ "the run ends with the last completion of each member",
	  "slots 4; run -s -c 2 -C 6; join 2; idle 0; wait 101; posted 4; sent 0; sent 1; sent 0; sent 0; sent 0; sent "
	  "0; sent 0; sent 1; sent 1; sent 1; sent 1; running; sent 1",
	  OUTCOME_OK, "" },
	{ "the device completes nothing for --timeout; one that is slow is not ended",
	  "slots 4; run -s -C 3; join 1; wait 101; wait 350; running; sent 0; wait 350; running; sent 0; wait 390; "
	  "running; port_is_down; wait 20",
	  OUTCOME_FAILED,
	  "mckey: 239.1.1.1: sending: timed out after 0.4 s: the device completed nothing; the port is down\n" },
	{ "a sender that waits for its pace has not stalled",
	  "slots 64; run -s -C 3 --rate 1; join 1; wait 101; posted 1; sent 0; wait 1002; posted 2; sent 0; wait 1002; "
	  "posted 3; sent 0; ends",
	  OUTCOME_OK, "" },
};

TEST(senders, set_up, tear_down)
{
	play_runs(sender_runs, LENGTH(sender_runs), set_up, tear_down);
}

/* A late sender sends at once the datagrams due in the last ten milliseconds. */
TEST(late_sender_catches_up_within_limits, set_up, tear_down)
{
	play("slots 64; run -s -C 100000 --rate 1000; join 1; wait 101");
	assert_in_range(posted(), 1, 2);
	for (int i = 0; i < 3; i++) {
		uint64_t before = posted();

		while (run_of()->members[0].sent < posted())
			play("sent 0");
		fake_clock_pass(CLOCK_NS_PER_S);
		run_for(1);
		assert_in_range(posted() - before, 11, 13);
	}
	play("interrupt");
	assert_ended(OUTCOME_FAILED, "datagrams not sent: interrupted");
}
