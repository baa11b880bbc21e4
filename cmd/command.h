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

#include "cmd/life.h"
#include "cmd/path.h"
#include "cmd/reporting/reporting.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/options.h"
#include "core/outcome.h"
#include "transport/transport.h"

/* What every command has: the first member of its options struct, filled by the COMMON_OPTIONS rows. */
struct common_options {
	int64_t timeout;       /* nanoseconds for each phase that waits */
	int64_t deadline;      /* nanoseconds for the whole run, 0 for none */
	const char *transport; /* NULL: RDMATEST_TRANSPORT, or the default one */
	struct reporting_options reporting;
	struct life_options life;     /* of a server; else zeros */
	struct path_options path;     /* of commands with PATH_OPTIONS */
	struct family_options family; /* as well */
	bool poll;
	int64_t spin; /* microseconds */
	bool debug;
	bool help;
	bool version;
};

/* What main hands down; there is no other shared state. */
struct environment {
	struct loop *loop;
	struct log log;
	struct transport *transport; /* opened before start() */
	uint64_t given;		     /* the options that were on the command line, for options_given() */
	enum outcome outcome;	     /* of the run: the first failure stays */
	FILE *output;		     /* results in classic lines: through environment_output() */
	struct reporting *reporting; /* NULL in a run that is a part of another one */
	struct life *life;	     /* also */

	/* Of a run that is a part of another one; else NULL. They come from inside the command: act later. */
	void (*ready)(void *owner);
	void (*finished)(void *owner); /* in place of the end of the loop */
	void *owner;
};

/* Why a run is to end before its own end. */
enum interruption {
	INTERRUPTION_SIGNAL = 1, /* SIGINT or SIGTERM */
	INTERRUPTION_DEADLINE,	 /* main has said so on stderr, and counts the run as failed */
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
	 * Starts the run: makes its state, starts the first steps, returns. The run ends when the command calls
	 * environment_finish(). On failure the command has freed everything and *state is NULL.
	 */
	enum outcome (*start)(struct environment *environment, const void *options, void **state);

