/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/cm.wrap */
/* Identifiers, PSNs and the hash tables of connections. */
#include "test/network/cm.h"

static int compare(const void *one, const void *other)
{
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;

	return a < b ? -1 : a > b;
}

enum {
	MANY_CONNECTIONS = 100000
};

TEST(test_identifiers, testbed_open, testbed_close)
{
	uint32_t *ids = calloc(MANY_CONNECTIONS, sizeof(*ids));
	unsigned close = 0, equal = 0;

	assert_non_null(ids);
	cm_hosts.dropped = DROP_ALL;
	for (unsigned i = 0; i < MANY_CONNECTIONS; i++) {
		struct conn *active = connect_one();

		ids[i] = active->endpoint.cm_id->local_id;
		assert_int_not_equal(ids[i], 0);
		do_release(active);
		testbed_flush();
		cm_hosts.conns = active->next;
		free(active);
		if (i && ids[i] - ids[i - 1] + 65536 < 131072)
			close++;
	}
	/* Consecutive identifiers differ like random numbers: about 3 of them are that close. */
	assert_true(close < 20);
	/* About one of so many is drawn again. */
	qsort(ids, MANY_CONNECTIONS, sizeof(*ids), compare);
	for (unsigned i = 1; i < MANY_CONNECTIONS; i++)
		equal += ids[i] == ids[i - 1];
	assert_true(equal < 20);
	free(ids);
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

/* Each bit is set in about half of the values. */
TEST(test_random_psns_and_transactions, testbed_open, testbed_close)
{
	enum {
		COUNT = 1000
	};
	unsigned sq_psn[64] = { 0 }, rq_psn[64] = { 0 }, transaction[64] = { 0 };

	cm_hosts.requested = do_accept;
	for (unsigned i = 0; i < COUNT; i++) {
		struct conn *passive;
		struct mad mad;

		connect_pair(&passive);
		assert_non_null(last_sent(MAD_REQ, &cm_hosts.hosts[0], &mad));
		count_bits(transaction, mad.transaction);
		count_bits(sq_psn, mad.req.starting_psn);
		assert_non_null(last_sent(MAD_REP, &cm_hosts.hosts[1], &mad));
		count_bits(rq_psn, mad.rep.starting_psn);
		release_all();
	}
	check_bits(sq_psn, 24, COUNT);
	check_bits(rq_psn, 24, COUNT);
	check_bits(transaction, 64, COUNT);
	/* Each process has its own GUID. */
	for (unsigned host = 0; host < LENGTH(cm_hosts.hosts); host++)
		assert_true(cm_hosts.hosts[host].transport->guid !=
			    cm_hosts.hosts[(host + 1) % LENGTH(cm_hosts.hosts)].transport->guid);
}
