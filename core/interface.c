/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/interface.h"

#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/log.h"

/*
 * IPv4 first: on RoCE v2 Linux's RDMA CM joins no group of an IPv6 address. Link-local addresses last, because they
 * need a scope.
 */
static int rank(const struct address *address)
{
	return address->family == ADDRESS_IP4 ? 0 : address_is_link_local(address) ? 2 : 1;
}

/* A label ("eth0:0") belongs to one address; the kernel accepts it as an interface name. */
static const char *real_name(const char *name, char text[IF_NAMESIZE])
{
	unsigned index = strchr(name, ':') ? 0 : interface_index(name);

	return index && if_indextoname(index, text) ? text : name;
}

/* Whether an entry's interface, or the label of its IPv4 address, has the name that real_name() returned. */
static bool entry_has_name(const struct ifaddrs *entry, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(entry->ifa_name, name, length) && (!entry->ifa_name[length] || entry->ifa_name[length] == ':');
}

static size_t add_ranked(const struct ifaddrs *entries, const char *name, int wanted, struct interface_address *list,
			 size_t count)
{
	const unsigned up = IFF_UP | IFF_RUNNING;

	for (const struct ifaddrs *entry = entries; entry; entry = entry->ifa_next) {
		struct interface_address added = { .loopback = entry->ifa_flags & IFF_LOOPBACK };

		if (!entry->ifa_addr || (entry->ifa_flags & up) != up || (name && !entry_has_name(entry, name)) ||
		    !address_from_socket(entry->ifa_addr, &added.address) || rank(&added.address) != wanted)
			continue;
		log_text(added.name, sizeof(added.name), "%s", entry->ifa_name);
		list[count++] = added;
	}
	return count;
}

size_t interface_list(const char *name, struct interface_address **list)
{
	struct ifaddrs *entries;
	char text[IF_NAMESIZE];
	size_t count = 0;

	*list = NULL;
	if (getifaddrs(&entries))
		return 0;
	for (const struct ifaddrs *entry = entries; entry; entry = entry->ifa_next)
		count++;
	*list = calloc(count, sizeof(**list));
	count = 0;
	if (name)
		name = real_name(name, text);
	for (int wanted = 0; *list && wanted <= 2; wanted++)
		count = add_ranked(entries, name, wanted, *list, count);
	freeifaddrs(entries);
	return count;
}

size_t interface_addresses(struct interface_address list[INTERFACE_ADDRESSES_MAX])
{
	struct interface_address *all;
	size_t count = interface_list(NULL, &all);

	if (count > INTERFACE_ADDRESSES_MAX)
		count = INTERFACE_ADDRESSES_MAX;
	for (size_t i = 0; i < count; i++)
		list[i] = all[i];
	free(all);
	return count;
}

const struct ifaddrs *interface_entry(const struct ifaddrs *list, const struct address *address)
{
	struct address local;

	while (list &&
	       !(list->ifa_addr && address_from_socket(list->ifa_addr, &local) && address_same_host(&local, address)))
		list = list->ifa_next;
	return list;
}

bool interface_of(const struct address *address, char name[IF_NAMESIZE])
{
	const struct ifaddrs *entry;
	struct ifaddrs *entries;

	*name = '\0';
	if (getifaddrs(&entries))
		return false;
	entry = interface_entry(entries, address);
	if (entry)
		log_text(name, IF_NAMESIZE, "%s", entry->ifa_name);
	freeifaddrs(entries);
	return *name;
}

bool interface_elsewhere(const struct address *address, unsigned index, char name[IF_NAMESIZE])
{
	struct ifaddrs *entries;

	*name = '\0';
	if (getifaddrs(&entries))
		return false;
	for (const struct ifaddrs *entry = entries; (entry = interface_entry(entry, address));
	     entry = entry->ifa_next) {
		if (entry->ifa_flags & (IFF_LOOPBACK | IFF_NOARP) || if_nametoindex(entry->ifa_name) == index) {
			*name = '\0';
			break;
		}
		log_text(name, IF_NAMESIZE, "%s", entry->ifa_name);
	}
	freeifaddrs(entries);
	return *name;
}

