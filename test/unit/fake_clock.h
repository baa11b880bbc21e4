/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time for a test that runs the real loop. It stands still while code runs; when the loop would sleep, time jumps to
 * the loop's alarm. libev's own calls use it, too.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/clock.h"

static struct {
	int64_t passed;
	int64_t alarm;	   /* 0: none, another process's signal is awaited */
	unsigned alarms;   /* number of alarms set */
	unsigned refusals; /* number of further settings that fail */
	unsigned endless;  /* sleeps without an alarm */
	int64_t set;	   /* how much the time of day was set forward */
	bool real;	   /* real time, for kernel timers or two processes */
} fake_clock;

static inline void fake_clock_pass(int64_t nanoseconds)
{
	fake_clock.passed += nanoseconds;
}

static inline int64_t fake_clock_now(void)
{
	/* Many callers do not allow 0 as a time. */
	return CLOCK_NS_PER_S + fake_clock.passed;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	if (fake_clock.real)
		return (int)syscall(SYS_clock_gettime, clock, time);
	*time = clock_timespec(fake_clock_now() + (clock == CLOCK_REALTIME ? fake_clock.set : 0));
	return 0;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *time, struct itimerspec *old)
{
	int64_t at = time->it_value.tv_sec * CLOCK_NS_PER_S + time->it_value.tv_nsec;

	if (fake_clock.real)
		return (int)syscall(SYS_timerfd_settime, fd, flags, time, old);
	fake_clock.alarms++;
	if (fake_clock.refusals) {
		fake_clock.refusals--;
		errno = EINVAL;
		return -1;
	}
	fake_clock.alarm = at == INT64_MAX ? 0 : at;
	return 0;
}

int epoll_wait(int epoll, struct epoll_event *events, int max, int timeout)
{
	int wait = fake_clock.real || !timeout ? timeout : !fake_clock.alarm;
	int count = epoll_pwait(epoll, events, max, wait, NULL);

	if (count || !timeout)
		return count;
	if (fake_clock.alarm > fake_clock_now())
		fake_clock_pass(fake_clock.alarm - fake_clock_now() + CLOCK_NS_PER_US);
	else
		fake_clock.endless++;
	return count;
}
