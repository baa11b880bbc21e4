/* SPDX-License-Identifier: BSD-2-Clause */
/* The schedule of --interval: slots do not drift, and missed ones are skipped. */
#include "test/unit/unit.h"

#include "cmd/rping/pace.h"

static void first_ping_starts_immediately(void **state)
{
	struct pace pace = { .period = 100 };

	(void)state;
	assert_int_equal(pace_wait(&pace, 5000), 0);
}

static void slots_do_not_drift(void **state)
{
	struct pace pace = { .period = 100 };

	(void)state;
	pace_start(&pace, 5000);
	for (int64_t slot = 5100; slot < 9000; slot += 100) {
		/* The answer arrived after 30, and the loop woke up 7 late. */
		assert_int_equal(pace_wait(&pace, slot - 70), 70);
		assert_int_equal(pace_wait(&pace, slot + 7), 0);
		pace_start(&pace, slot + 7);
	}
}

static void missed_slots_are_skipped(void **state)
{
	struct pace pace = { .period = 100 };

	(void)state;
	pace_start(&pace, 5000);
	/* A stall of almost ten slots: one ping starts immediately, the next in its slot. */
	assert_int_equal(pace_wait(&pace, 5970), 0);
	pace_start(&pace, 5970);
	assert_int_equal(pace_wait(&pace, 5980), 20);
	pace_start(&pace, 6000);
	assert_int_equal(pace_wait(&pace, 6001), 99);
}

static void pings_without_a_period_do_not_wait(void **state)
{
	struct pace pace = { .period = 0 };

	(void)state;
	for (int64_t now = 5000; now < 5010; now++) {
		assert_int_equal(pace_wait(&pace, now), 0);
		pace_start(&pace, now);
	}
}

/* n pings take n periods, even if the loop wakes up late. A longer ping takes the time until its answer. */
static void paced_pings_take_their_slots(void **state)
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
		cmocka_unit_test(first_ping_starts_immediately), cmocka_unit_test(slots_do_not_drift),
		cmocka_unit_test(missed_slots_are_skipped),	 cmocka_unit_test(pings_without_a_period_do_not_wait),
		cmocka_unit_test(paced_pings_take_their_slots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
