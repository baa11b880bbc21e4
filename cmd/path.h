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

/*
 * True if an address of that family may be used; a GID always. source is the family of --source, ADDRESS_NONE without
 * it.
 */
bool path_allows(const struct family_options *options, enum address_family source, enum address_family family);

/*
 * Copies the addresses of text that may be used into kept, which has room for all. Reports and returns
 * OUTCOME_NO_CONNECTION if there is none.
 */
enum outcome path_filter(const struct family_options *options, enum address_family source, const struct log *log,
			 const char *text, const struct address *addresses, size_t count, struct address *kept,
			 size_t *kept_count);

/* The same for the first address that may be used, without --source. */
enum outcome path_choose(const struct family_options *options, const struct log *log, const char *text,
			 const struct address *addresses, size_t count, struct address *chosen);

/* Adds the values of a struct path, of endpoint_path(). A zeroed path has no values. */
void path_report(struct report *report, const void *member);

#endif
