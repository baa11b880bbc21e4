/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A report for a person.
 *
 *   block, indented        pings: sent 3, answered 3
 *                          senders:
 *                            from 10.0.0.1, received 7
 *   line                   pings: sent 3, answered 3; round trip: min 1 us
 */
#include <inttypes.h>
#include <stddef.h>

#include "core/quantity.h"
#include "core/report.h"

static void print_name(FILE *stream, const char *name)
{
	for (; *name; name++)
		fputc(*name == '_' ? ' ' : *name, stream);
}

static void print_value(FILE *stream, const struct report_value *value)
{
	char text[QUANTITY_TEXT_SIZE];

	switch (value->kind) {
	case REPORT_COUNT:
		fprintf(stream, "%" PRIu64, value->number);
		break;
	case REPORT_TIME:
		fputs(quantity_time((int64_t)value->number, text), stream);
		break;
	case REPORT_RATE:
		fputs(quantity_rate(value->rate, text), stream);
		break;
	case REPORT_BANDWIDTH:
		fputs(quantity_bandwidth(value->rate, text), stream);
		break;
	case REPORT_TEXT:
		fputs(value->text, stream);
		break;
	case REPORT_FLAG:
		fputs(value->number ? "yes" : "no", stream);
		break;
	case REPORT_NONE:
		break;
	}
}

/* What stands in front of an item of the same line. */
static void separate(struct report *report)
{
	if (report_top(report)->items)
		fputs(", ", report->stream);
	else if (report->depth == 1)
		fputc(' ', report->stream);
}

/* A text at the top (the command, the target) is for programs: a person finds it in the lines around. */
static bool left_out(const struct report *report, const struct report_value *value)
{
	return value->kind == REPORT_NONE || (value->kind == REPORT_TEXT && !report->depth);
}

static void name_block(struct report *report, const char *name)
{
	fputs("  ", report->stream);
	print_name(report->stream, name);
	fputc(':', report->stream);
}

/* A list is named with its first entry: without one there is nothing to say. */
static void block_begin(struct report *report, const char *name, enum report_nesting nesting)
{
	const struct report_frame *outer = report_top(report);

	if (outer->nesting == REPORT_LIST) {
		if (!outer->items)
			name_block(report, outer->name);
		fputs("\n    ", report->stream);
	} else if (report->depth) {
		separate(report);
		print_name(report->stream, name);
		fputs(" (", report->stream);
	} else if (nesting != REPORT_LIST) {
		name_block(report, name);
	}
}

static void block_end(struct report *report)
{
	const struct report_frame *ended = report_top(report);

	if (report->depth > 1 && ended->name)
		fputc(')', report->stream);
	else if (report->depth == 1 && (ended->nesting != REPORT_LIST || ended->items))
		fputc('\n', report->stream);
}

static void block_value(struct report *report, const char *name, const struct report_value *value)
{
	if (left_out(report, value))
		return;
	if (report->depth)
		separate(report);
	else
		fputs("  ", report->stream);
	print_name(report->stream, name);
	fputs(report->depth ? " " : ": ", report->stream);
	print_value(report->stream, value);
	if (!report->depth)
		fputc('\n', report->stream);
}

const struct report_format report_block = {
	.begin = block_begin,
	.end = block_end,
	.value = block_value,
	.sparing = true,
	.draws = true,
};

/* In front of an item of the whole; the texts that are left out count as items, so those do not tell. */
static void separate_in_line(struct report *report)
{
	if (report->depth) {
		fputs(report_top(report)->items ? ", " : " ", report->stream);
	} else {
		fputs(report->entry[0] ? "; " : "", report->stream);
		report->entry[0] = ';';
	}
}

/* In something that is too much for one line. */
static bool is_aside(const struct report *report)
{
	for (unsigned i = 1; i <= report->depth; i++)
		if (report->frames[i].nesting != REPORT_OBJECT)
			return true;
	return false;
}

static void line_begin(struct report *report, const char *name, enum report_nesting nesting)
{
	if (nesting != REPORT_OBJECT || is_aside(report))
		return;
	separate_in_line(report);
	print_name(report->stream, name);
	fputc(':', report->stream);
}

static void line_value(struct report *report, const char *name, const struct report_value *value)
{
	if (left_out(report, value) || is_aside(report))
		return;
	separate_in_line(report);
	print_name(report->stream, name);
	fputc(' ', report->stream);
	print_value(report->stream, value);
}

const struct report_format report_line = {
	.begin = line_begin,
	.value = line_value,
	.sparing = true,
};
