/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/child_run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/privileges.h"

static enum outcome parse(struct child_run *run, int64_t timeout, const char *arguments)
{
	const struct command *command = run->command;
	struct environment *environment = &run->environment;
	char *words[CHILD_RUN_ARGUMENTS_MAX], *rest = run->arguments;
	enum outcome outcome;
	int count = 0;

	log_text(run->arguments, sizeof(run->arguments), "%s --timeout %" PRId64 "ns %s", command->name, timeout,
		 arguments);
	while (rest && count < CHILD_RUN_ARGUMENTS_MAX)
		words[count++] = strsep(&rest, " ");
	outcome = options_parse(command->options, &environment->log, count, words, run->options, &environment->given);
	if (!outcome && command->check)
		outcome = command->check(environment, run->options);
	return outcome;
}

void child_run_stop(struct child_run *run)
{
	if (run->output.stream)
		environment_print_verdict(&run->environment);
	if (run->state)
		run->command->stop(run->state);
	run->running = false;
	run->state = NULL;
	free(run->options);
	run->options = NULL;
	if (run->output.stream)
		fclose(run->output.stream);
	run->output.stream = NULL;
}

bool child_run_goes_on(struct child_run *run)
{
	if (run->running && run->environment.ended)
		child_run_stop(run);
	return run->running;
}

void child_run_start(struct child_run *run, const struct environment *parent, const struct command *command,
		     const char *role, int64_t timeout, const char *arguments)
{
	struct environment *environment = &run->environment;
	enum outcome outcome = OUTCOME_INTERNAL;

	log_text(run->name, sizeof(run->name), "%s %s", parent->log.name, role);
	run->command = command;
	run->output.stream = open_memstream(&run->text, &run->text_length);
	run->options = common_options_create(command->options_size);
	*environment = (struct environment){
		.command = command,
		.begun = parent->begun,
		.loop = parent->loop,
		.log = parent->log,
		.transport = parent->transport,
		.output = &run->output,
		.child = true,
	};
	environment->log.name = run->name;
	if (!run->options || !run->output.stream)
		log_error(&environment->log, NULL, "out of memory");
	else
		outcome = parse(run, timeout, arguments);
	if (!outcome)
		outcome = command->start(environment, run->options, &run->state);
	environment_record_outcome(environment, outcome);
	if (outcome) {
		child_run_stop(run);
		return;
	}
	run->running = true;
	environment_drop_privileges(parent, PRIVILEGE_BUFFERS);
}

void child_run_interrupt(struct child_run *run, enum interruption reason)
{
	if (!run->running || run->interrupted)
		return;
	run->interrupted = true;
	run->command->interrupt(run->state, reason);
}

void child_run_free(struct child_run *run)
{
	child_run_stop(run);
	free(run->text);
	memset(run, 0, sizeof(*run));
}
