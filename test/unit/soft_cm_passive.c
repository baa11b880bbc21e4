/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/cm.wrap */
/* How a request is answered: REP, REJ and MRA, and what confirms a connection. */
#include "test/network/cm.h"

static void test_private_data_of_the_request(void **state)
{
	struct party *active;

	(void)state;
	active = connect_one();
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(guest()->data_length, PRIVATE_DATA_MOST);
	assert_memory_equal(guest()->data, "connect", DATA_SIZE);
	do_forget(active);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(guest()->last, SOFT_EVENT_FAILED);
	assert_int_equal(guest()->code, MAD_REASON_TIMEOUT);
	/* The command has not heard of it yet. */
	assert_int_equal(soft_cm_accept(&guest()->endpoint, NULL, 0), OUTCOME_OK);
	do_forget(guest());
	network_drain();
	check_nothing_left();
}

static void test_reject(void **state)
{
	struct party *active;
	struct mad mad;

	(void)state;
	world.requested = do_reject;
	active = connect_one();
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(active->last, SOFT_EVENT_FAILED);
	assert_string_equal(active->code_name, "reject reason");
	assert_int_equal(active->code, MAD_REASON_CONSUMER);
	assert_memory_equal(active->data, "not you", DATA_SIZE);
	assert_non_null(last_of(MAD_REJ, &world.hosts[1], &mad));
	assert_int_equal(mad.local_id, 0);
	assert_int_equal(mad.rej.answered, MAD_ANSWERED_REQ);
	do_forget(active);
	network_drain();
	assert_int_equal(network->sent, 2);
	check_nothing_left();
}

/* The refusal was lost: a repeated request brings it again, and asks nobody twice. */
static void test_lost_reject(void **state)
{
	struct party *active;

	(void)state;
	world.requested = do_reject;
	world.allowed = no_refusal;
	active = connect_one();
	network_run(50 * CLOCK_NS_PER_MS);
	world.allowed = NULL;
	network_run(CLOCK_NS_PER_S);
	assert_int_equal(active->code, MAD_REASON_CONSUMER);
	assert_memory_equal(active->data, "not you", DATA_SIZE);
	do_forget(active);
}

static void test_lost_ready(void **state)
{
	struct party *active;

	(void)state;
	active = connect_without(no_ready);
	assert_true(is_up(active));
	assert_int_equal(state_of(guest()), CM_REP_SENT);
	do_hear(guest());
	assert_true(is_up(guest()));
	do_hear(guest());
	do_forget(active);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(guest()->last, SOFT_EVENT_DISCONNECTED);
	do_forget(guest());
}

/* Without a packet the repeated REP brings another RTU. */
static void test_ready_again(void **state)
{
	struct party *active;

	(void)state;
	active = connect_without(no_ready);
	world.allowed = NULL;
	network_run(100 * CLOCK_NS_PER_MS);
	assert_true(is_up(guest()));
	assert_int_equal(count_of(MAD_RTU), 2);
	do_forget(active);
	do_forget(guest());
	network_drain();
	check_nothing_left();
}

/* Who accepted is gone before the other end has heard of it. */
static void test_accepted_and_gone(void **state)
{
	struct party *active;

	(void)state;
	active = connect_without(no_reply);
	do_forget(guest());
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(active->last, SOFT_EVENT_FAILED);
	assert_int_equal(active->code, MAD_REASON_CONSUMER);
	do_forget(active);
	network_drain();
	check_nothing_left();
}

/* The same, and the refusal is lost too: a stock peer understands only one that looks like the answer to its REQ. */
static void test_accepted_and_gone_unheard(void **state)
{
	struct party *active;
	struct mad mad;

	(void)state;
	active = connect_without(no_reply);
	world.allowed = nothing_at_all;
	do_forget(guest());
	network_run(CLOCK_NS_PER_MS);
	assert_non_null(last_of(MAD_REJ, &world.hosts[1], &mad));
	assert_int_equal(mad.rej.answered, MAD_ANSWERED_OTHER);
	world.allowed = NULL;
	network_run(CLOCK_NS_PER_S);
	assert_non_null(last_of(MAD_REJ, &world.hosts[1], &mad));
	assert_int_equal(mad.rej.answered, MAD_ANSWERED_REQ);
	assert_int_equal(mad.local_id, 0);
	assert_int_equal(active->code, MAD_REASON_CONSUMER);
	do_forget(active);
	network_drain();
	check_nothing_left();
}

