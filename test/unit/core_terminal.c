/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/unit/unit.h"

#include "core/terminal.h"

/* Lines end behind commas, but for a part that is too long for a line; never between a number and what follows it. */
TEST(lines)
{
	static const struct {
		size_t room;
		char after;
		const char *text, *line;
	} rows[] = {
		{ 80, 0, "", "" },
		{ 80, ',', "one two, three", "one two, three" },
		{ 13, 0, "one two, three", "one two," },
		{ 7, 0, "one two, three", "one" },
		{ 13, ',', "one two, three", "one two," },
		{ 12, ',', "one, two three", "one," },
		{ 12, ',', "one two three, four", "one two" },
		{ 2, ',', "one two, three", "one" },
		{ 10, 0, "after 12.3 ms", "after" },
		{ 14, 0, "after 12.3 ms, once", "after 12.3 ms," },
		{ 2, 0, "5 pings", "5 pings" },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		size_t length = terminal_line(rows[i].text, rows[i].room, rows[i].after);

		assert_int_equal(length, strlen(rows[i].line));
		assert_memory_equal(rows[i].text, rows[i].line, length);
	}
}
