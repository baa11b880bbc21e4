/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/phase.h"

void phase_enter(struct phase *phase, unsigned state, const char *name)
{
	const struct phase_row *now = &phase->rows[phase->state];
	const struct phase_row *next = &phase->rows[state];

	if (!(now->next & PHASE_BIT(state)))
		log_error(phase->log, name, "defect: %s cannot follow %s", next->text, now->text);
	log_debug(phase->log, "%s: %s -> %s", name, now->text, next->text);
	phase->state = state;
	if (next->waits)
		loop_timer_start(phase->loop, &phase->deadline, phase->timeout, phase->expired, phase->owner);
	else
		loop_timer_stop(&phase->deadline);
}

void phase_stop(struct phase *phase)
{
	loop_timer_stop(&phase->deadline);
}

const char *phase_text(const struct phase *phase)
{
	return phase->rows[phase->state].text;
}
