/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A command is one const row. command.c takes a run of it from the arguments to the exit code: it opens the transport,
 * calls start(), and prints the summary, the verdict and "return status N".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cmd/run.h"

/* Why a run is interrupted. */
enum interruption {
	INTERRUPTION_SIGNAL = 1, /* SIGINT, SIGTERM or SIGHUP */
	INTERRUPTION_DEADLINE,	 /* command.c has reported the error and recorded the failure */
};

struct command {
	const char *name;
	const char *summary;  /* half a line for --help and the man page; NULL without WITH_HELP */
	const char *synopsis; /* the lines of "Usage:" without the name, each ending in a newline */
	const char *examples; /* three such lines with a comment each, for -h; NULL without WITH_HELP */
	const struct option *options;
	size_t options_size;
	bool linked;		/* symlinks.sh makes a link with its name */
	bool chooses_transport; /* start() opens run->transport, not command.c */
	bool prints_status;	/* the last line is the stock tool's "return status N" */

	/*
	 * Checks the options beyond the tables, before any device is opened. Reports an error and returns
	 * OUTCOME_USAGE. May be NULL.
	 */
	enum outcome (*check)(struct run *run, const void *options);

	/*
	 * Reads the input that the options name, while a signal still ends the process and before root's privileges are
	 * dropped. Reports and returns a failure. May be NULL. Only WITH_EXTRAS.
	 */
	enum outcome (*read)(struct run *run, const void *options);

	/*
	 * True if a run with these options is open-ended and exists for its output: SIGPIPE ends it once that has no
	 * reader. NULL: never.
	 */
	bool (*is_open_ended)(const void *options);

	/* The output of a run with these options while it lasts. NULL: LIVE_ROWS. */
	enum live (*live)(const void *options);

	/*
	 * Allocates the state, looks names up, starts the first steps and returns. The run ends when the command calls
	 * run_finish(), also within start(). Reports a failure, unless transport->error has it; stop() follows, unless
	 * *state is still NULL.
	 */
	enum outcome (*start)(struct run *run, const void *options, void **state);

	/*
	 * The whole run, step by step: waits in run_wait() for reports of loop callbacks, and calls
	 * run_finish(). NULL: the callbacks do everything. HAS_CHILD_RUNS (cmd/run.h) names the commands with it.
	 */
	void (*run)(void *state);

	/*
	 * Starts an orderly shutdown: leave, disconnect, print results, run_finish(). Called at most once.
	 * command.c limits the time of a shutdown.
	 */
	void (*interrupt)(void *state, enum interruption reason);

	/* Updates the run's figures, and returns the same table and struct each time. May be NULL. */
	struct figures (*figures)(void *state);

	/* Frees the state after the loop has ended or start() has failed, even if the run is not finished. */
	void (*stop)(void *state);
};

/* ---- the rows ---- */

/* A row's summary and examples. */
#define COMMAND_TEXT(text) (WITH_HELP ? text : NULL)

/*
 * cmd/table.c has the program's rows, up to NULL: dispatch, --list, help, links, man pages and completions use them.
 * cmd/flags.mk defines COMMAND_x as 1 if the program has x, else as 0.
 */
extern const struct command *const command_table[];

extern const struct command rping_command;
extern const struct command ucmatose_command;
extern const struct command mckey_command;
extern const struct command selftest_command;
extern const struct command doctor_command;

/* A stop() that is needed only if the end of the process does not suffice. */
#define CLEAN_UP(function) (TRANSPORT_CLEANS_UP ? function : NULL)

/* ---- from the arguments to the exit code ---- */

/*
 * Parses argv (argv[0] is skipped), handles --help and --version, else opens the transport and runs the command. name
 * is what the user typed: "rping", "rdmatest rping".
 */
enum outcome command_run(const struct command *command, const char *name, int argc, char *const *argv,
			 struct output *output);

/*
 * The program's last step: closes the output. Returns outcome, or if that is OUTCOME_OK and a write failed, reports
 * this and returns OUTCOME_INTERNAL.
 */
enum outcome command_end(const struct log *log, struct output *output, enum outcome outcome);

/* Prints the help of a command. */
void command_help(const struct command *command, const char *name, bool brief, struct output *output);
