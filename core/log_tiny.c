/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces log.c without WITH_DIAGNOSTICS: an error's cause has the whole printed line. */
#include "core/log.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/output.h"

/* Object and phase take at most 304 bytes before the cause, the code 14 after it. */
enum {
	WORDS_MAX = 300,
	CODE_MAX = 15,
};
_Static_assert(304 + WORDS_MAX + CODE_MAX < ERROR_CAUSE_SIZE, "the line does not fit");

bool log_allows(struct log_limit *limit)
{
	int64_t now = clock_now();

	if (now - limit->since >= CLOCK_NS_PER_S)
		*limit = (struct log_limit){ .since = now };
	return !limit->printed++;
}

void error_fill(struct error *error, const struct failure *failure, const char *format, va_list list)
{
	const char *object = failure->object ? failure->object : "";
	char *end = error->cause;

	log_text(end, sizeof(error->cause), "%.200s%s%.100s%s", object, *object ? ": " : "",
		 failure->phase ? failure->phase : "", failure->phase ? ": " : "");
	end += strlen(end);
	log_text_list(end, WORDS_MAX, format, list);
	if (failure->code)
		log_text(end + strlen(end), CODE_MAX, " (%d)", failure->code);
}

/* One write, so that the lines of several processes on one terminal or log do not mix. */
void log_report(const struct log *log, const struct error *error)
{
	int kept = errno;

	if (error_is_set(error) && !log->silent)
		output_print(&(struct output){ .fd = STDERR_FILENO }, "%s: %s\n", log->name, error->cause);
	errno = kept;
}
