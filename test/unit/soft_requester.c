/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/qp.wrap */
/* The requester of a connected queue pair: checks of responses, retries, READ requests, AckReq, timeouts, the
 * congestion window, and probes of an idle or suspected peer. */
#include "test/network/qp.h"

#include <errno.h>

#include "transport/soft/wire/mad.h"

enum {
	SENT_MAX = 1024,
	FIRST = 100, /* PSN */
};

/* Requests that host 0 sent. They are dropped, and the test injects the responses, or they arrive. */
static struct {
	int64_t at;
	struct packet packet;
} sent[SENT_MAX];
static size_t count;
static bool arrive;

static bool record(struct network *where, const struct host *from, struct packet *packet)
{
	if (from != &testbed.hosts[0] || (opcode_form(packet->opcode) & FORM_RESPONSE))
		return true;
	assert_true(count < SENT_MAX);
	sent[count].at = where->now;
	sent[count++].packet = *packet;
	return arrive;
}

static struct completion last;
static int64_t last_at;
static unsigned completions;

static void requester_completed(void *context, struct host *host, const struct reported *reported)
{
	if (host != &testbed.hosts[0])
		return;
	last = reported->completion;
	last_at = network->now;
	completions++;
}

/* Returns the requester's queue pair. */
static struct soft_qp *requester_open(void)
{
	bench_open(4);
	testbed.tap = record;
	testbed.completed = requester_completed;
	count = completions = 0;
	arrive = false;
	return qp_of(&bench.pair, 0);
}

static void respond(uint32_t psn, enum syndrome_kind kind, unsigned value)
{
	bench_respond(OPCODE_ACKNOWLEDGE, psn, syndrome_make(kind, (uint8_t)value), 0);
}

static void acknowledge(uint32_t psn)
{
	respond(psn, SYNDROME_ACK, CREDITS_UNLIMITED);
}

static void post_sends(unsigned works, uint32_t length)
{
	while (works--)
		bench_post(WORK_SEND, length);
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
		assert_int_equal(last.status, COMPLETION_OK);
		assert_int_equal(last.tag, 77);
		assert_int_equal(bench.local->memory[lengths[row] - 1], 0);
		assert_int_equal(bench.local->memory[lengths[row]], 9);
	}
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
		bench_post(rows[row].kind, rows[row].length);
		assert_int_equal(count, rows[row].packets);
		for (size_t index = 0; index < count; index++)
			assert_int_equal(sent[index].packet.solicited, rows[row].solicited && index == count - 1);
	}
}

/* An ACK with the PSN of a READ completes nothing. */
TEST(ack_does_not_complete_read, NULL, bench_close)
{
	requester_open();
	bench_post(WORK_READ, 100);
	acknowledge(100);
	assert_int_equal(completions, 0);
	bench_respond(OPCODE_READ_RESPONSE_ONLY, 100, syndrome_make(SYNDROME_ACK, CREDITS_UNLIMITED), 100);
	assert_int_equal(completions, 1);
}

/*
 * A READ sent once gets its response twice only if the network duplicates packets. After a resend, earlier packets do
 * not count.
 */
TEST(responses_that_come_twice_are_counted, NULL, bench_close)
{
	const struct network_counter *counts;
	const uint8_t good = syndrome_make(SYNDROME_ACK, CREDITS_UNLIMITED);

	requester_open();
	counts = testbed.hosts[0].transport->counts;
	bench_post(WORK_READ, 100);
	bench_post(WORK_READ, 100);
	bench_respond(OPCODE_READ_RESPONSE_ONLY, 100, good, 100);
	bench_respond(OPCODE_READ_RESPONSE_ONLY, 100, good, 100);
	acknowledge(100);
	assert_int_equal(counts[SOFT_RESPONSES_TWICE].increase, 1);
	bench_respond(OPCODE_READ_RESPONSE_ONLY, 99, good, 100); /* of no request */
	respond(101, SYNDROME_NAK, NAK_SEQUENCE);
	bench_respond(OPCODE_READ_RESPONSE_ONLY, 101, good, 100);
	bench_respond(OPCODE_READ_RESPONSE_ONLY, 101, good, 100);
	assert_int_equal(counts[SOFT_RESPONSES_TWICE].increase, 1);
}

