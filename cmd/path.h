/* SPDX-License-Identifier: BSD-2-Clause */
/* What the options that choose a path ask for, and the report of the one that was taken. */
#ifndef CMD_PATH_H
#define CMD_PATH_H

#include "core/options.h"
#include "core/report.h"
#include "transport/transport.h"

/* Of names that have several addresses, which ones count. */
struct family_options {
	bool ip4;
	bool ip6;
};

/* What --mtu takes. */
extern const struct option_word path_mtus[];

/*
 * Refuses the options that the transport of that name, NULL for the default one, cannot honour, and then those that
 * make no sense alone: OUTCOME_USAGE after a line that says why.
 */
enum outcome path_check(const char *transport, const struct log *log, const struct option *table, const void *options,
			uint64_t given);

/* True if an address of that family may be used, a GID always; source is that of --source, ADDRESS_NONE without. */
bool path_allows(const struct family_options *options, enum address_family source, enum address_family family);

/* Says that none of text's addresses may be used: OUTCOME_NO_CONNECTION. */
enum outcome path_no_address(const struct family_options *options, enum address_family source, const struct log *log,
			     const char *text);

/* Puts those of text's addresses that may be used into kept, which has room for all; path_no_address() if none may. */
enum outcome path_keep(const struct family_options *options, enum address_family source, const struct log *log,
		       const char *text, const struct address *addresses, size_t count, struct address *kept,
		       size_t *kept_count);

/* The first of text's addresses that may be used; path_no_address() if there is none. */
enum outcome path_choose(const struct family_options *options, enum address_family source, const struct log *log,
			 const char *text, const struct address *addresses, size_t count, struct address *chosen);

/* Adds the path of an endpoint, as endpoint_path() tells it; a zeroed one has no values. */
void path_report(struct report *report, const struct path *path);

#endif
