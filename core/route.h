/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's routing table, for packets to an address. */
#pragma once

#include "core/address.h"

enum {
	ROUTE_LOOPBACK = 1 /* index of the loopback interface, in every network namespace */
};

struct route {
	struct address source;	/* for a look-up without one; the any address if the route has none */
	struct address gateway; /* the any address if the peer is on the link */
	unsigned interface;	/* index */
	uint32_t mtu;		/* bytes of an IP packet */
	uint32_t hop_limit;	/* the route's; 0: the host's or interface's applies */
	bool is_local;		/* the peer's address is this host's */
	bool is_broadcast;	/* the peer's address is a network's broadcast address */
};

/* Opens a netlink socket for look-ups, which the caller closes. Returns -1 with errno on failure. */
int route_open(void);
/* Returns the index of the VRF to which the kernel binds this process's sockets ("ip vrf exec"); 0 for none. */
unsigned route_vrf(void);
/*
 * Finds the route to a peer or a group. fd: from route_open(). vrf: from route_vrf(), or 0 for routes outside all VRFs.
 * source: the local address, or the any address if the route decides. Returns 0 or an errno.
 */
int route_find(int fd, unsigned vrf, const struct address *peer, const struct address *source, struct route *route);
/* The same for one look-up, with route_vrf(). Returns whether there is a route. */
bool route_look_up(const struct address *peer, const struct address *source, struct route *route);

/*
 * Finds the table entry for packets from the source that are bound to that interface: by `ip rule add oif`, or in a
 * network shared by several interfaces. Returns false if there is none.
 */
bool route_by_interface(int fd, const struct address *peer, const struct address *source, unsigned interface,
			struct route *route);

/* Whether the kernel would accept a packet from the peer to a local address on that interface. */
bool route_arrives(int fd, const struct address *peer, const struct address *local, unsigned interface);

/* The kernel's neighbour entry of a host on an interface's link. */
struct route_neighbour {
	unsigned state;	    /* NUD_x of linux/neighbour.h; 0: no entry */
	unsigned confirmed; /* seconds ago, the last answer */
	size_t length;	    /* bytes of its link-layer address */
	uint8_t bytes[20];
};

/* fd: from route_open(). */
struct route_neighbour route_neighbour(int fd, unsigned interface, const struct address *address);

enum {
	ROUTE_KIND_SIZE = 16
};

struct route_link {
	char kind[ROUTE_KIND_SIZE]; /* a virtual interface's: "macvlan", "bridge"; "" for a card, or if unknown */
	unsigned bridge;	    /* the index of the interface's bridge; 0: it is not a bridge port */
	bool waits;		    /* the port listens or learns, by the spanning tree protocol */
	uint8_t program;	    /* of XDP, which sees packets before the kernel does; 0: none */
	uint32_t losses;	    /* how often it has lost its link */
};

struct route_link route_link(int fd, unsigned interface);
