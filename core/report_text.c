/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A report as text.
 *
 *   block, indented        pings: sent 3, answered 3
 *                          senders:
 *                            from 10.0.0.1, received 7
 *   line                   pings: sent 3, answered 3; round trip: min 1 us
 */
#include <inttypes.h>
#include <stddef.h>

#include "core/figures.h"
#include "core/units.h"

static void text_name(FILE *stream, const char *name)
{
	for (; *name; name++)
		fputc(*name == '_' ? ' ' : *name, stream);
}

static void print_value(FILE *stream, struct report_value value)
{
	char text[UNITS_TEXT_SIZE];

	switch (value.kind) {
	case REPORT_COUNT:
		fprintf(stream, "%" PRIu64, value.number);
		break;
	case REPORT_TIME:
		fputs(units_time((int64_t)value.number, text), stream);
		break;
	case REPORT_RATE:
		fputs(units_rate(value.rate, text), stream);
		break;
	case REPORT_BANDWIDTH:
		fputs(units_bandwidth(value.rate, text), stream);
		break;
	case REPORT_TEXT:
		fputs(value.text, stream);
		break;
	case REPORT_FLAG:
		fputs(value.number ? "yes" : "no", stream);
		break;
	case REPORT_NONE:
		break;
	}
}

/* Top-level texts (the command, the target) are for programs: a person finds them in the lines around the report. */
static bool is_omitted(const struct report *report, struct report_value value)
{
	return value.kind == REPORT_NONE || (value.kind == REPORT_TEXT && !report->depth);
}

/* Prints the names of the open objects and lists that have none yet: a name is printed before the first value only. */
static void print_pending_names(struct report *report, void (*print_one)(struct report *report, unsigned depth))
{
	for (unsigned i = 1; i <= report->depth; i++) {
		if (report->frames[i].shown)
			continue;
		print_one(report, i);
		report->frames[i - 1].shown++;
	}
}

/* Prints the separator before an item. */
static void text_separate(struct report *report, unsigned depth)
{
	if (report->frames[depth].shown)
		fputs(", ", report->stream);
	else if (depth == 1)
		fputc(' ', report->stream);
}

static void name_block(FILE *stream, const char *name)
{
	fputs("  ", stream);
	text_name(stream, name);
	fputc(':', stream);
}

/* The name of a list is printed before its first entry. */
static void block_name(struct report *report, unsigned depth)
{
	const struct report_frame *frame = &report->frames[depth];
	const struct report_frame *outer = frame - 1;

	if (outer->nesting == REPORT_LIST) {
		if (!outer->shown)
			name_block(report->stream, outer->name);
		fputs("\n    ", report->stream);
	} else if (depth > 1) {
		text_separate(report, depth - 1);
		text_name(report->stream, frame->name);
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

static void block_value(struct report *report, const char *name, struct report_value value)
{
	if (is_omitted(report, value))
		return;
	print_pending_names(report, block_name);
	if (report->depth)
		text_separate(report, report->depth);
	else
		fputs("  ", report->stream);
	text_name(report->stream, name);
	fputs(report->depth ? " " : ": ", report->stream);
	print_value(report->stream, value);
	if (!report->depth)
		fputc('\n', report->stream);
	report_top(report)->shown++;
}

const struct report_format report_block = {
	.end = block_end,
	.value = block_value,
	.omits_empty = true,
	.draws_buckets = true,
	.without = FIGURE_NOT_TEXT,
};

static void line_separate(struct report *report, unsigned depth)
{
	bool first = !report->frames[depth].shown;

	if (depth)
		fputs(first ? " " : ", ", report->stream);
	else
		fputs(first ? "" : "; ", report->stream);
}

static void line_name(struct report *report, unsigned depth)
{
	line_separate(report, depth - 1);
	text_name(report->stream, report->frames[depth].name);
	fputc(':', report->stream);
}

static void line_value(struct report *report, const char *name, struct report_value value)
{
	if (is_omitted(report, value) || report_in_list(report))
		return;
	print_pending_names(report, line_name);
	line_separate(report, report->depth);
	text_name(report->stream, name);
	fputc(' ', report->stream);
	print_value(report->stream, value);
	report_top(report)->shown++;
}

const struct report_format report_line = {
	.value = line_value,
	.omits_empty = true,
	.brief = true,
	.without = FIGURE_NOT_TEXT | FIGURE_NOT_LINE,
};
