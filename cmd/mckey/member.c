/* SPDX-License-Identifier: BSD-2-Clause */
/* A member resolves the group, creates its QP, and joins. */
#include <sys/param.h>
#include <sys/resource.h>

#include "cmd/mckey/mckey.h"

enum {
	SENDS = 64,
	RECEIVES = 1024,
	SLOTS_LEAST = 16,      /* per member, even above MEMORY_MAX */
	MEMORY_MAX = 32 << 20, /* bytes for the slots of all members */
};

enum outcome member_start(struct mckey *mckey, struct member *member, const struct endpoint_handlers *handlers)
{
	const struct mckey_options *options = mckey->options;
	const struct endpoint_options endpoint_options = {
		.port_space = (enum port_space)options->port_space,
		.timeout = options->common.timeout,
		.path = &options->common.path,
		.send_only = options->send_only,
		.no_loopback = options->no_loopback,
	};
	enum outcome outcome;

	member->mckey = mckey;
	outcome =
		endpoint_create(ENDPOINT_GROUP, mckey->channel, &endpoint_options, handlers, member, &member->endpoint);
	return outcome ? outcome : endpoint_resolve(member->endpoint, &mckey->source, &mckey->group);
}

void member_hint(const struct member *member)
{
	const struct mckey *mckey = member->mckey;
	const struct domain *domain = member->endpoint ? member->endpoint->domain : NULL;
	enum address_family family = mckey->group.family;

	if (member->endpoint && !domain && !mckey->options->bind)
		log_hint(mckey->log,
			 "if no route leads to the group through the right interface, name its address with -b");
	else if (domain && domain->fabric == FABRIC_ROCE && !domain->removed &&
		 (address_is_any(&mckey->group) || family == ADDRESS_GID ||
		  (family == ADDRESS_IP6 && !domain->ip6_multicast)))
		log_hint(mckey->log,
			 "use an IPv4 group with -m: only InfiniBand has native multicast GIDs and a subnet "
			 "manager that assigns groups, and Linux takes no IPv6 groups on RoCE v2");
}

/*
 * A receive has room for the MTU, not only for -S bytes: any host may send longer datagrams, and one that does not fit
 * moves the QP to the error state. Registered memory is locked: half of RLIMIT_MEMLOCK is left to others.
 */
static void set_depths(struct member *member)
{
	const struct mckey *mckey = member->mckey;
	struct endpoint *endpoint = member->endpoint;
	bool sends = mckey->options->sender;
	struct rlimit locked;
	uint64_t slots = 1;

	member->slot_size = sends ? (uint32_t)mckey->options->size : DATAGRAM_HEADER_SIZE + endpoint->max_datagram;
	if (mckey->count) {
		getrlimit(RLIMIT_MEMLOCK, &locked);
		slots = MIN(locked.rlim_cur / 2, MEMORY_MAX) / (mckey->figures.asked * member->slot_size);
		slots = MIN(MAX(slots, SLOTS_LEAST), sends ? SENDS : RECEIVES);
	}
	member->slots = MIN((uint32_t)slots, endpoint->domain->max_qp_wr);
	endpoint->options.send_depth = sends ? member->slots : 1;
	endpoint->options.receive_depth = sends ? 1 : member->slots;
}

enum outcome member_join(struct member *member)
{
	struct mckey *mckey = member->mckey;
	struct endpoint *endpoint = member->endpoint;
	const char *device = mckey->device = endpoint->domain->device;
	enum outcome outcome;

	if (!endpoint->domain->multicast) {
		/* The exit code of a missing device, so that CI skips the test. */
		log_error(mckey->log, mckey->figures.target, "%s has no multicast%s", device,
			  WITH_DIAGNOSTICS && endpoint->domain->fabric == FABRIC_IWARP ? ": iWARP has no datagrams"
										       : "");
		return OUTCOME_NO_DEVICE;
	}
	if (mckey->count && mckey->options->size > endpoint->max_datagram) {
		log_error(mckey->log, mckey->figures.target, "-S %d is more than the MTU of %s: %u bytes",
			  (int)mckey->options->size, device, endpoint->max_datagram);
		return OUTCOME_USAGE;
	}
	set_depths(member);
	outcome = endpoint_create_qp(endpoint);
	if (!outcome && mckey->count)
		outcome = region_create(endpoint->domain, (size_t)member->slots * member->slot_size, REGION_LOCAL,
					&member->region);
	if (!outcome && mckey->count && !mckey->options->sender)
		outcome = receiver_prepare(member);
	return outcome ? outcome : endpoint_join(endpoint);
}
