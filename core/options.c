/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/options.h"

#include <assert.h>
#include <string.h>
#include <sys/param.h>

#include "core/option_value.h"

struct parse {
	const struct option *table;
	const struct log *log;
	char *options; /* the command's struct */
	uint64_t given;
	bool stops; /* later arguments and the rules are ignored */
	size_t operand_count;
	const char *operands[OPTION_LIST_MAX + 1];
};

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

/*
 * Returns the row with that long name (length 0: with that letter), or NULL. *position gets its index among the rows.
 * For an alias returns the row with the value.
 */
static const struct option *find_row(const struct option *table, const char *name, size_t length, unsigned *position)
{
	const struct option *row = option_first(table);

	for (*position = 0; row; ++*position, row = option_next(row))
		if (length ? strlen(row->text) == length && !memcmp(row->text, name, length) : row->letter == *name)
			break;
	if (!HAS_WORDS || !row || row->type != OPTION_ALIAS)
		return row;
	name = option_field(row, OPTION_RANGE);
	return find_row(table, name, strlen(name), position);
}

static void mark_given(struct parse *parse, unsigned position)
{
	assert(position < OPTION_ROWS_MAX);
	parse->given |= UINT64_C(1) << position;
}

static void hint_help(const struct parse *parse)
{
	log_hint(parse->log, "%s --help lists the options", parse->log->name);
}

/*
 * Letters of ping, fping, iperf3 and perftest, and our option for the same; a value after the option replaces the
 * letter's. If a letter could mean several options, suggests the first that accepts the value, else the first. A number
 * never matches a text option.
 */
static const char habits[] = "4 ipv4\0"
			     "6 ipv6\0"
			     "B source\0"
			     "D daemon\0"
			     "D duration\0"
			     "I source\0"
			     "J json\0"
			     "O warmup\0"
			     "P connections\0"
			     "Q tos\0"
			     "T tos\0"
			     "W timeout\0"
			     "c server\0"
			     "d device\0"
			     "f targets FILE\0"
			     "i interval\0"
			     "i interval-report\0"
			     "l interval 1s\0"
			     "l size\0"
			     "m mtu\0"
			     "n count\0"
			     "q quiet\0"
			     "t duration\0"
			     "u quiet\0"
			     "w duration\0"
			     "x gid-index\0";

static void hint_option(const struct parse *parse, const char *option, const char *value)
{
	log_hint(parse->log, "did you mean --%s%s%s?", option, *value ? " " : "", value);
}

static bool accepts(const struct parse *parse, const struct option *row, const char *value)
{
	bool is_number = !value[strspn(value, "0123456789")];

	return *value != '-' && !(is_number && row->type == OPTION_TEXT) && option_set(row, value, parse->options);
}

/* Returns false if no option of this command matches; with fits also if none accepts the value, which may be NULL. */
static bool hint_habit(const struct parse *parse, char letter, const char *value, bool fits)
{
	const char *first = NULL, *first_argument = "";

	for (const char *habit = habits; WITH_HELP && WITH_DIAGNOSTICS && *habit; habit += strlen(habit) + 1) {
		const char *option = habit + 2;
		unsigned position;
		const struct option *row = find_row(parse->table, option, strcspn(option, " "), &position);
		bool takes_value = row && row->type != OPTION_FLAG && !strchr(option, ' ');

		if (*habit != letter || !row)
			continue;
		if (takes_value && value && accepts(parse, row, value)) {
			hint_option(parse, option, value);
			return true;
		}
		if (!first) {
			first = option;
			first_argument = takes_value ? option_field(row, OPTION_ARGUMENT) : "";
		}
	}
	if (!first || fits)
		return false;
	hint_option(parse, first, first_argument);
	return true;
}

/* Only a number has a range, and the number after "ADDRESS:" may be meant as the port. */
static bool hint_port(const struct parse *parse, const struct option *row, const char *text)
{
	const char *colon = strrchr(text, ':');

	if (!WITH_DIAGNOSTICS || !colon || row->type != OPTION_INTEGER || !option_set(row, colon + 1, parse->options))
		return false;
	log_hint(parse->log, "did you mean %.*s --%s %s?", (int)(colon - text), text, row->text, colon + 1);
	return true;
}

/* text is NULL if it is missing. */
static enum outcome set_value(const struct parse *parse, const struct option *row, const char *text)
{
	const char *argument = option_field(row, OPTION_ARGUMENT), *range = option_field(row, OPTION_RANGE);
	char name[OPTION_TEXT_SIZE];

