/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/cm.wrap */
/* Requests without end, under the addresses of others. */
#include "test/network/cm.h"

/* Requests under the address of the third host, which knows nothing of them and answers nothing. */
struct flood {
	struct mad request;
	uint8_t private_data[MAD_REQ_PRIVATE];
};

static bool not_to_the_third(const struct flight *flight)
{
	return !address_same_host(&flight->to, &world.hosts[2].address);
}

/* As the last request of a host. */
static void flood_copy(struct flood *flood, const struct host *host)
{
	assert_non_null(last_of(MAD_REQ, host, &flood->request));
	memcpy(flood->private_data, flood->request.private_data, sizeof(flood->private_data));
	flood->request.private_data = flood->private_data;
}

static void flood_prepare(struct flood *flood)
{
	world.allowed = nothing_at_all;
	do_forget(connect_from(&world.hosts[2], &world.hosts[1], PORT));
	world_flush();
	flood_copy(flood, &world.hosts[2]);
	world.allowed = not_to_the_third;
}

static void flood_say(struct flood *flood)
{
	flood->request.local_id++;
	flood->request.req.qpn++;
	flood->request.req.ca_guid += flood->request.local_id % 7 == 0;
	world_inject(&world.hosts[2], &world.hosts[1], &flood->request);
}

/* What waits for an answer of the command is bounded for each listener, by itself. */
static void test_flood_of_a_slow_command(void **state)
{
	struct host *server = &world.hosts[1];
	const struct soft_cm *cm = server->transport->cm;
	struct flood flood;

	(void)state;
	flood_prepare(&flood);
	for (unsigned i = 0; i < 2 * CM_BACKLOG; i++)
		flood_say(&flood);
	assert_int_equal(server->listener.pending_requests, CM_BACKLOG);
	flood.request.req.service_id++;
	flood_say(&flood);
	assert_int_equal(server->listener.pending_requests, CM_BACKLOG);
	assert_int_equal(server->second.pending_requests, 1);
	flood.request.req.service_id--;
	/* Room again: the next one is served. */
	for (struct party *party = world.parties; party; party = party->next)
		do_forget(party);
	assert_int_equal(cm->half_open, 0);
	flood_say(&flood);
	assert_int_equal(server->listener.pending_requests, 1);
	forget_all();
}

static unsigned failures(void)
{
	unsigned count = 0;

	for (const struct party *party = world.parties; party; party = party->next)
		count += party->told[SOFT_EVENT_FAILED];
	return count;
}

/*
 * What was accepted and is never confirmed: the oldest gives way, who is there gets connected, and what stands is left
 * alone.
 */
static void test_flood(void **state)
{
	struct path_options path = PATH_OPEN;
	struct host *server = &world.hosts[1];
	const struct soft_cm *cm = server->transport->cm;
	struct party *active, *passive, *first = NULL, *late;
	struct flood flood;
	struct capture capture;
	const char said[] =
		"test: 200 connections are half open, the most: the oldest give way to new ones (--backlog)\n";
	unsigned real = 0, lines = 0;
	uint64_t before;

	(void)state;
	active = connect_pair(&passive);
	before = active->qp.state * 31 + passive->qp.state;
	flood_prepare(&flood);
	path.backlog = 100;
	server->listener.base.options.path = &path;
	world.requested = do_accept;
	for (unsigned i = 0; i < 200; i++) {
		flood_say(&flood);
		network_run(0);
		if (!i)
			first = guest();
	}
	assert_int_equal(cm->half_open, 200);
	assert_int_equal(failures(), 0);
	capture_begin(&capture);
	for (unsigned i = 0; i < 5000; i++) {
		flood_say(&flood);
		network_run(0);
		assert_int_equal(cm->half_open, 200);
		assert_int_equal(failures(), i + 1 + real);
		if (!i)
			assert_int_equal(first->last, SOFT_EVENT_FAILED);
		if (i % 1000 == 500) {
			world.requested = do_accept;
			late = connect_one();
			network_run(CLOCK_NS_PER_MS);
			assert_true(is_up(late) && is_up(guest()));
			do_disconnect(late);
			network_run(CLOCK_NS_PER_MS);
			flood_say(&flood);
			network_run(0);
			real++;
		}
	}
	/* Told a few times, not five thousand. */
	capture_end(&capture);
	for (const char *at = capture.text; *at; at += sizeof(said) - 1, lines++)
		assert_memory_equal(at, said, sizeof(said) - 1);
	assert_in_range(lines, 1, 10);
	assert_int_equal(active->qp.state * 31 + passive->qp.state, before);
	assert_true(is_up(active) && is_up(passive));
	server->listener.base.options.path = NULL;
	forget_all();
}

