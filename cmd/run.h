/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A command is one const row. A run lasts from the arguments to the exit code: run.c opens the transport, calls
 * start(), and prints the summary, the verdict and "return status N". The command gets a struct environment, and
 * reports through it that it is set up and that it has ended.
 */
#ifndef CMD_RUN_H
#define CMD_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/common.h"
#include "core/figures.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/options.h"
#include "core/outcome.h"
#include "core/output.h"
#include "transport/transport.h"

struct command;
struct environment;

/* Why a run is interrupted. */
enum interruption {
	INTERRUPTION_SIGNAL = 1, /* SIGINT, SIGTERM or SIGHUP */
	INTERRUPTION_DEADLINE,	 /* run.c has reported the error and recorded the failure */
};

struct command {
	const char *name;
	const char *summary;  /* half a line for --help and the man page; NULL without WITH_HELP */
	const char *synopsis; /* the lines of "Usage:" without the name, each ending in a newline */
	const char *examples; /* three such lines with a comment each, for -h; NULL without WITH_HELP */
	const struct option *options;
	size_t options_size;
	bool linked;		/* symlinks.sh makes a link with its name */
	bool chooses_transport; /* start() opens environment->transport, not run.c */
	bool prints_status;	/* the last line is the stock tool's "return status N" */

	/*
	 * Checks the options beyond the tables, before any device is opened. Reports an error and returns
	 * OUTCOME_USAGE. May be NULL.
	 */
	enum outcome (*check)(struct environment *environment, const void *options);

	/*
	 * Reads the input that the options name, while a signal still ends the process and before root's privileges are
	 * dropped. Reports and returns a failure. May be NULL.
	 */
	enum outcome (*read)(struct environment *environment, const void *options);

	/*
	 * True if a run with these options is open-ended and exists for its output: SIGPIPE ends it once that has no
	 * reader. NULL: never.
	 */
	bool (*is_open_ended)(const void *options);

	/* The output of a run with these options while it lasts. NULL: LIVE_ROWS. */
	enum live (*live)(const void *options);

	/*
	 * Allocates the state, looks names up, starts the first steps and returns. The run ends when the command calls
	 * environment_finish(), also within start(). After a failure stop() follows, too, unless *state is still NULL.
	 */
	enum outcome (*start)(struct environment *environment, const void *options, void **state);

	/*
	 * The whole run, step by step: waits in environment_wait() for reports of loop callbacks, and calls
	 * environment_finish(). NULL: the callbacks do everything.
	 */
	void (*run)(void *state);

	/*
	 * Starts an orderly shutdown: leave, disconnect, print results, environment_finish(). Called at most once.
	 * run.c limits the time of a shutdown.
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
 * The Makefile defines COMMAND_x as 1 if the program has x, else as 0.
 */
extern const struct command *const command_table[];

extern const struct command rping_command;
extern const struct command ucmatose_command;
extern const struct command mckey_command;
extern const struct command selftest_command;
extern const struct command doctor_command;

/* A stop() that is needed only if the end of the process does not suffice. */
#define CLEAN_UP(function) (TRANSPORT_CLEANS_UP ? function : NULL)

/* ---- a run's environment ---- */

/* Whether a command runs other commands in its process. */
#define HAS_CHILD_RUNS (COMMAND_selftest || COMMAND_doctor)

enum {
	RESULT_SIZE = 1024
};

/* An rping child run's results for its parent command. */
/* One of the --paths. */
struct path_facts {
	uint16_t port;	   /* of UDP; 0: not known */
	const char *worse; /* in what than the others; NULL: in nothing */
	bool good;	   /* not worse, and with hardly more losses than the best ones: nothing on it is broken */
	uint64_t answered; /* pings: packets of that size pass both ways */
	bool failed, lost_out, lost_back;
};

struct ping_facts {
	uint64_t answered;
	int64_t connecting;		 /* nanoseconds */
	uint32_t mtu;			 /* path MTU */
	uint32_t size;			 /* the last ping's */
	bool not_read, not_written_back; /* progress of a ping without an answer in time, or whose server is gone */
	struct path_facts *paths;	 /* room for path_count of them */
	size_t path_count;
};

struct environment {
	struct loop *loop;
	struct log log;
	struct transport *transport; /* opened before start() */
	uint64_t given;		     /* bits of the options on the command line, for options_given() */
	enum outcome outcome;	     /* the run's: the first failure */
	const struct command *command;
	int64_t begun;	       /* on the clock: start of the look-ups' limits */
	bool ended;	       /* environment_finish() was called: other callbacks of this iteration do nothing */
	struct output *output; /* for results in classic lines */
	char *input;	       /* the command's read() allocates it */

