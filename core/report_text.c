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

#include "core/report.h"
#include "core/units.h"

static void print_name(FILE *stream, const char *name)
{
	for (; *name; name++)
		fputc(*name == '_' ? ' ' : *name, stream);
}

static void print_value(FILE *stream, const struct report_value *value)
{
	char text[UNITS_TEXT_SIZE];

	switch (value->kind) {
	case REPORT_COUNT:
		fprintf(stream, "%" PRIu64, value->number);
		break;
	case REPORT_TIME:
		fputs(units_time((int64_t)value->number, text), stream);
		break;
	case REPORT_RATE:
		fputs(units_rate(value->rate, text), stream);
		break;
	case REPORT_BANDWIDTH:
		fputs(units_bandwidth(value->rate, text), stream);
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

/* A text at the top (the command, the target) is for programs: a person finds it in the lines around. */
static bool left_out(const struct report *report, const struct report_value *value)
{
	return value->kind == REPORT_NONE || (value->kind == REPORT_TEXT && !report->depth);
}

/* What is begun gets its name with the first value in it that is shown: without one there is nothing to say. */
static void name_what_is_begun(struct report *report, void (*name_one)(struct report *report, unsigned depth))
{
	for (unsigned i = 1; i <= report->depth; i++) {
		if (report->frames[i].shown)
			continue;
		name_one(report, i);
		report->frames[i - 1].shown++;
	}
}

/* What stands in front of an item of the same line. */
static void separate(struct report *report, unsigned depth)
{
	if (report->frames[depth].shown)
		fputs(", ", report->stream);
	else if (depth == 1)
		fputc(' ', report->stream);
}

static void name_block(FILE *stream, const char *name)
{
	fputs("  ", stream);
	print_name(stream, name);
	fputc(':', stream);
}

/* A list is named with its first entry. */
static void block_name(struct report *report, unsigned depth)
{
	const struct report_frame *frame = &report->frames[depth];
	const struct report_frame *outer = frame - 1;

	if (outer->nesting == REPORT_LIST) {
		if (!outer->shown)
			name_block(report->stream, outer->name);
		fputs("\n    ", report->stream);
	} else if (depth > 1) {
		separate(report, depth - 1);
		print_name(report->stream, frame->name);
		fputs(" (", report->stream);
	} else if (frame->nesting != REPORT_LIST) {
		name_block(report->stream, frame->name);
	}
}

static void block_end(struct report *report)
{
	const struct report_frame *ended = report_top(report);

	if (!ended->shown)
		return;
	if (report->depth > 1 && ended->name)
		fputc(')', report->stream);
	else if (report->depth == 1)
		fputc('\n', report->stream);
}

static void block_value(struct report *report, const char *name, const struct report_value *value)
{
	if (left_out(report, value))
		return;
	name_what_is_begun(report, block_name);
	if (report->depth)
		separate(report, report->depth);
	else
		fputs("  ", report->stream);
	print_name(report->stream, name);
	fputs(report->depth ? " " : ": ", report->stream);
	print_value(report->stream, value);
	if (!report->depth)
		fputc('\n', report->stream);
	report_top(report)->shown++;
}

const struct report_format report_block = {
	.end = block_end,
	.value = block_value,
	.sparing = true,
	.draws = true,
};

static void separate_in_line(struct report *report, unsigned depth)
{
	bool first = !report->frames[depth].shown;

	if (depth)
		fputs(first ? " " : ", ", report->stream);
	else
		fputs(first ? "" : "; ", report->stream);
}

static void line_name(struct report *report, unsigned depth)
{
	separate_in_line(report, depth - 1);
	print_name(report->stream, report->frames[depth].name);
	fputc(':', report->stream);
}

/* In something that is too much for one line. */
static bool is_aside(const struct report *report)
{
	for (unsigned i = 1; i <= report->depth; i++)
		if (report->frames[i].nesting != REPORT_OBJECT)
			return true;
	return false;
}

static void line_value(struct report *report, const char *name, const struct report_value *value)
{
	if (left_out(report, value) || is_aside(report))
		return;
	name_what_is_begun(report, line_name);
	separate_in_line(report, report->depth);
	print_name(report->stream, name);
	fputc(' ', report->stream);
	print_value(report->stream, value);
	report_top(report)->shown++;
}

const struct report_format report_line = {
	.value = line_value,
	.sparing = true,
	.brief = true,
};
