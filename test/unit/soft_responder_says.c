/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/qp.wrap */
/* What the responder says, and how often, of packets that come out of order, too early or too late. */
#include "test/network/qp.h"

enum {
	SAID_MOST = 64,
	FIRST = 100, /* PSN */
};

/* Of host 1: "A" an acknowledgement, "S" a sequence NAK, "R" not ready, "N" another NAK. */
static char said[SAID_MOST];
static uint32_t last_psn;

static bool note_said(struct network *where, const struct host *from, struct packet *packet)
{
	size_t length = strlen(said);
	uint8_t syndrome = packet->acknowledgement.syndrome;

	(void)where;
	if (from != &testbed.hosts[1])
		return true;
	assert_true(length < SAID_MOST - 1);
	last_psn = packet->psn;
	if (syndrome_kind(syndrome) == SYNDROME_NAK)
		said[length] = syndrome_value(syndrome) == NAK_SEQUENCE ? 'S' : 'N';
	else
		said[length] = syndrome_kind(syndrome) == SYNDROME_RNR ? 'R' : 'A';
	return true;
}

static void says_open(struct bench *bench)
{
	bench_open(bench, 4);
	testbed.tap = note_said;
	memset(said, 0, sizeof(said));
}

/* Checks what was said since the last time. */
static void cm_packets(const char *expected)
{
	bench_run();
	assert_string_equal(said, expected);
	memset(said, 0, sizeof(said));
}

/* What follows a message that found no receive is missing nothing. */
static void nothing_is_missing_behind_not_ready(void **state)
{
	struct bench bench;

	(void)state;
	says_open(&bench);
	bench_send(&bench, OPCODE_SEND_ONLY, FIRST, 8);
	cm_packets("R");
	bench_send(&bench, OPCODE_SEND_ONLY, FIRST + 1, 8);
	bench_send(&bench, OPCODE_SEND_ONLY, FIRST + 2, 8);
	cm_packets("");
	bench_close(&bench);
}

/* The packet that was missing comes in the same turn, behind what overtook it. */
static void a_gap_that_closes_at_once_is_not_told(void **state)
{
	struct bench bench;

	(void)state;
	says_open(&bench);
	bench_send(&bench, OPCODE_WRITE_ONLY, FIRST + 1, 8);
	bench_send(&bench, OPCODE_WRITE_ONLY, FIRST, 8);
	bench_send(&bench, OPCODE_WRITE_ONLY, FIRST + 1, 8);
	cm_packets("A");
	assert_int_equal(last_psn, FIRST + 1);
	/* The next one is a gap of its own. */
	bench_send(&bench, OPCODE_WRITE_ONLY, FIRST + 3, 8);
	cm_packets("S");
	bench_close(&bench);
}

/* The peer is told for every try of what was wrong, and of nothing that came before it. */
static void a_refusal_is_for_what_was_wrong(void **state)
{
	struct bench bench;

	(void)state;
	says_open(&bench);
	bench_send(&bench, OPCODE_WRITE_ONLY, FIRST, 8);
	cm_packets("A");
	bench_send(&bench, OPCODE_WRITE_MIDDLE, FIRST + 1, 1024);
	cm_packets("N");
	bench_send(&bench, OPCODE_WRITE_ONLY, FIRST, 8);
	cm_packets("");
	bench_send(&bench, OPCODE_WRITE_MIDDLE, FIRST + 1, 1024);
	cm_packets("N");
	/* It leaves, and the refusal stands. */
	soft_qp_stop(qp_of(&bench.pair, 1));
	hosts_flush();
	cm_packets("");
	bench_close(&bench);
}

/* Twice more than is needed; five times where packets were missing or came again. */
static void how_often_the_last_acknowledgement_is_said(void **state)
{
	(void)state;
	for (int lossy = 0; lossy < 2; lossy++) {
		struct bench bench;

		says_open(&bench);
		bench_send(&bench, OPCODE_WRITE_ONLY, FIRST, 8);
		cm_packets("A");
		if (lossy) {
			bench_send(&bench, OPCODE_WRITE_ONLY, FIRST, 8);
			cm_packets("A");
		}
		soft_qp_stop(qp_of(&bench.pair, 1));
		hosts_flush();
		cm_packets(lossy ? "AAAAA" : "AA");
		/* A repeat is still acknowledged, but nothing is read any more. */
		bench_send(&bench, OPCODE_WRITE_ONLY, FIRST, 8);
		cm_packets("A");
		bench_send(&bench, OPCODE_READ_REQUEST, FIRST, 8);
		cm_packets("");
		bench_close(&bench);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_missing_behind_not_ready),
		cmocka_unit_test(a_gap_that_closes_at_once_is_not_told),
		cmocka_unit_test(a_refusal_is_for_what_was_wrong),
		cmocka_unit_test(how_often_the_last_acknowledgement_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
