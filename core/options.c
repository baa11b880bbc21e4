/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/options.h"

#include <assert.h>
#include <string.h>

#include "core/option_value.h"
#include "core/spelling.h"

struct parse {
	const struct option *table;
	const struct log *log;
	char *options; /* the command's struct */
	uint64_t given;
	bool stops; /* --help or --version was given: later arguments and the rules are ignored */
	size_t operand_count;
	const char *operands[OPTION_LIST_MAX + 1];
};

const struct option *option_first(const struct option *table)
{
	while (table && !table->name)
		table = table->rest;
	return table;
}

const struct option *option_next(const struct option *row)
{
	return option_first(row + 1);
}

/* Returns the row with that name, or NULL. *position gets its index among the rows. */
static const struct option *find_row(const struct option *table, const char *name, unsigned *position)
{
	const struct option *row = option_first(table);

	for (*position = 0; row && strcmp(row->name, name) != 0; ++*position)
		row = option_next(row);
	return row;
}

static void clear_replaced(struct parse *parse, const struct option *row)
{
	unsigned position;
	const struct option *other = find_row(parse->table, row->replaces, &position);
	bool *flag = (bool *)(parse->options + other->offset);
	char one[OPTION_TEXT_SIZE], another[OPTION_TEXT_SIZE];

	if (*flag)
		log_hint(parse->log, "%s overrides the earlier %s", option_label(row, one),
			 option_label(other, another));
	*flag = false;
	parse->given &= ~(UINT64_C(1) << position);
}

static void set_flag(struct parse *parse, const struct option *row)
{
	*(bool *)(parse->options + row->offset) = true;
	if (row->replaces)
		clear_replaced(parse, row);
	if (!strcmp(row->name, "help") || !strcmp(row->name, "version"))
		parse->stops = true;
}

static void set_initial(const struct option *table, char *options)
{
	unsigned rows = 0;

	for (const struct option *row = option_first(table); row; row = option_next(row)) {
		void *value = options + row->offset;

		rows++;
		assert(rows <= OPTION_ROWS_MAX);
		if (row->type == OPTION_ALIAS)
			continue;
		if (row->type == OPTION_FLAG)
			*(bool *)value = false;
		else if (row->type == OPTION_TEXT)
			*(const char **)value = NULL;
		else if (row->type == OPTION_LIST)
			((struct option_list *)value)->count = 0;
		else
			*(int64_t *)value = row->initial;
	}
}

static void mark_given(struct parse *parse, const struct option *row)
{
	unsigned position;

	find_row(parse->table, row->name, &position);
	parse->given |= UINT64_C(1) << position;
}

static void hint_help(const struct parse *parse)
{
	log_hint(parse->log, "%s --help lists the options", parse->log->name);
}

static enum outcome missing_value(const struct parse *parse, const struct option *row)
{
	char name[OPTION_TEXT_SIZE];
	char takes[OPTION_TEXT_SIZE];

	if (option_takes_text(row))
		log_error(parse->log, option_label(row, name), "%s is missing", row->argument);
	else
		log_error(parse->log, option_label(row, name), "%s is missing: %s", row->argument,
			  option_range_text(row, takes));
	return OUTCOME_USAGE;
}

static enum outcome take_value(const struct parse *parse, const struct option *row, const char *value)
{
	if (!value)
		return missing_value(parse, row);
	return option_set(row, parse->log, value, parse->options);
}

/* "-vVC5" and "-C 5": flags may share one dash. The rest of the argument is the value of an option that takes one. */
static enum outcome parse_letters(struct parse *parse, char *const *argv, int *index)
{
	for (const char *letters = argv[*index] + 1; *letters && !parse->stops; letters++) {
		const struct option *row = option_first(parse->table);
		const char *value;

		while (row && row->letter != *letters)
			row = option_next(row);
		if (!row) {
			const char unknown[] = { '-', *letters, 0 };

			log_error(parse->log, unknown, "unknown option");
			hint_help(parse);
			return OUTCOME_USAGE;
		}
		mark_given(parse, row);
		if (row->type == OPTION_FLAG) {
			set_flag(parse, row);
			continue;
		}
		value = letters[1] ? letters + 1 : argv[++*index];
		return take_value(parse, row, value);
	}
	return OUTCOME_OK;
}

static void unknown_name(const struct parse *parse, const char *name)
{
	const struct option *nearest = NULL;
	unsigned least = SPELLING_FAR;
	char typed[OPTION_TEXT_SIZE];

	snprintf(typed, sizeof(typed), "--%.150s", name);
	log_error(parse->log, typed, "unknown option");
	for (const struct option *row = option_first(parse->table); row; row = option_next(row)) {
		unsigned distance = spelling_distance(name, row->name);

		if (distance >= least)
			continue;
		least = distance;
		nearest = row;
	}
	if (nearest)
		log_hint(parse->log, "did you mean --%s?", nearest->name);
	else
		hint_help(parse);
}

/* "--count=5" and "--count 5". */
static enum outcome parse_name(struct parse *parse, char *const *argv, int *index)
{
	const char *text = argv[*index] + 2;
	size_t length = strcspn(text, "=");
	const char *value = text[length] ? text + length + 1 : NULL;
	char name[OPTION_TEXT_SIZE];
	const struct option *row;
	unsigned position;

