/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/cm.wrap */
/* How connections end: DREQ and DREP, and what is remembered of them. */
#include "test/network/cm.h"

/* The RTU got lost and the peer leaves at once: it was connected all the same. */
static void test_goodbye_without_ready(void **state)
{
	struct party *active;

	(void)state;
	active = connect_without(no_ready);
	do_disconnect(active);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(guest()->told[SOFT_EVENT_ESTABLISHED], 1);
	assert_int_equal(guest()->last, SOFT_EVENT_DISCONNECTED);
	assert_int_equal(active->last, SOFT_EVENT_DISCONNECTED);
	do_forget(active);
	do_forget(guest());
}

/* A DREQ for another queue pair, of an older connection with the same identifiers, is not answered either. */
static void test_goodbye_of_another_queue(void **state)
{
	struct party *active, *passive;
	struct mad mad;

	(void)state;
	active = connect_pair(&passive);
	mad = mad_forge(MAD_DREQ, passive, &world.hosts[0]);
	mad.dreq.remote_qpn++;
	world_inject(&world.hosts[0], &world.hosts[1], &mad);
	network_run(CLOCK_NS_PER_MS);
	assert_true(is_up(active) && is_up(passive));
	assert_int_equal(count_of(MAD_DREP), 0);
	do_disconnect(active);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(passive->last, SOFT_EVENT_DISCONNECTED);
	do_forget(active);
	do_forget(passive);
	network_drain();
	check_nothing_left();
}

static void test_crossing_goodbyes(void **state)
{
	struct party *active, *passive;

	(void)state;
	active = connect_pair(&passive);
	do_disconnect(active);
	do_disconnect(passive);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(count_of(MAD_DREQ), 2);
	assert_int_equal(count_of(MAD_DREP), 2);
	assert_int_equal(active->last, SOFT_EVENT_DISCONNECTED);
	assert_int_equal(passive->last, SOFT_EVENT_DISCONNECTED);
	do_forget(active);
	do_forget(passive);
	network_drain();
	check_nothing_left();
}

/* A lost DREP: the repeated DREQ finds an end that has ended long ago, and gets its answer. */
static void test_repeated_goodbye(void **state)
{
	struct party *active, *passive;

	(void)state;
	active = connect_pair(&passive);
	world.allowed = no_goodbye;
	do_disconnect(active);
	network_run(50 * CLOCK_NS_PER_MS);
	do_forget(passive); /* says DREQ too, in vain */
	network_run(5 * CLOCK_NS_PER_S);
	assert_int_equal(state_of(active), CM_DREQ_SENT);
	world.allowed = NULL;
	network_run(3 * CLOCK_NS_PER_S);
	assert_int_equal(active->last, SOFT_EVENT_DISCONNECTED);
	do_forget(active);
	network_drain();
	check_nothing_left();
}

/* Nobody is left who could answer a repeated DREQ: the answer is given more than once, as the question is. */
static void test_last_words(void **state)
{
	struct party *active, *passive;

	(void)state;
	active = connect_pair(&passive);
	do_disconnect(active);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(count_of(MAD_DREP), 1);
	do_forget(passive);
	host_stop(&world.hosts[1]);
	assert_int_equal(count_of(MAD_DREP), 3);
	do_forget(active);
	network_drain();
}

static void test_goodbye_unheard(void **state)
{
	struct party *active, *passive;

	(void)state;
	active = connect_pair(&passive);
	do_forget(active);
	world_flush();
	assert_int_equal(count_of(MAD_DREQ), 1);
	host_stop(&world.hosts[0]);
	assert_int_equal(count_of(MAD_DREQ), 3);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(passive->told[SOFT_EVENT_DISCONNECTED], 1);
	do_forget(passive);
	network_drain();
}

/* The peer leaves while we wait for an acknowledgement: its repeats give that some time, but not for ever. */
static void test_goodbye_while_waiting(void **state)
{
	struct party *active, *passive;

	(void)state;
	for (unsigned comes = 0; comes < 2; comes++) {
		active = connect_pair(&passive);
		passive->qp.waiting = true;
		do_disconnect(active);
		network_run(80 * CLOCK_NS_PER_MS);
		assert_int_equal(passive->told[SOFT_EVENT_DISCONNECTED], 0);
		assert_int_equal(state_of(active), CM_DREQ_SENT);
		passive->qp.waiting = !comes;
		network_run(CLOCK_NS_PER_MS * 170);
		assert_int_equal(passive->told[SOFT_EVENT_DISCONNECTED], comes);
		assert_int_equal(active->told[SOFT_EVENT_DISCONNECTED], comes);
		network_run(300 * CLOCK_NS_PER_MS);
		assert_int_equal(passive->told[SOFT_EVENT_DISCONNECTED], 1);
		assert_int_equal(active->told[SOFT_EVENT_DISCONNECTED], 1);
		do_forget(active);
		do_forget(passive);
	}
	network_drain();
	check_nothing_left();
}

/* Both leave then, or the end that waits goes. */
static void test_goodbyes_while_waiting(void **state)
{
	struct party *active, *passive;

	(void)state;
	for (unsigned goes = 0; goes < 2; goes++) {
		active = connect_pair(&passive);
		passive->qp.waiting = true;
		do_disconnect(active);
		network_run(80 * CLOCK_NS_PER_MS);
		(goes ? do_forget : do_disconnect)(passive);
		network_run(CLOCK_NS_PER_S);
		assert_int_equal(active->told[SOFT_EVENT_DISCONNECTED], 1);
		do_forget(active);
		if (!goes)
			do_forget(passive);
	}
	network_drain();
	check_nothing_left();
}

