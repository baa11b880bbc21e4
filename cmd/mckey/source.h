/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sources of a receiver: each sending QP, with a sequence window for each receiving QP. A source is identified by
 * QP number and address, as a QP number is unique only on its host (soft-RoCE starts with the same one on every host).
 *
 * Any host may send to a group, so the table is limited. Datagrams of further sources are counted as unfollowed.
 */
#ifndef CMD_MCKEY_SOURCE_H
#define CMD_MCKEY_SOURCE_H

#include <stddef.h>

#include "cmd/mckey/window.h"

enum {
	SOURCES_MAX = 1024,
	SOURCE_WINDOWS_MAX = 65536, /* of all sources: about 8 MB */
	SOURCE_INDEX_SIZE = 2 * SOURCES_MAX,
	SOURCE_TEXT_SIZE = ADDRESS_TEXT_SIZE + 32,
};

struct source {
	uint32_t qpn;
	struct address address; /* ADDRESS_NONE: unknown */
	bool wrong_length_reported;
	bool damage_reported;
	struct window windows[]; /* one for each receiving QP */
};

struct source_table {
	size_t windows; /* of each source: the number of receiving QPs */
	size_t count;
	uint64_t unfollowed; /* datagrams of sources that are not in the table */
	bool no_memory;	     /* a source is missing because memory was short */
	struct source *entries[SOURCES_MAX];
	uint16_t index[SOURCE_INDEX_SIZE]; /* by hash: 1 + index in entries, or 0 */
};

/* An empty table is zeroed memory with windows set. */

/* Finds or adds a source. If the table is full or memory is short, counts an unfollowed datagram and returns NULL. */
struct source *source_find(struct source_table *table, uint32_t qpn, const struct address *address);

/* "QP 17 at 10.0.0.1". Returns text. */
const char *source_text(const struct source *source, char text[SOURCE_TEXT_SIZE]);

void source_table_clear(struct source_table *table);

#endif
