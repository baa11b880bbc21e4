/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/options.h"

#include <string.h>

#include "core/option_value.h"

enum {
	WIDTH = 100,   /* columns */
	LEFT_MAX = 30, /* a longer option gets its help on the next line */
};

/* The text of one column of a row, truncated if it is too long. */
struct column {
	size_t length;
	char text[640];
};

/* Takes a tenth of the instructions of snprintf(3). */
static void append(struct column *column, const char *text)
{
	size_t room = sizeof(column->text) - 1 - column->length;
	size_t length = strlen(text);

	if (length > room)
		length = room;
	memcpy(column->text + column->length, text, length);
	column->length += length;
	column->text[column->length] = 0;
}

/* "  -C, --count N" or "      --timeout TIME". */
static void append_left(struct column *left, const struct option *row)
{
	const char letter[] = { ' ', ' ', '-', row->letter, ',', ' ', 0 };

	left->length = 0;
	append(left, row->letter ? letter : "      ");
	append(left, "--");
	append(left, row->text);
	if (row->type == OPTION_FLAG)
		return;
	append(left, " ");
	append(left, option_field(row, OPTION_ARGUMENT));
}

#if WITH_HELP
/* The help text, then the range and the default in brackets. The help text may contain parentheses. */
static void append_right(struct column *right, const struct option *row)
{
	bool has_range = row->type != OPTION_FLAG && row->type != OPTION_ALIAS && *option_field(row, OPTION_RANGE);
	const char *initial = option_field(row, OPTION_DEFAULT);

	right->length = 0;
	append(right, option_field(row, OPTION_HELP_TEXT));
	if (!has_range && !*initial)
		return;
	append(right, " [");
	if (has_range) {
		append(right, option_field(row, OPTION_RANGE));
		append(right, "; ");
	}
	append(right, "default ");
	append(right, *initial ? initial : option_field(row, OPTION_INITIAL));
	append(right, "]");
}

static size_t help_column(const struct option *table)
{
	struct column left;
	size_t column = 0;

	for (const struct option *row = option_first(table); row; row = option_next(row)) {
		append_left(&left, row);
		if (left.length > column && left.length <= LEFT_MAX)
			column = left.length;
	}
	return column + 2;
}
#else
static void append_right(struct column *right, const struct option *row)
{
	(void)row;
	right->text[0] = 0;
}

static size_t help_column(const struct option *table)
{
	(void)table;
	return 0;
}
#endif

/* Returns the length of the words that fit into room, of one word at least. */
static size_t line_length(const char *text, size_t room)
{
	size_t length = strlen(text);

	if (length <= room)
		return length;
	for (length = room; length && text[length] != ' '; length--)
		continue;
	return length ? length : strcspn(text, " ");
}

void options_help(const struct option *table, FILE *stream)
{
	size_t column = help_column(table);
	struct column left, right;
	char line[LEFT_MAX + sizeof(right.text) + 2];

	for (const struct option *row = option_first(table); row; row = option_next(row)) {
		const char *rest = right.text;

		append_left(&left, row);
		append_right(&right, row);
		if (left.length + 2 > column) {
			append(&left, "\n");
			fputs(left.text, stream);
			left.length = 0;
		}
		while (*rest) {
			size_t length = line_length(rest, WIDTH - column);

			memset(line, ' ', column);
			memcpy(line, left.text, left.length);
			memcpy(line + column, rest, length);
			line[column + length] = '\n';
			fwrite(line, 1, column + length + 1, stream);
			left.length = 0;
			rest += length;
			rest += *rest == ' ';
		}
	}
}
