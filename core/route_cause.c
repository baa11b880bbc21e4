/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/route_cause.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/host.h"
#include "core/interface.h"
#include "core/log.h"
#include "core/route.h"
#include "core/sysfs.h"

enum {
	HOPS_DEFAULT = 64 /* Linux's default: more than any path needs */
};

static int find_route(int fd, const struct address *peer, const struct address *source, struct route *route)
{
	return route_find(fd, route_vrf(), peer, source, route);
}

static bool is_own_address(int fd, const struct address *address)
{
	struct route route;

	return !find_route(fd, address, &(struct address){ .family = address->family }, &route) && route.is_local;
}

/* The flags of an IPv6 address (linux/if_addr.h), 0 without one. The kernel checks it for duplicates before its use. */
static unsigned flags_of(const struct address *address)
{
	FILE *file = fopen("/proc/self/net/if_inet6", "re");
	char hex[2 * sizeof(address->bytes) + 1], found[sizeof(hex)] = "";
	unsigned flags = 0, interface = 0;

	for (size_t i = 0; i < sizeof(address->bytes); i++)
		sprintf(hex + 2 * i, "%02x", address->bytes[i]);
	while (file && (strcmp(found, hex) != 0 || (address->scope && interface != address->scope)))
		if (fscanf(file, "%32s %x %*x %*x %x %*s", found, &interface, &flags) != 3) {
			flags = 0;
			break;
		}
	if (file)
		fclose(file);
	return flags;
}

static bool is_set(const char *interface, const char *setting, const char *wanted)
{
	char value[SYSFS_TEXT_SIZE];

	return sysfs_line(value, "/proc/sys/net/ipv6/conf/%s/%s", interface, setting) && !strcmp(value, wanted);
}

bool route_ip6_is_off(const struct address *address, char text[ROUTE_CAUSE_SIZE])
{
	struct interface_address list[INTERFACE_ADDRESSES_MAX];
	bool loopback = address_is_loopback(address);
	size_t count = address->family == ADDRESS_IP6 ? interface_addresses(list) : 0;
	const char *off = NULL;

	for (size_t i = 0; i < count; i++) {
		if (list[i].loopback != loopback)
			continue;
		if (list[i].address.family == ADDRESS_IP6)
			return false;
		if (!off && is_set(list[i].name, "disable_ipv6", "1"))
			off = list[i].name;
	}
	if (off)
		log_text(text, ROUTE_CAUSE_SIZE, "IPv6 is disabled on %s: sysctl -w net/ipv6/conf/%s/disable_ipv6=0",
			 off, off);
	return off;
}

/* It comes from router advertisements, which a forwarding host ignores by default. */
static void default_route(char text[ROUTE_CAUSE_SIZE])
{
	struct interface_address list[INTERFACE_ADDRESSES_MAX];
	size_t count = interface_addresses(list);
	bool global = false;

	for (size_t i = 0; i < count; i++) {
		const char *name = list[i].name;

		if (list[i].address.family != ADDRESS_IP6 || list[i].loopback ||
		    (global && address_is_link_local(&list[i].address)))
			continue;
		global |= !address_is_link_local(&list[i].address);
		if (!is_set(name, "forwarding", "1") || !is_set(name, "accept_ra", "1"))
			continue;
		log_text(text, ROUTE_CAUSE_SIZE,
			 "%s accepts no default route from routers, because it forwards packets: sysctl -w "
			 "net/ipv6/conf/%s/accept_ra=2",
			 name, name);
		return;
	}
}

/* The bridge takes all arriving packets, including the ARP replies for the port. */
static bool is_on_port(int fd, const struct interface_address *entry, char text[ROUTE_CAUSE_SIZE])
{
	char host[ADDRESS_TEXT_SIZE], bridge[IF_NAMESIZE];

	return if_indextoname(route_link(fd, if_nametoindex(entry->name)).bridge, bridge) &&
	       log_text(text, ROUTE_CAUSE_SIZE,
			"%s cannot be used: %s is a port of the bridge %s, which should have the address",
			address_host(&entry->address, host), entry->name, bridge);
}

