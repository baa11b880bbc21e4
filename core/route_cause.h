/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why no packet passes between two addresses, from the kernel's tables. Used after a failure: it explains, and does not
 * decide.
 */
#pragma once

#include "core/address.h"
#include "core/interface.h"

enum {
	ROUTE_CAUSE_SIZE = 256
};

/*
 * Writes why: the local address cannot be used, or is gone; only another address has a route; the network of one has
 * none; IPv6 is disabled, or accepts no routes from routers; both addresses belong to this host; the peer's is a
 * broadcast address; the next hop answers no ARP or NDP. local may be the any address. Writes "" and returns false if
 * the kernel shows no cause.
 */
bool route_cause(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE]);

/*
 * As route_cause(), for settings that may be intended: the interface has an XDP program, or is a tunnel; the
 * neighbour's entry is permanent.
 */
bool route_doubt(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE]);

/*
 * Writes the next hop's neighbour entry, with the state in the words of ip-neighbour(8): "10.0.0.2 is at
 * 02:00:00:00:00:01 on eth0 (STALE)". "" and false without a link-layer address.
 */
bool route_entry(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE]);

/*
 * Writes the evidence that the peer, on this link, is up: when it has last answered ARP or NDP, even if its IP packets
 * are dropped. The kernel asks again after 15 to 45 s only. "" and false without evidence.
 */
bool route_answers(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE]);

/* Writes the interface in the peer's network, if its packets leave by another one outside that network. */
bool route_diverted(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE]);

#define ROUTE_DIVERTED_HINT "see ip rule, and ip route show table all"

/*
 * Writes that a socket's packets from the local address leave by an interface without it, unless the route to the peer
 * has chosen the address.
 */
bool route_strays(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE]);

#define ROUTE_STRAYS_HINT "give that interface a route there: ip route, or ip rule from"

/* Writes that the local address's interface, by which its RDMA device sends, has no route to the peer: another has. */
bool route_is_elsewhere(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE]);

/*
 * Writes that packets leave by an interface without an RDMA device, and names one with a device, unless one of the two
 * is stacked on the other, as with a bond or VLAN.
 */
bool route_misses_card(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE]);

/*
 * Writes which two interfaces have addresses in one IPv4 network, one of them with an RDMA device, and answer ARP for
 * each other: a peer may take one for the other.
 */
bool route_shares_network(char text[ROUTE_CAUSE_SIZE]);

#define ROUTE_SHARED_HINT                                                                                              \
	"sysctl -w net/ipv4/conf/all/arp_ignore=1 net/ipv4/conf/all/arp_announce=2, and a rule with a table for each " \
	"(ip rule add from); or another network for one"

/* Writes that IPv6 is disabled here: for ::1 on its interface, for any other address on all reachable interfaces. */
bool route_ip6_is_off(const struct address *address, char text[ROUTE_CAUSE_SIZE]);

/* Writes that this host has only loopback addresses: no other one reaches it. */
bool route_is_alone(char text[ROUTE_CAUSE_SIZE]);

/* Writes why the hop limit of packets to the peer may expire: it is small, or there is a routing loop. */
bool route_hops(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE]);

/* route_cause() for a local address alone, whether or not it was one before. */
bool route_cause_local(const struct address *local, char text[ROUTE_CAUSE_SIZE]);

/*
 * The same for a local address on a bridge port; for the any address, the first such address of this host. RDMA cards
 * may receive there.
 */
bool route_cause_port(const struct address *local, char text[ROUTE_CAUSE_SIZE]);

/*
 * Whether this host drops the peer's packets to the local address (without one: to any in the peer's network), because
 * its interface's rp_filter is strict and the return route uses another interface. Then *dropped is that address.
 */
bool route_is_filtered(const struct address *local, const struct address *peer, struct interface_address *dropped);

/* Whether the IPv4 or IPv6 address is a broadcast address; false if unknown. */
bool route_is_broadcast(const struct address *address);

/* Whether packets to the address are delivered to this host; otherwise, if unknown. */
bool route_leads_here(const struct address *address, bool otherwise);
