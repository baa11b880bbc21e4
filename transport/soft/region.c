/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory with keys. All 32 bits of a key are random: whoever guesses gets a single try, a wrong one ends the
 * connection. */
#include "transport/soft/region.h"

#include <errno.h>
#include <stdlib.h>

struct soft_region_table {
	struct soft_table by_key;
	uint8_t nothing; /* where ranges without length lie */
};

struct soft_region_table *soft_region_table_open(void)
{
	struct soft_region_table *table = calloc(1, sizeof(*table));

	if (table && !soft_table_open(&table->by_key)) {
		free(table);
		return NULL;
	}
	return table;
}

void soft_region_table_close(struct soft_region_table *table)
{
	if (!table)
		return;
	soft_table_close(&table->by_key);
	free(table);
}

enum outcome soft_region_create(struct domain *domain, size_t length, unsigned access, struct region **result)
{
	struct soft_region_table *table = soft_of(domain->transport)->regions;
	struct soft_region *region = calloc(1, sizeof(*region));
	uint32_t key;

	if (region)
		region->base.memory = calloc(1, length);
	if (!region || !region->base.memory) {
		free(region);
		log_errno(domain->transport->log, domain->device, ENOMEM, "allocating memory");
		return OUTCOME_INTERNAL;
	}
	/* Not 0, which a peer may take for no key. */
	do
		key = (uint32_t)soft_random();
	while (!key || soft_table_find(&table->by_key, key));
	region->base.domain = domain;
	region->base.length = length;
	region->base.local_key = key;
	region->base.remote_key = key;
	region->access = access;
	soft_table_insert(&table->by_key, &region->by_key, key, region);
	*result = &region->base;
	return OUTCOME_OK;
}

/* From here on no peer reaches it; the memory stays until the endpoints that use it are gone. */
void soft_region_destroy(struct region *base)
{
	struct soft_transport *transport = soft_of(base->domain->transport);
	struct soft_region *region = (struct soft_region *)base;

	soft_table_remove(&transport->regions->by_key, &region->by_key);
	region->next = transport->destroyed_regions;
	transport->destroyed_regions = region;
	soft_reap_later(transport);
}

void soft_region_free(struct soft_region *region)
{
	free(region->base.memory);
	free(region);
}

uint8_t *soft_region_reach(struct soft_transport *transport, uint32_t key, uint64_t address, uint64_t length,
			   unsigned access)
{
	const struct soft_region *region;
	uint64_t offset;

	if (!length)
		return &transport->regions->nothing;
	region = soft_table_find(&transport->regions->by_key, key);
	if (!region || (region->access & access) != access)
		return NULL;
	/* An address below the region becomes an offset far beyond it. */
	offset = address - (uintptr_t)region->base.memory;
	if (offset > region->base.length || length > region->base.length - offset)
		return NULL;
	return region->base.memory + offset;
}
