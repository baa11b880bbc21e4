/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/option_value.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NUMBER_MAX 9e18 /* fits into 63 bits */

static const struct unit {
	char suffix[3];
	uint8_t type;	/* enum option_type */
	uint16_t times; /* the unit of that type before it, or what the option has */
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

	if (row->type == OPTION_FLAG && field >= OPTION_DEFAULT)
		left -= OPTION_DEFAULT - OPTION_ARGUMENT;
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

/* Returns the end of the number at text with its unit, which ends at a blank or '-'; NULL if there is none. */
static const char *parse_number(enum option_type type, const char *text, double *value)
{
	double factor = 1;
	size_t length, ignored = 0;
	char *end;

	/* strtod(3) also takes blanks, a '+' and names. */
	if (!text[0] || !strchr("-.0123456789", text[0]))
		return NULL;
	*value = strtod(text, &end);
	length = strcspn(end, " -");
	if (type == OPTION_SIZES)
		type = OPTION_SIZE;
	/* "64KB" and "64KiB" are "64K". */
	if (WITH_CAUSES && type == OPTION_SIZE && length && strchr("Bb", end[length - 1]))
		ignored = length == 3 && end[1] == 'i' ? 2 : 1;
	length -= ignored;
	if (end == text || length >= sizeof(units->suffix))
		return NULL;
	for (const struct unit *unit = units; unit < units + sizeof(units) / sizeof(units[0]); unit++) {
		if (unit->type != type)
			continue;
		factor *= unit->times;
		if (strncasecmp(unit->suffix, end, length) || unit->suffix[length])
			continue;
		*value *= factor;
		return end + length + ignored;
	}
	return NULL;
}

void option_limits(const struct option *row, double *minimum, double *maximum)
{
	const char *rest = parse_number(row->type, option_field(row, OPTION_RANGE), minimum);

	*maximum = NUMBER_MAX;
	/* Else it is "or more". */
	if (rest[1] == 't')
		parse_number(row->type, rest + 4, maximum);
}

static bool set_number(const struct option *row, const char *text, int64_t *value)
{
	double minimum, maximum, first, last;
	bool is_range;

	option_limits(row, &minimum, &maximum);
	text = parse_number(row->type, text, &first);
	last = first;
	is_range = WITH_REPORT && row->type == OPTION_SIZES && text && *text == '-';
	if (is_range)
		text = parse_number(row->type, text + 1, &last);
	/* 0-TO begins with the default. Nothing is less or more than "-nan". */
	if (!text || *text || !(first >= minimum || (is_range && first == 0 && last >= minimum)) ||
	    !(first <= last && last <= maximum))
		return false;
	/* The nearest nanosecond. Other values have no fraction. */
	if (row->type != OPTION_DURATION && ((double)(int64_t)first != first || (double)(int64_t)last != last))
		return false;
	value[0] = (int64_t)(row->type == OPTION_DURATION ? first + .5 : first);
	if (WITH_REPORT && row->type == OPTION_SIZES)
		value[1] = is_range ? (int64_t)last : 0;
	return true;
}

static bool set_word(const struct option *row, const char *text, int64_t *value)
{
	const char *word = option_field(row, OPTION_RANGE) + strlen("one of ");
	const uint16_t *values = row[1].values;
	double number;
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

	if (row->type == OPTION_WORD)
		return set_word(row, text, value);
	if (row->type == OPTION_TEXT || row->type == OPTION_LIST)
		return set_text(row, text, value);
	return set_number(row, text, value);
}
