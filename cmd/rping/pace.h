/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When the next ping is due. Beats are at start, start + period, start + 2 periods and so on, whatever the pings take,
 * so that the pace does not drift. A ping that comes late, because the one before took longer or the machine stood
 * still, goes at once; the other beats that passed meanwhile are left out, never made up for.
 */
#ifndef CMD_RPING_PACE_H
#define CMD_RPING_PACE_H

#include <stdint.h>

struct pace {
	int64_t period; /* nanoseconds; 0: each ping follows the one before */
	int64_t next;	/* the beat; 0 before the first */
};

/* Nanoseconds until the next ping is due, 0 for at once. */
static inline int64_t pace_wait(const struct pace *pace, int64_t now)
{
	return WITH_PACE && pace->next > now ? pace->next - now : 0;
}

/* A ping goes now. */
static inline void pace_go(struct pace *pace, int64_t now)
{
	if (!WITH_PACE || !pace->period)
		return;
	if (!pace->next)
		pace->next = now;
	pace->next += ((now - pace->next) / pace->period + 1) * pace->period;
}

/* The beat of the ping that goes now, after pace_go(). Without a period it is now. */
static inline int64_t pace_beat(const struct pace *pace, int64_t now)
{
	return WITH_PACE && pace->period ? pace->next - pace->period : now;
}

/* When a ping that comes back now has had its turn. */
static inline int64_t pace_end(const struct pace *pace, int64_t now)
{
	return WITH_PACE && pace->next > now ? pace->next : now;
}

#endif
