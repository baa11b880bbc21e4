/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/command.h"

void environment_note(struct environment *environment, enum outcome outcome)
{
	if (environment->outcome == OUTCOME_OK)
		environment->outcome = outcome;
}

void environment_finish(struct environment *environment, enum outcome outcome)
{
	environment_note(environment, outcome);
	if (environment->finished)
		environment->finished(environment->owner);
	else
		loop_stop(environment->loop);
}

void environment_ready(struct environment *environment)
{
	if (environment->ready)
		environment->ready(environment->owner);
}
