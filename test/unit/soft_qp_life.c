/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/qp.wrap */
/* What a queue pair takes and waits for, and what it does about a peer that is idle or said to be gone. */
#include "test/network/qp.h"

#include <errno.h>

enum {
	SENT_MOST = 64,
};

static int64_t sent[SENT_MOST]; /* when host 0 sent */
static size_t count;

static bool note(struct network *where, const struct host *from, struct packet *packet)
{
	(void)packet;
	if (from == &testbed.hosts[0] && count < SENT_MOST)
		sent[count++] = where->now;
	return true;
}

static bool lose(struct network *where, const struct host *from, struct packet *packet)
{
	note(where, from, packet);
	return false;
}

static void daemon_open(struct bench *bench, bool (*tap)(struct network *, const struct host *, struct packet *))
{
	bench_open(bench, 4);
	testbed.tap = tap;
	count = 0;
}

/* Before it leaves an end waits for what its command will hear of, and for nothing else. */
static void what_an_end_waits_for(void **state)
{
	static const struct {
		enum work_kind kind;
		bool silent, waits;
	} rows[] = { { WORK_SEND, true, false }, { WORK_SEND, false, true }, { WORK_READ, false, true } };

	(void)state;
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct bench bench;
		struct soft_qp *qp;
		struct work work = { .kind = rows[row].kind, .silent = rows[row].silent, .length = 8 };

		daemon_open(&bench, lose);
		qp = qp_of(&bench.pair, 0);
		soft_qp_probe(qp);
		assert_false(soft_qp_has_unacked_work(qp));
		work.region = bench.region;
		work.remote_address = (uintptr_t)bench.region->memory;
		work.remote_key = bench.region->remote_key;
		assert_int_equal(soft_qp_post(qp, &work, 1), OUTCOME_OK);
		work.silent = true;
		assert_int_equal(soft_qp_post(qp, &work, 1), OUTCOME_OK);
		assert_int_equal(soft_qp_has_unacked_work(qp), rows[row].waits);
		soft_qp_stop(qp);
		assert_false(soft_qp_has_unacked_work(qp));
		bench_close(&bench);
	}
}

/* What stands behind it in the same call is not carried out. */
static void posting_ends_at_what_is_refused(void **state)
{
	struct bench bench;
	struct capture capture;
	struct work works[3];

	(void)state;
	bench_open(&bench, 0);
	testbed.tap = note;
	count = 0;
	for (size_t index = 0; index < LENGTH(works); index++)
		works[index] = (struct work){ .kind = WORK_WRITE, .region = bench.region };
	works[1].length = SOFT_LONGEST_MESSAGE + 1;
	capture_begin(&capture);
	assert_int_equal(soft_qp_post(qp_of(&bench.pair, 0), works, LENGTH(works)), OUTCOME_INTERNAL);
	assert_non_null(strstr(capture_end(&capture), "posting a RDMA WRITE"));
	assert_int_equal(qp_of(&bench.pair, 0)->requester.count, 1);
	bench_run();
	assert_int_equal(count, 1);
	bench_close(&bench);
}

/* In tenths of a second: a peer that answers is asked less often, until something is posted. */
static void how_often_an_idle_peer_is_asked(void **state)
{
	static const int64_t gaps[] = { 25, 45, 85, 85 };
	struct bench bench;
	struct work work = { .kind = WORK_WRITE };

	(void)state;
	daemon_open(&bench, note);
	qp_of(&bench.pair, 1)->probe_interval = INT64_MAX;
	network_run(30 * CLOCK_NS_PER_S);
	for (size_t index = 0; index < LENGTH(gaps); index++)
		assert_int_equal((sent[index + 1] - sent[index]) / (CLOCK_NS_PER_S / 10), gaps[index]);
	work.region = bench.region;
	count = 0;
	assert_int_equal(soft_qp_post(qp_of(&bench.pair, 0), &work, 1), OUTCOME_OK);
	network_run(2 * CLOCK_NS_PER_S);
	assert_int_equal(count, 2);
	bench_close(&bench);
}

/* It is heard with the first packet that is its own: from that address, to this one. */
static void a_packet_by_another_way_is_not_the_peers(void **state)
{
	static const struct address other = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 9 } };
	struct bench bench;
	struct soft_endpoint *endpoint;
	struct host elsewhere;
	struct packet packet;

	(void)state;
	daemon_open(&bench, note);
	endpoint = &bench.pair.ends[1];
	endpoint->icmp_errno = EHOSTUNREACH;
	stack_socket(testbed.hosts[1].transport, &other);
	elsewhere = testbed.hosts[1];
	elsewhere.address = other;
	packet = bench_packet(&bench, OPCODE_WRITE_ONLY, bench.psn, 0);
	host_send_packet(&testbed.hosts[0], &elsewhere, &packet);
	bench_run();
	assert_int_equal(testbed.hosts[1].cm_packets, 0);
	assert_int_equal(endpoint->icmp_errno, EHOSTUNREACH);
	host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
	bench_run();
	assert_int_equal(testbed.hosts[1].cm_packets, 1);
	assert_int_equal(endpoint->icmp_errno, 0);
	bench_close(&bench);
}

/* The news that nothing holds its port comes again with each packet that is sent there. */
static void doubts_do_not_put_off_the_end(void **state)
{
	struct bench bench;

	(void)state;
	daemon_open(&bench, lose);
	for (unsigned tenths = 0; tenths < 16; tenths++) {
		soft_qp_suspect(qp_of(&bench.pair, 0));
		network_run(CLOCK_NS_PER_S / 10);
	}
	assert_int_equal(testbed.hosts[0].failures, 1);
	bench_close(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_an_end_waits_for),
		cmocka_unit_test(posting_ends_at_what_is_refused),
		cmocka_unit_test(how_often_an_idle_peer_is_asked),
		cmocka_unit_test(a_packet_by_another_way_is_not_the_peers),
		cmocka_unit_test(doubts_do_not_put_off_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