	if (text && option_set(row, text, parse->options))
		return OUTCOME_OK;
	option_label(row, name);
	if (!text)
		log_error(parse->log, name, "%s is missing", argument);
	else
		log_error(parse->log, name, "invalid value '%s' (%s%s)", text,
			  *range  ? range
			  : *text ? "too many of them"
				  : "not empty",
			  WITH_REPORT && row->type == OPTION_SIZES && strchr(text, '-') ? ", FROM-TO rising" : "");
	if (text && !hint_port(parse, row, text))
		hint_habit(parse, row->letter, text, true);
	return OUTCOME_USAGE;
}

/* As in the stock tools, the last one of some flags counts. */
static void set_flag(struct parse *parse, const struct option *row)
{
	uint64_t bit = 1;

	for (const struct option *other = option_first(parse->table); other; other = option_next(other), bit <<= 1) {
		if (!row->last_counts || !other->last_counts || other == row)
			continue;
		*(bool *)(parse->options + other->offset) = false;
		parse->given &= ~bit;
	}
	*(bool *)(parse->options + row->offset) = true;
	parse->stops = row->stops;
}

enum {
	WORD_MAX = 32
};

/* Optimal string alignment distance: table[i][j] is the distance between the first i and the first j letters. */
unsigned spelling_distance(const char *typed, const char *meant)
{
	unsigned table[WORD_MAX + 1][WORD_MAX + 1];
	size_t typed_length = strlen(typed);
	size_t meant_length = strlen(meant);
	unsigned distance;

	if (typed_length > WORD_MAX || meant_length > WORD_MAX)
		return SPELLING_FAR;
	for (unsigned i = 0; i <= typed_length; i++)
		table[i][0] = i;
	for (unsigned j = 0; j <= meant_length; j++)
		table[0][j] = j;
	for (size_t i = 1; i <= typed_length; i++) {
		for (size_t j = 1; j <= meant_length; j++) {
			unsigned replaced = table[i - 1][j - 1] + (typed[i - 1] != meant[j - 1]);

			table[i][j] = MIN(replaced, 1 + MIN(table[i - 1][j], table[i][j - 1]));
			if (i > 1 && j > 1 && typed[i - 1] == meant[j - 2] && typed[i - 2] == meant[j - 1])
				table[i][j] = MIN(table[i][j], table[i - 2][j - 2] + 1);
		}
	}
	distance = table[typed_length][meant_length];
	/* One edit per three letters, at most two. */
	return distance <= 2 && distance * 3 <= meant_length ? distance : SPELLING_FAR;
}

/* prefix: "-" or "--". next is the argument after it, or NULL. */
static enum outcome unknown_option(const struct parse *parse, const char *prefix, const char *name, size_t length,
				   const char *next)
{
	const struct option *nearest = NULL;
	unsigned least = SPELLING_FAR;
	char typed[OPTION_TEXT_SIZE];

	log_text(typed, sizeof(typed), "%s%.*s", prefix, (int)length, name);
	log_error(parse->log, typed, "unknown option");
	for (const struct option *row = option_first(parse->table); WITH_DIAGNOSTICS && row && prefix[1];
	     row = option_next(row)) {
		unsigned distance = spelling_distance(typed + 2, row->text);

		if (distance >= least)
			continue;
		least = distance;
		nearest = row;
	}
	if (nearest)
		log_hint(parse->log, "did you mean --%s?", nearest->text);
	else if (prefix[1] || !hint_habit(parse, *name, name[1] ? name + 1 : next, false))
		hint_help(parse);
	return OUTCOME_USAGE;
}

/*
 * "--count=5" and "--count 5", "-vVC5" and "-C 5": flags may share one dash. An option's value is the rest of its
 * argument, or else the next argument. If the latter may also be an operand, one that looks like an option does not
 * count.
 */
static enum outcome parse_option(struct parse *parse, char *const *argv, int *index)
{
	const char *text = argv[*index] + 1;
	bool is_name = *text == '-';

	do {
		size_t length = is_name ? strcspn(++text, "=") : 0;
		unsigned position;
		const struct option *row = find_row(parse->table, text, length, &position);
		char name[OPTION_TEXT_SIZE];

		if (!row)
			return unknown_option(parse, is_name ? "--" : "-", text, is_name ? length : 1,
					      argv[*index + 1]);
		mark_given(parse, position);
		text += is_name ? length : 1;
		if (row->type != OPTION_FLAG) {
			const char *value = *text ? text + is_name : argv[++*index];

			if (!*text && row->operand && value && value[0] == '-' && value[1])
				value = NULL;
			return set_value(parse, row, value);
		}
		set_flag(parse, row);
		if (is_name ? *text : *text >= '0' && *text <= '9') { /* "-c4" */
			log_error(parse->log, option_label(row, name), "takes no value");
			return OUTCOME_USAGE;
		}
	} while (*text && !parse->stops);
	return OUTCOME_OK;
}

