/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/interface.h"

#include <ifaddrs.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

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
		struct interface_address *added = &list[count];

		if (!entry->ifa_addr || (entry->ifa_flags & up) != up ||
		    !address_from_socket(entry->ifa_addr, &added->address) || rank(&added->address) != wanted)
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

bool interface_source(const struct address *peer, struct address *source)
{
	struct sockaddr_storage storage;
	socklen_t length = (socklen_t)address_to_socket(peer, &storage);
	int fd = length ? socket(storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
	bool found = fd >= 0 && !connect(fd, (struct sockaddr *)&storage, length) &&
		     !getsockname(fd, (struct sockaddr *)&storage, &length) &&
		     address_from_socket((struct sockaddr *)&storage, source);

	if (fd >= 0)
		close(fd);
	return found;
}
