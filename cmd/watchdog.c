/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/watchdog.h"

#include <signal.h>
#include <stddef.h>

#include "cmd/abrupt_end.h"
#include "core/clock.h"

/* Next to the one that interruption.c takes. */
#define BITE (SIGRTMIN + 1)

static void bite(int number)
{
	(void)number;
	abrupt_end(ABRUPT_STUCK);
}

static void bark(int number)
{
	signal(number, bite);
}

/*
 * A process that was stopped (Ctrl-Z) or had no processor gets this signal before its loop has had a turn, and perhaps
 * right behind it that of the next interval: it has a whole one before the third.
 */
static void growl(int number)
{
	signal(number, bark);
}

/* Without a timer there is no last resort, but the run is none the worse. */
void watchdog_start(struct watchdog *watchdog, int64_t nanoseconds)
{
	const struct itimerspec limit = { .it_value = clock_timespec(nanoseconds), .it_interval.tv_sec = 1 };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = BITE };
	struct sigaction action = { .sa_handler = growl };

	if (!watchdog->exists) {
		sigemptyset(&action.sa_mask);
		if (sigaction(BITE, &action, NULL) || timer_create(CLOCK_MONOTONIC, &event, &watchdog->timer))
			return;
		watchdog->exists = true;
	}
	timer_settime(watchdog->timer, 0, &limit, NULL);
}
