/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Name look-ups. A child process calls getaddrinfo(3), which may block for tens of seconds, and returns the result
 * through a pipe that the loop watches. Numeric addresses need no child.
 */
#ifndef CORE_RESOLVER_H
#define CORE_RESOLVER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/address.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/outcome.h"

enum {
	RESOLVER_ADDRESSES_MAX = 8 /* addresses kept of one name */
};

/*
 * The result: count addresses (port 0), valid only during the call. After an error, which the resolver has reported,
 * count is 0. The outcome is OUTCOME_NO_CONNECTION if the name is unknown or the timeout expired, OUTCOME_USAGE if text
 * is not an address of the format, OUTCOME_INTERNAL if the child failed. The callback may restart or free the resolver.
 */
typedef void resolver_callback(void *context, enum outcome outcome, const struct address *addresses, size_t count);

/* One name look-up. Zeroed before its first start. */
struct resolver {
	int64_t wait; /* set before the start: how long an unknown name is looked up again and again; 0: once */
	struct loop *loop;
	const struct log *log;
	const char *text;
	resolver_callback *callback;
	void *context;
	struct loop_io readable;
	struct loop_timer timer; /* of the child; with time 0, delivers an immediate result */
	int64_t timeout;
	enum outcome immediate; /* of a result that needs no child: a numeric address, or an error */
	pid_t child;
	int pipe;
	size_t received; /* bytes of result */
	struct {
		int32_t error; /* EAI_* (negative), errno of EAI_SYSTEM (positive), or 0 */
		uint32_t count;
		struct address addresses[RESOLVER_ADDRESSES_MAX];
	} result;
};

/*
 * Looks text up and calls back from the loop, never before resolver_start() returns. text must stay valid until then.
 * timeout is in nanoseconds, 0 for none. resolver_stop() kills the child and makes no callback. It may be called at any
 * time.
 *
 * Call it before memory is registered with a device: after fork(2), kernels before 5.12 give the parent a copy of a
 * page that it writes, and the device keeps the old one.
 */
void resolver_start(struct resolver *resolver, struct loop *loop, const struct log *log, const char *text,
		    enum address_format format, int64_t timeout, resolver_callback *callback, void *context);
void resolver_stop(struct resolver *resolver);

#endif
