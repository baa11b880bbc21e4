/* SPDX-License-Identifier: BSD-2-Clause */
/* The state that run.c and a command share, and how a command reports that it is set up and that it has ended. */
#ifndef CMD_ENVIRONMENT_H
#define CMD_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cmd/common.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/outcome.h"
#include "transport/transport.h"

struct command;

/* Whether a command runs others in its process. */
#define HAS_CHILD_RUNS (COMMAND_selftest || COMMAND_doctor)

enum {
	RESULT_SIZE = 1024
};

struct environment {
	struct loop *loop;
	struct log log;
	struct transport *transport; /* opened before start() */
	uint64_t given;		     /* bits of the options on the command line, for options_given() */
	enum outcome outcome;	     /* of the run: the first failure */
	const struct command *command;
	int64_t begun; /* on the clock: the limits of look-ups count from it */
	bool ended;    /* environment_finish() was called: other callbacks of this iteration do nothing */
	char verdict[RESULT_SIZE];
	FILE *output; /* for results in classic lines */

	/* NULL in a child run of selftest or doctor. */
	struct reporting *reporting;
	enum live live;
	struct daemon *daemon;			/* NULL also without --daemon */
	const struct common_options *to_set_up; /* NULL also after the first environment_setup_done() */

	/* Callbacks of a child run, else NULL. The command calls them, so they must not free its state. */
	void (*ready)(void *context);
	void (*finished)(void *context); /* replaces loop_stop() */
	void *context;
};

/* Reports why the last call of the transport failed, or what the event carries, unless that has been done. */
static inline void environment_report_error(const struct environment *environment)
{
	if (!environment->transport)
		return;
	log_report(&environment->log, &environment->transport->error);
	error_clear(&environment->transport->error);
}

/* Records a failure and reports it. The first one decides the exit code. OUTCOME_OK changes nothing. */
static inline void environment_record_outcome(struct environment *environment, enum outcome outcome)
{
	if (!outcome)
		return;
	environment_report_error(environment);
	if (!environment->outcome)
		environment->outcome = outcome;
}

/*
 * Ends the run: records the outcome and the text of the verdict, which run.c prints after the callbacks of this
 * iteration: "NAME: [FAILED: ]TEXT (TRANSPORT[, DEVICE])". format gives TEXT; device is NULL for none or several. Only
 * the first call has an effect.
 */
void environment_finish(struct environment *environment, enum outcome outcome, const char *device, const char *format,
			...) __attribute__((format(printf, 4, 5)));

/* Prints such a line about a part of the run at once: a target, a client, a queue pair. */
void environment_print_result(const struct environment *environment, bool failed, const char *device,
			      const char *format, ...) __attribute__((format(printf, 4, 5)));

/*
 * For run.c and child_run.c: prints the verdict of a run that has ended, and for a command with prints_status its last
 * line.
 */
void environment_print_verdict(const struct environment *environment);

/*
 * Call it when the run is set up, before its data moves. From now on it looks up no name, connects to no address, and
 * opens devices only for connecting peers. With several targets or members the data of the first may have moved. Drops
 * privileges; only the first call does. A server or receiver gives its address and its ready line, which is printed
 * after that; with --daemon it then goes into the background. Others give NULL. Returns false after an error, which has
 * ended the run.
 */
bool environment_setup_done(struct environment *environment, const struct address *address, const char *line);

/*
 * The same for a server, whose line is "NAME: WORD on ADDRESS", with the local addresses that a wildcard stands for.
 * host is the address as given, or NULL. A hint says if no other host can reach it.
 */
bool environment_listens(struct environment *environment, const struct endpoint *listener, const char *host,
			 const char *name, const char *word);

/* Prints a line on the output, as every line of a command is printed. main() has it line-buffered. */
void environment_print(const struct environment *environment, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Allocates count zeroed objects. Returns NULL after it has reported that memory is short. */
void *environment_allocate(const struct environment *environment, size_t count, size_t size);

/* Begins an object of that type in the JSON stream. End it with report_close(). NULL without --json-stream. */
static inline struct report *environment_begin_record(struct environment *environment, const char *type)
{
	return WITH_REPORT ? reporting_begin_record(environment->reporting, type) : NULL;
}

/* What the run shows while it lasts. */
static inline enum live environment_live(const struct environment *environment)
{
	return WITH_REPORT ? environment->live : LIVE_NO;
}

#endif
