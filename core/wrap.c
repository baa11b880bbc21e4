/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/wrap.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <unistd.h>

enum {
	NARROWEST = 40
};

size_t wrap_width(FILE *stream)
{
	struct winsize size = { .ws_col = 0 };
	int fd = fileno(stream);

	if (!isatty(fd))
		return 0;
	return ioctl(fd, TIOCGWINSZ, &size) || !size.ws_col ? WRAP_WIDTH : MAX(size.ws_col, NARROWEST);
}

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

void wrap_print(struct output *output, size_t width, size_t used, size_t indent, char after, const char *text)
{
	int blanks = 0;

	while (*text) {
		size_t length = line_length(text, width ? width - used : SIZE_MAX, after);

		output_print(output, "%*s%.*s\n", blanks, "", (int)length, text);
		text += length;
		text += *text == ' ';
		used = indent;
		blanks = (int)indent;
	}
}
