/* SPDX-License-Identifier: BSD-2-Clause */
/* Attempts: their errors are kept, not printed, and become findings. */
#include "cmd/doctor/doctor.h"

/* Shows a longer wait for an answer on a terminal. */
#define SHOW_WAIT_AFTER CLOCK_NS_PER_S

void probe_begin(struct doctor *doctor)
{
	struct probe *probe = &doctor->probe;

	*probe = (struct probe){ .log = doctor->run->log };
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
			     : transport_open(name, doctor->run->loop, &doctor->probe.log, &error, transport);
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

	if (event->outcome)
		probe_failed(doctor, endpoint->transport);
	probe->event = event->kind;
	probe->outcome = event->outcome;
	loop_stop(doctor->run->loop);
}

enum outcome probe_create(struct doctor *doctor, enum endpoint_kind kind, struct channel *channel,
			  enum port_space port_space, const struct path_options *path, struct endpoint **endpoint)
{
	static const struct endpoint_handlers handlers = { .event = probe_event };
	const struct endpoint_options options = {
		.port_space = port_space,
		.timeout = doctor->options->common.timeout,
		.send_depth = 1,
		.receive_depth = 1,
		.path = path,
	};

	return endpoint_create(kind, channel, &options, &handlers, doctor, endpoint);
}

enum outcome probe_wait(struct doctor *doctor, enum event_kind wanted)
{
	struct probe *probe = &doctor->probe;

	while (probe->event != wanted && !probe->outcome && run_wait(doctor->run))
		;
	return probe->event == wanted ? OUTCOME_OK : probe->outcome ? probe->outcome : OUTCOME_FAILED;
}

static void still_waiting(void *context)
{
	struct doctor *doctor = context;

	run_print(doctor->run, "%s: still pinging %s", doctor->run->log.name, doctor->pinged);
}

static void probe_start(struct doctor *doctor, struct child_run *child, const char *role, int64_t timeout,
			const char *arguments, struct ping_facts *facts)
{
	struct run parent = *doctor->run;

	parent.log = doctor->probe.log;
	parent.transport = doctor->probe.transport;
	parent.ping = facts;
	/* Keeps privileges: the kernel's RDMA stack refuses a process whose credentials have changed. */
	if (doctor->verbs)
		parent.to_set_up = NULL;
	if (COMMAND_rping)
		child_run_start(child, &parent, &rping_command, role, timeout, arguments);
}

void probe_ping(struct doctor *doctor, const char *host, int64_t timeout, const char *options, struct child_run *ping,
		struct ping_facts *facts)
{
	struct run *run = doctor->run;
	char arguments[CHILD_RUN_ARGUMENTS_SIZE];
	struct loop_timer timer = { 0 };

	log_text(arguments, sizeof(arguments), "-c -V -a %s %s", host, options);
	log_text(doctor->pinged, sizeof(doctor->pinged), "%s", host);
	probe_start(doctor, ping, "ping", timeout, arguments, facts);
	if (run_live(run))
		loop_timer_start(run->loop, &timer, SHOW_WAIT_AFTER, still_waiting, doctor);
	while (child_run_goes_on(ping) && run_wait(run))
		;
	loop_timer_stop(&timer);
	child_run_stop(ping);
}

enum outcome probe_itself(struct doctor *doctor, struct transport *transport, const struct address *address,
			  int64_t timeout)
{
	struct child_run server = { .running = false }, ping = { .running = false };
	char host[ADDRESS_TEXT_SIZE], options[CHILD_RUN_ARGUMENTS_SIZE];
	struct ping_facts facts = { .answered = 0 };
	enum outcome outcome;

	probe_begin(doctor);
	doctor->probe.transport = transport;
	*doctor->pinged = '\0';
	log_text(options, sizeof(options), "-s -p 0 -a %s", address_host(address, host));
	probe_start(doctor, &server, "server", timeout, options, NULL);
	while (child_run_goes_on(&server) && !server.run.ready.family && run_wait(doctor->run))
		;
	if (server.running) {
		log_text(options, sizeof(options), "-C 1 -p %u", server.run.ready.port);
		probe_ping(doctor, host, timeout, options, &ping, &facts);
	}
	outcome = ping.run.outcome ? ping.run.outcome : server.run.outcome;
	child_run_free(&ping);
	child_run_free(&server);
	return outcome;
}
