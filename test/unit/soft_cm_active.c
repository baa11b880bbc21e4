/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/cm.wrap */
/* The connecting side: REQ and the responses to it. */
#include <errno.h>

#include "test/network/cm.h"

TEST(test_request, testbed_open, testbed_close)
{
	struct conn *active;
	struct mad mad;
	struct mad_address address;
	static const uint8_t gids[2][MAD_GID_SIZE] = {
		{ [10] = 0xff, 0xff, 10, 0, 0, 1 },
		{ [10] = 0xff, 0xff, 10, 0, 0, 2 },
	};

	active = connect_one();
	testbed_flush();
	assert_non_null(last_sent(MAD_REQ, &cm_hosts.hosts[0], &mad));
	assert_int_equal(mad.local_id, active->endpoint.cm_id->local_id);
	assert_int_equal(mad.remote_id, 0);
	assert_int_equal(mad.req.service_id, 0x01060000 + PORT);
	assert_int_equal(mad.req.ca_guid, cm_hosts.hosts[0].transport->guid);
	assert_int_equal(mad.req.qpn, active->qp.qpn);
	assert_int_equal(mad.req.transport, MAD_TRANSPORT_RC);
	assert_int_equal(mad.req.local_response_timeout, 18);
	assert_int_equal(mad.req.remote_response_timeout, 20);
	assert_int_equal(mad.req.max_cm_retries, 15);
	assert_int_equal(mad.req.retry_count, 7);
	assert_int_equal(mad.req.rnr_retry_count, 7);
	assert_int_equal(mad.req.pkey, 0xffff);
	assert_int_equal(mad.req.path_mtu, 3);
	assert_true(mad.req.responder_resources && mad.req.initiator_depth);
	assert_int_equal(mad.req.path.ack_timeout, 18);
	assert_int_equal(mad.req.path.local_lid, 0xffff);
	assert_int_equal(mad.req.path.remote_lid, 0xffff);
	assert_memory_equal(mad.req.path.local_gid, gids[0], MAD_GID_SIZE);
	assert_memory_equal(mad.req.path.remote_gid, gids[1], MAD_GID_SIZE);
	assert_true(mad.req.path.hop_limit > 1 && mad.req.path.packet_rate);
	assert_true(mad_address_parse(mad.private_data, mad.private_length, &address));
	assert_int_equal(address.version, 4);
	assert_int_equal(address.port, 40000);
	assert_memory_equal(address.source, cm_hosts.hosts[0].address.bytes, 4);
	assert_memory_equal(address.destination, cm_hosts.hosts[1].address.bytes, 4);
	assert_memory_equal(mad.private_data + MAD_ADDRESS_SIZE, "connect", DATA_SIZE);
}

TEST(test_connect_and_disconnect, testbed_open, testbed_close)
{
	struct conn *passive, *active = connect_pair(&passive);

	check_agreement(active, passive);
	assert_int_equal(active->data_length, MAD_REP_PRIVATE);
	assert_memory_equal(active->data, "accept!", DATA_SIZE);
	assert_int_equal(passive->endpoint.base.peer.port, 40000);
	assert_int_equal(network->sent, 3);
	do_disconnect(active);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(active->last, SOFT_EVENT_DISCONNECTED);
	assert_int_equal(passive->last, SOFT_EVENT_DISCONNECTED);
	assert_int_equal(network->sent, 5);
	/* The command disconnects after the peer did. */
	assert_int_equal(soft_cm_disconnect(&passive->endpoint.base), OUTCOME_OK);
	do_release(active);
	do_release(passive);
	network_drain();
	assert_int_equal(network->sent, 5);
}

/* Connects with the client's options and type of service, and those of the listener. */
static struct conn *connect_with(const struct path_options *client, uint8_t tos, const struct path_options *server)
{
	struct conn *active = conn_create(&cm_hosts.hosts[0]);

	active->endpoint.path = (struct soft_path){ .socket = cm_hosts.hosts[0].socket,
						    .local = cm_hosts.hosts[0].address,
						    .peer = cm_hosts.hosts[1].address,
						    .mtu = 1024,
						    .type_of_service = tos };
	active->endpoint.base.peer.port = PORT;
	active->endpoint.base.options.path = client;
	cm_hosts.hosts[1].listener.base.options.path = server;
	cm_hosts.requested = do_accept;
	assert_int_equal(soft_cm_connect(&active->endpoint.base, NULL, 0), OUTCOME_OK);
	network_run(CLOCK_NS_PER_MS);
	assert_true(is_established(active));
	cm_hosts.hosts[1].listener.base.options.path = &path_unset;
	return active;
}

