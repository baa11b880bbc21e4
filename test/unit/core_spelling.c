/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/unit/unit.h"

#include "core/spelling.h"

static void slips_are_counted(void **state)
{
	(void)state;
	assert_int_equal(spelling_distance("count", "count"), 0);
	assert_int_equal(spelling_distance("cuont", "count"), 1);
	assert_int_equal(spelling_distance("coun", "count"), 1);
	assert_int_equal(spelling_distance("counts", "count"), 1);
	assert_int_equal(spelling_distance("comnt", "count"), 1);
	assert_int_equal(spelling_distance("perssitant", "persistent"), 2);
}

static void strangers_are_far(void **state)
{
	char word[200];

	(void)state;
	memset(word, 'a', sizeof(word) - 1);
	word[sizeof(word) - 1] = 0;
	assert_int_equal(spelling_distance("ping", "count"), SPELLING_FAR);
	assert_int_equal(spelling_distance("", "a"), SPELLING_FAR);
	assert_int_equal(spelling_distance("at", "to"), SPELLING_FAR);
	assert_int_equal(spelling_distance(word, "count"), SPELLING_FAR);
	assert_int_equal(spelling_distance("count", word), SPELLING_FAR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slips_are_counted),
		cmocka_unit_test(strangers_are_far),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
