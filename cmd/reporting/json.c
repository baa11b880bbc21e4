/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON (RFC 8259): a report as one object on one line, and the calls that write such lines. */
#include <stdlib.h>
#include <time.h>

#include "cmd/command.h"
#include "cmd/reporting/reporting.h"

/* ---- the format ---- */

/* Returns the length of the UTF-8 sequence at text, or 0 if it is not valid (RFC 3629: surrogates, overlong forms). */
static size_t json_sequence_length(const char *string)
{
	static const uint32_t first[] = { 0, 0, 0x80, 0x800, 0x10000, 0x110000 }; /* lowest character of each length */
	const unsigned char *text = (const unsigned char *)string;
	size_t length = (size_t)__builtin_clz(~((uint32_t)*text << 24)); /* the leading ones of the first byte */
	uint32_t character = *text & (0x7fu >> length);

	if (!length)
		return 1;
	if (length == 1 || length > 4)
		return 0;
	for (size_t i = 1; i < length; i++) {
		if (text[i] >> 6 != 2)
			return 0;
		character = character << 6 | (text[i] & 0x3f);
	}
	return character < first[length] || character >= first[5] || character >> 11 == 0xd800 >> 11 ? 0 : length;
}

/* Text from peers and users may contain any bytes: those that are not UTF-8 become the replacement character. */
static void json_string(FILE *stream, const char *text)
{
	fputc('"', stream);
	while (*text) {
		size_t length = json_sequence_length(text);

		if (!length)
			fputs("\\ufffd", stream);
		else if (length == 1 && *text < ' ')
			fprintf(stream, "\\u%04x", (unsigned)*text);
		else
			fprintf(stream, "%s%.*s", *text == '"' || *text == '\\' ? "\\" : "", (int)length, text);
		text += length ? length : 1;
	}
	fputc('"', stream);
}

/* Begins an item; its name is NULL in a list. */
static void json_name(struct report *report, const char *name, enum report_kind kind)
{
	if (report->separates)
		fputc(',', report->stream);
	report->separates = true;
	if (!name)
		return;
	fputc('"', report->stream);
	report_print_name(report->stream, name, kind, "_ns");
	fputs("\":", report->stream);
}

static void json_begin(struct report *report, const char *name, enum report_nesting nesting)
{
	json_name(report, name, REPORT_NONE);
	fputc(nesting == REPORT_LIST ? '[' : '{', report->stream);
	report->separates = false;
}

static void json_end(struct report *report)
{
	fputc(report_top(report)->nesting == REPORT_LIST ? ']' : '}', report->stream);
	report->separates = true;
}

static void json_value(struct report *report, const char *name, struct report_value value)
{
	json_name(report, name, value.kind == REPORT_NONE ? (enum report_kind)value.number : value.kind);
	if (value.kind == REPORT_TEXT)
		json_string(report->stream, value.text);
	else if (value.kind == REPORT_NONE)
		fputs("null", report->stream);
	else if (value.kind == REPORT_FLAG)
		fputs(value.number ? "true" : "false", report->stream);
	else
		report_print_number(report->stream, value);
}

const struct report_format report_json = {
	.opening = "{",
	.closing = "}\n",
	.begin = json_begin,
	.end = json_end,
	.value = json_value,
	.form = IN_JSON,
};

/* ---- the records ---- */

/* Converts a time on the clock to wall-clock time, by their present difference: RFC 3339. */
static const char *wall_time(int64_t at, char text[REPORTING_WALL_TIME_SIZE])
{
	struct timespec now;
	struct tm parts;

	clock_gettime(CLOCK_REALTIME, &now);
	now = clock_timespec(now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec - (clock_now() - at));
	gmtime_r(&now.tv_sec, &parts);
	return log_text(text, REPORTING_WALL_TIME_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900,
			parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
			(int)(now.tv_nsec / CLOCK_NS_PER_MS));
}

void reporting_json_begin(struct reporting *reporting)
{
	wall_time(reporting->run->begun, reporting->start);
}

static void open_record(struct reporting *reporting, FILE *stream, const char *type)
{
	report_open(&reporting->report, stream, &report_json);
	report_text(&reporting->report, "type", type);
}

