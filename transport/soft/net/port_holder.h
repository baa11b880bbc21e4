/* SPDX-License-Identifier: BSD-2-Clause */
/* Who holds UDP port 4791 of an address. */
#ifndef TRANSPORT_SOFT_NET_PORT_HOLDER_H
#define TRANSPORT_SOFT_NET_PORT_HOLDER_H

#include "core/address.h"

/*
 * The process that holds UDP port 4791 of that address; 0 if none is seen; another user's is often not.
 */
int soft_port_holder(const struct address *address);

#endif
