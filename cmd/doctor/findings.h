/* SPDX-License-Identifier: BSD-2-Clause */
/* The findings: each is printed when it is added, and kept for the report. */
#ifndef CMD_DOCTOR_FINDINGS_H
#define CMD_DOCTOR_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/run.h"
#include "core/remedy.h"

struct doctor;

enum finding_status {
	FINDING_OK,
	FINDING_WARN, /* the selected transport may work nevertheless */
	FINDING_FAIL,
	FINDING_STATUSES,
};

struct finding {
	struct finding *next;
	enum finding_status status;
	struct error error; /* object: name of the check; cause: text of the finding; hint: the remedy */
};

/* The caller zeroes it. */
struct findings {
	struct finding *first, *last;
	uint64_t counts[FINDING_STATUSES];
	bool new_group; /* print an empty line before the next finding */
};

/*
 * The text, after a line feed the remedy if there is one, and after another the code of an error. Bytes that are not
 * printable ASCII are replaced. Does nothing once the run has ended.
 */
void finding_add(struct doctor *doctor, enum finding_status status, const char *check, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Adds an error. Its hint is the remedy. */
void finding_add_error(struct doctor *doctor, enum finding_status status, const char *check, const struct error *error);

uint64_t findings_count(const struct findings *findings);
/* Adds the findings to a list of a report. member is a struct findings. */
void findings_report(struct report *report, const void *member);
void findings_free(struct findings *findings);

#endif
