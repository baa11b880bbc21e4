/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "cmd/command.h"
#include "cmd/reporting/reporting.h"

static void open_record(struct reporting *reporting, FILE *stream, const char *type)
{
	report_open(&reporting->report, stream, &report_json);
	report_text(&reporting->report, "type", type);
}

/* Opens the first record of a stream, or a summary. */
static void open_first(struct reporting *reporting, FILE *stream, const char *type)
{
	open_record(reporting, stream, type);
	report_count(&reporting->report, "schema", REPORTING_SCHEMA);
	reporting_add_head(reporting);
}

static void close_record(struct reporting *reporting)
{
	report_close(&reporting->report);
	fflush(stdout);
}

static void begin_summary(struct reporting *reporting)
{
	open_first(reporting, reporting->last.stream, "summary");
	reporting_add_figures(reporting, false);
}

/* Adds the intervals that keep_interval() has kept, a line each. */
static void begin_summary_of_steps(struct reporting *reporting)
{
	begin_summary(reporting);
	if (!reporting->report.of_steps)
		return;
	report_list(&reporting->report, "intervals");
	if (reporting->steps)
		fclose(reporting->steps);
	for (size_t i = 0; i + 1 < reporting->steps_length; i++)
		fputc(reporting->steps_text[i] == '\n' ? ',' : reporting->steps_text[i], reporting->last.stream);
	free(reporting->steps_text);
	report_end(&reporting->report);
}

static void report_nonempty(struct report *report, const char *name, const char *text)
{
	report_text(report, name, *text ? text : NULL);
}

static void json_error(struct report *report, const struct error *error)
{
	char text[ERROR_TEXT_SIZE];

	report_nonempty(report, "object", error->object);
	report_nonempty(report, "phase", error->phase);
	report_text(report, "cause", error->cause);
	report_nonempty(report, "code", error->code);
	report_text(report, "text", error_text(error, text));
	report_nonempty(report, "hint", error->hint);
	report_text(report, "part", error->part);
}

static void add_errors(struct report *report, const struct errors *errors)
{
	report_count(report, "error_count", errors->count);
	report_list(report, "errors");
	for (uint64_t i = 0; i < errors->count && i < 2; i++) {
		report_object(report, NULL);
		json_error(report, i ? &errors->last : &errors->first);
		report_end(report);
	}
	report_end(report);
}

static void end_summary(struct reporting *reporting)
{
	reporting_add_verdict(reporting);
	add_errors(&reporting->report, reporting->environment->log.errors);
	report_close(&reporting->report);
}

static void stream_start(struct reporting *reporting)
{
	open_first(reporting, stdout, "start");
	close_record(reporting);
}

static struct report *begin_record(struct reporting *reporting, FILE *stream, const char *type)
{
	open_record(reporting, stream, type);
	report_time(&reporting->report, "at", clock_now() - reporting->started);
	return &reporting->report;
}

struct report *reporting_begin_record(struct reporting *reporting, const char *type)
{
	bool has_records = reporting && reporting->form == &reporting_json_stream;

	return has_records ? begin_record(reporting, stdout, type) : NULL;
}

void reporting_end_record(struct reporting *reporting)
{
	close_record(reporting);
}

static void print_json_interval(struct reporting *reporting, FILE *stream)
{
	struct report *report = begin_record(reporting, stream, "interval");

	report_time(report, "from", reporting->report.interval_began - reporting->started);
	reporting_add_figures(reporting, true);
	close_record(reporting);
}

static void stream_interval(struct reporting *reporting)
{
	print_json_interval(reporting, stdout);
}

static void keep_interval(struct reporting *reporting)
{
	if (reporting->report.of_steps && !reporting->steps)
		reporting->steps = open_memstream(&reporting->steps_text, &reporting->steps_length);
	if (reporting->steps)
		print_json_interval(reporting, reporting->steps);
}

static void stream_error(struct reporting *reporting, const struct error *error)
{
	json_error(reporting_begin_record(reporting, "error"), error);
	reporting_end_record(reporting);
}

const struct reporting_form reporting_json = {
	.interval = keep_interval,
	.finish = begin_summary_of_steps,
	.close = end_summary,
};

const struct reporting_form reporting_json_stream = {
	.start = stream_start,
	.interval = stream_interval,
	.error = stream_error,
	.finish = begin_summary,
	.close = end_summary,
};
