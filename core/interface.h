/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses of this host. */
#pragma once

#include <net/if.h>
#include <stddef.h>
#include <stdint.h>

#include "core/address.h"

enum {
	INTERFACE_ADDRESSES_MAX = 256
};

struct interface_address {
	struct address address;
	char name[IF_NAMESIZE]; /* its interface */
	bool loopback;
};

/*
 * Lists the addresses of the interfaces that are up: IPv4, then IPv6, then link-local IPv6; only those of the interface
 * with that name, label or alternative name, unless it is NULL. Returns their number, or 0 without memory or if
 * getifaddrs(3) fails. The caller frees the list, which may be NULL.
 */
size_t interface_list(const char *name, struct interface_address **list);
/* The first INTERFACE_ADDRESSES_MAX of all, to be shown. What must not depend on that limit calls interface_list(). */
size_t interface_addresses(struct interface_address list[INTERFACE_ADDRESSES_MAX]);

struct ifaddrs;

/* The first entry of a list of getifaddrs(3) with that address, or NULL. */
const struct ifaddrs *interface_entry(const struct ifaddrs *list, const struct address *address);
/* Gets the name of the address's interface, up or not. "" and false: none, or getifaddrs(3) fails. */
bool interface_of(const struct address *address, char name[IF_NAMESIZE]);

/*
 * Gets the name of the address's interface, up or not, if it is not the one with that index. "" and false for
 * interfaces without neighbours, such as lo or a VRF: their addresses belong to the whole host.
 */
bool interface_elsewhere(const struct address *address, unsigned index, char name[IF_NAMESIZE]);

/* Gets the name of an interface that has an address, but is down. "" and false: none, or getifaddrs(3) fails. */
bool interface_with_address_is_down(char name[IF_NAMESIZE]);

/* Whether other hosts reach this one only by IPv6: all other addresses are loopback or link-local. */
bool interface_has_ip6_only(void);

/* The index of the interface with that name, which may be an alternative name of any length; 0 for none. */
unsigned interface_index(const char *name);

/* The prefix length of the interface's network that the address is in; 0 for none, or if that is not known. */
unsigned interface_prefix(const char *name, const struct address *address);

/*
 * Whether this network namespace has an interface of that name, up or not; true if unknown. Else names gets the
 * existing ones, "lo, eth0".
 */
bool interface_exists(const char *name, char *names, size_t size);

enum interface_fact {
	INTERFACE_HERE = 1, /* in the network namespace of this process */
	INTERFACE_UP = 2,
	INTERFACE_LINK = 4,    /* has a carrier */
	INTERFACE_ADDRESS = 8, /* has an address that is not link-local */
	INTERFACE_LINK_LOCAL = 16,
};

struct interface {
	unsigned facts;
	size_t link_length;	 /* bytes of its link-layer address; 0: none */
	uint8_t link_address[8]; /* its first bytes */
};

/* Facts about the interface with that name; 0 if there is none, or getifaddrs(3) fails. */
struct interface interface_read(const char *name);
/* Whether the interface exists here and is not up; false if unknown. */
bool interface_is_down(const char *name);
