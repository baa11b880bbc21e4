/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/terminal.h"

enum {
	LINE_SIZE = 1024,
	LIMIT_LINES = 10, /* in each ... */
};
#define LIMIT_PERIOD (10 * CLOCK_NS_PER_S)

/* One write, so that the lines of several processes on one terminal or log do not mix. */
static void print(const struct log *log, const char *object, const char *text)
{
	char line[LINE_SIZE];
	ssize_t ignored;
	size_t length;

	log_text(line, sizeof(line) - 1, "%s: %s%s%s", log->name, object, *object ? ": " : "", text);
	terminal_wrap(line, sizeof(line) - 1, STDERR_FILENO);
	length = strlen(line);
	line[length++] = '\n';
	ignored = write(STDERR_FILENO, line, length);
	(void)ignored;
}

bool log_allows(struct log_limit *limit)
{
	int64_t now = clock_now();

	if (!limit->since || now - limit->since >= LIMIT_PERIOD)
		*limit = (struct log_limit){ .since = now };
	return limit->printed++ < LIMIT_LINES;
}

const char *error_text(const struct error *error, char text[ERROR_TEXT_SIZE])
{
	bool has_code = *error->code;

	return log_text(text, ERROR_TEXT_SIZE, "%s%s%s%s%s%s", error->phase, *error->phase ? ": " : "", error->cause,
			has_code ? " (" : "", error->code, has_code ? ")" : "");
}

/* ---- filling ---- */

void error_fill(struct error *error, const struct failure *failure, const char *format, va_list list)
{
	const char *name = failure->code_name;

	log_text(error->object, sizeof(error->object), "%s", failure->object ? failure->object : "");
	log_text(error->phase, sizeof(error->phase), "%s", failure->phase ? failure->phase : "");
	log_text_list(error->cause, sizeof(error->cause), format, list);
	*error->code = *error->hint = '\0';
	if (name || failure->code)
		log_text(error->code, sizeof(error->code), "%s%s%d", name ? name : "", name ? " " : "", failure->code);
	error->part = NULL;
	error->kind = failure->kind;
}

void error_hint(struct error *error, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	if (!*error->hint)
		log_text_list(error->hint, sizeof(error->hint), format, list);
	va_end(list);
}

/* ---- reporting ---- */

static bool is_same(const struct error *one, const struct error *other)
{
	return !strcmp(one->object, other->object) && !strcmp(one->phase, other->phase) &&
	       !strcmp(one->cause, other->cause) && !strcmp(one->code, other->code);
}

bool log_keep(const struct log *log, const struct error *error)
{
	struct errors *errors = log->errors;

	if (!errors)
		return true;
	if (errors->count && is_same(error, &errors->last))
		return false;
	errors->last = *error;
	errors->last.part = log->part;
	if (!errors->count++)
		errors->first = errors->last;
	if (log->reported)
		log->reported(log->context, &errors->last);
	return true;
}

void log_report(const struct log *log, const struct error *error)
{
	char text[ERROR_TEXT_SIZE];
	int kept = errno;

	if (error_is_set(error) && log_keep(log, error) && !log->silent) {
		print(log, error->object, error_text(error, text));
		if (*error->hint)
			print(log, "hint", error->hint);
	}
	errno = kept;
}

void log_hint(const struct log *log, const char *format, ...)
{
	struct errors *errors = log->errors;
	char text[ERROR_HINT_SIZE];
	int kept = errno;
	va_list list;

	va_start(list, format);
	log_text_list(text, sizeof(text), format, list);
	va_end(list);
	if (errors && errors->count)
		error_hint(&errors->last, "%s", text);
	if (errors && errors->count == 1)
		error_hint(&errors->first, "%s", text);
	if (!log->silent)
		print(log, "hint", text);
	errno = kept;
}

void log_debug(const struct log *log, const char *format, ...)
{
	char text[ERROR_TEXT_SIZE];
	int kept = errno;
	va_list list;

	if (!log->debug || log->silent)
		return;
	va_start(list, format);
	log_text_list(text, sizeof(text), format, list);
	va_end(list);
	print(log, "debug", text);
	errno = kept;
}
