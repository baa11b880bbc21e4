/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hosts on the command line: checked, and looked up before the run's first endpoint exists (core/resolver.h), all
 * together within --timeout and --deadline, plus --wait-server. The first SIGINT, SIGTERM or SIGHUP ends the look-ups.
 */
#ifndef CMD_LOOKUP_H
#define CMD_LOOKUP_H

#include "cmd/run.h"
#include "core/resolver.h"

/* Whether the kernel has an RDMA device of that name. Scripts write one after -d, which takes no argument. */
bool host_is_device(const char *text);

/*
 * Checks the value of an option, or of a line of a file: text, and the parsed address, ADDRESS_NONE if it is not
 * numeric. Reports and returns OUTCOME_USAGE for texts that no look-up finds: a character that no host has, as in a URL
 * or a prefix, a bare number (which inet_aton(3) accepts), an appended port, and an RDMA device; and for addresses of
 * no host: a link-local one without its interface, a multicast group, and the broadcast address. port_option is the
 * option for the port, or NULL. has_interface: another option names the interface.
 */
enum outcome host_check(const struct log *log, const char *option, const char *text, const struct address *address,
			const char *port_option, bool has_interface);

/* The same for a peer's address and the -I, --source for it. source and interface, of --interface, may be NULL. */
enum outcome peer_check(const struct log *log, const char *source, const char *interface, const char *option,
			const char *text);

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
