/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/options.h"

#include <string.h>

#include "core/option_value.h"

enum {
	WIDTH = 100,	/* columns */
	LEFT_MOST = 30, /* a longer option gets its help on the next line */
};

/* The left column: "  -C, --count N", or without a letter "      --timeout TIME". */
static size_t help_left(const struct option *row, char text[OPTION_TEXT_SIZE])
{
	const char *space = row->argument && row->type != OPTION_FLAG ? " " : "";
	const char *argument = *space ? row->argument : "";

	if (row->letter)
		return (size_t)snprintf(text, OPTION_TEXT_SIZE, "  -%c, --%s%s%s", row->letter, row->name, space,
					argument);
	return (size_t)snprintf(text, OPTION_TEXT_SIZE, "      --%s%s%s", row->name, space, argument);
}

/* The right column: the sentence, then the range and the default in brackets: parentheses may stand in the sentence. */
static void help_right(const struct option *row, char *text, size_t size)
{
	char takes[OPTION_TEXT_SIZE];
	char initial[OPTION_TEXT_SIZE];

	if (row->type == OPTION_FLAG || (option_takes_text(row) && !row->initial_text)) {
		snprintf(text, size, "%s", row->help);
		return;
	}
	if (option_takes_text(row)) {
		snprintf(text, size, "%s [default %s]", row->help, row->initial_text);
		return;
	}
	if (row->initial_text)
		snprintf(initial, sizeof(initial), "%s", row->initial_text);
	else
		option_value_text(row, row->initial, initial);
	snprintf(text, size, "%s [%s; default %s]", row->help, option_range_text(row, takes), initial);
}

static size_t help_column(const struct option *table)
{
	char left[OPTION_TEXT_SIZE];
	size_t column = 0;

	for (const struct option *row = option_first(table); row; row = option_next(row)) {
		size_t length = help_left(row, left);

		if (length > column && length <= LEFT_MOST)
			column = length;
	}
	return column + 2;
}

void options_help(const struct option *table, FILE *stream)
{
	size_t column = help_column(table);

	for (const struct option *row = option_first(table); row; row = option_next(row)) {
		char left[OPTION_TEXT_SIZE];
		char right[4 * OPTION_TEXT_SIZE];
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

			if (place > column && place + 1 + length > WIDTH) {
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
