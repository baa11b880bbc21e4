/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/child_run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/privileges.h"

static enum outcome parse(struct child_run *child, int64_t timeout, const char *arguments)
{
	const struct command *command = child->command;
	struct run *run = &child->run;
	char *words[CHILD_RUN_ARGUMENTS_MAX], *rest = child->arguments;
	enum outcome outcome;
	int count = 0;

	log_text(child->arguments, sizeof(child->arguments), "%s --timeout %" PRId64 "ns %s", command->name, timeout,
		 arguments);
	while (rest && count < CHILD_RUN_ARGUMENTS_MAX)
		words[count++] = strsep(&rest, " ");
	outcome = options_parse(command->options, &run->log, count, words, child->options, &run->given);
	if (!outcome && command->check)
		outcome = command->check(run, child->options);
	return outcome;
}

void child_run_stop(struct child_run *child)
{
	if (child->output.stream)
		run_print_verdict(&child->run);
	if (child->state)
		child->command->stop(child->state);
	child->running = false;
	child->state = NULL;
	free(child->options);
	child->options = NULL;
	if (child->output.stream)
		fclose(child->output.stream);
	child->output.stream = NULL;
}

bool child_run_goes_on(struct child_run *child)
{
	if (child->running && child->run.ended)
		child_run_stop(child);
	return child->running;
}

void child_run_start(struct child_run *child, const struct run *parent, const struct command *command, const char *role,
		     int64_t timeout, const char *arguments)
{
	struct run *run = &child->run;
	enum outcome outcome = OUTCOME_INTERNAL;

	log_text(child->name, sizeof(child->name), "%s %s", parent->log.name, role);
	child->command = command;
	child->output.stream = open_memstream(&child->text, &child->text_length);
	child->options = common_options_create(command->options_size);
	*run = (struct run){
		.command = command,
		.begun = parent->begun,
		.loop = parent->loop,
		.log = parent->log,
		.transport = parent->transport,
		.ping = parent->ping,
		.output = &child->output,
		.child = true,
	};
	run->log.name = child->name;
	if (!child->options || !child->output.stream)
		log_error(&run->log, NULL, "out of memory");
	else
		outcome = parse(child, timeout, arguments);
	if (!outcome)
		outcome = command->start(run, child->options, &child->state);
	run_record_outcome(run, outcome);
	if (outcome) {
		child_run_stop(child);
		return;
	}
	child->running = true;
	run_drop_privileges(parent, PRIVILEGE_BUFFERS);
}

void child_run_interrupt(struct child_run *child, enum interruption reason)
{
	if (!child->running || child->interrupted)
		return;
	child->interrupted = true;
	child->command->interrupt(child->state, reason);
}

void child_run_free(struct child_run *child)
{
	child_run_stop(child);
	free(child->text);
	memset(child, 0, sizeof(*child));
}
