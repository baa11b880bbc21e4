/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of errors in the report of a run. */
#ifndef CMD_REPORTING_ERRORS_H
#define CMD_REPORTING_ERRORS_H

#include <stdint.h>

#include "core/log.h"
#include "core/report.h"

struct kept_error {
	struct kept_error *next;
	struct error error;
	const char *part; /* as in struct log */
	char *hint;	  /* NULL for none */
};

/* Zeroed before the first error. */
struct errors {
	struct kept_error *first, *last;
	uint64_t count; /* all errors */
	uint64_t kept;	/* errors in the list, at most KEPT_MAX */
};

/* Counts an error and adds a copy to the list if there is room. part must outlive the list. */
void errors_add(struct errors *errors, const char *part, const struct error *error);
/* Adds a hint to the last error, if that is in the list and has none yet. */
void errors_add_hint(struct errors *errors, const char *text);
void errors_free(struct errors *errors);

/* Adds the fields of one error to the report. */
void errors_report_one(struct report *report, const struct kept_error *error);
/* Adds the count and the list of errors to the report. */
void errors_report(struct report *report, const struct errors *errors);

#endif
