/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIGINT, SIGTERM and SIGHUP, the watchdog, and the end of the process out of a signal handler.
 *
 * The first signal ends the run in order. A later SIGINT or SIGTERM ends the process at once, even if a library call
 * blocks. The watchdog does the same for a run whose loop does not turn any more.
 */
#ifndef CMD_SIGNALS_H
#define CMD_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "core/loop.h"

/* Calls back from the loop, once, for the first SIGINT, SIGTERM, or SIGHUP unless nohup(1) has it ignored. */
void signals_catch(struct loop *loop, struct loop_signal *watcher, loop_callback *callback, void *owner);

/* The run is over: no more callbacks. What is left to do may still be cut short by two signals. */
void signals_release(struct loop_signal *watcher);

/* Zeroed before its first start. */
struct watchdog {
	timer_t timer;
	bool exists;
};

/*
 * Ends the process with OUTCOME_FAILED and a line on stderr when nanoseconds and two more seconds have passed. A second
 * start moves the limit.
 */
void watchdog_start(struct watchdog *watchdog, int64_t nanoseconds);

enum fatal_reason {
	FATAL_INTERRUPTED = 0, /* a second Ctrl-C: OUTCOME_INTERRUPTED */
	FATAL_STUCK,	       /* a library call does not return: OUTCOME_FAILED */
	FATAL_REFUSED,	       /* --sandbox: OUTCOME_INTERNAL */
	FATAL_MEMORY,	       /* the event loop has no memory: OUTCOME_INTERNAL */
	FATAL_LOOP,	       /* the kernel refuses to wait: OUTCOME_INTERNAL */
};

/* Prints the reason on stderr and ends the process. Safe in a signal handler. */
_Noreturn void fatal_exit(enum fatal_reason reason);

/* While it is on, fatal_exit() also prints a JSON summary: standard output has one object in any case. */
void fatal_exit_prints_json(bool on);

/* For loop_last_resort(). */
void *fatal_allocate(void *memory, long size);
void fatal_loop_error(const char *what);

#endif