/* Docker's ports have unused link-local addresses. */
bool route_cause_port(const struct address *local, char text[ROUTE_CAUSE_SIZE])
{
	struct interface_address list[INTERFACE_ADDRESSES_MAX];
	size_t count = interface_addresses(list);
	int fd = route_open();
	bool found = false;

	for (size_t i = 0; fd >= 0 && i < count && !found; i++)
		found = (address_is_any(local) ? !address_is_link_local(&list[i].address)
					       : address_same_host(&list[i].address, local)) &&
			is_on_port(fd, &list[i], text);
	if (fd >= 0)
		close(fd);
	return found;
}

bool route_cause_local(const struct address *local, char text[ROUTE_CAUSE_SIZE])
{
	unsigned flags = local->family == ADDRESS_IP6 ? flags_of(local) : 0;
	const char *state = NULL;
	char host[ADDRESS_TEXT_SIZE];

	*text = '\0';
	if (flags & IFA_F_DADFAILED)
		state = "another host has it (dadfailed)";
	else if (flags & IFA_F_TENTATIVE)
		state = "duplicate detection is in progress (tentative), try again";
	if (state)
		log_text(text, ROUTE_CAUSE_SIZE, "%s cannot be used: %s", address_host(local, host), state);
	return state || (local->family && !address_is_any(local) &&
			 (route_cause_port(local, text) || route_ip6_is_off(local, text)));
}

/* Tries each address of this host as -I. A rule may have a route only for packets bound to its interface. */
static void other_source(int fd, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	struct interface_address list[INTERFACE_ADDRESSES_MAX];
	size_t count = interface_addresses(list);
	char host[ADDRESS_TEXT_SIZE];
	struct route route;

	for (size_t i = 0; i < count; i++) {
		const struct address *source = &list[i].address;

		if (source->family != peer->family || list[i].loopback)
			continue;
		address_host(source, host);
		if (!find_route(fd, peer, source, &route)) {
			log_text(text, ROUTE_CAUSE_SIZE, "packets from %s have a route: -I %s", host, host);
			return;
		}
		if (!*text && route_by_interface(fd, peer, source, if_nametoindex(list[i].name), &route))
			log_text(text, ROUTE_CAUSE_SIZE,
				 is_own_address(fd, source)
					 ? "only a rule with oif %s has a route: ip rule add from %s, with its table"
					 : "only the VRF of %s has a route: ip vrf exec, or over verbs -I %s",
				 list[i].name, host);
	}
}

/* A link that goes down takes the routes along, but not the addresses. */
static bool is_down(char text[ROUTE_CAUSE_SIZE])
{
	char name[IF_NAMESIZE];

	return interface_with_address_is_down(name) &&
	       log_text(text, ROUTE_CAUSE_SIZE, "%s is down: ip link set %s up", name, name);
}

/* If getifaddrs(3) fails, not even lo is known. */
bool route_is_alone(char text[ROUTE_CAUSE_SIZE])
{
	struct interface_address list[INTERFACE_ADDRESSES_MAX];
	size_t count = interface_addresses(list), others = 0;

	for (size_t i = 0; i < count; i++)
		others += !address_is_loopback(&list[i].address);
	return !others && interface_read("lo").facts &&
	       (is_down(text) ||
		log_text(text, ROUTE_CAUSE_SIZE,
			 "no interface but lo has an address: a container may need the host's network, a service "
			 "PrivateNetwork=no"));
}

/* By a blackhole, prohibit or unreachable entry. Packets that are bound to an interface pass it over IPv4. */
static bool is_refusal(int error)
{
	return error == EINVAL || error == EACCES || error == EHOSTUNREACH;
}

/*
 * Names an address whose network has the peer, but no route: it was not added (noprefixroute), or is gone. alone: also
 * an address in no network, as it was given without its prefix length, or by DHCPv6.
 */
