/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/cm.wrap */
/* The connection manager: many connections on a lossy network, and ICMP errors. */
#include <errno.h>

#include "test/network/cm.h"

TEST(test_icmp_port_unreachable, testbed_open, testbed_close)
{
	struct host *host = &cm_hosts.hosts[0], *peer = &cm_hosts.hosts[1], *other_host = &cm_hosts.hosts[2];
	struct conn *active, *connecting, *disconnecting, *passive;
	uint32_t id;

	disconnecting = connect_pair(&passive);
	active = connect_pair(&passive);
	cm_hosts.dropped = DROP_ALL;
	connecting = connect_one();
	do_disconnect(disconnecting);
	id = connecting->endpoint.cm_id->local_id;
	/* A forger knows the addresses, but not the identifiers or QPNs. */
	for (size_t length = 0; length < 48; length++)
		icmp_port_unreachable(host, peer, MAD_QPN, id, length);
	icmp_port_unreachable(host, other_host, MAD_QPN, id, 48);
	icmp_port_unreachable(host, peer, MAD_QPN, id + 1, 48);
	icmp_port_unreachable(host, peer, MAD_QPN, 0, 48);
	icmp_port_unreachable(host, peer, passive->qp.qpn + 1, 0, 48);
	icmp_port_unreachable(host, other_host, passive->qp.qpn, 0, 48);
	icmp_port_unreachable(host, peer, passive->qp.qpn, 0, 11);
	assert_int_equal(connecting->events[SOFT_EVENT_FAILED], 0);
	assert_int_equal(active->qp.suspects, 0);

	icmp_for_mad(host, connecting);
	assert_int_equal(connecting->code, ECONNREFUSED);
	assert_string_equal(connecting->cause, "no server there, or a firewall rejects UDP port 4791");
	icmp_for_mad(host, disconnecting);
	assert_int_equal(disconnecting->last, SOFT_EVENT_DISCONNECTED);
	/* An established connection sends a probe first. */
	icmp_port_unreachable(host, peer, passive->qp.qpn, 0, 12);
	assert_int_equal(active->qp.suspects, 1);
	icmp_for_mad(host, active);
	assert_int_equal(active->qp.suspects, 2);
	assert_true(is_established(active));
}

/* EHOSTUNREACH and ENETUNREACH can be temporary: nothing fails. The error is reported if a timeout follows. */
TEST(test_icmp_host_unreachable, testbed_open, testbed_close)
{
	struct host *host = &cm_hosts.hosts[0], *peer = &cm_hosts.hosts[1];
	struct conn *active, *connecting, *disconnecting, *passive;
	uint32_t id;

	disconnecting = connect_pair(&passive);
	do_disconnect(disconnecting);
	active = connect_pair(&passive);
	cm_hosts.dropped = DROP_ALL;
	connecting = connect_one();
	id = connecting->endpoint.cm_id->local_id;
	icmp_unreachable(host, peer, EHOSTUNREACH, MAD_QPN, id + 1, 48);
	assert_int_equal(connecting->endpoint.icmp.error, 0);
	icmp_unreachable(host, peer, EHOSTUNREACH, MAD_QPN, id, 48);
	assert_int_equal(connecting->endpoint.icmp.error, EHOSTUNREACH);
	icmp_unreachable(host, peer, ENETUNREACH, passive->qp.qpn, 0, 12);
	assert_int_equal(active->endpoint.icmp.error, ENETUNREACH);
	assert_int_equal(active->qp.suspects, 0);
	assert_true(is_established(active));
	assert_int_equal(connecting->events[SOFT_EVENT_FAILED], 0);
}

/* QPNs can be guessed: an ICMP error that quotes only a QPN does not fail a half-open connection. */
TEST(test_icmp_half_open, testbed_open, testbed_close)
{
	struct conn *active;

	cm_hosts.requested = do_accept;
	cm_hosts.dropped = DROP_RTU;
	active = connect_one();
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(state_of(passive_conn()), CM_REP_SENT);
	icmp_port_unreachable(&cm_hosts.hosts[1], &cm_hosts.hosts[0], active->qp.qpn, 0, 64);
	assert_int_equal(state_of(passive_conn()), CM_REP_SENT);
	icmp_port_unreachable(&cm_hosts.hosts[1], &cm_hosts.hosts[0], MAD_QPN, passive_conn()->endpoint.cm_id->local_id,
			      64);
	assert_int_equal(passive_conn()->code, ECONNREFUSED);
}

