/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/cm.wrap */
/* DREQ, DREP and timewait. */
#include "test/network/cm.h"

/* A DREQ with the QPN of an older connection is dropped without a DREP. */
TEST(test_dreq_with_other_qpn, testbed_open, testbed_close)
{
	struct conn *passive, *active = connect_pair(&passive);
	struct mad mad;

	mad = mad_forge(MAD_DREQ, passive, &cm_hosts.hosts[0]);
	mad.dreq.remote_qpn++;
	testbed_inject(&cm_hosts.hosts[0], &cm_hosts.hosts[1], &mad);
	network_run(CLOCK_NS_PER_MS);
	assert_true(is_established(active) && is_established(passive));
	assert_int_equal(count_sent(MAD_DREP), 0);
	do_disconnect(active);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(passive->last, SOFT_EVENT_DISCONNECTED);
}

/* REP and RTU belong to the REQ's transaction, DREP to the DREQ's, which is a new one. */
TEST(test_transactions, testbed_open, testbed_close)
{
	const struct host *client = &cm_hosts.hosts[0], *server = &cm_hosts.hosts[1];
	struct mad first, reply;
	struct conn *passive;

	do_disconnect(connect_pair(&passive));
	network_run(CLOCK_NS_PER_MS);
	assert_non_null(last_sent(MAD_REQ, client, &first));
	assert_non_null(last_sent(MAD_REP, server, &reply));
	assert_int_equal(reply.transaction, first.transaction);
	assert_non_null(last_sent(MAD_RTU, client, &reply));
	assert_int_equal(reply.transaction, first.transaction);
	assert_non_null(last_sent(MAD_DREQ, client, &reply));
	assert_int_not_equal(reply.transaction, first.transaction);
	assert_non_null(last_sent(MAD_DREQ, client, &first));
	assert_non_null(last_sent(MAD_DREP, server, &reply));
	assert_int_equal(reply.transaction, first.transaction);
}

/* For any number of lost acknowledgements: the DREQ has the last one, and is repeated until its DREP. */
TEST(test_dreq_acknowledges, testbed_open, testbed_close)
{
	struct conn *passive, *active = connect_pair(&passive);

	passive->qp.unacked = true;
	active->qp.last_ack = 0x123456;
	cm_hosts.dropped = DROP_DREQ | DROP_DREP;
	do_disconnect(active);
	network_run(CLOCK_NS_PER_S);
	assert_true(is_established(passive));
	cm_hosts.dropped = 0;
	network_run(CLOCK_NS_PER_S);
	assert_int_equal(passive->qp.acked, 0x123456);
	assert_int_equal(passive->last, SOFT_EVENT_DISCONNECTED);
	assert_int_equal(active->last, SOFT_EVENT_DISCONNECTED);
}

/* The peer's answer may be among thousands of unread packets: timeouts send only a few, and do not count. */
TEST(test_unread_packets_limit_resends, testbed_open, testbed_close)
{
	struct conn *passive, *active = connect_pair(&passive);
	unsigned sent;

	cm_hosts.dropped = DROP_DREQ | DROP_DREP;
	active->host->socket->unread = true;
	active->host->socket->resends = 1000;
	do_disconnect(active);
	network_run(CLOCK_NS_PER_S);
	assert_int_equal(count_sent(MAD_DREQ), 1);
	active->host->socket->resends = 0;
	network_run(CLOCK_NS_PER_S / 2);
	sent = count_sent(MAD_DREQ);
	assert_in_range(sent, 3, 4);
	active->host->socket->unread = false;
	cm_hosts.dropped = 0;
	network_run(CLOCK_NS_PER_S);
	assert_int_equal(active->last, SOFT_EVENT_DISCONNECTED);
}

/* A process that exits cannot answer a repeated DREQ: it sends its DREQ or DREP three times. */
TEST(test_drep_repeats_at_exit, testbed_open, testbed_close)
{
	struct conn *passive, *active = connect_pair(&passive);

	do_disconnect(active);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(count_sent(MAD_DREP), 1);
	do_release(passive);
	host_exit(&cm_hosts.hosts[1]);
	assert_int_equal(count_sent(MAD_DREP), 3);
}

TEST(test_dreq_repeats_at_exit, testbed_open, testbed_close)
{
	struct conn *passive, *active = connect_pair(&passive);

	do_release(active);
	testbed_flush();
	assert_int_equal(count_sent(MAD_DREQ), 1);
	host_exit(&cm_hosts.hosts[0]);
	assert_int_equal(count_sent(MAD_DREQ), 3);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(passive->events[SOFT_EVENT_DISCONNECTED], 1);
}

/* A kernel's DREQ has no acknowledgement. */
static void send_kernels_dreq(const struct conn *passive)
{
	struct mad mad = mad_forge(MAD_DREQ, passive, &cm_hosts.hosts[0]);

	testbed_inject(&cm_hosts.hosts[0], &cm_hosts.hosts[1], &mad);
}

