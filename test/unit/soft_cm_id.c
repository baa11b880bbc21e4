/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/cm.wrap */
/* The tables of connections, by identifier and queue pair. */
#include "test/network/cm.h"

static int compare(const void *one, const void *other)
{
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;

	return a < b ? -1 : a > b;
}

enum {
	MANY_CONNECTIONS = 100000
};

static void test_identifiers(void **state)
{
	uint32_t *ids = calloc(MANY_CONNECTIONS, sizeof(*ids));
	unsigned close_by = 0;

	(void)state;
	assert_non_null(ids);
	world.allowed = nothing_at_all;
	for (unsigned i = 0; i < MANY_CONNECTIONS; i++) {
		struct party *active = connect_one();

		ids[i] = active->endpoint.cm_id->local_id;
		assert_int_not_equal(ids[i], 0);
		do_forget(active);
		world_flush();
		world.parties = active->next;
		free(active);
		if (i && ids[i] - ids[i - 1] + 65536 < 131072)
			close_by++;
	}
	/* Neighbours look like any two random numbers: about 3 of them are that close. */
	assert_true(close_by < 20);
	qsort(ids, MANY_CONNECTIONS, sizeof(*ids), compare);
	for (unsigned i = 1; i < MANY_CONNECTIONS; i++)
		assert_int_not_equal(ids[i], ids[i - 1]);
	free(ids);
	network_drain();
	check_nothing_left();
}

static void count_bits(unsigned *set, uint64_t value)
{
	for (unsigned bit = 0; bit < 64; bit++)
		set[bit] += (unsigned)(value >> bit & 1);
}

static void check_bits(const unsigned *set, unsigned bits, unsigned count)
{
	for (unsigned bit = 0; bit < 64; bit++)
		assert_in_range(set[bit], bit < bits ? count / 2 - 128 : 0, bit < bits ? count / 2 + 128 : 0);
}

/* Each bit is set in about half of the connections. */
static void test_numbers_of_a_connection(void **state)
{
	enum {
		COUNT = 1000
	};
	unsigned psn_there[64] = { 0 }, psn_back[64] = { 0 }, transaction[64] = { 0 };

	(void)state;
	world.requested = do_accept;
	for (unsigned i = 0; i < COUNT; i++) {
		struct party *passive;
		struct mad mad;

		connect_pair(&passive);
		assert_non_null(last_of(MAD_REQ, &world.hosts[0], &mad));
		count_bits(transaction, mad.transaction);
		count_bits(psn_there, mad.req.starting_psn);
		assert_non_null(last_of(MAD_REP, &world.hosts[1], &mad));
		count_bits(psn_back, mad.rep.starting_psn);
		forget_all();
	}
	check_bits(psn_there, 24, COUNT);
	check_bits(psn_back, 24, COUNT);
	check_bits(transaction, 64, COUNT);
	/* And of each process. */
	for (unsigned host = 0; host < LENGTH(world.hosts); host++)
		assert_true(world.hosts[host].transport->guid !=
			    world.hosts[(host + 1) % LENGTH(world.hosts)].transport->guid);
	check_nothing_left();
}

static void test_size(void **state)
{
	(void)state;
	assert_true(sizeof(struct soft_cm_id) < 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_identifiers),
		WORLD_TEST(test_numbers_of_a_connection),
		WORLD_TEST(test_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
