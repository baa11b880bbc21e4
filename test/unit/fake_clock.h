/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time for a test that runs the real loop. It stands still while something is done; where the loop would sleep with
 * nothing to do, it is at once as late as the next timer wants it. libev's own calls come here too.
 */
#ifndef TEST_UNIT_FAKE_CLOCK_H
#define TEST_UNIT_FAKE_CLOCK_H

#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"

enum {
	/* libev sleeps no longer, also when nothing is due: then somebody else's signal is waited for. */
	FAKE_CLOCK_LONGEST_MS = 59 * 1000
};

static struct {
	int64_t passed;
	int64_t set; /* how far the time of day was set forward */
	bool real;   /* where the kernel's timers, or two processes, are to be in time */
} fake_clock;

static inline void fake_clock_pass(int64_t nanoseconds)
{
	fake_clock.passed += nanoseconds;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	if (fake_clock.real)
		return (int)syscall(SYS_clock_gettime, clock, time);
	/* 0 is no time for many. */
	*time = clock_timespec(CLOCK_NS_PER_S + fake_clock.passed + (clock == CLOCK_REALTIME ? fake_clock.set : 0));
	return 0;
}

int epoll_wait(int epoll, struct epoll_event *events, int max, int timeout)
{
	int wait = fake_clock.real ? timeout : timeout < FAKE_CLOCK_LONGEST_MS ? 0 : 1;
	int count = epoll_pwait(epoll, events, max, wait, NULL);

	/* For libev a timer is due only behind its time. */
	if (!count)
		fake_clock_pass(timeout * CLOCK_NS_PER_MS + CLOCK_NS_PER_US);
	return count;
}

#endif
