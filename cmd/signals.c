/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/signals.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/reporting/reporting.h"
#include "core/clock.h"
#include "core/outcome.h"

enum {
	/* timeout(1) signals its child, and right after that the whole process group: two signals, one request. */
	GRACE_MS = 300,
	/*
	 * A process that was stopped (Ctrl-Z) or had no processor gets a signal of the watchdog before its loop has
	 * run, and perhaps that of the next interval right behind it.
	 */
	WATCHDOG_SIGNALS = 3,
};

/* Not constant in glibc, which takes some real-time signals for itself. */
#define SIGNAL_WAKE	SIGRTMIN /* watched by the loop */
#define SIGNAL_WATCHDOG (SIGRTMIN + 1)

enum {
	RUNNING,	  /* the loop watches SIGNAL_WAKE */
	FIRST_MS,	  /* when the first signal came, a wrapping clock that is never 0; 0 before */
	WATCHDOG_EXPIRED, /* times */
	PRINTS_JSON,
	SHARED,
};

/* What handlers share with the run: the one writable object at file scope of the program. */
static volatile sig_atomic_t shared[SHARED];

/* ---- the end of the process ---- */

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
	[FATAL_INTERRUPTED] = ROW(CODE_INTERRUPTED, "interrupted again", "ended at once"),
	[FATAL_STUCK] = ROW(CODE_FAILED, "no end in time", "a system or library call does not return: ended at once"),
	[FATAL_REFUSED] = ROW(CODE_INTERNAL, "--sandbox", "a system call was refused: ended at once"),
	[FATAL_MEMORY] = ROW(CODE_INTERNAL, "event loop", "out of memory: ended at once"),
	[FATAL_LOOP] = ROW(CODE_INTERNAL, "event loop", "the kernel refuses to wait for events: ended at once"),
};

/* Does not wait for a reader: the process may end because it waits for that one already. */
static void print(int fd, const char *text)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };

	if (poll(&room, 1, 0) > 0 && write(fd, text, strlen(text)) < 0)
		return;
}

void fatal_exit_prints_json(bool on)
{
	shared[PRINTS_JSON] = on;
}

void fatal_exit(enum fatal_reason reason)
{
	print(STDERR_FILENO, rows[reason].line);
	if (shared[PRINTS_JSON])
		print(STDOUT_FILENO, rows[reason].summary);
	_exit(rows[reason].code);
}

void *fatal_allocate(void *memory, long size)
{
	void *result = NULL;

	if (size)
		result = realloc(memory, (size_t)size);
	else
		free(memory);
	if (size && !result)
		fatal_exit(FATAL_MEMORY);
	return result;
}

void fatal_loop_error(const char *what)
{
	(void)what;
	fatal_exit(FATAL_LOOP);
}

/* ---- signals ---- */

/* No handler interrupts another one. */
static void handle(int number, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };

	sigfillset(&action.sa_mask);
	sigaction(number, &action, NULL);
}

static void received(int number)
{
	int kept = errno;
	/* Of 64 bits the lower ones are enough for a difference. */
	unsigned now = (unsigned)(clock_now() / CLOCK_NS_PER_MS) | 1;

	if (shared[FIRST_MS]) {
		if (number != SIGHUP && now - (unsigned)shared[FIRST_MS] > GRACE_MS)
			fatal_exit(FATAL_INTERRUPTED);
	} else if (number != SIGHUP || shared[RUNNING]) {
		shared[FIRST_MS] = (int)now;
		if (shared[RUNNING])
			raise(SIGNAL_WAKE);
	}
	errno = kept;
}

void signals_catch(struct loop *loop, struct loop_signal *watcher, loop_callback *callback, void *owner)
{
	struct sigaction hangup;

	loop_signal_start(loop, watcher, SIGNAL_WAKE, callback, owner);
	shared[FIRST_MS] = 0;
	shared[RUNNING] = true;
	handle(SIGINT, received);
	handle(SIGTERM, received);
	if (!sigaction(SIGHUP, NULL, &hangup) && hangup.sa_handler != SIG_IGN)
		handle(SIGHUP, received);
}

void signals_release(struct loop_signal *watcher)
{
	shared[RUNNING] = false;
	/* Only now: libev leaves the signal to its default, which is to end the process. */
	loop_signal_stop(watcher);
}

/* ---- the watchdog ---- */

static void expired(int number)
{
	(void)number;
	if (++shared[WATCHDOG_EXPIRED] == WATCHDOG_SIGNALS)
		fatal_exit(FATAL_STUCK);
}

/* Without a timer there is no last resort, but the run is none the worse. */
void watchdog_start(struct watchdog *watchdog, int64_t nanoseconds)
{
	const struct itimerspec limit = { .it_value = clock_timespec(nanoseconds), .it_interval.tv_sec = 1 };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGNAL_WATCHDOG };

	if (!watchdog->exists) {
		shared[WATCHDOG_EXPIRED] = 0;
		handle(SIGNAL_WATCHDOG, expired);
		if (timer_create(CLOCK_MONOTONIC, &event, &watchdog->timer))
			return;
		watchdog->exists = true;
	}
	timer_settime(watchdog->timer, 0, &limit, NULL);
}
