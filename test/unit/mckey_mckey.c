/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=confinement_enter */
/* Runs of mckey: a receiver with the datagrams that our sender, a stock, a broken or a hostile one could send, and a
 * sender whose device completes sends, or none.
 */
#include "unit.h"

#include <sys/resource.h>

#include "cmd/mckey/mckey.h"
#include "cmd/run.h"

#define FAKE_FIELDS struct mckey_options options;

#include "test/unit/fake_transport.h"
#include "test/unit/pattern.h"

#define MS CLOCK_NS_PER_MS

enum {
	SIZE = 100,
	MTU = 1024,
	IDLE_MS = 20,
};

static int set_up(void **state)
{
	fake_create(&mckey_command, 0);
	fake.domain.max_qp_wr = RECEIVES_MAX;
	fake.domain.multicast = true;
	fake.domain.fabric = FABRIC_ROCE;
	fake.options = (struct mckey_options){
		.common = { .timeout = 400 * MS, .path = PATH_OPEN },
		.group = "239.1.1.1",
		.port_space = PORT_SPACE_UDP,
		.connections = 1,
		.size = SIZE,
		.idle_timeout = IDLE_MS * MS,
	};
	return 0;
}

static void another_run(void)
{
	tear_down(NULL);
	set_up(NULL);
}

static struct mckey_run *run_of(void)
{
	return fake.state;
}

static struct endpoint *member(size_t number)
{
	return &fake.endpoints[number]->base;
}

static void address_resolved(size_t number)
{
	struct endpoint *endpoint = member(number);

	endpoint->domain = &fake.domain;
	endpoint->max_datagram = MTU;
	endpoint_reached(endpoint, EVENT_ADDRESS_RESOLVED);
}

static void joined(size_t number)
{
	const struct group_address group = { .gid = { 0xff, 0x0e }, .qkey = 1 };

	endpoint_report(member(number), &(struct endpoint_event){ .kind = EVENT_JOINED, .group = &group });
}

/* A run whose members have joined. */
static void begin(int64_t members, int64_t count)
{
	fake.options.connections = members;
	fake.options.count = count;
	start();
	for (int64_t i = 0; i < members; i++)
		address_resolved((size_t)i);
	for (int64_t i = 0; i < members; i++)
		joined((size_t)i);
}

/* The run ends by itself, with that text on standard error. */
static void assert_ends(enum outcome outcome, const char *text)
{
	run_for(1000 * CLOCK_NS_PER_S);
	assert_true(fake.environment.ended);
	assert_ended(outcome, text);
	assert_string_equal(fake.errors.text, text);
}

struct datagram {
	size_t member;
	uint32_t queue;
	uint8_t host; /* 10.0.0.HOST */
	uint32_t length;
	uint32_t sequence;
	uint32_t total; /* 0: without a mark */
	size_t damage;	/* the byte of the datagram that is changed, 0 for none */
	bool foreign;	/* without the immediate that every mckey sends */
};

static void receive(const struct datagram *datagram)
{
	struct endpoint *endpoint = member(datagram->member);
	size_t receives = of(endpoint)->receive_count;
	struct work work = next_receive(endpoint);
	uint8_t *memory = work.region->memory + work.offset;
	uint32_t length = datagram->length ? datagram->length : SIZE;
	const struct datagram_mark mark = { .sequence = datagram->sequence, .total = datagram->total };
	const struct completion completion = {
		.kind = WORK_RECEIVE,
		.tag = work.tag,
		.length = length,
		.has_immediate = !datagram->foreign,
		.immediate = datagram->queue,
		.source_qpn = datagram->queue,
	};

	assert_int_equal(work.length, DATAGRAM_HEADER_SIZE + MTU);
	memset(memory, 0, work.length);
	memory[20] = 0x45;
	memory[32] = 10;
	memory[35] = datagram->host;
	if (datagram->total)
		datagram_write(memory + DATAGRAM_HEADER_SIZE, length, pattern(), datagram->queue, &mark);
	if (datagram->damage)
		memory[DATAGRAM_HEADER_SIZE + datagram->damage] ^= 1;
	endpoint_complete(endpoint, &completion, NULL, 0, NULL);
	/* Whatever it was, its receive is used up and must be replaced. */
	assert_true(of(endpoint)->receive_count == receives || fake.environment.ended);
}

static void receive_all(size_t number, uint32_t queue, uint8_t host, uint32_t from, uint32_t to, uint32_t total)
{
	for (uint32_t i = from; i < to; i++)
		receive(&(struct datagram){
			.member = number, .queue = queue, .host = host, .sequence = i, .total = total });
}

