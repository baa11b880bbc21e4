/* SPDX-License-Identifier: BSD-2-Clause */
/* A command's run: the data that command.c gives it, and the functions that it calls. */
#pragma once

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

/* Whether a command runs other commands in its process. */
#define HAS_CHILD_RUNS (COMMAND_selftest || COMMAND_doctor)

enum {
	RESULT_SIZE = 1024
};

/* One of the --paths. */
struct path_facts {
	uint16_t port;	   /* UDP source port; 0: unknown */
	const char *worse; /* how it is worse than the others; NULL: it is not */
	bool good;	   /* not worse, and hardly more losses than the best paths: not broken */
	uint64_t answered; /* pings: packets of that size pass both ways */
	bool failed, lost_out, lost_back;
	char refusal[160]; /* why it did not connect; "": it did, or nothing answered */
};

/* An rping child run's results for its parent command. */
struct ping_facts {
	uint64_t answered;
	int64_t connecting;		 /* nanoseconds */
	int64_t there, both;		 /* of all pings: until the server had read them; in all */
	uint32_t mtu;			 /* path MTU */
	uint32_t size;			 /* the last ping's */
	bool not_read, not_written_back; /* progress of a ping without an answer in time, or whose server is gone */
	struct path_facts *paths;	 /* room for path_count of them */
	size_t path_count;
};

struct run {
	struct loop *loop;
	struct log log;
	struct transport *transport; /* opened before start() */
	uint64_t given;		     /* bits of the options on the command line, for options_given() */
	enum outcome outcome;	     /* the run's: the first failure */
	const struct command *command;
	int64_t begun;	       /* on the clock: start of the look-ups' limits */
	bool ended;	       /* run_finish() was called: other callbacks of this iteration do nothing */
	struct output *output; /* for results in classic lines */
	char *input;	       /* the command's read() allocates it */

	/* NULL in a child run of selftest or doctor. */
	struct reporting *reporting;
	struct loop_timer waiting;		/* for a server that has received nothing */
	int daemon;				/* the pipe to the parent of --daemon, else 0 */
	const struct common_options *to_set_up; /* NULL also after the first run_setup_done() */

	bool child;		 /* a child run: it also stops the loop once a peer may come */
	struct address ready;	 /* the address for peers; without a family before */
	struct ping_facts *ping; /* an rping child run's, or NULL */
	char verdict[RESULT_SIZE];
};

/* Reports the error of the transport's last call or event, unless that has been done. */
void run_report_error(const struct run *run);

/* Records a failure and reports it. The first one decides the exit code. OUTCOME_OK changes nothing. */
void run_record_outcome(struct run *run, enum outcome outcome);

/*
 * Ends the run: records the outcome and the verdict's text, which command.c prints after the callbacks of this
 * iteration: "NAME: [FAILED: ]TEXT (TRANSPORT[, DEVICE])". format gives TEXT; device is NULL for none or several. Only
 * the first call has an effect.
 */
void run_finish(struct run *run, enum outcome outcome, const char *device, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * Runs the loop until a callback calls loop_stop(), as the end of each run does, of a child's too: wait in a loop for a
 * condition. Returns false if this run has ended. Reports a failure of the loop, which ends the run.
 */
bool run_wait(struct run *run);

/* Prints a verdict line about part of the run at once: a target, a client, a queue pair. */
void run_print_result(struct run *run, enum outcome outcome, const char *device, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* For command.c and child_run.c: prints an ended run's verdict, and for a command with prints_status its last line. */
void run_print_verdict(const struct run *run);

/*
 * Call it once the setup is complete, before test data flows. After this the run looks up no names, connects to no
 * addresses, and opens devices only for connecting peers. With several targets or members the data of the first may
 * have moved. Drops privileges; only the first call does. A server or receiver gives its address and its ready line,
 * which is printed after that; with --daemon it then goes into the background. Others give NULL. Returns false after an
 * error, which has ended the run.
 */
bool run_setup_done(struct run *run, const struct address *address, const char *line);

/*
 * Over soft drops privileges, except those in kept (enum of core/privileges.h) and what --prometheus needs. Later calls
 * drop more; run_setup_done() is the last.
 */
void run_drop_privileges(const struct run *run, unsigned kept);

/*
 * run_setup_done() for a server with the line "NAME: WORD on ADDRESS", and a wildcard's local addresses. host is the
 * address as given, or NULL. A hint says if no other host can reach it.
 */
bool run_listens(struct run *run, const struct endpoint *listener, const char *host, const char *name,
		 const char *word);

/* Prints a line of the command's output. */
void run_print(const struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints a line of a command's help, without a run. */
void run_print_help(struct output *output, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Allocates count zeroed objects. Reports a lack of memory and returns NULL. */
void *run_allocate(const struct run *run, size_t count, size_t size);

/* Begins an object of that type in the JSON stream. End it with report_close(). NULL without --json-stream. */
static inline struct report *run_begin_record(struct run *run, const char *type)
{
	return WITH_REPORT ? reporting_begin_record(run->reporting, type) : NULL;
}

/* The run's output while it lasts. */
static inline enum live run_live(const struct run *run)
{
	return WITH_REPORT && run->reporting ? run->reporting->live : LIVE_NO;
}
