/* SPDX-License-Identifier: BSD-2-Clause */
/* A report as JSON (RFC 8259). */
#include <stddef.h>

#include "core/figures.h"

/* Text from peers and users may contain any bytes: those that are not UTF-8 become the replacement character. */
static void print_string(FILE *stream, const char *text)
{
	fputc('"', stream);
	while (*text) {
		size_t length = report_sequence_length(text);

		if (!length)
			fputs("\\ufffd", stream);
		else if (length == 1 && *text < ' ')
			fprintf(stream, "\\u%04x", (unsigned)*text);
		else
			fprintf(stream, "%s%.*s", *text == '"' || *text == '\\' ? "\\" : "", (int)length, text);
		text += length ? length : 1;
	}
	fputc('"', stream);
}

static void json_separate(struct report *report)
{
	if (report_top(report)->items)
		fputc(',', report->stream);
}

static void json_begin(struct report *report, const char *name, enum report_nesting nesting)
{
	json_separate(report);
	if (name)
		fprintf(report->stream, "\"%s\":", name);
	fputc(nesting == REPORT_LIST ? '[' : '{', report->stream);
}

static void json_end(struct report *report)
{
	fputc(report_top(report)->nesting == REPORT_LIST ? ']' : '}', report->stream);
}

static void json_value(struct report *report, const char *name, struct report_value value)
{
	json_separate(report);
	fputc('"', report->stream);
	report_print_key(report->stream, name, value);
	fputs("\":", report->stream);
	if (value.kind == REPORT_TEXT)
		print_string(report->stream, value.text);
	else if (value.kind == REPORT_NONE)
		fputs("null", report->stream);
	else
		report_print_number(report->stream, value);
}

const struct report_format report_json = {
	.opening = "{",
	.closing = "}\n",
	.begin = json_begin,
	.end = json_end,
	.value = json_value,
	.lists = true,
	.without = FIGURE_ONLY_TEXT | FIGURE_NOT_JSON,
};