/* Called after all options are parsed, because whether an operand is ignored depends on them. */
static enum outcome take_operands(struct parse *parse)
{
	const struct option *row = option_first(parse->table);
	enum outcome outcome = OUTCOME_OK;
	unsigned position = 0;
	bool given;

	for (; row && !row->operand; position++)
		row = option_next(row);
	given = row && parse->given >> position & 1;
	for (size_t i = 0; i < parse->operand_count && !outcome; i++) {
		const char *operand = parse->operands[i];

		if (given && row->operand == OPERAND_UNLESS_GIVEN) {
			log_hint(parse->log, "argument '%s' ignored beside --%s%s", operand, row->text,
				 WITH_EXTRAS ? " (--device chooses an RDMA device)" : "");
		} else if (!row || (row->type != OPTION_LIST && (given || i))) {
			log_error(parse->log, NULL, "unexpected argument '%s'", operand);
			hint_help(parse);
			outcome = OUTCOME_USAGE;
		} else {
			outcome = set_value(parse, row, operand);
		}
	}
	if (row && parse->operand_count)
		mark_given(parse, position);
	return outcome;
}

const struct option *options_given(const struct option *table, uint64_t given, const char *name)
{
	unsigned position;
	const struct option *row = find_row(table, name, strlen(name), &position);

	return row && given >> position & 1 ? row : NULL;
}

/* Checks each given option against all others. */
static enum outcome check_relations(const struct parse *parse)
{
	const struct option *table = option_first(parse->table);
	uint64_t left = parse->given;

	for (const struct option *one = table; left; one = option_next(one), left >>= 1) {
		uint64_t others = parse->given;

		for (const struct option *other = table; left & 1 && other; other = option_next(other), others >>= 1) {
			bool given = others & 1;
			char name[OPTION_TEXT_SIZE], other_name[OPTION_TEXT_SIZE];

			if (other == one ||
			    !(given ? (one->tags & other->excluded_by) | (one->exclusive & other->exclusive)
				    : one->tags & other->needed_by))
				continue;
			log_error(parse->log, NULL, given ? "%s and %s are mutually exclusive" : "%s needs %s",
				  option_label(one, name), option_label(other, other_name));
			/* An operand's label is not typed. */
			if (WITH_DIAGNOSTICS && !given && other->operand == OPERAND)
				log_hint(parse->log, "%s %s --%s%s%s", parse->log->name,
					 option_field(other, OPTION_ARGUMENT), one->text,
					 one->type == OPTION_FLAG ? "" : " ", option_field(one, OPTION_ARGUMENT));
			return OUTCOME_USAGE;
		}
	}
	return OUTCOME_OK;
}

/*
 * Manuals and mails may replace "-" or "--" by another dash, U+2010 to U+2015, or the minus sign U+2212. Returns the
 * text after it, or NULL.
 */
static const char *after_dash(const char *text)
{
	bool is_dash =
		!strncmp(text, "\xe2\x80", 2) ? (uint8_t)text[2] - 0x90U <= 5 : !strncmp(text, "\xe2\x88\x92", 3);

	return !is_dash ? NULL : text[3] == '-' ? text + 4 : text + 3;
}

static enum outcome refuse_dash(const struct parse *parse, const char *text, const char *name)
{
	log_error(parse->log, text, "begins with a dash other than '-'");
	log_hint(parse->log, "did you mean -%s%s?", name[0] && name[1] ? "-" : "", name);
	return OUTCOME_USAGE;
}

static enum outcome parse_arguments(struct parse *parse, int argc, char *const *argv)
{
	bool only_operands = false;

	for (int i = 1; i < argc && !parse->stops; i++) {
		const char *text = argv[i];
		enum outcome outcome = OUTCOME_OK;

		if (WITH_DIAGNOSTICS && !only_operands && after_dash(text)) {
			outcome = refuse_dash(parse, text, after_dash(text));
		} else if (only_operands || text[0] != '-' || !text[1]) {
			if (parse->operand_count <= OPTION_LIST_MAX)
				parse->operands[parse->operand_count++] = text;
		} else if (!strcmp(text, "--")) {
			only_operands = true;
		} else {
			outcome = parse_option(parse, argv, &i);
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

	for (const struct option *row = option_first(table); row; row = option_next(row))
		if (*option_field(row, OPTION_INITIAL))
			option_set(row, option_field(row, OPTION_INITIAL), options);
	outcome = parse_arguments(&parse, argc, argv);
	if (!outcome && !parse.stops)
		outcome = check_relations(&parse);
	*given = parse.given;
	return outcome;
}
