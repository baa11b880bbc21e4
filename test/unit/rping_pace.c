/* SPDX-License-Identifier: BSD-2-Clause */
/* The beat of pings: no drift, and nothing made up for. */
#include "test/unit/unit.h"

#include "cmd/rping/pace.h"

static void first_ping_is_due_at_once(void **state)
{
	struct pace pace = { .period = 100 };

	(void)state;
	assert_int_equal(pace_wait(&pace, 5000), 0);
}

static void beats_do_not_drift(void **state)
{
	struct pace pace = { .period = 100 };

	(void)state;
	pace_start(&pace, 5000);
	for (int64_t beat = 5100; beat < 9000; beat += 100) {
		/* The answer came after 30, and the loop woke up 7 late. */
		assert_int_equal(pace_wait(&pace, beat - 70), 70);
		assert_int_equal(pace_wait(&pace, beat + 7), 0);
		pace_start(&pace, beat + 7);
	}
}

static void late_ping_goes_at_once_and_alone(void **state)
{
	struct pace pace = { .period = 100 };

	(void)state;
	pace_start(&pace, 5000);
	/* A stall of almost ten beats: one ping at once, and the next on its beat. */
	assert_int_equal(pace_wait(&pace, 5970), 0);
	pace_start(&pace, 5970);
	assert_int_equal(pace_wait(&pace, 5980), 20);
	pace_start(&pace, 6000);
	assert_int_equal(pace_wait(&pace, 6001), 99);
}

static void without_a_period_pings_follow_each_other(void **state)
{
	struct pace pace = { .period = 0 };

	(void)state;
	for (int64_t now = 5000; now < 5010; now++) {
		assert_int_equal(pace_wait(&pace, now), 0);
		pace_start(&pace, now);
	}
}

/* What a rate counts: n pings take n beats, also where the loop wakes up late, and a long one takes what it takes. */
static void pings_take_their_beats(void **state)
{
	struct pace pace = { .period = 100 };
	struct pace none = { 0 };

	(void)state;
	pace_start(&pace, 5000);
	assert_int_equal(pace_slot(&pace, 5000), 5000);
	assert_int_equal(pace_slot_end(&pace, 5030), 5100);
	pace_start(&pace, 5107);
	assert_int_equal(pace_slot(&pace, 5107), 5100);
	assert_int_equal(pace_slot_end(&pace, 5137), 5200);
	assert_int_equal(pace_slot_end(&pace, 5950), 5950);
	pace_start(&none, 5000);
	assert_int_equal(pace_slot(&none, 5000), 5000);
	assert_int_equal(pace_slot_end(&none, 5030), 5030);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_ping_is_due_at_once),
		cmocka_unit_test(beats_do_not_drift),
		cmocka_unit_test(late_ping_goes_at_once_and_alone),
		cmocka_unit_test(without_a_period_pings_follow_each_other),
		cmocka_unit_test(pings_take_their_beats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
