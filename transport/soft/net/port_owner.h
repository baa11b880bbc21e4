/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the socket that is bound to UDP port 4791, and its process. */
#ifndef TRANSPORT_SOFT_NET_PORT_OWNER_H
#define TRANSPORT_SOFT_NET_PORT_OWNER_H

#include "core/address.h"

enum {
	PORT_OWNER_NAME_SIZE = 32
};

/* Sets name to "socket:[INODE]" of the socket bound to UDP port 4791 of address. Returns false if there is none. */
bool soft_port_socket(const struct address *address, char name[PORT_OWNER_NAME_SIZE]);

/*
 * Returns the PID of the process that has bound UDP port 4791 of address; 0 if none is found. Another user's process is
 * usually not visible.
 */
int soft_port_owner(const struct address *address);

#endif
