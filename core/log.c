/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"

enum {
	LINE_SIZE = 1024,
	LIMIT_LINES = 10, /* in each ... */
};
#define LIMIT_PERIOD (10 * CLOCK_NS_PER_S)

const struct log_sink log_discard = { 0 };

char *log_text_list(char *text, size_t size, const char *format, va_list list)
{
	static const char cut[] = "...";
	int length = vsnprintf(text, size, format, list);

	if (length < 0)
		*text = 0;
	else if ((size_t)length >= size)
		memcpy(text + size - sizeof(cut), cut, sizeof(cut));
	for (char *byte = text; *byte; byte++)
		if ((unsigned char)*byte < ' ' || *byte == 0x7f)
			*byte = '?';
	return text;
}

char *log_text(char *text, size_t size, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	log_text_list(text, size, format, list);
	va_end(list);
	return text;
}

/* One write, so that the lines of several processes on one terminal or log do not mix. */
static void print(const struct log *log, const char *object, const char *text)
{
	char line[LINE_SIZE];
	ssize_t ignored;
	size_t length;

	log_text(line, sizeof(line) - 1, "%s: %s%s%s", log->name, object, *object ? ": " : "", text);
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

	snprintf(text, ERROR_TEXT_SIZE, "%s%s%s%s%s%s", error->phase, *error->phase ? ": " : "", error->cause,
		 has_code ? " (" : "", error->code, has_code ? ")" : "");
	return text;
}

void log_print_error(const struct log *log, const struct error *error)
{
	char text[ERROR_TEXT_SIZE];

	print(log, error->object, error_text(error, text));
}

void log_print_hint(const struct log *log, const char *text)
{
	print(log, "hint", text);
}

void log_report(const struct log *log, const struct error *error)
{
	int kept = errno;

	if (!log->sink)
		log_print_error(log, error);
	else if (log->sink->error)
		log->sink->error(log, error);
	errno = kept;
}

static void __attribute__((format(printf, 3, 0))) report(const struct log *log, const struct failure *failure,
							 const char *format, va_list list)
{
	const char *name = failure->code_name;
	struct error error = { .kind = failure->kind };

	log_text(error.object, sizeof(error.object), "%s", failure->object ? failure->object : "");
	log_text(error.phase, sizeof(error.phase), "%s", failure->phase ? failure->phase : "");
	log_text_list(error.cause, sizeof(error.cause), format, list);
	if (name || failure->code)
		log_text(error.code, sizeof(error.code), "%s%s%d", name ? name : "", name ? " " : "", failure->code);
	log_report(log, &error);
}

void log_failure(const struct log *log, const struct failure *failure, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	report(log, failure, format, list);
	va_end(list);
}

void log_error(const struct log *log, const char *object, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	report(log, &(struct failure){ .object = object }, format, list);
	va_end(list);
}

void log_cause(const struct log *log, const char *object, const char *phase, int code, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	report(log, &(struct failure){ .object = object, .phase = phase, .code = code }, format, list);
	va_end(list);
}

void log_errno(const struct log *log, const char *object, int error, const char *format, ...)
{
	char phase[ERROR_PHASE_SIZE];
	va_list list;

	va_start(list, format);
	log_text_list(phase, sizeof(phase), format, list);
	va_end(list);
	log_cause(log, object, phase, error, "%s", strerror(error));
}

void log_hint(const struct log *log, const char *format, ...)
{
	char text[ERROR_TEXT_SIZE];
	int kept = errno;
	va_list list;

	va_start(list, format);
	log_text_list(text, sizeof(text), format, list);
	va_end(list);
	if (!log->sink)
		log_print_hint(log, text);
	else if (log->sink->hint)
		log->sink->hint(log, text);
	errno = kept;
}

void log_debug(const struct log *log, const char *format, ...)
{
	char text[ERROR_TEXT_SIZE];
	int kept = errno;
	va_list list;

	if (!log->debug || log->sink == &log_discard)
		return;
	va_start(list, format);
	log_text_list(text, sizeof(text), format, list);
	va_end(list);
	print(log, "debug", text);
	errno = kept;
}
