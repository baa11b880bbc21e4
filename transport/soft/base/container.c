/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/soft/base/container.h"

#include <stdlib.h>

void soft_table_open(struct soft_table *table)
{
	table->buckets = table->initial;
	table->bucket_count = SOFT_TABLE_BUCKETS;
}

static void free_buckets(struct soft_table *table)
{
	if (table->buckets != table->initial)
		free(table->buckets);
}

void soft_table_close(struct soft_table *table)
{
	free_buckets(table);
	table->buckets = NULL;
}

static struct soft_table_entry **table_bucket(const struct soft_table *table, uint32_t key)
{
	return &table->buckets[key & (table->bucket_count - 1)];
}

static void table_push(struct soft_table *table, struct soft_table_entry *entry)
{
	struct soft_table_entry **bucket = table_bucket(table, entry->key);

	entry->next = *bucket;
	*bucket = entry;
}

/* Without memory the table keeps its size, and its chains get longer. */
static void table_grow(struct soft_table *table)
{
	struct soft_table larger = { .bucket_count = 2 * table->bucket_count };

	larger.buckets = calloc(larger.bucket_count, sizeof(*larger.buckets));
	if (!larger.buckets)
		return;
	for (size_t index = 0; index < table->bucket_count; index++) {
		while (table->buckets[index]) {
			struct soft_table_entry *entry = table->buckets[index];

			table->buckets[index] = entry->next;
			table_push(&larger, entry);
		}
	}
	free_buckets(table);
	table->buckets = larger.buckets;
	table->bucket_count = larger.bucket_count;
}

void soft_table_insert(struct soft_table *table, struct soft_table_entry *entry, uint32_t key, void *object)
{
	if (++table->count > table->bucket_count)
		table_grow(table);
	entry->key = key;
	entry->object = object;
	table_push(table, entry);
}

void soft_table_remove(struct soft_table *table, struct soft_table_entry *entry)
{
	struct soft_table_entry **pprev = table_bucket(table, entry->key);

	while (*pprev && *pprev != entry)
		pprev = &(*pprev)->next;
	if (!*pprev)
		return;
	*pprev = entry->next;
	table->count--;
}

void soft_list_append(struct soft_list *list, struct soft_link *link, void *object)
{
	*link = (struct soft_link){ .object = object,
				    .list = list,
				    .pprev = list->count++ ? list->last : &list->first };
	*link->pprev = link;
	list->last = &link->next;
}

void soft_list_remove(struct soft_link *link)
{
	if (!link->list)
		return;
	*link->pprev = link->next;
	if (link->next)
		link->next->pprev = link->pprev;
	else
		link->list->last = link->pprev;
	link->list->count--;
	link->list = NULL;
}
