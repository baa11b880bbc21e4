/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/output.h"
#include "cmd/reporting/reporting.h"
#include "core/units.h"
#include "core/wrap.h"

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
	char *text = NULL, *rest, *line, time[UNITS_TEXT_SIZE];
	size_t size;
	FILE *unwrapped = isatty(fileno(stream)) ? open_memstream(&text, &size) : NULL;

	fprintf(stream, "%s: %s %s:\n", reporting->environment->log.name, title,
		units_time(clock_now() - reporting->started, time));
	print_figures(reporting, unwrapped ? unwrapped : stream, &report_block, false);
	if (unwrapped) {
		fclose(unwrapped);
		rest = text;
		while ((line = strsep(&rest, "\n")) && *line)
			wrap_print(stream, 0, WRAPPED_INDENT, ',', line);
		free(text);
	}
}

void reporting_print_current(struct reporting *reporting)
{
	bool for_program = reporting->form != &reporting_text;

	output_end_echo(reporting->environment->output);
	print_block(reporting, for_program ? stderr : reporting->environment->output, "so far, in");
}

static void text_summary(struct reporting *reporting)
{
	if (reporting->command->figures)
		print_block(reporting, reporting->environment->output, "summary of");
}

/* A step has no time of its own: its figures say which it is. */
static void print_interval(struct reporting *reporting, FILE *stream)
{
	int decimals = reporting->live || reporting->options->interval >= CLOCK_NS_PER_S ? 1 : 2;
	bool of_step = reporting->report.of_steps;
	int width = 0;

	if (!of_step && reporting->report.header)
		width = fprintf(stream, "%-*s", SECONDS_WIDTH, "    seconds");
	else if (!of_step)
		width = fprintf(stream, "%5.*f-%-6.*f", decimals,
				units_seconds(reporting->report.interval_began - reporting->started), decimals,
				units_seconds(clock_now() - reporting->started));
	reporting->report.excess = width > SECONDS_WIDTH ? width - SECONDS_WIDTH : 0;
	print_figures(reporting, stream, of_step ? &report_steps : &report_table, true);
}

static void print_header(struct reporting *reporting, FILE *stream)
{
	reporting->report.header = true;
	print_interval(reporting, stream);
	reporting->report.header = false;
}

/*
 * With --interval-report there is a row for each interval, but for the rest of the run only if something has been
 * counted in it. On a terminal without it that holds for each row, and a run below a second has none.
 */
static bool has_row(const struct reporting *reporting)
{
	bool rest = reporting->environment->ended;
	struct figures figures = reporting->command->figures(reporting->state);
	bool counted = figures.before && figures_increased(figures.rows, figures.values, figures.before);

	if (reporting->live)
		return counted && (!rest || reporting->rows || reporting->live == LIVE_STEPS);
	return counted || !rest || !reporting->rows;
}

static void text_interval(struct reporting *reporting)
{
	FILE *stream = reporting->environment->output;

	if (!has_row(reporting))
		return;
	if (!reporting->rows ||
	    (!reporting->report.of_steps && reporting->rows % ROWS_OF_HEADER == 0 && isatty(STDOUT_FILENO)))
		print_header(reporting, stream);
	reporting->rows++;
	print_interval(reporting, stream);
}

const struct reporting_form reporting_text = {
	.interval = text_interval,
	.summary = text_summary,
};