static struct path_options server_options = PATH_OPEN;

/* As the command does with a request's endpoint. */
static void accept_with_options(struct conn *conn)
{
	conn->endpoint.base.options.path = &server_options;
	do_accept(conn);
}

/* The options of the passive side take precedence over the REQ. */
TEST(test_options, testbed_open, testbed_close)
{
	struct path_options path = PATH_OPEN;
	struct conn *active;

	path.ack_timeout = 14;
	path.retry = 2;
	path.rnr_retry = 3;
	active = connect_with(&path, 0x20, &path_unset);
	assert_int_equal(active->qp.agreement.ack_timeout, 14);
	assert_int_equal(active->qp.agreement.retry_count, 2);
	assert_int_equal(active->qp.agreement.rnr_retry_count, 7); /* the peer's rnr_retry_count */
	assert_int_equal(passive_conn()->qp.agreement.ack_timeout, 14);
	assert_int_equal(passive_conn()->qp.agreement.retry_count, 2);
	assert_int_equal(passive_conn()->qp.agreement.rnr_retry_count, 3);

	server_options.mtu = 512;
	server_options.type_of_service = 0x40;
	server_options.ack_timeout = 16;
	cm_hosts.hosts[1].listener.base.options.path = &server_options;
	cm_hosts.requested = accept_with_options;
	active = connect_for_1_ms();
	assert_true(is_established(active));
	assert_int_equal(passive_conn()->endpoint.path.mtu, 512);
	assert_int_equal(passive_conn()->endpoint.path.type_of_service, 0x40);
	assert_int_equal(passive_conn()->qp.agreement.ack_timeout, 16);
	cm_hosts.hosts[1].listener.base.options.path = &path_unset;
}

/* The type of service of the REQ is used in both directions, unless the listener's options set one, or it is one of
 * network control. The ECN bits are cleared: soft does not react to ECN marks. */
TEST(test_type_of_service, testbed_open, testbed_close)
{
	static const struct {
		uint8_t of_request;
		int64_t dscp, type_of_service; /* of the listener */
		uint8_t of_passive;
	} rows[] = {
		{ 0x20, PATH_UNSET, PATH_UNSET, 0x20 }, { 0x23, PATH_UNSET, PATH_UNSET, 0x20 },
		{ 0xb9, PATH_UNSET, PATH_UNSET, 0xb8 }, { 0xb8, 0, PATH_UNSET, 0 },
		{ 0x20, 46, PATH_UNSET, 0xb8 },		{ 0xb8, PATH_UNSET, 0x63, 0x60 },
		{ 0xbf, PATH_UNSET, PATH_UNSET, 0xbc }, { 0xc0, PATH_UNSET, PATH_UNSET, 0 },
		{ 0xe0, PATH_UNSET, PATH_UNSET, 0 },	{ 0xe0, 56, PATH_UNSET, 0xe0 },
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct path_options path = PATH_OPEN;

		path.dscp = rows[row].dscp;
		path.type_of_service = rows[row].type_of_service;
		connect_with(&path_unset, rows[row].of_request, &path);
		assert_int_equal(passive_conn()->endpoint.path.type_of_service, rows[row].of_passive);
	}
}

/* The passive side offers its smaller MTU in a REJ; a new REQ uses it. */
TEST(test_smaller_mtu, testbed_open, testbed_close)
{
	static const uint8_t mtu_1024 = 3;
	struct conn *active;
	struct mad first, second, rej;

	cm_hosts.hosts[0].mtu = 4096;
	cm_hosts.requested = do_accept;
	active = connect_for_1_ms();
	assert_true(is_established(active) && is_established(passive_conn()));
	check_agreement(active, passive_conn());
	assert_int_equal(active->endpoint.path.mtu, 1024);
	/* The second REQ has new identifiers: a late reply to the first does not match. */
	assert_true(parse_sent(&cm_hosts.sent[0], &first));
	assert_non_null(last_sent(MAD_REQ, &cm_hosts.hosts[0], &second));
	assert_int_not_equal(first.transaction, second.transaction);
	assert_int_not_equal(first.local_id, second.local_id);
	do_release(active);
	do_release(passive_conn());
	/* A REJ with an MTU that is not smaller fails the connection: otherwise REQs would repeat endlessly. */
	cm_hosts.dropped = DROP_ALL;
	active = connect_one();
	testbed_flush();
	active->endpoint.path.mtu = 1024;
	rej = mad_forge(MAD_REJ, active, &cm_hosts.hosts[1]);
	rej.rej.reason = REJECTED_MTU;
	rej.rej.information = &mtu_1024;
	rej.rej.information_length = 1;
	testbed_inject(&cm_hosts.hosts[1], &cm_hosts.hosts[0], &rej);
	assert_int_equal(active->last, SOFT_EVENT_FAILED);
	do_release(active);
	cm_hosts.dropped = 0;
	/* The active side has the smaller MTU. */
	cm_hosts.hosts[0].mtu = 256;
	active = connect_for_1_ms();
	check_agreement(active, passive_conn());
	assert_int_equal(active->endpoint.path.mtu, 256);
}

