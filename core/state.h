/* SPDX-License-Identifier: BSD-2-Clause */
/* States of objects: which may follow which. */
#ifndef CORE_STATE_H
#define CORE_STATE_H

#include <stdbool.h>

#include "core/log.h"

#define STATE_BIT(state) (1u << (state))

/*
 * Checks and traces a transition of an object, which keeps the state and its timer. texts are those of its states, such
 * as "connecting", next STATE_BIT() of each state that may follow. Returns false, and reports a defect of the program,
 * if it may not. format gives the object's name, which is formatted only if it is printed.
 */
bool state_change(const char *const *texts, const uint16_t *next, unsigned from, unsigned to, const struct log *log,
		  const char *format, ...) __attribute__((format(printf, 6, 7)));

#endif
