/* SPDX-License-Identifier: BSD-2-Clause */
/* An explicit-state walk of the state machines of soft: connection manager (active, passive), queue pair (requester,
 * responder), and endpoint. Two transports are connected by a network whose every step is a choice, in virtual time.
 * A run is determined by its choices, and can be repeated.
 *
 * Choice 0 of a step is a good network: the oldest packet in flight arrives, or if there is none, time advances to the
 * next timer. All other choices are deviations, in this order:
 *
 * - another packet overtakes the oldest one
 * - a held packet arrives
 * - from now on nothing arrives
 * - a timer runs before anything arrives
 * - the oldest packet is held (and lost, unless a later choice releases it)
 * - the oldest packet arrives, and a copy is held
 * - all packets in flight to the destination of the oldest one arrive in one batch
 *
 * A walk of depth N makes all runs with up to N deviations. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WALK_STEPS_MAX = 4000,
	WALK_DEPTH_MAX = 16,
};

/* The choices of a run, and the number of alternatives at each step. */
struct choices {
	struct {
		uint16_t step;
		uint8_t choice;
	} deviations[WALK_DEPTH_MAX];
	unsigned deviation_count;
	unsigned step; /* the next step */
	uint8_t alternatives[WALK_STEPS_MAX];
};

/* Returns the choice of this step, below count. count is 1 to 255. */
unsigned choose(struct choices *choices, unsigned count);

struct scenario; /* the behaviour of both sides: ends.c */

const struct scenario *scenario_find(const char *name);
/* Returns the next scenario, the first one for NULL, or NULL after the last one. */
const struct scenario *scenario_next(const struct scenario *scenario);
const char *scenario_name(const struct scenario *scenario);

/* Makes one run, from opening to closing both transports. Aborts if an invariant is violated. */
void scenario_run(const struct scenario *scenario, struct choices *choices);
