/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/unit/unit.h"

#include "core/terminal.h"

/* Lines end behind commas unless a part is too long, and not between a number, or an option, and the next word. */
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
		{ 16, 0, "to 10.0.0.1:7174 answered", "to 10.0.0.1:7174" },
		{ 12, 0, "to 10.0.0.1 answered", "to 10.0.0.1" },
		{ 18, 0, "rping 10.0.0.1 -C 100", "rping 10.0.0.1" },
		{ 21, 0, "rping 10.0.0.1 -C 100", "rping 10.0.0.1 -C 100" },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		size_t length = terminal_line(rows[i].text, rows[i].room, rows[i].after);

		assert_int_equal(length, strlen(rows[i].line));
		assert_memory_equal(rows[i].text, rows[i].line, length);
	}
}
