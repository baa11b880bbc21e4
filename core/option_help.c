/* SPDX-License-Identifier: BSD-2-Clause */
/* options_help(): a command's options as text. */
#include "core/options.h"

#include "core/option_value.h"
#include "core/terminal.h"
#include "core/wrap.h"

enum {
	LEFT_MAX = 30, /* a longer option gets its help on the next line */
	LEFT_SIZE = 64,
	RIGHT_SIZE = 640,
};

/* "  -C, --count N" or "      --timeout TIME". Returns its length. */
static size_t format_left(char left[LEFT_SIZE], const struct option *row)
{
	const char letter[] = { '-', row->letter, ',', 0 };
	const char *argument = option_field(row, OPTION_ARGUMENT);

	log_text(left, LEFT_SIZE, "  %s --%s%s%s", row->letter ? letter : "   ", row->text, *argument ? " " : "",
		 argument);
	return strlen(left);
}

/* The help text, then the range and the default in brackets. The help text may contain parentheses. */
static void format_right(char right[RIGHT_SIZE], const struct option *row, bool brief)
{
	bool has_value = row->type != OPTION_FLAG && row->type != OPTION_ALIAS;
	const char *range = has_value && !brief ? option_field(row, OPTION_RANGE) : "";
	const char *initial = option_field(row, OPTION_DEFAULT);

	if (has_value && !*initial)
		initial = option_field(row, OPTION_INITIAL);
	log_text(right, RIGHT_SIZE, *range || *initial ? "%s [%s%sdefault %s]" : "%s",
		 option_field(row, OPTION_HELP_TEXT), range, *range ? "; " : "", initial);
}

static size_t help_column(const struct option *table, bool brief)
{
	char left[LEFT_SIZE];
	size_t column = 0;

	for (const struct option *row = option_first(table); row; row = option_next(row)) {
		size_t length = brief && !row->brief ? 0 : format_left(left, row);

		if (length > column && length <= LEFT_MAX)
			column = length;
	}
	return column + 2;
}

static void print_row(const struct option *row, bool brief, size_t column, struct output *output)
{
	/* output_tiny.c has no stream. */
	size_t width = WITH_DIAGNOSTICS ? terminal_width(fileno(output->stream)) : 0;
	char left[LEFT_SIZE], right[RIGHT_SIZE];

	if (format_left(left, row) + 2 > column) {
		output_print(output, "%s\n", left);
		*left = 0;
	}
	format_right(right, row, brief);
	output_print(output, "%-*s", (int)column, left);
	wrap_print(output, width ? width : TERMINAL_WIDTH, column, column, 0, right);
}

static void list_options(const struct option *table, struct output *output)
{
	char left[LEFT_SIZE];

	output_print(output, "\nOptions:\n");
	for (const struct option *row = option_first(table); row; row = option_next(row)) {
		format_left(left, row);
		output_print(output, "%s\n", left);
	}
}

void options_help(const struct option *table, bool brief, struct output *output)
{
	static const char titles[][8] = { "Options", "Server",	"Client", "Pace",
					  "Output",  "Network", "Limits", "Service" };
	size_t column;

	if (!WITH_HELP) {
		list_options(table, output);
		return;
	}
	column = help_column(table, brief);
	for (unsigned section = 0; section < (brief ? 1 : sizeof(titles) / sizeof(titles[0])); section++) {
		bool titled = false;

		for (const struct option *row = option_first(table); row; row = option_next(row)) {
			if (brief ? !row->brief : row->section != section)
				continue;
			if (!titled)
				output_print(output, "\n%s:\n", titles[section]);
			titled = true;
			print_row(row, brief, column, output);
		}
	}
}
