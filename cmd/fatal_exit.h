/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of the process out of a signal handler, when nothing can be ended in order any more. */
#ifndef CMD_FATAL_EXIT_H
#define CMD_FATAL_EXIT_H

#include <stdbool.h>

enum abrupt_reason {
	ABRUPT_INTERRUPTED = 0, /* a second Ctrl-C: OUTCOME_INTERRUPTED */
	ABRUPT_STUCK,		/* a library call does not return: OUTCOME_FAILED */
	ABRUPT_REFUSED,		/* --sandbox: OUTCOME_INTERNAL */
	ABRUPT_MEMORY,		/* the event loop cannot do without: OUTCOME_INTERNAL */
	ABRUPT_LOOP,		/* the kernel refuses to wait: OUTCOME_INTERNAL */
};

/* Says why on stderr, and ends the process. Safe in a signal handler. */
_Noreturn void fatal_exit(enum abrupt_reason reason);

/* While it is on, an abrupt end also prints a JSON summary: who reads standard output finds one object in any case. */
void fatal_exit_prints_json(bool on);

/* For loop_last_resort(). */
void *abrupt_allocate(void *memory, long size);
void abrupt_refusal(const char *what);

#endif
