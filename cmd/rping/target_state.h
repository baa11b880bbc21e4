/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The internal interface of a target, for its three files only:
 *
 *   target.c             states, shutdown, verdict, report
 *   target_connection.c  dialing, connection events
 *   target_cycle.c       pings
 */
#ifndef CMD_RPING_TARGET_STATE_H
#define CMD_RPING_TARGET_STATE_H

#include "cmd/rping/protocol.h"
#include "cmd/rping/target.h"

/* target.c has the table of transitions. */
enum target_state {
	TARGET_WAITING,
	TARGET_RESOLVING,
	TARGET_CONNECTING,
	TARGET_SOURCE_ADVERTISED,
	TARGET_SINK_ADVERTISED,
	TARGET_DRAINING,
	TARGET_PACING,
	TARGET_DISCONNECTING,
	TARGET_DONE,
};

/* target.c */

void target_enter(struct target *target, enum target_state state);
void target_notify(struct target *target, enum target_event event);

/* Disconnects. With OUTCOME_OK, target_verdict() decides the outcome. */
void target_disconnect(struct target *target, enum outcome outcome);
/* Ends the target immediately. The owner may have ended the run when this returns. */
void target_finish(struct target *target, enum outcome outcome);
/* Returns the outcome of a target after a disconnect, and reports an early end. */
enum outcome target_verdict(struct target *target);

/* True if fewer pings than -C are answered, or if there is no -C. */
bool target_has_more(const struct target *target);
/* Writes "3 of 10 pings". Returns text. */
const char *target_pings_text(const struct target *target, char text[PINGS_TEXT_SIZE]);

/* target_connection.c */

extern const struct dial_handlers target_dial_handlers;

/* Destroys the endpoint and its memory, and counts an unanswered ping as lost. Does nothing without a connection. */
void target_connection_drop(struct target *target);

/* target_cycle.c */

/* Allocates the source and the sink, and starts the first ping. */
void target_cycle_begin(struct target *target);
/* Starts the next ping in its slot, or disconnects after the last one. */
void target_cycle_continue(struct target *target);
void target_cycle_completed(void *context, struct endpoint *endpoint, const struct completion *completion);

#endif
