/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/options.h"

#include <string.h>

#include "core/option_value.h"

enum {
	WIDTH = 100,	/* columns */
	LEFT_MOST = 30, /* a longer option gets its help on the next line */
};

/* A column of one row. What does not fit is cut. */
struct column {
	size_t length;
	char text[4 * OPTION_TEXT_SIZE];
};

/* Not by printf: a tenth of the instructions of a --help. */
static void add(struct column *column, const char *text)
{
	size_t room = sizeof(column->text) - 1 - column->length;
	size_t length = strlen(text);

	if (length > room)
		length = room;
	memcpy(column->text + column->length, text, length);
	column->length += length;
	column->text[column->length] = 0;
}

/* "  -C, --count N", or without a letter "      --timeout TIME". */
static void add_left(struct column *left, const struct option *row)
{
	const char letter[] = { ' ', ' ', '-', row->letter, ',', ' ', 0 };

	left->length = 0;
	add(left, row->letter ? letter : "      ");
	add(left, "--");
	add(left, row->name);
	if (!row->argument || row->type == OPTION_FLAG)
		return;
	add(left, " ");
	add(left, row->argument);
}

#if WITH_HELP
/* The sentence, then the range and the default in brackets: parentheses may stand in the sentence. */
static void add_right(struct column *right, const struct option *row)
{
	bool has_range = row->type != OPTION_FLAG && !option_takes_text(row);
	char text[OPTION_TEXT_SIZE];

	right->length = 0;
	add(right, row->help);
	if (!has_range && !row->initial_text)
		return;
	add(right, " [");
	if (has_range) {
		add(right, option_range_text(row, text));
		add(right, "; ");
	}
	add(right, "default ");
	add(right, row->initial_text ? row->initial_text : option_value_text(row, row->initial, text));
	add(right, "]");
}

static size_t right_begins(const struct option *table)
{
	struct column left;
	size_t column = 0;

	for (const struct option *row = option_first(table); row; row = option_next(row)) {
		add_left(&left, row);
		if (left.length > column && left.length <= LEFT_MOST)
			column = left.length;
	}
	return column + 2;
}
#else
static void add_right(struct column *right, const struct option *row)
{
	(void)row;
	right->text[0] = 0;
}

static size_t right_begins(const struct option *table)
{
	(void)table;
	return 0;
}
#endif

/* As many words as fit into that room, at least one. */
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
	size_t column = right_begins(table);
	struct column left, right;
	char line[LEFT_MOST + sizeof(right.text) + 2];

	for (const struct option *row = option_first(table); row; row = option_next(row)) {
		const char *rest = right.text;

		add_left(&left, row);
		add_right(&right, row);
		if (left.length + 2 > column) {
			add(&left, "\n");
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
