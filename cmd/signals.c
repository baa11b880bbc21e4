/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/signals.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/outcome.h"

enum {
	/* timeout(1) signals its child, then the whole process group: a second signal within this time is ignored. */
	GRACE_MS = 300,
	WATCHDOG_GRACE = 2, /* seconds */
	NAME_SIZE = 256,
	LINE_SIZE = NAME_SIZE + 80, /* of a fatal exit */
};

/* Watched by the loop. Not constant in glibc, which takes some real-time signals for itself. */
#define SIGNAL_WAKE SIGRTMIN

/* Shared by the signal handlers and the run. It is the only writable object at file scope in the program. */
static volatile struct {
	sig_atomic_t running;	   /* the loop watches SIGNAL_WAKE */
	sig_atomic_t first_signal; /* its time in ms modulo 2^32, never 0; 0: none yet */
	int64_t watchdog;	   /* signals_catch() */
	bool has_watchdog;
	bool expired;	      /* the watchdog's limit */
	bool out_of_time;     /* SIGXCPU: the limit of processor time */
	char name[NAME_SIZE]; /* of the run, as the user typed it */
} shared = { .name = "rdmatest" };

/* ---- fatal exit ---- */

static const struct fatal {
	int code;
	const char *text;
} fatal_rows[] = {
	[FATAL_INTERRUPTED] = { OUTCOME_INTERRUPTED, "second signal: terminated" },
	[FATAL_STUCK] = { OUTCOME_FAILED, "watchdog: a system or library call does not return: terminated" },
	[FATAL_MEMORY] = { OUTCOME_INTERNAL, "event loop: out of memory: terminated" },
	[FATAL_LOOP] = { OUTCOME_INTERNAL, "event loop: waiting for events failed: terminated" },
};

static char *append(char *end, const volatile char *text)
{
	while (*text)
		*end++ = *text++;
	return end;
}

void fatal_exit_name(const char *name)
{
	/* A copy: a signal may arrive after the caller's text is freed. The last byte stays 0. */
	for (size_t i = 0; i < NAME_SIZE - 1 && (shared.name[i] = name[i]); i++)
		continue;
}

/* A signal handler must not call printf(3), nor block: a blocked write(2) to stderr may be why the process ends. */
void fatal_exit(enum fatal_reason reason)
{
	struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };
	char line[LINE_SIZE], *end = append(line, shared.name);
	bool printed;

	end = append(append(append(end, ": "), fatal_rows[reason].text), "\n");
	printed = poll(&room, 1, 0) > 0 && write(STDERR_FILENO, line, (size_t)(end - line)) > 0;
	(void)printed;
	_exit(fatal_rows[reason].code);
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
	/* The low 32 bits suffice for a difference. */
	unsigned now = (unsigned)(clock_now() / CLOCK_NS_PER_MS) | 1;

	if (WITH_EXTRAS && number == SIGXCPU)
		shared.out_of_time = true;
	if (shared.first_signal) {
		/* The kernel sends SIGXCPU again for each second of the processor. */
		if (number != SIGHUP && number != SIGXCPU && now - (unsigned)shared.first_signal > GRACE_MS)
			fatal_exit(FATAL_INTERRUPTED);
	} else if (number != SIGHUP || shared.running) {
		shared.first_signal = (int)now;
		/* Here, because the loop may be blocked. */
		watchdog_start(shared.watchdog);
		if (shared.running)
			raise(SIGNAL_WAKE);
	}
	errno = saved_errno;
}

bool signals_ignored(int number)
{
	struct sigaction action;

	return sigaction(number, NULL, &action) || action.sa_handler == SIG_IGN;
}

void signals_catch(struct loop *loop, struct loop_signal watchers[SIGNALS], int64_t watchdog, loop_callback *callback,
		   void *context)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP,
#if WITH_EXTRAS
				       SIGXCPU
#endif
	};

	loop_signal_start(loop, watchers, SIGNAL_WAKE, callback, context);
	shared.first_signal = 0;
	shared.watchdog = watchdog;
	shared.running = true;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!signals_ignored(numbers[i]))
			handle(numbers[i], signal_handler);
}

bool signals_received(void)
{
	return shared.first_signal;
}

bool signals_out_of_time(void)
{
	return shared.out_of_time;
}

bool signals_wait(int fd, int64_t until)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };
	struct timespec limit;
	sigset_t all, kept;
	int64_t left;
	int count;

	sigfillset(&all);
	do {
		left = until - clock_now();
		limit = clock_timespec(left > 0 ? left : 0);
		/* A signal comes before this test, or interrupts ppoll(2). */
		sigprocmask(SIG_SETMASK, &all, &kept);
		count = shared.first_signal ? 0 : ppoll(&readable, 1, &limit, &kept);
		sigprocmask(SIG_SETMASK, &kept, NULL);
	} while (count < 0 && errno == EINTR);
	return count > 0;
}

void signals_release(struct loop_signal watchers[SIGNALS])
{
	shared.running = false;
	/* After RUNNING is cleared: libev restores the default action of SIGNAL_WAKE, which ends the process. */
	loop_signal_stop(watchers);
}

/* ---- the watchdog ---- */

static void watchdog_handler(int number)
{
	(void)number;
	/* An alarm(2) continues while the process is stopped: the loop gets time to check its own limits. */
	if (shared.expired)
		fatal_exit(FATAL_STUCK);
	shared.expired = true;
	alarm(WATCHDOG_GRACE);
}

void watchdog_start(int64_t nanoseconds)
{
	unsigned before = alarm((unsigned)(nanoseconds / CLOCK_NS_PER_S) + 1);

	if (before && !shared.has_watchdog) {
		/* The caller's alarm(2) survives execve(2), and is a limit, too. */
		alarm(before);
		return;
	}
	shared.has_watchdog = true;
	handle(SIGALRM, watchdog_handler);
}