/* After millions of packets without a loss, round trips are measured, and responses that come twice counted. */
TEST(a_clean_run_wraps, NULL, bench_close)
{
	const uint8_t good = syndrome_make(SYNDROME_ACK, CREDITS_UNLIMITED);
	const struct network_counter *counts;
	struct requester *requester = &requester_open()->requester;

	counts = testbed.hosts[0].transport->counts;
	for (unsigned turn = 0; turn < 9; turn++) {
		uint32_t psn = psn_add(FIRST, turn << 21);

		requester->unacked_psn = requester->next_psn = requester->highest_psn = requester->end_psn = psn;
		bench_post(WORK_READ, 100);
		assert_true(requester->rtt_timing);
		bench_respond(OPCODE_READ_RESPONSE_ONLY, psn, good, 100);
		assert_false(requester->rtt_timing);
		bench_respond(OPCODE_READ_RESPONSE_ONLY, psn, good, 100);
		assert_int_equal(counts[SOFT_RESPONSES_TWICE].increase, turn + 1);
	}
}

/* An ACK acknowledges its PSN and all earlier ones. */
TEST(ack_covers_its_psn_and_earlier, NULL, bench_close)
{
	requester_open();
	bench_post(WORK_SEND, 3000); /* 100 to 102 */
	bench_post(WORK_SEND, 1);    /* 103 */
	bench_post(WORK_WRITE, 1);   /* 104 */
	bench_post(WORK_SEND, 1);    /* 105 */
	acknowledge(99);
	acknowledge(101);
	assert_int_equal(completions, 0);
	acknowledge(102);
	assert_int_equal(completions, 1);
	acknowledge(104);
	assert_int_equal(completions, 3);
	assert_int_equal(last.kind, WORK_WRITE);
	/* PSN 106 was not sent. */
	acknowledge(106);
	assert_int_equal(completions, 3);
	acknowledge(105);
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
	acknowledge(102);
	assert_int_equal(completions, 1);
	assert_int_equal(last.tag, 2);
	assert_int_equal(qp_of(&bench.pair, 0)->requester.ring.count, 0);
}

/* rnr_retry_limit excludes the first transmission. 7 means infinite. */
TEST(rnr_retries_are_counted, NULL, bench_close)
{
	for (unsigned limit = 0; limit <= 7; limit++) {
		requester_open()->rnr_retry_limit = (uint8_t)limit;
		bench_post(WORK_SEND, 100);
		for (unsigned round = 0; round < 30 && !completions; round++) {
			assert_int_equal(count, round + 1);
			/* timer code 1: 10 us */
			respond(100, SYNDROME_RNR, 1);
			network_run(10 * CLOCK_NS_PER_MS);
		}
		assert_int_equal(completions, limit < 7);
		assert_int_equal(count, limit < 7 ? limit + 1 : 31);
		assert_int_equal(testbed.hosts[0].transport->counts[SOFT_RNR_NAKS].increase, limit < 7 ? limit : 30);
		if (limit < 7) {
			assert_int_equal(last.status, COMPLETION_RNR_EXCEEDED);
			assert_int_equal(last.kind, WORK_SEND);
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
		respond(100, SYNDROME_RNR, rows[row].code);
		network_run(CLOCK_NS_PER_S);
		assert_true(count >= 2);
		assert_true(sent[1].at - nak_at > wait - 20 * CLOCK_NS_PER_US);
		assert_true(sent[1].at - nak_at < wait + 50 * CLOCK_NS_PER_US);
	}
}

/* A duplicate RNR NAK during the delay does not count as a retry. */
TEST(duplicate_rnr_nak_is_ignored, NULL, bench_close)
{
	requester_open()->rnr_retry_limit = 1;
	bench_post(WORK_SEND, 100);
	for (unsigned copies = 0; copies < 3; copies++)
		respond(100, SYNDROME_RNR, 20);
	assert_int_equal(completions, 0);
	network_run(20 * CLOCK_NS_PER_MS);
	assert_int_equal(count, 2);
	respond(100, SYNDROME_RNR, 20);
	assert_int_equal(last.status, COMPLETION_RNR_EXCEEDED);
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
		testbed.tap = record;
		testbed.window = rows[row].window * 1024;
		count = 0;
		pair_open(&pair, &attr);
		work.region = local = region_of(0, 65536, 0);
		for (size_t index = 0; index < rows[row].posted; index++)
			assert_int_equal(soft_qp_post(qp_of(&pair, 0), &work, 1), OUTCOME_OK);
		hosts_flush();
		assert_int_equal(count, rows[row].requests);
		assert_int_equal(sent[0].packet.remote.length, rows[row].request_length);
		soft_region_destroy(local);
		pair_close(&pair);
		qp_close();
	}
}

