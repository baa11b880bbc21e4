/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/cm.wrap */
/* The connection manager: many connections over a bad network, and what ICMP says of a peer. */
#include <errno.h>

#include "test/network/cm.h"

static void test_unreachable(void **state)
{
	struct host *host = &world.hosts[0], *peer = &world.hosts[1], *stranger = &world.hosts[2];
	struct party *active, *connecting, *leaving, *passive;
	uint32_t id;

	(void)state;
	leaving = connect_pair(&passive);
	active = connect_pair(&passive);
	world.allowed = nothing_at_all;
	connecting = connect_one();
	do_disconnect(leaving);
	id = connecting->endpoint.cm_id->local_id;
	/* Whoever forges one knows the addresses, and not what was sent. */
	for (size_t length = 0; length < 48; length++)
		refuse(host, peer, MAD_QPN, id, length);
	refuse(host, stranger, MAD_QPN, id, 48);
	refuse(host, peer, MAD_QPN, id + 1, 48);
	refuse(host, peer, MAD_QPN, 0, 48);
	refuse(host, peer, passive->qp.number + 1, 0, 48);
	refuse(host, stranger, passive->qp.number, 0, 48);
	refuse(host, peer, passive->qp.number, 0, 11);
	assert_int_equal(connecting->told[SOFT_EVENT_FAILED], 0);
	assert_int_equal(active->qp.doubts, 0);

	refuse_message(host, connecting);
	assert_int_equal(connecting->code, ECONNREFUSED);
	assert_string_equal(connecting->cause, "nothing holds UDP port 4791 there (no RoCE v2)");
	refuse_message(host, leaving);
	assert_int_equal(leaving->last, SOFT_EVENT_DISCONNECTED);
	/* What is established asks first. */
	refuse(host, peer, passive->qp.number, 0, 12);
	assert_int_equal(active->qp.doubts, 1);
	refuse_message(host, active);
	assert_int_equal(active->qp.doubts, 2);
	assert_true(is_up(active));
	forget_all();
}

/* No way there: it may come back, so that nothing ends, and it is told should nothing else come. */
static void test_no_way(void **state)
{
	struct host *host = &world.hosts[0], *peer = &world.hosts[1];
	struct party *active, *connecting, *leaving, *passive;
	uint32_t id;

	(void)state;
	leaving = connect_pair(&passive);
	do_disconnect(leaving);
	active = connect_pair(&passive);
	world.allowed = nothing_at_all;
	connecting = connect_one();
	id = connecting->endpoint.cm_id->local_id;
	unreachable(host, peer, EHOSTUNREACH, MAD_QPN, id + 1, 48);
	assert_int_equal(connecting->endpoint.icmp_errno, 0);
	unreachable(host, peer, EHOSTUNREACH, MAD_QPN, id, 48);
	assert_int_equal(connecting->endpoint.icmp_errno, EHOSTUNREACH);
	unreachable(host, peer, ENETUNREACH, passive->qp.number, 0, 12);
	assert_int_equal(active->endpoint.icmp_errno, ENETUNREACH);
	assert_int_equal(active->qp.doubts, 0);
	assert_true(is_up(active));
	assert_int_equal(connecting->told[SOFT_EVENT_FAILED], 0);
	forget_all();
}

/* A queue number may be guessed, and is no reason to fail who waits to be confirmed. */
static void test_unreachable_half_open(void **state)
{
	struct party *active;

	(void)state;
	world.requested = do_accept;
	world.allowed = no_ready;
	active = connect_one();
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(state_of(guest()), CM_REP_SENT);
	refuse(&world.hosts[1], &world.hosts[0], active->qp.number, 0, 64);
	assert_int_equal(state_of(guest()), CM_REP_SENT);
	refuse(&world.hosts[1], &world.hosts[0], MAD_QPN, guest()->endpoint.cm_id->local_id, 64);
	assert_int_equal(guest()->code, ECONNREFUSED);
	forget_all();
}

