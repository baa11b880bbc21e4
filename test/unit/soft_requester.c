/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/qp.wrap */
/* The requester of a connected queue pair: checks of responses, retries, READ requests, AckReq. */
#include "test/network/qp.h"

static unsigned transmissions; /* transmissions of the packet with PSN watched_psn */
static uint32_t watched_psn;
static int64_t sent_at[4]; /* times of the first ones */

/* Drops the packets of host 0: the test injects the responses. */
static bool count_transmissions(struct network *where, const struct host *from, struct packet *packet)
{
	if (from != &testbed.hosts[0])
		return true;
	if (packet->psn != watched_psn)
		return false;
	if (transmissions < LENGTH(sent_at))
		sent_at[transmissions] = where->now;
	transmissions++;
	return false;
}

static struct reported last;
static unsigned completions;

static void requester_completed(void *context, struct host *host, const struct reported *reported)
{
	if (host != &testbed.hosts[0])
		return;
	last = *reported;
	completions++;
}

static void requester_open(void)
{
	bench_open(4);
	testbed.tap = count_transmissions;
	testbed.completed = requester_completed;
	transmissions = completions = 0;
	watched_psn = bench.psn;
}

/* A READ response with a byte less or more than requested is dropped. */
TEST(read_response_length_is_checked, NULL, bench_close)
{
	static const uint32_t lengths[] = { 1, 100, 1023, 1024, 1025, 2048, 2500 };
	const uint8_t good = syndrome_make(SYNDROME_ACK, CREDITS_UNLIMITED);

	for (size_t row = 0; row < LENGTH(lengths); row++) {
		uint32_t packets = (lengths[row] + 1023) / 1024, rest = lengths[row] - (packets - 1) * 1024;
		uint8_t final = packets > 1 ? OPCODE_READ_RESPONSE_LAST : OPCODE_READ_RESPONSE_ONLY;

		requester_open();
		memset(bench.local->memory, 9, 4096);
		bench_post(WORK_READ, lengths[row]);
		if (packets > 1) {
			bench_respond(OPCODE_READ_RESPONSE_FIRST, 100, good, 1023);
			bench_respond(OPCODE_READ_RESPONSE_FIRST, 100, good, 0);
			assert_int_equal(bench.local->memory[0], 9);
		}
		for (uint32_t index = 0; index + 1 < packets; index++)
			bench_respond(index ? OPCODE_READ_RESPONSE_MIDDLE : OPCODE_READ_RESPONSE_FIRST, 100 + index,
				      good, 1024);
		bench_respond(final, 99 + packets, good, rest - 1);
		if (rest < 1024)
			bench_respond(final, 99 + packets, good, rest + 1);
		assert_int_equal(bench.local->memory[(packets - 1) * 1024], 9);
		assert_int_equal(completions, 0);
		bench_respond(final, 99 + packets, good, rest);
		assert_int_equal(completions, 1);
		assert_int_equal(last.completion.status, COMPLETION_OK);
		assert_int_equal(last.completion.tag, 77);
		assert_int_equal(bench.local->memory[lengths[row] - 1], 0);
		assert_int_equal(bench.local->memory[lengths[row]], 9);
	}
}

static unsigned solicited, packets;

static bool count_solicited(struct network *where, const struct host *from, struct packet *packet)
{
	packets += from == &testbed.hosts[0];
	solicited += from == &testbed.hosts[0] && packet->solicited;
	if (packet->solicited)
		assert_true(opcode_form(packet->opcode) & FORM_LAST);
	return false;
}

