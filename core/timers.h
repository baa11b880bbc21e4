/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers in the order of their times: a pairing heap, whose links are in the timers, so that none needs memory. */
#ifndef CORE_TIMERS_H
#define CORE_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

/* Zero one before its first start. */
struct timer {
	struct timer **link; /* what points to this one; NULL: not started */
	struct timer *next;  /* sibling */
	struct timer *child; /* the first of those that come later */
	int64_t at;	     /* as given to timers_start() */
	uint64_t number;     /* of its start: equal times keep that order */
};

struct timers {
	struct timer *first; /* NULL: none is started */
	uint64_t started;    /* the number of the last start */
};

/* Starts a timer that is not started. */
void timers_start(struct timers *timers, struct timer *timer, int64_t at);
/* Does nothing if it is not started. */
void timers_stop(struct timers *timers, struct timer *timer);

#endif