static bool lacks_route(int fd, const struct address *peer, bool alone, char text[ROUTE_CAUSE_SIZE])
{
	struct interface_address list[INTERFACE_ADDRESSES_MAX];
	unsigned whole = peer->family == ADDRESS_IP4 ? 32 : 128;
	size_t count = interface_addresses(list);
	char own[ADDRESS_TEXT_SIZE], host[ADDRESS_TEXT_SIZE];
	struct route route;

	for (size_t i = 0; i < count; i++) {
		const struct address *address = &list[i].address;
		const char *name = list[i].name;
		bool fits = address->family == peer->family && !list[i].loopback;
		unsigned prefix = fits ? interface_prefix(name, address) : 0;

		if (prefix && (prefix == interface_prefix(name, peer) || (alone && prefix == whole)) &&
		    !is_refusal(find_route(fd, peer, address, &route)) &&
		    !route_by_interface(fd, peer, address, if_nametoindex(name), &route))
			return log_text(text, ROUTE_CAUSE_SIZE,
					"%s/%u on %s has no route to it: ip route add %s dev %s",
					address_host(address, own), prefix, name, address_host(peer, host), name);
	}
	return false;
}

/* error: of the look-up. */
static void unrouted(int fd, int error, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	char host[ADDRESS_TEXT_SIZE];

	other_source(fd, peer, text);
	/* An address in no network may have nothing to do with the peer. */
	if (WITH_EXTRAS && !*text && !is_down(text) && !route_is_alone(text) && !lacks_route(fd, peer, false, text))
		lacks_route(fd, peer, true, text);
	if (WITH_EXTRAS && !*text && is_refusal(error))
		log_text(text, ROUTE_CAUSE_SIZE,
			 "a route or rule of this host refuses packets to it: " ROUTE_DIVERTED_HINT);
	if (!*text && peer->family == ADDRESS_IP6 && !route_ip6_is_off(peer, text))
		default_route(text);
	if (!*text && !address_is_loopback(peer))
		log_text(text, ROUTE_CAUSE_SIZE,
			 "no network of this host has it: ip route add %s dev INTERFACE, and there the way back; or "
			 "use addresses of one network",
			 address_host(peer, host));
}

/* Whether the entry's interface is in that address's network. */
static bool is_in_network(int fd, const struct interface_address *entry, const struct address *address)
{
	struct route route;

	return entry->address.family == address->family && !entry->loopback && !address_is_link_local(address) &&
	       route_by_interface(fd, address, &entry->address, if_nametoindex(entry->name), &route) &&
	       address_is_any(&route.gateway);
}

/* The first other interface in the next hop's network: one of them reaches it, and the kernel took the first. */
static bool other_link(int fd, unsigned interface, const struct address *hop, char name[IF_NAMESIZE])
{
	struct interface_address list[INTERFACE_ADDRESSES_MAX];
	size_t count = interface_addresses(list);

	for (size_t i = 0; i < count; i++)
		if (if_nametoindex(list[i].name) != interface && is_in_network(fd, &list[i], hop)) {
			strcpy(name, list[i].name);
			return true;
		}
	return false;
}

/* Whether the peer is only in another interface's network than its packets leave by, as a rule may want. */
static bool is_diverted(int fd, const struct route *route, const struct address *peer, char other[IF_NAMESIZE])
{
	char name[IF_NAMESIZE];

	return !route->is_local && if_indextoname(route->interface, name) && !interface_prefix(name, peer) &&
	       other_link(fd, route->interface, peer, other);
}

static const struct address *next_hop(const struct route *route, const struct address *peer)
{
	return address_is_any(&route->gateway) ? peer : &route->gateway;
}

static const char *protocol_of(const struct address *address)
{
	return address->family == ADDRESS_IP4 ? "ARP" : "NDP";
}

enum {
	PORTS_ANY = 1,
	PORTS_WAIT = 2,
	PORTS_OUT = 4, /* may lead to other hosts, unlike the ports of containers and virtual machines */
};

static unsigned ports_of(int fd, unsigned bridge)
{
	struct if_nameindex *list = if_nameindex();
	unsigned found = 0;

	for (struct if_nameindex *entry = list; entry && entry->if_index; entry++) {
		struct route_link link = route_link(fd, entry->if_index);

		if (link.bridge == bridge)
			found |= PORTS_ANY | (link.waits ? PORTS_WAIT : 0) |
				 (strcmp(link.kind, "veth") != 0 && strcmp(link.kind, "tun") != 0 ? PORTS_OUT : 0);
	}
	if (list)
		if_freenameindex(list);
	return found;
}

