/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/cm.wrap */
/* How a connection is asked for: REQ, and what answers it. */
#include <errno.h>

#include "test/network/cm.h"

static void test_request(void **state)
{
	struct party *active;
	struct mad mad;
	struct mad_address address;
	static const uint8_t gids[2][MAD_GID_SIZE] = {
		{ [10] = 0xff, 0xff, 10, 0, 0, 1 },
		{ [10] = 0xff, 0xff, 10, 0, 0, 2 },
	};

	(void)state;
	active = connect_one();
	world_flush();
	assert_non_null(last_of(MAD_REQ, &world.hosts[0], &mad));
	assert_int_equal(mad.local_id, active->endpoint.cm_id->local_id);
	assert_int_equal(mad.remote_id, 0);
	assert_int_equal(mad.req.service_id, 0x01060000 + PORT);
	assert_int_equal(mad.req.ca_guid, world.hosts[0].transport->guid);
	assert_int_equal(mad.req.qpn, active->qp.number);
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
	assert_true(mad.req.path.hop_limit > 1 && mad.req.path.packet_rate && !mad.req.path.subnet_local);
	assert_false(mad.req.alternate_path);
	assert_true(mad_address_parse(mad.private_data, mad.private_length, &address));
	assert_int_equal(address.version, 4);
	assert_int_equal(address.port, 40000);
	assert_memory_equal(address.source, world.hosts[0].address.bytes, 4);
	assert_memory_equal(address.destination, world.hosts[1].address.bytes, 4);
	assert_memory_equal(mad.private_data + MAD_ADDRESS_SIZE, "connect", DATA_SIZE);
	do_forget(active);
}

static void test_connect_and_disconnect(void **state)
{
	struct party *active, *passive;

	(void)state;
	active = connect_pair(&passive);
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
	/* Late: the command is still about to disconnect. */
	assert_int_equal(soft_cm_disconnect(&passive->endpoint), OUTCOME_OK);
	do_forget(active);
	do_forget(passive);
	network_drain();
	assert_int_equal(network->sent, 5);
	check_nothing_left();
}

static void test_options(void **state)
{
	struct path_options path = PATH_OPEN;
	struct party *active;

	(void)state;
	world.requested = do_accept;
	active = connect_one();
	do_forget(active);
	active = party_create(&world.hosts[0]);
	active->endpoint.path = (struct soft_path){ .socket = world.hosts[0].socket,
						    .local = world.hosts[0].address,
						    .peer = world.hosts[1].address,
						    .mtu = 1024,
						    .type_of_service = 0x20 };
	path.ack_timeout = 14;
	path.retry = 2;
	path.rnr_retry = 3;
	active->endpoint.base.options.path = &path;
	active->endpoint.base.peer.port = PORT;
	assert_int_equal(soft_cm_connect(&active->endpoint, NULL, 0), OUTCOME_OK);
	network_run(CLOCK_NS_PER_MS);
	assert_true(is_up(active));
	assert_int_equal(active->qp.agreement.ack_timeout, 14);
	assert_int_equal(active->qp.agreement.retry_count, 2);
	assert_int_equal(active->qp.agreement.rnr_retry_count, 7); /* as the other end wants it */
	assert_int_equal(guest()->qp.agreement.ack_timeout, 14);
	assert_int_equal(guest()->qp.agreement.retry_count, 2);
	assert_int_equal(guest()->qp.agreement.rnr_retry_count, 3);
	do_forget(active);
	do_forget(guest());
}

/* With this type of service at the connecting end, and what the listener's own options ask for. Returns the listener's.
 */
static uint8_t type_of_service(struct path_options *path, uint8_t asked)
{
	struct party *active = party_create(&world.hosts[0]);
	uint8_t answer;

	active->endpoint.path = (struct soft_path){ .socket = world.hosts[0].socket,
						    .local = world.hosts[0].address,
						    .peer = world.hosts[1].address,
						    .mtu = 1024,
						    .type_of_service = asked };
	active->endpoint.base.peer.port = PORT;
	world.hosts[1].listener.base.options.path = path;
	assert_int_equal(soft_cm_connect(&active->endpoint, NULL, 0), OUTCOME_OK);
	network_run(CLOCK_NS_PER_MS);
	assert_true(is_up(active));
	answer = guest()->qp.agreement.path.type_of_service;
	world.hosts[1].listener.base.options.path = NULL;
	do_forget(active);
	do_forget(guest());
	return answer;
}

/*
 * A peer's request says how both directions are marked, unless the listener's own options do. The two bits of ECN are
 * neither's: nothing here slows down when a router marks a packet.
 */
