/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/unit/unit.h"

#include "core/options.h"

TEST(edits_are_counted)
{
	assert_int_equal(spelling_distance("count", "count"), 0);
	assert_int_equal(spelling_distance("cuont", "count"), 1);
	assert_int_equal(spelling_distance("coun", "count"), 1);
	assert_int_equal(spelling_distance("counts", "count"), 1);
	assert_int_equal(spelling_distance("comnt", "count"), 1);
	assert_int_equal(spelling_distance("perssitant", "persistent"), 2);
}

TEST(different_words_are_far)
{
	char word[200];

	memset(word, 'a', sizeof(word) - 1);
	word[sizeof(word) - 1] = 0;
	assert_int_equal(spelling_distance("ping", "count"), SPELLING_FAR);
	assert_int_equal(spelling_distance("", "a"), SPELLING_FAR);
	assert_int_equal(spelling_distance("at", "to"), SPELLING_FAR);
	assert_int_equal(spelling_distance(word, "count"), SPELLING_FAR);
	assert_int_equal(spelling_distance("count", word), SPELLING_FAR);
}

TEST(one_edit_per_three_letters)
{
	assert_int_equal(spelling_distance("tp", "to"), SPELLING_FAR);
	assert_int_equal(spelling_distance("fax", "fox"), 1);
	assert_int_equal(spelling_distance("ciumt", "count"), SPELLING_FAR);
	assert_int_equal(spelling_distance("ciumts", "counts"), 2);
	assert_int_equal(spelling_distance("perszstxnty", "persistent"), SPELLING_FAR);
}

/* Words of the maximum length, and one letter less or more. */
TEST(longest_word)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzabcdefg";
	char one[40], other[40];

	for (int typed = 31; typed <= 33; typed++)
		for (int meant = 31; meant <= 33; meant++) {
			unsigned distance = (unsigned)(typed > meant ? typed - meant : meant - typed);

			snprintf(one, sizeof(one), "%.*s", typed, letters);
			snprintf(other, sizeof(other), "%.*s", meant, letters);
			assert_int_equal(spelling_distance(one, other),
					 typed > 32 || meant > 32 ? SPELLING_FAR : distance);
		}
}