/* The C library refuses names longer than 15 bytes; only alternative names are longer. */
unsigned interface_index(const char *name)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg link;
		struct rtattr row;
		char bytes[128]; /* ALTIFNAMSIZ of linux/if.h */
	} message = { .header = { .nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST },
		      .row = { .rta_type = IFLA_ALT_IFNAME } };
	const size_t length = strlen(name) + 1, least = NLMSG_SPACE(sizeof(message.link));
	unsigned index = if_nametoindex(name);
	int fd = index || length > sizeof(message.bytes) ? -1
							 : socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return index;
	memcpy(message.bytes, name, length);
	message.row.rta_len = (unsigned short)RTA_LENGTH(length);
	message.header.nlmsg_len = (uint32_t)(least + RTA_SPACE(length));
	/* The kernel answers within write(2). */
	if (write(fd, &message, message.header.nlmsg_len) > 0 &&
	    recv(fd, &message, sizeof(message), MSG_DONTWAIT) >= (ssize_t)least &&
	    message.header.nlmsg_type == RTM_NEWLINK)
		index = (unsigned)message.link.ifi_index;
	close(fd);
	return index;
}

bool interface_with_address_is_down(char name[IF_NAMESIZE])
{
	struct ifaddrs *entries;
	struct address address;

	*name = '\0';
	if (getifaddrs(&entries))
		return false;
	for (const struct ifaddrs *entry = entries; entry && !*name; entry = entry->ifa_next)
		if (!(entry->ifa_flags & IFF_UP) && entry->ifa_addr && address_from_socket(entry->ifa_addr, &address))
			log_text(name, IF_NAMESIZE, "%s", entry->ifa_name);
	freeifaddrs(entries);
	return *name;
}

bool interface_has_ip6_only(void)
{
	struct interface_address *list;
	size_t count = interface_list(NULL, &list);
	unsigned families = 0;

	for (size_t i = 0; i < count; i++)
		if (!list[i].loopback && !address_is_link_local(&list[i].address))
			families |= 1u << list[i].address.family;
	free(list);
	return families == 1u << ADDRESS_IP6;
}

unsigned interface_prefix(const char *name, const struct address *address)
{
	struct address local, mask;
	struct ifaddrs *entries;
	char text[IF_NAMESIZE];
	unsigned length = 0;
	bool found = false;

	if (getifaddrs(&entries))
		return 0;
	name = real_name(name, text);
	for (const struct ifaddrs *entry = entries; entry && !found; entry = entry->ifa_next) {
		found = entry->ifa_addr && entry->ifa_netmask && entry_has_name(entry, name) &&
			address_from_socket(entry->ifa_addr, &local) && local.family == address->family &&
			address_from_socket(entry->ifa_netmask, &mask);
		length = 0;
		for (size_t i = 0; i < sizeof(local.bytes) && found; i++) {
			found = !((local.bytes[i] ^ address->bytes[i]) & mask.bytes[i]);
			for (uint8_t bits = mask.bytes[i]; bits; bits = (uint8_t)(bits << 1))
				length++;
		}
	}
	freeifaddrs(entries);
	return found ? length : 0;
}

bool interface_exists(const char *name, char *names, size_t size)
{
	struct if_nameindex *list = if_nameindex();
	bool found = !list || interface_index(name);

	*names = '\0';
	for (const struct if_nameindex *entry = list; !found && entry->if_name; entry++)
		log_add(names, size, ", ", "%s", entry->if_name);
	if (list)
		if_freenameindex(list);
	return found;
}

struct interface interface_read(const char *name)
{
	struct interface interface = { .facts = 0 };
	struct sockaddr_ll link = { .sll_halen = 0 };
	struct ifaddrs *entries;
	struct address address;
	char text[IF_NAMESIZE];

	if (getifaddrs(&entries))
		return interface;
	name = real_name(name, text);
	for (const struct ifaddrs *entry = entries; entry; entry = entry->ifa_next) {
		if (!entry_has_name(entry, name))
			continue;
		interface.facts |= INTERFACE_HERE | (entry->ifa_flags & IFF_UP ? INTERFACE_UP : 0) |
				   (entry->ifa_flags & IFF_RUNNING ? INTERFACE_LINK : 0);
		if (!entry->ifa_addr)
			continue;
		if (entry->ifa_addr->sa_family == AF_PACKET)
			memcpy(&link, entry->ifa_addr, sizeof(link));
		else if (address_from_socket(entry->ifa_addr, &address))
			interface.facts |= address_is_link_local(&address) ? INTERFACE_LINK_LOCAL : INTERFACE_ADDRESS;
	}
	freeifaddrs(entries);
	interface.link_length = link.sll_halen;
	memcpy(interface.link_address, link.sll_addr, sizeof(link.sll_addr));
	return interface;
}

bool interface_is_down(const char *name)
{
	unsigned facts = interface_read(name).facts;

	return facts & INTERFACE_HERE && !(facts & INTERFACE_UP);
}