	/* NULL in a child run of selftest or doctor. */
	struct reporting *reporting;
	struct loop_timer waiting;		/* for a server that has received nothing */
	int daemon;				/* the pipe to the parent of --daemon, else 0 */
	const struct common_options *to_set_up; /* NULL also after the first environment_ready() */

	bool child;		 /* a child run: it also stops the loop once a peer may come */
	struct address ready;	 /* the address for peers; without a family before */
	struct ping_facts *ping; /* an rping child run's, or NULL */
	char verdict[RESULT_SIZE];
};

/* Reports the error of the transport's last call or event, unless that has been done. */
void environment_report_error(const struct environment *environment);

/* Records a failure and reports it. The first one decides the exit code. OUTCOME_OK changes nothing. */
void environment_record_outcome(struct environment *environment, enum outcome outcome);

/*
 * Ends the run: records the outcome and the verdict's text, which run.c prints after the callbacks of this iteration:
 * "NAME: [FAILED: ]TEXT (TRANSPORT[, DEVICE])". format gives TEXT; device is NULL for none or several. Only the first
 * call has an effect.
 */
void environment_finish(struct environment *environment, enum outcome outcome, const char *device, const char *format,
			...) __attribute__((format(printf, 4, 5)));

/*
 * Runs the loop until loop_stop(), which the end of a run also calls. Returns false if this run has ended. Reports a
 * failure of the loop, which ends the run.
 */
bool environment_wait(struct environment *environment);

/* Prints a verdict line about part of the run at once: a target, a client, a queue pair. */
void environment_print_result(struct environment *environment, enum outcome outcome, const char *device,
			      const char *format, ...) __attribute__((format(printf, 4, 5)));

/* For run.c and child_run.c: prints an ended run's verdict, and for a command with prints_status its last line. */
void environment_print_verdict(const struct environment *environment);

/*
 * Call it once the setup is complete, before test data flows. After this the run looks up no names, connects to no
 * addresses, and opens devices only for connecting peers. With several targets or members the data of the first may
 * have moved. Drops privileges; only the first call does. A server or receiver gives its address and its ready line,
 * which is printed after that; with --daemon it then goes into the background. Others give NULL. Returns false after an
 * error, which has ended the run.
 */
bool environment_ready(struct environment *environment, const struct address *address, const char *line);

/*
 * Over soft drops privileges, but those in kept (enum of core/privileges.h) and what --prometheus needs. Later calls
 * drop more; environment_ready() is the last.
 */
void environment_drop_privileges(const struct environment *environment, unsigned kept);

/*
 * environment_ready() for a server with the line "NAME: WORD on ADDRESS", and a wildcard's local addresses. host is the
 * address as given, or NULL. A hint says if no other host can reach it.
 */
bool environment_listens(struct environment *environment, const struct endpoint *listener, const char *host,
			 const char *name, const char *word);

/* Prints a line of the command's output. */
void environment_print(const struct environment *environment, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Allocates count zeroed objects. Reports a lack of memory and returns NULL. */
void *environment_allocate(const struct environment *environment, size_t count, size_t size);

/* Begins an object of that type in the JSON stream. End it with report_close(). NULL without --json-stream. */
static inline struct report *environment_begin_record(struct environment *environment, const char *type)
{
	return WITH_REPORT ? reporting_begin_record(environment->reporting, type) : NULL;
}

/* The run's output while it lasts. */
static inline enum live environment_live(const struct environment *environment)
{
	return WITH_REPORT && environment->reporting ? environment->reporting->live : LIVE_NO;
}

/* ---- a run ---- */

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

#endif
