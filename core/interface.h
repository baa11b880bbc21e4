/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses of this host. */
#ifndef CORE_INTERFACE_H
#define CORE_INTERFACE_H

#include <net/if.h>

#include "core/address.h"

enum {
	INTERFACE_ADDRESSES_MOST = 256
};

struct interface_address {
	struct address address;
	char name[IF_NAMESIZE]; /* of its interface */
	bool loopback;
};

/*
 * The addresses of the interfaces that are up: IPv4 first, IPv6 ones of a link only at the end. Returns their number,
 * at most INTERFACE_ADDRESSES_MOST; 0 also if the kernel does not tell.
 */
size_t interface_addresses(struct interface_address list[INTERFACE_ADDRESSES_MOST]);

#endif
