/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/command.h"
#include "cmd/reporting/reporting.h"

static void line(struct reporting *reporting, const struct report_format *format, const char *record,
		 enum report_span span)
{
	const struct told_error *error = reporting->told.first;

	report_open(&reporting->report, stdout, format);
	report_text(&reporting->report, "record", record);
	reporting_add_head(reporting);
	reporting_add_verdict(reporting);
	report_text(&reporting->report, "error", error ? error->text : NULL);
	reporting_add_figures(reporting, span);
	report_close(&reporting->report);
	fflush(stdout);
}

static void row(struct reporting *reporting, const char *record, enum report_span span)
{
	if (!reporting->columns_named)
		line(reporting, &report_csv_names, record, span);
	reporting->columns_named = true;
	line(reporting, &report_csv_values, record, span);
}

static void interval(struct reporting *reporting)
{
	row(reporting, "interval", REPORT_INTERVAL);
}

static void finish(struct reporting *reporting)
{
	row(reporting, "summary", REPORT_TOTAL);
}

const struct reporting_form reporting_csv = {
	.interval = interval,
	.finish = finish,
};
