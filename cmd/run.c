/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/daemon.h"
#include "cmd/output.h"
#include "cmd/signals.h"
#include "core/privileges.h"
#include "core/units.h"

/* Limit of an orderly shutdown after the deadline: a working peer answers within this time. */
#define SHUTDOWN_AT_DEADLINE (250 * CLOCK_NS_PER_MS)
/* Added to --timeout, so that a step of the shutdown that times out first can report which peer did not answer. */
#define SHUTDOWN_MARGIN (250 * CLOCK_NS_PER_MS)

struct run {
	const struct command *command;
	struct common_options *common;
	void *state;
	enum interruption interruption; /* 0: none */
	struct environment environment;
	struct errors errors;
	struct loop_signal signal;
	struct loop_timer shutdown; /* limits the time of an orderly shutdown */
	struct daemon daemon;
	struct reporting reporting;
};

/* Prints the lines after the name, the first with a prefix and the others below it. */
static void print_lines(const char *lines, const char *prefix, const char *name)
{
	int indent = (int)strlen(prefix);

	while (*lines) {
		size_t length = strcspn(lines, "\n");

		fprintf(stdout, "%*s%s %.*s\n", indent, prefix, name, (int)length, lines);
		prefix = "";
		lines += length + (lines[length] == '\n');
	}
}

void command_help(const struct command *command, const char *name, bool brief)
{
	print_lines(command->synopsis, "Usage: ", name);
	fprintf(stdout, "\n%s - %s\n", command->name, command->summary);
	options_help(command->options, brief, stdout);
	if (!brief || !WITH_HELP)
		return;
	fprintf(stdout, "\nExamples:\n");
	print_lines(command->examples, "  ", name);
}

/* Ends the run in place of the command. */
static void abort_run(struct run *run)
{
	environment_finish(&run->environment, OUTCOME_FAILED, NULL, "shutdown did not complete");
}

static void shutdown_timeout(void *context)
{
	struct run *run = context;

	if (run->environment.ended)
		return;
	if (run->interruption == INTERRUPTION_SIGNAL)
		log_error(&run->environment.log, NULL, "shutdown exceeded --timeout (%.9g s)",
			  units_seconds(run->common->timeout));
	abort_run(run);
}

static void interrupt(struct run *run, enum interruption interruption, int64_t limit)
{
	run->interruption = interruption;
	loop_timer_start(run->environment.loop, &run->shutdown, limit, shutdown_timeout, run);
	run->command->interrupt(run->state, interruption);
}

/* The watchdog expires later than the limits that the loop enforces: those of the shutdown and of the clean-up. */
static int64_t watchdog_limit(const struct run *run)
{
	return 2 * run->common->timeout + CLOCK_NS_PER_S;
}

static void signal_received(void *context)
{
	struct run *run = context;

	if (run->interruption || run->environment.ended)
		return;
	if (WITH_REPORT)
		output_end_echo(run->environment.output);
	watchdog_start(watchdog_limit(run));
	interrupt(run, INTERRUPTION_SIGNAL, run->common->timeout + SHUTDOWN_MARGIN);
}

/* The phases have ended. This ends what was in none, such as a server that waits for a client. */
static void deadline_expired(void *context)
{
	struct run *run = context;
	char text[LOOP_PHASE_TEXT_SIZE];

	if (run->environment.ended)
		return;
	log_error(&run->environment.log, NULL, "%s", loop_phase_text(run->environment.loop, 0, text));
	loop_deadline_stop(run->environment.loop);
	environment_record_outcome(&run->environment, OUTCOME_FAILED);
	/* A signal has started the shutdown before: it gets no more time. */
	if (run->interruption)
		abort_run(run);
	else
		interrupt(run, INTERRUPTION_DEADLINE, SHUTDOWN_AT_DEADLINE);
}

/* The transport is open and the loop exists. */
static enum outcome run_loop(struct run *run, const void *options)
{
	struct environment *environment = &run->environment;
	enum outcome outcome = OUTCOME_OK;

	environment->begun = clock_now();
	if (run->common->deadline) {
		loop_deadline_start(environment->loop, run->common->deadline, deadline_expired, run);
		watchdog_start(run->common->deadline + watchdog_limit(run));
	}
	if (run->command->is_open_ended && run->command->is_open_ended(options))
		signal(SIGPIPE, SIG_DFL);
	signals_catch(environment->loop, &run->signal, signal_received, run);
	if (WITH_REPORT)
		outcome = reporting_begin(&run->reporting);
	if (outcome == OUTCOME_OK)
		outcome = run->command->start(environment, options, &run->state);
	if (outcome)
		return outcome;
	if (WITH_REPORT)
		reporting_start(&run->reporting, run->state);
	if (!loop_run(environment->loop)) {
		log_error(&environment->log, "event loop", "the kernel refuses to watch a descriptor");
		environment_finish(environment, OUTCOME_INTERNAL, NULL, "the event loop failed");
	}
	return OUTCOME_OK;
}

