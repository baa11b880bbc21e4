/* SPDX-License-Identifier: BSD-2-Clause */
/* A report as JSON (RFC 8259). */
#include <stddef.h>

#include "core/figures.h"

/* Returns the length of the UTF-8 sequence at text, or 0 if it is not valid (RFC 3629: surrogates, overlong forms). */
static size_t sequence_length(const unsigned char *text)
{
	static const struct {
		unsigned char first, last; /* of the first byte */
		unsigned char low, high;   /* of the second one */
		size_t length;
	} rows[] = {
		{ 0x01, 0x7f, 0x00, 0xff, 1 }, { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (text[0] < rows[i].first || text[0] > rows[i].last)
			continue;
		if (rows[i].length > 1 && (text[1] < rows[i].low || text[1] > rows[i].high))
			return 0;
		for (size_t j = 2; j < rows[i].length; j++)
			if (text[j] >> 6 != 2)
				return 0;
		return rows[i].length;
	}
	return 0;
}

/* Text from peers and users may contain any bytes: those that are not UTF-8 become the replacement character. */
static void print_string(FILE *stream, const char *string)
{
	const unsigned char *text = (const unsigned char *)string;

	fputc('"', stream);
	while (*text) {
		size_t length = sequence_length(text);

		if (!length)
			fputs("\\ufffd", stream);
		else if (*text < ' ')
			fprintf(stream, "\\u%04x", (unsigned)*text);
		else
			fprintf(stream, "%s%.*s", *text == '"' || *text == '\\' ? "\\" : "", (int)length,
				(const char *)text);
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

static void json_value(struct report *report, const char *name, const struct report_value *value)
{
	json_separate(report);
	fputc('"', report->stream);
	report_print_key(report->stream, name, value);
	fputs("\":", report->stream);
	if (value->kind == REPORT_TEXT)
		print_string(report->stream, value->text);
	else if (value->kind == REPORT_NONE)
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
