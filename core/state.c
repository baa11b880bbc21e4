/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/state.h"

bool state_change(const struct state_row *rows, unsigned from, unsigned to, const struct log *log, const char *object)
{
	if (!(rows[from].next & STATE_BIT(to))) {
		log_error(log, object, "defect: %s cannot follow %s", rows[to].text, rows[from].text);
		return false;
	}
	log_debug(log, "%s: %s -> %s", object, rows[from].text, rows[to].text);
	return true;
}

void state_enter(struct state *state, unsigned next, const char *object)
{
	state_change(state->rows, state->now, next, state->log, object);
	state->now = next;
	if (state->rows[next].waits)
		loop_timer_start(state->loop, &state->deadline, state->timeout, state->expired, state->context);
	else
		state_stop(state);
}

void state_stop(struct state *state)
{
	loop_timer_stop(&state->deadline);
}

const char *state_text(const struct state *state)
{
	return state->rows[state->now].text;
}