TEST(test_no_response, testbed_open, testbed_close)
{
	struct conn *active;

	cm_hosts.dropped = DROP_ALL;
	active = connect_one();
	network_run(3 * CLOCK_NS_PER_S);
	assert_true(count_sent(MAD_REQ) >= 5 && count_sent(MAD_REQ) <= 7);
	network_run(57 * CLOCK_NS_PER_S);
	assert_int_equal(state_of(active), CM_REQ_SENT);
	network_drain();
	assert_true(network->now - NETWORK_BEGIN < 100 * CLOCK_NS_PER_S);
	assert_int_equal(active->last, SOFT_EVENT_FAILED);
	assert_int_equal(active->code, ETIMEDOUT);
}

TEST(test_mra, testbed_open, testbed_close)
{
	struct conn *active = connect_one();
	struct mad mad;

	network_run(200 * CLOCK_NS_PER_MS);
	assert_int_equal(state_of(passive_conn()), CM_REQ_RECEIVED);
	assert_non_null(last_sent(MAD_MRA, &cm_hosts.hosts[1], &mad));
	assert_int_equal(mad.mra.answered, MAD_ANSWERED_REQ);
	assert_int_equal(count_sent(MAD_REQ), 2);
	network_run(1500 * CLOCK_NS_PER_MS);
	assert_int_equal(count_sent(MAD_REQ), 2);
	network_run(60 * CLOCK_NS_PER_S);
	assert_int_equal(state_of(active), CM_REQ_SENT);
	do_accept(passive_conn());
	network_run(CLOCK_NS_PER_MS);
	assert_true(is_established(active) && is_established(passive_conn()));
}

/* Connects within a second after MADs were dropped for that long. Returns the number of REQs counted as repeated. */
static uint64_t requests_repeated(int64_t silence)
{
	const struct network_counter *count = &cm_hosts.hosts[0].transport->counts[SOFT_REPEATED_REQS];
	uint64_t before = count->increase;
	struct conn *active;

	cm_hosts.requested = do_accept;
	cm_hosts.dropped = DROP_ALL;
	active = connect_one();
	network_run(silence);
	assert_int_equal(count->increase, before);
	cm_hosts.dropped = 0;
	network_run(2 * CLOCK_NS_PER_S);
	assert_true(is_established(active));
	return count->increase - before;
}

/* A server that is only busy answers within a second, or sends an MRA. */
TEST(test_unanswered_requests_are_counted, testbed_open, testbed_close)
{
	struct conn *active;

	assert_int_equal(requests_repeated(0), 0);
	assert_int_equal(requests_repeated(150 * CLOCK_NS_PER_MS), 0);
	assert_int_equal(requests_repeated(2 * CLOCK_NS_PER_S), 5);
	cm_hosts.requested = NULL;
	active = connect_one();
	network_run(10 * CLOCK_NS_PER_S);
	do_accept(passive_conn());
	network_run(CLOCK_NS_PER_MS);
	assert_true(is_established(active));
	assert_int_equal(cm_hosts.hosts[0].transport->counts[SOFT_REPEATED_REQS].increase, 5);
}

