/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash table with chains. Its keys are random numbers of this process. Their low bits select the bucket, so a peer
 * cannot make a chain long. Each entry is a member of the object that it finds.
 */
#ifndef TRANSPORT_SOFT_BASE_TABLE_H
#define TRANSPORT_SOFT_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct soft_table_entry {
	uint32_t key;
	void *object;
	struct soft_table_entry *next;
};

struct soft_table {
	struct soft_table_entry **buckets;
	size_t bucket_count; /* a power of two */
	size_t count;
};

/* False without memory. */
bool soft_table_open(struct soft_table *table);
void soft_table_close(struct soft_table *table);

/* The table must not contain the key. */
void soft_table_insert(struct soft_table *table, struct soft_table_entry *entry, uint32_t key, void *object);
void soft_table_remove(struct soft_table *table, struct soft_table_entry *entry);

/* The object, or NULL. */
static inline void *soft_table_find(const struct soft_table *table, uint32_t key)
{
	const struct soft_table_entry *entry = table->buckets[key & (table->bucket_count - 1)];

	while (entry && entry->key != key)
		entry = entry->next;
	return entry ? entry->object : NULL;
}

#endif
