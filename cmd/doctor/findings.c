/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/doctor/findings.h"

#include <stdarg.h>
#include <stdlib.h>

#include "cmd/doctor/sysfs.h"

static const char *const status_names[FINDING_STATUSES] = { "OK", "WARN", "FAIL" };

static void report_finding(struct report *report, const struct finding *finding)
{
	report_text(report, "check", finding->check);
	report_text(report, "status", status_names[finding->status]);
	report_text(report, "text", finding->text);
	report_text(report, "remedy", *finding->remedy ? finding->remedy : NULL);
}

/* A failure is an error of the run too, but it is said once. */
static void tell_failure(const struct findings *findings, const struct finding *finding)
{
	const struct log *log = &findings->environment->log;

	if (findings->loud) {
		log_error(log, finding->check, "%s", finding->text);
		if (*finding->remedy)
			log_hint(log, "%s", finding->remedy);
	} else if (log->heard) {
		log->heard(log, finding->check, finding->text);
		if (*finding->remedy)
			log->heard(log, log_hint_object, finding->remedy);
	}
}

static void tell(struct findings *findings, const struct finding *finding)
{
	FILE *output = environment_output(findings->environment);
	struct report *record = environment_begin_record(findings->environment, "finding");

	if (record) {
		report_finding(record, finding);
		environment_end_record(findings->environment);
	}
	fprintf(output, "%s%-4s  %-8s  %s\n", findings->group_over ? "\n" : "", status_names[finding->status],
		finding->check, finding->text);
	if (*finding->remedy)
		fprintf(output, "%16smend: %s\n", "", finding->remedy);
	if (finding->status == FINDING_FAIL)
		tell_failure(findings, finding);
	findings->group_over = false;
}

void finding_add(struct findings *findings, enum finding_status status, const char *check, const char *remedy,
		 const char *format, ...)
{
	struct finding *finding = calloc(1, sizeof(*finding));
	va_list list;

	findings->counts[status]++;
	if (!finding) {
		environment_note(findings->environment, OUTCOME_INTERNAL);
		return;
	}
	finding->status = status;
	finding->check = check;
	va_start(list, format);
	vsnprintf(finding->text, sizeof(finding->text), format, list);
	va_end(list);
	snprintf(finding->remedy, sizeof(finding->remedy), "%s", remedy ? remedy : "");
	sysfs_clean_text(finding->text);
	sysfs_clean_text(finding->remedy);
	if (findings->last)
		findings->last->next = finding;
	else
		findings->first = finding;
	findings->last = finding;
	tell(findings, finding);
}

const char *finding_remedy(struct findings *findings, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(findings->remedy, sizeof(findings->remedy), format, list);
	va_end(list);
	return findings->remedy;
}

uint64_t findings_count(const struct findings *findings)
{
	return findings->counts[FINDING_OK] + findings->counts[FINDING_WARN] + findings->counts[FINDING_FAIL];
}

void findings_report(const struct findings *findings, struct report *report)
{
	report_count(report, "ok", findings->counts[FINDING_OK]);
	report_count(report, "warnings", findings->counts[FINDING_WARN]);
	report_count(report, "failures", findings->counts[FINDING_FAIL]);
	report_list(report, "findings");
	for (const struct finding *finding = findings->first; finding; finding = finding->next) {
		report_object(report, NULL);
		report_finding(report, finding);
		report_end(report);
	}
	report_end(report);
}

void findings_free(struct findings *findings)
{
	while (findings->first) {
		struct finding *finding = findings->first;

		findings->first = finding->next;
		free(finding);
	}
}