/* The same, but the other end had heard the reply: its confirmation brings the refusal once more. */
static void test_confirmed_too_late(void **state)
{
	struct party *active;
	struct mad ready;

	(void)state;
	active = connect_without(no_ready);
	assert_true(is_up(active));
	assert_non_null(last_of(MAD_RTU, &world.hosts[0], &ready));
	world.allowed = no_refusal;
	do_forget(guest());
	network_run(CLOCK_NS_PER_MS);
	world.allowed = NULL;
	world_inject(&world.hosts[0], &world.hosts[1], &ready);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(active->last, SOFT_EVENT_FAILED);
	do_forget(active);
	network_drain();
	check_nothing_left();
}

/* A repeated REQ is answered at once, without waiting for the turn of REP. */
static void test_repeated_request(void **state)
{
	struct party *active;
	struct mad mad;

	(void)state;
	world.allowed = no_reply;
	world.requested = do_accept;
	active = connect_one();
	network_run(CLOCK_NS_PER_MS);
	assert_non_null(last_of(MAD_REQ, &world.hosts[0], &mad));
	world.allowed = NULL;
	world_inject(&world.hosts[0], &world.hosts[1], &mad);
	network_run(CLOCK_NS_PER_MS);
	assert_true(is_up(active) && is_up(guest()));
	assert_int_equal(count_of(MAD_REP), 2);
	/* And with nothing at all once it is connected. */
	world_inject(&world.hosts[0], &world.hosts[1], &mad);
	network_run(CLOCK_NS_PER_MS);
	assert_true(is_up(active) && is_up(guest()));
	assert_int_equal(network->sent, 4);
	forget_all();
}

static struct path_options few_retries = PATH_OPEN;

static void accept_with_few_retries(struct party *party)
{
	party->endpoint.base.options.path = &few_retries;
	do_accept(party);
}

/* Each field of a REQ that counts, with values that no two of them share, and then beyond what this end can do. */
static void test_request_is_agreed_to(void **state)
{
	const struct host *client = &world.hosts[1], *server = &world.hosts[0];
	static const struct {
		uint8_t responder_resources, initiator_depth, reads_out, reads_in;
	} rows[] = { { 2, 3, 2, 3 }, { 3, 2, 3, 2 }, { 0, 0, 0, 0 }, { 16, 16, 16, 16 }, { 17, 255, 16, 16 } };

	(void)state;
	world.hosts[0].listens = true;
	world.allowed = nothing_at_all;
	few_retries.rnr_retry = 4;
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct mad mad = captured("request4", NULL), answer;
		const struct soft_agreement *agreement = NULL;

		world.requested = row ? do_accept : accept_with_few_retries;
		mad.local_id += (uint32_t)row;
		mad.req.qpn = 0x100 + (uint32_t)row;
		mad.req.starting_psn = 0x123456;
		mad.req.retry_count = 6;
		mad.req.rnr_retry_count = 5;
		mad.req.path.ack_timeout = 16;
		mad.req.path_mtu = 2;
		mad.req.responder_resources = rows[row].responder_resources;
		mad.req.initiator_depth = rows[row].initiator_depth;
		world_inject(client, server, &mad);
		network_run(CLOCK_NS_PER_MS);
		agreement = &guest()->qp.agreement;
		assert_int_equal(agreement->peer_qpn, 0x100 + row);
		assert_int_equal(agreement->sq_psn, 0x123456);
		assert_int_equal(agreement->retry_count, 6);
		assert_int_equal(agreement->rnr_retry_count, 5);
		assert_int_equal(agreement->ack_timeout, 16);
		assert_int_equal(agreement->path.mtu, 512);
		assert_int_equal(agreement->reads_out, rows[row].reads_out);
		assert_int_equal(agreement->reads_in, rows[row].reads_in);
		assert_non_null(last_of(MAD_REP, server, &answer));
		assert_int_equal(answer.remote_id, mad.local_id);
		assert_int_equal(answer.rep.qpn, guest()->qp.number);
		assert_int_equal(answer.rep.starting_psn, agreement->rq_psn);
		assert_int_equal(answer.rep.responder_resources, rows[row].reads_in);
		assert_int_equal(answer.rep.initiator_depth, rows[row].reads_out);
		assert_int_equal(answer.rep.rnr_retry_count, row ? 7 : 4);
		assert_int_equal(answer.rep.target_ack_delay, 15);
		assert_int_equal(answer.rep.ca_guid, world.hosts[0].transport->guid);
		assert_false(answer.rep.srq || answer.rep.flow_control);
		do_forget(guest());
		world_flush();
	}
	forget_all();
}

