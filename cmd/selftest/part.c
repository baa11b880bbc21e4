/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One command: starts its server, starts the client when the server is ready, and waits for both. If one fails, the
 * other is interrupted and its errors are discarded, as they are consequences of the first failure.
 */
#include <string.h>

#include "cmd/selftest/selftest.h"
#include "core/units.h"

/* Added to --timeout, within which a command ends by itself; a receiver waits a little longer for late datagrams. */
#define MARGIN CLOCK_NS_PER_S

static void part_deadline_exceeded(void *context);

static void start_deadline(struct part *part)
{
	loop_timer_start(part->environment->loop, &part->deadline, part->timeout + MARGIN, part_deadline_exceeded,
			 part);
}

void part_interrupt(struct part *part, enum interruption reason)
{
	start_deadline(part);
	child_run_interrupt(&part->server, reason);
	child_run_interrupt(&part->client, reason);
}

/* Interrupts the remaining child run the first time, and stops it the second time. */
static void part_deadline_exceeded(void *context)
{
	struct part *part = context;
	struct child_run *remaining = part->server.running ? &part->server : &part->client;

	if (!part->outcome) {
		log_error(&remaining->environment.log, NULL, "not finished %g s after its peer",
			  units_seconds(part->timeout + MARGIN));
		part->outcome = OUTCOME_FAILED;
	}
	if (!remaining->interrupted) {
		part_interrupt(part, INTERRUPTION_SIGNAL);
		return;
	}
	child_run_stop(&part->server);
	child_run_stop(&part->client);
	part->ended(part->context);
}

static void run_ended(struct child_run *run)
{
	struct part *part = run->context;

	if (!part->outcome)
		part->outcome = run->environment.outcome;
	/* A server that succeeds before it has a client has tested nothing. */
	if (!part->outcome && !part->client_started)
		part->outcome = OUTCOME_FAILED;
	if (!part->server.running && !part->client.running) {
		loop_timer_stop(&part->deadline);
		part->ended(part->context);
	} else if (part->outcome) {
		part->server.environment.log.silent = part->client.environment.log.silent = true;
		part_interrupt(part, INTERRUPTION_SIGNAL);
	} else {
		start_deadline(part);
	}
}

static void start(struct part *part, struct child_run *run, const char *role, const char *format)
{
	char arguments[CHILD_RUN_ARGUMENTS_SIZE];

	run->ended = run_ended;
	run->context = part;
	log_fill(arguments, sizeof(arguments), format, part->address, part->number);
	child_run_start(run, part->environment, part->row->command, role, part->timeout, arguments);
}

static void server_ready(struct child_run *server)
{
	struct part *part = server->context;

	if (server->interrupted || part->client_started)
		return;
	part->client_started = true;
	start(part, &part->client, "client", part->row->client);
	if (!part->client.running)
		run_ended(&part->client);
}

static void start_failed(void *context)
{
	run_ended(context);
}

void part_start(struct part *part)
{
	struct child_run *server = &part->server;

	server->ready = server_ready;
	start(part, server, "server", part->row->server);
	if (!server->running)
		loop_timer_start(part->environment->loop, &server->step, 0, start_failed, server);
}

void part_free(struct part *part)
{
	loop_timer_stop(&part->deadline);
	child_run_free(&part->client);
	child_run_free(&part->server);
	memset(part, 0, sizeof(*part));
}