/* Four packets of a window have AckReq, and the last one that fits. */
TEST(ack_requests_per_window, NULL, bench_close)
{
	requester_open();
	bench_post(WORK_SEND, 65536);
	assert_int_equal(count, 32);
	for (size_t index = 0; index < count; index++)
		assert_int_equal(sent[index].packet.ack_request, index % 8 == 7);
	/* The window is reduced after a loss. */
	count = 0;
	respond(100, SYNDROME_NAK, NAK_SEQUENCE);
	assert_int_equal(count, 23);
	assert_int_equal(testbed.hosts[0].transport->counts[SOFT_RESENT].increase, 23);
	for (size_t index = 0; index < count; index++)
		assert_int_equal(sent[index].packet.ack_request, index % 5 == 4 || index == 22);
}

/* No later packet requests an ACK: the retransmission has AckReq. */
TEST(retransmission_requests_ack, NULL, bench_close)
{
	struct work work = { .kind = WORK_SEND, .unsignalled = true };

	requester_open();
	work.region = bench.region;
	qp_of(&bench.pair, 0)->requester.last_unsignalled_at = network->now; /* not after an idle period */
	qp_of(&bench.pair, 0)->ack_timeout = 20 * CLOCK_NS_PER_MS;
	assert_int_equal(soft_qp_post(qp_of(&bench.pair, 0), &work, 1), OUTCOME_OK);
	network_run(30 * CLOCK_NS_PER_MS);
	assert_int_equal(count, 2);
	assert_false(sent[0].packet.ack_request);
	assert_true(sent[1].packet.ack_request);
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
		respond(101, SYNDROME_NAK, rows[row].code);
		/* The first work request succeeded. */
		assert_int_equal(completions, 2);
		assert_int_equal(last.kind, WORK_SEND);
		assert_int_equal(last.status, rows[row].status);
	}
}

/* A NAK answers the probe of an idle peer: that peer is not silent. */
TEST(nak_of_a_probe_is_an_answer, NULL, bench_close)
{
	soft_qp_probe(requester_open());
	respond(FIRST, SYNDROME_NAK, NAK_REMOTE_OPERATION);
	assert_int_equal(testbed.hosts[0].failures, 1);
	assert_string_equal(testbed.hosts[0].failure, "the peer refused a keepalive message");
}

/* A reply beyond a READ without its response, which is therefore lost: both requests are resent at once. */
TEST(replies_beyond_a_read_imply_its_loss, NULL, bench_close)
{
	const struct {
		uint8_t opcode, syndrome;
	} replies[] = {
		{ OPCODE_ACKNOWLEDGE, syndrome_make(SYNDROME_ACK, CREDITS_UNLIMITED) },
		{ OPCODE_ACKNOWLEDGE, syndrome_make(SYNDROME_RNR, 20) },
		{ OPCODE_READ_RESPONSE_ONLY, syndrome_make(SYNDROME_ACK, CREDITS_UNLIMITED) },
	};

	for (size_t row = 0; row < LENGTH(replies); row++) {
		bool second_is_read = replies[row].opcode != OPCODE_ACKNOWLEDGE;

		requester_open();
		bench_post(WORK_READ, 8);
		bench_post(second_is_read ? WORK_READ : WORK_SEND, 8);
		bench_respond(replies[row].opcode, FIRST + 1, replies[row].syndrome, second_is_read ? 8 : 0);
		assert_int_equal(completions, 0);
		assert_int_equal(count, 4);
		assert_int_equal(sent[2].packet.psn, FIRST);
		assert_int_equal(testbed.hosts[0].transport->counts[SOFT_IMPLIED_NAKS].increase, 1);
	}
}

