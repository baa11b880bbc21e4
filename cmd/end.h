/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One run of a real command inside another one. Its arguments go through the command's own tables, its results into
 * memory, and its end ends nothing else.
 */
#ifndef CMD_END_H
#define CMD_END_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/command.h"

enum {
	END_NAME_SIZE = 128,
	END_WORDS_MOST = 24,
	END_WORDS_SIZE = 512,
};

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
	void *options;
	void *state;
	char *text; /* what it has printed, once it is over */
	size_t text_length;
	end_callback *ready;
	end_callback *over;
	void *owner;
	bool running;
	bool interrupted;
	struct environment environment; /* its own outcome and output, on the loop and the transport of all */
	char name[END_NAME_SIZE];
	char words[END_WORDS_SIZE]; /* the arguments, which its options point into */
	struct loop_timer step;
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
/* The last line it has printed under its own name, without the name and the newline; "" if there is none. */
const char *end_verdict(const struct end *end, size_t *length);

#endif
