/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the process that has bound UDP port 4791. */
#ifndef TRANSPORT_SOFT_NET_PORT_OWNER_H
#define TRANSPORT_SOFT_NET_PORT_OWNER_H

#include "core/address.h"

/*
 * Returns the PID of the process that has bound UDP port 4791 of address; 0 if none is found. Another user's process is
 * usually not visible.
 */
int soft_port_owner(const struct address *address);

#endif
