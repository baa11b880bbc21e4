/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/end.h"

#include <stdlib.h>
#include <string.h>

static const char *value_of(const char *word, const struct arguments *values)
{
	if (!strcmp(word, "@address"))
		return values->address;
	if (!strcmp(word, "@port"))
		return values->port;
	if (!strcmp(word, "@group"))
		return values->group;
	return word;
}

/* Splits end->words in place. */
static int split(struct end *end, char *words[END_WORDS_MOST], const struct arguments *values)
{
	char *rest = end->words;
	char *word;
	int count = 0;

	while ((word = strsep(&rest, " ")) && count < END_WORDS_MOST) {
		const char *value = value_of(word, values);

		/* The values outlive the run, and nobody writes into them. */
		words[count++] = value == word ? word : (char *)(uintptr_t)value;
	}
	return count;
}

static enum outcome parse(struct end *end, const char *arguments, const struct arguments *values)
{
	const struct command *command = end->command;
	struct environment *environment = &end->environment;
	char *words[END_WORDS_MOST];
	enum outcome outcome;
	int count;

	snprintf(end->words, sizeof(end->words), "%s %s --timeout %s", command->name, arguments, values->timeout);
	count = split(end, words, values);
	outcome = options_parse(command->options, command->rules, &environment->log, count, words, end->options,
				&environment->given);
	if (!outcome && command->check)
		outcome = command->check(environment, end->options);
	return outcome;
}

static void dispose(struct end *end)
{
	loop_timer_stop(&end->step);
	if (end->running)
		end->command->stop(end->state);
	end->running = false;
	end->state = NULL;
	free(end->options);
	end->options = NULL;
	if (end->environment.output)
		fclose(end->environment.output);
	end->environment.output = NULL;
}

/* Both come from inside the command, so that only the loop's next turn may act on them. */

static void over_now(void *owner)
{
	struct end *end = owner;

	dispose(end);
	end->over(end);
}

static void finished(void *owner)
{
	struct end *end = owner;

	loop_timer_start(end->environment.loop, &end->step, 0, over_now, end);
}

static void ready_now(void *owner)
{
	struct end *end = owner;

	end->ready(end);
}

static void ready(void *owner)
{
	struct end *end = owner;

	if (end->ready)
		loop_timer_start(end->environment.loop, &end->step, 0, ready_now, end);
}

void end_start(struct end *end, const struct environment *outer, const struct command *command, const char *role,
	       const char *arguments, const struct arguments *values)
{
	struct environment *environment = &end->environment;
	enum outcome outcome = OUTCOME_INTERNAL;

	snprintf(end->name, sizeof(end->name), "%s %s", outer->log.name, role);
	end->command = command;
	end->options = common_options_create(command->options_size);
	*environment = (struct environment){
		.loop = outer->loop,
		.log = outer->log,
		.transport = outer->transport,
		.output = open_memstream(&end->text, &end->text_length),
		.ready = ready,
		.finished = finished,
		.owner = end,
	};
	environment->log.name = end->name;
	if (!end->options || !environment->output)
		log_error(&environment->log, NULL, "out of memory");
	else
		outcome = parse(end, arguments, values);
	if (!outcome)
		outcome = command->start(environment, end->options, &end->state);
	environment_note(environment, outcome);
	if (outcome)
		dispose(end);
	else
		end->running = true;
}

void end_interrupt(struct end *end, enum interruption reason)
{
	if (!end->running || end->interrupted)
		return;
	end->interrupted = true;
	end->command->interrupt(end->state, reason);
}

void end_cut(struct end *end)
{
	dispose(end);
}

void end_release(struct end *end)
{
	dispose(end);
	free(end->text);
	memset(end, 0, sizeof(*end));
}

const char *end_verdict(const struct end *end, size_t *length)
{
	size_t prefix = strlen(end->name);
	const char *verdict = "";
	const char *line = end->text ? end->text : "";

	*length = 0;
	while (*line) {
		size_t line_length = strcspn(line, "\n");

		if (line_length > prefix + 2 && !strncmp(line, end->name, prefix) && line[prefix] == ':') {
			verdict = line + prefix + 2;
			*length = line_length - prefix - 2;
		}
		line += line_length + (line[line_length] == '\n');
	}
	return verdict;
}