/*
 * A bridge that leads to no other host, like Docker's, although its network may also exist outside; or one whose port
 * waits for its spanning tree. A bridge with ports to containers only counts if the peer is silent.
 */
static bool is_bridge(int fd, const struct route *route, const char *name, const struct address *hop, bool silent,
		      char text[ROUTE_CAUSE_SIZE])
{
	struct interface_address list[INTERFACE_ADDRESSES_MAX];
	char host[ADDRESS_TEXT_SIZE], router[ADDRESS_TEXT_SIZE];
	unsigned ports = ports_of(fd, route->interface);
	size_t count = interface_addresses(list);
	bool passed = false;
	struct route other;

	if (ports & PORTS_WAIT)
		return log_text(text, ROUTE_CAUSE_SIZE,
				"%s forwards nothing yet: its port waits 30 s (spanning tree); or ip link set %s type "
				"bridge stp_state 0",
				name, name);
	if (ports & PORTS_OUT || (ports && !silent))
		return false;
	log_text(text, ROUTE_CAUSE_SIZE, "packets to it leave by %s, a bridge %s", name,
		 ports ? "of containers or VMs" : "without ports");
	for (size_t i = 0; i < count && !passed; i++) {
		passed = list[i].address.family == hop->family && !list[i].loopback &&
			 strcmp(list[i].name, name) != 0 &&
			 route_by_interface(fd, hop, &list[i].address, if_nametoindex(list[i].name), &other) &&
			 !address_is_any(&other.gateway);
		if (passed)
			log_add(text, ROUTE_CAUSE_SIZE, "", "; if it is behind %s: ip route add %s via %s",
				list[i].name, address_host(hop, host), address_host(&other.gateway, router));
	}
	return true;
}

/* kinds: each ends in a 0, the last one in two. */
static bool is_one_of(const char *kinds, const char *kind)
{
	while (*kinds && strcmp(kinds, kind) != 0)
		kinds += strlen(kinds) + 1;
	return *kinds;
}

/* These use their parent's link, which does not deliver their packets to its own host. */
static bool is_apart_from_its_host(const char *kind)
{
	return is_one_of("macvlan\0macvtap\0ipvlan\0ipvtap\0", kind);
}

static bool is_tunnel(const struct route_link *link, const char *name, char text[ROUTE_CAUSE_SIZE])
{
	return is_one_of("vxlan\0geneve\0gre\0gretap\0ip6gre\0ip6gretap\0ip6tnl\0ipip\0sit\0wireguard\0", link->kind) &&
	       log_text(text, ROUTE_CAUSE_SIZE,
			"it is behind %s, a %s tunnel: do its own packets pass (ip -d link show %s)?", name, link->kind,
			name);
}

/* InfiniBand's interfaces have one; a bond of them has it in its ports. */
static bool read_partition(const char *name, char key[SYSFS_TEXT_SIZE])
{
	char ports[SYSFS_TEXT_SIZE];

	return WITH_EXTRAS && (sysfs_line(key, "/sys/class/net/%s/pkey", name) ||
			       (sysfs_line(ports, "/sys/class/net/%s/bonding/slaves", name) &&
				sysfs_line(key, "/sys/class/net/%.*s/pkey", (int)strcspn(ports, " "), ports)));
}