/* More MADs than CM_OUTGOING buffers: none is overwritten before it is sent. */
TEST(test_many_connects, testbed_open, testbed_close)
{
	enum {
		CONNECTIONS = 5 * CM_OUTGOING / 2
	};

	cm_hosts.requested = do_accept;
	for (unsigned i = 0; i < CONNECTIONS; i++)
		connect_one();
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(count_established(), 2 * CONNECTIONS);
	assert_int_equal(network->sent, 3 * CONNECTIONS);
}

enum {
	STORM_CONNECTIONS = 24
};

static void do_connect(struct conn *conn)
{
	/* Starts one of a storm's connections. conn is NULL. */
	connect_one();
}

static void do_end(struct conn *conn)
{
	switch (network_random() % 3) {
	case 0:
		do_disconnect(conn);
		break;
	case 1:
		do_release(conn);
		break;
	default: /* the other end disconnects */
		break;
	}
}

static void storm_requested(struct conn *conn)
{
	static void (*const actions[])(struct conn *) = { do_accept, do_accept, do_accept, do_reject, do_release };

	call_later(conn, testbed_time(2 * CLOCK_NS_PER_S), actions[network_random() % LENGTH(actions)]);
}

static void storm_established(struct conn *conn)
{
	for (struct conn *other = cm_hosts.conns; other; other = other->next)
		if (other->qp.qpn == conn->qp.agreement.peer_qpn && testbed_chance(50))
			call_later(other, testbed_time(300 * CLOCK_NS_PER_MS), do_receive_packet);
	call_later(conn, testbed_time(5 * CLOCK_NS_PER_S), do_end);
}

/* Counts events: proves that connections are established, and not all rejected. */
static unsigned count_events(enum soft_event_kind kind)
{
	unsigned count = 0;

	for (struct conn *conn = cm_hosts.conns; conn; conn = conn->next)
		count += conn->events[kind];
	return count;
}

static void run_storm(unsigned drop, unsigned repeat, int64_t jitter)
{
	network->loss = 10 * drop;
	network->repeat = 10 * repeat;
	network->reorder = 1000;
	network->jitter = jitter;
	cm_hosts.requested = storm_requested;
	cm_hosts.established = storm_established;
	for (unsigned i = 0; i < STORM_CONNECTIONS; i++)
		call_later(NULL, testbed_time(3 * CLOCK_NS_PER_S), do_connect);
	network_drain();
	/* Each endpoint has a final event, or is established. The peer of an established one is established, or left
	 * without a DREQ that arrived. */
	for (struct conn *conn = cm_hosts.conns; conn; conn = conn->next) {
		if (conn->released)
			continue;
		assert_true(conn->last == SOFT_EVENT_ESTABLISHED || conn->last == SOFT_EVENT_DISCONNECTED ||
			    conn->last == SOFT_EVENT_FAILED);
		if (is_established(conn))
			assert_int_equal(state_of(conn), CM_ESTABLISHED);
	}
	for (struct conn *conn = cm_hosts.conns; conn; conn = conn->next)
		do_disconnect(conn);
	cm_hosts.established = NULL;
	network_drain();
	assert_int_equal(count_established(), 0);
	release_all();
	/* Three of five requests are accepted. Each established endpoint that stays gets a disconnect event. */
	assert_in_range(count_events(SOFT_EVENT_REQUESTED), STORM_CONNECTIONS, STORM_CONNECTIONS);
	assert_in_range(count_events(SOFT_EVENT_ESTABLISHED), STORM_CONNECTIONS / 2, 2 * STORM_CONNECTIONS);
	assert_in_range(count_events(SOFT_EVENT_DISCONNECTED), STORM_CONNECTIONS / 4, 2 * STORM_CONNECTIONS);
	free_conns();
}

TEST(test_storms_with_loss, testbed_open, testbed_close)
{
	for (unsigned seed = 1; seed <= 120; seed++) {
		network_seed(seed);
		run_storm(seed % 4 * 10, seed % 3 * 20, (int64_t)(seed % 5) * 150 * CLOCK_NS_PER_MS);
	}
}
