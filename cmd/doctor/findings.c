/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/doctor/findings.h"

#include <stdarg.h>
#include <stdlib.h>

#include "cmd/doctor/sysfs.h"

static const char *const status_names[FINDING_STATUSES] = { "OK", "WARN", "FAIL" };

static void report_finding(struct report *report, const struct finding *finding)
{
	char text[ERROR_TEXT_SIZE];

	report_text(report, "check", finding->error.object);
	report_text(report, "status", status_names[finding->status]);
	report_text(report, "text", error_text(&finding->error, text));
	report_text(report, "remedy", *finding->remedy ? finding->remedy : NULL);
}

/* A failure is also an error of the run. With --quiet the error is printed instead of the finding. */
static void report_failure(const struct findings *findings, const struct finding *finding)
{
	struct environment *environment = findings->environment;

	if (findings->quiet)
		log_report(&environment->log, &finding->error);
	else
		reporting_record_error(environment->reporting, NULL, &finding->error);
	if (*finding->remedy && findings->quiet)
		log_hint(&environment->log, "%s", finding->remedy);
	else if (*finding->remedy)
		reporting_record_hint(environment->reporting, finding->remedy);
}

static void print_finding(struct findings *findings, const struct finding *finding)
{
	FILE *output = environment_output(findings->environment);
	struct report *record = environment_begin_record(findings->environment, "finding");
	char text[ERROR_TEXT_SIZE];

	if (record) {
		report_finding(record, finding);
		environment_end_record(findings->environment);
	}
	fprintf(output, "%s%-4s  %-8s  %s\n", findings->new_group ? "\n" : "", status_names[finding->status],
		finding->error.object, error_text(&finding->error, text));
	if (*finding->remedy)
		fprintf(output, "%16sfix: %s\n", "", finding->remedy);
	if (finding->status == FINDING_FAIL)
		report_failure(findings, finding);
	findings->new_group = false;
}

void finding_add_error(struct findings *findings, enum finding_status status, const char *check, const char *remedy,
		       const struct error *error)
{
	struct finding *finding = calloc(1, sizeof(*finding));

	findings->counts[status]++;
	if (!finding) {
		environment_note(findings->environment, OUTCOME_INTERNAL);
		return;
	}
	finding->status = status;
	log_text(finding->error.object, sizeof(finding->error.object), "%s", check);
	log_text(finding->error.cause, sizeof(finding->error.cause), "%s%s%s%s%s", error->object,
		 *error->object ? ": " : "", error->phase, *error->phase ? ": " : "", error->cause);
	log_text(finding->error.code, sizeof(finding->error.code), "%s", error->code);
	log_text(finding->remedy, sizeof(finding->remedy), "%s", remedy ? remedy : "");
	sysfs_clean_text(finding->error.cause);
	sysfs_clean_text(finding->remedy);
	if (findings->last)
		findings->last->next = finding;
	else
		findings->first = finding;
	findings->last = finding;
	print_finding(findings, finding);
}

void finding_add(struct findings *findings, enum finding_status status, const char *check, const char *remedy,
		 const char *format, ...)
{
	struct error error = { .phase = "" };
	va_list list;

	va_start(list, format);
	log_text_list(error.cause, sizeof(error.cause), format, list);
	va_end(list);
	finding_add_error(findings, status, check, remedy, &error);
}

const char *finding_remedy(struct findings *findings, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	log_text_list(findings->remedy, sizeof(findings->remedy), format, list);
	va_end(list);
	return findings->remedy;
}

static void probe_keep_error(const struct log *log, const struct error *error)
{
	struct probe *probe = log->context;

	if (!probe->failed)
		probe->error = *error;
	probe->failed = true;
}

static void probe_keep_hint(const struct log *log, const char *text)
{
	struct probe *probe = log->context;

	if (!*probe->hint)
		log_text(probe->hint, sizeof(probe->hint), "%s", text);
}

void finding_begin_probe(struct findings *findings)
{
	static const struct log_sink sink = { .error = probe_keep_error, .hint = probe_keep_hint };

	findings->probe = (struct probe){ .log = findings->environment->log };
	findings->probe.log.sink = &sink;
	findings->probe.log.context = &findings->probe;
}

void finding_add_probe(struct findings *findings, enum finding_status status, const char *check, const char *remedy)
{
	const struct probe *probe = &findings->probe;

	finding_add_error(findings, status, check, *probe->hint ? probe->hint : remedy, &probe->error);
}

uint64_t findings_count(const struct findings *findings)
{
	return findings->counts[FINDING_OK] + findings->counts[FINDING_WARN] + findings->counts[FINDING_FAIL];
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
