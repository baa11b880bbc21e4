/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel's routing table says about the packets to an address. */
#ifndef CORE_ROUTE_H
#define CORE_ROUTE_H

#include "core/address.h"

enum {
	ROUTE_LOOPBACK = 1 /* the index of the loopback interface, in each of Linux's network namespaces */
};

struct route {
	struct address source;	/* of a look-up without one; the any address if the route has none */
	struct address gateway; /* the any address if the peer is on the link */
	unsigned interface;	/* index */
	uint32_t mtu;		/* bytes of an IP packet */
	uint32_t hop_limit;	/* of the route; 0: that of the host or interface */
	bool is_local;		/* the peer's address is one of this host */
	bool is_broadcast;	/* the peer's address is that of all hosts of a network */
};

/* Opens a netlink socket for look-ups, which the caller closes. Returns -1 with errno on failure. */
int route_open(void);
/*
 * Returns the index of the interface that the kernel binds the sockets of this process to, that of a VRF ("ip vrf
 * exec"); 0 for none.
 */
unsigned route_vrf(void);
/*
 * Finds the route to a peer or a group. fd: of route_open(). vrf: of route_vrf(), or 0 for the routes outside all VRFs.
 * source: the local address, or the any address if the route decides. Returns 0 or an errno.
 */
int route_find(int fd, unsigned vrf, const struct address *peer, const struct address *source, struct route *route);
/* The same for one look-up, with route_vrf(). Returns whether there is a route. */
bool route_look_up(const struct address *peer, const struct address *source, struct route *route);

/*
 * Finds the entry of a table for packets from the source that are bound to that interface: by `ip rule add oif`, or of
 * a network that several interfaces are in. Returns false if there is none.
 */
bool route_by_interface(int fd, const struct address *peer, const struct address *source, unsigned interface,
			struct route *route);

/* Whether the kernel would take a packet from the peer to a local address that arrives at that interface. */
bool route_arrives(int fd, const struct address *peer, const struct address *local, unsigned interface);

/* What the kernel has of a host on the link of an interface. */
struct route_neighbour {
	unsigned state; /* NUD_x of linux/neighbour.h; 0: no entry */
	size_t length;	/* bytes of its link-layer address */
	uint8_t bytes[20];
};

/* fd: of route_open(). */
struct route_neighbour route_neighbour(int fd, unsigned interface, const struct address *address);

enum {
	ROUTE_KIND_SIZE = 16
};

struct route_link {
	char kind[ROUTE_KIND_SIZE]; /* of a virtual interface: "macvlan", "bridge"; "" of a card, or if not known */
	unsigned bridge;	    /* the index of the bridge that it is a port of; 0: of none */
	bool waits;		    /* the port listens or learns, by the spanning tree protocol */
	uint8_t program;	    /* of XDP, which sees packets before the kernel does; 0: none */
	uint32_t losses;	    /* how often it has lost its link */
};

struct route_link route_link(int fd, unsigned interface);

#endif
