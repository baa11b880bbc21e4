/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/network/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "test/network/network.h"

static unsigned errors;
static unsigned request_errors; /* errors of the phase accepting */

unsigned network_errors(void)
{
	return errors;
}

unsigned network_request_errors(void)
{
	return request_errors;
}

__attribute__((format(printf, 2, 0))) static void print_trace(const char *object, const char *format, va_list arguments)
{
	char text[512];

	vsnprintf(text, sizeof(text), format, arguments);
	if (getenv("FUZZ_TRACE"))
		fprintf(stderr, "%12.6f %s%s%s\n", network ? (double)(network->now - NETWORK_BEGIN) / 1e9 : 0,
			object ? object : "", object ? ": " : "", text);
	/* Checks the format, not the arguments. */
	if (strstr(format, "defect"))
		violation("%s: %s", object ? object : "", text);
}

static void count_error(const struct log *log, const char *phase)
{
	errors += !log->silent;
	request_errors += !log->silent && phase && !strcmp(phase, "accepting");
}

__attribute__((format(printf, 3, 4))) void __wrap_log_error(const struct log *log, const char *object,
							    const char *format, ...)
{
	va_list arguments;

	count_error(log, NULL);
	va_start(arguments, format);
	print_trace(object, format, arguments);
	va_end(arguments);
}

__attribute__((format(printf, 4, 5))) void __wrap_log_errno(const struct log *log, const char *object, int error,
							    const char *format, ...)
{
	va_list arguments;

	count_error(log, format);
	va_start(arguments, format);
	print_trace(object, format, arguments);
	va_end(arguments);
}

__attribute__((format(printf, 5, 6))) void __wrap_log_cause(const struct log *log, const char *object,
							    const char *phase, int code, const char *format, ...)
{
	va_list arguments;

	count_error(log, phase);
	va_start(arguments, format);
	print_trace(object, format, arguments);
	va_end(arguments);
}

void __wrap_log_report(const struct log *log, const struct error *error)
{
	if (!error_is_set(error))
		return;
	count_error(log, error->phase);
	if (strstr(error->cause, "defect"))
		violation("%s: %s", error->object, error->cause);
}

void __wrap_log_hint(const struct log *log, const char *format, ...)
{
}

/* Formats the message also without FUZZ_TRACE, to check the arguments. */
__attribute__((format(printf, 2, 3))) void __wrap_log_debug(const struct log *log, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_trace(NULL, format, arguments);
	va_end(arguments);
}
