/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/option_value.h"

#include <string.h>
#include <strings.h>

#define DIGITS_MAX (UINT64_MAX / 32) /* one more digit fits */

static const struct unit {
	char suffix[3];
	uint8_t type;	/* enum option_type */
	uint16_t times; /* of the type's previous unit, or of the option's */
} units[] = {
	{ "ns", OPTION_DURATION, 1 },	{ "us", OPTION_DURATION, 1000 }, { "ms", OPTION_DURATION, 1000 },
	{ "s", OPTION_DURATION, 1000 }, { "", OPTION_DURATION, 1 },	 { "m", OPTION_DURATION, 60 },
	{ "h", OPTION_DURATION, 60 },	{ "", OPTION_SIZE, 1 },		 { "K", OPTION_SIZE, 1024 },
	{ "M", OPTION_SIZE, 1024 },	{ "G", OPTION_SIZE, 1024 },	 { "", OPTION_INTEGER, 1 },
};

const char *option_field(const struct option *row, enum option_field field)
{
	const char *text = row->text;
	unsigned left = field;

	if (row->type == OPTION_FLAG && field >= OPTION_ARGUMENT) {
		if (field < OPTION_DEFAULT)
			return text + strlen(text);
		left -= OPTION_DEFAULT - OPTION_ARGUMENT;
	}
	for (; left; left--)
		text += strlen(text) + 1;
	return text;
}

const char *option_label(const struct option *row, char text[OPTION_TEXT_SIZE])
{
	if (row->letter)
		log_text(text, OPTION_TEXT_SIZE, "-%c, --%s", row->letter, row->text);
	else
		log_text(text, OPTION_TEXT_SIZE, "--%s", row->text);
	return text;
}

/* As typed: digits / scale. */
struct number {
	unsigned base;
	uint64_t digits;
	uint64_t scale; /* the base to the power of the decimal places; 0: no point */
};

/*
 * Returns the end of the digits; NULL without one, or if the whole part does not fit. A fraction's surplus digits are
 * ignored.
 */
static const char *read_digits(const char *text, struct number *number)
{
	const char *end = text;

	for (;; end++) {
		unsigned digit = (unsigned)(*end <= '9' ? *end - '0' : (*end | ' ') - 'a' + 10);

		if (*end == '.' && !number->scale) {
			number->scale = 1;
		} else if (digit >= number->base || !(*end % 32)) { /* "@" and "`" would be the digit before "A" */
			break;
		} else if (number->digits < DIGITS_MAX && number->scale < DIGITS_MAX) {
			number->digits = number->digits * number->base + digit;
			number->scale *= number->base;
		} else if (!number->scale) {
			return NULL;
		}
	}
	return end - text > (number->scale != 0) ? end : NULL;
}

/* What a unit multiplies by; 0 if the type has no such unit. */
static uint64_t unit_factor(enum option_type type, const char *suffix, size_t length)
{
	uint64_t factor = 1;

	for (const struct unit *unit = units; unit < units + sizeof(units) / sizeof(units[0]); unit++) {
		if (unit->type != type)
			continue;
		factor *= unit->times;
		if (length < sizeof(unit->suffix) && !strncasecmp(unit->suffix, suffix, length) &&
		    !unit->suffix[length])
			return factor;
	}
	return 0;
}

/* Returns false if the product is too large, or not whole and may not be rounded. */
static bool multiply(struct number number, uint64_t factor, bool may_round, int64_t *value)
{
	uint64_t product, whole, rest;

	/* It may fit without the fraction's last digits. */
	for (; __builtin_mul_overflow(number.digits, factor, &product); number.digits /= number.base) {
		if (number.scale < number.base)
			return false;
		number.scale /= number.base;
	}
	if (!number.scale)
		number.scale = 1;
	rest = product % number.scale;
	whole = product / number.scale + (rest >= number.scale - rest);
	if (whole > INT64_MAX || (rest && !may_round))
		return false;
	*value = (int64_t)whole;
	return true;
}

/*
 * Returns the end of the number and unit at text, which end at a blank or '-'; NULL without a number, or if it is too
 * large or not whole: only a duration is rounded, to nanoseconds, or by two millionths if its fraction has more digits
 * than fit. It may be hexadecimal, as in stock mckey.
 */
static const char *parse_number(enum option_type type, const char *text, int64_t *value)
{
	bool is_hexadecimal = text[0] == '0' && (text[1] | ' ') == 'x';
	struct number number = { .base = is_hexadecimal ? 16 : 10 };
	const char *unit = read_digits(is_hexadecimal ? text + 2 : text, &number);
	size_t length = unit ? strcspn(unit, " -") : 0, ignored = 0;
	uint64_t factor;

	if (type == OPTION_SIZES)
		type = OPTION_SIZE;
	/* "64KB" and "64KiB" are "64K". */
	if (WITH_DIAGNOSTICS && type == OPTION_SIZE && length && strchr("Bb", unit[length - 1]))
		ignored = length == 3 && unit[1] == 'i' ? 2 : 1;
	factor = unit ? unit_factor(type, unit, length - ignored) : 0;
	return factor && multiply(number, factor, type == OPTION_DURATION, value) ? unit + length : NULL;
}

bool option_number(enum option_type type, const char *text, int64_t *value)
{
	const char *end = parse_number(type, text, value);

	return end && !*end;
}

void option_limits(const struct option *row, int64_t *minimum, int64_t *maximum)
{
	const char *rest = parse_number(row->type, option_field(row, OPTION_RANGE), minimum);

	*maximum = INT64_MAX;
	/* Else the range is "or more". */
	if (rest[1] == 't')
		parse_number(row->type, rest + 4, maximum);
}

static bool set_number(const struct option *row, const char *text, int64_t *value)
{
	int64_t minimum, maximum, first, last;
	bool is_range;

	option_limits(row, &minimum, &maximum);
	text = parse_number(row->type, text, &first);
	last = first;
	is_range = WITH_REPORT && row->type == OPTION_SIZES && text && *text == '-';
	if (is_range)
		text = parse_number(row->type, text + 1, &last);
	/* 0-TO begins with the default. */
	if (!text || *text || (first < minimum && !(is_range && !first && last >= minimum)) || first > last ||
	    last > maximum)
		return false;
	value[0] = first;
	if (WITH_REPORT && row->type == OPTION_SIZES)
		value[1] = is_range ? last : 0;
	return true;
}

static bool set_word(const struct option *row, const char *text, int64_t *value)
{
	const char *word = option_field(row, OPTION_RANGE) + strlen("one of ");
	const uint16_t *values = row[1].values;
	int64_t number;
	const char *end = parse_number(OPTION_INTEGER, text, &number);

	for (;; values++) {
		size_t length = strcspn(word, ",");

		if ((!strncasecmp(word, text, length) && !text[length]) || (end && !*end && *values == number)) {
			*value = *values;
			return true;
		}
		if (!word[length])
			return false;
		word += length + strlen(", ");
	}
}

static bool set_text(const struct option *row, const char *text, void *value)
{
	struct option_list *list = value;

	if (!*text || (row->type == OPTION_LIST && list->count == OPTION_LIST_MAX))
		return false;
	if (row->type == OPTION_TEXT)
		*(const char **)value = text;
	else
		list->texts[list->count++] = text;
	return true;
}

bool option_set(const struct option *row, const char *text, void *options)
{
	void *value = (char *)options + row->offset;

	if (HAS_WORDS && row->type == OPTION_WORD)
		return set_word(row, text, value);
	if (row->type == OPTION_TEXT || row->type == OPTION_LIST)
		return set_text(row, text, value);
	return set_number(row, text, value);
}
