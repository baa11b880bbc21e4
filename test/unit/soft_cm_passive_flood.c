/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/cm.wrap */
/* Floods of REQs from forged addresses. */
#include "test/network/cm.h"

/* REQs from the address of the third host, which does not respond. */
struct flood {
	struct mad request;
	uint8_t private_data[MAD_REQ_PRIVATE];
};

static struct path_options many_requests = PATH_OPEN;

/* Copies the last REQ of a host. */
static void flood_copy(struct flood *flood, const struct host *host)
{
	assert_non_null(last_sent(MAD_REQ, host, &flood->request));
	memcpy(flood->private_data, flood->request.private_data, sizeof(flood->private_data));
	flood->request.private_data = flood->private_data;
}

static void flood_prepare(struct flood *flood)
{
	cm_hosts.dropped = DROP_ALL;
	do_release(connect_from(&cm_hosts.hosts[2], &cm_hosts.hosts[1], PORT));
	testbed_flush();
	flood_copy(flood, &cm_hosts.hosts[2]);
	cm_hosts.dropped = 0;
	cm_hosts.silent = &cm_hosts.hosts[2];
}

static void flood_send(struct flood *flood)
{
	flood->request.local_id++;
	flood->request.req.qpn++;
	flood->request.req.ca_guid += flood->request.local_id % 7 == 0;
	testbed_inject(&cm_hosts.hosts[2], &cm_hosts.hosts[1], &flood->request);
}

/* Each REQ has its own turn of the loop. */
static void flood_turns(struct flood *flood, unsigned count)
{
	while (count--) {
		flood_send(flood);
		network_run(0);
	}
}

/* The requests that wait for the command are limited per listener. */
TEST(test_flood_with_slow_command, testbed_open, testbed_close)
{
	struct host *server = &cm_hosts.hosts[1];
	const struct soft_cm *cm = server->transport->cm;
	struct flood flood;

	flood_prepare(&flood);
	flood_turns(&flood, 2 * CM_BACKLOG);
	assert_int_equal(server->listener.pending_requests, CM_BACKLOG);
	flood.request.req.service_id++;
	flood_send(&flood);
	assert_int_equal(server->listener.pending_requests, CM_BACKLOG);
	assert_int_equal(server->second.pending_requests, 1);
	flood.request.req.service_id--;
	/* After the requests are released the next one is accepted. */
	for (struct conn *conn = cm_hosts.conns; conn; conn = conn->next)
		do_release(conn);
	assert_int_equal(cm->half_open, 0);
	flood_send(&flood);
	assert_int_equal(server->listener.pending_requests, 1);
}

/* A turn of the loop takes a few REQs, and all other messages. REQs without room are dropped. */
TEST(test_flood_leaves_turns_to_other_messages, testbed_open, testbed_close)
{
	struct host *server = &cm_hosts.hosts[1];
	const struct soft_cm *cm = server->transport->cm;
	struct conn *real;
	struct flood flood;
	struct mad rtu;

	flood_prepare(&flood);
	cm_hosts.requested = do_accept;
	cm_hosts.dropped = DROP_RTU;
	connect_for_1_ms();
	real = passive_conn();
	assert_non_null(last_sent(MAD_RTU, &cm_hosts.hosts[0], &rtu));
	cm_hosts.requested = NULL;
	for (unsigned i = 0; i < 3 * CM_REQUESTS_IN_TURN; i++)
		flood_send(&flood);
	testbed_inject(&cm_hosts.hosts[0], server, &rtu);
	assert_true(is_established(real));
	assert_int_equal(cm->half_open, CM_REQUESTS_IN_TURN);
	network_run(0);
	assert_int_equal(cm->half_open, 3 * CM_REQUESTS_IN_TURN);
	release_all();
	for (unsigned i = 0; i < CM_REQUESTS_IN_TURN + CM_REQUESTS_MAX + 10; i++)
		flood_send(&flood);
	assert_int_equal(cm->waiting.count, CM_REQUESTS_MAX);
	many_requests.backlog = 2 * CM_REQUESTS_MAX;
	server->listener.base.options.path = &many_requests;
	network_run(0);
	assert_int_equal(cm->half_open, CM_REQUESTS_IN_TURN + CM_REQUESTS_MAX);
	/* A single one does not wait. */
	flood_send(&flood);
	assert_int_equal(cm->half_open, CM_REQUESTS_IN_TURN + CM_REQUESTS_MAX + 1);
	server->listener.base.options.path = &path_unset;
}

