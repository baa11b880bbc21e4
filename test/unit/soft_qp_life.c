/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/qp.wrap */
/* A queue pair: posting, pending work, probes of an idle or suspected peer. */
#include "test/network/qp.h"

#include <errno.h>

enum {
	SENT_MAX = 64,
};

static int64_t sent[SENT_MAX]; /* times at which host 0 sent a packet */
static size_t count;

static bool record(struct network *where, const struct host *from, struct packet *packet)
{
	if (from == &testbed.hosts[0] && count < SENT_MAX)
		sent[count++] = where->now;
	return true;
}

static bool record_and_drop(struct network *where, const struct host *from, struct packet *packet)
{
	record(where, from, packet);
	return false;
}

static void life_open(bool (*tap)(struct network *, const struct host *, struct packet *))
{
	bench_open(4);
	testbed.tap = tap;
	count = 0;
}

/* Only signalled work requests count as unacknowledged work. Probes do not. */
TEST(unacked_work_is_signalled_work, NULL, bench_close)
{
	static const struct {
		enum work_kind kind;
		bool unsignalled, waits;
	} rows[] = { { WORK_SEND, true, false }, { WORK_SEND, false, true }, { WORK_READ, false, true } };

	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct soft_qp *qp;
		struct work work = { .kind = rows[row].kind, .unsignalled = rows[row].unsignalled, .length = 8 };

		life_open(record_and_drop);
		qp = qp_of(&bench.pair, 0);
		soft_qp_probe(qp);
		assert_false(soft_qp_has_signalled_work(qp));
		work.region = bench.region;
		work.remote_address = (uintptr_t)bench.region->memory;
		work.remote_key = bench.region->remote_key;
		assert_int_equal(soft_qp_post(qp, &work, 1), OUTCOME_OK);
		work.unsignalled = true;
		assert_int_equal(soft_qp_post(qp, &work, 1), OUTCOME_OK);
		assert_int_equal(soft_qp_has_signalled_work(qp), rows[row].waits);
		soft_qp_stop(qp);
		assert_false(soft_qp_has_signalled_work(qp));
	}
}

/* Work requests after one for which there is no room are not posted. */
TEST(post_stops_at_rejected_work, NULL, bench_close)
{
	struct work works[3];

	bench_open(0);
	testbed.tap = record;
	count = 0;
	for (size_t index = 0; index < LENGTH(works); index++)
		works[index] = (struct work){ .kind = WORK_WRITE, .region = bench.region };
	qp_of(&bench.pair, 0)->requester.ring.capacity = 2; /* one is for the probe */
	assert_int_equal(soft_qp_post(qp_of(&bench.pair, 0), works, LENGTH(works)), OUTCOME_INTERNAL);
	assert_string_equal(qp_of(&bench.pair, 0)->transport->base.error.phase, "posting a RDMA WRITE");
	assert_int_equal(qp_of(&bench.pair, 0)->requester.ring.count, 1);
	bench_run();
	assert_int_equal(count, 1);
}

/* Tenths of a second. The probe interval of a responsive peer doubles, until work is posted. */
TEST(probe_intervals, NULL, bench_close)
{
	static const int64_t gaps[] = { 25, 45, 85, 85 };
	struct work work = { .kind = WORK_WRITE };

	life_open(record);
	qp_of(&bench.pair, 1)->probe_interval = INT64_MAX;
	network_run(30 * CLOCK_NS_PER_S);
	for (size_t index = 0; index < LENGTH(gaps); index++)
		assert_int_equal((sent[index + 1] - sent[index]) / (CLOCK_NS_PER_S / 10), gaps[index]);
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

	life_open(record);
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

/* Repeated ICMP errors do not extend the peer's deadline. */
TEST(repeated_icmp_keeps_deadline, NULL, bench_close)
{
	life_open(record_and_drop);
	for (unsigned tenths = 0; tenths < 16; tenths++) {
		soft_qp_suspect(qp_of(&bench.pair, 0));
		network_run(CLOCK_NS_PER_S / 10);
	}
	assert_int_equal(testbed.hosts[0].failures, 1);
}
