/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions. All 32 bits of a key are random, and a new READ or WRITE with a wrong key ends the connection. */
#include "transport/soft/qp/qp.h"

#include <stdlib.h>

#include "transport/soft/base/queue.h"
#include "transport/soft/base/random.h"

enum outcome soft_region_create(struct domain *domain, size_t length, unsigned access, struct region **result)
{
	struct soft_transport *transport = soft_of(domain->transport);
	struct soft_table *table = &transport->regions;
	struct soft_region *region = calloc(1, sizeof(*region));
	uint32_t key;

	if (region)
		region->base.memory = calloc(1, length);
	if (!region || !region->base.memory) {
		free(region);
		return transport_no_memory(&domain->transport->error, domain->device, "allocating memory");
	}
	/* A peer may interpret key 0 as no key. */
	do
		key = (uint32_t)soft_random(&transport->random);
	while (!key || soft_table_find(table, key));
	region->base.domain = domain;
	region->base.length = length;
	/* A real memory address would help a peer attack the process. */
	region->base.remote_address = (uint64_t)key << 32;
	region->base.local_key = key;
	region->base.remote_key = key;
	region->access = access;
	soft_table_insert(table, &region->by_key, key, region);
	*result = &region->base;
	return OUTCOME_OK;
}

/* Ends remote access. The reaper frees the memory after the destroyed endpoints, whose work may point into it. */
void soft_region_destroy(struct region *base)
{
	struct soft_transport *transport = soft_of(base->domain->transport);
	struct soft_region *region = (struct soft_region *)base;

	soft_table_remove(&transport->regions, &region->by_key);
	region->next = transport->destroyed_regions;
	transport->destroyed_regions = region;
	soft_reap_later(transport);
}

void soft_region_free(struct soft_region *region)
{
	free(region->base.memory);
	free(region);
}

uint8_t *soft_region_find(struct soft_transport *transport, uint32_t key, uint64_t address, uint64_t length,
			  unsigned access)
{
	const struct soft_region *region;
	uint64_t offset;

	if (!length)
		return &transport->empty;
	region = soft_table_find(&transport->regions, key);
	if (!region || (region->access & access) != access)
		return NULL;
	/* For an address below the region, the subtraction wraps to an offset beyond its end. */
	offset = address - region->base.remote_address;
	if (offset > region->base.length || length > region->base.length - offset)
		return NULL;
	return region->base.memory + offset;
}
