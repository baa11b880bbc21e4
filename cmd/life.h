/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of a server's process: in the background, its number in a file, and how others hear that it is ready. */
#ifndef CMD_LIFE_H
#define CMD_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/address.h"
#include "core/log.h"
#include "core/outcome.h"

/* A part of the common options, filled by rows of end_option_table. */
struct life_options {
	int64_t ready_fd; /* 0 for none */
	const char *pidfile;
	bool daemon;
};

/* Zeroed at first. */
struct life {
	const struct life_options *options;
	const struct log *log;
	int parent; /* the pipe to the one that waits; 0 without one */
	int null;   /* /dev/null, for a daemon's standard descriptors */
	bool has_pidfile;
};

/*
 * Before there is a loop or a device. Refuses a descriptor that is not open and a pidfile whose process lives. With
 * --daemon only a child returns: the parent waits until that is ready, and exits with 0, or with the child's own exit
 * code if it ends before.
 */
enum outcome life_begin(struct life *life, const struct life_options *options, const struct log *log);

/* Writes the pidfile and makes the system calls that no sandbox allows. Call it before both, sandbox and ready line. */
enum outcome life_register(struct life *life);

/* Tells the descriptor to which address and port, and leaves the terminal. */
enum outcome life_ready(struct life *life, const struct address *address);

/* Removes the pidfile. Harmless at any time. */
void life_end(struct life *life);

#endif
