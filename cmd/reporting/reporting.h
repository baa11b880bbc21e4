/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A run's report, besides its classic lines, in the selected form. The command keeps its figures. This adds them and
 * the common fields, and decides when and where to write. Each file calls only those below it:
 *
 *   reporting.c   intervals, and the calls that a run makes
 *   expect.c      --expect: compares the figures of JSON at the end
 *   text.c        a block before the verdict and at SIGQUIT; a row of a table each --interval-report, on a terminal
 *                 each second
 *   json.c        --json: one object at the end, with the intervals of a run of steps
 *                 --json-stream: an object per line: start, the command's own (a ping), interval, error, summary
 *   prometheus.c  --prometheus: a file that is replaced at the start, each interval and at the end
 *   network.c     the counters of the ports in use, for all forms
 *   processor.c   the time that the process waited for a processor
 *
 * In all forms but text the classic lines go to /dev/null, so that standard output has one form only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/figures.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/options.h"
#include "core/outcome.h"
#include "core/report.h"

/* The version of the JSON that docs/json.md describes. */
#define REPORTING_SCHEMA 1

enum {
	REPORTING_WALL_TIME_SIZE = sizeof("2026-01-31T12:34:56.789Z") + 8
};

struct common_options;
struct run;
struct reporting;
struct transport;

/* Part of the common options. */
struct reporting_options {
	bool json;
	bool json_stream;
	bool quiet;
	bool histogram;
	int64_t interval; /* nanoseconds, 0 for none */
	const char *prometheus;
	struct option_list expect;
};

/* Output for a person during a run. Rows are shown on a terminal only. */
enum live {
	LIVE_NO,     /* as the options say, and nothing else */
	LIVE_STEPS,  /* a row per step, an interval that the command begins and ends */
	LIVE_ROWS,   /* a row of figures per second, while data moves or is waited for */
	LIVE_EVENTS, /* the command prints a line for each event */
};

/* ---- the formats of a report ---- */

/* Text: one line per object and list entry, without unknown values. */
extern const struct report_format report_block;
/* Text: a row of a table without lists, or its header if report.header is set. */
extern const struct report_format report_table;
/* The same for a run's steps. */
extern const struct report_format report_steps;
/* One JSON object on one line. */
extern const struct report_format report_json;
/* Prometheus' text format, one sample per line. A text is a label of the following samples of its level. */
extern const struct report_format report_prometheus;

/* ---- a run ---- */

struct reporting {
	struct run *run;
	const struct reporting_options *options;
	enum live live;
	int64_t length;				/* of the reported intervals, nanoseconds; 0: none */
	struct figures (*figures)(void *state); /* the command's; NULL: it has none */
	void *state;				/* the command's, from its start to reporting_end(), else NULL */
	const char *prometheus;			/* the file, or "-"; NULL: none */
	int write_error;			/* errno of its last write, or 0 */
	bool interval_open;			/* not reported yet */
	bool last_interval;			/* no more data moves */
	bool ends;				/* reporting_end() was called */
	int64_t interval_due;			/* the scheduled end of the interval */
	unsigned rows;				/* printed interval rows, in text */
	struct expect *expect;			/* for --expect, or NULL */
	FILE *steps; /* --json: the intervals of a run in steps, a line each; from open_memstream(3) */
	char *steps_text;
	char start[REPORTING_WALL_TIME_SIZE]; /* JSON: the run's start */
	size_t steps_length;
	struct loop_timer interval;
	struct loop_signal quit;
	struct report report;
};

/*
 * Call it when the options are parsed, or could not be: from now on reports errors in the selected form, including its
 * own.
 */
enum outcome reporting_choose(struct reporting *reporting, struct run *run, const struct common_options *options);

/* Call it before the command starts. Returns an error if the --prometheus file cannot be written. */
enum outcome reporting_begin(struct reporting *reporting);

/*
 * Call it when the command has started. Its figures() is called until reporting_end(), first for --prometheus. Reports
 * an error if --expect names a figure that it lacks.
 */
enum outcome reporting_start(struct reporting *reporting, void *state);

/* Call it before the data moves: in text the first interval ends that long after it. */
void reporting_ready(struct reporting *reporting);

/*
 * Begin and report an interval of a command with LIVE_STEPS. Activity outside intervals is not reported. reporting may
 * be NULL.
 */
