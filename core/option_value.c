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

/* The largest come first: values are printed with the first one that divides them. */
static const struct unit duration_units[] = {
	{ "h", 3600 * CLOCK_NS_PER_S },
	{ "m", 60 * CLOCK_NS_PER_S },
	{ "s", CLOCK_NS_PER_S },
	{ "ms", CLOCK_NS_PER_MS },
	{ "us", CLOCK_NS_PER_US },
	{ "ns", 1 },
	{ "", CLOCK_NS_PER_S }, /* only for reading: "ns" divides everything */
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
	if (negative && reading == READING_FINE)
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
	if (negative && reading == READING_FINE)
		*value = -*value;
	return reading;
}

/* What the digits behind the point are worth; those below a nanosecond do not count. */
static int64_t read_fraction(const char *digits, int64_t factor)
{
	int64_t value = 0;

	for (int64_t weight = factor / 10; weight && digit_value(*digits, 10) >= 0; weight /= 10)
		value += digit_value(*digits++, 10) * weight;
	return value;
}

static enum reading read_duration(const char *text, int64_t *value)
{
	const struct unit *unit = duration_units;
	const char *fraction = "";
	enum reading reading;
	bool negative;

	text = skip_sign(text, &negative);
	reading = read_digits(&text, 10, value);
	if (*text == '.') {
		int64_t ignored;

		fraction = ++text;
		if (read_digits(&text, 10, &ignored) == READING_NONSENSE)
			return READING_NONSENSE;
		if (reading == READING_NONSENSE)
			reading = READING_FINE;
	}
	while (unit->suffix && strcmp(text, unit->suffix))
		unit++;
	if (reading == READING_NONSENSE || !unit->suffix)
		return READING_NONSENSE;
	if (reading == READING_OVERFLOW || __builtin_mul_overflow(*value, unit->factor, value) ||
	    __builtin_add_overflow(*value, read_fraction(fraction, unit->factor), value))
		return READING_OVERFLOW;
	if (negative)
		*value = -*value;
	return READING_FINE;
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
	enum reading reading;
	int64_t read;

	if (row->type == OPTION_DURATION)
		reading = read_duration(text, &read);
	else if (row->type == OPTION_SIZE)
		reading = read_size(text, &read);
	else
		reading = read_integer(text, &read);
	if (reading == READING_NONSENSE) {
		log_error(log, option_label(row, name), "'%s' is not %s: %s", text, kind_of_value(row),
			  option_range_text(row, takes));
		return OUTCOME_USAGE;
	}
	if (reading == READING_OVERFLOW && *text != '-' && row->maximum == INT64_MAX) {
		log_error(log, option_label(row, name), "%s is out of range: at most %s", text,
			  option_value_text(row, row->maximum, takes));
		return OUTCOME_USAGE;
	}
	if (reading == READING_OVERFLOW || read < row->minimum || read > row->maximum) {
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
	bool numeric = read_integer(text, &number) == READING_FINE;

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
	if (list->count == OPTION_LIST_MOST) {
		log_error(log, option_label(row, name), "given more than %d times", OPTION_LIST_MOST);
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