/* Fields of a stream's first record, and of a summary. */
static void add_first(struct reporting *reporting)
{
	const struct run *run = reporting->run;
	struct report *report = &reporting->report;

	report_count(report, "schema", REPORTING_SCHEMA);
	report_text(report, "command", run->command->name);
	report_text(report, "version", RDMATEST_VERSION RDMATEST_COMMIT);
	report_text(report, "transport", run->transport ? transport_name(run->transport) : NULL);
	report_text(report, "start", reporting->start);
	report_time(report, "duration", clock_now() - run->begun);
}

static void open_first(struct reporting *reporting, FILE *stream, const char *type)
{
	open_record(reporting, stream, type);
	add_first(reporting);
}

/* Adds the intervals kept by reporting_json_interval(), a line each. */
static void add_steps(struct reporting *reporting)
{
	report_list(&reporting->report, "intervals");
	if (reporting->steps)
		fclose(reporting->steps);
	for (size_t i = 0; i + 1 < reporting->steps_length; i++)
		fputc(reporting->steps_text[i] == '\n' ? ',' : reporting->steps_text[i], reporting->report.stream);
	free(reporting->steps_text);
	report_end(&reporting->report);
}

static void json_error(struct report *report, const struct error *error)
{
	char text[ERROR_TEXT_SIZE];

	report_text(report, "object", error->object);
	report_text(report, "phase", error->phase);
	report_text(report, "cause", error->cause);
	report_text(report, "code", error->code);
	report_text(report, "text", error_text(error, text));
	report_text(report, "hint", error->hint);
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

static void add_results(struct reporting *reporting)
{
	const struct reporting_processor processor = reporting_processor();
	struct report *report = &reporting->report;
	char *note = reporting_network_note(reporting->run->transport);

	reporting_add_figures(reporting, false);
	reporting_add_network(reporting);
	report_text(report, "network_note", note);
	report_time(report, "processor", processor.ran);
	report_time(report, "processor_wait", processor.waited);
	free(note);
}

void reporting_json_add(struct reporting *reporting)
{
	add_first(reporting);
	add_results(reporting);
}

char *reporting_json_summary(struct reporting *reporting)
{
	const struct run *run = reporting->run;
	struct report *report = &reporting->report;
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	open_first(reporting, stream ? stream : stdout, "summary");
	add_results(reporting);
	if (reporting->options->json && report->of_steps)
		add_steps(reporting);
	report_text(report, "verdict", run->outcome ? "fail" : "pass");
	report_count(report, "exit_code", (uint64_t)run->outcome);
	add_errors(report, run->log.errors);
	report_close(report);
	if (stream)
		fclose(stream);
	return text;
}

void reporting_json_start(struct reporting *reporting)
{
	open_first(reporting, stdout, "start");
	report_close(&reporting->report);
}

static struct report *begin_record(struct reporting *reporting, FILE *stream, const char *type, int64_t now)
{
	open_record(reporting, stream, type);
	report_time(&reporting->report, "at", now - reporting->run->begun);
	return &reporting->report;
}

struct report *reporting_begin_record(struct reporting *reporting, const char *type)
{
	bool has_records = reporting && reporting->options->json_stream;

	return has_records ? begin_record(reporting, stdout, type, clock_now()) : NULL;
}

/* --json's object has the intervals of a run in steps. */
static FILE *interval_stream(struct reporting *reporting)
{
	if (reporting->options->json_stream)
		return stdout;
	if (reporting->report.of_steps && !reporting->steps)
		reporting->steps = open_memstream(&reporting->steps_text, &reporting->steps_length);
	return reporting->steps;
}

void reporting_json_interval(struct reporting *reporting)
{
	FILE *stream = interval_stream(reporting);
	struct report *report;
	char start[REPORTING_WALL_TIME_SIZE];

	if (!stream)
		return;
	report = begin_record(reporting, stream, "interval", reporting->report.interval_ended);
	report_text(report, "start", wall_time(report->interval_began, start));
	report_time(report, "from", report->interval_began - reporting->run->begun);
	reporting_add_figures(reporting, true);
	report_close(report);
}

void reporting_json_error(void *reporting, const struct error *error)
{
	struct report *report = begin_record(reporting, stdout, "error", clock_now());

	json_error(report, error);
	report_close(report);
}
