/* SPDX-License-Identifier: BSD-2-Clause */
/* The findings: each is printed when it is added, and kept for the report. */
#ifndef CMD_DOCTOR_FINDINGS_H
#define CMD_DOCTOR_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/command.h"

enum finding_status {
	FINDING_OK,
	FINDING_WARN, /* the selected transport may work nevertheless */
	FINDING_FAIL,
	FINDING_STATUSES,
};

enum {
	FINDING_TEXT_SIZE = 256
};

struct finding {
	struct finding *next;
	enum finding_status status;
	struct error error;		/* object: name of the check; cause: text of the finding */
	char remedy[FINDING_TEXT_SIZE]; /* a command or another action; "" for none */
};

/* The first error and the first hint of an operation. */
struct probe {
	struct log log; /* for the operation */
	bool failed;
	struct error error;
	char hint[FINDING_TEXT_SIZE];
};

/* The caller zeroes it and sets environment and quiet. */
struct findings {
	struct environment *environment;
	struct finding *first, *last;
	uint64_t counts[FINDING_STATUSES];
	bool quiet;	/* --quiet: print failures as errors on stderr */
	bool new_group; /* print an empty line before the next finding */
	char remedy[FINDING_TEXT_SIZE];
	struct probe probe;
};

/* remedy may be NULL. Control characters and other non-ASCII bytes are replaced. */
void finding_add(struct findings *findings, enum finding_status status, const char *check, const char *remedy,
		 const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The text is the error's object, phase and cause. */
void finding_add_error(struct findings *findings, enum finding_status status, const char *check, const char *remedy,
		       const struct error *error);

/* Formats a remedy for the next finding. */
const char *finding_remedy(struct findings *findings, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Clears findings->probe: its log collects the errors and hints of the next operation. */
void finding_begin_probe(struct findings *findings);
/* Adds the probe's error. Its remedy is the probe's hint; without a hint it is remedy, which may be NULL. */
void finding_add_probe(struct findings *findings, enum finding_status status, const char *check, const char *remedy);

uint64_t findings_count(const struct findings *findings);
/* Adds the findings to a list of a report. member is a struct findings. */
void findings_report(struct report *report, const void *member);
void findings_free(struct findings *findings);

#endif