static void explain_silence(int fd, const struct route *route, const struct route_link *link,
			    const struct address *peer, const char *name, char text[ROUTE_CAUSE_SIZE])
{
	const struct address *hop = next_hop(route, peer);
	char host[ADDRESS_TEXT_SIZE], other[IF_NAMESIZE], network[64] = "", key[SYSFS_TEXT_SIZE];
	unsigned prefix = interface_prefix(name, hop);
	const char *protocol = protocol_of(hop);

	address_host(hop, host);
	if (prefix && hop == peer)
		log_text(network, sizeof(network), " Is /%u the right prefix?", prefix);
	if (other_link(fd, route->interface, hop, other))
		log_text(text, ROUTE_CAUSE_SIZE,
			 "%s answers no %s on %s; %s is in that network, too: ip route add %s dev %s", host, protocol,
			 name, other, host, other);
	else if (read_partition(name, key))
		log_text(text, ROUTE_CAUSE_SIZE, "%s answers no %s on %s: is it up, and in partition %s?%s", host,
			 protocol, name, key, network);
	else if (WITH_EXTRAS && is_apart_from_its_host(link->kind))
		log_text(
			text, ROUTE_CAUSE_SIZE,
			"%s answers no %s on %s: is it up, and on that link and VLAN? A %s does not reach its own host",
			host, protocol, name, link->kind);
	else if (!(WITH_EXTRAS && is_tunnel(link, name, text)))
		log_text(text, ROUTE_CAUSE_SIZE,
			 "%s answers no %s on %s: is it up, and on that link and VLAN?%s Does the switch isolate it%s?",
			 host, protocol, name, network,
			 hop->family == ADDRESS_IP4 ? "" : ", or its firewall drop ICMPv6");
}

static void check_hop(int fd, const struct route *route, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	const struct address *hop = next_hop(route, peer);
	struct route_neighbour neighbour = route_neighbour(fd, route->interface, hop);
	struct route_link link = route_link(fd, route->interface);
	bool silent = neighbour.state & (NUD_INCOMPLETE | NUD_FAILED);
	char name[IF_NAMESIZE] = "", other[IF_NAMESIZE], key[SYSFS_TEXT_SIZE];
	bool linked;

	if (!if_indextoname(route->interface, name))
		return;
	if (WITH_EXTRAS && !strcmp(link.kind, "bridge") && is_bridge(fd, route, name, hop, silent, text))
		return;
	/* A router may say that an IPv6 network's hosts are only reached by it. */
	if (WITH_EXTRAS && peer->family == ADDRESS_IP4 && !interface_prefix(name, peer) &&
	    lacks_route(fd, peer, false, text))
		return;
	linked = interface_read(name).facts & INTERFACE_LINK;
	if (!linked && read_partition(name, key))
		log_text(text, ROUTE_CAUSE_SIZE,
			 "%s has no link: is its port active, and in partition %s (cat "
			 "/sys/class/infiniband/*/ports/*/pkeys/*)?",
			 name, key);
	else if (!linked)
		log_text(text, ROUTE_CAUSE_SIZE, "%s has no link: a cable, or the switch's port", name);
	else if (is_diverted(fd, route, peer, other))
		log_text(text, ROUTE_CAUSE_SIZE,
			 "packets to it leave by %s, though %s is in its network: " ROUTE_DIVERTED_HINT, name, other);
	else if (WITH_EXTRAS && neighbour.state & NUD_NOARP && neighbour.length && !is_apart_from_its_host(link.kind))
		log_text(text, ROUTE_CAUSE_SIZE, "%s does no %s: ip link set %s arp on", name, protocol_of(hop), name);
	else if (silent)
		explain_silence(fd, route, &link, peer, name, text);
}

static void find_cause(int fd, const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	bool given = local->family && !address_is_any(local);
	struct address any = { .family = peer->family };
	char host[ADDRESS_TEXT_SIZE], name[IF_NAMESIZE];
	struct route route;
	int error;

	if (given && route_cause_local(local, text))
		return;
	if (given && !is_own_address(fd, local))
		log_text(text, ROUTE_CAUSE_SIZE,
			 interface_of(local, name)
				 ? "%s belongs to a VRF that this process is not in"
				 : "%s is no longer an address of this host: it expired or was removed",
			 address_host(local, host));
	else if ((error = find_route(fd, peer, given ? local : &any, &route)))
		unrouted(fd, error, peer, text);
	else if (route.is_broadcast)
		log_text(text, ROUTE_CAUSE_SIZE,
			 "it is a broadcast address on %s: is the prefix length the same at both hosts?",
			 if_indextoname(route.interface, name) ? name : "");
	else if (!route.is_local)
		check_hop(fd, &route, peer, text);
	else if (given && !address_is_loopback(local) && !address_same_host(local, peer))
		log_text(text, ROUTE_CAUSE_SIZE, "both addresses belong to this host: no packet leaves it");
}

