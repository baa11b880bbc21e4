/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is found by a number that this side has chosen at random: a hash with chains, whose entries are members of what
 * they lead to. The low bits of the numbers spread them, so a peer cannot make a chain long.
 */
#ifndef TRANSPORT_SOFT_TABLE_H
#define TRANSPORT_SOFT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct soft_table_entry {
	uint32_t number;
	void *owner;
	struct soft_table_entry *next;
};

struct soft_table {
	struct soft_table_entry **heads;
	size_t head_count; /* a power of two */
	size_t count;
};

/* False when memory is short. */
bool soft_table_open(struct soft_table *table);
void soft_table_close(struct soft_table *table);

/* The number must not be in it yet. */
void soft_table_insert(struct soft_table *table, struct soft_table_entry *entry, uint32_t number, void *owner);
void soft_table_remove(struct soft_table *table, struct soft_table_entry *entry);

/* The owner, or NULL. */
static inline void *soft_table_find(const struct soft_table *table, uint32_t number)
{
	const struct soft_table_entry *entry = table->heads[number & (table->head_count - 1)];

	while (entry && entry->number != number)
		entry = entry->next;
	return entry ? entry->owner : NULL;
}

#endif
