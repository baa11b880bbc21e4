/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/watchdog.h"

#include <signal.h>
#include <stddef.h>

#include "cmd/fatal_exit.h"
#include "core/clock.h"

/* Next to the one that interruption.c takes. */
#define WATCHDOG_SIGNAL (SIGRTMIN + 1)

static void expire(int number)
{
	(void)number;
	fatal_exit(ABRUPT_STUCK);
}

static void second_warning(int number)
{
	signal(number, expire);
}

/*
 * A process that was stopped (Ctrl-Z) or had no processor gets this signal before its loop has run, and perhaps the
 * next interval's right behind it. Only the third signal ends the process, so the loop has a whole interval to run.
 */
static void first_warning(int number)
{
	signal(number, second_warning);
}

/* Without a timer there is no last resort, but the run is none the worse. */
void watchdog_start(struct watchdog *watchdog, int64_t nanoseconds)
{
	const struct itimerspec limit = { .it_value = clock_timespec(nanoseconds), .it_interval.tv_sec = 1 };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = WATCHDOG_SIGNAL };
	struct sigaction action = { .sa_handler = first_warning };

	if (!watchdog->exists) {
		sigemptyset(&action.sa_mask);
		if (sigaction(WATCHDOG_SIGNAL, &action, NULL) ||
		    timer_create(CLOCK_MONOTONIC, &event, &watchdog->timer))
			return;
		watchdog->exists = true;
	}
	timer_settime(watchdog->timer, 0, &limit, NULL);
}