enum {
	LINK_ADDRESS_SIZE = 3 * sizeof(((struct route_neighbour *)0)->bytes) + 1
};

/* Writes "02:00:00:00:00:01"; "" for none. */
static const char *link_address_text(const struct route_neighbour *neighbour, char text[LINK_ADDRESS_SIZE])
{
	*text = '\0';
	for (size_t i = 0; i < neighbour->length; i++)
		log_add(text, LINK_ADDRESS_SIZE, ":", "%02x", neighbour->bytes[i]);
	return text;
}

static void find_neighbour(int fd, const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	static const char states[][12] = { "INCOMPLETE", "REACHABLE", "STALE", "DELAY",
					   "PROBE",	 "FAILED",    "NOARP", "PERMANENT" };
	char host[ADDRESS_TEXT_SIZE], name[IF_NAMESIZE], at[LINK_ADDRESS_SIZE];
	struct route_neighbour neighbour;
	struct route route;

	if (find_route(fd, peer, local, &route) || route.is_local || !if_indextoname(route.interface, name))
		return;
	neighbour = route_neighbour(fd, route.interface, next_hop(&route, peer));
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (neighbour.state == 1u << i && *link_address_text(&neighbour, at))
			log_text(text, ROUTE_CAUSE_SIZE, "%s is at %s on %s (%s)",
				 address_host(next_hop(&route, peer), host), at, name, states[i]);
}

static void find_doubt(int fd, const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	struct route_neighbour neighbour;
	char host[ADDRESS_TEXT_SIZE], name[IF_NAMESIZE], at[LINK_ADDRESS_SIZE];
	struct route_link link;
	struct route route;

	if (find_route(fd, peer, local, &route) || route.is_local || !if_indextoname(route.interface, name))
		return;
	link = route_link(fd, route.interface);
	if (WITH_EXTRAS && link.program)
		log_text(text, ROUTE_CAUSE_SIZE,
			 "%s has an XDP program: does it drop packets (ip link set %s xdp off)? Else its host or a "
			 "firewall does",
			 name, name);
	if (WITH_EXTRAS && (link.program || is_tunnel(&link, name, text)))
		return;
	neighbour = route_neighbour(fd, route.interface, next_hop(&route, peer));
	address_host(next_hop(&route, peer), host);
	if (neighbour.state & NUD_PERMANENT && *link_address_text(&neighbour, at))
		log_text(text, ROUTE_CAUSE_SIZE,
			 "if %s is not at %s on %s (permanent): ip neigh del %s dev %s; else its host or a firewall "
			 "drops packets",
			 host, at, name, host, name);
}

static void find_answer(int fd, const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	struct route_neighbour neighbour;
	char name[IF_NAMESIZE];
	struct route route;

	if (find_route(fd, peer, local, &route) || route.is_local || !address_is_any(&route.gateway) ||
	    !if_indextoname(route.interface, name))
		return;
	neighbour = route_neighbour(fd, route.interface, peer);
	if (neighbour.state & NUD_REACHABLE)
		log_text(text, ROUTE_CAUSE_SIZE, "%u s ago (it answered %s on %s)", neighbour.confirmed,
			 protocol_of(peer), name);
}

static void find_diversion(int fd, const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	struct route route;

	if (find_route(fd, peer, local, &route) || !is_diverted(fd, &route, peer, text))
		*text = '\0';
}

/* Whether the local address belongs to one interface, and the route to another one, and has not chosen the address. */
static bool strays(int fd, const struct address *local, const struct address *peer, char name[IF_NAMESIZE],
		   char other[IF_NAMESIZE])
{
	const struct address any = { .family = peer->family };
	struct route route, chosen;

	return !address_is_any(local) && !find_route(fd, peer, local, &route) && !route.is_local &&
	       if_indextoname(route.interface, name) && interface_elsewhere(local, route.interface, other) &&
	       (find_route(fd, peer, &any, &chosen) || !address_same_host(&chosen.source, local));
}

static void find_stray(int fd, const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	char host[ADDRESS_TEXT_SIZE], name[IF_NAMESIZE], other[IF_NAMESIZE];

	if (strays(fd, local, peer, name, other))
		log_text(text, ROUTE_CAUSE_SIZE, "packets from %s leave by %s, though %s has it",
			 address_host(local, host), name, other);
}

