/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of rping share: its options and its two roles. */
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
	const char *targets; /* a file with more of them */
	const char *source;
	int64_t port;
	bool verbose;
	bool validate;
	int64_t count; /* 0 for no end */
	int64_t size;  /* 0 if not given */
	int64_t warmup;
	int64_t interval; /* nanoseconds between two pings; 0: each follows the one before */
	int64_t rate;	  /* pings each second, in place of an interval; 0 if not given */
	int64_t duration; /* nanoseconds; 0 for no end */
	int64_t wait_server;
	int64_t idle_timeout;  /* nanoseconds; 0 for none */
	int64_t max_clients;   /* 0 for no end */
	int64_t max_connected; /* at once */
	bool one_off;
	bool persistent;
	bool own_queue;
};

enum {
	PINGS_TEXT_SIZE = 64,
	/*
	 * A client wants to know of one ping in so many that its messages have gone, so that the send queue never
	 * fills: such news is a wake-up of its own.
	 */
	RPING_REPORT_EVERY = 16,
};

/* What a verdict without -V adds, so that nobody takes it for more than it is. */
#define RPING_NOT_COMPARED "; payload not checked, use -V"

/* Writes "1 ping", "3 pings", or with a count asked for "3 of 10 pings". Returns text. */
const char *rping_pings_text(uint64_t answered, uint64_t asked, char text[PINGS_TEXT_SIZE]);

/* Where a server listens, as it was given: anywhere, if what was given names a device instead. */
const char *rping_listen_address(const struct rping_options *options);

/* What every connection of a run is made with. */
struct endpoint_options rping_endpoint_options(const struct rping_options *options);

/*
 * Of an address that option gave and that needs no look-up, says what cannot work: OUTCOME_USAGE. source is
 * ADDRESS_NONE unless it is known.
 */
enum outcome rping_check_address(const struct rping_options *options, const char *option, const char *text,
				 const struct address *source, const struct log *log);

/*
 * The lines of the stock tool's -d that scripts look for, and with -v the one of a disconnect. A completion is printed
 * when its work is known to be done: most are not reported, but proved by what the peer does next.
 */
void rping_classic_event(const struct environment *environment, const struct rping_options *options,
			 const struct endpoint *endpoint, enum event_kind kind);
void rping_classic_completion(const struct environment *environment, const char *name);

struct rping_client;
struct rping_server;

/* As start, interrupt and stop of struct command; stop and interrupt are harmless on NULL. */
enum outcome rping_client_start(struct environment *environment, const struct rping_options *options,
				struct rping_client **client);
void rping_client_interrupt(struct rping_client *client, enum interruption reason);
void rping_client_report(struct rping_client *client, struct report *report, enum report_span span);
void rping_client_interval_over(struct rping_client *client);
void rping_client_stop(struct rping_client *client);

enum outcome rping_server_start(struct environment *environment, const struct rping_options *options,
				struct rping_server **server);
void rping_server_interrupt(struct rping_server *server, enum interruption reason);
void rping_server_report(struct rping_server *server, struct report *report, enum report_span span);
void rping_server_interval_over(struct rping_server *server);
void rping_server_stop(struct rping_server *server);

#endif