static void real_client(const char *request, const char *ready, const char *disconnect)
{
	const struct host *client = &world.hosts[1], *server = &world.hosts[0];
	struct mad mad = captured(request, NULL), answer;
	struct party *passive;

	world.hosts[0].listens = true;
	world.allowed = nothing_at_all;
	world.requested = do_accept;
	world_inject(client, server, &mad);
	network_run(CLOCK_NS_PER_MS);
	passive = guest();
	assert_non_null(passive);
	assert_int_equal(passive->qp.agreement.peer_qpn, mad.req.qpn);
	assert_int_equal(passive->qp.agreement.sq_psn, mad.req.starting_psn);
	assert_int_equal(passive->qp.agreement.reads_out, 1);
	assert_int_equal(passive->qp.agreement.ack_timeout, 19);
	assert_non_null(last_of(MAD_REP, server, &answer));
	assert_int_equal(answer.transaction, mad.transaction);
	assert_int_equal(answer.remote_id, mad.local_id);
	assert_int_equal(answer.rep.responder_resources, 1);
	assert_int_equal(answer.rep.initiator_depth, 1);
	mad = captured(ready, passive);
	world_inject(client, server, &mad);
	assert_true(is_up(passive));
	mad = captured(disconnect, passive);
	world_inject(client, server, &mad);
	assert_int_equal(passive->last, SOFT_EVENT_DISCONNECTED);
	assert_non_null(last_of(MAD_DREP, server, &answer));
	assert_int_equal(answer.remote_id, mad.local_id);
	assert_int_equal(answer.transaction, mad.transaction);
	forget_all();
}

static void test_real_client(void **state)
{
	(void)state;
	real_client("request4", "ready4", "disconnect4");
	for (unsigned i = 0; i < 2; i++)
		host_move(&world.hosts[i],
			  &(struct address){ .family = ADDRESS_IP6, .bytes = { 0xfd, [15] = (uint8_t)(i + 1) } });
	real_client("request6", "ready6", "disconnect6");
}

/* A request whose contents make no sense is refused for the right reason, and leaves nothing. */
static void refused_request(void (*spoil)(struct mad *mad, uint8_t private_data[MAD_REQ_PRIVATE]), unsigned reason)
{
	uint8_t private_data[MAD_REQ_PRIVATE];
	struct party *active;
	struct mad mad, answer;
	uint64_t before;

	world.allowed = nothing_at_all;
	active = connect_one();
	world_flush();
	assert_non_null(last_of(MAD_REQ, &world.hosts[0], &mad));
	memcpy(private_data, mad.private_data, sizeof(private_data));
	mad.private_data = private_data;
	do_forget(active);
	world_flush();
	before = fingerprint();
	spoil(&mad, private_data);
	world_inject(&world.hosts[0], &world.hosts[1], &mad);
	assert_int_equal(fingerprint(), before);
	assert_non_null(last_of(MAD_REJ, &world.hosts[1], &answer));
	assert_int_equal(answer.transaction, mad.transaction);
	assert_int_equal(answer.remote_id, mad.local_id);
	assert_int_equal(answer.local_id, 0);
	assert_int_equal(answer.rej.answered, MAD_ANSWERED_REQ);
	assert_int_equal(answer.rej.reason, reason);
}

static void spoil_transport(struct mad *mad, uint8_t *private_data)
{
	(void)private_data;
	mad->req.transport = MAD_TRANSPORT_UC;
}

static void spoil_mtu(struct mad *mad, uint8_t *private_data)
{
	(void)private_data;
	mad->req.path_mtu = 0;
}

static void spoil_larger_mtu(struct mad *mad, uint8_t *private_data)
{
	(void)private_data;
	mad->req.path_mtu = 5;
}

static void spoil_unknown_mtu(struct mad *mad, uint8_t *private_data)
{
	(void)private_data;
	mad->req.path_mtu = 6;
}

static void spoil_queue(struct mad *mad, uint8_t *private_data)
{
	(void)private_data;
	mad->req.qpn = 0;
}

