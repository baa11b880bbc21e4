/* SPDX-License-Identifier: BSD-2-Clause */
/* States of objects: which may follow which, the one setter that checks and traces, the timer of those that wait. */
#ifndef CORE_STATE_H
#define CORE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/log.h"
#include "core/loop.h"

#define STATE_BIT(state) (1u << (state))
#define STATE_ANY	 (~0u)

struct state_row {
	const char *text; /* "connecting" */
	unsigned next;	  /* STATE_BIT() of each state that may follow */
	bool waits;	  /* has a timer */
};

/*
 * Checks and traces a transition, for objects that keep the state and the timer themselves. Returns false, and
 * reports a defect of the program, if the table does not allow it. format gives the object's name, which is formatted
 * only if it is printed.
 */
bool state_change(const struct state_row *rows, unsigned from, unsigned to, const struct log *log, const char *format,
		  ...) __attribute__((format(printf, 5, 6)));

struct state {
	const struct state_row *rows;
	unsigned current; /* an index of rows */
	struct loop *loop;
	const struct log *log;
	int64_t timeout; /* of a state that waits, nanoseconds */
	loop_callback *expired;
	void *context;
	struct loop_timer timer;
};

/*
 * Enters a state, with a fresh timer if that one waits. object is the name in the trace. A transition that is reported
 * as a defect is made too: the owner goes on as in the new state.
 */
void state_enter(struct state *state, unsigned next, const char *object);
/* Stops the timer. Harmless on a state that is all zeros. */
void state_stop(struct state *state);
const char *state_text(const struct state *state);

#endif
