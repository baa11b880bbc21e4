/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "cmd/doctor/doctor.h"

static void keep_error(const struct log *log, const struct error *error)
{
	struct probe *probe = log->context;

	if (!probe->failed)
		probe->error = *error;
	probe->failed = true;
}

static void keep_hint(const struct log *log, const char *text)
{
	struct probe *probe = log->context;

	if (!*probe->hint)
		snprintf(probe->hint, sizeof(probe->hint), "%s", text);
}

static const struct log_sink sink = { .error = keep_error, .hint = keep_hint };

void probe_begin(struct doctor *doctor)
{
	doctor->probe = (struct probe){ .log = doctor->environment->log };
	doctor->probe.log.sink = &sink;
	doctor->probe.log.context = &doctor->probe;
}

enum outcome probe_open(struct doctor *doctor, const char *name, struct transport **transport, struct channel **channel)
{
	enum outcome outcome;

	probe_begin(doctor);
	outcome = transport_open(name, doctor->environment->loop, &doctor->probe.log, transport);
	if (!outcome)
		outcome = channel_create(*transport, channel);
	if (!outcome)
		return OUTCOME_OK;
	transport_close(*transport);
	*transport = NULL;
	return outcome;
}

void probe_report(struct doctor *doctor, enum finding_status status, const char *check, const char *remedy)
{
	finding_add_error(&doctor->findings, status, check, *doctor->probe.hint ? doctor->probe.hint : remedy,
			  &doctor->probe.error);
}
