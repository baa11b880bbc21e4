/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/qp.wrap */
/* When the requester sends again what is not acknowledged, and how much at once. */
#include "test/network/qp.h"
#include "transport/soft/wire/mad.h"

enum {
	SENT_MOST = 1024,
	FIRST = 100, /* PSN */
};

/* Of host 0, none of which arrives. */
static struct {
	int64_t at;
	uint32_t psn;
} sent[SENT_MOST];
static size_t count;

static bool keep(struct network *where, const struct host *from, struct packet *packet)
{
	if (from != &testbed.hosts[0])
		return true;
	assert_true(count < SENT_MOST);
	sent[count].at = where->now;
	sent[count++].psn = packet->psn;
	return false;
}

static void recovery_open(struct bench *bench)
{
	bench_open(bench, 4);
	testbed.tap = keep;
	count = 0;
}

static void post_some(struct bench *bench, unsigned works)
{
	while (works--)
		bench_post(bench, WORK_SEND, bench->region, 8);
}

static void answer(struct bench *bench, uint32_t psn, enum syndrome_kind kind, unsigned value)
{
	bench_respond(bench, OPCODE_ACKNOWLEDGE, psn, syndrome_make(kind, (uint8_t)value), 0);
}

/* In microseconds, from each try of a packet to the next. Before anything is measured it is what a peer may take. */
static void when_silence_is_a_loss(void **state)
{
	static const struct {
		unsigned ack_timeout; /* as agreed */
		int64_t waits[6];
	} rows[] = {
		{ 18, { 128000, 64000, 80000, 160000, 268435, 268435 } },
		{ 14, { 67108, 64000, 64000, 64000, 64000, 64000 } },
		{ 8, { 2000, 2000, 4000, 8000, 16000, 32000 } },
	};

	(void)state;
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct bench bench;

		recovery_open(&bench);
		qp_of(&bench.pair, 0)->ack_timeout = mad_timeout(rows[row].ack_timeout);
		post_some(&bench, 1);
		network_run(2 * CLOCK_NS_PER_S);
		for (size_t index = 0; index < LENGTH(rows[row].waits); index++)
			assert_int_equal((sent[index + 1].at - sent[index].at) / CLOCK_NS_PER_US,
					 rows[row].waits[index]);
		bench_close(&bench);
	}
}

/* The round trip and four times its variation, once losses have made it careless. */
static void silence_is_measured_by_the_round_trip(void **state)
{
	enum {
		LOSSES = 6,
		ROUND_TRIP = 10 /* ms */
	};
	struct bench bench;

	(void)state;
	recovery_open(&bench);
	post_some(&bench, 1);
	while (count <= LOSSES)
		network_tick();
	answer(&bench, FIRST, SYNDROME_ACK, CREDITS_UNLIMITED);
	post_some(&bench, 1);
	network_run(ROUND_TRIP * CLOCK_NS_PER_MS - (sent[count - 1].at - network->now));
	answer(&bench, FIRST + 1, SYNDROME_ACK, CREDITS_UNLIMITED);
	post_some(&bench, 1);
	count = 0;
	network_run(CLOCK_NS_PER_S);
	assert_int_equal(sent[0].psn, FIRST + 2);
	assert_int_equal((sent[1].at - sent[0].at) / CLOCK_NS_PER_MS, ROUND_TRIP + 4 * ROUND_TRIP / 2);
	bench_close(&bench);
}

/* The window shrinks with each, and in the end one packet asks. */
static void a_silent_peer_gets_less_and_less(void **state)
{
	static const size_t windows[] = { 32, 23, 17, 12, 9, 7, 1, 1 };
	struct bench bench;
	size_t place = 0;

	(void)state;
	recovery_open(&bench);
	for (unsigned index = 0; index < 16; index++)
		bench_post(&bench, WORK_SEND, bench.region, 4096);
	network_run(2 * CLOCK_NS_PER_S);
	for (size_t round = 0; round < LENGTH(windows); round++) {
		size_t begin = place;

		while (++place < count && sent[place].psn != FIRST)
			continue;
		assert_int_equal(place - begin, windows[round]);
	}
	bench_close(&bench);
}

/* A receiver without a receive is asked with eight packets, and then with one. */
static void a_receiver_that_is_not_ready_gets_few(void **state)
{
	static const size_t windows[] = { 32, 8, 1, 1 };
	struct bench bench;

	(void)state;
	recovery_open(&bench);
	for (unsigned index = 0; index < 16; index++)
		bench_post(&bench, WORK_SEND, bench.region, 4096);
	for (size_t round = 0; round < LENGTH(windows); round++) {
		assert_int_equal(count, windows[round]);
		count = 0;
		answer(&bench, FIRST, SYNDROME_RNR, 1);
		network_run(10 * CLOCK_NS_PER_MS);
	}
	/* One that took a packet is ready. */
	count = 0;
	answer(&bench, FIRST, SYNDROME_ACK, CREDITS_UNLIMITED);
	assert_true(count > 8);
	bench_close(&bench);
}

/* Whatever is missing of what was under way then: it was one loss. */
static void a_loss_is_paid_for_once(void **state)
{
	struct bench bench;
	const struct requester *requester;

	(void)state;
	recovery_open(&bench);
	requester = &qp_of(&bench.pair, 0)->requester;
	for (unsigned index = 0; index < 16; index++)
		bench_post(&bench, WORK_SEND, bench.region, 4096);
	assert_int_equal(requester->cwnd, 32);
	answer(&bench, FIRST, SYNDROME_NAK, NAK_SEQUENCE);
	assert_int_equal(requester->cwnd, 23);
	answer(&bench, FIRST + 5, SYNDROME_NAK, NAK_SEQUENCE);
	assert_int_equal(requester->cwnd, 23);
	/* All of that has come, and the next one counts. */
	answer(&bench, FIRST + 31, SYNDROME_ACK, CREDITS_UNLIMITED);
	answer(&bench, FIRST + 33, SYNDROME_NAK, NAK_SEQUENCE);
	assert_int_equal(requester->cwnd, 17);
	bench_close(&bench);
}

/* Ends that disagree on what comes next would keep each other busy. */
static void a_peer_that_misses_it_for_ever(void **state)
{
	struct bench bench;

	(void)state;
	recovery_open(&bench);
	post_some(&bench, 1);
	answer(&bench, FIRST, SYNDROME_ACK, CREDITS_UNLIMITED); /* a round trip of some 0.1 ms */
	count = 0;
	post_some(&bench, 1);
	for (unsigned times = 0; times < 18; times++)
		answer(&bench, FIRST + 1, SYNDROME_NAK, NAK_SEQUENCE);
	assert_int_equal(count, 6);
	bench_close(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(when_silence_is_a_loss),
		cmocka_unit_test(silence_is_measured_by_the_round_trip),
		cmocka_unit_test(a_silent_peer_gets_less_and_less),
		cmocka_unit_test(a_receiver_that_is_not_ready_gets_few),
		cmocka_unit_test(a_loss_is_paid_for_once),
		cmocka_unit_test(a_peer_that_misses_it_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
