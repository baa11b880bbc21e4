/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/option_value.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "core/clock.h"

static const struct unit {
	char suffix[3];
	uint8_t type; /* enum option_type */
	int64_t factor;
} units[] = {
	{ "h", OPTION_DURATION, 3600 * CLOCK_NS_PER_S },
	{ "m", OPTION_DURATION, 60 * CLOCK_NS_PER_S },
	{ "s", OPTION_DURATION, CLOCK_NS_PER_S },
	{ "", OPTION_DURATION, CLOCK_NS_PER_S },
	{ "ms", OPTION_DURATION, CLOCK_NS_PER_MS },
	{ "us", OPTION_DURATION, CLOCK_NS_PER_US },
	{ "ns", OPTION_DURATION, 1 },
	{ "G", OPTION_SIZE, INT64_C(1) << 30 },
	{ "g", OPTION_SIZE, INT64_C(1) << 30 },
	{ "M", OPTION_SIZE, INT64_C(1) << 20 },
	{ "m", OPTION_SIZE, INT64_C(1) << 20 },
	{ "K", OPTION_SIZE, INT64_C(1) << 10 },
	{ "k", OPTION_SIZE, INT64_C(1) << 10 },
	{ "", OPTION_SIZE, 1 },
	{ "", OPTION_INTEGER, 1 },
};

const char *option_label(const struct option *row, char text[OPTION_TEXT_SIZE])
{
	if (row->letter)
		snprintf(text, OPTION_TEXT_SIZE, "-%c, --%s", row->letter, row->text);
	else
		snprintf(text, OPTION_TEXT_SIZE, "--%s", row->text);
	return text;
}

enum parse_status {
	PARSE_OK,
	PARSE_INVALID,
	PARSE_OVERFLOW,
};

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

/* Parses the digits at *text and moves *text past them. Returns PARSE_INVALID if there is no digit. */
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

/* Returns the nanoseconds of the digits after the decimal point; those below 1 ns are ignored. */
static int64_t parse_fraction(const char *digits, int64_t factor)
{
	int64_t value = 0;

	for (int64_t weight = factor / 10; weight && digit_value(*digits, 10) >= 0; weight /= 10)
		value += digit_value(*digits++, 10) * weight;
	return value;
}

/* Moves *text past the suffix, which ends at a space, a '-' or the end of the text. Returns 0 if it is unknown. */
static int64_t parse_unit(enum option_type type, const char **text)
{
	size_t length = strcspn(*text, " -");
	const char *suffix = *text;

	if (type == OPTION_SIZES)
		type = OPTION_SIZE;
	*text += length;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (units[i].type == type && !strncmp(units[i].suffix, suffix, length) && !units[i].suffix[length])
			return units[i].factor;
	return 0;
}

/* Parses the number at *text and moves *text past it. Only a duration may have a decimal point. */
static enum parse_status parse_number(enum option_type type, const char **text, int64_t *value)
{
	bool negative = **text == '-';
	const char *fraction = "";
	enum parse_status parsed;
	int64_t factor;
	int base = 10;

	*text += negative;
	if (type == OPTION_INTEGER && **text == '0' && ((*text)[1] == 'x' || (*text)[1] == 'X')) {
		base = 16;
		*text += 2;
	}
	parsed = parse_digits(text, base, value);
	if (type == OPTION_DURATION && **text == '.') {
		int64_t ignored;

		fraction = ++*text;
		if (parse_digits(text, 10, &ignored) == PARSE_INVALID)
			return PARSE_INVALID;
		if (parsed == PARSE_INVALID)
			parsed = PARSE_OK;
	}
	factor = parse_unit(type, text);
	if (parsed == PARSE_INVALID || !factor)
		return PARSE_INVALID;
	if (parsed == PARSE_OVERFLOW || __builtin_mul_overflow(*value, factor, value) ||
	    __builtin_add_overflow(*value, parse_fraction(fraction, factor), value))
		return PARSE_OVERFLOW;
	if (negative)
		*value = -*value;
	return PARSE_OK;
}

