/* SPDX-License-Identifier: BSD-2-Clause */
/* The indexes of a ring. Its owner has the array. */
#ifndef TRANSPORT_SOFT_BASE_RING_H
#define TRANSPORT_SOFT_BASE_RING_H

#include <stdint.h>

struct soft_ring {
	uint32_t capacity;
	uint32_t head; /* the oldest */
	uint32_t count;
};

/* Returns where the entry of that index is, counted from the oldest. index: at most the capacity. */
static inline uint32_t soft_ring_at(const struct soft_ring *ring, uint32_t index)
{
	uint32_t slot = ring->head + index;

	return slot < ring->capacity ? slot : slot - ring->capacity;
}

/* Returns where the new entry is. The ring must not be full. */
static inline uint32_t soft_ring_push(struct soft_ring *ring)
{
	return soft_ring_at(ring, ring->count++);
}

static inline void soft_ring_pop(struct soft_ring *ring)
{
	ring->head = soft_ring_at(ring, 1);
	ring->count--;
}

#endif
