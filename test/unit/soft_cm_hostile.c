/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/cm.wrap */
/* Forged, truncated and random MADs. */
#include "test/network/cm.h"
#include "transport/soft/net/socket.h"

static const enum mad_kind response_kinds[] = { MAD_MRA, MAD_REJ, MAD_REP, MAD_RTU, MAD_DREQ, MAD_DREP };

/* Creates cm_ids in each state. From then on no MAD is delivered. cm_hosts.sent holds all MADs. */
static void create_all_states(struct conn *conns[10])
{
	static const enum cm_state states[10] = { CM_ESTABLISHED, CM_ESTABLISHED, CM_DREQ_SENT, CM_ESTABLISHED,
						  CM_TIMEWAIT,	  CM_TIMEWAIT,	  CM_REQ_SENT,	CM_REQ_RECEIVED,
						  CM_REQ_SENT,	  CM_REP_SENT };
	struct conn *passive;

	conns[0] = connect_pair(&passive);
	conns[1] = passive;
	conns[2] = connect_pair(&passive);
	conns[3] = passive;
	conns[4] = connect_pair(&passive);
	conns[5] = passive;
	do_disconnect(conns[4]);
	network_run(CLOCK_NS_PER_MS);
	cm_hosts.requested = NULL;
	conns[6] = connect_for_1_ms();
	conns[7] = passive_conn();
	cm_hosts.dropped = DROP_REP;
	cm_hosts.requested = do_accept;
	conns[8] = connect_for_1_ms();
	conns[9] = passive_conn();
	cm_hosts.requested = do_reject;
	do_release(connect_one());
	network_run(CLOCK_NS_PER_MS);
	cm_hosts.dropped = DROP_ALL;
	do_disconnect(conns[2]);
	testbed_flush();
	for (unsigned i = 0; i < LENGTH(states); i++)
		assert_int_equal(state_of(conns[i]), states[i]);
}

/* Injects a MAD of each kind for a cm_id in each state. None changes any state. */
static void assert_all_ignored(void (*inject)(struct conn *target, const struct host *peer, struct mad *mad))
{
	struct conn *conns[10];
	uint64_t before;

	create_all_states(conns);
	before = state_hash();
	for (unsigned i = 0; i < LENGTH(conns); i++)
		for (unsigned kind = 0; kind < LENGTH(response_kinds); kind++) {
			const struct host *peer = &cm_hosts.hosts[conns[i]->host == &cm_hosts.hosts[0]];
			struct mad mad = mad_forge(response_kinds[kind], conns[i], peer);

			inject(conns[i], peer, &mad);
			assert_int_equal(state_hash(), before);
		}
}

static void send_from_other_host(struct conn *target, const struct host *peer, struct mad *mad)
{
	testbed_inject(&cm_hosts.hosts[2], target->host, mad);
}

TEST(test_wrong_source, testbed_open, testbed_close)
{
	uint64_t before;

	assert_all_ignored(send_from_other_host);
	before = state_hash();
	/* Repeats the recorded MADs, also REQs, from another host. */
	for (size_t i = 0; i < cm_hosts.sent_count && i < LENGTH(cm_hosts.sent); i++) {
		struct sent_mad sent_mad = cm_hosts.sent[i];

		sent_mad.from = cm_hosts.hosts[2].address;
		if (!address_same_host(&sent_mad.to, &sent_mad.from))
			testbed_deliver(&sent_mad);
		testbed_flush();
		assert_int_equal(state_hash(), before);
	}
}

static void send_to_other_address(struct conn *target, const struct host *peer, struct mad *mad)
{
	uint8_t bytes[MAD_SIZE];

	mad_write(mad, bytes);
	soft_cm_receive(target->host->transport, target->host->other, &peer->address, bytes, MAD_SIZE, false);
	testbed_flush();
}

/* The MADs come from the peer, but to another address of this host. */
TEST(test_wrong_destination, testbed_open, testbed_close)
{
	assert_all_ignored(send_to_other_address);
}

static void send_with_wrong_ids(struct conn *target, const struct host *peer, struct mad *mad)
{
	mad->remote_id ^= 1;
	testbed_inject(peer, target->host, mad);
	mad->remote_id ^= 1;
	mad->local_id ^= 1;
	if (target->endpoint.cm_id->peer_known)
		testbed_inject(peer, target->host, mad);
	mad->local_id ^= 1;
	if (mad->kind == MAD_DREQ) {
		mad->dreq.remote_qpn ^= 1;
		testbed_inject(peer, target->host, mad);
	}
}

TEST(test_wrong_ids, testbed_open, testbed_close)
{
	assert_all_ignored(send_with_wrong_ids);
}

/* A REJ for a timeout may lack our identifier and names the GUID and identifier of its sender, which any user of that
 * host can know. It counts only while the peer may not know our identifier. */
