/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of rping, the interfaces of its client and server, and helpers for both. */
#ifndef CMD_RPING_RPING_H
#define CMD_RPING_RPING_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/command.h"

struct rping_options {
	struct common_options common;
	bool server;
	bool client;
	struct option_list addresses;
	const char *targets; /* a file with more addresses */
	const char *source;
	int64_t port;
	bool verbose;
	bool validate;
	int64_t count;	   /* 0: unlimited */
	int64_t size;	   /* 0: default; of a sweep the first one */
	int64_t last_size; /* of a sweep, after size in OPTION_SIZES; 0: no sweep */
	int64_t warmup;
	int64_t interval;     /* nanoseconds between the starts of two pings; 0: no pause */
	int64_t duration;     /* nanoseconds; 0: unlimited */
	int64_t wait_server;  /* nanoseconds; 0: one round (cmd/dial.h) */
	int64_t idle_timeout; /* nanoseconds; 0: unlimited */
	int64_t max_clients;  /* 0: unlimited */
	bool persistent;
	bool own_qp;
};

enum {
	PINGS_TEXT_SIZE = 64,
	RPING_CLIENTS_MAX = 16384,		      /* connected at once to a server with -P */
	SWEEP_COUNT = 1000,			      /* pings of each size without -C and --duration */
	RPING_VERDICT_SIZE = ADDRESS_TEXT_SIZE + 512, /* with a name as the user typed it */
	/*
	 * The client signals one advertisement in this many pings, which frees its send queue. More would cost a
	 * wake-up each.
	 */
	RPING_SIGNAL_EVERY = 16,
};

/* The note of a verdict without -V. */
#define RPING_NOT_CHECKED "; payload not checked, use -V"

/* Writes "1 ping", "3 pings", or if requested is not 0, "3 of 10 pings". Returns text. */
const char *rping_pings_text(uint64_t answered, uint64_t requested, char text[PINGS_TEXT_SIZE]);

/* Writes "1 byte", "100 bytes" or "64 to 1024 bytes". Returns text. */
const char *rping_sizes_text(uint32_t shortest, uint32_t longest, char text[PINGS_TEXT_SIZE]);

/* Returns the last size of a sweep, -S FROM-TO, or 0. Its steps are intervals of the report, so it needs that. */
static inline uint32_t rping_sweep(const struct rping_options *options)
{
	return WITH_REPORT ? (uint32_t)options->last_size : 0;
}

/* Returns the address that the server listens on, as given; the wildcard address if none or a device name was given. */
const char *rping_listen_address(const struct rping_options *options);

/* Returns the options of each endpoint of the run. */
struct endpoint_options rping_endpoint_options(const struct rping_options *options);

/*
 * Checks the address text, the argument of option, without a name look-up, also against the family of -I. Reports an
 * error and returns OUTCOME_USAGE if it cannot work.
 */
enum outcome rping_check_address(const struct rping_options *options, const char *option, const char *text,
				 const struct log *log);

/*
 * Prints the -d lines of the stock tool that scripts look for, and with -v the line of a disconnect. A completion is
 * printed when delivery is confirmed: most sends are unsignalled, and the peer's next message confirms them.
 */
void rping_classic_event(const struct environment *environment, const struct rping_options *options,
			 const struct endpoint *endpoint, enum event_kind kind);
void rping_classic_completion(const struct environment *environment, const char *name);

/* The functions of struct command for each role. Its state, struct rping_client or rping_server, begins with options.
 */
enum outcome rping_client_start(struct environment *environment, const struct rping_options *options, void **state);
void rping_client_interrupt(void *state, enum interruption reason);
struct figures rping_client_figures(void *state);
void rping_client_stop(void *state);

enum outcome rping_server_start(struct environment *environment, const struct rping_options *options, void **state);
void rping_server_interrupt(void *state, enum interruption reason);
struct figures rping_server_figures(void *state);
void rping_server_stop(void *state);

/* Adds the targets of the client to a list of a report. member points to a pointer to the client. */
void rping_client_report_targets(struct report *report, const void *member);

#endif
