/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hosts on the command line: checked, and looked up within --timeout, plus --wait-server, and --deadline. The first
 * SIGINT, SIGTERM or SIGHUP ends a look-up. lookup() waits, before the run's first endpoint exists; rping's targets are
 * looked up by the loop (cmd/dial.h).
 */
#pragma once

#include "cmd/run.h"
#include "core/clock.h"
#include "core/nameservers.h"
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

/* A look-up under way, which does not block. */
struct lookup {
	struct resolver *resolver;
	int64_t until;	  /* on the clock: the end of its time */
	int64_t limit;	  /* its time limit, or the run's, nanoseconds */
	int64_t quarter;  /* the name servers are asked this long before the end */
	int64_t next;	  /* when to continue, unless the resolver's pipe is readable before */
	bool at_deadline; /* the run's deadline ends it */
	bool may_ask;	  /* there is time to ask the name servers */
	bool brief;	  /* nobody reads why it fails */
	unsigned *hinted; /* shared: LOOKUP_HINTED if one has named the servers; NULL: not shared */
	struct nameservers servers;
};

enum {
	LOOKUP_HINTED = 1 << 9 /* beside the bits of cmd/dial.c */
};

/* For a look-up that resolver_start() has started. begun: when, on the clock. */
void lookup_begin(struct lookup *lookup, struct resolver *resolver, const struct run *run,
		  const struct common_options *options, int64_t begun);
/* Returns true when the look-up is over. Reports an error. It closes the pipe: no watcher may be active. */
bool lookup_continue(struct lookup *lookup);
/*
 * Then returns its outcome, and keeps the addresses that --ipv4, --ipv6 and the family of the source address
 * (ADDRESS_NONE: any) allow. Reports an error.
 */
enum outcome lookup_result(const struct lookup *lookup, const struct common_options *options,
			   enum address_family source);
/* Ends it, if it is not over. */
void lookup_stop(struct lookup *lookup);

/* Waits for a look-up that resolver_start() has started in this run, and returns lookup_result(). */
enum outcome lookup_finish(struct resolver *resolver, const struct run *run, const struct common_options *options,
			   enum address_family source);

/* Starts and finishes the look-up of an address that the run needs, without --source. */
enum outcome lookup(struct resolver *resolver, const struct run *run, const struct common_options *options,
		    const char *text, enum address_format format);
