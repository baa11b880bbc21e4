/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"

enum {
	LINE_MOST = 1024,
	LIMIT_TOLD = 10, /* in each ... */
};
#define LIMIT_PERIOD (10 * CLOCK_NS_PER_S)

const char log_hint_object[] = "hint";

/* A line under construction. What does not fit is cut, and the cut is marked. */
struct line {
	char text[LINE_MOST];
	size_t length;
};

static void __attribute__((format(printf, 2, 0))) append_list(struct line *line, const char *format, va_list list)
{
	size_t room = sizeof(line->text) - line->length;
	int length = vsnprintf(line->text + line->length, room, format, list);

	if (length > 0)
		line->length += (size_t)length < room ? (size_t)length : room - 1;
}

static void __attribute__((format(printf, 2, 3))) append(struct line *line, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	append_list(line, format, list);
	va_end(list);
}

/* Marks a cut, and what a user or a peer sent must not move the cursor or forge a line of its own. */
static void clean(struct line *line)
{
	static const char cut[] = "...";

	if (line->length == sizeof(line->text) - 1)
		memcpy(line->text + line->length - (sizeof(cut) - 1), cut, sizeof(cut) - 1);
	for (size_t i = 0; i < line->length; i++) {
		unsigned char byte = (unsigned char)line->text[i];

		if (byte < ' ' || byte == 0x7f)
			line->text[i] = '?';
	}
}

/* One write, so that the lines of several processes on one terminal or log do not mix. */
static void print(struct line *line)
{
	ssize_t ignored;

	line->text[line->length++] = '\n';
	ignored = write(STDERR_FILENO, line->text, line->length);
	(void)ignored;
}

/* In place of an errno value. */
enum {
	NO_ERROR = -1,
	DEBUG = -2,
};

bool log_allows(struct log_limit *limit)
{
	int64_t now = clock_now();

	if (!limit->since || now - limit->since >= LIMIT_PERIOD)
		*limit = (struct log_limit){ .since = now };
	return limit->told++ < LIMIT_TOLD;
}

bool log_holds(const struct log *log, const char *object, const char *text)
{
	return log->hold && log->hold(log->holder, object, text);
}

static void __attribute__((format(printf, 4, 0))) say(const struct log *log, const char *object, int error,
						      const char *format, va_list list)
{
	int kept = errno;
	struct line line;
	size_t start;

	if (log->quiet)
		return;
	line.length = 0;
	append(&line, "%s: ", log->name);
	if (object)
		append(&line, "%s: ", object);
	start = line.length;
	append_list(&line, format, list);
	if (error >= 0)
		append(&line, ": %s (%d)", strerror(error), error);
	clean(&line);
	if (error == DEBUG || !log_holds(log, object, line.text + start)) {
		if (log->heard && error != DEBUG)
			log->heard(log, object, line.text + start);
		print(&line);
	}
	errno = kept;
}

void log_error(const struct log *log, const char *object, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	say(log, object, NO_ERROR, format, list);
	va_end(list);
}

void log_errno(const struct log *log, const char *object, int error, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	say(log, object, error, format, list);
	va_end(list);
}

void log_hint(const struct log *log, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	say(log, log_hint_object, NO_ERROR, format, list);
	va_end(list);
}

void log_debug(const struct log *log, const char *format, ...)
{
	va_list list;

	if (!log->debug)
		return;
	va_start(list, format);
	say(log, "debug", DEBUG, format, list);
	va_end(list);
}
