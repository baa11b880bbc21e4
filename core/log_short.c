/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of log.c without WITH_CAUSES: an error is the line that is printed, in its cause. */
#include "core/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"

/* Object and phase take at most 304 bytes before it, the code 14 after it. */
enum {
	WORDS_MAX = 300
};
_Static_assert(304 + WORDS_MAX + 14 < ERROR_CAUSE_SIZE, "the line does not fit");

/* The text that others choose parts of goes to a terminal. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

char *log_text(char *text, size_t size, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(text, size, format, list);
	va_end(list);
	make_printable(text);
	return text;
}

bool log_allows(struct log_limit *limit)
{
	int64_t now = clock_now();

	if (now - limit->since >= CLOCK_NS_PER_S)
		*limit = (struct log_limit){ .since = now };
	return !limit->printed++;
}

static void __attribute__((format(printf, 3, 0))) fill(struct error *error, const struct failure *failure,
						       const char *format, va_list list)
{
	const char *object = failure->object && *failure->object ? failure->object : NULL;
	char *end = error->cause + snprintf(error->cause, sizeof(error->cause), "%.200s%s%.100s%s",
					    object ? object : "", object ? ": " : "",
					    failure->phase ? failure->phase : "", failure->phase ? ": " : "");

	vsnprintf(end, WORDS_MAX, format, list);
	if (failure->code)
		sprintf(end + strlen(end), " (%d)", failure->code);
	make_printable(error->cause);
}

void error_set(struct error *error, const char *object, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	fill(error, &(struct failure){ .object = object }, format, list);
	va_end(list);
}

void error_failure(struct error *error, const struct failure *failure, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	fill(error, failure, format, list);
	va_end(list);
}

/* One write, so that the lines of several processes on one terminal or log do not mix. */
void log_report(const struct log *log, const struct error *error)
{
	int kept = errno;

	if (error_is_set(error) && !log->silent)
		fprintf(stderr, "%s: %s\n", log->name, error->cause);
	errno = kept;
}

void log_error(const struct log *log, const char *object, const char *format, ...)
{
	struct error error;
	va_list list;

	va_start(list, format);
	fill(&error, &(struct failure){ .object = object }, format, list);
	va_end(list);
	log_report(log, &error);
}

void log_cause(const struct log *log, const char *object, const char *phase, int code, const char *format, ...)
{
	struct error error;
	va_list list;

	va_start(list, format);
	fill(&error, &(struct failure){ .object = object, .phase = phase, .code = code }, format, list);
	va_end(list);
	log_report(log, &error);
}