void option_limits(const struct option *row, int64_t *minimum, int64_t *maximum)
{
	const char *text = option_field(row, OPTION_RANGE);

	*maximum = INT64_MAX;
	parse_number(row->type, &text, minimum);
	if (strncmp(text, " to ", 4))
		return;
	text += 4;
	parse_number(row->type, &text, maximum);
}

static const char *value_kind(const struct option *row)
{
	if (row->type == OPTION_SIZE)
		return "a size in bytes";
	if (WITH_REPORT && row->type == OPTION_SIZES)
		return "a size in bytes, or FROM-TO";
	return row->type == OPTION_DURATION ? "a time such as 500ms, 5s or 2m" : "a whole number";
}

static enum outcome set_number(const struct option *row, const struct log *log, const char *text, int64_t *value)
{
	const char *range = option_field(row, OPTION_RANGE);
	const char *rest = text;
	char name[OPTION_TEXT_SIZE];
	int64_t read, last, minimum, maximum;
	enum parse_status parsed = parse_number(row->type, &rest, &read);
	bool is_range = WITH_REPORT && row->type == OPTION_SIZES && parsed == PARSE_OK && *rest == '-';

	last = read;
	if (is_range) {
		rest++;
		parsed = parse_number(row->type, &rest, &last);
	}
	option_label(row, name);
	option_limits(row, &minimum, &maximum);
	/* 0-TO begins with the default. */
	if (parsed == PARSE_OK && !*rest && (read >= minimum || (is_range && !read && last >= minimum)) &&
	    read <= last && last <= maximum) {
		value[0] = read;
		if (WITH_REPORT && row->type == OPTION_SIZES)
			value[1] = is_range ? last : 0;
		return OUTCOME_OK;
	}
	if (parsed == PARSE_INVALID || *rest)
		log_error(log, name, "'%s' is not %s: %s", text, value_kind(row), range);
	else if (parsed == PARSE_OVERFLOW && *text != '-' && maximum == INT64_MAX)
		log_error(log, name, "%s is out of range: at most %" PRId64, text, maximum);
	else
		log_error(log, name, "%s is out of range: %s", text,
			  parsed == PARSE_OK && read > last ? "FROM is above TO" : range);
	return OUTCOME_USAGE;
}

static enum outcome set_word(const struct option *row, const struct log *log, const char *text, int64_t *value)
{
	const char *range = option_field(row, OPTION_RANGE);
	const uint16_t *values = row[1].values;
	const char *rest = text;
	char name[OPTION_TEXT_SIZE];
	int64_t number;
	bool numeric = parse_number(OPTION_INTEGER, &rest, &number) == PARSE_OK && !*rest;
	size_t length;

	for (const char *word = range + strlen("one of "); *word; word += strspn(word, ", ")) {
		length = strcspn(word, ",");
		if ((!strncasecmp(word, text, length) && !text[length]) || (numeric && *values == number)) {
			*value = *values;
			return OUTCOME_OK;
		}
		word += length;
		values++;
	}
	log_error(log, option_label(row, name), "invalid value '%s' (%s)", text, range);
	return OUTCOME_USAGE;
}

static enum outcome set_text(const struct option *row, const struct log *log, const char *text, void *value)
{
	struct option_list *list = value;
	char name[OPTION_TEXT_SIZE];

	option_label(row, name);
	if (!*text) {
		log_error(log, name, "%s is empty", option_field(row, OPTION_ARGUMENT));
		return OUTCOME_USAGE;
	}
	if (row->type == OPTION_TEXT) {
		*(const char **)value = text;
		return OUTCOME_OK;
	}
	if (list->count == OPTION_LIST_MAX) {
		log_error(log, name, "given more than %d times", OPTION_LIST_MAX);
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
	if (row->type == OPTION_TEXT || row->type == OPTION_LIST)
		return set_text(row, log, text, value);
	return set_number(row, log, text, value);
}
