/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/cm.wrap */
/* The connection manager: ICMP errors, and many MADs at once. */
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

/*
 * The answer to a datagram to a closed port: only the peer's own, and at most one per datagram. It ends no connection.
 */
TEST(test_icmp_from_a_closed_port, testbed_open, testbed_close)
{
	struct host *host = &cm_hosts.hosts[0], *peer = &cm_hosts.hosts[1], *other = &cm_hosts.hosts[2];
	struct soft_icmp icmp = { .peer = peer->address, .from = other->address, .error = ECONNREFUSED };
	const uint8_t nothing[1] = { 0 };
	struct conn *conns[2];

	cm_hosts.dropped = DROP_ALL;
	icmp.peer.port = UDP_PORT_CLOSED;
	for (int i = 0; i < 2; i++)
		conns[i] = connect_one();
	host->transport->endpoints = &conns[0]->endpoint;
	conns[0]->endpoint.next = &conns[1]->endpoint;
	conns[0]->endpoint.probe = SOFT_PROBE_SENT;
	for (unsigned turn = 0; turn < 4; turn++) {
		host->transport->probes = turn / 2;
		icmp.from = turn % 2 ? peer->address : other->address;
		soft_cm_unreachable(host->transport, host->socket, &icmp, nothing, 0);
		assert_int_equal(conns[0]->endpoint.probe, turn == 3 ? SOFT_PROBE_ANSWERED : SOFT_PROBE_SENT);
	}
	assert_int_equal(conns[1]->endpoint.probe, SOFT_PROBE_NONE);
	assert_int_equal(host->transport->probes, 0);
	assert_int_equal(conns[0]->endpoint.icmp.error, 0);
	assert_int_equal(conns[0]->events[SOFT_EVENT_FAILED], 0);
	host->transport->endpoints = NULL;
}

/* QPNs can be guessed: an ICMP error that quotes only a QPN does not fail a half-open connection. */
TEST(test_icmp_half_open, testbed_open, testbed_close)
{
	struct conn *active;

	cm_hosts.requested = do_accept;
	cm_hosts.dropped = DROP_RTU;
	active = connect_for_1_ms();
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
	unsigned established = 0;

	cm_hosts.requested = do_accept;
	for (unsigned i = 0; i < CONNECTIONS; i++)
		connect_one();
	network_run(CLOCK_NS_PER_MS);
	for (struct conn *conn = cm_hosts.conns; conn; conn = conn->next)
		established += is_established(conn);
	assert_int_equal(established, 2 * CONNECTIONS);
	assert_int_equal(network->sent, 3 * CONNECTIONS);
}
