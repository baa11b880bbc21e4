/* SPDX-License-Identifier: BSD-2-Clause */
/* Intrusive hash tables, lists and rings: the links are members of the objects. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * A hash table with chains. Its keys are random numbers of this process, or hashes with a secret. Their low bits select
 * the bucket, so a peer cannot make a chain long. Each entry is a member of the object that it finds.
 */
enum {
	SOFT_TABLE_BUCKETS = 64, /* at first */
};

struct soft_table_entry {
	uint32_t key;
	void *object;
	struct soft_table_entry *next;
};

struct soft_table {
	struct soft_table_entry **buckets; /* initial, or allocated */
	size_t bucket_count;		   /* a power of two */
	size_t count;
	struct soft_table_entry *initial[SOFT_TABLE_BUCKETS];
};

/* The table is zeroed, and is not moved while it is open. */
void soft_table_open(struct soft_table *table);
/* Also closes a zeroed table. */
void soft_table_close(struct soft_table *table);

void soft_table_insert(struct soft_table *table, struct soft_table_entry *entry, uint32_t key, void *object);
/* The entry may be absent. */
void soft_table_remove(struct soft_table *table, struct soft_table_entry *entry);

/* The first entry of a key and the next ones, or NULL. */
static inline const struct soft_table_entry *soft_table_match(const struct soft_table_entry *entry, uint32_t key)
{
	while (entry && entry->key != key)
		entry = entry->next;
	return entry;
}

static inline const struct soft_table_entry *soft_table_first(const struct soft_table *table, uint32_t key)
{
	return soft_table_match(table->buckets[key & (table->bucket_count - 1)], key);
}

static inline const struct soft_table_entry *soft_table_next(const struct soft_table_entry *entry)
{
	return soft_table_match(entry->next, entry->key);
}

/* The object, or NULL. */
static inline void *soft_table_find(const struct soft_table *table, uint32_t key)
{
	const struct soft_table_entry *entry = soft_table_first(table, key);

	return entry ? entry->object : NULL;
}

/* A list of objects, oldest first, initially zeroed. An object has a link as a member for each list it can be in. */
struct soft_link {
	void *object;
	struct soft_list *list; /* NULL: in none */
	struct soft_link *next, **pprev;
};

struct soft_list {
	struct soft_link *first, **last;
	unsigned count;
};

/* The link must not be in a list. */
void soft_list_append(struct soft_list *list, struct soft_link *link, void *object);
/* The link may be in no list. */
void soft_list_remove(struct soft_link *link);

/* The indexes of a ring. Its owner has the array. */
struct soft_ring {
	uint32_t capacity;
	uint32_t head; /* the oldest */
	uint32_t count;
};

/* Returns the position of entry index, counted from the oldest. index: at most the capacity. */
static inline uint32_t soft_ring_at(const struct soft_ring *ring, uint32_t index)
{
	uint32_t slot = ring->head + index;

	return slot < ring->capacity ? slot : slot - ring->capacity;
}

/* Returns the new entry's position. The ring must not be full. */
static inline uint32_t soft_ring_push(struct soft_ring *ring)
{
	return soft_ring_at(ring, ring->count++);
}

static inline void soft_ring_pop(struct soft_ring *ring)
{
	ring->head = soft_ring_at(ring, 1);
	ring->count--;
}