/* ---- timeouts, and the congestion window ---- */

/* Microseconds between transmissions. Without an RTT sample the timeout follows from the agreed ACK timeout. After
 * eight of those, with up to four transmissions in each, the work fails. */
TEST(timeouts_without_rtt_sample, NULL, bench_close)
{
	static const struct {
		unsigned ack_timeout;
		int64_t waits[6];
	} rows[] = {
		{ 18, { 128000, 128000, 256000, 268435, 268435, 268435 } },
		{ 14, { 67108, 67108, 67108, 67108, 67108, 67108 } },
		{ 8, { 1048, 1048, 2097, 4194, 8388, 16777 } },
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {
		requester_open()->ack_timeout = mad_timeout(rows[row].ack_timeout);
		post_sends(1, 8);
		network_run(60 * CLOCK_NS_PER_S);
		/* The message, the probe; then that again, the second time with the message. */
		for (size_t index = 0, packet = 0; index < LENGTH(rows[row].waits); index++) {
			assert_int_equal((sent[packet + 1].at - sent[packet].at) / CLOCK_NS_PER_US,
					 rows[row].waits[index]);
			assert_int_equal(sent[++packet].packet.psn, FIRST + 1);
			if (index % 2)
				assert_int_equal(sent[++packet].packet.psn, FIRST);
		}

		assert_int_equal(last.status, COMPLETION_RETRY_EXCEEDED);
		assert_in_range(last_at - sent[0].at, 8 * mad_timeout(rows[row].ack_timeout),
				8 * mad_timeout(rows[row].ack_timeout) + 3 * CLOCK_NS_PER_S);
	}
}

/* A command's own timer posts outside of the transport's callbacks: each post reads the clock again. */
TEST(each_post_reads_the_clock, NULL, bench_close)
{
	struct soft_qp *qp = requester_open();
	struct work work = work_to(WORK_SEND, bench.local, bench.region, 8);
	int64_t deadline;

	soft_qp_batch_end(qp->transport);
	assert_int_equal(soft_qp_post(qp, &work, 1), OUTCOME_OK);
	deadline = qp->requester.deadline;
	network->now += CLOCK_NS_PER_MS;
	assert_int_equal(soft_qp_post(qp, &work, 1), OUTCOME_OK);
	assert_int_equal(qp->requester.deadline - deadline, CLOCK_NS_PER_MS);
}

/* The timeout is srtt + 4 rttvar. */
TEST(timeout_from_rtt, NULL, bench_close)
{
	enum {
		ROUND_TRIP = 10 /* ms */
	};

	requester_open();
	post_sends(1, 8);
	network_run(ROUND_TRIP * CLOCK_NS_PER_MS);
	acknowledge(FIRST);
	post_sends(1, 8);
	count = 0;
	network_run(CLOCK_NS_PER_S);
	assert_int_equal(sent[0].packet.psn, FIRST + 2);
	assert_int_equal((sent[1].at - sent[0].at) / CLOCK_NS_PER_MS, ROUND_TRIP + 4 * ROUND_TRIP / 2);
}

/*
 * A packet resent by a timeout gives no RTT sample. A packet after a NAK does: else a loss in the first window would
 * leave the long timeout for all of it.
 */
TEST(rtt_of_packets_sent_again, NULL, bench_close)
{
	struct soft_qp *qp = requester_open();

	post_sends(1, 8);
	network_run(130 * CLOCK_NS_PER_MS);
	assert_int_equal(count, 2);
	acknowledge(FIRST);
	assert_int_equal(qp->requester.srtt, 0);
	post_sends(3, 8);
	network_run(100 * CLOCK_NS_PER_MS);
	assert_int_equal(count, 6);
	respond(FIRST + 1, SYNDROME_NAK, NAK_SEQUENCE);
	network_run(10 * CLOCK_NS_PER_MS);
	acknowledge(FIRST + 1);
	assert_int_equal(qp->requester.srtt / CLOCK_NS_PER_MS, 10);
}

/* The first timeout sends a probe, the second resends it. */
TEST(rtt_of_a_probe_sent_again, NULL, bench_close)
{
	struct soft_qp *qp = requester_open();

	post_sends(1, 8);
	network_run(CLOCK_NS_PER_S);
	assert_in_range(count, 3, SENT_MAX);
	acknowledge(FIRST + 1);
	assert_int_equal(qp->requester.srtt, 0);
}

/* The last one, and every second time also the oldest. */
TEST(timeouts_send_few_packets, NULL, bench_close)
{
	requester_open();
	post_sends(16, 4096);
	network_run(2 * CLOCK_NS_PER_S);
	assert_in_range(count, 36, SENT_MAX);
	assert_int_equal(testbed.hosts[0].transport->counts[SOFT_RESENT].increase, count - 32);
	assert_int_equal(qp_of(&bench.pair, 0)->requester.cwnd, 1);
	assert_int_equal(qp_of(&bench.pair, 0)->requester.ssthresh, 23); /* further timeouts leave it (RFC 5681, 3.1) */
	for (size_t index = 0; index < count; index++)
		assert_int_equal(sent[index].packet.psn, index < 32		 ? FIRST + index
							 : (index - 32) % 3 == 2 ? FIRST
										 : FIRST + 31);
}

/* The answer may be among unread packets: timeouts send no more packets than are read, and do not count. */
TEST(unread_packets_limit_timeouts, NULL, bench_close)
{
	struct soft_socket *socket;

	requester_open();
	socket = testbed.hosts[0].socket;
	socket->unread = true;
	testbed.hosts[1].dead = true; /* it sends no probe that would be read */
	post_sends(1, 8);
	network_run(CLOCK_NS_PER_S);
	assert_in_range(count, 10, 30);
	count = 0;
	socket->resends = 1000;
	network_run(60 * CLOCK_NS_PER_S);
	assert_int_equal(count, 0);
	assert_int_equal(testbed.hosts[0].reported_count, 0);
	socket->unread = false;
	network_run(CLOCK_NS_PER_S);
	assert_in_range(count, 10, 30);
}

/* A DREQ's acknowledgement covers only sent packets. */
TEST(acknowledgement_of_a_disconnect, NULL, bench_close)
{
	struct soft_qp *qp;

	qp = requester_open();
	post_sends(2, 8);
	soft_qp_acknowledged(qp, FIRST - 1);
	soft_qp_acknowledged(qp, FIRST + 2);
	assert_int_equal(qp->requester.ring.count, 2);
	soft_qp_acknowledged(qp, FIRST);
	assert_int_equal(qp->requester.ring.count, 1);
	soft_qp_acknowledged(qp, FIRST + 1);
	assert_false(soft_qp_has_signalled_work(qp));
	soft_qp_drain(qp);
	soft_qp_acknowledged(qp, FIRST + 1);
}

/* After an RNR NAK eight packets are sent, then one. */
TEST(rnr_nak_reduces_window, NULL, bench_close)
{
	static const size_t windows[] = { 32, 8, 1, 1 };

	requester_open();
	post_sends(16, 4096);
	for (size_t round = 0; round < LENGTH(windows); round++) {
		assert_int_equal(count, windows[round]);
		count = 0;
		respond(FIRST, SYNDROME_RNR, 1);
		network_run(10 * CLOCK_NS_PER_MS);
	}
	/* An ACK ends this limit. */
	count = 0;
	acknowledge(FIRST);
	assert_true(count > 8);
}

/* A window of packets reduces cwnd once, however many of them are lost. */
TEST(window_is_reduced_once_per_loss, NULL, bench_close)
{
	const struct requester *requester;

	requester = &requester_open()->requester;
	post_sends(16, 4096);
	assert_int_equal(requester->cwnd, 32);
	respond(FIRST, SYNDROME_NAK, NAK_SEQUENCE);
	assert_int_equal(requester->cwnd, 23);
	respond(FIRST + 5, SYNDROME_NAK, NAK_SEQUENCE);
	assert_int_equal(requester->cwnd, 23);
	/* All packets of that window are acknowledged: the next loss counts. */
	acknowledge(FIRST + 31);
	respond(FIRST + 33, SYNDROME_NAK, NAK_SEQUENCE);
	assert_int_equal(requester->cwnd, 17);
}

/* PSNs wrap at 24 bits: the window is unchanged, and grows by acknowledged packets if half of it is in use. */
TEST(window_across_the_wrap, NULL, bench_close)
{
	static const struct {
		uint32_t length, packets, acked, cwnd;
	} rows[] = { { 8, 1, 1, 32 }, { 65536, 32, 8, 40 } };

	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct soft_qp *qp = requester_open();

		requester_connect(qp, &(struct soft_agreement){ .sq_psn = PSN_MASK });
		bench_post(WORK_SEND, rows[row].length);
		assert_int_equal(count, rows[row].packets);
		acknowledge(psn_add(PSN_MASK, rows[row].acked - 1));
		assert_int_equal(qp->requester.cwnd, rows[row].cwnd);
	}
}

