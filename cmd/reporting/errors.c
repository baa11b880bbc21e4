/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/reporting/errors.h"

#include <stdlib.h>
#include <string.h>

enum {
	KEPT_MAX = 64
};

void errors_add(struct errors *errors, const char *part, const struct error *error)
{
	struct kept_error *kept = NULL;

	errors->count++;
	if (errors->kept < KEPT_MAX)
		kept = calloc(1, sizeof(*kept));
	if (!kept)
		return;
	kept->error = *error;
	kept->part = part;
	if (errors->last)
		errors->last->next = kept;
	else
		errors->first = kept;
	errors->last = kept;
	errors->kept++;
}

void errors_add_hint(struct errors *errors, const char *text)
{
	if (errors->last && !errors->last->hint && errors->kept == errors->count)
		errors->last->hint = strdup(text);
}

void errors_free(struct errors *errors)
{
	while (errors->first) {
		struct kept_error *kept = errors->first;

		errors->first = kept->next;
		free(kept->hint);
		free(kept);
	}
	*errors = (struct errors){ 0 };
}

static void report_nonempty(struct report *report, const char *name, const char *text)
{
	report_text(report, name, *text ? text : NULL);
}

void errors_report_one(struct report *report, const struct kept_error *kept)
{
	char text[ERROR_TEXT_SIZE];

	report_nonempty(report, "object", kept->error.object);
	report_nonempty(report, "phase", kept->error.phase);
	report_text(report, "cause", kept->error.cause);
	report_nonempty(report, "code", kept->error.code);
	report_text(report, "text", error_text(&kept->error, text));
	report_text(report, "hint", kept->hint);
	report_text(report, "part", kept->part);
}

void errors_report(struct report *report, const struct errors *errors)
{
	report_count(report, "error_count", errors->count);
	report_list(report, "errors");
	for (const struct kept_error *kept = errors->first; kept; kept = kept->next) {
		report_object(report, NULL);
		errors_report_one(report, kept);
		report_end(report);
	}
	report_end(report);
}
