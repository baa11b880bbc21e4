/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/options.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/spelling.h"

enum {
	TEXT_MOST = 160,     /* a label or range in words */
	HELP_WIDTH = 100,    /* columns */
	HELP_LEFT_MOST = 30, /* a longer option gets its help on the next line */
};

struct unit {
	const char *suffix;
	int64_t factor;
};

/* The largest come first: values are printed with the first one that divides them. */
static const struct unit duration_units[] = {
	{ "h", 3600 * CLOCK_NS_PER_S },
	{ "m", 60 * CLOCK_NS_PER_S },
	{ "s", CLOCK_NS_PER_S },
	{ "ms", CLOCK_NS_PER_MS },
	{ "us", CLOCK_NS_PER_US },
	{ "ns", 1 },
	{ NULL, 0 },
};

static const struct unit size_units[] = {
	{ "G", INT64_C(1) << 30 },
	{ "M", INT64_C(1) << 20 },
	{ "K", INT64_C(1) << 10 },
	{ NULL, 0 },
};

/* One parse. */
struct parse {
	const struct option *table;
	const struct log *log;
	char *options; /* the command's struct */
	uint64_t given;
	bool informs; /* --help or --version: nothing behind it counts, and no rule does */
};

static bool is_number(const struct option *row)
{
	return row->type == OPTION_INTEGER || row->type == OPTION_SIZE || row->type == OPTION_DURATION;
}

/* "-p, --port", or without a letter "--timeout". */
static const char *label(const struct option *row, char text[TEXT_MOST])
{
	if (row->letter)
		snprintf(text, TEXT_MOST, "-%c, --%s", row->letter, row->name);
	else
		snprintf(text, TEXT_MOST, "--%s", row->name);
	return text;
}

/* A value as a person writes it. */
static void value_text(const struct option *row, int64_t value, char text[TEXT_MOST])
{
	const struct unit *unit = row->type == OPTION_DURATION ? duration_units : size_units;

	if (row->type == OPTION_WORD) {
		for (const struct option_word *word = row->words; word->word; word++) {
			if (word->value != value)
				continue;
			snprintf(text, TEXT_MOST, "%s", word->word);
			return;
		}
	}
	if (row->type == OPTION_DURATION || row->type == OPTION_SIZE) {
		for (; value && unit->suffix; unit++) {
			if (value % unit->factor)
				continue;
			snprintf(text, TEXT_MOST, "%" PRId64 "%s", value / unit->factor, unit->suffix);
			return;
		}
	}
	snprintf(text, TEXT_MOST, "%" PRId64, value);
}

/* What an option takes: "1 to 65535", "one of name, ip, ip6, gid". */
static const char *range(const struct option *row, char text[TEXT_MOST])
{
	char minimum[TEXT_MOST];
	char maximum[TEXT_MOST];
	size_t length;

	if (row->type == OPTION_WORD) {
		length = (size_t)snprintf(text, TEXT_MOST, "one of");
		for (const struct option_word *word = row->words; word->word && length < TEXT_MOST; word++)
			length += (size_t)snprintf(text + length, TEXT_MOST - length, "%s %s",
						   word == row->words ? "" : ",", word->word);
		return text;
	}
	value_text(row, row->minimum, minimum);
	value_text(row, row->maximum, maximum);
	snprintf(text, TEXT_MOST, "%.70s to %.70s", minimum, maximum);
	return text;
}

enum reading {
	READING_FINE,
	READING_NONSENSE,
	READING_OVERFLOW,
};

static const char *skip_sign(const char *text, bool *negative)
{
	*negative = *text == '-';
	return text + *negative;
}

static int digit_value(char letter, int base)
{
	int value = -1;

	if (letter >= '0' && letter <= '9')
		value = letter - '0';
	else if (letter >= 'a' && letter <= 'f')
		value = letter - 'a' + 10;
	else if (letter >= 'A' && letter <= 'F')
		value = letter - 'A' + 10;
	return value < base ? value : -1;
}

/* Reads the digits at *text and moves it behind them. Nonsense if there is none. */
static enum reading read_digits(const char **text, int base, int64_t *value)
{
	enum reading reading = READING_NONSENSE;
	int digit;

	*value = 0;
	for (; (digit = digit_value(**text, base)) >= 0; ++*text) {
		if (reading == READING_OVERFLOW)
			continue;
		reading = READING_FINE;
		if (__builtin_mul_overflow(*value, base, value) || __builtin_add_overflow(*value, digit, value))
			reading = READING_OVERFLOW;
	}
	return reading;
}

static enum reading read_integer(const char *text, int64_t *value)
{
	enum reading reading;
	bool negative;
	int base = 10;

