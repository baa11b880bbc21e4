/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A report as text, and the calls that write it.
 *
 *   block, indented        pings: sent 3, answered 3
 *                          senders:
 *                            from 10.0.0.1, received 7
 *   a row of a table            3     1 us     2 us
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/reporting/reporting.h"
#include "cmd/run.h"
#include "core/terminal.h"
#include "core/units.h"
#include "core/wrap.h"

/* ---- the formats ---- */

enum {
	NAME_SIZE = 32
};

/* Bandwidths are in bits here; programs get bytes per second. Returns text. */
static const char *text_name(const char *name, enum report_kind kind, char text[NAME_SIZE])
{
	const char *bytes = kind == REPORT_BANDWIDTH ? strstr(name, "bytes") : NULL;

	log_text(text, NAME_SIZE, "%.*s%s", (int)(bytes ? (size_t)(bytes - name) : strlen(name)), name,
		 bytes ? "bandwidth" : "");
	for (char *at = text; (at = strchr(at, '_'));)
		*at = ' ';
	return text;
}

const char *reporting_value_text(struct report_value value, char text[REPORTING_VALUE_SIZE])
{
	switch (value.kind) {
	case REPORT_COUNT:
		return log_text(text, REPORTING_VALUE_SIZE, "%" PRIu64, value.number);
	case REPORT_TIME:
		return units_time((int64_t)value.number, text);
	case REPORT_RATE:
		return units_rate(value.rate, text);
	case REPORT_BANDWIDTH:
		return units_bandwidth(value.rate, text);
	case REPORT_TEXT:
		return log_text(text, REPORTING_VALUE_SIZE, "%s", value.text);
	case REPORT_FLAG:
		return value.number ? "yes" : "no";
	case REPORT_NONE:
		break;
	}
	return "-";
}

/* Begins an item of the object or list at that depth: its name, unless it is a list entry. */
static void block_item(struct report *report, unsigned depth, const char *name, enum report_kind kind,
		       const char *after)
{
	struct report_frame *outer = &report->frames[depth];
	const char *before = !depth ? "  " : outer->shown ? ", " : depth == 1 ? " " : "";
	char text[NAME_SIZE];

	outer->shown++;
	if (outer->nesting == REPORT_LIST) {
		fputs("\n    ", report->stream);
		return;
	}
	fprintf(report->stream, "%s%s%s", before, text_name(name, kind, text), after);
}

