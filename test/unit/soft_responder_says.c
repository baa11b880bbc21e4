/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/qp.wrap */
/* Responses to packets that are out of order, early or late: which, and how many. */
#include "test/network/qp.h"

enum {
	RESPONSES_MAX = 64,
	FIRST = 100, /* PSN */
};

/* Responses of host 1: A ACK, S sequence NAK, R RNR NAK, N other NAK. */
static char responses[RESPONSES_MAX];
static uint32_t last_psn;

static bool record_response(struct network *where, const struct host *from, struct packet *packet)
{
	size_t length = strlen(responses);
	uint8_t syndrome = packet->acknowledgement.syndrome;

	if (from != &testbed.hosts[1])
		return true;
	assert_true(length < RESPONSES_MAX - 1);
	last_psn = packet->psn;
	if (syndrome_kind(syndrome) == SYNDROME_NAK)
		responses[length] = syndrome_value(syndrome) == NAK_SEQUENCE ? 'S' : 'N';
	else
		responses[length] = syndrome_kind(syndrome) == SYNDROME_RNR ? 'R' : 'A';
	return true;
}

static void responses_open(void)
{
	bench_open(4);
	testbed.tap = record_response;
	memset(responses, 0, sizeof(responses));
}

/* Compares the responses since the last call. */
static void expect(const char *expected)
{
	bench_run();
	assert_string_equal(responses, expected);
	memset(responses, 0, sizeof(responses));
}

/* Packets behind an RNR NAK are not reported as a gap. */
TEST(no_nak_behind_rnr_nak, NULL, bench_close)
{
	responses_open();
	bench_send(OPCODE_SEND_ONLY, FIRST, 8);
	expect("R");
	bench_send(OPCODE_SEND_ONLY, FIRST + 1, 8);
	bench_send(OPCODE_SEND_ONLY, FIRST + 2, 8);
	expect("");
}

/* The missing packet arrives in the same batch, after a later one. */
TEST(gap_closed_in_batch_gets_no_nak, NULL, bench_close)
{
	responses_open();
	bench_send(OPCODE_WRITE_ONLY, FIRST + 1, 8);
	bench_send(OPCODE_WRITE_ONLY, FIRST, 8);
	bench_send(OPCODE_WRITE_ONLY, FIRST + 1, 8);
	expect("A");
	assert_int_equal(last_psn, FIRST + 1);
	/* The next gap gets a NAK. */
	bench_send(OPCODE_WRITE_ONLY, FIRST + 3, 8);
	expect("S");
}

/* Each repetition of the invalid request gets a NAK; earlier requests get no response. */
TEST(nak_repeats_for_invalid_request_only, NULL, bench_close)
{
	responses_open();
	bench_send(OPCODE_WRITE_ONLY, FIRST, 8);
	expect("A");
	bench_send(OPCODE_WRITE_MIDDLE, FIRST + 1, 1024);
	expect("N");
	bench_send(OPCODE_WRITE_ONLY, FIRST, 8);
	expect("");
	bench_send(OPCODE_WRITE_MIDDLE, FIRST + 1, 1024);
	expect("N");
	/* A stopped queue pair sends no ACK. */
	soft_qp_stop(qp_of(&bench.pair, 1));
	assert_int_equal(soft_qp_last_ack(qp_of(&bench.pair, 1)), FIRST);
	hosts_flush();
	expect("");
}

/* The last ACK is sent twice when the queue pair stops, and five times after losses. */
TEST(final_ack_is_repeated, NULL, bench_close)
{
	for (int lossy = 0; lossy < 2; lossy++) {
		responses_open();
		bench_send(OPCODE_WRITE_ONLY, FIRST, 8);
		expect("A");
		if (lossy) {
			bench_send(OPCODE_WRITE_ONLY, FIRST, 8);
			expect("A");
		}
		soft_qp_stop(qp_of(&bench.pair, 1));
		hosts_flush();
		expect(lossy ? "AAAAA" : "AA");
		assert_int_equal(soft_qp_last_ack(qp_of(&bench.pair, 1)), FIRST);
		/* A duplicate WRITE is acknowledged; a READ gets no response. */
		bench_send(OPCODE_WRITE_ONLY, FIRST, 8);
		expect("A");
		bench_send(OPCODE_READ_REQUEST, FIRST, 8);
		expect("");
	}
}