/* For connections that may not resend a REP a timer does little, however many there are. */
TEST(test_flood_has_few_timers, testbed_open, testbed_close)
{
	struct flood flood;

	flood_prepare(&flood);
	cm_hosts.requested = do_accept;
	flood_turns(&flood, CM_RESEND_HALF_OPEN_MAX + 10);
	assert_int_equal(passive_conn()->endpoint.cm_id->resends, CM_BACKOFF_STEPS);
}

static unsigned count_failures(void)
{
	unsigned count = 0;

	for (const struct conn *conn = cm_hosts.conns; conn; conn = conn->next)
		count += conn->events[SOFT_EVENT_FAILED];
	return count;
}

/* Accepted requests without an RTU are limited: the oldest fails. A real client connects, and established connections
 * stay. */
TEST(test_flood_of_half_open, testbed_open, testbed_close)
{
	struct path_options path = PATH_OPEN;
	struct host *server = &cm_hosts.hosts[1];
	const struct soft_cm *cm = server->transport->cm;
	struct conn *active, *passive, *first, *late;
	struct flood flood;
	struct capture capture;
	const char message[] =
		"test: limit of 200 half-open connections reached: the oldest are rejected (backlog 100)\n";
	unsigned real = 0, lines = 0;
	uint64_t before;

	active = connect_pair(&passive);
	before = active->qp.state * 31 + passive->qp.state;
	flood_prepare(&flood);
	path.backlog = 100;
	server->listener.base.options.path = &path;
	cm_hosts.requested = do_accept;
	flood_turns(&flood, 1);
	first = passive_conn();
	flood_turns(&flood, 199);
	assert_int_equal(cm->half_open, 200);
	assert_int_equal(count_failures(), 0);
	capture_begin(&capture);
	for (unsigned i = 0; i < 5000; i++) {
		flood_turns(&flood, 1);
		assert_int_equal(cm->half_open, 200);
		assert_int_equal(count_failures(), i + 1 + real);
		if (!i)
			assert_int_equal(first->last, SOFT_EVENT_FAILED);
		if (i % 1000 == 500) {
			cm_hosts.requested = do_accept;
			late = connect_for_1_ms();
			assert_true(is_established(late) && is_established(passive_conn()));
			do_disconnect(late);
			network_run(CLOCK_NS_PER_MS);
			flood_turns(&flood, 1);
			real++;
		}
	}
	/* The message is printed a few times, not 5000 times. */
	capture_end(&capture);
	for (const char *at = capture.text; *at; at += sizeof(message) - 1, lines++)
		assert_memory_equal(at, message, sizeof(message) - 1);
	assert_in_range(lines, 1, 10);
	assert_int_equal(active->qp.state * 31 + passive->qp.state, before);
	assert_true(is_established(active) && is_established(passive));
	server->listener.base.options.path = &path_unset;
}

/* An RTU for a connection that failed because of the limit gets a REJ. */
TEST(test_flood_drops_slow_client, testbed_open, testbed_close)
{
	struct conn *slow;
	struct flood flood;
	struct mad rtu;
	struct capture capture;

	flood_prepare(&flood);
	cm_hosts.requested = do_accept;
	cm_hosts.dropped = DROP_RTU;
	slow = connect_for_1_ms();
	assert_true(is_established(slow));
	assert_non_null(last_sent(MAD_RTU, &cm_hosts.hosts[0], &rtu));
	cm_hosts.dropped = 0;
	capture_begin(&capture);
	flood_turns(&flood, 2 * CM_BACKLOG);
	capture_end(&capture);
	testbed_inject(&cm_hosts.hosts[0], &cm_hosts.hosts[1], &rtu);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(slow->last, SOFT_EVENT_FAILED);
	assert_int_equal(slow->code, REJECTED_NO_RESOURCES);
}

/* The victim gets one response per forged REQ, and resends only while few connections are half open. */
TEST(test_no_amplification, testbed_open, testbed_close)
{
	const unsigned floods[] = { CM_RESEND_HALF_OPEN_MAX, 2000 };
	struct flood flood;

	flood_prepare(&flood);
	cm_hosts.requested = do_accept;
	for (size_t i = 0; i < LENGTH(floods); i++) {
		uint64_t sent_before = network->sent;

		flood_turns(&flood, floods[i]);
		assert_int_equal(network->sent - sent_before, floods[i]);
		network_run(10 * CLOCK_NS_PER_S);
		if (i)
			assert_int_equal(network->sent - sent_before, floods[i]);
		else
			assert_in_range(network->sent - sent_before, 5 * floods[i], 10 * floods[i]);
		cm_hosts.dropped = DROP_ALL;
		release_all();
		flood_prepare(&flood);
	}
}