/* One that gave way and confirms after all is told so, and fails at once instead of waiting for an answer. */
static void test_flood_takes_a_slow_one(void **state)
{
	struct party *slow;
	struct flood flood;
	struct mad ready;
	struct capture capture;

	(void)state;
	flood_prepare(&flood);
	world.requested = do_accept;
	world.allowed = no_ready;
	slow = connect_one();
	network_run(CLOCK_NS_PER_MS);
	assert_true(is_up(slow));
	assert_non_null(last_of(MAD_RTU, &world.hosts[0], &ready));
	world.allowed = not_to_the_third;
	capture_begin(&capture);
	for (unsigned i = 0; i < 2 * CM_BACKLOG; i++) {
		flood_say(&flood);
		network_run(0);
	}
	capture_end(&capture);
	world_inject(&world.hosts[0], &world.hosts[1], &ready);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(slow->last, SOFT_EVENT_FAILED);
	assert_int_equal(slow->code, MAD_REASON_NO_RESOURCES);
	forget_all();
}

/* Who was named as sender is sent as much as came in its name, and a few repeats as long as few are half open. */
static void test_flood_is_not_amplified(void **state)
{
	const unsigned floods[] = { CM_RESEND_HALF_OPEN_MOST, 2000 };
	struct flood flood;
	uint64_t flown;

	(void)state;
	flood_prepare(&flood);
	world.requested = do_accept;
	for (size_t i = 0; i < LENGTH(floods); i++) {
		flown = network->sent;
		for (unsigned count = 0; count < floods[i]; count++) {
			flood_say(&flood);
			network_run(0);
		}
		assert_int_equal(network->sent - flown, floods[i]);
		network_run(10 * CLOCK_NS_PER_S);
		if (i)
			assert_int_equal(network->sent - flown, floods[i]);
		else
			assert_in_range(network->sent - flown, 5 * floods[i], 10 * floods[i]);
		world.allowed = nothing_at_all;
		forget_all();
		flood_prepare(&flood);
	}
}

/* The most links in a bucket of any table. */
static unsigned longest_chain(const struct soft_cm *cm)
{
	unsigned longest = 0;

	for (unsigned index = 0; index < CM_INDEXES; index++)
		for (size_t i = 0; i < cm->tables[index].size; i++) {
			unsigned length = 0;

			for (const struct soft_cm_id *cm_id = cm->tables[index].buckets[i]; cm_id;
			     cm_id = cm_id->next_in[index])
				length++;
			if (length > longest)
				longest = length;
		}
	return longest;
}

/*
 * Requests that all name one queue pair, each under another GUID: none has to be compared with all before it. The
 * connection that the queue pair does belong to is found all the same.
 */
static void test_flood_of_one_queue(void **state)
{
	enum {
		LINKS = 2000,
		LONGEST = 16 /* of as many by chance, and not once in a million runs */
	};
	struct host *client = &world.hosts[0], *server = &world.hosts[1];
	struct party *active, *passive;
	struct flood flood;
	struct mad answer;

	(void)state;
	active = connect_pair(&passive);
	flood_copy(&flood, client);
	world.allowed = nothing_at_all;
	for (unsigned i = 0; i < LINKS; i++) {
		flood.request.local_id++;
		flood.request.req.ca_guid++;
		world_inject(client, server, &flood.request);
		network_run(0);
	}
	assert_int_equal(server->transport->cm->half_open, LINKS);
	assert_in_range(longest_chain(server->transport->cm), 1, LONGEST);
	refuse(server, client, active->qp.number, 0, 12);
	assert_int_equal(passive->qp.doubts, 1);
	/* Each GUID has that queue pair once; the first is the connection's. */
	for (unsigned i = 0; i <= LINKS; i += LINKS / 20) {
		flood.request.local_id++;
		world_inject(client, server, &flood.request);
		assert_non_null(last_of(MAD_REJ, server, &answer));
		assert_int_equal(answer.remote_id, flood.request.local_id);
		assert_int_equal(answer.rej.reason, MAD_REASON_STALE);
		flood.request.req.ca_guid -= LINKS / 20;
	}
	assert_int_equal(passive->qp.probes, 1);
	assert_int_equal(server->transport->cm->half_open, LINKS);
	forget_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_flood_of_a_slow_command), WORLD_TEST(test_flood),
		WORLD_TEST(test_flood_takes_a_slow_one),  WORLD_TEST(test_flood_is_not_amplified),
		WORLD_TEST(test_flood_of_one_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
