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
	/* timeout(1) signals its child and then the whole process group: a second signal within this time is ignored.
	 */
	GRACE_MS = 300,
	/*
	 * The watchdog ends the process at this expiry. After SIGCONT, or seconds without processor time, the timer may
	 * expire twice before the loop runs.
	 */
	WATCHDOG_SIGNALS = 3,
};

/* Not constant in glibc, which takes some real-time signals for itself. */
#define SIGNAL_WAKE	SIGRTMIN /* watched by the loop */
#define SIGNAL_WATCHDOG (SIGRTMIN + 1)

enum {
	RUNNING,	  /* the loop watches SIGNAL_WAKE */
	FIRST_SIGNAL_MS,  /* time of the first signal in ms, modulo 2^32 and never 0; 0: none yet */
	WATCHDOG_EXPIRED, /* number of expiries */
	PRINTS_JSON,
	PRINTS_VERDICT, /* enum fatal_verdict */
	SHARED,
};

/* Shared by the signal handlers and the run. It is the only writable object at file scope in the program. */
static volatile sig_atomic_t shared[SHARED];

/* ---- fatal exit ---- */

/* clang-format off */
#define STRING_OF(number) #number
#define STRING(number) STRING_OF(number)
#if WITH_REPORT
/* A constant, because a signal handler cannot format it: fields that differ between runs are null. */
#define SUMMARY(code, phase, cause) \
	"{\"type\":\"summary\",\"schema\":" STRING(REPORTING_SCHEMA) ",\"command\":null," \
	"\"version\":\"" RDMATEST_VERSION "\",\"transport\":null,\"duration_ns\":null," \
	"\"verdict\":\"fail\",\"exit_code\":" STRING(code) ",\"error_count\":1,\"errors\":[{\"object\":null," \
	"\"phase\":\"" phase "\",\"cause\":\"" cause "\",\"code\":null,\"text\":\"" phase ": " cause "\"," \
	"\"hint\":null,\"part\":null}]}\n"
#else
#define SUMMARY(code, phase, cause) ""
#endif
#define ROW(code, phase, cause) \
	{ code, "rdmatest: " phase ": " cause "\n", SUMMARY(code, phase, cause), \
	  "rdmatest: FAILED: " phase ": terminated\n", "return status " STRING(code) "\n" }
/* clang-format on */

/* Values of enum outcome for the preprocessor. */
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
	const char *verdict;
	const char *status;
} rows[] = {
	[FATAL_INTERRUPTED] = ROW(CODE_INTERRUPTED, "second signal", "terminated"),
	[FATAL_STUCK] = ROW(CODE_FAILED, "watchdog", "a system or library call does not return: terminated"),
	[FATAL_REFUSED] = ROW(CODE_INTERNAL, "--sandbox", "a system call was refused: terminated"),
	[FATAL_MEMORY] = ROW(CODE_INTERNAL, "event loop", "out of memory: terminated"),
	[FATAL_LOOP] = ROW(CODE_INTERNAL, "event loop", "waiting for events failed: terminated"),
};

/* Does not block: a blocked write(2) to this descriptor may be why the process ends. */
static void print_fatal(int fd, const char *text)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };

	if (poll(&room, 1, 0) > 0 && write(fd, text, strlen(text)) < 0)
		return;
}

void fatal_exit_prints_json(bool on)
{
	shared[PRINTS_JSON] = on;
}

void fatal_exit_prints_verdict(enum fatal_verdict verdict)
{
	shared[PRINTS_VERDICT] = (int)verdict;
}

void fatal_exit(enum fatal_reason reason)
{
	print_fatal(STDERR_FILENO, rows[reason].line);
	if (shared[PRINTS_JSON])
		print_fatal(STDOUT_FILENO, rows[reason].summary);
	if (shared[PRINTS_VERDICT])
		print_fatal(STDOUT_FILENO, rows[reason].verdict);
	if (shared[PRINTS_VERDICT] == FATAL_VERDICT_STATUS)
		print_fatal(STDOUT_FILENO, rows[reason].status);
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

/* Installs a handler. All signals are blocked while it runs. */
static void handle(int number, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };

	sigfillset(&action.sa_mask);
	sigaction(number, &action, NULL);
}

static void signal_handler(int number)
{
	int saved_errno = errno;
	/* The low 32 bits are enough for a difference. */
	unsigned now = (unsigned)(clock_now() / CLOCK_NS_PER_MS) | 1;

	if (shared[FIRST_SIGNAL_MS]) {
		if (number != SIGHUP && now - (unsigned)shared[FIRST_SIGNAL_MS] > GRACE_MS)
			fatal_exit(FATAL_INTERRUPTED);
	} else if (number != SIGHUP || shared[RUNNING]) {
		shared[FIRST_SIGNAL_MS] = (int)now;
		if (shared[RUNNING])
			raise(SIGNAL_WAKE);
	}
	errno = saved_errno;
}

void signals_catch(struct loop *loop, struct loop_signal *watcher, loop_callback *callback, void *context)
{
	struct sigaction hangup;

	loop_signal_start(loop, watcher, SIGNAL_WAKE, callback, context);
	shared[FIRST_SIGNAL_MS] = 0;
	shared[RUNNING] = true;
	handle(SIGINT, signal_handler);
	handle(SIGTERM, signal_handler);
	if (!sigaction(SIGHUP, NULL, &hangup) && hangup.sa_handler != SIG_IGN)
		handle(SIGHUP, signal_handler);
}

void signals_release(struct loop_signal *watcher)
{
	shared[RUNNING] = false;
	/* After RUNNING is cleared: libev restores the default action of SIGNAL_WAKE, which ends the process. */
	loop_signal_stop(watcher);
}

/* ---- the watchdog ---- */

static void watchdog_handler(int number)
{
	(void)number;
	if (++shared[WATCHDOG_EXPIRED] == WATCHDOG_SIGNALS)
		fatal_exit(FATAL_STUCK);
}

/* Does nothing if timer_create(2) fails: the run works without a watchdog. */
void watchdog_start(struct watchdog *watchdog, int64_t nanoseconds)
{
	const struct itimerspec limit = { .it_value = clock_timespec(nanoseconds), .it_interval.tv_sec = 1 };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGNAL_WATCHDOG };

	if (!watchdog->exists) {
		shared[WATCHDOG_EXPIRED] = 0;
		handle(SIGNAL_WATCHDOG, watchdog_handler);
		if (timer_create(CLOCK_MONOTONIC, &event, &watchdog->timer))
			return;
		watchdog->exists = true;
	}
	timer_settime(watchdog->timer, 0, &limit, NULL);
}
