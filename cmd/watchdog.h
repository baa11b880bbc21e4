/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last resort of a time limit. The loop enforces every limit as long as it turns; should a library call never
 * return, the kernel's timer still ends the process.
 */
#ifndef CMD_WATCHDOG_H
#define CMD_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Zeroed before its first start. */
struct watchdog {
	timer_t timer;
	bool exists;
};

/* Ends the process with OUTCOME_FAILED and a line on stderr, nanoseconds from now. A second start moves the limit. */
void watchdog_start(struct watchdog *watchdog, int64_t nanoseconds);

#endif
