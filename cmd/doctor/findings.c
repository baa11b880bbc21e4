/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/doctor/doctor.h"

#include <stdlib.h>
#include <string.h>

#include "core/terminal.h"
#include "core/wrap.h"

enum {
	INDENT = 16 /* columns before a finding's text */
};

static const char *const status_names[FINDING_STATUSES] = { "read", "OK", "WARN", "FAIL" };

static void report_finding(struct report *report, const struct finding *finding)
{
	char text[ERROR_TEXT_SIZE];

	report_text(report, "check", finding->error.object);
	report_text(report, "status", status_names[finding->status]);
	report_text(report, "text", error_text(&finding->error, text));
	report_text(report, "remedy", finding->error.hint);
}

/* A failure is also an error of the run. With --quiet the error is printed instead of the finding. */
static void report_failure(const struct doctor *doctor, const struct finding *finding)
{
	const struct log *log = &doctor->run->log;

	if (doctor->options->common.reporting.quiet)
		log_report(log, &finding->error);
	else
		log_keep(log, &finding->error);
}

/* Reads the terminal's width each time: it may change. */
static void print_line(struct doctor *doctor, const char *status, const char *check, const char *text)
{
	struct output *output = doctor->run->output;

	output_print(output, "%-4s  %-8s  ", status, check);
	wrap_print(output, terminal_width(fileno(output->stream)), INDENT, INDENT, 0, text);
}

static void print_finding(struct doctor *doctor, const struct finding *finding)
{
	struct report *record = run_begin_record(doctor->run, "finding");
	char text[ERROR_TEXT_SIZE], hint[ERROR_HINT_SIZE];

	if (record) {
		report_finding(record, finding);
		report_close(record);
	}
	if (doctor->findings.new_group)
		run_print(doctor->run, "%s", "");
	print_line(doctor, status_names[finding->status], finding->error.object, error_text(&finding->error, text));
	if (*finding->error.hint)
		print_line(doctor, "", "", log_text(hint, sizeof(hint), "hint: %s", finding->error.hint));
	if (finding->status == FINDING_FAIL)
		report_failure(doctor, finding);
	doctor->findings.new_group = false;
}

void finding_found(struct host *host, enum finding_status status, const struct error *error)
{
	struct doctor *doctor = doctor_of(host);
	struct findings *findings = &doctor->findings;
	struct finding *finding;

	if (doctor->run->ended)
		return;
	finding = calloc(1, sizeof(*finding));
	findings->counts[status]++;
	if (!finding) {
		run_record_outcome(doctor->run, OUTCOME_INTERNAL);
		return;
	}
	finding->status = status;
	finding->error = *error;
	if (findings->last)
		findings->last->next = finding;
	else
		findings->first = finding;
	findings->last = finding;
	print_finding(doctor, finding);
}

void finding_add_error(struct doctor *doctor, enum finding_status status, const char *check, const struct error *error)
{
	/* The text is "OBJECT: PHASE: CAUSE"; the first two may be "". Then come the remedy and the code. */
	finding_add(doctor, status, check, "%s%s%s%s%s\n%s\n%s", error->object, *error->object ? ": " : "",
		    error->phase, *error->phase ? ": " : "", error->cause, error->hint, error->code);
}

uint64_t findings_count(const struct findings *findings)
{
	uint64_t count = 0;

	for (unsigned status = 0; status < FINDING_STATUSES; status++)
		count += findings->counts[status];
	return count;
}

void findings_report(struct report *report, const void *member)
{
	const struct findings *findings = member;

	for (const struct finding *finding = findings->first; finding; finding = finding->next) {
		report_object(report, NULL);
		report_finding(report, finding);
		report_end(report);
	}
}

void findings_free(struct findings *findings)
{
	while (findings->first) {
		struct finding *finding = findings->first;

		findings->first = finding->next;
		free(finding);
	}
}
