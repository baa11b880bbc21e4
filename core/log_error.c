/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors from a format, over error_fill() and log_report(), which are in log.c or log_tiny.c. */
#include "core/log.h"

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

static void __attribute__((format(printf, 3, 0))) report(const struct log *log, const struct failure *failure,
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

/* ---- with an errno value ---- */

#if WITH_DIAGNOSTICS
static void __attribute__((format(printf, 4, 0))) fill_errno(struct error *error, const char *object, int number,
							     const char *format, va_list list)
{
	char phase[ERROR_PHASE_SIZE];

	log_text_list(phase, sizeof(phase), format, list);
	error_failure(error, &(struct failure){ .object = object, .phase = phase, .code = number }, "%s",
		      strerror(number));
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
