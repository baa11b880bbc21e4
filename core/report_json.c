/* SPDX-License-Identifier: BSD-2-Clause */
/* A report as JSON (RFC 8259). */
#include <stddef.h>

#include "core/figures.h"

/* Returns the length of the UTF-8 sequence at text, or 0 if it is not valid (RFC 3629: surrogates, overlong forms). */
static size_t sequence_length(const unsigned char *text)
{
	static const uint32_t first[] = { 0, 0, 0x80, 0x800, 0x10000, 0x110000 }; /* character of each length */
	size_t length = *text < 0x80   ? 1
			: *text < 0xc0 ? 0
			: *text < 0xe0 ? 2
			: *text < 0xf0 ? 3
			: *text < 0xf8 ? 4
				       : 0;
	uint32_t character = *text & (0xffu >> (length + 1));

	for (size_t i = 1; i < length; i++) {
		if (text[i] >> 6 != 2)
			return 0;
		character = character << 6 | (text[i] & 0x3f);
	}
	if (length > 1 && (character < first[length] || character >= first[5] || character >> 11 == 0xd800 >> 11))
		return 0;
	return length;
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