static void block_share(FILE *stream, uint64_t count, uint64_t whole)
{
	double percent = 100 * (double)count / (double)whole;
	bool tiny = count && percent < 0.01;

	fprintf(stream, " (%s%.3g%%)", tiny ? "<" : "", tiny ? 0.01 : percent);
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

/* Top-level texts (the command, the target) are for programs: the lines around the report have them. */
static void block_value(struct report *report, const char *name, struct report_value value)
{
	char text[REPORTING_VALUE_SIZE];

	if (value.kind == REPORT_NONE || (value.kind == REPORT_TEXT && !report->depth))
		return;
	/* The names of open objects and lists only precede their first value. */
	for (unsigned i = 1; i <= report->depth; i++)
		if (!report->frames[i].shown)
			block_item(report, i - 1, report->frames[i].name, REPORT_NONE, i > 1 ? " (" : ":");
	block_item(report, report->depth, name, value.kind, report->depth ? " " : ": ");
	fputs(reporting_value_text(value, text), report->stream);
	if (value.whole)
		block_share(report->stream, value.number, value.whole);
	if (!report->depth)
		fputc('\n', report->stream);
}

const struct report_format report_block = {
	.end = block_end,
	.value = block_value,
	.form = IN_BLOCK,
};

/*
 * A column for each value, even if unknown: rows of the same figures form a table. A value wider than its column uses
 * up the following blanks, except one, so that few columns shift.
 */
static void table_value(struct report *report, const char *name, struct report_value value)
{
	static const uint8_t widths[REPORT_NONE] = {
		[REPORT_COUNT] = 6,
		[REPORT_TIME] = 9,
		[REPORT_RATE] = 9,
		[REPORT_BANDWIDTH] = 11,
	};
	enum report_kind kind = value.kind == REPORT_NONE ? (enum report_kind)value.number : value.kind;
	char text[REPORTING_VALUE_SIZE], header[NAME_SIZE];
	int width = (int)strlen(text_name(name, kind, header)) + 1, blanks;
	const char *cell = report->header ? header : reporting_value_text(value, text);

	if ((kind == REPORT_TEXT && !report->depth) || report_in_list(report))
		return;
	if (width < widths[kind])
		width = widths[kind];
	if (report->columns && report->column + 1 + width > report->columns)
		return;
	report->column += 1 + width;
	blanks = width - (int)strlen(cell) - report->excess;
	report->excess = blanks < 0 ? -blanks : 0;
	fprintf(report->stream, " %*s%s", blanks < 0 ? 0 : blanks, "", cell);
}

const struct report_format report_table = {
	.closing = "\n",
	.value = table_value,
	.form = IN_ROW,
};

const struct report_format report_steps = {
	.closing = "\n",
	.value = table_value,
	.form = IN_STEP,
};

/* ---- blocks and rows ---- */

enum {
	ROWS_OF_HEADER = 20, /* on a terminal */
	WRAPPED_INDENT = 4,
	SECONDS_WIDTH = 12,
};

static void print_figures(struct reporting *reporting, FILE *stream, const struct report_format *format,
			  bool of_interval)
{
	report_open(&reporting->report, stream, format);
	reporting_add_figures(reporting, of_interval);
	report_close(&reporting->report);
}

static void print_block(struct reporting *reporting, FILE *stream, const char *title)
{
	char *note = reporting_network_note(reporting->run->transport), *rest = note, *line;
	char *text = NULL, time[UNITS_TEXT_SIZE], hint[REPORTING_HINT_SIZE];
	size_t size, width = terminal_width(fileno(stream));
	FILE *unwrapped = width ? open_memstream(&text, &size) : NULL;

	fprintf(stream, "%s: %s %s:\n", reporting->run->log.name, title,
		units_time(clock_now() - reporting->run->begun, time));
	reporting->report.columns = (int)width;
	print_figures(reporting, unwrapped ? unwrapped : stream, &report_block, false);
	reporting_network_hint(reporting->run->transport, note, true, hint);
	while ((line = strsep(&rest, "\n")) && *line)
		fprintf(unwrapped ? unwrapped : stream, "  network %s\n", line);
	if (*hint)
		fprintf(unwrapped ? unwrapped : stream, "  hint: %s\n", hint);
	free(note);
	if (WITH_EXTRAS)
		reporting_print_processor(unwrapped ? unwrapped : stream);
	if (unwrapped) {
		fclose(unwrapped);
		rest = text;
		while ((line = strsep(&rest, "\n")) && *line)
			wrap_print(&(struct output){ .stream = stream }, width, 0, WRAPPED_INDENT, ',', line);
		free(text);
	}
}

void reporting_print_current(struct reporting *reporting)
{
	output_end_echo(reporting->run->output);
	print_block(reporting, reporting_is_text(reporting) ? reporting->run->output->stream : stderr, "so far, in");
}

void reporting_text_summary(struct reporting *reporting)
{
	print_block(reporting, reporting->run->output->stream, "summary of");
}

/* A step's row has no time: its figures identify it. */
static void text_row(struct reporting *reporting, bool header)
{
	int decimals = reporting->live || reporting->options->interval >= CLOCK_NS_PER_S ? 1 : 2, width = 0;
	FILE *stream = reporting->run->output->stream;
	struct report *report = &reporting->report;
	int64_t begun = reporting->run->begun;

	report->header = header;
	if (!report->of_steps && header)
		width = fprintf(stream, "%-*s", SECONDS_WIDTH, "    seconds");
	else if (!report->of_steps)
		width = fprintf(stream, "%5.*f-%-6.*f", decimals, units_seconds(report->interval_began - begun),
				decimals, units_seconds(report->interval_ended - begun));
	report->excess = width > SECONDS_WIDTH ? width - SECONDS_WIDTH : 0;
	report->column = report->of_steps ? 0 : SECONDS_WIDTH;
	report->columns = (int)terminal_width(fileno(stream));
	print_figures(reporting, stream, report->of_steps ? &report_steps : &report_table, true);
}

/*
 * With --interval-report there is a row for each interval, on a terminal without it for each second in which data moves
 * or is waited for. The rest of the run has one if something has been counted in it; with --interval-report a run has
 * one row at least, without it none below a second.
 */
static bool has_row(const struct reporting *reporting)
{
	struct figures figures = reporting_figures(reporting);
	bool counted = figures.before && figures_increased(figures.rows, figures.values, figures.before);

	if (reporting->live == LIVE_STEPS)
		return counted;
	if (reporting->last_interval)
		return reporting->live ? counted && reporting->rows : counted || !reporting->rows;
	return !reporting->live || counted || figures.under_way;
}

void reporting_text_interval(struct reporting *reporting)
{
	if (!has_row(reporting))
		return;
	if (!reporting->rows ||
	    (!reporting->report.of_steps && reporting->rows % ROWS_OF_HEADER == 0 && isatty(STDOUT_FILENO)))
		text_row(reporting, true);
	reporting->rows++;
	text_row(reporting, false);
}
