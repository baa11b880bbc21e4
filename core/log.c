/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/terminal.h"

enum {
	LINE_SIZE = 1024,
	LIMIT_LINES = 10, /* in each ... */
};
#define LIMIT_PERIOD (10 * CLOCK_NS_PER_S)

/* ---- texts ---- */

/*
 * Replaces characters that a terminal may obey: control characters, including the 8-bit ones, U+0080 to U+009F. Other
 * bytes from 0x80 on may be UTF-8.
 */
static void replace_controls(char *text)
{
	unsigned char before = ' ';

	for (unsigned char *byte = (unsigned char *)text; *byte; before = *byte++)
		if (*byte < ' ' || *byte == 0x7f ||
		    (WITH_DIAGNOSTICS && *byte >> 5 == 4 && (before < 0x80 || before == 0xc2)))
			*byte = '?';
}

char *log_text_list(char *text, size_t size, const char *format, va_list list)
{
	static const char cut[] = "...";

	/* In less room than that of the mark it replaces the end of the list that log_add() or log_fill() extends. */
	if (vsnprintf(text, size, format, list) >= (int)size)
		memcpy(text + size - sizeof(cut), cut, sizeof(cut));
	replace_controls(text);
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

void log_add(char *text, size_t size, const char *separator, const char *format, ...)
{
	size_t length = strlen(text);
	va_list list;

	if (length)
		length += strlen(log_text(text + length, size - length, "%s", separator));
	va_start(list, format);
	log_text_list(text + length, size - length, format, list);
	va_end(list);
}

void log_fill(char *text, size_t size, const char *format, const char *name, const char *number)
{
	char *end = text + size - 1;

	for (; *format && text < end; format++) {
		const char *value = *format == '@' ? name : *format == '#' ? number : NULL;

		if (value)
			text += strlen(log_text(text, (size_t)(end - text) + 1, "%s", value));
		else
			*text++ = *format;
	}
	*text = '\0';
	if (*format)
		strcpy(end - 3, "...");
}

/* ---- lines ---- */

/* One write, so that the lines of several processes on one terminal or log do not mix. */
static void print(const struct log *log, const char *object, const char *text)
{
	char line[LINE_SIZE];
	ssize_t ignored;
	size_t length;

	log_text(line, sizeof(line) - 1, "%s: %s%s%s", log->name, object, *object ? ": " : "", text);
	if (WITH_DIAGNOSTICS)
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

void error_failure(struct error *error, const struct failure *failure, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	error_fill(error, failure, format, list);
	va_end(list);
}

void error_set(struct error *error, const char *object, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	error_fill(error, &(struct failure){ .object = object }, format, list);
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

	if (!WITH_DIAGNOSTICS || !errors)
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
		if (WITH_DIAGNOSTICS && *error->hint)
			print(log, "hint", error->hint);
	}
	errno = kept;
}

static void __attribute__((format(printf, 3, 0))) fill_and_report(const struct log *log, const struct failure *failure,
								  const char *format, va_list list)
{
	struct error error;

	error_fill(&error, failure, format, list);
	log_report(log, &error);
}

void log_error(const struct log *log, const char *object, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	fill_and_report(log, &(struct failure){ .object = object }, format, list);
	va_end(list);
}

void log_cause(const struct log *log, const char *object, const char *phase, int code, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	fill_and_report(log, &(struct failure){ .object = object, .phase = phase, .code = code }, format, list);
	va_end(list);
}

/* ---- hints, traces and errno values ---- */

#if WITH_DIAGNOSTICS
void error_hint(struct error *error, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	if (!*error->hint)
		log_text_list(error->hint, sizeof(error->hint), format, list);
	va_end(list);
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

enum {
	SPACE_SIZE = 64
};

/* Memory may have run into this limit of the process. */
static const char *address_space(char text[SPACE_SIZE])
{
	struct rlimit limit;

	*text = '\0';
	if (!getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY)
		log_text(text, SPACE_SIZE, ": ulimit -v allows %llu KiB of address space",
			 (unsigned long long)limit.rlim_cur / 1024);
	return text;
}

static void __attribute__((format(printf, 4, 0))) fill_errno(struct error *error, const char *object, int number,
							     const char *format, va_list list)
{
	char phase[ERROR_PHASE_SIZE], space[SPACE_SIZE];

	log_text_list(phase, sizeof(phase), format, list);
	error_failure(error, &(struct failure){ .object = object, .phase = phase, .code = number }, "%s%s",
		      strerror(number), number == ENOMEM ? address_space(space) : "");
}

void error_errno(struct error *error, const char *object, int number, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	fill_errno(error, object, number, format, list);
	va_end(list);
}

void log_errno(const struct log *log, const char *object, int number, const char *format, ...)
{
	struct error error;
	va_list list;

	va_start(list, format);
	fill_errno(&error, object, number, format, list);
	va_end(list);
	log_report(log, &error);
}
#else
void error_number(struct error *error, const char *object, int number)
{
	error_failure(error, &(struct failure){ .object = object, .code = number }, "%s", strerror(number));
}

void log_number(const struct log *log, const char *object, int number)
{
	struct error error;

	error_number(&error, object, number);
	log_report(log, &error);
}
#endif

/* ---- state machines ---- */

bool log_transition(const char *const *texts, const uint16_t *next, unsigned from, unsigned to, const struct log *log,
		    const char *format, ...)
{
	bool allowed = next[from] >> to & 1;
	char object[ERROR_OBJECT_SIZE];
	va_list arguments;

	if (!WITH_DIAGNOSTICS || (allowed && !log->debug))
		return allowed;
	va_start(arguments, format);
	vsnprintf(object, sizeof(object), format, arguments);
	va_end(arguments);
	if (allowed)
		log_debug(log, "%s: %s -> %s", object, texts[from], texts[to]);
	else
		log_error(log, object, "defect: %s cannot follow %s", texts[to], texts[from]);
	return allowed;
}
