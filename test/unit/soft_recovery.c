/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/qp.wrap */
/* Retransmission timeouts, and the congestion window. */
#include "test/network/qp.h"
#include "transport/soft/wire/mad.h"

enum {
	SENT_MAX = 1024,
	FIRST = 100, /* PSN */
};

/* Requests that host 0 sent. All are dropped. */
static struct {
	int64_t at;
	uint32_t psn;
} sent[SENT_MAX];
static size_t count;

static bool record_and_drop(struct network *where, const struct host *from, struct packet *packet)
{
	if (from != &testbed.hosts[0] || (opcode_form(packet->opcode) & FORM_RESPONSE))
		return true;
	assert_true(count < SENT_MAX);
	sent[count].at = where->now;
	sent[count++].psn = packet->psn;
	return false;
}

static void recovery_open(void)
{
	bench_open(4);
	testbed.tap = record_and_drop;
	count = 0;
}

static void post_sends(unsigned works)
{
	while (works--)
		bench_post(WORK_SEND, 8);
}

static void respond(uint32_t psn, enum syndrome_kind kind, unsigned value)
{
	bench_respond(OPCODE_ACKNOWLEDGE, psn, syndrome_make(kind, (uint8_t)value), 0);
}

/* Microseconds between transmissions. Without an RTT sample the timeout follows from the agreed ACK timeout. */
TEST(timeouts_without_rtt_sample, NULL, bench_close)
{
	static const struct {
		unsigned ack_timeout;
		int64_t waits[6];
	} rows[] = {
		{ 18, { 128000, 128000, 256000, 268435, 268435, 268435 } },
		{ 14, { 67108, 64000, 64000, 64000, 64000, 64000 } },
		{ 8, { 1048, 1048, 2097, 4194, 8388, 16777 } },
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {

		recovery_open();
		qp_of(&bench.pair, 0)->ack_timeout = mad_timeout(rows[row].ack_timeout);
		post_sends(1);
		network_run(2 * CLOCK_NS_PER_S);
		for (size_t index = 0; index < LENGTH(rows[row].waits); index++)
			assert_int_equal((sent[index + 1].at - sent[index].at) / CLOCK_NS_PER_US,
					 rows[row].waits[index]);
	}
}

/* The timeout is srtt + 4 rttvar. */
TEST(timeout_from_rtt, NULL, bench_close)
{
	enum {
		ROUND_TRIP = 10 /* ms */
	};

	recovery_open();
	post_sends(1);
	network_run(ROUND_TRIP * CLOCK_NS_PER_MS);
	respond(FIRST, SYNDROME_ACK, CREDITS_UNLIMITED);
	post_sends(1);
	count = 0;
	network_run(CLOCK_NS_PER_S);
	assert_int_equal(sent[0].psn, FIRST + 1);
	assert_int_equal((sent[1].at - sent[0].at) / CLOCK_NS_PER_MS, ROUND_TRIP + 4 * ROUND_TRIP / 2);
}

/* The last one and the oldest, in turn. */
TEST(timeouts_send_one_packet, NULL, bench_close)
{
	recovery_open();
	for (unsigned index = 0; index < 16; index++)
		bench_post(WORK_SEND, 4096);
	network_run(2 * CLOCK_NS_PER_S);
	assert_in_range(count, 36, SENT_MAX);
	assert_int_equal(qp_of(&bench.pair, 0)->requester.cwnd, 1);
	for (size_t index = 0; index < count; index++)
		assert_int_equal(sent[index].psn, index < 32 ? FIRST + index : index % 2 ? FIRST : FIRST + 31);
}

/* The answer may be among those that wait to be read: time-outs send no more packets than are read, and count no more.
 */
TEST(unread_packets_limit_timeouts, NULL, bench_close)
{
	struct soft_socket *socket;

	recovery_open();
	socket = testbed.hosts[0].socket;
	socket->unread = true;
	testbed.hosts[1].dead = true; /* it sends no probe, which would be read */
	post_sends(1);
	network_run(CLOCK_NS_PER_S);
	assert_in_range(count, 10, 20);
	count = 0;
	socket->resends = 1000;
	network_run(60 * CLOCK_NS_PER_S);
	assert_int_equal(count, 0);
	assert_int_equal(testbed.hosts[0].reported_count, 0);
	socket->unread = false;
	network_run(CLOCK_NS_PER_S);
	assert_in_range(count, 10, 20);
}

/* The acknowledgement of a DREQ: of what was sent, and no more. */
TEST(acknowledgement_of_a_disconnect, NULL, bench_close)
{
	struct soft_qp *qp;

	recovery_open();
	qp = qp_of(&bench.pair, 0);
	post_sends(2);
	soft_qp_acknowledged(qp, FIRST - 1);
	soft_qp_acknowledged(qp, FIRST + 2);
	assert_int_equal(qp->requester.ring.count, 2);
	soft_qp_acknowledged(qp, FIRST);
	assert_int_equal(qp->requester.ring.count, 1);
	soft_qp_acknowledged(qp, FIRST + 1);
	assert_false(soft_qp_has_signalled_work(qp));
	soft_qp_stop(qp);
	soft_qp_acknowledged(qp, FIRST + 1);
}

/* After an RNR NAK eight packets are sent, then one. */
TEST(rnr_nak_reduces_window, NULL, bench_close)
{
	static const size_t windows[] = { 32, 8, 1, 1 };

	recovery_open();
	for (unsigned index = 0; index < 16; index++)
		bench_post(WORK_SEND, 4096);
	for (size_t round = 0; round < LENGTH(windows); round++) {
		assert_int_equal(count, windows[round]);
		count = 0;
		respond(FIRST, SYNDROME_RNR, 1);
		network_run(10 * CLOCK_NS_PER_MS);
	}
	/* An ACK ends this limit. */
	count = 0;
	respond(FIRST, SYNDROME_ACK, CREDITS_UNLIMITED);
	assert_true(count > 8);
}

/* A window of packets reduces cwnd once, however many of them are lost. */
TEST(window_is_reduced_once_per_loss, NULL, bench_close)
{
	const struct requester *requester;

	recovery_open();
	requester = &qp_of(&bench.pair, 0)->requester;
	for (unsigned index = 0; index < 16; index++)
		bench_post(WORK_SEND, 4096);
	assert_int_equal(requester->cwnd, 32);
	respond(FIRST, SYNDROME_NAK, NAK_SEQUENCE);
	assert_int_equal(requester->cwnd, 23);
	respond(FIRST + 5, SYNDROME_NAK, NAK_SEQUENCE);
	assert_int_equal(requester->cwnd, 23);
	/* All packets of that window are acknowledged: the next loss counts. */
	respond(FIRST + 31, SYNDROME_ACK, CREDITS_UNLIMITED);
	respond(FIRST + 33, SYNDROME_NAK, NAK_SEQUENCE);
	assert_int_equal(requester->cwnd, 17);
}

/* Repeated NAKs for the same PSN would cause endless retransmission. */
TEST(repeated_naks_are_limited, NULL, bench_close)
{
	recovery_open();
	post_sends(1);
	respond(FIRST, SYNDROME_ACK, CREDITS_UNLIMITED); /* RTT about 0.1 ms */
	count = 0;
	post_sends(1);
	for (unsigned times = 0; times < 18; times++)
		respond(FIRST + 1, SYNDROME_NAK, NAK_SEQUENCE);
	assert_int_equal(count, 7);
}
