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
	bool stops; /* later arguments and the rules are ignored */
	size_t operand_count;
	const char *operands[OPTION_LIST_MAX + 1];
};

const char *option_field(const struct option *row, enum option_field field)
{
	const char *text = row->text;
	unsigned left = field;

	if (row->type == OPTION_FLAG && field >= OPTION_DEFAULT)
		left -= OPTION_DEFAULT - OPTION_ARGUMENT;
	for (; left; left--)
		text += strlen(text) + 1;
	return text;
}

const struct option *option_first(const struct option *table)
{
	while (table && table->type <= OPTION_VALUES)
		table = table->type == OPTION_VALUES ? table + 1 : table->rest;
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

	for (*position = 0; row && strcmp(row->text, name) != 0; ++*position)
		row = option_next(row);
	return row;
}

static void clear_others(struct parse *parse, const struct option *row)
{
	uint64_t bit = 1;

	for (const struct option *other = option_first(parse->table); other; other = option_next(other), bit <<= 1) {
		char one[OPTION_TEXT_SIZE], another[OPTION_TEXT_SIZE];

		if (!other->last_counts || other == row || !(parse->given & bit))
			continue;
		log_hint(parse->log, "%s overrides the earlier %s", option_label(row, one),
			 option_label(other, another));
		*(bool *)(parse->options + other->offset) = false;
		parse->given &= ~bit;
	}
}

static void set_flag(struct parse *parse, const struct option *row)
{
	*(bool *)(parse->options + row->offset) = true;
	if (row->last_counts)
		clear_others(parse, row);
	parse->stops = row->stops;
}

static void set_initial(const struct parse *parse)
{
	for (const struct option *row = option_first(parse->table); row; row = option_next(row))
		if (row->type != OPTION_FLAG && *option_field(row, OPTION_INITIAL))
			option_set(row, parse->log, option_field(row, OPTION_INITIAL), parse->options);
}

static void mark_given(struct parse *parse, const struct option *row)
{
	unsigned position;

	find_row(parse->table, row->text, &position);
	assert(position < OPTION_ROWS_MAX);
	parse->given |= UINT64_C(1) << position;
}

static void hint_help(const struct parse *parse)
{
	log_hint(parse->log, "%s --help lists the options", parse->log->name);
}

static enum outcome missing_value(const struct parse *parse, const struct option *row)
{
	const char *range = option_field(row, OPTION_RANGE);
	char name[OPTION_TEXT_SIZE];

	log_error(parse->log, option_label(row, name), "%s is missing%s%s", option_field(row, OPTION_ARGUMENT),
		  *range ? ": " : "", range);
	return OUTCOME_USAGE;
}

static enum outcome take_value(const struct parse *parse, const struct option *row, const char *value)
{
	if (!value)
		return missing_value(parse, row);
	return option_set(row, parse->log, value, parse->options);
}

/* The value is the next argument. If it may also be an operand, one that looks like an option is none. */
static enum outcome take_next(const struct parse *parse, const struct option *row, const char *value)
{
	char name[OPTION_TEXT_SIZE];

	if (!row->operand || !value || value[0] != '-' || !value[1])
		return take_value(parse, row, value);
	log_error(parse->log, option_label(row, name), "%s is an option, not %s", value,
		  option_field(row, OPTION_ARGUMENT));
	return OUTCOME_USAGE;
}

/* "-vVC5" and "-C 5": flags may share one dash. The rest of the argument is the value of an option that takes one. */
static enum outcome parse_letters(struct parse *parse, char *const *argv, int *index)
{
	for (const char *letters = argv[*index] + 1; *letters && !parse->stops; letters++) {
		const struct option *row = option_first(parse->table);

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
		return letters[1] ? take_value(parse, row, letters + 1) : take_next(parse, row, argv[++*index]);
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
		unsigned distance = spelling_distance(name, row->text);

		if (distance >= least)
			continue;
		least = distance;
		nearest = row;
	}
	if (nearest)
		log_hint(parse->log, "did you mean --%s?", nearest->text);
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
		row = find_row(parse->table, option_field(row, OPTION_RANGE), &position);
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
	return value ? take_value(parse, row, value) : take_next(parse, row, argv[++*index]);
}

static enum outcome reject_operand(const struct parse *parse, const struct option *row, const char *operand)
{
	if (row)
		log_error(parse->log, NULL, "unexpected argument '%s': %s is already given", operand,
			  option_field(row, OPTION_ARGUMENT));
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
	unsigned position;
	bool given;

	while (row && !row->operand)
		row = option_next(row);
	given = row && options_given(parse->table, parse->given, row->text);
	for (size_t i = 0; i < parse->operand_count && !outcome; i++) {
		if (given && row->operand == OPERAND_UNLESS_GIVEN)
			log_hint(parse->log, "argument '%s' ignored beside %s%s", parse->operands[i],
				 option_label(row, name),
				 find_row(parse->table, "device", &position) ? " (--device chooses an RDMA device)"
									     : "");
		else if (!row || (row->type != OPTION_LIST && (given || i)))
			outcome = reject_operand(parse, row, parse->operands[i]);
		else
			outcome = option_set(row, parse->log, parse->operands[i], parse->options);
	}
	if (row && parse->operand_count)
		mark_given(parse, row);
	return outcome;
}

const struct option *options_given(const struct option *table, uint64_t given, const char *name)
{
	unsigned position;
	const struct option *row = find_row(table, name, &position);

	return row && given >> position & 1 ? row : NULL;
}

static enum outcome check_pair(const struct parse *parse, const struct option *one, const struct option *other,
			       bool other_given)
{
	bool missing = !other_given && one->tags & other->needed_by;
	bool excluded = other_given && (one->tags & other->excluded_by || one->exclusive & other->exclusive);
	char name[OPTION_TEXT_SIZE];
	char other_name[OPTION_TEXT_SIZE];

	if (!missing && !excluded)
		return OUTCOME_OK;
	log_error(parse->log, NULL, missing ? "%s needs %s" : "%s and %s are mutually exclusive",
		  option_label(one, name), option_label(other, other_name));
	return OUTCOME_USAGE;
}

/* Checks each option that was given against all others. */
static enum outcome check_relations(const struct parse *parse)
{
	const struct option *table = option_first(parse->table);
	uint64_t given = parse->given;
	enum outcome outcome = OUTCOME_OK;

	for (const struct option *one = table; given; one = option_next(one), given >>= 1) {
		uint64_t others = parse->given;

		if (!(given & 1))
			continue;
		for (const struct option *other = table; other && !outcome; other = option_next(other), others >>= 1)
			if (other != one)
				outcome = check_pair(parse, one, other, others & 1);
	}
	return outcome;
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

enum outcome options_parse(const struct option *table, const struct log *log, int argc, char *const *argv,
			   void *options, uint64_t *given)
{
	struct parse parse = { .table = table, .log = log, .options = options };
	enum outcome outcome;

	set_initial(&parse);
	outcome = parse_arguments(&parse, argc, argv);
	if (!outcome && !parse.stops)
		outcome = check_relations(&parse);
	*given = parse.given;
	return outcome;
}
