/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending queues that a receiver has heard of, and what came from each to each of its own queues. A queue number is
 * unique on its host only (the first one of every soft-RoCE host is the same), so that the address counts too.
 *
 * Anybody may send to a group: the table is bounded, and who does not fit in is not followed.
 */
#ifndef CMD_MCKEY_SOURCE_H
#define CMD_MCKEY_SOURCE_H

#include <stddef.h>

#include "cmd/mckey/window.h"

enum {
	SOURCES_MOST = 1024,
	SOURCE_STREAMS_MOST = 65536, /* of all sources together: some 7 MB */
	SOURCE_INDEX_SIZE = 2 * SOURCES_MOST,
	SOURCE_TEXT_SIZE = ADDRESS_TEXT_SIZE + 32,
};

struct source {
	uint32_t qpn;
	struct address address; /* ADDRESS_NONE if the datagrams do not tell */
	bool wrong_length_told;
	bool damage_told;
	struct window windows[]; /* one for each receiving queue */
};

struct source_table {
	size_t windows; /* of each source */
	size_t count;
	uint64_t unfollowed; /* datagrams of senders beyond the limit */
	bool starved;	     /* or that there was no memory for */
	struct source *sources[SOURCES_MOST];
	uint16_t index[SOURCE_INDEX_SIZE]; /* by hash: 1 + position, or 0 */
};

/* An empty table is zeroed memory with streams set. */

/*
 * The source of that queue and address, new or known. NULL if the table is full or memory is short; the datagram is
 * then counted as unfollowed.
 */
struct source *source_find(struct source_table *table, uint32_t qpn, const struct address *address);

/* "QP 17 at 10.0.0.1". Returns text. */
const char *source_text(const struct source *source, char text[SOURCE_TEXT_SIZE]);

void source_table_clear(struct source_table *table);

#endif
