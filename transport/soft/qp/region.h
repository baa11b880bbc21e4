/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions for local work and for RDMA READ and WRITE of peers. */
#ifndef TRANSPORT_SOFT_QP_REGION_H
#define TRANSPORT_SOFT_QP_REGION_H

#include "transport/soft/base/state.h"

struct soft_region {
	struct region base;
	unsigned access; /* enum region_access bits */
	struct soft_table_entry by_key;
	struct soft_region *next; /* in destroyed_regions */
};

enum outcome soft_region_create(struct domain *domain, size_t length, unsigned access, struct region **region);
void soft_region_destroy(struct region *region);
void soft_region_free(struct soft_region *region);
/*
 * The memory of a peer's RDMA request. NULL: unknown key, access right missing, or range outside the region. access:
 * REGION_REMOTE_READ or REGION_REMOTE_WRITE. A range of length 0 is always valid (IBTA C9-88).
 */
uint8_t *soft_region_find(struct soft_transport *transport, uint32_t key, uint64_t address, uint64_t length,
			  unsigned access);

#endif
