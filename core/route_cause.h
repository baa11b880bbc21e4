/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel's tables say about two addresses between which nothing passes. Asked after a failure: it explains and
 * decides nothing.
 */
#ifndef CORE_ROUTE_CAUSE_H
#define CORE_ROUTE_CAUSE_H

#include "core/address.h"
#include "core/interface.h"

enum {
	ROUTE_CAUSE_SIZE = 192
};

/*
 * Writes why: the local address cannot be used, or is gone; no route begins there, but one does elsewhere; IPv6 is
 * disabled, or takes no routes of routers; both addresses are of this host; the peer's is a broadcast address; the next
 * hop answers no ARP or NDP. local may be the any address. Writes "" and returns false if the kernel knows nothing.
 */
bool route_cause(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE]);

/*
 * As route_cause(), but what may as well be right: the interface has a program of XDP, or is a tunnel; the neighbour's
 * entry is permanent.
 */
bool route_doubt(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE]);

/*
 * Writes by what it is known that the peer, on this link, is up: it has just answered ARP or NDP, whatever drops its
 * packets of IP. "" and false if that is not known.
 */
bool route_answers(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE]);

/* Writes the interface in whose network the peer is, if its packets leave by another one that is in no such network. */
bool route_diverted(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE]);

#define ROUTE_DIVERTED_HINT "see ip rule, and ip route show table all"

/*
 * Writes that packets from the local address leave by an interface that has it not, unless the route to the peer has
 * chosen it. That is so of sockets: RDMA devices send from the one that has the address.
 */
bool route_strays(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE]);

#define ROUTE_STRAYS_HINT "give that interface a route there: ip route, or ip rule from"

/*
 * Writes that packets leave by an interface without an RDMA device, and which other one has one, unless one of the two
 * is above the other, as a bond or VLAN is.
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

/* Writes that IPv6 is disabled here: for ::1 on its interface, for any other address on all that others could reach. */
bool route_ip6_is_off(const struct address *address, char text[ROUTE_CAUSE_SIZE]);

/* Writes why the hop limit of packets to the peer may end on their way: it is small, or routers send them in a loop. */
bool route_hops(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE]);

/* route_cause() of a local address alone, whether or not it was one before. */
bool route_cause_local(const struct address *local, char text[ROUTE_CAUSE_SIZE]);

/*
 * The same of a local address on a port of a bridge, with the any address of the first one of this host. Cards that do
 * RDMA themselves may receive there.
 */
bool route_cause_port(const struct address *local, char text[ROUTE_CAUSE_SIZE]);

/*
 * Whether this host drops what the peer sends to the local address, or without one to any that is in the peer's
 * network, because its interface's rp_filter is strict and the route back is by another. Then *dropped is that address.
 */
bool route_is_filtered(const struct address *local, const struct address *peer, struct interface_address *dropped);

/* Whether the address, of IPv4 or IPv6, is that of all hosts of a network; false if that is not known. */
bool route_is_broadcast(const struct address *address);

/* Whether packets to the address end at this host, as with an address of it; otherwise, if that is not known. */
bool route_leads_here(const struct address *address, bool otherwise);

#endif
