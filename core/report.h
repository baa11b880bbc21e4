/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a run has to tell, said once: every figure is one call below, and comes out as text for a person, as JSON, CSV
 * or for Prometheus, so that no two of them can differ. A report is a tree of objects and lists with values as leaves.
 *
 *   call                                    JSON                         text
 *   report_object(r, "pings")               "pings": {                   pings:
 *   report_count(r, "sent", 3)                "sent": 3,                   sent 3,
 *   report_time(r, "wait", 1500)              "wait_ns": 1500              wait 1.5 us
 *   report_end(r)                           }
 *
 * Names are lower case with underscores, and constants.
 */
#ifndef CORE_REPORT_H
#define CORE_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/histogram.h"

enum {
	REPORT_DEPTH_MOST = 8
};

enum report_kind {
	REPORT_COUNT = 1, /* number, as uint64_t */
	REPORT_TIME,	  /* nanoseconds */
	REPORT_RATE,	  /* of things each second */
	REPORT_BANDWIDTH, /* bytes each second */
	REPORT_TEXT,
	REPORT_FLAG,
	REPORT_NONE, /* there is no value, as of a minimum without a sample */
};

struct report_value {
	enum report_kind kind;
	uint64_t number; /* of COUNT, TIME and FLAG; of NONE the kind it would have had */
	double rate;
	const char *text;
};

/* What can have items in it. */
enum report_nesting {
	REPORT_OBJECT = 0,
	REPORT_DETAIL, /* an object */
	REPORT_LIST,
};

struct report;

/* How a report is written. */
struct report_format {
	const char *opening; /* around the whole; both may be NULL */
	const char *closing;
	void (*begin)(struct report *report, const char *name, enum report_nesting nesting); /* may be NULL */
	void (*end)(struct report *report);						     /* may be NULL */
	void (*value)(struct report *report, const char *name, const struct report_value *value);
	bool sparing; /* leaves out what has no value */
	bool brief;   /* and what is not needed at a glance */
	bool draws;   /* the buckets of histograms, if the report is to have them; */
	bool lists;   /* or lists them */
};

/* The whole on one line, and a line for each object and list entry. Both without what has no value. */
extern const struct report_format report_line;
extern const struct report_format report_block;
/* One object on one line. */
extern const struct report_format report_json;
/* The names of the columns, and the values. Lists are left out. */
extern const struct report_format report_csv_names;
extern const struct report_format report_csv_values;
/* Node_exporter's text format, a sample a line. A text is a label of what follows in the whole, or in the entry. */
extern const struct report_format report_prometheus;

struct report {
	FILE *stream;
	const struct report_format *format;
	const char *prefix; /* of Prometheus' names: "rdmatest_rping" */
	bool buckets;	    /* histograms whole, in formats that can */
	bool without_rates; /* there was too little time for them */

	unsigned depth;
	struct report_frame {
		const char *name; /* NULL of a list's entry */
		enum report_nesting nesting;
		unsigned items; /* in it so far */
		unsigned shown; /* of them, in formats that leave some out */
	} frames[REPORT_DEPTH_MOST];
	char labels[256]; /* Prometheus: of every sample, */
	char entry[256];  /* and of those in the list's entry */
};

/* Sets the stream and the format, and begins the whole. The other settings stay. */
void report_open(struct report *report, FILE *stream, const struct report_format *format);
void report_close(struct report *report);

/* Begins an object; name is NULL in a list. */
void report_object(struct report *report, const char *name);
/* The same for what is too much for one line: report_line leaves it out. */
void report_detail(struct report *report, const char *name);
/* Begins a list, whose entries are objects. */
void report_list(struct report *report, const char *name);
void report_end(struct report *report);

void report_count(struct report *report, const char *name, uint64_t count);
/* No value unless it is known. */
void report_count_known(struct report *report, const char *name, uint64_t count, bool known);
/* For what a person need not see at a glance: report_line leaves it out. */
void report_count_aside(struct report *report, const char *name, uint64_t count);
/* "failed". A person reads of failures only where there are some: scripts look for the word in the log of a run. */
void report_failed(struct report *report, uint64_t count);
/* In JSON the name gets "_ns". */
void report_time(struct report *report, const char *name, int64_t nanoseconds);
/* count things in that time. In JSON the name gets "_per_second"; no time has no rate. */
void report_rate(struct report *report, const char *name, uint64_t count, int64_t nanoseconds);
/* As report_rate(), of bytes. */
void report_bandwidth(struct report *report, const char *name, uint64_t bytes, int64_t nanoseconds);
/* NULL has no value. */
void report_text(struct report *report, const char *name, const char *text);
void report_flag(struct report *report, const char *name, bool flag);
/* A value of that kind that is not known. */
void report_none(struct report *report, const char *name, enum report_kind kind);
/* Samples, minimum, average, maximum, deviation and percentiles of times; for a person nothing if there are none. */
void report_histogram(struct report *report, const char *name, const struct histogram *histogram);

/* For formats. */

/* True in a list, at whatever depth. */
bool report_in_list(const struct report *report);
/* What has been begun last; at first the whole. */
struct report_frame *report_top(struct report *report);
/* Prints a name as programs like it, without points and with its unit: "p99_9_ns". */
void report_print_key(FILE *stream, const char *name, const struct report_value *value);
/* Prints a number, flag or rate as programs like it: integers, true, three decimals. Neither texts nor "no value". */
void report_print_number(FILE *stream, const struct report_value *value);

#endif
