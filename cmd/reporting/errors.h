/* SPDX-License-Identifier: BSD-2-Clause */
/* The errors of a run, kept for its report. */
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

/* Zeroed at first. */
struct errors {
	struct kept_error *first, *last;
	uint64_t count; /* of all errors; a limited number of them is kept */
	uint64_t kept;
};

/* Keeps a copy of an error, if there is room for it. part must outlive the list. */
void errors_add(struct errors *errors, const char *part, const struct error *error);
/* Keeps a hint with the error before it, which has none yet. */
void errors_add_hint(struct errors *errors, const char *text);
void errors_free(struct errors *errors);

/* Adds the fields of one error to the report. */
void errors_report_one(struct report *report, const struct kept_error *error);
/* Adds how many there were, and a list of those that were kept. */
void errors_report(struct report *report, const struct errors *errors);

#endif