static void spoil_group_queue(struct mad *mad, uint8_t *private_data)
{
	(void)private_data;
	mad->req.qpn = 0xffffff;
}

static void spoil_source(struct mad *mad, uint8_t *private_data)
{
	(void)mad;
	private_data[19] ^= 1;
}

static void spoil_destination(struct mad *mad, uint8_t *private_data)
{
	(void)mad;
	private_data[35] ^= 1;
}

static void spoil_header(struct mad *mad, uint8_t *private_data)
{
	(void)mad;
	private_data[1] = 0;
}

static void spoil_gid(struct mad *mad, uint8_t *private_data)
{
	(void)private_data;
	mad->req.path.local_gid[15] ^= 1;
}

static void spoil_remote_gid(struct mad *mad, uint8_t *private_data)
{
	(void)private_data;
	mad->req.path.remote_gid[15] ^= 1;
}

static void spoil_id(struct mad *mad, uint8_t *private_data)
{
	(void)private_data;
	mad->local_id = 0;
}

static void spoil_service(struct mad *mad, uint8_t *private_data)
{
	(void)private_data;
	mad->req.service_id |= UINT64_C(1) << 40;
}

static void test_senseless_requests(void **state)
{
	(void)state;
	refused_request(spoil_transport, MAD_REASON_TRANSPORT);
	refused_request(spoil_mtu, MAD_REASON_MTU);
	refused_request(spoil_larger_mtu, MAD_REASON_MTU);
	refused_request(spoil_unknown_mtu, MAD_REASON_MTU);
	refused_request(spoil_queue, MAD_REASON_CONSUMER);
	refused_request(spoil_group_queue, MAD_REASON_CONSUMER);
	refused_request(spoil_source, MAD_REASON_CONSUMER);
	refused_request(spoil_destination, MAD_REASON_CONSUMER);
	refused_request(spoil_header, MAD_REASON_CONSUMER);
	refused_request(spoil_gid, MAD_REASON_GID);
	refused_request(spoil_remote_gid, MAD_REASON_GID);
	refused_request(spoil_id, MAD_REASON_CONSUMER);
	refused_request(spoil_service, MAD_REASON_SERVICE_ID);
}

/* A queue pair in two connections: a request cannot end the older one, it only puts it to the test. */
static void test_stale_queue(void **state)
{
	struct party *active, *passive;
	struct mad mad, answer;
	uint64_t before;

	(void)state;
	active = connect_pair(&passive);
	assert_non_null(last_of(MAD_REQ, &world.hosts[0], &mad));
	mad.local_id ^= 1;
	before = fingerprint();
	world_inject(&world.hosts[0], &world.hosts[1], &mad);
	assert_int_equal(fingerprint(), before);
	assert_non_null(last_of(MAD_REJ, &world.hosts[1], &answer));
	assert_int_equal(answer.rej.reason, MAD_REASON_STALE);
	assert_int_equal(passive->qp.probes, 1);
	assert_int_equal(active->last, SOFT_EVENT_ESTABLISHED);
	/* Once it has ended, the queue pair may be used again; the identifiers may not. */
	do_disconnect(active);
	network_run(CLOCK_NS_PER_MS);
	do_forget(active);
	do_forget(passive);
	mad.local_id ^= 1;
	world_inject(&world.hosts[0], &world.hosts[1], &mad);
	assert_non_null(last_of(MAD_REJ, &world.hosts[1], &answer));
	assert_int_equal(answer.rej.reason, MAD_REASON_STALE);
	mad.local_id ^= 1;
	mad.transaction++;
	world.allowed = nothing_at_all;
	world_inject(&world.hosts[0], &world.hosts[1], &mad);
	assert_ptr_not_equal(guest(), passive);
	forget_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_private_data_of_the_request),
		WORLD_TEST(test_reject),
		WORLD_TEST(test_lost_reject),
		WORLD_TEST(test_lost_ready),
		WORLD_TEST(test_ready_again),
		WORLD_TEST(test_accepted_and_gone),
		WORLD_TEST(test_accepted_and_gone_unheard),
		WORLD_TEST(test_confirmed_too_late),
		WORLD_TEST(test_repeated_request),
		WORLD_TEST(test_request_is_agreed_to),
		WORLD_TEST(test_real_client),
		WORLD_TEST(test_senseless_requests),
		WORLD_TEST(test_stale_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
