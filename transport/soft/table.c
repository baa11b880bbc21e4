/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/soft/table.h"

#include <stdlib.h>

enum {
	HEADS_FIRST = 64,
};

bool soft_table_open(struct soft_table *table)
{
	table->heads = calloc(HEADS_FIRST, sizeof(*table->heads));
	table->head_count = HEADS_FIRST;
	table->count = 0;
	return table->heads != NULL;
}

void soft_table_close(struct soft_table *table)
{
	free(table->heads);
	table->heads = NULL;
}

static struct soft_table_entry **head_of(const struct soft_table *table, uint32_t number)
{
	return &table->heads[number & (table->head_count - 1)];
}

static void push(struct soft_table *table, struct soft_table_entry *entry)
{
	struct soft_table_entry **head = head_of(table, entry->number);

	entry->next = *head;
	*head = entry;
}

/* Without memory the chains just get longer. */
static void grow(struct soft_table *table)
{
	struct soft_table larger = { .head_count = 2 * table->head_count, .count = table->count };

	larger.heads = calloc(larger.head_count, sizeof(*larger.heads));
	if (!larger.heads)
		return;
	for (size_t index = 0; index < table->head_count; index++) {
		while (table->heads[index]) {
			struct soft_table_entry *entry = table->heads[index];

			table->heads[index] = entry->next;
			push(&larger, entry);
		}
	}
	free(table->heads);
	*table = larger;
}

void soft_table_insert(struct soft_table *table, struct soft_table_entry *entry, uint32_t number, void *owner)
{
	if (++table->count > table->head_count)
		grow(table);
	entry->number = number;
	entry->owner = owner;
	push(table, entry);
}

void soft_table_remove(struct soft_table *table, struct soft_table_entry *entry)
{
	struct soft_table_entry **pprev = head_of(table, entry->number);

	while (*pprev != entry)
		pprev = &(*pprev)->next;
	*pprev = entry->next;
	table->count--;
}
