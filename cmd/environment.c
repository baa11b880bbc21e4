/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/command.h"
#include "cmd/confinement.h"

void environment_finish(struct environment *environment, enum outcome outcome)
{
	environment_note(environment, outcome);
	environment->ended = true;
	if (environment->finished)
		environment->finished(environment->context);
	else
		loop_stop(environment->loop);
}

static void print_ready(struct environment *environment, const struct address *address, const char *line)
{
	struct report *record = environment_begin_record(environment, "ready");
	char host[ADDRESS_TEXT_SIZE];

	if (record) {
		report_text(record, "address", address_host(address, host));
		report_count(record, "port", address->port);
		environment_end_record(environment);
	}
	fprintf(environment_output(environment), "%s\n", line);
	fflush(environment->output);
}

static enum outcome confine(struct environment *environment)
{
	const struct common_options *options = environment->to_confine;

	environment->to_confine = NULL;
	return options ? confinement_enter(options, &environment->log) : OUTCOME_OK;
}

/* Privileges are dropped before the ready line is printed: a peer may connect as soon as it is. */
void environment_ready(struct environment *environment, const struct address *address, const char *line)
{
	bool serves = WITH_SERVICE && environment->daemon;
	enum outcome outcome = serves ? daemon_register(environment->daemon) : OUTCOME_OK;

	if (!outcome)
		outcome = confine(environment);
	if (!outcome)
		print_ready(environment, address, line);
	if (!outcome && serves)
		outcome = daemon_ready(environment->daemon, address);
	if (outcome)
		environment_finish(environment, outcome);
	else if (environment->ready)
		environment->ready(environment->context);
}

void environment_settled(struct environment *environment)
{
	enum outcome outcome = confine(environment);

	if (outcome)
		environment_finish(environment, outcome);
}

FILE *environment_output(const struct environment *environment)
{
	reporting_clear(environment->reporting);
	return environment->output;
}

void environment_summary(struct environment *environment)
{
	reporting_summary(environment->reporting);
}
