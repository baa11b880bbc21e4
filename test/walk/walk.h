/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An explicit-state walk of the soft transport's state machines: connection manager (active, passive), queue pair
 * (requester, responder), and the life of an endpoint. Two real transports are joined by a network whose every step is
 * a choice, on a clock of its own; a run is fixed by its choices and can be had again.
 *
 * Choice 0 of a step is what a good network does: the oldest packet under way arrives, or if there is none, time passes
 * until the next timer is due. All others are departures from that:
 *
 *   another packet overtakes the oldest one · the oldest is held back (and lost, unless a later choice releases it) ·
 *   it arrives, and a copy is held back · what was held back arrives · a timer is due before anything arrives ·
 *   all packets for one end arrive in one batch · from now on nothing arrives at all
 *
 * A walk of depth N makes every run with up to N departures, wherever in the run they are.
 */
#ifndef TEST_WALK_WALK_H
#define TEST_WALK_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WALK_STEPS_MOST = 4000,
	WALK_DEPTH_MOST = 16,
};

/* What decides: the choices of a run, and how many there were at each step. */
struct choices {
	struct {
		uint16_t step;
		uint8_t choice;
	} departures[WALK_DEPTH_MOST];
	unsigned departure_count;
	unsigned step; /* the next one */
	uint8_t alternatives[WALK_STEPS_MOST];
};

/* A number below count; count is 1 to 255. */
unsigned choose(struct choices *choices, unsigned count);

struct scenario; /* what the two ends want of each other: ends.c */

const struct scenario *scenario_find(const char *name);
/* The one behind; the first for NULL; NULL behind the last. */
const struct scenario *scenario_next(const struct scenario *scenario);
const char *scenario_name(const struct scenario *scenario);

/* One run from the opening of both transports to their end. Aborts if something happens that never may. */
void scenario_run(const struct scenario *scenario, struct choices *choices);

#endif