static void find_other_way(int fd, const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	char host[ADDRESS_TEXT_SIZE], name[IF_NAMESIZE], other[IF_NAMESIZE], device[SYSFS_TEXT_SIZE];
	struct route route;
	bool card;

	if (!strays(fd, local, peer, name, other) || route_by_interface(fd, peer, local, if_nametoindex(other), &route))
		return;
	card = host_find_card(name, device);
	log_text(text, ROUTE_CAUSE_SIZE,
		 "%s is on %s, but the route to the peer is by %s%s%s%s: %sgive %s a route there",
		 address_host(local, host), other, name, card ? " (" : "", device, card ? ")" : "",
		 card ? "use that one, or " : "", other);
}

static void find_hops(int fd, const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	char host[ADDRESS_TEXT_SIZE], name[IF_NAMESIZE], value[SYSFS_TEXT_SIZE], setting[64] = "ipv4/ip_default_ttl";
	struct route route;
	unsigned long hops;

	if (find_route(fd, peer, local, &route) || !if_indextoname(route.interface, name))
		return;
	if (peer->family == ADDRESS_IP6)
		log_text(setting, sizeof(setting), "ipv6/conf/%s/hop_limit", name);
	sysfs_line(value, "/proc/sys/net/%s", setting);
	hops = route.hop_limit ? route.hop_limit : strtoul(value, NULL, 10);
	address_host(peer, host);
	if (!hops || hops >= HOPS_DEFAULT)
		log_text(text, ROUTE_CAUSE_SIZE, "packets do not arrive in %lu hops, a routing loop: traceroute %s",
			 hops ? hops : HOPS_DEFAULT, host);
	else if (route.hop_limit)
		log_text(text, ROUTE_CAUSE_SIZE, "a hop limit of %lu is too small, see ip route get %s", hops, host);
	else
		log_text(text, ROUTE_CAUSE_SIZE, "a hop limit of %lu is too small: sysctl -w net/%s=%d", hops, setting,
			 HOPS_DEFAULT);
}

/* Whether one interface is stacked on the other: a VLAN, bond, bridge or macvlan. */
static bool is_stacked(const char *one, const char *other)
{
	return sysfs_has("/sys/class/net/%s/lower_%s", one, other) ||
	       sysfs_has("/sys/class/net/%s/lower_%s", other, one);
}

static void find_missed_card(int fd, const struct address *local, const struct address *peer,
			     char text[ROUTE_CAUSE_SIZE])
{
	struct interface_address list[INTERFACE_ADDRESSES_MAX];
	char host[ADDRESS_TEXT_SIZE], name[IF_NAMESIZE], device[SYSFS_TEXT_SIZE];
	size_t count = interface_addresses(list);
	struct route route;

	if (find_route(fd, peer, local, &route) || route.is_local || !if_indextoname(route.interface, name) ||
	    host_find_card(name, device))
		return;
	for (size_t i = 0; i < count && !*text; i++)
		if (list[i].address.family == peer->family && !address_is_link_local(&list[i].address) &&
		    !is_stacked(name, list[i].name) && host_find_card(list[i].name, device))
			log_text(text, ROUTE_CAUSE_SIZE,
				 "packets leave by %s, but the RDMA device %s is on %s: use the peer's address in the "
				 "network of %s, or a route by %s",
				 name, device, list[i].name, address_host(&list[i].address, host), list[i].name);
}

static bool answers_for_others(const char *name)
{
	char all[SYSFS_TEXT_SIZE], own[SYSFS_TEXT_SIZE];

	return sysfs_line(all, "/proc/sys/net/ipv4/conf/all/arp_ignore") &&
	       sysfs_line(own, "/proc/sys/net/ipv4/conf/%s/arp_ignore", name) && *all == '0' && *own == '0';
}

