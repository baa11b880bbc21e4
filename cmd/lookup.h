/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hosts on the command line: checked, and looked up before the first endpoint of the run exists (core/resolver.h),
 * all together within --timeout and --deadline. A run that waits for its server has --wait-server more. The first
 * SIGINT, SIGTERM or SIGHUP ends them.
 */
#ifndef CMD_LOOKUP_H
#define CMD_LOOKUP_H

#include "cmd/run.h"
#include "core/resolver.h"

/*
 * Checks the value of an option: text, and address as parsed, ADDRESS_NONE if it is not numeric. Reports and returns
 * OUTCOME_USAGE for a bare number (inet_aton(3) takes it), an appended port, a link-local address without its
 * interface, and a multicast group. port_option is the option for the port, or NULL. has_interface: another option
 * names the interface.
 */
enum outcome host_check(const struct log *log, const char *option, const char *text, const struct address *address,
			const char *port_option, bool has_interface);

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
