/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/command.h"
#include "cmd/reporting/reporting.h"

/* Figures first: how it ended is known after them. */
static void begin(struct reporting *reporting, FILE *stream, const struct report_format *format, const char *record,
		  enum report_span span)
{
	report_open(&reporting->report, stream, format);
	report_text(&reporting->report, "record", record);
	reporting_add_head(reporting);
	reporting_add_figures(reporting, span);
}

static void end(struct reporting *reporting)
{
	const struct kept_error *first = reporting->errors.first;
	char text[ERROR_TEXT_SIZE];

	reporting_add_verdict(reporting);
	report_count(&reporting->report, "error_count", reporting->errors.count);
	report_text(&reporting->report, "error", first ? error_text(&first->error, text) : NULL);
	report_close(&reporting->report);
}

static void name_columns(struct reporting *reporting)
{
	if (reporting->columns_named)
		return;
	reporting->columns_named = true;
	begin(reporting, stdout, &report_csv_names, "", REPORT_TOTAL);
	end(reporting);
}

static void interval(struct reporting *reporting)
{
	name_columns(reporting);
	begin(reporting, stdout, &report_csv_values, "interval", REPORT_INTERVAL);
	end(reporting);
	fflush(stdout);
}

static void finish(struct reporting *reporting)
{
	name_columns(reporting);
	begin(reporting, reporting->last.stream, &report_csv_values, "summary", REPORT_TOTAL);
}

const struct reporting_form reporting_csv = {
	.interval = interval,
	.finish = finish,
	.conclude = end,
};
