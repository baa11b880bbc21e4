/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A report as text, JSON or Prometheus metrics. One call per value serves every format, so they cannot differ. A report
 * is a tree of objects and lists with values as leaves. core/figures.h makes these calls from tables.
 *
 *   call                                    JSON                         text
 *   report_object(r, "pings")               "pings": {                   pings:
 *   report_count(r, "sent", 3)                "sent": 3,                   sent 3,
 *   report_time(r, "wait", 1500)              "wait_ns": 1500              wait 1.5 us
 *   report_end(r)                           }
 *
 * Names are string constants in lower case with underscores.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/histogram.h"

enum {
	REPORT_DEPTH_MAX = 8
};

enum report_kind {
	REPORT_COUNT = 1,
	REPORT_TIME,	  /* nanoseconds */
	REPORT_RATE,	  /* per second */
	REPORT_BANDWIDTH, /* bytes per second */
	REPORT_TEXT,
	REPORT_FLAG,
	REPORT_NONE, /* no value, for example the minimum of no samples */
};

struct report_value {
	enum report_kind kind;
	bool counts;	/* Prometheus: a counter, which only increases */
	uint64_t whole; /* block: of what the count is a part, in percent; 0: of nothing */
	union {
		uint64_t number; /* COUNT, TIME and FLAG; NONE: a known value's kind */
		double rate;
		const char *text;
	};
};

enum report_nesting {
	REPORT_OBJECT = 0,
	REPORT_LIST,
};

/* A report's forms. */
enum report_form {
	IN_BLOCK = 1 << 0, /* text: omits unknown and empty values; draws histograms */
	IN_ROW = 1 << 1,   /* in a table of intervals; histograms as minimum, average, maximum, p99 */
	IN_STEP = 1 << 2,  /* in a table of steps; histograms as average, p50, p99, and drawn */
	IN_JSON = 1 << 3,
	IN_PROMETHEUS = 1 << 4,
	IN_TEXT = IN_BLOCK | IN_ROW | IN_STEP,
	IN_PROGRAMS = IN_JSON | IN_PROMETHEUS,
	IN_FULL = IN_BLOCK | IN_PROGRAMS, /* not in tables, which are narrow */
};

struct report;

/* An output format. */
struct report_format {
	const char *opening; /* the report's first and last text; both may be NULL */
	const char *closing;
	void (*begin)(struct report *report, const char *name, enum report_nesting nesting); /* may be NULL */
	void (*end)(struct report *report);						     /* may be NULL */
	void (*value)(struct report *report, const char *name, struct report_value value);
	enum report_form form;
};

struct report {
	FILE *stream;
	const struct report_format *format;
	const char *command; /* Prometheus: after "rdmatest" in metric names */
	bool buckets;	     /* block, step and JSON have the buckets of histograms */
	bool without_rates;  /* omit rates: the time span is too short */
	bool header;	     /* report_table: write the column names */
	bool of_steps;	     /* an interval ends with its last count; the totals have no gauges or distributions */
	bool separates;	     /* JSON: a comma comes before the next item */
	int excess;	     /* report_table: how much the row exceeds its columns so far */
	int column;	     /* report_table: columns so far */
	int columns;	     /* the terminal's, at least 40; 0: any number */

	int64_t interval_began, interval_ended; /* clock times, for the figures of an interval */

	unsigned depth;
	struct report_frame {
		const char *name; /* NULL for an entry of a list */
		enum report_nesting nesting;
		unsigned shown; /* text: items printed */
	} frames[REPORT_DEPTH_MAX];
	char labels[256]; /* Prometheus: all samples' labels */
	char entry[256];  /* Prometheus: further labels for a list entry's samples */
};

/* Sets stream and format, and begins the report. The other settings stay. */
void report_open(struct report *report, FILE *stream, const struct report_format *format);
void report_close(struct report *report);

/* Begins an object. name is NULL for an entry of a list. */
void report_object(struct report *report, const char *name);
/* Begins a list, whose entries are objects. */
void report_list(struct report *report, const char *name);
void report_end(struct report *report);

void report_add(struct report *report, const char *name, struct report_value value);
void report_count(struct report *report, const char *name, uint64_t count);
/* A count that only increases. */
void report_counter(struct report *report, const char *name, uint64_t count);
/* Adds a count, or no value if it is not known. */
void report_count_known(struct report *report, const char *name, uint64_t count, bool known);
/* JSON appends "_ns" to the name. */
void report_time(struct report *report, const char *name, int64_t nanoseconds);
/* Adds a time, or no value if it is 0. */
void report_time_known(struct report *report, const char *name, int64_t nanoseconds);
/* Adds a RATE or BANDWIDTH, or no value if the time is 0. JSON appends "_per_second" to the name. */
void report_rate(struct report *report, const char *name, enum report_kind kind, uint64_t count, int64_t nanoseconds);
/* Adds a text, or no value if it is NULL or empty. */
void report_text(struct report *report, const char *name, const char *text);
void report_flag(struct report *report, const char *name, bool flag);
/* Adds minimum, average and maximum. Omits an empty object. */
void report_samples(struct report *report, const char *name, const struct samples *samples);
/* Adds count, minimum, average, maximum, deviation and percentiles. report_block omits an empty histogram. */
void report_histogram(struct report *report, const char *name, const struct histogram *histogram);

/* ---- for formats ---- */

/* True inside a list, at any depth. */
bool report_in_list(const struct report *report);
/* The innermost open object or list, or the report itself. */
struct report_frame *report_top(struct report *report);
/* Prints a value's name for programs, with its kind's unit (time_unit for times): "p99_9_ns". */
void report_print_name(FILE *stream, const char *name, enum report_kind kind, const char *time_unit);
/* Prints a number for programs: an integer, or a rate with three decimals. */
void report_print_number(FILE *stream, struct report_value value);
