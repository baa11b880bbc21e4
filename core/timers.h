/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers in order of time: a pairing heap with its links in the timers, so that it needs no memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Zero one before its first start. */
struct timer {
	struct timer **link; /* the pointer to this one; NULL: not started */
	struct timer *next;  /* sibling */
	struct timer *child; /* the first later timer */
	int64_t at;	     /* as given to timers_start() */
	uint64_t number;     /* of its start: equal times keep this order */
};

struct timers {
	struct timer *first; /* NULL: no timer is started */
	uint64_t started;    /* the number of the last start */
};

/* Starts a timer that is not started. */
void timers_start(struct timers *timers, struct timer *timer, int64_t at);
/* A no-op if the timer is not started. */
void timers_stop(struct timers *timers, struct timer *timer);
