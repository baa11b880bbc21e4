/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * selftest runs server and client of every command in one process, on one loop.
 *
 *   selftest.c  options, the sequence of parts, the verdict
 *   testbed.c   transport, address and ports of the test
 *   part.c      one command: its server and its client
 *
 * Server and client are child runs: cmd/child_run.h.
 */
#ifndef CMD_SELFTEST_SELFTEST_H
#define CMD_SELFTEST_SELFTEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/child_run.h"
#include "cmd/run.h"

struct selftest_options {
	struct common_options common;
	const char *address;
	bool verbose;
};

struct testbed {
	struct address address;
	struct channel *channel;
	struct domain domain; /* a copy, as the domain may be freed; .device is NULL until the address is resolved */
	bool automatic;	      /* the user named no transport */
};

/*
 * Opens environment->transport, creates a channel and selects a local address. It logs the cause of a failure. If the
 * user names no transport, it selects verbs if a local address leads to a device, else soft.
 */
enum outcome testbed_open(struct environment *environment, const struct selftest_options *options,
			  struct testbed *testbed);

/* Finds a port of the address that nobody listens on. The port is released in the loop's next turn. */
enum outcome testbed_find_port(const struct testbed *testbed, uint16_t *port);

struct part_row {
	const struct command *command;
	const char *server, *client; /* arguments: '@' is the address, '#' the port, or the group of a multicast */
	bool multicast;
	bool server_verdict; /* print the server's verdict; else the client's */
};

/* The running part. Zeroed before its start. */
struct part {
	const struct part_row *row;
	const struct environment *environment; /* selftest's */
	int64_t timeout;
	char address[ADDRESS_TEXT_SIZE], number[ADDRESS_TEXT_SIZE];
	struct child_run server;
	struct child_run client;
	bool client_started;	    /* also if its start failed */
	struct loop_timer deadline; /* of the remaining child run, then of its shutdown */
	enum outcome outcome;	    /* the first failure */
	void (*ended)(void *context);
	void *context;
};

/* The loop calls part->ended. */
void part_start(struct part *part);
void part_interrupt(struct part *part, enum interruption reason);
void part_free(struct part *part);

#endif
