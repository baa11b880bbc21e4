/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/terminal.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <unistd.h>

enum {
	NARROWEST = 40
};

size_t terminal_width(int fd)
{
	struct winsize size = { .ws_col = 0 };

	if (!isatty(fd))
		return 0;
	return ioctl(fd, TIOCGWINSZ, &size) || !size.ws_col ? TERMINAL_WIDTH : MAX(size.ws_col, NARROWEST);
}

/* A number before its unit, or an option before its value. */
static bool belongs_to_next(const char *word, const char *end)
{
	char *rest;

	strtod(word, &rest);
	return rest == end || (*word == '-' && end - word > 1);
}

size_t terminal_line(const char *text, size_t room, char after)
{
	const char *word = text;
	size_t fits = 0;

	for (size_t length = 1; text[length - 1]; length++) {
		const char *end = text + length;
		bool ends = !*end || (*end == ' ' && (after ? end[-1] == after : !belongs_to_next(word, end)));

		if (*end == ' ')
			word = end + 1;
		if (ends && (!fits || length <= room))
			fits = length;
	}
	return after && fits > room ? terminal_line(text, room, 0) : fits;
}

/* The blank after the last colon, or NULL: the rest, often a command, is best left in one piece. */
static char *last_part(char *line)
{
	char *part = NULL;

	while ((line = strstr(line, ": ")))
		part = ++line;
	return part;
}

void terminal_wrap(char *line, size_t size, int fd)
{
	size_t width = strlen(line) > NARROWEST ? terminal_width(fd) : 0, left = strlen(line), indent = 0;
	const char *end = line + size;

	while (width && left > width && line + left + TERMINAL_INDENT < end) {
		char *next = line + indent + terminal_line(line + indent, width - indent, 0);
		char *part = last_part(line);

		if (part && part < next && (size_t)(part - line) > width / 2 && strlen(part) <= width - TERMINAL_INDENT)
			next = part;
		if (!*next)
			return;
		*next++ = '\n';
		left -= (size_t)(next - line);
		memmove(next + TERMINAL_INDENT, next, left + 1);
		memset(next, ' ', TERMINAL_INDENT);
		line = next;
		left += indent = TERMINAL_INDENT;
	}
}
