/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/mckey/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t hash(uint32_t qpn, const struct address *address)
{
	uint32_t sum = 0x811c9dc5 ^ qpn;

	for (size_t i = 0; i < sizeof(address->bytes); i++)
		sum = (sum ^ address->bytes[i]) * 0x01000193;
	return (sum ^ sum >> 16) % SOURCE_INDEX_SIZE;
}

static struct source *source_create(struct source_table *table, uint32_t qpn, const struct address *address)
{
	struct source *source;

	if (table->count == SOURCES_MAX || (table->count && (table->count + 1) * table->windows > SOURCE_WINDOWS_MAX))
		return NULL;
	source = calloc(1, sizeof(*source) + table->windows * sizeof(source->windows[0]));
	if (!source) {
		table->no_memory = true;
		return NULL;
	}
	source->qpn = qpn;
	source->address = *address;
	table->entries[table->count++] = source;
	return source;
}

/* Open addressing. The index is at most half full, so the search ends. */
struct source *source_find(struct source_table *table, uint32_t qpn, const struct address *address)
{
	size_t slot = hash(qpn, address);
	struct source *source;

	for (; table->index[slot]; slot = (slot + 1) % SOURCE_INDEX_SIZE) {
		source = table->entries[table->index[slot] - 1];
		if (source->qpn == qpn && address_same_host(&source->address, address))
			return source;
	}
	source = source_create(table, qpn, address);
	if (source)
		table->index[slot] = (uint16_t)table->count;
	else
		table->unfollowed++;
	return source;
}

const char *source_text(const struct source *source, char text[SOURCE_TEXT_SIZE])
{
	char host[ADDRESS_TEXT_SIZE];

	if (source->address.family == ADDRESS_NONE)
		snprintf(text, SOURCE_TEXT_SIZE, "QP %u", source->qpn);
	else
		snprintf(text, SOURCE_TEXT_SIZE, "QP %u at %s", source->qpn, address_host(&source->address, host));
	return text;
}

void source_table_clear(struct source_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		free(table->entries[i]);
	memset(table, 0, sizeof(*table));
}
