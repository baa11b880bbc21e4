/* SPDX-License-Identifier: BSD-2-Clause */
/* State machines: the allowed transitions. */
#pragma once

#include <stdbool.h>

#include "core/log.h"

#define STATE_BIT(state) (1u << (state))

/*
 * Checks and traces a transition of an object, which keeps the state and its timer. texts describe its states, such as
 * "connecting"; next has the STATE_BIT() of each allowed next state. Returns false, and reports a defect of the
 * program, if the transition is not allowed. format gives the object's name, which is formatted only if it is printed.
 */
bool state_change(const char *const *texts, const uint16_t *next, unsigned from, unsigned to, const struct log *log,
		  const char *format, ...) __attribute__((format(printf, 6, 7)));
