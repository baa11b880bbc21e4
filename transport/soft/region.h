/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that a peer may reach, by key. */
#ifndef TRANSPORT_SOFT_REGION_H
#define TRANSPORT_SOFT_REGION_H

#include "transport/soft/soft.h"
#include "transport/soft/table.h"

struct soft_region {
	struct region base;
	unsigned access; /* enum region_access bits */
	struct soft_table_entry by_key;
	struct soft_region *next; /* in destroyed_regions */
};

/* NULL when memory is short. Closed after the last region was freed. */
struct soft_region_table *soft_region_table_open(void);
void soft_region_table_close(struct soft_region_table *table);

enum outcome soft_region_create(struct domain *domain, size_t length, unsigned access, struct region **region);
void soft_region_destroy(struct region *region);
void soft_region_free(struct soft_region *region);
/*
 * The bytes a peer asks for, or NULL if the key is not one of ours, its right is missing, or the range leaves the
 * region. access: one of REGION_REMOTE_READ and REGION_REMOTE_WRITE. length 0 is refused nowhere and reaches nothing.
 */
uint8_t *soft_region_reach(struct soft_transport *transport, uint32_t key, uint64_t address, uint64_t length,
			   unsigned access);

#endif
