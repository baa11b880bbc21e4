/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/wrap.h"

#include <stdint.h>

#include "core/terminal.h"

void wrap_print(struct output *output, size_t width, size_t used, size_t indent, char after, const char *text)
{
	int blanks = 0;

	while (*text) {
		size_t length = terminal_line(text, width ? width - used : SIZE_MAX, after);

		output_print(output, "%*s%.*s\n", blanks, "", (int)length, text);
		text += length;
		text += *text == ' ';
		used = indent;
		blanks = (int)indent;
	}
}