/* The active side releases the connection; then the peer accepts, also after the timewait of the active side. */
TEST(test_late_rep, testbed_open, testbed_close)
{
	struct mad mad;

	for (int64_t late = CLOCK_NS_PER_MS; late < 61 * CLOCK_NS_PER_S; late += 60 * CLOCK_NS_PER_S) {
		struct conn *active = connect_for_1_ms();

		cm_hosts.dropped = DROP_REJ;
		do_release(active);
		network_run(late);
		cm_hosts.dropped = 0;
		do_accept(passive_conn());
		network_run(CLOCK_NS_PER_MS);
		assert_int_equal(passive_conn()->code, late < CLOCK_NS_PER_S ? REJECTED_TIMEOUT : REJECTED_INVALID_ID);
		assert_non_null(last_sent(MAD_REJ, &cm_hosts.hosts[0], &mad));
		assert_int_equal(mad.rej.answered, MAD_ANSWERED_REP);
		assert_int_equal(mad.remote_id, passive_conn()->endpoint.cm_id->local_id);
	}
}

/* A REP that arrives after the connection failed gets a REJ, so that the peer does not wait for its timeout. */
TEST(test_rep_after_failure, testbed_open, testbed_close)
{
	struct conn *active = connect_dropping(DROP_REP);

	icmp_for_mad(&cm_hosts.hosts[0], active);
	assert_int_equal(state_of(active), CM_TIMEWAIT);
	cm_hosts.dropped = 0;
	network_run(CLOCK_NS_PER_S);
	assert_int_equal(passive_conn()->last, SOFT_EVENT_FAILED);
	assert_int_equal(passive_conn()->code, REJECTED_INVALID_ID);
}

TEST(test_invalid_rep, testbed_open, testbed_close)
{
	struct conn *active;
	struct mad mad, response;

	cm_hosts.dropped = DROP_ALL;
	active = connect_one();
	mad = mad_forge(MAD_REP, active, &cm_hosts.hosts[1]);
	mad.rep.qpn = 1;
	testbed_inject(&cm_hosts.hosts[1], &cm_hosts.hosts[0], &mad);
	assert_int_equal(active->last, SOFT_EVENT_FAILED);
	assert_int_equal(active->qp.state, QP_RESET);
	assert_non_null(last_sent(MAD_REJ, &cm_hosts.hosts[0], &response));
	assert_int_equal(response.remote_id, mad.local_id);
}

/* A restarted peer reuses a QPN: the older connection with that QPN fails. */
TEST(test_peer_restart, testbed_open, testbed_close)
{
	struct conn *older, *newer, *passive;
	struct mad mad;

	older = connect_pair(&passive);
	cm_hosts.dropped = DROP_ALL;
	newer = connect_one();
	mad = mad_forge(MAD_REP, newer, &cm_hosts.hosts[1]);
	mad.rep.qpn = passive->qp.qpn;
	testbed_inject(&cm_hosts.hosts[1], &cm_hosts.hosts[0], &mad);
	assert_true(is_established(newer));
	assert_int_equal(older->last, SOFT_EVENT_FAILED);
	assert_int_equal(older->code, ECONNRESET);
}

/* Each used field of a REP, with distinct values, and with values above our limits. */
TEST(test_rep_fields, testbed_open, testbed_close)
{
	const struct host *client = &cm_hosts.hosts[1], *server = &cm_hosts.hosts[0];
	static const struct {
		uint8_t responder_resources, initiator_depth, reads_out, reads_in;
	} rows[] = { { 2, 3, 2, 3 }, { 3, 2, 3, 2 }, { 0, 0, 0, 0 }, { 4, 4, 4, 4 }, { 5, 255, 4, 4 } };

	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct conn *active;
		struct mad mad;

		cm_hosts.dropped = DROP_ALL;
		active = connect_from(&cm_hosts.hosts[1], server, PORT);
		mad = captured("rep4", active);
		mad.local_id += (uint32_t)row;
		mad.rep.qpn = 0x100 + (uint32_t)row;
		mad.rep.starting_psn = 0x123456;
		mad.rep.rnr_retry_count = 5;
		mad.rep.responder_resources = rows[row].responder_resources;
		mad.rep.initiator_depth = rows[row].initiator_depth;
		testbed_inject(server, client, &mad);
		assert_true(is_established(active));
		assert_int_equal(active->qp.agreement.peer_qpn, 0x100 + row);
		assert_int_equal(active->qp.agreement.sq_psn, 0x123456);
		assert_int_equal(active->qp.agreement.rnr_retry_count, 5);
		assert_int_equal(active->qp.agreement.reads_out, rows[row].reads_out);
		assert_int_equal(active->qp.agreement.reads_in, rows[row].reads_in);
		do_release(active);
		testbed_flush();
	}
}