	text = skip_sign(text, &negative);
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
	}
	reading = read_digits(&text, base, value);
	if (*text)
		return READING_NONSENSE;
	if (negative)
		*value = -*value;
	return reading;
}

static enum reading read_size(const char *text, int64_t *value)
{
	enum reading reading;
	bool negative;

	text = skip_sign(text, &negative);
	reading = read_digits(&text, 10, value);
	if (reading == READING_NONSENSE)
		return reading;
	for (const struct unit *unit = size_units; *text && unit->suffix; unit++) {
		/* Either case: nobody means milli or kilo bits. */
		if ((*text & ~0x20) != *unit->suffix)
			continue;
		text++;
		if (reading == READING_FINE && __builtin_mul_overflow(*value, unit->factor, value))
			reading = READING_OVERFLOW;
		break;
	}
	if (*text)
		return READING_NONSENSE;
	if (negative)
		*value = -*value;
	return reading;
}

static enum reading read_duration(const char *text, int64_t *value)
{
	enum reading reading;
	const struct unit *unit = duration_units;
	const char *fraction = NULL;
	bool negative;

	text = skip_sign(text, &negative);
	reading = read_digits(&text, 10, value);
	if (*text == '.') {
		int64_t ignored;

		fraction = ++text;
		/* However many digits there are: those beyond a nanosecond do not count. */
		if (read_digits(&text, 10, &ignored) == READING_NONSENSE)
			return READING_NONSENSE;
		if (reading == READING_NONSENSE)
			reading = READING_FINE;
	}
	if (reading == READING_NONSENSE)
		return reading;
	while (unit->suffix && strcmp(text, *text ? unit->suffix : "s"))
		unit++;
	if (*text && !unit->suffix)
		return READING_NONSENSE;
	if (!*text)
		unit = &(const struct unit){ "s", CLOCK_NS_PER_S };
	if (reading == READING_FINE && __builtin_mul_overflow(*value, unit->factor, value))
		reading = READING_OVERFLOW;
	for (int64_t weight = unit->factor / 10; fraction && weight && *fraction >= '0' && *fraction <= '9';
	     weight /= 10)
		if (reading == READING_FINE && __builtin_add_overflow(*value, (*fraction++ - '0') * weight, value))
			reading = READING_OVERFLOW;
	if (negative)
		*value = -*value;
	return reading;
}

static const char *kind_of_value(const struct option *row)
{
	switch (row->type) {
	case OPTION_SIZE:
		return "a size in bytes";
	case OPTION_DURATION:
		return "a time such as 500ms, 5s or 2m";
	case OPTION_FLAG:
	case OPTION_INTEGER:
	case OPTION_WORD:
	case OPTION_TEXT:
		break;
	}
	return "a whole number";
}

static enum outcome set_number(struct parse *parse, const struct option *row, const char *text, int64_t *value)
{
	char name[TEXT_MOST];
	char takes[TEXT_MOST];
	enum reading reading;
	int64_t read;

	if (row->type == OPTION_DURATION)
		reading = read_duration(text, &read);
	else if (row->type == OPTION_SIZE)
		reading = read_size(text, &read);
	else
		reading = read_integer(text, &read);
	if (reading == READING_NONSENSE) {
		log_error(parse->log, label(row, name), "'%s' is not %s: %s", text, kind_of_value(row),
			  range(row, takes));
		return OUTCOME_USAGE;
	}
	if (reading == READING_OVERFLOW || read < row->minimum || read > row->maximum) {
		log_error(parse->log, label(row, name), "%s is out of range: %s", text, range(row, takes));
		return OUTCOME_USAGE;
	}
	*value = read;
	return OUTCOME_OK;
}

static enum outcome set_word(struct parse *parse, const struct option *row, const char *text, int64_t *value)
{
	char name[TEXT_MOST];
	char takes[TEXT_MOST];
	int64_t number;
	bool numeric = read_integer(text, &number) == READING_FINE;

	for (const struct option_word *word = row->words; word->word; word++) {
		if (strcmp(word->word, text) && !(numeric && word->value == number))
			continue;
		*value = word->value;
		return OUTCOME_OK;
	}
	log_error(parse->log, label(row, name), "'%s' is not known: %s", text, range(row, takes));
	return OUTCOME_USAGE;
}

static enum outcome set_value(struct parse *parse, const struct option *row, const char *text)
{
	char name[TEXT_MOST];
	void *value = parse->options + row->offset;

	if (row->type == OPTION_WORD)
		return set_word(parse, row, text, value);
	if (is_number(row))
		return set_number(parse, row, text, value);
	if (!*text) {
		log_error(parse->log, label(row, name), "%s is empty", row->argument);
		return OUTCOME_USAGE;
	}
	*(const char **)value = text;
	return OUTCOME_OK;
}

