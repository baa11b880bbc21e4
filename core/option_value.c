/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/option_value.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "core/clock.h"

struct unit {
	const char *suffix;
	int64_t factor;
};

/* The largest first: a value is printed in the first unit that divides it. */
static const struct unit duration_units[] = {
	{ "h", 3600 * CLOCK_NS_PER_S },
	{ "m", 60 * CLOCK_NS_PER_S },
	{ "s", CLOCK_NS_PER_S },
	{ "ms", CLOCK_NS_PER_MS },
	{ "us", CLOCK_NS_PER_US },
	{ "ns", 1 },
	{ "", CLOCK_NS_PER_S }, /* for parsing only: "ns" divides every value */
	{ NULL, 0 },
};

static const struct unit size_units[] = {
	{ "G", INT64_C(1) << 30 },
	{ "M", INT64_C(1) << 20 },
	{ "K", INT64_C(1) << 10 },
	{ NULL, 0 },
};

const char *option_label(const struct option *row, char text[OPTION_TEXT_SIZE])
{
	if (row->letter)
		snprintf(text, OPTION_TEXT_SIZE, "-%c, --%s", row->letter, row->name);
	else
		snprintf(text, OPTION_TEXT_SIZE, "--%s", row->name);
	return text;
}

bool option_takes_text(const struct option *row)
{
	return row->type == OPTION_TEXT || row->type == OPTION_LIST || row->type == OPTION_ALIAS;
}

const char *option_value_text(const struct option *row, int64_t value, char text[OPTION_TEXT_SIZE])
{
	const struct unit *unit = row->type == OPTION_DURATION ? duration_units : size_units;

	if (row->type == OPTION_WORD) {
		for (const struct option_word *word = row->words; word->word; word++) {
			if (word->value != value)
				continue;
			snprintf(text, OPTION_TEXT_SIZE, "%s", word->word);
			return text;
		}
	}
	if (row->type == OPTION_DURATION || row->type == OPTION_SIZE) {
		for (; value && unit->suffix; unit++) {
			if (value % unit->factor)
				continue;
			snprintf(text, OPTION_TEXT_SIZE, "%" PRId64 "%s", value / unit->factor, unit->suffix);
			return text;
		}
	}
	snprintf(text, OPTION_TEXT_SIZE, "%" PRId64, value);
	return text;
}

const char *option_range_text(const struct option *row, char text[OPTION_TEXT_SIZE])
{
	char minimum[OPTION_TEXT_SIZE];
	char maximum[OPTION_TEXT_SIZE];
	size_t length;

	if (row->type == OPTION_WORD) {
		length = (size_t)snprintf(text, OPTION_TEXT_SIZE, "one of");
		for (const struct option_word *word = row->words; word->word && length < OPTION_TEXT_SIZE; word++)
			length += (size_t)snprintf(text + length, OPTION_TEXT_SIZE - length, "%s %s",
						   word == row->words ? "" : ",", word->word);
		return text;
	}
	option_value_text(row, row->minimum, minimum);
	option_value_text(row, row->maximum, maximum);
	if (row->maximum == INT64_MAX)
		snprintf(text, OPTION_TEXT_SIZE, "%.70s or more", minimum);
	else
		snprintf(text, OPTION_TEXT_SIZE, "%.70s to %.70s", minimum, maximum);
	return text;
}

enum parse_status {
	PARSE_OK,
	PARSE_INVALID,
	PARSE_OVERFLOW,
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

/* Parses the digits at *text and moves *text behind them. Returns PARSE_INVALID if there is no digit. */
static enum parse_status parse_digits(const char **text, int base, int64_t *value)
{
	enum parse_status parsed = PARSE_INVALID;
	int digit;

	*value = 0;
	for (; (digit = digit_value(**text, base)) >= 0; ++*text) {
		if (parsed == PARSE_OVERFLOW)
			continue;
		parsed = PARSE_OK;
		if (__builtin_mul_overflow(*value, base, value) || __builtin_add_overflow(*value, digit, value))
			parsed = PARSE_OVERFLOW;
	}
	return parsed;
}

static enum parse_status parse_integer(const char *text, int64_t *value)
{
	enum parse_status parsed;
	bool negative;
	int base = 10;

	text = skip_sign(text, &negative);
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
	}
	parsed = parse_digits(&text, base, value);
	if (*text)
		return PARSE_INVALID;
	if (negative && parsed == PARSE_OK)
		*value = -*value;
	return parsed;
}

static enum parse_status parse_size(const char *text, int64_t *value)
{
	enum parse_status parsed;
	bool negative;

