/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/confinement.h"
#include "cmd/output.h"
#include "cmd/signals.h"
#include "core/sandbox.h"
#include "core/units.h"

/* So long may the end in order take when all the time of the run is over: a healthy peer answers sooner. */
#define ENDING_AT_DEADLINE (250 * CLOCK_NS_PER_MS)
/* Behind --timeout: a step of the end that comes to its own limit can say which peer did not answer what. */
#define ENDING_MARGIN (250 * CLOCK_NS_PER_MS)

struct run {
	const struct command *command;
	struct common_options *common;
	void *state;
	bool interrupted;
	struct environment environment;
	struct loop_signal signal;
	struct output_watch output;
	struct watchdog watchdog;
	struct loop_timer deadline;
	struct loop_timer ending; /* limits how long the orderly end may take */
	struct daemon daemon;
	struct reporting reporting;
};

void command_help(const struct command *command, const char *name)
{
	const char *line = command->synopsis;
	const char *before = "Usage: ";

	while (*line) {
		size_t length = strcspn(line, "\n");

		printf("%s%s %.*s\n", before, name, (int)length, line);
		before = "       ";
		line += length + (line[length] == '\n');
	}
	printf("\n%s - %s\n\nOptions:\n", command->name, command->summary);
	options_help(command->options, stdout);
}

/* "1500ms" reads worse than "1.5s". */
static const char *seconds_text(int64_t nanoseconds, char text[32])
{
	snprintf(text, 32, "%.9g s", units_seconds(nanoseconds));
	return text;
}

/* What the command would have said at its end is said for it. */
static void cut_short(struct run *run)
{
	struct environment *environment = &run->environment;

	environment_summary(environment);
	fprintf(environment_output(environment), "%s: FAILED: cut short\n", environment->log.name);
	environment_finish(environment, OUTCOME_FAILED);
}

static void ending_takes_too_long(void *owner)
{
	struct run *run = owner;
	char text[32];

	if (run->environment.ended)
		return;
	log_error(&run->environment.log, NULL, "shutdown exceeded --timeout (%s)",
		  seconds_text(run->common->timeout, text));
	cut_short(run);
}

/* How long the loop may take to enforce the limits of an orderly end, and after it the clean-up. */
static int64_t patience(const struct run *run)
{
	return 2 * run->common->timeout + CLOCK_NS_PER_S;
}

static void end_now(void *owner)
{
	struct run *run = owner;

	if (!run->environment.ended)
		cut_short(run);
}

static void signal_came(void *owner)
{
	struct run *run = owner;

	if (run->interrupted || run->environment.ended)
		return;
	run->interrupted = true;
	watchdog_start(&run->watchdog, patience(run));
	loop_timer_start(run->environment.loop, &run->ending, run->common->timeout + ENDING_MARGIN,
			 ending_takes_too_long, run);
	run->command->interrupt(run->state, INTERRUPTION_SIGNAL);
}

/* What a run is for is not its output alone: one that ends by itself goes on, and so does a server. */
static void output_lost(void *owner)
{
	struct run *run = owner;

	if (!run->interrupted && !run->environment.ended && run->command->is_open_ended &&
	    run->command->is_open_ended(run->common))
		run->command->interrupt(run->state, INTERRUPTION_NO_READER);
}

static void deadline_passed(void *owner)
{
	struct run *run = owner;
	char text[32];

	if (run->environment.ended)
		return;
	log_error(&run->environment.log, NULL, "deadline of %s exceeded", seconds_text(run->common->deadline, text));
	environment_note(&run->environment, OUTCOME_FAILED);
	/* An end that is under way since a signal has had its time. */
	if (run->interrupted) {
		end_now(run);
		return;
	}
	run->interrupted = true;
	loop_timer_start(run->environment.loop, &run->ending, ENDING_AT_DEADLINE, end_now, run);
	run->command->interrupt(run->state, INTERRUPTION_DEADLINE);
}

