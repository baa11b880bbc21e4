/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of selftest: every command against itself, server and client in one process on one loop.
 *
 *   selftest.c  options, the parts one after another, the verdict
 *   testbed.c   which transport and which address
 *   part.c      one command: its server, then its client, then both to their ends
 *
 * Each end is a run of the real command: cmd/end.h.
 */
#ifndef CMD_SELFTEST_SELFTEST_H
#define CMD_SELFTEST_SELFTEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cmd/command.h"
#include "cmd/end.h"

struct selftest_options {
	struct common_options common;
	const char *address;
	bool verbose;
};

/* Where the test takes place. */
struct testbed {
	struct address address;
	struct channel *channel;
	struct domain domain; /* a copy, as it may go; .device is NULL until the address was resolved */
	bool chosen;	      /* the user has not said which transport */
};

/*
 * Opens environment->transport, finds an address to test at and makes a channel. What is in the way is told. Without a
 * choice by the user it takes verbs if there is a device with an address, else soft.
 */
enum outcome testbed_choose(struct environment *environment, const struct selftest_options *options,
			    struct testbed *testbed);

/* A port of the address at which nobody listens. It is free again after one turn of the loop. */
enum outcome testbed_find_port(const struct testbed *testbed, uint16_t *port);

struct part_row {
	const char *command;
	const char *server;
	const char *client;
	bool multicast;
	bool server_judges; /* its verdict is the one to show; else the client's */
};

/* One part under way. Zeroed before its start. */
struct part {
	const struct part_row *row;
	const struct environment *environment; /* of the whole */
	int64_t timeout;
	struct arguments values;
	struct end server;
	struct end client;
	bool client_tried;
	struct loop_timer limit; /* of the end that is left, and then of its ending */
	enum outcome outcome;	 /* the first failure */
	void (*over)(void *owner);
	void *owner;
};

/* over comes from the loop. */
void part_start(struct part *part);
void part_interrupt(struct part *part, enum interruption reason);
void part_release(struct part *part);

#endif
