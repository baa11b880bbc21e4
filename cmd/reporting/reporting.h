/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a run tells about itself besides its classic lines, in the form that was asked for. The figures come from the
 * command's report(); this adds what is the same for all commands, and decides when and where to write:
 *
 *   text.c        a block before the verdict, or after SIGQUIT what is known so far; a line each --interval-report
 *   json.c        --json: one object at the end
 *                 --json-stream: an object a line: start, what the command adds (a ping), interval, error, summary
 *   csv.c         --csv: the names of the columns, a row each --interval-report, and one at the end
 *   prometheus.c  --prometheus: a file that is replaced each --interval-report and at the end
 *   progress.c    on a terminal, a line that is replaced each second
 *   errors.c      the errors of the run
 *   forms.c       which form was asked for (text_only.c: without the ones for programs)
 *
 * In all forms but text the classic lines go nowhere, so that standard output has one form only.
 */
#ifndef CMD_REPORTING_REPORTING_H
#define CMD_REPORTING_REPORTING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cmd/reporting/errors.h"
#include "core/loop.h"
#include "core/outcome.h"
#include "core/report.h"

/* Of the layout of the JSON that docs/json.md describes. */
#define REPORTING_SCHEMA 1

struct command;
struct environment;
struct reporting;

/* A part of the common options. */
struct reporting_options {
	bool json;
	bool json_stream;
	bool csv;
	bool quiet;
	bool histogram;
	int64_t interval; /* nanoseconds, 0 for none */
	const char *prometheus;
};

/* Figures of the whole run so far, or since the last interval's end. */
enum report_span {
	REPORT_TOTAL = 1,
	REPORT_INTERVAL,
};

/* What standard output has in it. Any of the functions may be NULL. */
struct reporting_form {
	void (*start)(struct reporting *reporting);
	void (*interval)(struct reporting *reporting);
	void (*error)(struct reporting *reporting, const struct kept_error *error);
	void (*summary)(struct reporting *reporting);  /* before the command's verdict */
	void (*finish)(struct reporting *reporting);   /* the last figures, into the report that is open */
	void (*conclude)(struct reporting *reporting); /* and what only the end of the process knows */
	bool json;
};

extern const struct reporting_form reporting_text, reporting_json, reporting_json_stream, reporting_csv;

struct reporting {
	struct environment *environment;
	const struct command *command;
	const struct reporting_options *options; /* NULL until they are parsed */
	const struct reporting_form *form;
	void *state; /* the command's, while it runs */
	char *text;
	size_t text_length;
	FILE *nowhere;
	int64_t started;
	int64_t interval_started;
	int64_t interval_due;	/* its end, on the beat */
	const char *prometheus; /* NULL also once it could not be written */
	bool columns_named;
	bool summarised;
	bool last_reported; /* the interval that the end of the run cut short */
	bool finished;
	bool progress_shown;
	struct errors errors;
	struct loop_timer interval;
	struct loop_timer progress;
	struct loop_signal quit;
	struct report report;
	struct report last; /* the report of the end, into text */
};

/* Before the options are parsed: the arguments tell in which form an error in them is to be reported. */
void reporting_prepare(struct reporting *reporting, struct environment *environment, const struct command *command,
		       int argc, char *const *argv);

/* The options are known; sets the environment's output for them. */
void reporting_choose(struct reporting *reporting, const struct reporting_options *options);

/* The command is about to start. Fails where the figures could not be written. */
enum outcome reporting_announce(struct reporting *reporting);

/* The command has started: its figures may be asked for until reporting_finish(). */
void reporting_start(struct reporting *reporting, void *state);

/* The verdict is about to be printed. NULL is fine. */
void reporting_summary(struct reporting *reporting);

/* The run is over, or could not begin; the state is about to go. Takes the last figures, but does not print them. */
void reporting_finish(struct reporting *reporting);

/* Prints what finishes the output: nothing is left that could still fail. */
void reporting_conclude(struct reporting *reporting);

/* After the last error. */
void reporting_free(struct reporting *reporting);

/*
 * Begins an object of that type in the JSON stream: the caller adds fields and ends it with reporting_end_record().
 * NULL in every other form; reporting may be NULL.
 */
struct report *reporting_begin_record(struct reporting *reporting, const char *type);
void reporting_end_record(struct reporting *reporting);

/*
 * The form that the options say, and the one that the bare arguments do: whatever they mean otherwise, who asked for
 * JSON parses what comes.
 */
const struct reporting_form *reporting_chosen_form(const struct reporting_options *options);
const struct reporting_form *reporting_asked_form(int argc, char *const *argv);

/*
 * Keeps an error that is printed elsewhere for the report, and a hint with the error before it. part as in struct log;
 * reporting may be NULL.
 */
void reporting_record_error(struct reporting *reporting, const char *part, const struct error *error);
void reporting_record_hint(struct reporting *reporting, const char *text);

/* Takes the line of progress off the terminal, before something else is printed. NULL is fine. */
void reporting_clear(struct reporting *reporting);

/* What the forms share: what the run is, the command's figures, and how it ended. */
void reporting_add_head(struct reporting *reporting);
void reporting_add_figures(struct reporting *reporting, enum report_span span);
void reporting_add_verdict(struct reporting *reporting);

/* Prints the figures so far for a person: on stderr where standard output is for a program. */
void reporting_say_so_far(struct reporting *reporting);

/* Replaces the file, if one was asked for. */
void reporting_write_prometheus(struct reporting *reporting);

/* Shows a line of progress from time to time, if a person looks on. */
void reporting_start_progress(struct reporting *reporting);

#endif
