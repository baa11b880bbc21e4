/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors from a format, over error_fill() and log_report(), which are in log.c or log_short.c. */
#include "core/log.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/sysfs.h"

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

#if WITH_CAUSES
enum {
	SPACE_SIZE = 96
};

/* Memory may have run into this limit of the process. */
static const char *address_space(char text[SPACE_SIZE])
{
	unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE) / 1024;
	char pages[SYSFS_TEXT_SIZE];
	struct rlimit limit;
	int kept = errno;

	*text = '\0';
	if (!getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY && sysfs_line(pages, "/proc/self/statm"))
		log_text(text, SPACE_SIZE, ": %lu of %llu KiB of address space in use (ulimit -v)",
			 strtoul(pages, NULL, 10) * page, (unsigned long long)limit.rlim_cur / 1024);
	errno = kept;
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
