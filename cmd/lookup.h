/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of a run: looked up before its first endpoint exists (core/resolver.h), all together within --timeout and
 * --deadline. A run that waits for its server has --wait-server more. The first SIGINT, SIGTERM or SIGHUP ends them.
 */
#ifndef CMD_LOOKUP_H
#define CMD_LOOKUP_H

#include "cmd/run.h"
#include "core/resolver.h"

/*
 * Waits for a look-up that resolver_start() has started, and keeps the addresses that --ipv4, --ipv6 and the family of
 * the source address (ADDRESS_NONE: any) allow. Reports an error.
 */
enum outcome lookup_finish(struct resolver *resolver, const struct environment *environment,
			   const struct common_options *options, enum address_family source);

/* Starts and finishes the look-up of an address that the run needs, without --source. */
enum outcome lookup(struct resolver *resolver, const struct environment *environment,
		    const struct common_options *options, const char *text, enum address_format format);

#endif