static bool share_network(int fd, const struct interface_address *one, const struct interface_address *other)
{
	return other->address.family == ADDRESS_IP4 && strcmp(one->name, other->name) != 0 &&
	       interface_prefix(one->name, &other->address) && interface_prefix(other->name, &one->address) &&
	       !is_stacked(one->name, other->name) &&
	       !is_apart_from_its_host(route_link(fd, if_nametoindex(one->name)).kind) &&
	       !is_apart_from_its_host(route_link(fd, if_nametoindex(other->name)).kind) &&
	       (answers_for_others(one->name) || answers_for_others(other->name));
}

bool route_shares_network(char text[ROUTE_CAUSE_SIZE])
{
	struct interface_address list[INTERFACE_ADDRESSES_MAX];
	char host[ADDRESS_TEXT_SIZE], other[ADDRESS_TEXT_SIZE], device[SYSFS_TEXT_SIZE];
	size_t count = interface_addresses(list);
	int fd = route_open();

	*text = '\0';
	for (size_t i = 0; fd >= 0 && i < count; i++)
		for (size_t j = 0; j < count && !*text && list[i].address.family == ADDRESS_IP4 &&
				   host_find_card(list[i].name, device);
		     j++)
			if (share_network(fd, &list[i], &list[j]))
				log_text(text, ROUTE_CAUSE_SIZE,
					 "%s (%s) and %s (%s) are in one network: each answers ARP for the other's "
					 "address",
					 list[i].name, address_host(&list[i].address, host), list[j].name,
					 address_host(&list[j].address, other));
	if (fd >= 0)
		close(fd);
	return *text;
}

static bool look(void find(int, const struct address *, const struct address *, char *), const struct address *local,
		 const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	bool is_host = (peer->family == ADDRESS_IP4 || peer->family == ADDRESS_IP6) && !address_is_multicast(peer);
	int fd = is_host ? route_open() : -1;

	*text = '\0';
	if (fd < 0)
		return false;
	find(fd, local, peer, text);
	close(fd);
	return *text;
}

bool route_cause(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	return look(find_cause, local, peer, text);
}

bool route_doubt(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	return look(find_doubt, local, peer, text);
}

bool route_entry(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	return look(find_neighbour, local, peer, text);
}

bool route_answers(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	return look(find_answer, local, peer, text);
}

bool route_diverted(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	return look(find_diversion, local, peer, text);
}

bool route_strays(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	return look(find_stray, local, peer, text);
}

bool route_is_elsewhere(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	return look(find_other_way, local, peer, text);
}

bool route_misses_card(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	return look(find_missed_card, local, peer, text);
}

bool route_hops(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	return look(find_hops, local, peer, text);
}

/* The return route's interface accepts such a packet, and this one does not: the errno depends on the kernel. */
static bool is_filtered(int fd, const struct interface_address *entry, const struct address *peer)
{
	const struct address *own = &entry->address;
	struct route back;

	return !find_route(fd, peer, own, &back) && route_arrives(fd, peer, own, back.interface) &&
	       !route_arrives(fd, peer, own, if_nametoindex(entry->name));
}

/* Linux has this filter only for IPv4. It also drops ARP requests, which its packet counter omits. */
bool route_is_filtered(const struct address *local, const struct address *peer, struct interface_address *dropped)
{
	struct interface_address list[INTERFACE_ADDRESSES_MAX];
	size_t count = interface_addresses(list);
	int fd = peer->family == ADDRESS_IP4 ? route_open() : -1;
	bool found = false;

	for (size_t i = 0; fd >= 0 && i < count && !found; i++) {
		*dropped = list[i];
		found = (local->family ? address_same_host(&list[i].address, local)
				       : is_in_network(fd, &list[i], peer)) &&
			is_filtered(fd, &list[i], peer);
	}
	if (fd >= 0)
		close(fd);
	return found;
}

bool route_is_broadcast(const struct address *address)
{
	struct route route;

	return route_look_up(address, &(struct address){ .family = address->family }, &route) && route.is_broadcast;
}

bool route_leads_here(const struct address *address, bool otherwise)
{
	bool is_ip = address->family == ADDRESS_IP4 || address->family == ADDRESS_IP6;
	int fd = is_ip ? route_open() : -1;
	bool here = fd < 0 ? otherwise : is_own_address(fd, address);

	if (fd >= 0)
		close(fd);
	return here;
}
