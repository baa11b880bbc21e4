/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Name look-ups. A child process calls getaddrinfo(3), which may block for tens of seconds, and returns the result
 * through a pipe. Numeric addresses need no child.
 *
 * Do not fork once memory is registered with a device: after fork(2), kernels before 5.12 give the parent a copy of a
 * page that it writes, and the device keeps the old one. A struct resolver_process, started before, forks for later
 * look-ups.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/address.h"
#include "core/log.h"
#include "core/outcome.h"

enum {
	RESOLVER_ADDRESSES_MAX = 8 /* addresses kept per name */
};

/* One look-up. */
struct resolver {
	const struct log *log;
	const char *text;
	int64_t wait; /* nanoseconds: how long to retry an unknown name; 0: no retry */
	enum outcome outcome;
	bool temporary; /* the failure: name servers did not answer, or failed */
	pid_t child;	/* 0: none, or it has ended; below 0: of a struct resolver_process */
	int pipe;	/* the child's: readable when it has a result, or has ended without one */
	size_t count;
	struct address addresses[RESOLVER_ADDRESSES_MAX]; /* port 0 */
};

struct resolver_process {
	pid_t child; /* 0: none */
	int socket;
};

/* Starts a process that forks for look-ups, with the memory that this one has now. Reports an error. */
enum outcome resolver_process_start(struct resolver_process *process, const struct log *log);
/* Ends it, and the look-ups that it has forked for. Harmless without one. */
void resolver_process_stop(struct resolver_process *process);

/*
 * Starts a look-up of text, which must outlive it. A numeric address or an error is available at once. Without
 * WITH_NAMES text must be numeric; host_check() ensures it.
 */
void resolver_start(struct resolver *resolver, const struct log *log, const char *text, enum address_format format,
		    int64_t wait);

/* The same by that process, or without one. */
void resolver_start_by(const struct resolver_process *process, struct resolver *resolver, const struct log *log,
		       const char *text, enum address_format format, int64_t wait);

/*
 * Blocks until the child's result is read, and the child, unless a struct resolver_process forked it, has ended. Sets
 * addresses and count, which is 0 after an error that the resolver has reported. Returns OUTCOME_NO_CONNECTION if the
 * name is unknown, OUTCOME_USAGE if text is not an address of the format, OUTCOME_INTERNAL if the child failed.
 */
enum outcome resolver_read(struct resolver *resolver);

/* Ends the child, if there is one; a struct resolver_process's a little later. */
void resolver_stop(struct resolver *resolver);
