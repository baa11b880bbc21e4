/* SPDX-License-Identifier: BSD-2-Clause */
/* What was found: each finding is printed as it comes, and kept for the report. */
#ifndef CMD_DOCTOR_FINDINGS_H
#define CMD_DOCTOR_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/command.h"

enum finding_status {
	FINDING_OK,
	FINDING_WARN, /* what is to work may do so all the same */
	FINDING_FAIL,
	FINDING_STATUSES,
};

enum {
	FINDING_TEXT_SIZE = 256
};

struct finding {
	struct finding *next;
	enum finding_status status;
	struct error error;		/* its object is the check's name, its cause the text */
	char remedy[FINDING_TEXT_SIZE]; /* a command, or what else is to be done; "" for nothing */
};

/* Zeroed but for the environment at first. */
struct findings {
	struct environment *environment;
	struct finding *first, *last;
	uint64_t counts[FINDING_STATUSES];
	bool loud;	 /* failures are errors on stderr: nothing else is printed */
	bool group_over; /* the next one begins a group */
	char remedy[FINDING_TEXT_SIZE];
};

/* remedy may be NULL. Bytes that a terminal would act on are replaced. */
void finding_add(struct findings *findings, enum finding_status status, const char *check, const char *remedy,
		 const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The text is an error's, with its object. */
void finding_add_error(struct findings *findings, enum finding_status status, const char *check, const char *remedy,
		       const struct error *error);

/* A remedy with names in it, for the next call of finding_add(). */
const char *finding_remedy(struct findings *findings, const char *format, ...) __attribute__((format(printf, 2, 3)));

uint64_t findings_count(const struct findings *findings);
void findings_report(const struct findings *findings, struct report *report);
void findings_free(struct findings *findings);

#endif