/* More at once than there are buffers: each must leave as it was written. */
static void test_many_at_once(void **state)
{
	enum {
		CONNECTIONS = 5 * CM_OUTGOING / 2
	};

	(void)state;
	world.requested = do_accept;
	for (unsigned i = 0; i < CONNECTIONS; i++)
		connect_one();
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(count_up(), 2 * CONNECTIONS);
	assert_int_equal(network->sent, 3 * CONNECTIONS);
	forget_all();
}

enum {
	STORM_CONNECTIONS = 24
};

static void do_begin(struct party *party)
{
	/* party is none: a storm's connections begin at different times. */
	(void)party;
	connect_one();
}

static void do_leave(struct party *party)
{
	switch (network_random() % 3) {
	case 0:
		do_disconnect(party);
		break;
	case 1:
		do_forget(party);
		break;
	default: /* the other end is to leave */
		break;
	}
}

static void storm_requested(struct party *party)
{
	static void (*const answers_of_commands[])(struct party *) = { do_accept, do_accept, do_accept, do_reject,
								       do_forget };

	world_call(party, world_time(2 * CLOCK_NS_PER_S),
		   answers_of_commands[network_random() % LENGTH(answers_of_commands)]);
}

static void storm_established(struct party *party)
{
	for (struct party *other = world.parties; other; other = other->next)
		if (other->qp.number == party->qp.agreement.peer_qpn && world_chance(50))
			world_call(other, world_time(300 * CLOCK_NS_PER_MS), do_hear);
	world_call(party, world_time(5 * CLOCK_NS_PER_S), do_leave);
}

/* How much of a storm's business came about: else a manager that refuses everything would pass. */
static unsigned count_told(enum soft_event_kind kind)
{
	unsigned count = 0;

	for (struct party *party = world.parties; party; party = party->next)
		count += party->told[kind];
	return count;
}

static void storm(unsigned drop, unsigned twice, int64_t slowest)
{
	network->loss = 10 * drop;
	network->repeat = 10 * twice;
	network->reorder = 1000;
	network->jitter = slowest;
	world.requested = storm_requested;
	world.established = storm_established;
	for (unsigned i = 0; i < STORM_CONNECTIONS; i++)
		world_call(NULL, world_time(3 * CLOCK_NS_PER_S), do_begin);
	network_drain();
	/* Everybody has an answer; who is still up has a peer that is still up, or one that left unheard. */
	for (struct party *party = world.parties; party; party = party->next) {
		if (party->gone)
			continue;
		assert_true(party->last == SOFT_EVENT_ESTABLISHED || party->last == SOFT_EVENT_DISCONNECTED ||
			    party->last == SOFT_EVENT_FAILED);
		if (is_up(party))
			assert_int_equal(state_of(party), CM_ESTABLISHED);
	}
	for (struct party *party = world.parties; party; party = party->next)
		do_disconnect(party);
	world.established = NULL;
	network_drain();
	assert_int_equal(count_up(), 0);
	forget_all();
	/* Three of five requests are accepted: both ends were told, and those that stayed were told of the end. */
	assert_in_range(count_told(SOFT_EVENT_REQUESTED), STORM_CONNECTIONS, STORM_CONNECTIONS);
	assert_in_range(count_told(SOFT_EVENT_ESTABLISHED), STORM_CONNECTIONS / 2, 2 * STORM_CONNECTIONS);
	assert_in_range(count_told(SOFT_EVENT_DISCONNECTED), STORM_CONNECTIONS / 4, 2 * STORM_CONNECTIONS);
	forget_parties();
}

static void test_fair_weather(void **state)
{
	(void)state;
	storm(0, 0, 0);
	storm(0, 20, 30 * CLOCK_NS_PER_MS);
}

static void test_storms(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 120; seed++) {
		network_seed(seed);
		storm(seed % 4 * 10, seed % 3 * 20, (int64_t)(seed % 5) * 150 * CLOCK_NS_PER_MS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_many_at_once),		WORLD_TEST(test_unreachable),  WORLD_TEST(test_no_way),
		WORLD_TEST(test_unreachable_half_open), WORLD_TEST(test_fair_weather), WORLD_TEST(test_storms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
