/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether a socket is bound to UDP port 4791. */
#ifndef TRANSPORT_SOFT_NET_PORT_HOLDER_H
#define TRANSPORT_SOFT_NET_PORT_HOLDER_H

#include "core/address.h"

/* Returns whether a socket of this network namespace is bound to the port of exactly this address. */
bool soft_port_is_held(const struct address *address);

#endif
