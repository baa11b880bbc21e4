/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/cm.wrap */
/* The accepting side: REP, REJ, MRA and RTU. */
#include <errno.h>

#include "test/network/cm.h"
#include "transport/soft/wire/bytes.h"

TEST(test_req_private_data, testbed_open, testbed_close)
{
	struct conn *active = connect_for_1_ms();

	assert_int_equal(passive_conn()->data_length, PRIVATE_DATA_MAX);
	assert_memory_equal(passive_conn()->data, "connect", DATA_SIZE);
	do_release(active);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(passive_conn()->last, SOFT_EVENT_FAILED);
	assert_int_equal(passive_conn()->code, REJECTED_TIMEOUT);
	/* The event is not delivered yet: accepting succeeds. */
	assert_int_equal(soft_cm_accept(&passive_conn()->endpoint.base, NULL, 0), OUTCOME_OK);
}

TEST(test_reject, testbed_open, testbed_close)
{
	struct conn *active;
	struct mad mad;

	cm_hosts.requested = do_reject;
	active = connect_for_1_ms();
	assert_int_equal(active->last, SOFT_EVENT_FAILED);
	assert_string_equal(active->code_name, "reject reason");
	assert_int_equal(active->code, REJECTED_BY_CONSUMER);
	assert_memory_equal(active->data, "not you", DATA_SIZE);
	assert_non_null(last_sent(MAD_REJ, &cm_hosts.hosts[1], &mad));
	assert_int_equal(mad.local_id, 0);
	assert_int_equal(mad.rej.answered, MAD_ANSWERED_REQ);
	do_release(active);
	network_drain();
	assert_int_equal(network->sent, 2);
}

/* Without data packets the repeated REP causes another RTU. */
TEST(test_repeated_rtu, testbed_open, testbed_close)
{
	connect_dropping(DROP_RTU);
	cm_hosts.dropped = 0;
	network_run(100 * CLOCK_NS_PER_MS);
	assert_true(is_established(passive_conn()));
	assert_int_equal(count_sent(MAD_RTU), 2);
}

/* The REJ is lost, too. A stock peer accepts only a REJ that answers its REQ. */
TEST(test_lost_rej_after_accept, testbed_open, testbed_close)
{
	struct conn *active = connect_dropping(DROP_REP);
	struct mad mad;

	cm_hosts.dropped = DROP_ALL;
	do_release(passive_conn());
	network_run(CLOCK_NS_PER_MS);
	assert_non_null(last_sent(MAD_REJ, &cm_hosts.hosts[1], &mad));
	assert_int_equal(mad.rej.answered, MAD_ANSWERED_OTHER);
	cm_hosts.dropped = 0;
	network_run(CLOCK_NS_PER_S);
	assert_non_null(last_sent(MAD_REJ, &cm_hosts.hosts[1], &mad));
	assert_int_equal(mad.rej.answered, MAD_ANSWERED_REQ);
	assert_int_equal(mad.local_id, 0);
	assert_int_equal(active->code, REJECTED_BY_CONSUMER);
}

/* The REP arrived, the REJ was lost: the RTU gets the REJ again. */
TEST(test_late_rtu, testbed_open, testbed_close)
{
	struct conn *active = connect_dropping(DROP_RTU);
	struct mad rtu;

	assert_true(is_established(active));
	assert_non_null(last_sent(MAD_RTU, &cm_hosts.hosts[0], &rtu));
	cm_hosts.dropped = DROP_REJ;
	do_release(passive_conn());
	network_run(CLOCK_NS_PER_MS);
	cm_hosts.dropped = 0;
	testbed_inject(&cm_hosts.hosts[0], &cm_hosts.hosts[1], &rtu);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(active->last, SOFT_EVENT_FAILED);
}

/* A repeated REQ gets the REP at once. */
TEST(test_repeated_req, testbed_open, testbed_close)
{
	struct conn *active = connect_dropping(DROP_REP);
	struct mad mad;

	assert_non_null(last_sent(MAD_REQ, &cm_hosts.hosts[0], &mad));
	cm_hosts.dropped = 0;
	testbed_inject(&cm_hosts.hosts[0], &cm_hosts.hosts[1], &mad);
	network_run(CLOCK_NS_PER_MS);
	assert_true(is_established(active) && is_established(passive_conn()));
	assert_int_equal(count_sent(MAD_REP), 2);
	/* After the connection is established it gets no response. */
	testbed_inject(&cm_hosts.hosts[0], &cm_hosts.hosts[1], &mad);
	network_run(CLOCK_NS_PER_MS);
	assert_true(is_established(active) && is_established(passive_conn()));
	assert_int_equal(network->sent, 4);
}

static struct path_options few_retries = PATH_OPEN;

static void accept_with_few_retries(struct conn *conn)
{
	conn->endpoint.base.options.path = &few_retries;
	do_accept(conn);
}