static void set_flag(struct parse *parse, const struct option *row)
{
	*(bool *)(parse->options + row->offset) = true;
	if (!strcmp(row->name, "help") || !strcmp(row->name, "version"))
		parse->informs = true;
}

static void set_initial(const struct option *table, char *options)
{
	for (const struct option *row = table; row->name; row++) {
		void *value = options + row->offset;

		assert(row - table < OPTION_ROWS_MOST);
		if (row->type == OPTION_FLAG)
			*(bool *)value = false;
		else if (row->type == OPTION_TEXT)
			*(const char **)value = NULL;
		else
			*(int64_t *)value = row->initial;
	}
}

static void mark_given(struct parse *parse, const struct option *row)
{
	parse->given |= UINT64_C(1) << (row - parse->table);
}

static void hint_at_help(const struct parse *parse)
{
	log_hint(parse->log, "%s --help lists the options", parse->log->name);
}

static enum outcome missing_value(const struct parse *parse, const struct option *row)
{
	char name[TEXT_MOST];
	char takes[TEXT_MOST];

	if (row->type == OPTION_TEXT)
		log_error(parse->log, label(row, name), "%s is missing", row->argument);
	else
		log_error(parse->log, label(row, name), "%s is missing: %s", row->argument, range(row, takes));
	return OUTCOME_USAGE;
}

/* "-vVC5" and "-C 5": flags may share one dash, and the rest behind an option that takes a value is its value. */
static enum outcome parse_letters(struct parse *parse, char *const *argv, int *index)
{
	for (const char *letters = argv[*index] + 1; *letters && !parse->informs; letters++) {
		const struct option *row = parse->table;
		const char *value;

		while (row->name && row->letter != *letters)
			row++;
		if (!row->name) {
			const char unknown[] = { '-', *letters, 0 };

			log_error(parse->log, unknown, "unknown option");
			hint_at_help(parse);
			return OUTCOME_USAGE;
		}
		mark_given(parse, row);
		if (row->type == OPTION_FLAG) {
			set_flag(parse, row);
			continue;
		}
		value = letters[1] ? letters + 1 : argv[++*index];
		return value ? set_value(parse, row, value) : missing_value(parse, row);
	}
	return OUTCOME_OK;
}

static void unknown_name(const struct parse *parse, const char *name)
{
	const struct option *nearest = NULL;
	unsigned least = SPELLING_FAR;
	char typed[TEXT_MOST];

	snprintf(typed, sizeof(typed), "--%.150s", name);
	log_error(parse->log, typed, "unknown option");
	for (const struct option *row = parse->table; row->name; row++) {
		unsigned distance = spelling_distance(name, row->name);

		if (distance >= least)
			continue;
		least = distance;
		nearest = row;
	}
	if (nearest)
		log_hint(parse->log, "did you mean --%s?", nearest->name);
	else
		hint_at_help(parse);
}

/* "--count=5" and "--count 5". */
static enum outcome parse_name(struct parse *parse, char *const *argv, int *index)
{
	const struct option *row = parse->table;
	const char *text = argv[*index] + 2;
	size_t length = strcspn(text, "=");
	const char *value = text[length] ? text + length + 1 : NULL;
	char name[TEXT_MOST];

	snprintf(name, sizeof(name), "%.*s", (int)(length < sizeof(name) ? length : sizeof(name)), text);
	while (row->name && strcmp(row->name, name))
		row++;
	if (!row->name) {
		unknown_name(parse, name);
		return OUTCOME_USAGE;
	}
	mark_given(parse, row);
	if (row->type == OPTION_FLAG) {
		if (value) {
			log_error(parse->log, label(row, name), "takes no value");
			return OUTCOME_USAGE;
		}
		set_flag(parse, row);
		return OUTCOME_OK;
	}
	if (!value)
		value = argv[++*index];
	return value ? set_value(parse, row, value) : missing_value(parse, row);
}

static enum outcome refuse_operand(const struct parse *parse, const char *operand)
{
	log_error(parse->log, NULL, "'%s' belongs to no option, and operands are not taken", operand);
	hint_at_help(parse);
	return OUTCOME_USAGE;
}

static const struct option *row_of(const struct option *table, const char *name)
{
	while (table->name && strcmp(table->name, name))
		table++;
	assert(table->name);
	return table;
}

static enum outcome check_rule(const struct parse *parse, const struct option_rule *rule)
{
	const struct option *first = row_of(parse->table, rule->first);
	const struct option *second = row_of(parse->table, rule->second);
	bool has_first = options_given(parse->table, parse->given, rule->first);
	bool has_second = options_given(parse->table, parse->given, rule->second);
	char one[TEXT_MOST];
	char other[TEXT_MOST];