static void test_type_of_service(void **state)
{
	struct path_options path = PATH_OPEN;

	(void)state;
	world.requested = do_accept;
	assert_int_equal(type_of_service(NULL, 0x20), 0x20);
	assert_int_equal(type_of_service(NULL, 0x23), 0x20);
	assert_int_equal(type_of_service(&path, 0xb9), 0xb8);
	path.dscp = 0;
	assert_int_equal(type_of_service(&path, 0xb8), 0);
	path.dscp = 46;
	assert_int_equal(type_of_service(&path, 0x20), 0xb8);
	path.dscp = PATH_UNSET;
	path.type_of_service = 0x63;
	assert_int_equal(type_of_service(&path, 0xb8), 0x60);
}

/* The other end has a smaller interface: what it offers is taken. */
static void test_smaller_mtu(void **state)
{
	static const uint8_t no_smaller = 3;
	struct party *active;
	struct mad first, second, refusal;

	(void)state;
	world.hosts[0].mtu = 4096;
	world.requested = do_accept;
	active = connect_one();
	network_run(CLOCK_NS_PER_MS);
	assert_true(is_up(active) && is_up(guest()));
	check_agreement(active, guest());
	assert_int_equal(active->qp.agreement.path.mtu, 1024);
	assert_int_equal(active->endpoint.path.mtu, 1024);
	/* The second request is another one, which a late answer to the first cannot be for. */
	assert_true(mad_of_flight(&world.seen[0], &first));
	assert_non_null(last_of(MAD_REQ, &world.hosts[0], &second));
	assert_int_not_equal(first.transaction, second.transaction);
	assert_int_not_equal(first.local_id, second.local_id);
	do_forget(active);
	do_forget(guest());
	/* A peer that names what is no smaller would be asked for ever. */
	world.allowed = nothing_at_all;
	active = connect_one();
	world_flush();
	active->endpoint.cm_id->agreement.path.mtu = 1024;
	refusal = mad_forge(MAD_REJ, active, &world.hosts[1]);
	refusal.rej.reason = MAD_REASON_MTU;
	refusal.rej.information = &no_smaller;
	refusal.rej.information_length = 1;
	world_inject(&world.hosts[1], &world.hosts[0], &refusal);
	assert_int_equal(active->last, SOFT_EVENT_FAILED);
	do_forget(active);
	world.allowed = NULL;
	/* And the other way round. */
	world.hosts[0].mtu = 256;
	active = connect_one();
	network_run(CLOCK_NS_PER_MS);
	check_agreement(active, guest());
	assert_int_equal(active->qp.agreement.path.mtu, 256);
	do_forget(active);
	do_forget(guest());
	network_drain();
	check_nothing_left();
}

static struct path_options of_the_server = PATH_OPEN;

static void accept_with_options(struct party *party)
{
	party->endpoint.base.options.path = &of_the_server;
	do_accept(party);
}

/* What the server's own options say goes before what the request asks for. */
static void test_options_of_the_server(void **state)
{
	struct party *active;

	(void)state;
	of_the_server.mtu = 512;
	of_the_server.type_of_service = 0x40;
	of_the_server.ack_timeout = 16;
	world.hosts[1].listener.base.options.path = &of_the_server;
	world.requested = accept_with_options;
	active = connect_one();
	network_run(CLOCK_NS_PER_MS);
	assert_true(is_up(active));
	assert_int_equal(guest()->qp.agreement.path.mtu, 512);
	assert_int_equal(guest()->qp.agreement.path.type_of_service, 0x40);
	assert_int_equal(guest()->qp.agreement.ack_timeout, 16);
	do_forget(active);
	do_forget(guest());
	world.hosts[1].listener.base.options.path = NULL;
}

static void test_with_oneself(void **state)
{
	struct party *active, *passive;

	(void)state;
	world.requested = do_accept;
	active = connect_from(&world.hosts[1], &world.hosts[1], PORT);
	network_run(CLOCK_NS_PER_MS);
	passive = guest();
	assert_true(is_up(active) && is_up(passive));
	check_agreement(active, passive);
	do_disconnect(passive);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(active->last, SOFT_EVENT_DISCONNECTED);
	do_forget(active);
	do_forget(passive);
	network_drain();
	check_nothing_left();
}

static void test_ip6(void **state)
{
	struct party *active, *passive;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		host_move(&world.hosts[i], &(struct address){ .family = ADDRESS_IP6,
							      .bytes = { 0xfe, 0x80, [15] = (uint8_t)(i + 1) },
							      .scope = 4 });
	active = connect_pair(&passive);
	check_agreement(active, passive);
	do_forget(active);
	do_forget(passive);
	network_drain();
	check_nothing_left();
}

static void test_nobody_listens(void **state)
{
	struct party *active;

	(void)state;
	active = connect_from(&world.hosts[0], &world.hosts[1], PORT + 2);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(active->last, SOFT_EVENT_FAILED);
	assert_int_equal(active->code, MAD_REASON_SERVICE_ID);
	assert_null(guest());
	do_forget(active);
}