	text = skip_sign(text, &negative);
	parsed = parse_digits(&text, 10, value);
	if (parsed == PARSE_INVALID)
		return parsed;
	for (const struct unit *unit = size_units; *text && unit->suffix; unit++) {
		/* Upper or lower case. */
		if ((*text & ~0x20) != *unit->suffix)
			continue;
		text++;
		if (parsed == PARSE_OK && __builtin_mul_overflow(*value, unit->factor, value))
			parsed = PARSE_OVERFLOW;
		break;
	}
	if (*text)
		return PARSE_INVALID;
	if (negative && parsed == PARSE_OK)
		*value = -*value;
	return parsed;
}

/* Returns the nanoseconds of the digits behind the decimal point; those below 1 ns are ignored. */
static int64_t parse_fraction(const char *digits, int64_t factor)
{
	int64_t value = 0;

	for (int64_t weight = factor / 10; weight && digit_value(*digits, 10) >= 0; weight /= 10)
		value += digit_value(*digits++, 10) * weight;
	return value;
}

static enum parse_status parse_duration(const char *text, int64_t *value)
{
	const struct unit *unit = duration_units;
	const char *fraction = "";
	enum parse_status parsed;
	bool negative;

	text = skip_sign(text, &negative);
	parsed = parse_digits(&text, 10, value);
	if (*text == '.') {
		int64_t ignored;

		fraction = ++text;
		if (parse_digits(&text, 10, &ignored) == PARSE_INVALID)
			return PARSE_INVALID;
		if (parsed == PARSE_INVALID)
			parsed = PARSE_OK;
	}
	while (unit->suffix && strcmp(text, unit->suffix))
		unit++;
	if (parsed == PARSE_INVALID || !unit->suffix)
		return PARSE_INVALID;
	if (parsed == PARSE_OVERFLOW || __builtin_mul_overflow(*value, unit->factor, value) ||
	    __builtin_add_overflow(*value, parse_fraction(fraction, unit->factor), value))
		return PARSE_OVERFLOW;
	if (negative)
		*value = -*value;
	return PARSE_OK;
}

static const char *value_kind(const struct option *row)
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
	case OPTION_LIST:
	case OPTION_ALIAS:
		break;
	}
	return "a whole number";
}

static enum outcome set_number(const struct option *row, const struct log *log, const char *text, int64_t *value)
{
	char name[OPTION_TEXT_SIZE];
	char takes[OPTION_TEXT_SIZE];
	enum parse_status parsed;
	int64_t read;

	if (row->type == OPTION_DURATION)
		parsed = parse_duration(text, &read);
	else if (row->type == OPTION_SIZE)
		parsed = parse_size(text, &read);
	else
		parsed = parse_integer(text, &read);
	if (parsed == PARSE_INVALID) {
		log_error(log, option_label(row, name), "'%s' is not %s: %s", text, value_kind(row),
			  option_range_text(row, takes));
		return OUTCOME_USAGE;
	}
	if (parsed == PARSE_OVERFLOW && *text != '-' && row->maximum == INT64_MAX) {
		log_error(log, option_label(row, name), "%s is out of range: at most %s", text,
			  option_value_text(row, row->maximum, takes));
		return OUTCOME_USAGE;
	}
	if (parsed == PARSE_OVERFLOW || read < row->minimum || read > row->maximum) {
		log_error(log, option_label(row, name), "%s is out of range: %s", text, option_range_text(row, takes));
		return OUTCOME_USAGE;
	}
	*value = read;
	return OUTCOME_OK;
}

static enum outcome set_word(const struct option *row, const struct log *log, const char *text, int64_t *value)
{
	char name[OPTION_TEXT_SIZE];
	char takes[OPTION_TEXT_SIZE];
	int64_t number;
	bool numeric = parse_integer(text, &number) == PARSE_OK;

	for (const struct option_word *word = row->words; word->word; word++) {
		if (strcasecmp(word->word, text) && !(numeric && word->value == number))
			continue;
		*value = word->value;
		return OUTCOME_OK;
	}
	log_error(log, option_label(row, name), "invalid value '%s' (%s)", text, option_range_text(row, takes));
	return OUTCOME_USAGE;
}

static enum outcome set_text(const struct option *row, const struct log *log, const char *text, void *value)
{
	struct option_list *list = value;
	char name[OPTION_TEXT_SIZE];

	if (!*text) {
		log_error(log, option_label(row, name), "%s is empty", row->argument);
		return OUTCOME_USAGE;
	}
	if (row->type == OPTION_TEXT) {
		*(const char **)value = text;
		return OUTCOME_OK;
	}
	if (list->count == OPTION_LIST_MAX) {
		log_error(log, option_label(row, name), "given more than %d times", OPTION_LIST_MAX);
		return OUTCOME_USAGE;
	}
	list->texts[list->count++] = text;
	return OUTCOME_OK;
}

enum outcome option_set(const struct option *row, const struct log *log, const char *text, void *options)
{
	void *value = (char *)options + row->offset;

	if (row->type == OPTION_WORD)
		return set_word(row, log, text, value);
	return option_takes_text(row) ? set_text(row, log, text, value) : set_number(row, log, text, value);
}
