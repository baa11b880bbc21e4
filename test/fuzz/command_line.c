/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of every command: the first byte chooses the command, the others are its words, each ended by a 0 or
 * a new line. Unusable words must be reported in one line and as a usage error, without other effects.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/common.h"
#include "core/option_value.h"
#include "test/fuzz/target.h"
#include "test/network/network.h"

enum {
	WORDS_MAX = 40,
	TEXT_MAX = 2048,
};

/* As main() gets them, with a final NULL. */
static int split(char *text, size_t length, char *words[WORDS_MAX + 1])
{
	int count = 0;
	char *start = text;

	words[count++] = (char *)(uintptr_t)"fuzz";
	for (size_t at = 0; at < length && count < WORDS_MAX; at++)
		if (!text[at] || text[at] == '\n') {
			text[at] = 0;
			words[count++] = start;
			start = text + at + 1;
		}
	words[count] = NULL;
	return count;
}

/* Accepted values are within the table's limits. */
static void check_values(const struct command *command, const char *options, const char *defaults)
{
	for (const struct option *row = option_first(command->options); row; row = option_next(row)) {
		const char *place = options + row->offset;
		int64_t number, minimum, maximum;
		const char *text;

		switch ((enum option_type)row->type) {
		case OPTION_INTEGER:
		case OPTION_SIZE:
		case OPTION_SIZES:
		case OPTION_DURATION:
			memcpy(&number, place, sizeof(number));
			option_limits(row, &minimum, &maximum);
			if (memcmp(place, defaults + row->offset, sizeof(number)) &&
			    (number < minimum || number > maximum))
				violation("%s: --%s is taken out of its range", command->name, row->text);
			break;
		case OPTION_TEXT:
			memcpy(&text, place, sizeof(text));
			if (text && !*text)
				violation("%s: --%s is taken empty", command->name, row->text);
			break;
		case OPTION_LIST:
			if (((const struct option_list *)(const void *)place)->count > OPTION_LIST_MAX)
				violation("%s: --%s has too many values", command->name, row->text);
			break;
		default:
			break;
		}
	}
}

static enum outcome run(const struct command *command, int count, char *const *words, char *options, char *defaults,
			struct errors *errors)
{
	struct common_options *common = (struct common_options *)(void *)options;
	struct run run = { .log = network_log(errors), .command = command };
	uint64_t none;
	enum outcome outcome;

	if (options_parse(command->options, &run.log, 1, words, defaults, &none))
		violation("%s: a default is not valid", command->name);
	outcome = options_parse(command->options, &run.log, count, words, options, &run.given);
	if (outcome || common->help || common->version)
		return outcome;
	check_values(command, options, defaults);
	if (command->check)
		outcome = command->check(&run, options);
	common->transport = "soft";
	if (!outcome && !command->chooses_transport)
		outcome = common_check_path(&run, common);
	return outcome;
}

void parse_options(const uint8_t *bytes, size_t length)
{
	static const size_t commands = 5;
	const struct command *command;
	char *words[WORDS_MAX + 1], *options, *defaults, text[TEXT_MAX + 1];
	struct errors errors = { .count = 0 };
	enum outcome outcome;

	if (!length)
		return;
	command = command_table[bytes[0] % commands];
	length = length - 1 < TEXT_MAX ? length - 1 : TEXT_MAX;
	memcpy(text, bytes + 1, length);
	text[length++] = 0;
	options = common_options_create(command->options_size);
	defaults = common_options_create(command->options_size);
	if (!options || !defaults)
		abort();
	outcome = run(command, split(text, length, words), words, options, defaults, &errors);
	if (outcome ? outcome != OUTCOME_USAGE || errors.count != 1 : errors.count)
		violation("%s: a command line ends with %d and %u messages", command->name, (int)outcome,
			  (unsigned)errors.count);
	free(options);
	free(defaults);
}