/* The last packet of a SEND has the solicited event bit. */
TEST(sends_are_solicited, NULL, bench_close)
{
	static const struct {
		enum work_kind kind;
		uint32_t length, packets, solicited;
	} rows[] = {
		{ WORK_SEND, 0, 1, 1 }, { WORK_SEND, 3000, 3, 1 }, { WORK_WRITE, 3000, 3, 0 }, { WORK_READ, 3000, 1, 0 }
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {
		requester_open();
		testbed.tap = count_solicited;
		solicited = packets = 0;
		bench_post(rows[row].kind, rows[row].length);
		assert_int_equal(packets, rows[row].packets);
		assert_int_equal(solicited, rows[row].solicited);
	}
}

/* An ACK with the PSN of a READ completes nothing. */
TEST(ack_does_not_complete_read, NULL, bench_close)
{
	requester_open();
	bench_post(WORK_READ, 100);
	bench_respond(OPCODE_ACKNOWLEDGE, 100, syndrome_make(SYNDROME_ACK, CREDITS_UNLIMITED), 0);
	assert_int_equal(completions, 0);
	bench_respond(OPCODE_READ_RESPONSE_ONLY, 100, syndrome_make(SYNDROME_ACK, CREDITS_UNLIMITED), 100);
	assert_int_equal(completions, 1);
}

/* An ACK acknowledges its PSN and all earlier ones. */
TEST(ack_covers_its_psn_and_earlier, NULL, bench_close)
{
	const uint8_t good = syndrome_make(SYNDROME_ACK, CREDITS_UNLIMITED);

	requester_open();
	bench_post(WORK_SEND, 3000); /* 100 to 102 */
	bench_post(WORK_SEND, 1);    /* 103 */
	bench_post(WORK_WRITE, 1);   /* 104 */
	bench_post(WORK_SEND, 1);    /* 105 */
	bench_respond(OPCODE_ACKNOWLEDGE, 99, good, 0);
	bench_respond(OPCODE_ACKNOWLEDGE, 101, good, 0);
	assert_int_equal(completions, 0);
	bench_respond(OPCODE_ACKNOWLEDGE, 102, good, 0);
	assert_int_equal(completions, 1);
	bench_respond(OPCODE_ACKNOWLEDGE, 104, good, 0);
	assert_int_equal(completions, 3);
	assert_int_equal(last.completion.kind, WORK_WRITE);
	/* PSN 106 was not sent. */
	bench_respond(OPCODE_ACKNOWLEDGE, 106, good, 0);
	assert_int_equal(completions, 3);
	bench_respond(OPCODE_ACKNOWLEDGE, 105, good, 0);
	assert_int_equal(completions, 4);
}

/* Unsignalled work completes without a report when a later ACK arrives. */
TEST(unsignalled_work_is_not_reported, NULL, bench_close)
{
	struct work works[] = { { .kind = WORK_SEND, .tag = 1, .unsignalled = true },
				{ .kind = WORK_WRITE, .tag = 2 },
				{ .kind = WORK_SEND, .tag = 3, .unsignalled = true } };

	requester_open();
	for (size_t index = 0; index < LENGTH(works); index++)
		works[index].region = bench.region;
	assert_int_equal(soft_qp_post(qp_of(&bench.pair, 0), works, LENGTH(works)), OUTCOME_OK);
	network_run(10 * CLOCK_NS_PER_US);
	bench_respond(OPCODE_ACKNOWLEDGE, 102, syndrome_make(SYNDROME_ACK, CREDITS_UNLIMITED), 0);
	assert_int_equal(completions, 1);
	assert_int_equal(last.completion.tag, 2);
	assert_int_equal(qp_of(&bench.pair, 0)->requester.ring.count, 0);
}

/* rnr_retry_limit excludes the first transmission. 7 means infinite. */
TEST(rnr_retries_are_counted, NULL, bench_close)
{
	for (unsigned count = 0; count <= 7; count++) {
		requester_open();
		qp_of(&bench.pair, 0)->rnr_retry_limit = (uint8_t)count;
		bench_post(WORK_SEND, 100);
		for (unsigned round = 0; round < 30 && !completions; round++) {
			assert_int_equal(transmissions, round + 1);
			/* timer code 1: 10 us */
			bench_respond(OPCODE_ACKNOWLEDGE, 100, syndrome_make(SYNDROME_RNR, 1), 0);
			network_run(10 * CLOCK_NS_PER_MS);
		}
		assert_int_equal(completions, count < 7);
		assert_int_equal(transmissions, count < 7 ? count + 1 : 31);
		if (count < 7) {
			assert_int_equal(last.completion.status, COMPLETION_RNR_EXCEEDED);
			assert_int_equal(last.completion.kind, WORK_SEND);
		}
	}
}

/* The RNR NAK carries the delay as a timer code of IBTA's table. */
TEST(rnr_delay_is_taken_from_nak, NULL, bench_close)
{
	static const struct {
		uint8_t code;
		int64_t microseconds;
	} rows[] = { { 1, 10 }, { 6, 80 }, { 14, 1280 }, { 20, 10240 }, { 31, 491520 }, { 0, 655360 } };

	for (size_t row = 0; row < LENGTH(rows); row++) {
		int64_t nak_at, wait = rows[row].microseconds * CLOCK_NS_PER_US;

		requester_open();
		bench_post(WORK_SEND, 100);
		nak_at = network->now;
		bench_respond(OPCODE_ACKNOWLEDGE, 100, syndrome_make(SYNDROME_RNR, rows[row].code), 0);
		network_run(CLOCK_NS_PER_S);
		assert_true(transmissions >= 2);
		assert_true(sent_at[1] - nak_at > wait - 20 * CLOCK_NS_PER_US);
		assert_true(sent_at[1] - nak_at < wait + 50 * CLOCK_NS_PER_US);
	}
}

/* A duplicate RNR NAK during the delay does not count as a retry. */
TEST(duplicate_rnr_nak_is_ignored, NULL, bench_close)
{
	requester_open();
	qp_of(&bench.pair, 0)->rnr_retry_limit = 1;
	bench_post(WORK_SEND, 100);
	for (unsigned copies = 0; copies < 3; copies++)
		bench_respond(OPCODE_ACKNOWLEDGE, 100, syndrome_make(SYNDROME_RNR, 20), 0);
	assert_int_equal(completions, 0);
	network_run(20 * CLOCK_NS_PER_MS);
	assert_int_equal(transmissions, 2);
	bench_respond(OPCODE_ACKNOWLEDGE, 100, syndrome_make(SYNDROME_RNR, 20), 0);
	assert_int_equal(last.completion.status, COMPLETION_RNR_EXCEEDED);
}

static struct packet saved[64];
static size_t saved_count;

static bool save_packets(struct network *where, const struct host *from, struct packet *packet)
{
	if (from == &testbed.hosts[0] && saved_count < LENGTH(saved))
		saved[saved_count++] = *packet;
	return false;
}

TEST(no_reads_is_set)
{
	for (unsigned reads = 0; reads <= 1; reads++) {
		struct qp_attr attr = { .reads = reads, .no_reads = !reads };
		struct pair pair;

		qp_open(1);
		pair_open(&pair, &attr);
		assert_int_equal(qp_of(&pair, 0)->endpoint->base.no_reads, !reads);
		pair_close(&pair);
		qp_close();
	}
}

/* With few READs allowed, each request is larger, limited by the socket window. At most 16 are outstanding. */
TEST(read_request_sizes)
{
	static const struct {
		unsigned reads; /* the peer's limit */
		size_t window;	/* packets */
		size_t posted, requests;
		uint32_t length, request_length;
	} rows[] = {
		{ 4, 512, 1, 1, 65536, 32 * 1024 },
		{ 16, 512, 1, 4, 65536, 8 * 1024 },
		{ 4, 8, 1, 2, 65536, 8 * 1024 },
		{ 20, 512, 18, 16, 8, 8 },
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct qp_attr attr = { .reads = rows[row].reads, .depth = 20 };
		struct work work = { .kind = WORK_READ, .length = rows[row].length };
		struct region *local;
		struct pair pair;

		qp_open(1);
		testbed.tap = save_packets;
		testbed.window = rows[row].window * 1024;
		saved_count = 0;
		pair_open(&pair, &attr);
		work.region = local = region_of(0, 65536, 0);
		for (size_t index = 0; index < rows[row].posted; index++)
			assert_int_equal(soft_qp_post(qp_of(&pair, 0), &work, 1), OUTCOME_OK);
		hosts_flush();
		assert_int_equal(saved_count, rows[row].requests);
		assert_int_equal(saved[0].remote.length, rows[row].request_length);
		soft_region_destroy(local);
		pair_close(&pair);
		qp_close();
	}
}

/* Four packets of a window have AckReq, and the last one that fits. */
TEST(ack_requests_per_window, NULL, bench_close)
{
	bench_open(4);
	testbed.tap = save_packets;
	saved_count = 0;
	bench_post(WORK_SEND, 65536);
	assert_int_equal(saved_count, 32);
	for (size_t index = 0; index < saved_count; index++)
		assert_int_equal(saved[index].ack_request, index % 8 == 7);
	/* The window is reduced after a loss. */
	saved_count = 0;
	bench_respond(OPCODE_ACKNOWLEDGE, 100, syndrome_make(SYNDROME_NAK, NAK_SEQUENCE), 0);
	assert_int_equal(saved_count, 23);
	for (size_t index = 0; index < saved_count; index++)
		assert_int_equal(saved[index].ack_request, index % 5 == 4 || index == 22);
}

/* No later packet requests an ACK: the retransmission has AckReq. */
TEST(retransmission_requests_ack, NULL, bench_close)
{
	struct work work = { .kind = WORK_SEND, .unsignalled = true };

	bench_open(4);
	testbed.tap = save_packets;
	saved_count = 0;
	work.region = bench.region;
	qp_of(&bench.pair, 0)->requester.last_unsignalled_at = network->now; /* not after an idle period */
	qp_of(&bench.pair, 0)->ack_timeout = 20 * CLOCK_NS_PER_MS;
	assert_int_equal(soft_qp_post(qp_of(&bench.pair, 0), &work, 1), OUTCOME_OK);
	network_run(30 * CLOCK_NS_PER_MS);
	assert_int_equal(saved_count, 2);
	assert_false(saved[0].ack_request);
	assert_true(saved[1].ack_request);
}

/* Each NAK code maps to a completion status. */
TEST(nak_codes_have_status, NULL, bench_close)
{
	static const struct {
		enum nak_code code;
		enum completion_status status;
	} rows[] = { { NAK_INVALID_REQUEST, COMPLETION_REMOTE_REQUEST },
		     { NAK_REMOTE_ACCESS, COMPLETION_REMOTE_ACCESS },
		     { NAK_REMOTE_OPERATION, COMPLETION_REMOTE_OPERATION } };

	for (size_t row = 0; row < LENGTH(rows); row++) {
		requester_open();
		bench_post(WORK_WRITE, 100);
		bench_post(WORK_SEND, 100);
		bench_respond(OPCODE_ACKNOWLEDGE, 101, syndrome_make(SYNDROME_NAK, (uint8_t)rows[row].code), 0);
		/* The first work request succeeded. */
		assert_int_equal(completions, 2);
		assert_int_equal(last.completion.kind, WORK_SEND);
		assert_int_equal(last.completion.status, rows[row].status);
	}
}