TEST(every_member_expects_every_sender, set_up, tear_down)
{
	begin(2, 3);
	receive_all(0, 17, 1, 0, 3, 3);
	receive_all(1, 17, 1, 0, 3, 3);
	/* The same QP number on another host is another sender, and one of our QPs misses it. */
	receive_all(0, 17, 2, 0, 3, 3);
	assert_ends(OUTCOME_FAILED, "mckey: QP 17 at 10.0.0.2: 3 of 6 datagrams did not arrive: no datagram for 0.02 s "
				    "(--idle-timeout)\n");
}

/* Datagrams that arrive before the last member has joined: their run ends, too. */
TEST(datagrams_before_the_last_join, set_up, tear_down)
{
	fake.options.connections = 2;
	fake.options.count = 1;
	start();
	address_resolved(0);
	joined(0);
	receive_all(0, 17, 1, 0, 1, 1);
	run_for(10 * IDLE_MS * MS);
	assert_false(fake.environment.ended);
	address_resolved(1);
	joined(1);
	assert_ends(OUTCOME_FAILED, "mckey: QP 17 at 10.0.0.1: 1 of 2 datagrams did not arrive: no datagram for 0.02 s "
				    "(--idle-timeout)\n");
}

TEST(loss_ends_by_idle_timeout, set_up, tear_down)
{
	begin(1, 10);
	run_for(100 * IDLE_MS * MS);
	assert_false(fake.environment.ended); /* waits for the first datagram */
	receive_all(0, 17, 1, 0, 9, 10);
	assert_ends(OUTCOME_FAILED,
		    "mckey: QP 17 at 10.0.0.1: 1 of 10 datagrams did not arrive: no datagram for 0.02 s "
		    "(--idle-timeout)\n");
}

/* A stock sender that sends more than -C must not hide that another has stopped. */
TEST(datagrams_beyond_count_do_not_restart_idle_timeout, set_up, tear_down)
{
	begin(1, 4);
	receive_all(0, 17, 1, 0, 3, 4);
	receive_all(0, 18, 1, 0, 4, 0);
	for (int passed = 0; passed < IDLE_MS - 1; passed++) {
		run_for(MS);
		receive_all(0, 18, 1, 0, 1, 0);
	}
	assert_false(fake.environment.ended);
	run_for(2 * MS);
	assert_true(fake.environment.ended);
	assert_ended(OUTCOME_FAILED, "1 of 4 datagrams did not arrive: no datagram for 0.02 s (--idle-timeout)");
}

TEST(damage_is_logged_once_and_fails, set_up, tear_down)
{
	begin(1, 4);
	receive_all(0, 17, 1, 0, 1, 4);
	receive(&(struct datagram){ .queue = 17, .host = 1, .sequence = 1, .total = 4, .damage = 50 });
	receive(&(struct datagram){ .queue = 17, .host = 1, .sequence = 2, .total = 4, .damage = 60 });
	receive(&(struct datagram){ .queue = 17, .host = 1, .sequence = 3, .total = 4, .damage = 9 });
	run_for(CLOCK_NS_PER_S);
	assert_ended(OUTCOME_FAILED, "a datagram is damaged: byte 50 is 0x");
	assert_null(strstr(fake.errors.text, "byte 60"));
	assert_non_null(strstr(fake.errors.text, "3 damaged datagrams\n"));
	assert_null(strstr(fake.errors.text, "did not arrive"));
}

/* A sender with another -C or -S ends the run at once. */
TEST(another_size_or_count_ends_the_run, set_up, tear_down)
{
	static const struct {
		uint32_t length, total;
		const char *text;
	} rows[] = {
		{ 99, 10, "sends datagrams of 99 bytes: expected 100 (-S)" },
		{ 101, 10, "sends datagrams of 101 bytes: expected 100 (-S)" },
		{ MTU, 0, "sends datagrams of 1024 bytes: expected 100 (-S)" },
		{ 1, 0, "sends datagrams of 1 byte: expected 100 (-S)" },
		{ SIZE, 9, "sends 9 datagrams: expected 10 (-C)" },
		{ SIZE, 11, "sends 11 datagrams: expected 10 (-C)" },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		char text[128];

		if (i)
			another_run();
		begin(1, 10);
		receive(&(struct datagram){ .queue = 17, .host = 1, .length = rows[i].length, .total = rows[i].total });
		assert_true(fake.environment.ended);
		snprintf(text, sizeof(text), "mckey: QP 17 at 10.0.0.1: %s\n", rows[i].text);
		assert_ends(OUTCOME_FAILED, text);
	}
}

