/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The report of a run, besides its classic lines, in the selected form. The command keeps its figures. This adds them,
 * the fields that all commands have, and decides when and where to write:
 *
 *   text.c        a block before the verdict and at SIGQUIT; a row of a table each --interval-report, on a terminal
 *                 each second
 *   json.c        --json: one object at the end, with the intervals of a run of steps
 *                 --json-stream: an object a line: start, what the command adds (a ping), interval, error, summary
 *   prometheus.c  --prometheus: a file that is replaced at the start, each interval and at the end
 *
 * In all forms but text the classic lines go to /dev/null, so that standard output has one form only.
 */
#ifndef CMD_REPORTING_REPORTING_H
#define CMD_REPORTING_REPORTING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/log.h"
#include "core/loop.h"
#include "core/outcome.h"
#include "core/report.h"

/* The version of the JSON that docs/json.md describes. */
#define REPORTING_SCHEMA 1

struct common_options;
struct environment;
struct reporting;

/* A part of the common options. */
struct reporting_options {
	bool json;
	bool json_stream;
	bool quiet;
	bool histogram;
	int64_t interval; /* nanoseconds, 0 for none */
	const char *prometheus;
};

/* What a person sees of a run while it lasts. Only steps are shown without a terminal. */
enum live {
	LIVE_NO,     /* what the options ask for; they exclude the others */
	LIVE_STEPS,  /* a row for each step, an interval that the command begins and ends */
	LIVE_ROWS,   /* a row of figures each second, but for those in which nothing has happened */
	LIVE_EVENTS, /* the command prints a line for each event */
};

/* ---- the formats of a report, each with its form ---- */

/* Text: one line per object and list entry, which omits values that are not known. */
extern const struct report_format report_block;
/* Text: a row of a table without lists, or its header if report.header is set. */
extern const struct report_format report_table;
/* The same for the steps of a run, with bandwidths in bits. */
extern const struct report_format report_steps;
/* One JSON object on one line. */
extern const struct report_format report_json;
/* The text format of Prometheus, one sample per line. A text is a label of the following samples of its level. */
extern const struct report_format report_prometheus;

/* A form of standard output. Any of the functions may be NULL. */
struct reporting_form {
	void (*start)(struct reporting *reporting);    /* before the command starts */
	void (*interval)(struct reporting *reporting); /* at the end of each --interval-report */
	void (*error)(struct reporting *reporting, const struct error *error); /* when it is reported */
	void (*end)(struct reporting *reporting);   /* opens the last report and adds the figures */
	void (*close)(struct reporting *reporting); /* adds verdict and errors to the last report and closes it */
};

extern const struct reporting_form reporting_text, reporting_json, reporting_json_stream;

struct reporting {
	struct environment *environment;
	const struct reporting_options *options; /* NULL until they are parsed */
	const struct reporting_form *form;
	void *state; /* the command's state while it runs, else NULL */
	char *text;  /* what last.stream has written, printed by reporting_close(); of open_memstream(3) */
	size_t text_length;
	FILE *steps; /* --json: the intervals of a run of steps, until the summary has them; of open_memstream(3) */
	char *steps_text;
	size_t steps_length;
	int64_t started;
	int64_t interval_due;	/* the scheduled end of the interval */
	const char *prometheus; /* the file; NULL also after a write error */
	bool interval_open;	/* not reported yet */
	bool ended;
	unsigned rows; /* of intervals, in text */
	struct loop_timer interval;
	struct loop_signal quit;
	struct report report;
	struct report last; /* the last report, open from end to close */
};

/* Call it before the options are parsed: it selects the form in which an error in the arguments is reported. */
void reporting_prepare(struct reporting *reporting, struct environment *environment, int argc, char *const *argv);

/* Call it when the options are parsed. Selects the form and sets the environment's output; reports an error. */
enum outcome reporting_choose(struct reporting *reporting, const struct common_options *options);

/* Call it before the command starts. Returns an error if the file of --prometheus cannot be written. */
enum outcome reporting_begin(struct reporting *reporting);

/* Call it when the command has started. Its figures() is called until reporting_end(), first for --prometheus. */
void reporting_start(struct reporting *reporting, void *state);

/* Call it before the data moves: in text the first interval ends that long after it. */
void reporting_set_up(struct reporting *reporting);

/*
 * Call it when the run has ended or failed to start, before the verdict is printed and the state freed. Reports the
 * last interval and the summary. Only the first call has an effect.
 */
void reporting_end(struct reporting *reporting);

/* Prints the last report, also of a run that has failed before it began. Call it when nothing can fail any more. */
void reporting_close(struct reporting *reporting);

/*
 * Begins an object of that type in the JSON stream. The caller adds fields and ends it with report_close().
 * Returns NULL in every other form. reporting may be NULL.
 */
struct report *reporting_begin_record(struct reporting *reporting, const char *type);

/*
 * Begin an interval, and report it, of a command with LIVE_STEPS. What is not within one is reported nowhere else.
 * reporting may be NULL.
 */
void reporting_begin_interval(struct reporting *reporting);
void reporting_end_interval(struct reporting *reporting);

/* ---- for the forms ---- */

/* Add the fields of the run, the command's figures, and the verdict to the report. */
void reporting_add_head(struct reporting *reporting);
void reporting_add_figures(struct reporting *reporting, bool of_interval);
void reporting_add_verdict(struct reporting *reporting);

/* Prints the current figures as text, on stderr if the form of standard output is for programs. */
void reporting_print_current(struct reporting *reporting);

/* Replaces the file of --prometheus, if any. */
void reporting_write_prometheus(struct reporting *reporting);

#endif
