/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/wrap.h"

#include <stdbool.h>

enum {
	WIDTH = 80
};

/* Returns the length of the part that fits into room, or of the first one if it is longer. */
static size_t line_length(const char *text, size_t room, char after)
{
	size_t fits = 0;

	for (size_t length = 1; text[length - 1]; length++) {
		bool ends = !text[length] || (text[length] == ' ' && (!after || text[length - 1] == after));

		if (ends && (!fits || length <= room))
			fits = length;
	}
	return fits;
}

void wrap_print(struct output *output, size_t used, size_t indent, char after, const char *text)
{
	int blanks = 0;

	while (*text) {
		size_t length = line_length(text, WIDTH - used, after);

		output_print(output, "%*s%.*s\n", blanks, "", (int)length, text);
		text += length;
		text += *text == ' ';
		used = indent;
		blanks = (int)indent;
	}
}
