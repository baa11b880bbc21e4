/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/network/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "test/network/network.h"

static unsigned complaints;
static unsigned strangers; /* of them about peers that never got connected */

unsigned network_complaints(void)
{
	return complaints;
}

unsigned network_strangers(void)
{
	return strangers;
}

void __wrap_log_error(const struct log *log, const char *object, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void __wrap_log_errno(const struct log *log, const char *object, int error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void __wrap_log_failure(const struct log *log, const struct failure *failure, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void __wrap_log_hint(const struct log *log, const char *format, ...);
void __wrap_log_debug(const struct log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

__attribute__((format(printf, 2, 0))) static void trace(const char *object, const char *format, va_list arguments)
{
	char text[512];

	vsnprintf(text, sizeof(text), format, arguments);
	if (getenv("FUZZ_TRACE"))
		fprintf(stderr, "%12.6f %s%s%s\n", network ? (double)(network->now - NETWORK_BEGIN) / 1e9 : 0,
			object ? object : "", object ? ": " : "", text);
	/* In our own words, not in what is quoted. */
	if (strstr(format, "defect"))
		violation("%s: %s", object ? object : "", text);
}

static void count(const struct log *log, const char *phase)
{
	complaints += log->sink != &log_discard;
	strangers += log->sink != &log_discard && phase && !strcmp(phase, "accepting");
}

void __wrap_log_error(const struct log *log, const char *object, const char *format, ...)
{
	va_list arguments;

	count(log, NULL);
	va_start(arguments, format);
	trace(object, format, arguments);
	va_end(arguments);
}

void __wrap_log_errno(const struct log *log, const char *object, int error, const char *format, ...)
{
	va_list arguments;

	(void)error;
	count(log, format);
	va_start(arguments, format);
	trace(object, format, arguments);
	va_end(arguments);
}

void __wrap_log_failure(const struct log *log, const struct failure *failure, const char *format, ...)
{
	va_list arguments;

	count(log, failure->phase);
	va_start(arguments, format);
	trace(failure->object, format, arguments);
	va_end(arguments);
}

void __wrap_log_hint(const struct log *log, const char *format, ...)
{
	(void)log;
	(void)format;
}

/* Formatted even if nobody looks, so that its arguments are checked as well. */
void __wrap_log_debug(const struct log *log, const char *format, ...)
{
	va_list arguments;

	(void)log;
	va_start(arguments, format);
	trace(NULL, format, arguments);
	va_end(arguments);
}
