/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The schedule of --interval. Slots begin at start, start + period, start + 2 periods and so on: a slow ping
 * does not shift later slots. A ping whose slot has passed starts immediately, and the other missed slots are skipped.
 */
#ifndef CMD_RPING_PACE_H
#define CMD_RPING_PACE_H

#include <stdint.h>

struct pace {
	int64_t period; /* nanoseconds; 0: each ping starts when the previous one is answered */
	int64_t next;	/* start of the next slot, on the clock; 0 before the first ping */
};

/* Returns the nanoseconds until the next slot; 0 if it has begun. */
static inline int64_t pace_wait(const struct pace *pace, int64_t now)
{
	return WITH_EXTRAS && pace->next > now ? pace->next - now : 0;
}

/* Records that a ping starts now, and computes the next slot. */
static inline void pace_start(struct pace *pace, int64_t now)
{
	if (!WITH_EXTRAS || !pace->period)
		return;
	if (!pace->next)
		pace->next = now;
	pace->next += ((now - pace->next) / pace->period + 1) * pace->period;
}

/* Returns the start of the current slot, after pace_start(); without a period, now. */
static inline int64_t pace_slot(const struct pace *pace, int64_t now)
{
	return WITH_EXTRAS && pace->period ? pace->next - pace->period : now;
}

/* Returns the end of the slot of a ping that is answered now. */
static inline int64_t pace_slot_end(const struct pace *pace, int64_t now)
{
	return WITH_EXTRAS && pace->next > now ? pace->next : now;
}

#endif