void reporting_begin_interval(struct reporting *reporting);
void reporting_end_interval(struct reporting *reporting);

/*
 * Reports the time since the last complete interval, unless that is done or there is nothing to report. For a command
 * that prints its own figures at its end; else reporting_end() does it. reporting may be NULL.
 */
void reporting_end_last_interval(struct reporting *reporting);

/*
 * Call it when the run has ended or failed to start, and only the --prometheus file may still change its outcome.
 * Reports the last interval, and prints the summary in text. Returns the JSON object, to be printed last, and freed;
 * NULL in text.
 */
char *reporting_end(struct reporting *reporting);

/* ---- the forms ---- */

/* --prometheus -: it is for the metrics alone, which are written at the end. */
static inline bool reporting_is_metrics(const struct reporting_options *options)
{
	return options->prometheus && !strcmp(options->prometheus, "-");
}

static inline bool reporting_is_text(const struct reporting *reporting)
{
	return !reporting->options->json && !reporting->options->json_stream;
}

/* Returns the command's figures, or zeros without a run. */
static inline struct figures reporting_figures(const struct reporting *reporting)
{
	return reporting->state && reporting->figures ? reporting->figures(reporting->state) : (struct figures){ 0 };
}

/* Adds the figures to the report. */
static inline void reporting_add_figures(struct reporting *reporting, bool of_interval)
{
	struct figures figures = reporting_figures(reporting);

	if (figures.rows)
		figures_report(&reporting->report, figures.rows, figures.values, of_interval ? figures.before : NULL);
}

void reporting_text_interval(struct reporting *reporting);
void reporting_text_summary(struct reporting *reporting);
/* Prints the current figures as text, on stderr if standard output is for programs. */
void reporting_print_current(struct reporting *reporting);
enum {
	REPORTING_VALUE_SIZE = ERROR_TEXT_SIZE /* an error is the longest */
};
/* The value for a person. Returns text, or a constant. */
const char *reporting_value_text(struct report_value value, char text[REPORTING_VALUE_SIZE]);

/* Call this first: the wall clock may be stepped during the run. */
void reporting_json_begin(struct reporting *reporting);
void reporting_json_start(struct reporting *reporting);
void reporting_json_interval(struct reporting *reporting);
/* For struct log. */
void reporting_json_error(void *reporting, const struct error *error);
char *reporting_json_summary(struct reporting *reporting);
/* Adds a run's fields to an open report before its verdict. */
void reporting_json_add(struct reporting *reporting);

/* Whether an --expect limits a figure whose name has that part. reporting may be NULL. */
bool reporting_limits(const struct reporting *reporting, const char *part);
/* Parses --expect's limit. Reports an error. */
enum outcome reporting_expect_parse(struct reporting *reporting);
/*
 * Reports an error if the figure does not exist, or cannot be compared with the value. Call it when the command has
 * started.
 */
enum outcome reporting_expect_check(struct reporting *reporting);
/* Compares the times of a sweep's size, whose interval has ended. reporting may be NULL. */
void reporting_expect_size(struct reporting *reporting, uint32_t size);
/* Reports each figure that misses its limit, which fails a passed run. Call it before the verdict. */
void reporting_expect_judge(struct reporting *reporting);
/*
 * Begins an object of that type in the JSON stream. The caller adds fields and ends it with report_close().
 * Returns NULL in every other form. reporting may be NULL.
 */
struct report *reporting_begin_record(struct reporting *reporting, const char *type);

/* Replaces the --prometheus file, if any. */
void reporting_write_prometheus(struct reporting *reporting);

/* Adds the increased counters of the ports in use. */
void reporting_add_network(struct reporting *reporting);
/*
 * Returns a line for each port whose counters show a loss, congestion or a bad link, separated by line feeds; the
 * caller frees it. NULL without memory or WITH_EXTRAS.
 */
char *reporting_network_note(struct transport *transport);
enum {
	REPORTING_HINT_SIZE = 128
};
/* Writes untried remedies if the note has losses, else ""; paths: whether these may include --paths. */
const char *reporting_network_hint(const struct transport *transport, const char *note, bool paths,
				   char text[REPORTING_HINT_SIZE]);

/* Nanoseconds since the process started. */
struct reporting_processor {
	int64_t ran, waited;
};
struct reporting_processor reporting_processor(void);
/* Prints a line if the process waited for a large part of its running time. */
void reporting_print_processor(FILE *stream);
