/* SPDX-License-Identifier: BSD-2-Clause */
/* Standard output that cannot be written: a full disk, a reader that went away. */
#ifndef CMD_OUTPUT_H
#define CMD_OUTPUT_H

#include "core/log.h"
#include "core/loop.h"
#include "core/outcome.h"

/* A watch over the reader of a pipe. Zeroed before its start. */
struct output_watch {
	struct loop *loop;
	struct loop_io reader;
	struct loop_timer check;
	loop_callback *lost;
	void *owner;
};

/*
 * Calls lost once after a line got lost because the reader of the pipe is gone: an open-ended run would go on for
 * nobody. A reader that leaves while nothing is written (it only waited for "ready") ends nothing.
 */
void output_watch_start(struct output_watch *watch, struct loop *loop, loop_callback *lost, void *owner);
void output_watch_stop(struct output_watch *watch);

/*
 * Last step of the program: writes out what stdout still holds. What could not be written makes the outcome
 * OUTCOME_INTERNAL, unless the run has already failed. A reader that went away, as grep -q does, is no failure.
 */
enum outcome output_finish(const struct log *log, enum outcome outcome);

#endif