/* With unacknowledged work the DREP to a kernel is delayed while the DREQ repeats, for a limited time. */
TEST(test_dreq_with_unacked_work, testbed_open, testbed_close)
{
	for (unsigned acked = 0; acked < 2; acked++) {
		struct conn *passive, *active = connect_pair(&passive);

		passive->qp.unacked = true;
		cm_hosts.dropped = DROP_DREQ;
		do_disconnect(active);
		send_kernels_dreq(passive);
		network_run(80 * CLOCK_NS_PER_MS);
		assert_int_equal(passive->events[SOFT_EVENT_DISCONNECTED], 0);
		assert_int_equal(state_of(active), CM_DREQ_SENT);
		passive->qp.unacked = !acked;
		send_kernels_dreq(passive);
		network_run(CLOCK_NS_PER_MS * 170);
		assert_int_equal(passive->events[SOFT_EVENT_DISCONNECTED], acked);
		assert_int_equal(active->events[SOFT_EVENT_DISCONNECTED], acked);
		network_run(300 * CLOCK_NS_PER_MS);
		assert_int_equal(passive->events[SOFT_EVENT_DISCONNECTED], 1);
		assert_int_equal(active->events[SOFT_EVENT_DISCONNECTED], 1);
		cm_hosts.dropped = 0;
		do_release(active);
		do_release(passive);
	}
}

/* Then both sides disconnect, or the waiting side releases the connection. */
TEST(test_disconnect_with_unacked_work, testbed_open, testbed_close)
{
	for (unsigned releases = 0; releases < 2; releases++) {
		struct conn *passive, *active = connect_pair(&passive);

		passive->qp.unacked = true;
		cm_hosts.dropped = DROP_DREQ;
		do_disconnect(active);
		send_kernels_dreq(passive);
		network_run(80 * CLOCK_NS_PER_MS);
		assert_true(is_established(passive));
		cm_hosts.dropped = 0;
		(releases ? do_release : do_disconnect)(passive);
		network_run(CLOCK_NS_PER_S);
		assert_int_equal(active->events[SOFT_EVENT_DISCONNECTED], 1);
		do_release(active);
		if (!releases)
			do_release(passive);
	}
}

/* A connection stays in timewait for 20 s after the last MAD for it. */
TEST(test_mads_extend_timewait, testbed_open, testbed_close)
{
	static const struct {
		enum mad_kind kind;
		bool rejected;
	} rows[] = { { MAD_DREQ, false }, { MAD_REQ, false }, { MAD_REQ, true } };

	for (size_t row = 0; row < LENGTH(rows); row++) {
		const struct soft_list *timewait = &cm_hosts.hosts[1].transport->cm->timewait;
		struct conn *active, *passive;
		struct mad mad;

		cm_hosts.requested = rows[row].rejected ? do_reject : do_accept;
		active = connect_for_1_ms();
		passive = passive_conn();
		if (rows[row].kind == MAD_DREQ)
			mad = mad_forge(MAD_DREQ, passive, &cm_hosts.hosts[0]);
		else
			assert_non_null(last_sent(MAD_REQ, &cm_hosts.hosts[0], &mad));
		do_disconnect(active);
		network_run(CLOCK_NS_PER_MS);
		do_release(active);
		do_release(passive);
		for (unsigned turn = 0; turn < 2; turn++) {
			network_run(15 * CLOCK_NS_PER_S);
			assert_int_equal(timewait->count, 1);
			testbed_inject(&cm_hosts.hosts[0], &cm_hosts.hosts[1], &mad);
		}
		network_run(21 * CLOCK_NS_PER_S);
		assert_int_equal(timewait->count, 0);
	}
}

/* A released endpoint repeats its DREQ for 3 s instead of 73 s. */
TEST(test_orphan_dreq_repeats, testbed_open, testbed_close)
{
	struct conn *passive, *active = connect_pair(&passive);

	cm_hosts.dropped = DROP_ALL;
	do_release(active);
	network_drain();
	assert_int_equal(count_sent(MAD_DREQ), 1 + CM_ORPHAN_RESENDS);
}

/* More connections in timewait than the limit: the oldest are removed, also with an endpoint. */
TEST(test_timewait_limit, testbed_open, testbed_close)
{
	struct soft_cm *cm = cm_hosts.hosts[0].transport->cm;
	struct conn *active = NULL, *first = NULL;

	cm_hosts.dropped = DROP_ALL;
	for (unsigned i = 0; i < CM_TIMEWAIT_MAX + 1000; i++) {
		active = connect_one();
		if (!first)
			first = active;
		icmp_for_mad(&cm_hosts.hosts[0], active);
		assert_int_equal(active->last, SOFT_EVENT_FAILED);
	}
	assert_int_equal(cm->timewait.count, CM_TIMEWAIT_MAX);
	assert_null(first->endpoint.cm_id);
	assert_non_null(active->endpoint.cm_id);
	assert_int_equal(soft_cm_accept(&first->endpoint.base, NULL, 0), OUTCOME_OK);
	assert_int_equal(soft_cm_disconnect(&first->endpoint.base), OUTCOME_OK);
}

/* Unanswered DREQs of released endpoints are limited. */
TEST(test_orphan_limit, testbed_open, testbed_close)
{
	const struct soft_cm *cm = cm_hosts.hosts[0].transport->cm;

	for (unsigned i = 0; i < CM_ORPHANS_MAX + 10; i++) {
		struct conn *passive, *active;

		cm_hosts.dropped = 0;
		active = connect_pair(&passive);
		cm_hosts.dropped = DROP_ALL;
		do_release(active);
		do_release(passive);
		testbed_flush();
		assert_true(cm->orphans <= CM_ORPHANS_MAX);
	}
}