	label(first, one);
	label(second, other);
	switch (rule->relation) {
	case OPTION_EXCLUDES:
		if (!has_first || !has_second)
			return OUTCOME_OK;
		log_error(parse->log, NULL, "%s and %s exclude each other", one, other);
		return OUTCOME_USAGE;
	case OPTION_NEEDS:
		if (!has_first || has_second)
			return OUTCOME_OK;
		log_error(parse->log, NULL, "%s needs %s", one, other);
		return OUTCOME_USAGE;
	case OPTION_ONE_OF:
		if (has_first || has_second)
			return OUTCOME_OK;
		log_error(parse->log, NULL, "%s or %s is needed", one, other);
		hint_at_help(parse);
		return OUTCOME_USAGE;
	}
	return OUTCOME_OK;
}

static enum outcome parse_arguments(struct parse *parse, int argc, char *const *argv)
{
	bool only_operands = false;

	for (int i = 1; i < argc && !parse->informs; i++) {
		const char *text = argv[i];
		enum outcome outcome;

		if (only_operands || text[0] != '-' || !text[1])
			outcome = refuse_operand(parse, text);
		else if (text[1] != '-')
			outcome = parse_letters(parse, argv, &i);
		else if (text[2])
			outcome = parse_name(parse, argv, &i);
		else {
			only_operands = true;
			continue;
		}
		if (outcome)
			return outcome;
	}
	return OUTCOME_OK;
}

enum outcome options_parse(const struct option *table, const struct option_rule *rules, const struct log *log, int argc,
			   char *const *argv, void *options, uint64_t *given)
{
	struct parse parse = { .table = table, .log = log, .options = options };
	enum outcome outcome;

	set_initial(table, options);
	outcome = parse_arguments(&parse, argc, argv);
	for (const struct option_rule *rule = rules; rule && rule->relation && !outcome && !parse.informs; rule++)
		outcome = check_rule(&parse, rule);
	*given = parse.given;
	return outcome;
}

bool options_given(const struct option *table, uint64_t given, const char *name)
{
	return given >> (row_of(table, name) - table) & 1;
}

/* The left column: "  -C, --count N", or without a letter "      --timeout TIME". */
static size_t help_left(const struct option *row, char text[TEXT_MOST])
{
	const char *space = row->argument && row->type != OPTION_FLAG ? " " : "";
	const char *argument = *space ? row->argument : "";

	if (row->letter)
		return (size_t)snprintf(text, TEXT_MOST, "  -%c, --%s%s%s", row->letter, row->name, space, argument);
	return (size_t)snprintf(text, TEXT_MOST, "      --%s%s%s", row->name, space, argument);
}

/* The right column: the sentence, then the range and the default in brackets. */
static void help_right(const struct option *row, char *text, size_t size)
{
	char takes[TEXT_MOST];
	char initial[TEXT_MOST];

	if (row->type == OPTION_FLAG || (row->type == OPTION_TEXT && !row->initial_text)) {
		snprintf(text, size, "%s", row->help);
		return;
	}
	if (row->type == OPTION_TEXT) {
		snprintf(text, size, "%s (default %s)", row->help, row->initial_text);
		return;
	}
	if (row->initial_text)
		snprintf(initial, sizeof(initial), "%s", row->initial_text);
	else
		value_text(row, row->initial, initial);
	snprintf(text, size, "%s (%s; default %s)", row->help, range(row, takes), initial);
}

static size_t help_column(const struct option *table)
{
	char left[TEXT_MOST];
	size_t column = 0;

	for (const struct option *row = table; row->name; row++) {
		size_t length = help_left(row, left);

		if (length > column && length <= HELP_LEFT_MOST)
			column = length;
	}
	return column + 2;
}

void options_help(const struct option *table, FILE *stream)
{
	size_t column = help_column(table);

	for (const struct option *row = table; row->name; row++) {
		char left[TEXT_MOST];
		char right[4 * TEXT_MOST];
		const char *word = right;
		size_t place = help_left(row, left);

		fputs(left, stream);
		help_right(row, right, sizeof(right));
		if (place + 2 > column) {
			fputc('\n', stream);
			place = 0;
		}
		fprintf(stream, "%*s", (int)(column - place), "");
		place = column;
		while (*word) {
			size_t length = strcspn(word, " ");

			if (place > column && place + 1 + length > HELP_WIDTH) {
				fprintf(stream, "\n%*s", (int)column, "");
				place = column;
			} else if (place > column) {
				fputc(' ', stream);
				place++;
			}
			fwrite(word, 1, length, stream);
			place += length;
			word += length;
			word += strspn(word, " ");
		}
		fputc('\n', stream);
	}
}
