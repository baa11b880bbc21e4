/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/unit/unit.h"

#include "core/spelling.h"

static void edits_are_counted(void **state)
{
	(void)state;
	assert_int_equal(spelling_distance("count", "count"), 0);
	assert_int_equal(spelling_distance("cuont", "count"), 1);
	assert_int_equal(spelling_distance("coun", "count"), 1);
	assert_int_equal(spelling_distance("counts", "count"), 1);
	assert_int_equal(spelling_distance("comnt", "count"), 1);
	assert_int_equal(spelling_distance("perssitant", "persistent"), 2);
}

static void different_words_are_far(void **state)
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

static void one_edit_per_three_letters(void **state)
{
	(void)state;
	assert_int_equal(spelling_distance("tp", "to"), SPELLING_FAR);
	assert_int_equal(spelling_distance("fax", "fox"), 1);
	assert_int_equal(spelling_distance("ciumt", "count"), SPELLING_FAR);
	assert_int_equal(spelling_distance("ciumts", "counts"), 2);
	assert_int_equal(spelling_distance("perszstxnty", "persistent"), SPELLING_FAR);
}

/* Words of the maximum length and of one letter less or more. */
static void longest_word(void **state)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzabcdefg";
	char one[40], other[40];

	(void)state;
	for (int typed = 31; typed <= 33; typed++)
		for (int meant = 31; meant <= 33; meant++) {
			unsigned distance = (unsigned)(typed > meant ? typed - meant : meant - typed);

			snprintf(one, sizeof(one), "%.*s", typed, letters);
			snprintf(other, sizeof(other), "%.*s", meant, letters);
			assert_int_equal(spelling_distance(one, other),
					 typed > 32 || meant > 32 ? SPELLING_FAR : distance);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edits_are_counted),
		cmocka_unit_test(different_words_are_far),
		cmocka_unit_test(one_edit_per_three_letters),
		cmocka_unit_test(longest_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
