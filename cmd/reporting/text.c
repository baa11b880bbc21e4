/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/command.h"
#include "cmd/reporting/reporting.h"
#include "core/units.h"

void reporting_print_figures(struct reporting *reporting, FILE *stream, const struct report_format *format,
			     bool of_interval)
{
	report_open(&reporting->report, stream, format);
	reporting_add_figures(reporting, of_interval);
	report_close(&reporting->report);
}

static void print_block(struct reporting *reporting, FILE *stream, const char *title)
{
	char time[UNITS_TEXT_SIZE];

	fprintf(stream, "%s: %s %s:\n", reporting->environment->log.name, title,
		units_time(clock_now() - reporting->started, time));
	reporting_print_figures(reporting, stream, &report_block, false);
	fflush(stream);
}

void reporting_print_current(struct reporting *reporting)
{
	bool for_program = reporting->form != &reporting_text;

	reporting_clear(reporting);
	print_block(reporting, for_program ? stderr : reporting->environment->output, "so far, in");
}

static void text_summary(struct reporting *reporting)
{
	if (reporting->command->figures)
		print_block(reporting, reporting->environment->output, "summary of");
}

static void text_interval(struct reporting *reporting)
{
	FILE *stream = reporting->environment->output;
	double from = units_seconds(reporting->report.interval_began - reporting->started);
	double to = units_seconds(clock_now() - reporting->started);

	fprintf(stream, "%s: %.2f s to %.2f s: ", reporting->environment->log.name, from, to);
	reporting_print_figures(reporting, stream, &report_line, true);
	fputc('\n', stream);
}

const struct reporting_form reporting_text = {
	.interval = text_interval,
	.summary = text_summary,
};
