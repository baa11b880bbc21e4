/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A report as two lines of CSV (RFC 4180): the header and the values. A column name includes the names of its objects.
 * Numbers have the names and forms of JSON.
 */
#include <string.h>

#include "core/figures.h"

/* Prints a comma before each column but the first. items would not do: it counts lists, which have no column. */
static void csv_separate(struct report *report)
{
	if (report->entry[0])
		fputc(',', report->stream);
	report->entry[0] = ',';
}

static void print_text(FILE *stream, const char *text)
{
	bool quoted = text[strcspn(text, ",\"\r\n")];

	if (quoted)
		fputc('"', stream);
	while (*text) {
		size_t length = report_sequence_length(text);

		if (length)
			fprintf(stream, "%s%.*s", *text == '"' ? "\"" : "", (int)length, text);
		else
			fputs("\xef\xbf\xbd", stream); /* the replacement character, as in JSON */
		text += length ? length : 1;
	}
	if (quoted)
		fputc('"', stream);
}

static void csv_name(struct report *report, const char *name, struct report_value value)
{
	if (report_in_list(report))
		return;
	csv_separate(report);
	for (unsigned i = 1; i <= report->depth; i++)
		fprintf(report->stream, "%s_", report->frames[i].name);
	report_print_key(report->stream, name, value);
}

static void csv_value(struct report *report, const char *name, struct report_value value)
{
	(void)name;
	if (report_in_list(report))
		return;
	csv_separate(report);
	if (value.kind == REPORT_TEXT)
		print_text(report->stream, value.text);
	else
		report_print_number(report->stream, value);
}

const struct report_format report_csv_names = { .closing = "\n", .value = csv_name, .without = FIGURE_ONLY_TEXT };
const struct report_format report_csv_values = { .closing = "\n", .value = csv_value, .without = FIGURE_ONLY_TEXT };
