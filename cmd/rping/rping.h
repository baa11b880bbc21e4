/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rping pings a server with RDMA. The server READs each ping from a source buffer of the client and WRITEs it to a sink
 * buffer there; the client verifies it.
 *
 * Each file calls only those below it:
 *
 *   rping.c     options and the command row; starts a role
 *   client.c    a client's run: its targets, whose callbacks it owns, their sum, its end
 *   paths.c     --paths: compares the paths to a server
 *   outage.c    --reconnect: a target without a connection
 *   target.c    one server that the client pings: connects, pings, counts
 *   server.c    a server's run: listener and sessions, whose callbacks it owns, its end
 *   session.c   one client of the server: accepts it, answers its pings
 *   peer.c      common part of target and session: control messages, states, errors, verdict
 *   protocol.c  the bytes of the protocol
 *
 * A lower file changes its own state and returns an outcome. The callback above ends what failed.
 */
#pragma once

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
	int64_t paths;	      /* to each server; 0: only the default path */
	bool equal_paths;
	bool reconnect;
	bool persistent;
	bool own_qp;
};

enum {
	RPING_CLIENTS_MAX = 16384, /* connected at once to a server with -P */
	/*
	 * The client signals one advertisement in this many pings, which frees its send queue. More would cost a
	 * wake-up each.
	 */
	RPING_SIGNAL_EVERY = 16,
};

/* Returns the last size of a sweep, -S FROM-TO, or 0. Its steps are intervals of the report, so it needs that. */
static inline uint32_t rping_sweep(const struct rping_options *options)
{
	return WITH_REPORT ? (uint32_t)options->last_size : 0;
}

/* A role's functions for struct command; its state begins with a pointer to the options. */
enum outcome rping_client_start(struct run *run, const struct rping_options *options, void **state);
enum outcome rping_server_start(struct run *run, const struct rping_options *options, void **state);
void rping_client_interrupt(void *state, enum interruption reason);
void rping_server_interrupt(void *state, enum interruption reason);
struct figures rping_client_figures(void *state);
struct figures rping_server_figures(void *state);
void rping_client_stop(void *state);
void rping_server_stop(void *state);

/*
 * Checks the address text, from an option or a --targets line (FILE:LINE), without a name look-up, also against -I's
 * family. Reports an error and returns OUTCOME_USAGE if it cannot work.
 */
enum outcome rping_client_check(const struct rping_options *options, const char *option, const char *text,
				const struct log *log);
/* Reads the --targets file, or standard input, into run->input. Reports an error. */
enum outcome rping_client_read(struct run *run, const void *options);
/* Returns the address that the server listens on, as given; the wildcard address if none or a device name was given. */
const char *rping_listen_address(const struct rping_options *options);
