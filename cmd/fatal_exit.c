/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether to print JSON is not a variable, but whether a signal that nobody sends is ignored: a state that a signal
 * handler can look at without writable data at file scope.
 */
#include "cmd/fatal_exit.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/reporting/reporting.h"
#include "core/outcome.h"

/* Next to those that interruption.c and watchdog.c take. */
#define JSON (SIGRTMIN + 2)

/* clang-format off */
#define STRING_OF(number) #number
#define STRING(number) STRING_OF(number)
#if WITH_JSON
/* Constant: what differs from run to run is null. */
#define SUMMARY(code, phase, cause) \
	"{\"type\":\"summary\",\"schema\":" STRING(REPORTING_SCHEMA) ",\"command\":null," \
	"\"version\":\"" RDMATEST_VERSION "\",\"transport\":null,\"duration_ns\":null," \
	"\"verdict\":\"fail\",\"exit_code\":" STRING(code) ",\"error_count\":1,\"errors\":[{\"object\":null," \
	"\"phase\":\"" phase "\",\"cause\":\"" cause "\",\"code\":null,\"text\":\"" phase ": " cause "\"," \
	"\"hint\":null,\"part\":null}]}\n"
#else
#define SUMMARY(code, phase, cause) ""
#endif
#define ROW(code, phase, cause) { code, "rdmatest: " phase ": " cause "\n", SUMMARY(code, phase, cause) }
/* clang-format on */

/* The codes of enum outcome, as the preprocessor needs them. */
#define CODE_INTERRUPTED 130
#define CODE_FAILED	 1
#define CODE_INTERNAL	 5
_Static_assert(CODE_INTERRUPTED == OUTCOME_INTERRUPTED && CODE_FAILED == OUTCOME_FAILED &&
		       CODE_INTERNAL == OUTCOME_INTERNAL,
	       "an exit code has changed");

static const struct {
	int code;
	const char *line;
	const char *summary;
} rows[] = {
	[ABRUPT_INTERRUPTED] = ROW(CODE_INTERRUPTED, "interrupted again", "ended at once"),
	[ABRUPT_STUCK] = ROW(CODE_FAILED, "no end in time", "a system or library call does not return: ended at once"),
	[ABRUPT_REFUSED] = ROW(CODE_INTERNAL, "--sandbox", "a system call was refused: ended at once"),
	[ABRUPT_MEMORY] = ROW(CODE_INTERNAL, "event loop", "out of memory: ended at once"),
	[ABRUPT_LOOP] = ROW(CODE_INTERNAL, "event loop", "the kernel refuses to wait for events: ended at once"),
};

/* Who does not read what was written, for which the run waits perhaps, is not waited for again. */
static void say(int fd, const char *text)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };

	if (poll(&room, 1, 0) > 0 && write(fd, text, strlen(text)) < 0)
		return;
}

void fatal_exit_prints_json(bool on)
{
	signal(JSON, on ? SIG_IGN : SIG_DFL);
}

void fatal_exit(enum abrupt_reason reason)
{
	struct sigaction action;

	say(STDERR_FILENO, rows[reason].line);
	if (!sigaction(JSON, NULL, &action) && action.sa_handler == SIG_IGN)
		say(STDOUT_FILENO, rows[reason].summary);
	_exit(rows[reason].code);
}

void *abrupt_allocate(void *memory, long size)
{
	void *result = NULL;

	if (size)
		result = realloc(memory, (size_t)size);
	else
		free(memory);
	if (size && !result)
		fatal_exit(ABRUPT_MEMORY);
	return result;
}

void abrupt_refusal(const char *what)
{
	(void)what;
	fatal_exit(ABRUPT_LOOP);
}
