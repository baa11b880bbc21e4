/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "cmd/doctor/doctor.h"

static bool hold(void *holder, const char *object, const char *text)
{
	struct said *said = holder;

	if (object == log_hint_object) {
		if (!*said->hint)
			snprintf(said->hint, sizeof(said->hint), "%s", text);
	} else if (!*said->text) {
		snprintf(said->text, sizeof(said->text), "%s%s%s", object ? object : "", object ? ": " : "", text);
	}
	return true;
}

void trial_begin(struct doctor *doctor)
{
	doctor->said = (struct said){ .text = "" };
	doctor->log = doctor->environment->log;
	doctor->log.hold = hold;
	doctor->log.holder = &doctor->said;
}

enum outcome trial_open(struct doctor *doctor, const char *name, struct transport **transport, struct channel **channel)
{
	enum outcome outcome;

	trial_begin(doctor);
	outcome = transport_open(name, doctor->environment->loop, &doctor->log, transport);
	if (!outcome)
		outcome = channel_create(*transport, channel);
	if (!outcome)
		return OUTCOME_OK;
	transport_close(*transport);
	*transport = NULL;
	return outcome;
}

void trial_tell(struct doctor *doctor, enum finding_status status, const char *check)
{
	finding_add(&doctor->findings, status, check, *doctor->said.hint ? doctor->said.hint : NULL, "%s",
		    doctor->said.text);
}