static void test_forgotten_while_up(void **state)
{
	struct party *active, *passive;

	(void)state;
	active = connect_pair(&passive);
	world.allowed = no_goodbye;
	do_forget(passive);
	network_run(CLOCK_NS_PER_S);
	assert_int_equal(world.hosts[1].transport->cm->orphans, 1);
	world.allowed = NULL;
	network_run(CLOCK_NS_PER_S);
	assert_int_equal(active->last, SOFT_EVENT_DISCONNECTED);
	do_forget(active);
	network_drain();
	check_nothing_left();
}

/* The same for REP, and for DREQ, which gets what it wants. */
static void test_silence_later(void **state)
{
	struct party *active, *passive;

	(void)state;
	active = connect_pair(&passive);
	world.allowed = nothing_at_all;
	do_disconnect(active);
	network_drain();
	assert_int_equal(active->last, SOFT_EVENT_DISCONNECTED);
	assert_true(is_up(passive));
	do_forget(passive);
	do_forget(active);
	world.allowed = no_reply;
	active = connect_one();
	network_run(CLOCK_NS_PER_MS);
	passive = guest();
	do_forget(active);
	network_drain();
	assert_int_equal(passive->last, SOFT_EVENT_FAILED);
	do_forget(passive);
	network_drain();
	check_nothing_left();
}

/* Who still sends may go on to: what has ended is remembered for 20 s after the last message for it. */
static void test_messages_prolong_the_memory(void **state)
{
	static const struct {
		enum mad_kind kind;
		bool rejected;
	} rows[] = { { MAD_DREQ, false }, { MAD_REQ, false }, { MAD_REQ, true } };

	(void)state;
	for (size_t row = 0; row < LENGTH(rows); row++) {
		const struct cm_list *ended = &world.hosts[1].transport->cm->timewait;
		struct party *active, *passive;
		struct mad mad;

		world.requested = rows[row].rejected ? do_reject : do_accept;
		active = connect_one();
		network_run(CLOCK_NS_PER_MS);
		passive = guest();
		if (rows[row].kind == MAD_DREQ)
			mad = mad_forge(MAD_DREQ, passive, &world.hosts[0]);
		else
			assert_non_null(last_of(MAD_REQ, &world.hosts[0], &mad));
		do_disconnect(active);
		network_run(CLOCK_NS_PER_MS);
		do_forget(active);
		do_forget(passive);
		for (unsigned turn = 0; turn < 2; turn++) {
			network_run(15 * CLOCK_NS_PER_S);
			assert_int_equal(ended->count, 1);
			world_inject(&world.hosts[0], &world.hosts[1], &mad);
		}
		network_run(21 * CLOCK_NS_PER_S);
		assert_int_equal(ended->count, 0);
	}
	network_drain();
	check_nothing_left();
}

/* The endpoint is gone, and nobody waits for the answer: it says so for 3 s, not for 73. */
static void test_how_often_a_goodbye_is_repeated(void **state)
{
	struct party *active, *passive;

	(void)state;
	active = connect_pair(&passive);
	world.allowed = nothing_at_all;
	do_forget(active);
	network_drain();
	assert_int_equal(count_of(MAD_DREQ), 1 + CM_ORPHAN_RESENDS);
	do_forget(passive);
	network_drain();
	check_nothing_left();
}

/* More ends than are remembered: the oldest make room, endpoint or not. */
static void test_many_ends(void **state)
{
	struct soft_cm *cm = world.hosts[0].transport->cm;
	struct party *active = NULL, *first = NULL;

	(void)state;
	world.allowed = nothing_at_all;
	for (unsigned i = 0; i < CM_TIMEWAIT_MOST + 1000; i++) {
		active = connect_one();
		if (!first)
			first = active;
		refuse_message(&world.hosts[0], active);
		assert_int_equal(active->last, SOFT_EVENT_FAILED);
	}
	assert_int_equal(cm->timewait.count, CM_TIMEWAIT_MOST);
	assert_null(first->endpoint.cm_id);
	assert_non_null(active->endpoint.cm_id);
	assert_int_equal(soft_cm_accept(&first->endpoint, NULL, 0), OUTCOME_OK);
	assert_int_equal(soft_cm_disconnect(&first->endpoint), OUTCOME_OK);
	forget_all();
}

/* As many goodbyes as nobody answers. */
static void test_many_dying(void **state)
{
	const struct soft_cm *cm = world.hosts[0].transport->cm;

	(void)state;
	for (unsigned i = 0; i < CM_ORPHANS_MOST + 10; i++) {
		struct party *passive, *active;

		world.allowed = NULL;
		active = connect_pair(&passive);
		world.allowed = nothing_at_all;
		do_forget(active);
		do_forget(passive);
		world_flush();
		assert_true(cm->orphans <= CM_ORPHANS_MOST);
	}
	forget_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_goodbye_without_ready),
		WORLD_TEST(test_goodbye_of_another_queue),
		WORLD_TEST(test_crossing_goodbyes),
		WORLD_TEST(test_repeated_goodbye),
		WORLD_TEST(test_last_words),
		WORLD_TEST(test_goodbye_unheard),
		WORLD_TEST(test_goodbye_while_waiting),
		WORLD_TEST(test_goodbyes_while_waiting),
		WORLD_TEST(test_forgotten_while_up),
		WORLD_TEST(test_silence_later),
		WORLD_TEST(test_messages_prolong_the_memory),
		WORLD_TEST(test_how_often_a_goodbye_is_repeated),
		WORLD_TEST(test_many_ends),
		WORLD_TEST(test_many_dying),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