TEST(test_timeout_rej_without_our_id, testbed_open, testbed_close)
{
	struct conn *conns[10];
	unsigned closed = 0;

	create_all_states(conns);
	for (unsigned i = 0; i < LENGTH(conns); i++) {
		const struct host *peer = &cm_hosts.hosts[conns[i]->host == &cm_hosts.hosts[0]];
		struct mad mad = mad_forge(MAD_REJ, conns[i], peer);
		enum cm_state before = state_of(conns[i]);
		bool counts = before == CM_REQ_RECEIVED || before == CM_REP_SENT;
		uint64_t all = state_hash();
		uint8_t guid[8];

		bytes_write(guid, sizeof(guid), peer->transport->guid);
		mad.rej.information = guid;
		mad.rej.reason = REJECTED_TIMEOUT;
		mad.remote_id = 0;
		testbed_inject(peer, conns[i]->host, &mad);
		assert_int_equal(state_hash() != all, counts);
		if (counts)
			assert_int_equal(state_of(conns[i]), CM_TIMEWAIT);
		closed += counts;
	}
	assert_int_equal(closed, 2);
}

/* The state after a MAD from the peer itself, in the order of response_kinds; 0: the MAD has no effect. */
static const enum cm_state states_after[][LENGTH(response_kinds)] = {
	/*			MRA REJ		 REP		 RTU		 DREQ	      DREP */
	[CM_REQ_SENT] = { 0, CM_TIMEWAIT, CM_ESTABLISHED, 0, 0, 0 },
	[CM_REQ_RECEIVED] = { 0, CM_TIMEWAIT, 0, 0, 0, 0 },
	[CM_REP_SENT] = { 0, CM_TIMEWAIT, 0, CM_ESTABLISHED, CM_TIMEWAIT, 0 },
	[CM_ESTABLISHED] = { 0, CM_TIMEWAIT, 0, 0, CM_TIMEWAIT, 0 },
	[CM_DREQ_SENT] = { 0, CM_TIMEWAIT, 0, 0, CM_TIMEWAIT, CM_TIMEWAIT },
	[CM_TIMEWAIT] = { 0, 0, 0, 0, 0, 0 },
};

/* A confused peer: the identifiers are right, and the MAD may be early, late, repeated, or one that only we send. */
TEST(test_untimely_mads)
{
	for (unsigned kind = 0; kind < LENGTH(response_kinds); kind++) {
		struct conn *conns[10];

		testbed_open(NULL);
		create_all_states(conns);
		for (unsigned i = 0; i < LENGTH(conns); i++) {
			const struct host *peer = &cm_hosts.hosts[conns[i]->host == &cm_hosts.hosts[0]];
			struct mad mad = mad_forge(response_kinds[kind], conns[i], peer);
			enum cm_state before = state_of(conns[i]), after = states_after[before][kind];
			uint64_t all = state_hash();

			if (mad.kind == MAD_DREQ)
				mad.dreq.remote_qpn = conns[i]->endpoint.cm_id->local_qpn;
			testbed_inject(peer, conns[i]->host, &mad);
			assert_int_equal(state_of(conns[i]), after ? after : before);
			if (!after && mad.kind != MAD_MRA)
				assert_int_equal(state_hash(), all);
		}
		testbed_close(NULL);
	}
}

/* A response does not show whether an identifier exists: a MAD from another host gets the same response with a valid
 * and an invalid one. */
TEST(test_no_oracle, testbed_open, testbed_close)
{
	struct conn *passive, *active = connect_pair(&passive);
	struct mad mad, right, wrong;

	for (unsigned kind = 0; kind < LENGTH(response_kinds); kind++) {
		uint64_t sent_before = network->sent, responses;

		mad = mad_forge(response_kinds[kind], active, &cm_hosts.hosts[2]);
		testbed_inject(&cm_hosts.hosts[2], active->host, &mad);
		responses = network->sent - sent_before;
		if (responses)
			parse_sent(&cm_hosts.sent[(cm_hosts.sent_count - 1) % LENGTH(cm_hosts.sent)], &right);
		mad.remote_id ^= 0x10101;
		testbed_inject(&cm_hosts.hosts[2], active->host, &mad);
		assert_int_equal(network->sent - sent_before, 2 * responses);
		if (!responses)
			continue;
		parse_sent(&cm_hosts.sent[(cm_hosts.sent_count - 1) % LENGTH(cm_hosts.sent)], &wrong);
		assert_int_equal(right.kind, wrong.kind);
		assert_int_equal(right.transaction, wrong.transaction);
		assert_int_equal(right.local_id ^ 0x10101, wrong.local_id);
	}
}

/* SIDR_REQ is not supported: it gets an error response, with valid and with invalid identifiers. */
TEST(test_unsupported, testbed_open, testbed_close)
{
	struct conn *passive, *active = connect_pair(&passive);
	uint64_t before;

	before = state_hash();
	for (uint32_t wrong = 0; wrong < 2; wrong++) {
		struct mad response, mad = { .kind = MAD_SIDR_REQ,
					     .transaction = 0x1234567,
					     .local_id = active->endpoint.cm_id->remote_id,
					     .remote_id = active->endpoint.cm_id->local_id ^ wrong };
		uint64_t sent = network->sent;

		testbed_inject(&cm_hosts.hosts[1], &cm_hosts.hosts[0], &mad);
		assert_int_equal(network->sent - sent, 1);
		assert_non_null(last_sent(MAD_SIDR_REP, &cm_hosts.hosts[0], &response));
		assert_int_equal(response.transaction, 0x1234567);
		assert_int_equal(response.status, 1);
		assert_int_equal(response.local_id, mad.local_id);
		/* An unsolicited response is dropped. */
		testbed_inject(&cm_hosts.hosts[1], &cm_hosts.hosts[0], &response);
		assert_int_equal(network->sent - sent, 1);
		assert_int_equal(state_hash(), before);
	}
}
