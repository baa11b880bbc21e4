/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * selftest runs server and client of every command in one process, on one loop. Each file calls only those below it:
 *
 *   selftest.c  options, the parts one after the other, the verdict
 *   testbed.c   transport, address and ports of the test
 *
 * Server and client are child runs: cmd/child_run.h.
 */
#ifndef CMD_SELFTEST_SELFTEST_H
#define CMD_SELFTEST_SELFTEST_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