/* Each used field of a REQ, with distinct values, and with values above our limits. */
TEST(test_req_fields, testbed_open, testbed_close)
{
	const struct host *client = &cm_hosts.hosts[1], *server = &cm_hosts.hosts[0];
	static const struct {
		uint8_t responder_resources, initiator_depth, reads_out, reads_in;
	} rows[] = { { 2, 3, 2, 3 }, { 3, 2, 3, 2 }, { 0, 0, 0, 0 }, { 16, 16, 16, 16 }, { 17, 255, 16, 16 } };

	cm_hosts.hosts[0].listens = true;
	cm_hosts.dropped = DROP_ALL;
	few_retries.rnr_retry = 4;
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct mad mad = captured("req4", NULL), response;
		const struct soft_agreement *agreement = NULL;

		cm_hosts.requested = row ? do_accept : accept_with_few_retries;
		mad.local_id += (uint32_t)row;
		mad.req.qpn = 0x100 + (uint32_t)row;
		mad.req.starting_psn = 0x123456;
		mad.req.retry_count = 6;
		mad.req.rnr_retry_count = 5;
		mad.req.path.ack_timeout = 16;
		mad.req.path_mtu = 2;
		mad.req.responder_resources = rows[row].responder_resources;
		mad.req.initiator_depth = rows[row].initiator_depth;
		testbed_inject(client, server, &mad);
		network_run(CLOCK_NS_PER_MS);
		agreement = &passive_conn()->qp.agreement;
		assert_int_equal(agreement->peer_qpn, 0x100 + row);
		assert_int_equal(agreement->sq_psn, 0x123456);
		assert_int_equal(agreement->retry_count, 6);
		assert_int_equal(agreement->rnr_retry_count, 5);
		assert_int_equal(agreement->ack_timeout, 16);
		assert_int_equal(passive_conn()->endpoint.path.mtu, 512);
		assert_int_equal(agreement->reads_out, rows[row].reads_out);
		assert_int_equal(agreement->reads_in, rows[row].reads_in);
		assert_non_null(last_sent(MAD_REP, server, &response));
		assert_int_equal(response.remote_id, mad.local_id);
		assert_int_equal(response.rep.qpn, passive_conn()->qp.qpn);
		assert_int_equal(response.rep.starting_psn, agreement->rq_psn);
		assert_int_equal(response.rep.responder_resources, rows[row].reads_in);
		assert_int_equal(response.rep.initiator_depth, rows[row].reads_out);
		assert_int_equal(response.rep.rnr_retry_count, row ? 7 : 4);
		assert_int_equal(response.rep.target_ack_delay, 15);
		assert_int_equal(response.rep.ca_guid, cm_hosts.hosts[0].transport->guid);
		do_release(passive_conn());
		testbed_flush();
	}
}

/* Each gets a REJ, and leaves no state. */
TEST(test_invalid_reqs, testbed_open, testbed_close)
{
	enum {
		HEADER = 24,
		PRIVATE = 140
	};
	static const struct {
		unsigned byte, length, value, reason;
	} rows[] = {
		{ 0, 4, 0, REJECTED_BY_CONSUMER },	   /* the identifier */
		{ 10, 1, 1, REJECTED_NO_LISTENER },	   /* the service */
		{ 32, 3, 0, REJECTED_BY_CONSUMER },	   /* the QPN */
		{ 32, 3, PSN_MASK, REJECTED_BY_CONSUMER }, /* the group QPN */
		{ 43, 1, 0xa2, REJECTED_TRANSPORT },	   /* UC */
		{ 50, 1, 0x07, REJECTED_MTU },
		{ 50, 1, 0x57, REJECTED_MTU }, /* larger than ours */
		{ 50, 1, 0x67, REJECTED_MTU },
		{ 71, 1, 9, REJECTED_GID },
		{ 87, 1, 9, REJECTED_GID },
		{ PRIVATE + 1, 1, 0, REJECTED_BY_CONSUMER }, /* the version of IP */
		{ PRIVATE + 19, 1, 9, REJECTED_BY_CONSUMER },
		{ PRIVATE + 35, 1, 9, REJECTED_BY_CONSUMER },
	};

	cm_hosts.dropped = DROP_ALL;
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct conn *active = connect_one();
		struct mad mad, response;
		struct sent_mad request;
		uint64_t before;

		testbed_flush();
		request = *last_sent(MAD_REQ, &cm_hosts.hosts[0], &mad);
		do_release(active);
		testbed_flush();
		before = state_hash();
		bytes_write(request.bytes + HEADER + rows[row].byte, rows[row].length, rows[row].value);
		assert_true(parse_sent(&request, &mad));
		testbed_deliver(&request);
		testbed_flush();
		assert_int_equal(state_hash(), before);
		assert_non_null(last_sent(MAD_REJ, &cm_hosts.hosts[1], &response));
		assert_int_equal(response.transaction, mad.transaction);
		assert_int_equal(response.remote_id, mad.local_id);
		assert_int_equal(response.local_id, 0);
		assert_int_equal(response.rej.answered, MAD_ANSWERED_REQ);
		assert_int_equal(response.rej.reason, rows[row].reason);
	}
}

