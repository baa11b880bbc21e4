/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of region.c, for soft.c. */
#ifndef TRANSPORT_SOFT_REGION_H
#define TRANSPORT_SOFT_REGION_H

#include "transport/soft/soft.h"
#include "transport/soft/table.h"

struct soft_region {
	struct region base;
	unsigned access; /* enum region_access bits */
	struct soft_table_entry by_key;
	struct soft_region *next; /* among the unwanted */
};

/* NULL when memory is short. Closed after the last region was freed. */
struct soft_region_table *soft_region_table_open(void);
void soft_region_table_close(struct soft_region_table *table);

#endif
