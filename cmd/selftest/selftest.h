/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of selftest: every command against itself, server and client in one process on one loop.
 *
 *   selftest.c  options, the parts one after another, the verdict
 *   place.c     which transport and which address
 *   part.c      one command: its server, then its client, then both to their ends
 *   end.c       one of the two: a run of the real command with arguments of its own
 */
#ifndef CMD_SELFTEST_SELFTEST_H
#define CMD_SELFTEST_SELFTEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cmd/command.h"

struct selftest_options {
	struct common_options common;
	const char *address;
	bool verbose;
};

enum {
	SELFTEST_NAME_SIZE = 128,
	SELFTEST_WORDS_MOST = 24,
	SELFTEST_WORDS_SIZE = 512,
};

/* Where the test takes place. */
struct place {
	struct address address;
	struct channel *channel;
	const struct domain *domain; /* known once the address was resolved */
	bool chosen;		     /* the user has not said which transport */
};

/*
 * Opens environment->transport, finds an address to test at and makes a channel. What is in the way is told. Without a
 * choice by the user it takes verbs if there is a device with an address, else soft.
 */
enum outcome place_choose(struct environment *environment, const struct selftest_options *options, struct place *place);

/* A port of the address at which nobody listens. It is free again after one turn of the loop. */
enum outcome place_find_port(const struct place *place, uint16_t *port);

/* What stands for what in the arguments of an end. */
struct arguments {
	char address[ADDRESS_TEXT_SIZE];
	char port[8];
	char group[ADDRESS_TEXT_SIZE];
	char timeout[32];
};

struct end;
typedef void end_callback(struct end *end);

/* One run of a command. Zeroed before its start. */
struct end {
	const struct command *command;
	struct environment environment; /* its own outcome and output, on the loop and the transport of all */
	char name[SELFTEST_NAME_SIZE];
	char words[SELFTEST_WORDS_SIZE]; /* the arguments, which its options point into */
	void *options;
	void *state;
	char *text; /* what it has printed, once it is over */
	size_t text_length;
	struct loop_timer step;
	end_callback *ready;
	end_callback *over;
	void *owner;
	bool running;
	bool interrupted;
};

/*
 * Starts command with the words of arguments, in which @address, @port and @group are replaced. outer gives the loop,
 * the transport and the way to log; role is "server" or "client". over comes from the loop when the run has ended and
 * its state is gone; ready, which may be NULL, before that, once a peer may come. If the start fails, the end is not
 * running and environment.outcome says why.
 */
void end_start(struct end *end, const struct environment *outer, const struct command *command, const char *role,
	       const char *arguments, const struct arguments *values);
/* Begins its orderly end, once, if it runs. */
void end_interrupt(struct end *end, enum interruption reason);
/* Ends it at once, without a call-back. */
void end_cut(struct end *end);
/* Frees it, whatever its state. */
void end_release(struct end *end);
/* The last line it has printed under its own name, without the name; "" if there is none. length without the newline.
 */
const char *end_verdict(const struct end *end, size_t *length);

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
