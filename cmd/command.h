/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A command is one const row. Dispatch, --list, help, links, man pages and completions use the rows in cmd/table.c.
 */
#ifndef CMD_COMMAND_H
#define CMD_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/environment.h"
#include "core/figures.h"
#include "core/options.h"

/* Why a run is interrupted. */
enum interruption {
	INTERRUPTION_SIGNAL = 1, /* SIGINT, SIGTERM or SIGHUP */
	INTERRUPTION_DEADLINE,	 /* run.c has reported the error and recorded the failure */
};

struct command {
	const char *name;
	const char *summary;  /* half a line for --help and the man page */
	const char *synopsis; /* the lines of "Usage:" without the name, each ending in a newline */
	const char *examples; /* three such lines with a comment each, for -h; NULL without WITH_HELP */
	const struct option *options;
	size_t options_size;
	bool linked;		/* symlinks.sh makes a link with its name */
	bool chooses_transport; /* start() opens environment->transport, not run.c */
	bool prints_status;	/* the last line is "return status N", as that of the stock tool */

	/*
	 * Checks the options beyond what the tables can express, before any device is opened. Returns OUTCOME_USAGE
	 * after it has reported the error. May be NULL.
	 */
	enum outcome (*check)(struct environment *environment, const void *options);

	/*
	 * True if a run with these options is open-ended and exists for its output: when that has no reader SIGPIPE
	 * ends it. NULL: never.
	 */
	bool (*is_open_ended)(const void *options);

	/* What a run with these options shows while it lasts. NULL: LIVE_ROWS. */
	enum live (*live)(const void *options);

	/*
	 * Allocates the state, starts the first steps and returns. The run ends when the command calls
	 * environment_finish(). After a failure stop() follows, too, unless *state is still NULL.
	 */
	enum outcome (*start)(struct environment *environment, const void *options, void **state);

	/*
	 * Starts an orderly shutdown: leave, disconnect, print results, environment_finish(). Called at most once.
	 * run.c limits the time of a shutdown.
	 */
	void (*interrupt)(void *state, enum interruption reason);

	/* Brings the figures of the run up to date, and returns the same table and struct each time. May be NULL. */
	struct figures (*figures)(void *state);

	/* Frees the state after the loop has ended or start() has failed, even if the run is not finished. */
	void (*stop)(void *state);
};

/* The rows in cmd/table.c, ending with NULL. */
extern const struct command *const command_table[];

#endif