static void test_silence(void **state)
{
	struct party *active;

	(void)state;
	world.allowed = nothing_at_all;
	active = connect_one();
	network_run(3 * CLOCK_NS_PER_S);
	assert_true(count_of(MAD_REQ) >= 5 && count_of(MAD_REQ) <= 7);
	network_run(57 * CLOCK_NS_PER_S);
	assert_int_equal(state_of(active), CM_REQ_SENT);
	network_drain();
	assert_true(network->now - NETWORK_BEGIN < 100 * CLOCK_NS_PER_S);
	assert_int_equal(active->last, SOFT_EVENT_FAILED);
	assert_int_equal(active->code, ETIMEDOUT);
	do_forget(active);
	check_nothing_left();
}

static void test_patience(void **state)
{
	struct party *active;
	struct mad mad;

	(void)state;
	active = connect_one();
	network_run(200 * CLOCK_NS_PER_MS);
	assert_int_equal(state_of(guest()), CM_REQ_RECEIVED);
	assert_non_null(last_of(MAD_MRA, &world.hosts[1], &mad));
	assert_int_equal(mad.mra.answered, MAD_ANSWERED_REQ);
	assert_int_equal(count_of(MAD_REQ), 2);
	network_run(1500 * CLOCK_NS_PER_MS);
	assert_int_equal(count_of(MAD_REQ), 2);
	network_run(60 * CLOCK_NS_PER_S);
	assert_int_equal(state_of(active), CM_REQ_SENT);
	do_accept(guest());
	network_run(CLOCK_NS_PER_MS);
	assert_true(is_up(active) && is_up(guest()));
	do_forget(active);
	do_forget(guest());
}

/* We gave up, and then the peer accepts. */
static void test_reply_too_late(void **state)
{
	struct party *active;
	struct mad mad;

	(void)state;
	active = connect_one();
	network_run(CLOCK_NS_PER_MS);
	world.allowed = no_refusal;
	do_forget(active);
	network_run(CLOCK_NS_PER_MS);
	world.allowed = NULL;
	do_accept(guest());
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(guest()->last, SOFT_EVENT_FAILED);
	assert_non_null(last_of(MAD_REJ, &world.hosts[0], &mad));
	assert_int_equal(mad.rej.answered, MAD_ANSWERED_REP);
	assert_int_equal(mad.remote_id, guest()->endpoint.cm_id->local_id);
	do_forget(guest());
	network_drain();
	check_nothing_left();
}

/* It accepts so late that even the memory of it is gone. */
static void test_reply_much_too_late(void **state)
{
	struct party *active;

	(void)state;
	active = connect_one();
	network_run(CLOCK_NS_PER_MS);
	world.allowed = no_refusal;
	do_forget(active);
	network_run(60 * CLOCK_NS_PER_S);
	world.allowed = NULL;
	do_accept(guest());
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(guest()->code, MAD_REASON_INVALID_ID);
	do_forget(guest());
}

/* The answer comes after we gave up on the peer: it hears so, and need not wait for its own time-out. */
static void test_reply_after_the_end(void **state)
{
	struct party *active;

	(void)state;
	world.requested = do_accept;
	world.allowed = no_reply;
	active = connect_one();
	network_run(CLOCK_NS_PER_MS);
	refuse_message(&world.hosts[0], active);
	assert_int_equal(state_of(active), CM_TIMEWAIT);
	world.allowed = NULL;
	network_run(CLOCK_NS_PER_S);
	assert_int_equal(guest()->last, SOFT_EVENT_FAILED);
	assert_int_equal(guest()->code, MAD_REASON_INVALID_ID);
	forget_all();
}

static void test_senseless_reply(void **state)
{
	struct party *active;
	struct mad mad, answer;

	(void)state;
	world.allowed = nothing_at_all;
	active = connect_one();
	mad = mad_forge(MAD_REP, active, &world.hosts[1]);
	mad.rep.qpn = 1;
	world_inject(&world.hosts[1], &world.hosts[0], &mad);
	assert_int_equal(active->last, SOFT_EVENT_FAILED);
	assert_int_equal(active->qp.state, QP_RESET);
	assert_non_null(last_of(MAD_REJ, &world.hosts[0], &answer));
	assert_int_equal(answer.remote_id, mad.local_id);
	forget_all();
}

/* A host that started anew answers with a queue pair that it had before: the older connection is lost. */
static void test_peer_begins_anew(void **state)
{
	struct party *older, *newer, *passive;
	struct mad mad;

	(void)state;
	older = connect_pair(&passive);
	world.allowed = nothing_at_all;
	newer = connect_one();
	mad = mad_forge(MAD_REP, newer, &world.hosts[1]);
	mad.rep.qpn = passive->qp.number;
	world_inject(&world.hosts[1], &world.hosts[0], &mad);
	assert_true(is_up(newer));
	assert_int_equal(older->last, SOFT_EVENT_FAILED);
	assert_int_equal(older->code, ECONNRESET);
	forget_all();
}

