/* SPDX-License-Identifier: BSD-2-Clause */
/* The errors of a run, kept for its report. */
#ifndef CMD_TOLD_H
#define CMD_TOLD_H

#include <stdint.h>

#include "core/report.h"

/* One error, in the form that docs/design.md has for messages: "object: phase: cause in words (code)". */
struct told_error {
	struct told_error *next;
	const char *object; /* NULL for none */
	const char *text;   /* the rest */
	char *hint;	    /* NULL for none */
	char part[16];	    /* of a selftest: its command; "" for none */
	char memory[];
};

/* Zeroed at first. */
struct told {
	struct told_error *first, *last;
	uint64_t count; /* of all errors; only the first so many are kept */
	uint64_t kept;
};

/* Keeps a copy of an error, if there is room for it. name: who tells it, in a part "<program>: <command> ...". */
void told_error(struct told *told, const char *name, const char *object, const char *text);
/* Keeps a hint with the error before it. */
void told_hint(struct told *told, const char *text);
void told_free(struct told *told);

/* Adds the fields of an error to the report: the whole text, and that taken apart. */
void told_report_error(struct report *report, const struct told_error *error);
/* Adds how many there were, and a list of those that were kept. */
void told_report(struct report *report, const struct told *told);

#endif