TEST(foreign_datagrams_are_ignored, set_up, tear_down)
{
	begin(1, 2);
	receive(&(struct datagram){ .queue = 99, .host = 9, .foreign = true });
	receive(&(struct datagram){ .queue = 99, .host = 9, .length = MTU, .foreign = true });
	/* A length that no receive of ours has. */
	endpoint_complete(member(0),
			  &(struct completion){ .kind = WORK_RECEIVE,
						.tag = next_receive(member(0)).tag,
						.length = UINT32_MAX - 39,
						.has_immediate = true,
						.immediate = 99,
						.source_qpn = 99 },
			  NULL, 0, NULL);
	assert_int_equal(run_of()->senders.count, 0);
	receive_all(0, 17, 1, 0, 2, 2);
	assert_reports("\"foreign\":3");
	assert_ends(OUTCOME_OK, "");
}

TEST(too_many_senders_end_the_run, set_up, tear_down)
{
	begin(1, 1);
	for (uint32_t queue = 1; queue <= SENDERS_MAX; queue++)
		receive_all(0, queue, 1, 0, 1, 1);
	assert_false(fake.environment.ended);
	receive_all(0, SENDERS_MAX + 1, 1, 0, 1, 1);
	assert_ends(OUTCOME_FAILED, "mckey: 239.1.1.1: more than 1024 senders\n");
}

/* The QPs of a stock sender send one after another: the receiver waits 200 ms for the second. */
TEST(grace_time_for_a_second_sender, set_up, tear_down)
{
	fake.options.idle_timeout = 60 * CLOCK_NS_PER_S;
	begin(1, 2);
	receive_all(0, 17, 1, 0, 2, 2);
	run_for(195 * MS);
	assert_false(fake.environment.ended);
	receive_all(0, 18, 1, 0, 1, 2);
	run_for(10 * CLOCK_NS_PER_S);
	assert_false(fake.environment.ended);
	receive_all(0, 18, 1, 1, 2, 2);
	run_for(205 * MS);
	assert_true(fake.environment.ended);
	assert_ends(OUTCOME_OK, "");
}

TEST(stock_sender_is_counted, set_up, tear_down)
{
	begin(1, 10);
	receive_all(0, 17, 1, 0, 10, 0);
	assert_ends(OUTCOME_OK, "");
	another_run();
	begin(1, 10);
	receive_all(0, 17, 1, 0, 9, 0);
	assert_ends(OUTCOME_FAILED,
		    "mckey: QP 17 at 10.0.0.1: 1 of 10 datagrams did not arrive: no datagram for 0.02 s "
		    "(--idle-timeout)\n"
		    "mckey: hint: a stock mckey -s on soft-RoCE sends only a part: run there rdmatest mckey -s\n");
}

/* Of 1,024 receives no more than the device supports, and half of the memory that may be locked. */
TEST(number_of_receives, set_up, tear_down)
{
	static const struct {
		int64_t members;
		uint32_t device, depth;
		rlim_t locked; /* KiB */
	} rows[] = { { 1, 16, 16, 6144 }, { 1, 5, 5, 6144 }, { 2, 5000, 16, 8 }, { 1, 5000, 16, 34 } };
	struct rlimit kept;

	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &kept), 0);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rlimit few = { .rlim_cur = rows[i].locked << 10, .rlim_max = kept.rlim_max };

		if (i)
			another_run();
		fake.domain.max_qp_wr = rows[i].device;
		/* An ordinary user may have no more than little: then those rows are left out. */
		if (!setrlimit(RLIMIT_MEMLOCK, &few)) {
			begin(rows[i].members, 100000);
			assert_int_equal(of(member(0))->receive_count, rows[i].depth);
			assert_int_equal(member(0)->options.receive_depth, rows[i].depth);
			mckey_command.interrupt(fake.state, INTERRUPTION_SIGNAL);
			assert_ended(OUTCOME_FAILED, "no datagram received: interrupted");
		} else {
			capture_end(&fake.errors);
		}
		assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &kept), 0);
	}
}

