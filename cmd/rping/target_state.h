/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a target, for the three files that it is made of and for nobody else:
 *
 *   target.c             its states, how it ends, and what it was worth
 *   target_connection.c  the way to its server: looking up, connecting, being left by it
 *   target_cycle.c       the pings
 */
#ifndef CMD_RPING_TARGET_STATE_H
#define CMD_RPING_TARGET_STATE_H

#include "cmd/rping/protocol.h"
#include "cmd/rping/target.h"

/* Which may follow which: target.c. */
enum target_state {
	TARGET_WAITING,
	TARGET_LOOKING_UP,
	TARGET_CONNECTING,
	TARGET_OFFERING_SOURCE,
	TARGET_OFFERING_SINK,
	TARGET_SETTLING,
	TARGET_RESTING,
	TARGET_LEAVING,
	TARGET_DONE,
};

/* target.c */

void target_enter(struct target *target, enum target_state state);
void target_tell(struct target *target, enum target_news news);

/* Begins the end of a connection whose work is all completed, or of no more interest. */
void target_leave(struct target *target, enum outcome outcome);
/* The end, at once. The owner may have ended the run when this returns. */
void target_finish(struct target *target, enum outcome outcome);
/* What it was worth, once it has ended in order. */
enum outcome target_verdict(struct target *target);

bool target_more_asked(const struct target *target);
/* "3 of 10 pings"; returns text. */
const char *target_pings_text(const struct target *target, char text[PINGS_TEXT_SIZE]);

/* target_connection.c */

extern const struct dial_handlers target_dial_handlers;

/* Takes the connection down with all that it used; harmless without one. */
void target_connection_drop(struct target *target);

/* target_cycle.c */

/* Offers the memory of a ping to the server, and starts the first ping. */
void target_cycle_begin(struct target *target);
/* The next ping at its time, or the end. */
void target_cycle_go_on(struct target *target);
void target_cycle_completed(void *owner, struct endpoint *endpoint, const struct completion *completion);

#endif
