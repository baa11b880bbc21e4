/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A command: one const row. Dispatch, --list, help, links, man pages and completion all derive from the rows in
 * cmd/table.c.
 */
#ifndef CMD_COMMAND_H
#define CMD_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cmd/common.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/options.h"
#include "core/outcome.h"
#include "transport/transport.h"

/* What main hands down; there is no other shared state. */
struct environment {
	struct loop *loop;
	struct log log;
	struct transport *transport;	       /* opened before start() */
	uint64_t given;			       /* the options that were on the command line, for options_given() */
	enum outcome outcome;		       /* of the run: the first failure stays */
	bool ended;			       /* what else comes in that turn of the loop is too late */
	FILE *output;			       /* results in classic lines: through environment_output() */
	struct reporting *reporting;	       /* NULL in a run that is a part of another one */
	struct daemon *daemon;		       /* also */
	const struct common_options *confined; /* also; and NULL once the run has given up what it could */

	/* Of a run that is a part of another one; else NULL. They come from inside the command: act later. */
	void (*ready)(void *owner);
	void (*finished)(void *owner); /* in place of the end of the loop */
	void *owner;
};

/* Why a run is to end before its own end. */
enum interruption {
	INTERRUPTION_SIGNAL = 1, /* SIGINT or SIGTERM */
	INTERRUPTION_DEADLINE,	 /* main has said so on stderr, and counts the run as failed */
	INTERRUPTION_NO_READER,	 /* nobody reads standard output; only of a command with is_open_ended() */
};

struct command {
	const char *name;
	const char *summary;  /* half a line for --list and the man page */
	const char *synopsis; /* the lines of "Usage:" after the name, each ending in a newline */
	const struct option *options;
	const struct option_rule *rules;
	size_t options_size;
	bool linked;		/* it is called by its own name too, through a link */
	bool chooses_transport; /* start() opens environment->transport by itself */

	/*
	 * Checks what the tables cannot say about the options (OUTCOME_USAGE after one line on stderr). No device is
	 * touched yet. May be NULL.
	 */
	enum outcome (*check)(struct environment *environment, const void *options);

	/*
	 * True if a run with these options exists for its output and has no end of its own: it ends when nobody reads
	 * what it prints. May be NULL: never.
	 */
	bool (*is_open_ended)(const void *options);

	/*
	 * Starts the run: makes its state, starts the first steps, returns. The run ends when the command calls
	 * environment_finish(). On failure the command has freed everything and *state is NULL.
	 */
	enum outcome (*start)(struct environment *environment, const void *options, void **state);

	/*
	 * Begins an orderly end: leave, disconnect, print what is known, environment_finish(). Comes at most once, or
	 * once more after INTERRUPTION_NO_READER; main enforces a limit on how long it takes.
	 */
	void (*interrupt)(void *state, enum interruption reason);

	/*
	 * Adds what is known so far, of the whole run or since the last interval_over(), to a report. The names are the
	 * same each time. Both may be NULL.
	 */
	void (*report)(void *state, struct report *report, enum report_span span);
	void (*interval_over)(void *state);

	/* Frees the state after the loop has ended, in whatever state things are. */
	void (*stop)(void *state);
};

/* The rows, ending with a NULL name: cmd/table.c. */
extern const struct command *const command_table[];

/* Notes a failure; the first one decides the exit code. OUTCOME_OK changes nothing. */
static inline void environment_note(struct environment *environment, enum outcome outcome)
{
	if (environment->outcome == OUTCOME_OK)
		environment->outcome = outcome;
}

/* Notes the outcome and ends the run. */
void environment_finish(struct environment *environment, enum outcome outcome);

/*
 * A peer may come there: the server listens, the receiver has joined. Writes the pidfile, gives up what
 * environment_settled() does, then says so in every way that was asked for: line is printed, before the descriptor gets
 * its own. If one fails the run ends.
 */
void environment_ready(struct environment *environment, const struct address *address, const char *line);

/*
 * The run is set up: no name is looked up, no device opened and no address connected to any more, but for those of
 * peers that come. Gives up what it does not need from here on. Only the first call counts; environment_ready() is one.
 */
void environment_settled(struct environment *environment);

/* Where results are printed, in lines. */
FILE *environment_output(const struct environment *environment);

/*
 * Prints the summary of the run, if it is to have one and has not had it: a command calls this right before its
 * verdict, and when a run fails that has figures to show.
 */
void environment_summary(struct environment *environment);

/*
 * Begins an object of that type in the JSON stream, to be ended with environment_end_record(). NULL if there is no such
 * stream.
 */
static inline struct report *environment_begin_record(struct environment *environment, const char *type)
{
	return WITH_JSON ? reporting_begin_record(environment->reporting, type) : NULL;
}

static inline void environment_end_record(struct environment *environment)
{
	reporting_end_record(environment->reporting);
}

#endif