/* Repeated NAKs for the same PSN would cause endless retransmission. */
TEST(repeated_naks_are_limited, NULL, bench_close)
{
	requester_open();
	post_sends(1, 8);
	acknowledge(FIRST); /* RTT about 0.1 ms */
	count = 0;
	post_sends(1, 8);
	for (unsigned times = 0; times < 18; times++)
		respond(FIRST + 1, SYNDROME_NAK, NAK_SEQUENCE);
	assert_int_equal(count, 7);
}

/* ---- pending work, probes ---- */

/* Only signalled work requests count as unacknowledged work. Probes do not. */
TEST(unacked_work_is_signalled_work, NULL, bench_close)
{
	static const struct {
		enum work_kind kind;
		bool unsignalled, waits;
	} rows[] = { { WORK_SEND, true, false }, { WORK_SEND, false, true }, { WORK_READ, false, true } };

	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct soft_qp *qp;
		struct work work;

		qp = requester_open();
		soft_qp_probe(qp);
		assert_false(soft_qp_has_signalled_work(qp));
		work = work_to(rows[row].kind, bench.region, bench.region, 8);
		work.unsignalled = rows[row].unsignalled;
		assert_int_equal(soft_qp_post(qp, &work, 1), OUTCOME_OK);
		work.unsignalled = true;
		assert_int_equal(soft_qp_post(qp, &work, 1), OUTCOME_OK);
		assert_int_equal(soft_qp_has_signalled_work(qp), rows[row].waits);
		soft_qp_drain(qp);
		assert_false(soft_qp_has_signalled_work(qp));
	}
}

