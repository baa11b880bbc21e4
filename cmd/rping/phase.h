/* SPDX-License-Identifier: BSD-2-Clause */
/* Where one end of a connection is in its life: a state, the one setter of it, and the deadline of states that wait. */
#ifndef CMD_RPING_PHASE_H
#define CMD_RPING_PHASE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/log.h"
#include "core/loop.h"

#define PHASE_BIT(state) (1u << (state))

struct phase_row {
	const char *text; /* what it is doing */
	unsigned next;	  /* the states that may follow */
	bool waits;	  /* for the peer, no longer than --timeout */
};

struct phase {
	const struct phase_row *rows;
	unsigned state; /* an index of rows */
	struct loop *loop;
	const struct log *log;
	int64_t timeout;
	loop_callback *expired;
	void *owner;
	struct loop_timer deadline;
};

/* Goes on to a state, with a fresh deadline if that one waits. name is what the trace calls the connection. */
void phase_enter(struct phase *phase, unsigned state, const char *name);
/* Stops the deadline. Harmless on a phase that is all zeros. */
void phase_stop(struct phase *phase);
const char *phase_text(const struct phase *phase);

#endif
