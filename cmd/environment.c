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
	loop_stop(environment->loop);
}
