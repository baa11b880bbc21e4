/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/command.h"
#include "cmd/reporting/reporting.h"

/* Adds the figures of a row; csv_end() adds the verdict, which the last row gets later. */
static void csv_begin(struct reporting *reporting, FILE *stream, const struct report_format *format, const char *record,
		      bool of_interval)
{
	report_open(&reporting->report, stream, format);
	report_text(&reporting->report, "record", record);
	reporting_add_head(reporting);
	reporting_add_figures(reporting, of_interval);
}

static void csv_end(struct reporting *reporting)
{
	const struct kept_error *first = reporting->errors.first;
	char text[ERROR_TEXT_SIZE];

	reporting_add_verdict(reporting);
	report_count(&reporting->report, "error_count", reporting->errors.count);
	report_text(&reporting->report, "error", first ? error_text(&first->error, text) : NULL);
	report_close(&reporting->report);
}

static void csv_print_header(struct reporting *reporting)
{
	if (reporting->header_printed)
		return;
	reporting->header_printed = true;
	csv_begin(reporting, stdout, &report_csv_names, "", false);
	csv_end(reporting);
}

static void interval(struct reporting *reporting)
{
	csv_print_header(reporting);
	csv_begin(reporting, stdout, &report_csv_values, "interval", true);
	csv_end(reporting);
	fflush(stdout);
}

static void csv_finish(struct reporting *reporting)
{
	csv_print_header(reporting);
	csv_begin(reporting, reporting->last.stream, &report_csv_values, "summary", false);
}

const struct reporting_form reporting_csv = {
	.interval = interval,
	.finish = csv_finish,
	.close = csv_end,
};