/* During the run only gaps in the sequence are losses. */
TEST(figures_of_a_receiver, set_up, tear_down)
{
	begin(1, 10);
	receive_all(0, 17, 1, 0, 3, 10);
	next_interval();
	receive_all(0, 17, 1, 5, 7, 10);
	receive_all(0, 17, 1, 2, 3, 10);
	receive_all(0, 17, 1, 4, 5, 10);
	assert_reports("\"received\":6,\"lost\":1,\"duplicated\":1,\"out_of_order\":1,\"damaged\":0,");
	assert_reports_interval("\"received\":3,\"lost\":1,\"duplicated\":1,\"out_of_order\":1,\"damaged\":0,");
	run_for(IDLE_MS * MS + MS);
	assert_reports("\"received\":6,\"lost\":4,\"duplicated\":1,\"out_of_order\":1,\"damaged\":0,");
	assert_ended(OUTCOME_FAILED, "4 of 10 datagrams did not arrive");
}

/* Datagrams of less than a millisecond may have been queued: their time is the receiver's own. */
TEST(rate_needs_time, set_up, tear_down)
{
	begin(1, 6);
	receive_all(0, 17, 1, 0, 5, 6);
	assert_reports("\"rate_per_second\":null,\"bytes_per_second\":null");
	fake_clock_pass(CLOCK_NS_PER_S);
	receive_all(0, 17, 1, 5, 6, 6);
	assert_reports("\"rate_per_second\":5.000,\"bytes_per_second\":500.000");
	assert_ends(OUTCOME_OK, "");
}

/* The first member that fails ends the run, and is the only one that fails. */
TEST(a_failed_member_ends_the_run, set_up, tear_down)
{
	fake.options.connections = 3;
	fake.options.count = 10;
	start();
	address_resolved(0);
	joined(0);
	address_resolved(1);
	endpoint_fail(member(1), OUTCOME_NO_CONNECTION);
	endpoint_fail(member(2), OUTCOME_NO_CONNECTION);
	assert_true(fake.environment.ended);
	assert_reports("\"connections\":{\"asked\":3,\"joined\":1,\"failed\":1}");
	assert_ends(OUTCOME_NO_CONNECTION, "");
}

/* ---- the sender ---- */

static void begin_sending(int64_t members, int64_t count)
{
	fake.options.sender = true;
	fake.domain.max_qp_wr = fake.options.rate ? 64 : 4;
	begin(members, count);
	assert_int_equal(of(member(0))->send_count, 0);
	run_for(101 * MS);
	assert_int_equal(of(member(0))->sends[0].immediate, member(0)->qpn);
}

static uint64_t posted(void)
{
	return run_of()->members[0].posted;
}

static void sent(size_t number)
{
	complete(member(number), WORK_SEND, 0, 0);
}

TEST(sender_ends_with_the_last_completion, set_up, tear_down)
{
	begin_sending(2, 6);
	for (int i = 0; i < 12; i++) {
		assert_false(fake.environment.ended);
		assert_true(posted() <= run_of()->members[0].sent + 4);
		sent((size_t)i % 2);
	}
	assert_true(fake.environment.ended);
	assert_ends(OUTCOME_OK, "");
}

/* A device that completes no send for --timeout; one that is slow is not ended. */
TEST(sender_whose_device_stalls, set_up, tear_down)
{
	fake.cause = "; the port is down";
	begin_sending(1, 6);
	for (int i = 0; i < 5; i++) {
		run_for(350 * MS);
		assert_false(fake.environment.ended);
		sent(0);
	}
	run_for(390 * MS);
	assert_false(fake.environment.ended);
	run_for(20 * MS);
	assert_true(fake.environment.ended);
	assert_ends(OUTCOME_FAILED,
		    "mckey: 239.1.1.1: sending: timed out after 0.4 s: the device completed nothing; the port is down\n"
		    "mckey: 239.1.1.1: 1 of 6 datagrams were not sent\n");
}

/* A late sender sends at once what was due in the last ten milliseconds. One that waits for its pace has not stalled.
 */
TEST(late_sender_catches_up_within_limits, set_up, tear_down)
{
	fake.options.rate = 1000;
	begin_sending(1, 100000);
	assert_in_range(posted(), 1, 2);
	for (int i = 0; i < 3; i++) {
		uint64_t before = posted();

		while (run_of()->members[0].sent < posted())
			sent(0);
		fake_clock_pass(CLOCK_NS_PER_S);
		run_for(1);
		assert_in_range(posted() - before, 11, 13);
	}
	mckey_command.interrupt(fake.state, INTERRUPTION_SIGNAL);
	assert_ended(OUTCOME_FAILED, "datagrams were not sent: interrupted");
}

TEST(slow_pace_is_no_stall, set_up, tear_down)
{
	fake.options.rate = 1;
	begin_sending(1, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(posted(), i + 1);
		sent(0);
		run_for(CLOCK_NS_PER_S + 2 * MS);
	}
	assert_ends(OUTCOME_OK, "");
}