/* The longest hash chain of all tables. */
static unsigned longest_chain(const struct soft_cm *cm)
{
	unsigned longest = 0;

	for (unsigned index = 0; index < CM_INDEXES; index++)
		for (size_t i = 0; i < cm->tables[index].bucket_count; i++) {
			unsigned length = 0;

			for (const struct soft_table_entry *entry = cm->tables[index].buckets[i]; entry;
			     entry = entry->next)
				length++;
			if (length > longest)
				longest = length;
		}
	return longest;
}

enum {
	CM_IDS = 2000,
	LONGEST = 16 /* exceeded by chance less than once in a million runs */
};

static struct soft_cm_id *create_cm_id(struct soft_cm *cm, const struct soft_path *path, uint32_t number)
{
	struct soft_cm_id *cm_id = soft_cm_id_create(cm, path);

	assert_non_null(cm_id);
	soft_cm_id_set_peer(cm_id, 1, number, number);
	return cm_id;
}

/*
 * cm_ids that differ only in a part of the peer's address, or only in identifier and QPN, do not form long hash chains.
 */
TEST(test_hash_of_peers, testbed_open, testbed_close)
{
	static const struct {
		enum address_family family;
		size_t byte; /* of the address, where 4 bytes differ */
		bool is_one_address;
	} rows[] = { { ADDRESS_IP4, 0 }, { ADDRESS_IP6, 0 }, { ADDRESS_IP6, 8 }, { ADDRESS_IP4, 0, true } };
	struct soft_cm *cm = cm_hosts.hosts[1].transport->cm;
	struct soft_cm_id *cm_ids[CM_IDS];

	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct soft_path path = { .peer.family = rows[row].family };

		for (uint32_t i = 0; i < CM_IDS; i++) {
			if (!rows[row].is_one_address)
				bytes_write(path.peer.bytes + rows[row].byte, 4, i);
			cm_ids[i] = create_cm_id(cm, &path, rows[row].is_one_address ? i : 1);
		}
		assert_in_range(longest_chain(cm), 1, LONGEST);
		for (unsigned i = 0; i < CM_IDS; i++)
			soft_cm_id_free(cm_ids[i]);
	}
}

/* Nobody can compute a hash of another process. */
TEST(test_hash_is_secret, testbed_open, testbed_close)
{
	const struct soft_path path = { .peer.family = ADDRESS_IP4 };
	struct soft_cm_id *cm_ids[2];

	for (unsigned i = 0; i < LENGTH(cm_ids); i++)
		cm_ids[i] = create_cm_id(cm_hosts.hosts[i].transport->cm, &path, 1);
	assert_int_not_equal(cm_ids[0]->entries[CM_BY_PEER].key, cm_ids[1]->entries[CM_BY_PEER].key);
	soft_cm_id_free(cm_ids[0]);
	soft_cm_id_free(cm_ids[1]);
}

/* REQs with the same QPN and different GUIDs do not form long hash chains. The connection with that QPN is still found.
 */
TEST(test_flood_with_one_qpn, testbed_open, testbed_close)
{
	struct host *client = &cm_hosts.hosts[0], *server = &cm_hosts.hosts[1];
	struct conn *passive, *active = connect_pair(&passive);
	struct flood flood;
	struct mad response;

	flood_copy(&flood, client);
	cm_hosts.dropped = DROP_ALL;
	for (unsigned i = 0; i < CM_IDS; i++) {
		flood.request.local_id++;
		flood.request.req.ca_guid++;
		testbed_inject(client, server, &flood.request);
		network_run(0);
	}
	assert_int_equal(server->transport->cm->half_open, CM_IDS);
	assert_in_range(longest_chain(server->transport->cm), 1, LONGEST);
	icmp_port_unreachable(server, client, active->qp.qpn, 0, 12);
	assert_int_equal(passive->qp.suspects, 1);
	/* The QPN is stale for each of these GUIDs; the first GUID is that of the connection. */
	for (unsigned i = 0; i <= CM_IDS; i += CM_IDS / 20) {
		flood.request.local_id++;
		testbed_inject(client, server, &flood.request);
		network_run(0);
		assert_non_null(last_sent(MAD_REJ, server, &response));
		assert_int_equal(response.remote_id, flood.request.local_id);
		assert_int_equal(response.rej.reason, REJECTED_STALE);
		flood.request.req.ca_guid -= CM_IDS / 20;
	}
	assert_int_equal(passive->qp.probes, 1);
	assert_int_equal(server->transport->cm->half_open, CM_IDS);
}
