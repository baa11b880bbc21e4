/* SPDX-License-Identifier: BSD-2-Clause */
/* States of objects: which may follow which. */
#ifndef CORE_STATE_H
#define CORE_STATE_H

#include <stdbool.h>

#include "core/log.h"

#define STATE_BIT(state) (1u << (state))

struct state_row {
	const char *text; /* "connecting" */
	unsigned next;	  /* STATE_BIT() of each state that may follow */
	bool waits;	  /* has a timer */
};

/*
 * Checks and traces a transition of an object, which keeps the state and its timer. Returns false, and
 * reports a defect of the program, if the table does not allow it. format gives the object's name, which is formatted
 * only if it is printed.
 */
bool state_change(const struct state_row *rows, unsigned from, unsigned to, const struct log *log, const char *format,
		  ...) __attribute__((format(printf, 5, 6)));

#endif
