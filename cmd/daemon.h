/* SPDX-License-Identifier: BSD-2-Clause */
/* --daemon, --pidfile and --ready-fd. */
#ifndef CMD_DAEMON_H
#define CMD_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include "core/address.h"
#include "core/log.h"
#include "core/outcome.h"

/* A part of the common options, filled by rows of endpoint_option_table. */
struct daemon_options {
	int64_t ready_fd; /* 0 for none */
	const char *pidfile;
	bool daemon;
};

/* Zeroed before daemon_begin(). */
struct daemon {
	const struct daemon_options *options;
	const struct log *log;
	int parent; /* the pipe to the waiting parent, or 0 */
	int null;   /* /dev/null, for a daemon's standard descriptors */
	bool has_pidfile;
};

/*
 * Call it before a loop or device exists. Rejects a descriptor that is not open and a pidfile whose process exists.
 * With --daemon only the child returns: the parent exits with 0 when the child is ready, or with the child's exit code
 * if the child ends first.
 */
enum outcome daemon_begin(struct daemon *daemon, const struct daemon_options *options, const struct log *log);

/* Writes the pidfile. Call it before the ready line. */
enum outcome daemon_register(struct daemon *daemon);

/* Writes the address and port to the descriptor and detaches from the terminal. */
enum outcome daemon_ready(struct daemon *daemon, const struct address *address);

/* Removes the pidfile, unless another process has replaced it. Harmless at any time. */
void daemon_end(struct daemon *daemon);

#endif