/* A copy of a vanished client's REQ. */
static struct mad old_request(uint8_t private_data[MAD_REQ_PRIVATE])
{
	struct conn *active = connect_one();
	struct mad mad;

	testbed_flush();
	assert_non_null(last_sent(MAD_REQ, &cm_hosts.hosts[0], &mad));
	memcpy(private_data, mad.private_data, MAD_REQ_PRIVATE);
	mad.private_data = private_data;
	do_release(active);
	testbed_flush();
	return mad;
}

/* A NAT changes addresses that the ICRC covers: one line for a request and its resends. */
TEST(test_request_through_a_nat, testbed_open, testbed_close)
{
	static const char line[] = "refused a request from 10.0.0.1: it names 10.0.0.1 and 10.0.0.9 as its addresses";
	uint8_t private_data[MAD_REQ_PRIVATE], bytes[MAD_SIZE];
	struct mad mad = old_request(private_data);
	struct host *host = &cm_hosts.hosts[1];
	uint64_t before = state_hash();
	struct mad_address address;
	struct capture capture;
	unsigned lines = 0;

	capture_begin(&capture);
	for (unsigned turn = 0; turn < 4; turn++) {
		/* At first it is only damaged, then it is sent twice, then another one follows. */
		if (turn == 1) {
			assert_true(mad_address_parse(private_data, sizeof(private_data), &address));
			address.destination[3] = 9;
			mad_address_write(&address, private_data);
		}
		mad.transaction += turn == 3;
		mad_write(&mad, bytes);
		soft_cm_receive(host->transport, host->socket, &cm_hosts.hosts[0].address, bytes, sizeof(bytes), true);
	}
	for (const char *text = capture_end(&capture); (text = strstr(text, line)); text++)
		lines++;
	assert_int_equal(lines, 2);
	testbed_flush();
	assert_int_equal(state_hash(), before);
	assert_null(last_sent(MAD_REJ, host, &mad));
}

/* Without a route back the request gets no answer, and a line on this side. */
TEST(test_no_route_back, testbed_open, testbed_close)
{
	uint8_t private_data[MAD_REQ_PRIVATE];
	struct mad mad = old_request(private_data);
	uint64_t before = state_hash();
	struct capture capture;

	mad.transaction++;
	network->route_error = ENETUNREACH;
	capture_begin(&capture);
	testbed_inject(&cm_hosts.hosts[0], &cm_hosts.hosts[1], &mad);
	assert_non_null(strstr(capture_end(&capture), "test: 10.0.0.1: finding the route to answer a request: "
						      "Network is unreachable (101)\n"));
	assert_int_equal(state_hash(), before);
	assert_null(last_sent(MAD_REJ, &cm_hosts.hosts[1], &mad));
}

/* A REQ with the QPN of an established connection is rejected. The connection stays, and its peer is probed. */
TEST(test_stale_qpn, testbed_open, testbed_close)
{
	struct conn *passive, *active = connect_pair(&passive);
	struct mad mad, response;
	uint64_t before;

	assert_non_null(last_sent(MAD_REQ, &cm_hosts.hosts[0], &mad));
	mad.local_id ^= 1;
	before = state_hash();
	testbed_inject(&cm_hosts.hosts[0], &cm_hosts.hosts[1], &mad);
	assert_int_equal(state_hash(), before);
	assert_non_null(last_sent(MAD_REJ, &cm_hosts.hosts[1], &response));
	assert_int_equal(response.rej.reason, REJECTED_STALE);
	assert_int_equal(passive->qp.probes, 1);
	assert_int_equal(active->last, SOFT_EVENT_ESTABLISHED);
	/* After timewait begins the QPN may be reused; the identifiers may not. */
	do_disconnect(active);
	network_run(CLOCK_NS_PER_MS);
	do_release(active);
	do_release(passive);
	mad.local_id ^= 1;
	testbed_inject(&cm_hosts.hosts[0], &cm_hosts.hosts[1], &mad);
	assert_non_null(last_sent(MAD_REJ, &cm_hosts.hosts[1], &response));
	assert_int_equal(response.rej.reason, REJECTED_STALE);
	mad.local_id ^= 1;
	mad.transaction++;
	cm_hosts.dropped = DROP_ALL;
	testbed_inject(&cm_hosts.hosts[0], &cm_hosts.hosts[1], &mad);
	assert_ptr_not_equal(passive_conn(), passive);
}
