/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of the options that select a path, and the report of the path in use. */
#ifndef CMD_PATH_H
#define CMD_PATH_H

#include "core/options.h"
#include "core/report.h"
#include "transport/transport.h"

/* --ipv4 and --ipv6: which addresses of a name may be used. */
struct family_options {
	bool ip4;
	bool ip6;
};

/*
 * Reports and returns OUTCOME_USAGE for options that the transport does not support (NULL: the default one), and for
 * those that need --device.
 */
enum outcome path_check(const char *transport, const struct log *log, const struct option *table, const void *options,
			uint64_t given);

/* Adds the values of a struct path, of endpoint_path(). A zeroed path has no values. */
void path_report(struct report *report, const void *member);

#endif