/* Each field of a REP that counts, with values that no two of them share, and then beyond what this end can do. */
static void test_reply_is_agreed_to(void **state)
{
	const struct host *client = &world.hosts[1], *server = &world.hosts[0];
	static const struct {
		uint8_t responder_resources, initiator_depth, reads_out, reads_in;
	} rows[] = { { 2, 3, 2, 3 }, { 3, 2, 3, 2 }, { 0, 0, 0, 0 }, { 4, 4, 4, 4 }, { 5, 255, 4, 4 } };

	(void)state;
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct party *active;
		struct mad mad;

		world.allowed = nothing_at_all;
		active = connect_from(&world.hosts[1], server, PORT);
		mad = captured("reply4", active);
		mad.local_id += (uint32_t)row;
		mad.rep.qpn = 0x100 + (uint32_t)row;
		mad.rep.starting_psn = 0x123456;
		mad.rep.rnr_retry_count = 5;
		mad.rep.responder_resources = rows[row].responder_resources;
		mad.rep.initiator_depth = rows[row].initiator_depth;
		world_inject(server, client, &mad);
		assert_true(is_up(active));
		assert_int_equal(active->qp.agreement.peer_qpn, 0x100 + row);
		assert_int_equal(active->qp.agreement.sq_psn, 0x123456);
		assert_int_equal(active->qp.agreement.rnr_retry_count, 5);
		assert_int_equal(active->qp.agreement.reads_out, rows[row].reads_out);
		assert_int_equal(active->qp.agreement.reads_in, rows[row].reads_in);
		do_forget(active);
		world_flush();
	}
	forget_all();
}

static void test_real_server(void **state)
{
	const struct host *client = &world.hosts[1], *server = &world.hosts[0];
	struct party *active;
	struct mad mad, answer;

	(void)state;
	world.allowed = nothing_at_all;
	active = connect_from(&world.hosts[1], server, PORT);
	mad = captured("patience4", active);
	world_inject(server, client, &mad);
	assert_int_equal(active->endpoint.cm_id->resends, CM_BACKOFF_STEPS);
	mad = captured("reply4", active);
	world_inject(server, client, &mad);
	assert_true(is_up(active));
	assert_int_equal(active->qp.agreement.peer_qpn, 0x11);
	assert_int_equal(active->qp.agreement.sq_psn, 0xd30ce0);
	assert_int_equal(active->qp.agreement.reads_out, 1);
	assert_int_equal(active->qp.agreement.reads_in, 1);
	assert_non_null(last_of(MAD_RTU, client, &answer));
	assert_int_equal(answer.remote_id, mad.local_id);
	do_disconnect(active);
	world_flush();
	assert_non_null(last_of(MAD_DREQ, client, &answer));
	assert_int_equal(answer.dreq.remote_qpn, 0x11);
	mad.kind = MAD_DREP;
	world_inject(server, client, &mad);
	assert_int_equal(active->last, SOFT_EVENT_DISCONNECTED);
	forget_all();
}

static void test_real_refusals(void **state)
{
	const struct host *client = &world.hosts[1], *server = &world.hosts[0];
	struct party *active;
	struct mad mad;

	(void)state;
	world.allowed = nothing_at_all;
	active = connect_from(&world.hosts[1], server, PORT);
	mad = captured("refused4", active);
	world_inject(server, client, &mad);
	assert_int_equal(active->code, MAD_REASON_SERVICE_ID);
	assert_string_equal(active->cause, "nobody listens there");
	active = connect_from(&world.hosts[1], server, PORT);
	mad = captured("refused_by_user4", active);
	world_inject(server, client, &mad);
	assert_int_equal(active->code, MAD_REASON_CONSUMER);
	assert_memory_equal(active->data, "busy with another client", 24);
	forget_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_request),
		WORLD_TEST(test_connect_and_disconnect),
		WORLD_TEST(test_nobody_listens),
		WORLD_TEST(test_reply_too_late),
		WORLD_TEST(test_reply_much_too_late),
		WORLD_TEST(test_patience),
		WORLD_TEST(test_silence),
		WORLD_TEST(test_reply_after_the_end),
		WORLD_TEST(test_smaller_mtu),
		WORLD_TEST(test_options),
		WORLD_TEST(test_type_of_service),
		WORLD_TEST(test_options_of_the_server),
		WORLD_TEST(test_with_oneself),
		WORLD_TEST(test_ip6),
		WORLD_TEST(test_reply_is_agreed_to),
		WORLD_TEST(test_real_server),
		WORLD_TEST(test_real_refusals),
		WORLD_TEST(test_senseless_reply),
		WORLD_TEST(test_peer_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