/* The run proper: the transport is open, the loop stands. */
static void run_loop(struct run *run, const void *options)
{
	struct environment *environment = &run->environment;
	enum outcome outcome;

	if (run->common->deadline) {
		loop_timer_start(environment->loop, &run->deadline, run->common->deadline, deadline_passed, run);
		watchdog_start(&run->watchdog, run->common->deadline + patience(run));
	}
	/* A daemon gives its standard output up. */
	if (!run->common->daemon.daemon)
		output_watch_start(&run->output, environment->loop, output_lost, run);
	signals_catch(environment->loop, &run->signal, signal_came, run);
	outcome = reporting_announce(&run->reporting);
	if (outcome == OUTCOME_OK)
		outcome = run->command->start(environment, options, &run->state);
	environment_note(environment, outcome);
	if (outcome == OUTCOME_OK) {
		reporting_start(&run->reporting, run->state);
		if (!loop_run(environment->loop)) {
			log_error(&environment->log, "event loop", "the kernel refuses to watch a descriptor");
			environment_note(environment, OUTCOME_INTERNAL);
		}
	}
	reporting_finish(&run->reporting);
	if (outcome == OUTCOME_OK)
		run->command->stop(run->state);
	loop_timer_stop(&run->deadline);
	loop_timer_stop(&run->ending);
	output_watch_stop(&run->output);
	signals_release(&run->signal);
}

static enum outcome run_command(struct run *run, const void *options)
{
	struct environment *environment = &run->environment;
	enum outcome outcome;

	reporting_choose(&run->reporting, &run->common->reporting);
	outcome = run->command->check ? run->command->check(environment, options) : OUTCOME_OK;
	if (WITH_SERVICE && !outcome && run->common->sandbox && !sandbox_is_possible(&environment->log))
		outcome = OUTCOME_USAGE;
	if (!outcome && WITH_SERVICE)
		outcome = daemon_begin(&run->daemon, &run->common->daemon, &environment->log);
	if (outcome)
		return outcome;
	environment->daemon = &run->daemon;
	if (!run->command->chooses_transport)
		environment->confined = run->common;
	environment->loop = loop_create();
	if (!environment->loop) {
		log_errno(&environment->log, "event loop", errno, "cannot be made");
		return OUTCOME_INTERNAL;
	}
	if (WITH_PATH && !run->command->chooses_transport)
		outcome = path_check(common_transport(run->common), &environment->log, run->command->options, options,
				     environment->given);
	if (environment->confined)
		confinement_begin(run->common, &environment->log);
	if (outcome == OUTCOME_OK && !run->command->chooses_transport)
		outcome = common_open(run->common, common_transport(run->common), environment);
	if (outcome == OUTCOME_OK)
		run_loop(run, options);
	environment_note(environment, outcome);
	reporting_finish(&run->reporting); /* which names the transport */
	transport_close(environment->transport);
	environment->transport = NULL;
	loop_destroy(environment->loop);
	if (WITH_SERVICE)
		daemon_end(&run->daemon);
	return environment->outcome;
}

enum outcome command_run(const struct command *command, const char *name, int argc, char *const *argv)
{
	struct run run = { .environment = { .log.name = name, .output = stdout }, .command = command };
	void *options = common_options_create(command->options_size);
	enum outcome outcome;

	if (!options) {
		log_errno(&run.environment.log, NULL, ENOMEM, "start");
		return OUTCOME_INTERNAL;
	}
	run.common = options;
	reporting_prepare(&run.reporting, &run.environment, command, argc, argv);
	outcome = options_parse(command->options, command->rules, &run.environment.log, argc, argv, options,
				&run.environment.given);
	run.environment.log.debug = run.common->debug;
	if (outcome == OUTCOME_OK && run.common->help)
		command_help(command, name);
	else if (outcome == OUTCOME_OK && run.common->version)
		printf("%s (rdmatest) %s\n", command->name, RDMATEST_VERSION);
	else if (outcome == OUTCOME_OK)
		outcome = run_command(&run, options);
	environment_note(&run.environment, outcome);
	if (outcome)
		reporting_finish(&run.reporting); /* if it has not come to that before */
	reporting_conclude(&run.reporting);
	reporting_free(&run.reporting);
	free(options);
	return outcome;
}