/* Summary and verdict come before the clean-up, which may block. */
static void end_run(struct run *run)
{
	struct environment *environment = &run->environment;

	if (environment->ended && output_is_lost()) {
		const struct error lost = { .object = "standard output", .cause = "write failed" };

		/* output_finish() prints it: main() has one for a run that has not begun, too. */
		log_keep(&environment->log, &lost);
		environment_record_outcome(environment, OUTCOME_INTERNAL);
	}
	if (WITH_REPORT)
		reporting_end(&run->reporting);
	environment_print_verdict(environment);
	if (run->state)
		run->command->stop(run->state);
	loop_deadline_stop(environment->loop);
	loop_timer_stop(&run->shutdown);
	signals_release(&run->signal);
	transport_close(environment->transport);
	environment->transport = NULL;
	loop_destroy(environment->loop);
}

static enum outcome run_command(struct run *run, const void *options)
{
	struct environment *environment = &run->environment;
	bool opens = !HAS_CHILD_RUNS || !run->command->chooses_transport;
	enum outcome outcome = OUTCOME_OK;
	struct error error;

	if (WITH_REPORT)
		outcome = reporting_choose(&run->reporting, run->common);
	else if (run->common->reporting.quiet)
		outcome = output_discard(&environment->output, &environment->log);
	if (!outcome && run->command->check)
		outcome = run->command->check(environment, options);
	if (!outcome && EXTRA(run->common->daemon)) {
		environment->daemon = &run->daemon;
		outcome = daemon_begin(&run->daemon, &environment->log);
	}
	if (outcome)
		return outcome;
	if (opens)
		environment->to_set_up = run->common;
	environment->loop = loop_create();
	if (!environment->loop) {
		log_errno(&environment->log, NULL, errno, "creating the event loop");
		return OUTCOME_INTERNAL;
	}
	if ((WITH_EXTRAS || WITH_SOFT) && opens)
		outcome = path_check(common_transport(run->common), &environment->log, run->command->options, options,
				     environment->given);
	/* The kernel's RDMA refuses a process whose credentials have changed since it opened the device. */
	if (opens && transport_opens_devices(common_transport(run->common)))
		privileges_drop(&environment->log, PRIVILEGE_PORTS | common_privileges(run->common));
	if (outcome == OUTCOME_OK && opens) {
		outcome = common_open(run->common, common_transport(run->common), environment, &error);
		if (outcome)
			log_report(&environment->log, &error);
	}
	if (outcome == OUTCOME_OK)
		outcome = run_loop(run, options);
	environment_record_outcome(environment, outcome);
	end_run(run);
	return environment->outcome;
}

enum outcome command_run(const struct command *command, const char *name, int argc, char *const *argv)
{
	struct run run = { .environment = { .command = command, .log.name = name, .output = stdout },
			   .command = command };
	void *options = common_options_create(command->options_size);
	enum outcome outcome;

	run.environment.log.errors = &run.errors;
	fatal_exit_name(name);
	if (!options) {
		log_errno(&run.environment.log, NULL, ENOMEM, "starting");
		return OUTCOME_INTERNAL;
	}
	run.common = options;
	if (WITH_REPORT)
		reporting_prepare(&run.reporting, &run.environment, argc, argv);
	outcome = options_parse(command->options, &run.environment.log, argc, argv, options, &run.environment.given);
	run.environment.log.debug = run.common->debug;
	if (outcome == OUTCOME_OK && (run.common->help || run.common->usage))
		command_help(command, name, run.common->usage);
	else if (outcome == OUTCOME_OK && run.common->version)
		fprintf(stdout, "%s (rdmatest) %s\n", command->name, RDMATEST_VERSION RDMATEST_COMMIT);
	else if (outcome == OUTCOME_OK)
		outcome = run_command(&run, options);
	environment_record_outcome(&run.environment, outcome);
	if (WITH_REPORT)
		reporting_close(&run.reporting);
	if (run.environment.output != stdout)
		fclose(run.environment.output);
	free(options);
	return run.environment.outcome;
}