	snprintf(name, sizeof(name), "%.*s", (int)(length < sizeof(name) ? length : sizeof(name)), text);
	row = find_row(parse->table, name, &position);
	if (row && row->type == OPTION_ALIAS)
		row = find_row(parse->table, row->same_as, &position);
	if (!row) {
		unknown_name(parse, name);
		return OUTCOME_USAGE;
	}
	mark_given(parse, row);
	if (row->type == OPTION_FLAG) {
		if (value) {
			log_error(parse->log, option_label(row, name), "takes no value");
			return OUTCOME_USAGE;
		}
		set_flag(parse, row);
		return OUTCOME_OK;
	}
	if (!value)
		value = argv[++*index];
	return take_value(parse, row, value);
}

static enum outcome reject_operand(const struct parse *parse, const struct option *row, const char *operand)
{
	if (row)
		log_error(parse->log, NULL, "unexpected argument '%s': %s is already given", operand, row->argument);
	else
		log_error(parse->log, NULL, "unexpected argument '%s'", operand);
	hint_help(parse);
	return OUTCOME_USAGE;
}

/* Called after all options are parsed, because whether an operand is ignored depends on them. */
static enum outcome take_operands(struct parse *parse)
{
	const struct option *row = option_first(parse->table);
	enum outcome outcome = OUTCOME_OK;
	char name[OPTION_TEXT_SIZE];
	bool given;

	while (row && !row->operand)
		row = option_next(row);
	given = row && options_given(parse->table, parse->given, row->name);
	for (size_t i = 0; i < parse->operand_count && !outcome; i++) {
		if (given && row->operand == OPERAND_UNLESS_GIVEN)
			log_hint(parse->log, "argument '%s' ignored beside %s%s", parse->operands[i],
				 option_label(row, name),
				 options_has(parse->table, "device") ? " (--device chooses an RDMA device)" : "");
		else if (!row || (row->type != OPTION_LIST && (given || i)))
			outcome = reject_operand(parse, row, parse->operands[i]);
		else
			outcome = option_set(row, parse->log, parse->operands[i], parse->options);
	}
	if (row && parse->operand_count)
		mark_given(parse, row);
	return outcome;
}

bool options_has(const struct option *table, const char *name)
{
	unsigned position;

	return find_row(table, name, &position) != NULL;
}

bool options_given(const struct option *table, uint64_t given, const char *name)
{
	unsigned position;
	const struct option *row = find_row(table, name, &position);

	assert(row);
	return row && given >> position & 1;
}

static enum outcome check_rule(const struct parse *parse, const struct option_rule *rule)
{
	unsigned position;
	const struct option *first = find_row(parse->table, rule->first, &position);
	const struct option *second = find_row(parse->table, rule->second, &position);
	bool has_first = options_given(parse->table, parse->given, rule->first);
	bool has_second = options_given(parse->table, parse->given, rule->second);
	char one[OPTION_TEXT_SIZE];
	char other[OPTION_TEXT_SIZE];

	option_label(first, one);
	option_label(second, other);
	switch (rule->relation) {
	case OPTION_EXCLUDES:
		if (!has_first || !has_second)
			return OUTCOME_OK;
		log_error(parse->log, NULL, "%s and %s are mutually exclusive", one, other);
		return OUTCOME_USAGE;
	case OPTION_NEEDS:
		if (!has_first || has_second)
			return OUTCOME_OK;
		log_error(parse->log, NULL, "%s needs %s", one, other);
		return OUTCOME_USAGE;
	case OPTION_MORE_RULES:
		break;
	case OPTION_ONE_OF:
		if (has_first || has_second)
			return OUTCOME_OK;
		log_error(parse->log, NULL, "%s or %s is needed", one, other);
		hint_help(parse);
		return OUTCOME_USAGE;
	}
	return OUTCOME_OK;
}

static enum outcome parse_arguments(struct parse *parse, int argc, char *const *argv)
{
	bool only_operands = false;

	for (int i = 1; i < argc && !parse->stops; i++) {
		const char *text = argv[i];
		enum outcome outcome = OUTCOME_OK;

		if (only_operands || text[0] != '-' || !text[1]) {
			if (parse->operand_count <= OPTION_LIST_MAX)
				parse->operands[parse->operand_count++] = text;
		} else if (text[1] != '-') {
			outcome = parse_letters(parse, argv, &i);
		} else if (text[2]) {
			outcome = parse_name(parse, argv, &i);
		} else {
			only_operands = true;
		}
		if (outcome)
			return outcome;
	}
	return parse->stops ? OUTCOME_OK : take_operands(parse);
}

enum outcome options_parse(const struct option *table, const struct option_rule *rules, const struct log *log, int argc,
			   char *const *argv, void *options, uint64_t *given)
{
	struct parse parse = { .table = table, .log = log, .options = options };
	enum outcome outcome;

	set_initial(table, options);
	outcome = parse_arguments(&parse, argc, argv);
	while (rules && rules->relation && !outcome && !parse.stops) {
		if (rules->relation == OPTION_MORE_RULES) {
			rules = rules->second;
			continue;
		}
		outcome = check_rule(&parse, rules++);
	}
	*given = parse.given;
	return outcome;
}