	/*
	 * Begins an orderly end: leave, disconnect, print what is known, environment_finish(). Comes at most once;
	 * main enforces a limit on how long it takes.
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
void environment_note(struct environment *environment, enum outcome outcome);

/* Notes the outcome and ends the run. */
void environment_finish(struct environment *environment, enum outcome outcome);

/* Says that a peer may come there: the server listens, the receiver has joined. If that fails the run ends. */
void environment_ready(struct environment *environment, const struct address *address);

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
struct report *environment_begin_record(struct environment *environment, const char *type);
void environment_end_record(struct environment *environment);

/* The transport that the user chose, on the command line or else in RDMATEST_TRANSPORT; NULL if none. */
const char *common_transport(const struct common_options *common);

/* transport_open() of the transport of that name into environment->transport, which spins as the options say. */
enum outcome common_open(const struct common_options *common, const char *name, struct environment *environment);

/* Default of --timeout: long enough for a busy subnet manager, far below the 75-100 s the kernel tries. */
#define COMMAND_TIMEOUT_DEFAULT (10 * CLOCK_NS_PER_S)

/* What a program reads instead of a person: make WITH_JSON=0 is without. */
/* clang-format off */
#if WITH_JSON
#define PROGRAM_OPTIONS(type) \
	OPTION_ROW(OPTION_FLAG, 0, "json", type, common.reporting.json, \
		   .help = "Print one JSON object at the end, and nothing else"), \
	OPTION_ROW(OPTION_FLAG, 0, "json-stream", type, common.reporting.json_stream, \
		   .help = "Print a JSON object a line, as things happen"), \
	OPTION_ROW(OPTION_FLAG, 0, "csv", type, common.reporting.csv, \
		   .help = "Print the names of columns, then a row for each interval and the whole"), \
	OPTION_ROW(OPTION_TEXT, 0, "prometheus", type, common.reporting.prometheus, .argument = "FILE", \
		   .help = "Write the figures into FILE for node_exporter, each --interval-report or 15 s"),
#define PROGRAM_RULES \
	{ OPTION_EXCLUDES, "json", "json-stream" }, \
	{ OPTION_EXCLUDES, "json", "csv" }, \
	{ OPTION_EXCLUDES, "json-stream", "csv" }, \
	{ OPTION_EXCLUDES, "quiet", "json" }, \
	{ OPTION_EXCLUDES, "quiet", "json-stream" }, \
	{ OPTION_EXCLUDES, "quiet", "csv" },
#else
#define PROGRAM_OPTIONS(type)
#define PROGRAM_RULES
#endif
#define REPORTING_OPTIONS(type) \
	PROGRAM_OPTIONS(type) \
	OPTION_ROW(OPTION_FLAG, 0, "quiet", type, common.reporting.quiet, \
		   .help = "Print nothing but errors"), \
	OPTION_ROW(OPTION_FLAG, 0, "histogram", type, common.reporting.histogram, \
		   .help = "Draw the distribution of times in the summary; in JSON, list it"), \
	OPTION_ROW(OPTION_DURATION, 0, "interval-report", type, common.reporting.interval, \
		   .minimum = 10 * CLOCK_NS_PER_MS, .maximum = 86400 * CLOCK_NS_PER_S, .initial = 0, \
		   .argument = "TIME", .initial_text = "none", .help = "Report also each interval by itself"),
#define COMMON_RULES \
	PROGRAM_RULES \
	{ OPTION_EXCLUDES, "quiet", "histogram" }, \
	{ OPTION_EXCLUDES, "poll", "spin" }
/* Of commands that can be a server, and what excludes them or what they need where it is not. */
#define SERVER_OPTIONS(type) \
	OPTION_ROW(OPTION_INTEGER, 0, "ready-fd", type, common.life.ready_fd, .argument = "N", .minimum = 3, \
		   .maximum = INT32_MAX, .initial = 0, .initial_text = "none", \
		   .help = "Server: when it can be reached, write \"ready ADDRESS PORT\" into descriptor N and close it"), \
	OPTION_ROW(OPTION_TEXT, 0, "pidfile", type, common.life.pidfile, .argument = "FILE", \
		   .help = "Server: keep the number of its process in FILE from then to its end"), \
	OPTION_ROW(OPTION_FLAG, 0, "daemon", type, common.life.daemon, \
		   .help = "Server: go into the background when it can be reached; the command ends then, or fails"),
#define WAIT_SERVER_OPTION(type, member) \
	OPTION_ROW(OPTION_DURATION, 0, "wait-server", type, member, .argument = "TIME", .minimum = 0, \
		   .maximum = 86400 * CLOCK_NS_PER_S, .initial = 0, \
		   .help = "Client: while nobody is there, try again, so long"),
#define IDLE_TIMEOUT_OPTION(type, member, text) \
	OPTION_ROW(OPTION_DURATION, 0, "idle-timeout", type, member, .argument = "TIME", .minimum = CLOCK_NS_PER_MS, \
		   .maximum = 366 * 86400 * CLOCK_NS_PER_S, .initial = 0, .initial_text = "none", .help = text),
#define SERVER_RULES(relation, role) \
	{ relation, "ready-fd", role }, \
	{ relation, "pidfile", role }, \
	{ relation, "daemon", role }
#define COMMON_OPTIONS(type, debug_letter) COMMON_OPTIONS_WITH(type, debug_letter, "RDMATEST_TRANSPORT, or verbs")
#define COMMON_OPTIONS_WITH(type, debug_letter, transport_default) \
	OPTION_ROW(OPTION_DURATION, 0, "timeout", type, common.timeout, .minimum = CLOCK_NS_PER_MS, \
		   .maximum = 86400 * CLOCK_NS_PER_S, .initial = COMMAND_TIMEOUT_DEFAULT, .argument = "TIME", \
		   .help = "Longest wait of each phase: look-up, resolve, connect, reply, disconnect"), \
	OPTION_ROW(OPTION_DURATION, 0, "deadline", type, common.deadline, .minimum = CLOCK_NS_PER_MS, \
		   .maximum = 366 * 86400 * CLOCK_NS_PER_S, .initial = 0, .argument = "TIME", \
		   .initial_text = "none", .help = "Longest time of the whole run"), \
	OPTION_ROW(OPTION_TEXT, 0, "transport", type, common.transport, .argument = "NAME", \
		   .initial_text = transport_default, \
		   .help = "How to reach the peer: verbs (an RDMA device), or soft (RoCE v2 in this program)"), \
	REPORTING_OPTIONS(type) \
	OPTION_ROW(OPTION_FLAG, 0, "poll", type, common.poll, \
		   .help = "Never sleep: look for work without a pause, which is fast and takes a whole processor"), \
	OPTION_ROW(OPTION_INTEGER, 0, "spin", type, common.spin, .minimum = 0, .maximum = 1000000, .initial = 0, \
		   .argument = "USEC", .help = "Look for work for that many microseconds after the last before sleeping"), \
	OPTION_ROW(OPTION_FLAG, debug_letter, "debug", type, common.debug, \
		   .help = "Trace connection events and states on stderr"), \
	OPTION_ROW(OPTION_FLAG, 'h', "help", type, common.help, .help = "Print this help"), \
	OPTION_ROW(OPTION_FLAG, 0, "version", type, common.version, .help = "Print the version")
/* clang-format on */

#endif
