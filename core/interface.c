/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/interface.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/*
 * IPv4 first: on RoCE v2 Linux's RDMA CM joins no group of an IPv6 address. Link-local addresses last, because they
 * need a scope.
 */
static int rank(const struct address *address)
{
	return address->family == ADDRESS_IP4 ? 0 : address_is_link_local(address) ? 2 : 1;
}

static size_t add_ranked(const struct ifaddrs *entries, int wanted, struct interface_address *list, size_t count)
{
	const unsigned up = IFF_UP | IFF_RUNNING;

	for (const struct ifaddrs *entry = entries; entry && count < INTERFACE_ADDRESSES_MAX; entry = entry->ifa_next) {
		int family = entry->ifa_addr ? entry->ifa_addr->sa_family : AF_UNSPEC;
		struct interface_address *added = &list[count];
		struct sockaddr_storage storage = { 0 };

		if ((family != AF_INET && family != AF_INET6) || (entry->ifa_flags & up) != up)
			continue;
		memcpy(&storage, entry->ifa_addr,
		       family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
		if (!address_from_socket(&storage, &added->address) || rank(&added->address) != wanted)
			continue;
		snprintf(added->name, sizeof(added->name), "%s", entry->ifa_name);
		added->loopback = entry->ifa_flags & IFF_LOOPBACK;
		count++;
	}
	return count;
}

size_t interface_addresses(struct interface_address list[INTERFACE_ADDRESSES_MAX])
{
	struct ifaddrs *entries;
	size_t count = 0;

	if (getifaddrs(&entries))
		return 0;
	for (int wanted = 0; wanted <= 2; wanted++)
		count = add_ranked(entries, wanted, list, count);
	freeifaddrs(entries);
	return count;
}
