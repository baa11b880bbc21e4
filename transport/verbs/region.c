/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "transport/verbs/verbs.h"

static unsigned verbs_access(const struct domain *domain, unsigned access)
{
	unsigned flags = IBV_ACCESS_LOCAL_WRITE;

	if (access & REGION_REMOTE_READ)
		flags |= IBV_ACCESS_REMOTE_READ;
	if (access & REGION_REMOTE_WRITE)
		flags |= IBV_ACCESS_REMOTE_WRITE;
	/* On iWARP a READ response is an RDMA WRITE of the peer to the sink: RFC 5040, section 5.1. */
	if ((access & REGION_READ_SINK) && domain->fabric == FABRIC_IWARP)
		flags |= IBV_ACCESS_REMOTE_WRITE;
	return flags;
}

enum outcome verbs_region_create(struct domain *base, size_t length, unsigned access, struct region **result)
{
	struct verbs_domain *domain = (struct verbs_domain *)base;
	struct error *reason = &base->transport->error;
	struct verbs_region *region = calloc(1, sizeof(*region));

	if (region && (region->base.memory = calloc(1, length)))
		region->registration =
			(ibv_reg_mr)(domain->pd, region->base.memory, length, (int)verbs_access(base, access));
	if (!region || !region->registration) {
		int error = errno;
		bool refused = region && region->base.memory && error == ENOMEM;

		if (region)
			verbs_region_free(region);
		verbs_error_resources(reason, base->device, "registering memory", error);
		if (WITH_EXTRAS && refused)
			error_hint(reason, "locked memory has no limit here; see the kernel's log: journalctl -k");
		return OUTCOME_INTERNAL;
	}
	region->base.domain = base;
	region->base.length = length;
	region->base.remote_address = (uintptr_t)region->base.memory;
	region->base.local_key = region->registration->lkey;
	region->base.remote_key = region->registration->rkey;
	domain->users++;
	*result = &region->base;
	return OUTCOME_OK;
}

void verbs_region_free(struct verbs_region *region)
{
	if (region->registration) {
		ibv_dereg_mr(region->registration);
		verbs_domain_release((struct verbs_domain *)region->base.domain);
	}
	free(region->base.memory);
	free(region);
}

void verbs_region_destroy(struct region *base)
{
	struct verbs_transport *transport = verbs_of(base->domain->transport);
	struct verbs_region *region = (struct verbs_region *)base;

	region->next = transport->destroyed_regions;
	transport->destroyed_regions = region;
	verbs_reap_later(transport);
}
