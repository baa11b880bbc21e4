/* SPDX-License-Identifier: BSD-2-Clause */
/* What is tried: its error is kept and not printed, as it becomes a finding. */
#include "cmd/doctor/doctor.h"

void probe_begin(struct doctor *doctor)
{
	struct probe *probe = &doctor->probe;

	*probe = (struct probe){ .log = doctor->environment->log };
	probe->log.silent = true;
	probe->log.reported = NULL;
	probe->log.errors = &probe->errors;
}

void probe_failed(struct doctor *doctor, struct transport *transport)
{
	log_report(&doctor->probe.log, &transport->error);
	error_clear(&transport->error);
}

enum outcome probe_open(struct doctor *doctor, const char *name, struct transport **transport, struct channel **channel)
{
	struct error error;
	enum outcome outcome;

	probe_begin(doctor);
	outcome = *transport ? OUTCOME_OK
			     : transport_open(name, doctor->environment->loop, &doctor->probe.log, &error, transport);
	if (outcome) {
		log_report(&doctor->probe.log, &error);
		return outcome;
	}
	outcome = channel_create(*transport, channel);
	if (!outcome)
		return OUTCOME_OK;
	probe_failed(doctor, *transport);
	transport_close(*transport);
	*transport = NULL;
	return outcome;
}

static void probe_event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct doctor *doctor = context;
	struct probe *probe = &doctor->probe;

	if (event->kind == EVENT_REQUEST) {
		probe->request = event->request;
		event->request->handlers = endpoint->handlers;
		event->request->context = doctor;
	}
	if (event->outcome)
		probe_failed(doctor, endpoint->transport);
	probe->event = event->kind;
	probe->outcome = event->outcome;
	loop_stop(doctor->environment->loop);
}

enum outcome probe_create(struct doctor *doctor, enum endpoint_kind kind, struct channel *channel,
			  enum port_space port_space, struct endpoint **endpoint)
{
	static const struct endpoint_handlers handlers = { .event = probe_event };
	const struct endpoint_options options = {
		.port_space = port_space,
		.timeout = doctor->options->common.timeout,
		.send_depth = 1,
		.receive_depth = 1,
	};

	return endpoint_create(kind, channel, &options, &handlers, doctor, endpoint);
}

enum outcome probe_wait(struct doctor *doctor, enum event_kind wanted)
{
	struct probe *probe = &doctor->probe;

	while (probe->event != wanted && !probe->outcome && environment_wait(doctor->environment))
		;
	return probe->event == wanted ? OUTCOME_OK : probe->outcome ? probe->outcome : OUTCOME_FAILED;
}