/* Work requests after one without room are not posted. */
TEST(post_stops_at_rejected_work, NULL, bench_close)
{
	struct work works[3];

	requester_open();
	arrive = true;
	for (size_t index = 0; index < LENGTH(works); index++)
		works[index] = (struct work){ .kind = WORK_WRITE, .region = bench.region };
	qp_of(&bench.pair, 0)->requester.ring.capacity = 2; /* one is for the probe */
	assert_int_equal(soft_qp_post(qp_of(&bench.pair, 0), works, LENGTH(works)), OUTCOME_INTERNAL);
	assert_string_equal(qp_of(&bench.pair, 0)->transport->base.error.phase, "posting a RDMA WRITE");
	assert_int_equal(qp_of(&bench.pair, 0)->requester.ring.count, 1);
	bench_run();
	assert_int_equal(count, 1);
}

/* A timeout's probe takes no room from posted work, nor does a second one. */
TEST(probe_has_room_of_its_own, NULL, bench_close)
{
	struct requester *requester = &requester_open()->requester;

	requester->ring.capacity = 3;
	post_sends(1, 8);
	network_run(600 * CLOCK_NS_PER_MS);
	assert_int_equal(requester->ring.count, 2);
	post_sends(1, 8);
	assert_int_equal(requester->ring.count, 3);
	acknowledge(FIRST + 1);
	post_sends(1, 8);
	assert_int_equal(requester->ring.count, 2);
}

