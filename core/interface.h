/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses of this host. */
#ifndef CORE_INTERFACE_H
#define CORE_INTERFACE_H

#include <net/if.h>
#include <stddef.h>
#include <stdint.h>

#include "core/address.h"

enum {
	INTERFACE_ADDRESSES_MAX = 256
};

struct interface_address {
	struct address address;
	char name[IF_NAMESIZE]; /* of its interface */
	bool loopback;
};

/*
 * Lists the addresses of the interfaces that are up: IPv4, then IPv6, then link-local IPv6. Returns their number, at
 * most INTERFACE_ADDRESSES_MAX, or 0 if getifaddrs(3) fails.
 */
size_t interface_addresses(struct interface_address list[INTERFACE_ADDRESSES_MAX]);

struct ifaddrs;

/* The first entry of a list of getifaddrs(3) with that address, or NULL. */
const struct ifaddrs *interface_entry(const struct ifaddrs *list, const struct address *address);
/* Gets the name of the interface, up or not, that has the address. "" and false: none, or getifaddrs(3) fails. */
bool interface_of(const struct address *address, char name[IF_NAMESIZE]);

/*
 * Gets the name of the interface, up or not, that has the address, if the one with that index has not. "" and false for
 * one without neighbours, as lo or a VRF: its addresses are those of the host.
 */
bool interface_elsewhere(const struct address *address, unsigned index, char name[IF_NAMESIZE]);

/* Whether other hosts reach this one by IPv6 alone: beside loopback and link-local addresses it has no others. */
bool interface_has_ip6_only(void);

/* The index of the interface with that name, which may be an alternative one of any length; 0 for none. */
unsigned interface_index(const char *name);

/* The prefix length of the interface's network that the address is in; 0 for none, or if that is not known. */
unsigned interface_prefix(const char *name, const struct address *address);

/*
 * Whether this network namespace has an interface of that name, up or not; true if that is not known. Else names gets
 * those that it has, "lo, eth0".
 */
bool interface_exists(const char *name, char *names, size_t size);

/*
 * Whether an interface of getifaddrs(3), whose IPv4 addresses may have labels ("eth0:0"), has that name, label or
 * alternative name.
 */
bool interface_is_named(const char *interface, const char *name);

enum interface_fact {
	INTERFACE_HERE = 1, /* in the network namespace of this process */
	INTERFACE_UP = 2,
	INTERFACE_LINK = 4,    /* has a carrier */
	INTERFACE_ADDRESS = 8, /* has one that is not link-local */
	INTERFACE_LINK_LOCAL = 16,
};

struct interface {
	unsigned facts;
	size_t link_length;	 /* bytes of its link-layer address; 0: it has none */
	uint8_t link_address[8]; /* its first bytes */
};

/* What is known of the interface with that name. Its facts are 0 if there is none, or getifaddrs(3) fails. */
struct interface interface_read(const char *name);
/* Whether it is here and not up; false if that is not known. */
bool interface_is_down(const char *name);

#endif