/* Tenths of a second. The probe interval of a responsive peer doubles, until work is posted. */
TEST(probe_intervals, NULL, bench_close)
{
	static const int64_t gaps[] = { 25, 45, 85, 85 };
	struct work work = { .kind = WORK_WRITE };

	requester_open();
	arrive = true;
	qp_of(&bench.pair, 1)->probe_interval = INT64_MAX;
	network_run(30 * CLOCK_NS_PER_S);
	for (size_t index = 0; index < LENGTH(gaps); index++)
		assert_int_equal((sent[index + 1].at - sent[index].at) / (CLOCK_NS_PER_S / 10), gaps[index]);
	work.region = bench.region;
	count = 0;
	assert_int_equal(soft_qp_post(qp_of(&bench.pair, 0), &work, 1), OUTCOME_OK);
	network_run(2 * CLOCK_NS_PER_S);
	assert_int_equal(count, 2);
}

/* A packet from another address, or to another address of ours, does not count as received from the peer. */
TEST(packet_to_other_address_is_dropped, NULL, bench_close)
{
	static const struct address other = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 9 } };
	struct soft_endpoint *endpoint;
	struct host other_host;
	struct packet packet;

	requester_open();
	arrive = true;
	endpoint = &bench.pair.ends[1];
	endpoint->icmp.error = EHOSTUNREACH;
	stack_socket(testbed.hosts[1].transport, &other);
	other_host = testbed.hosts[1];
	other_host.address = other;
	packet = bench_packet(OPCODE_WRITE_ONLY, bench.psn, 0);
	host_send_packet(&testbed.hosts[0], &other_host, &packet);
	bench_run();
	assert_int_equal(testbed.hosts[1].cm_packets, 0);
	assert_int_equal(endpoint->icmp.error, EHOSTUNREACH);
	host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
	bench_run();
	assert_int_equal(testbed.hosts[1].cm_packets, 1);
	assert_int_equal(endpoint->icmp.error, 0);
}

/* A packet with a wrong ICRC counts for the path if it comes from the peer. */
TEST(damaged_packets_of_strangers_count_apart, NULL, bench_close)
{
	static const struct address other = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 9 } };
	const struct network_counter *counts;
	struct frame frame = { 0 };
	struct packet packet;

	requester_open();
	counts = testbed.hosts[1].transport->counts;
	packet = bench_packet(OPCODE_WRITE_ONLY, bench.psn, 0);
	frame.to = testbed.hosts[1].address;
	frame.length = packet_write(&packet, frame.bytes) + PACKET_ICRC_SIZE;
	testbed.injecting = true;
	for (unsigned strangers = 0; strangers < 4; strangers++) {
		frame.from = strangers ? other : testbed.hosts[0].address;
		network_send(&frame);
	}
	packet.destination ^= 1;
	packet_write(&packet, frame.bytes);
	frame.from = testbed.hosts[0].address;
	network_send(&frame);
	testbed.injecting = false;
	bench_run();
	assert_int_equal(counts[SOFT_DAMAGED].increase, 1);
	assert_int_equal(counts[SOFT_STRAY].increase, 4);
}

/* Repeated ICMP errors do not extend the peer's deadline. */
TEST(repeated_icmp_keeps_deadline, NULL, bench_close)
{
	requester_open();
	for (unsigned tenths = 0; tenths < 16; tenths++) {
		soft_qp_suspect(qp_of(&bench.pair, 0));
		network_run(CLOCK_NS_PER_S / 10);
	}
	assert_int_equal(testbed.hosts[0].failures, 1);
}
