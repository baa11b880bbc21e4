/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets of the user-space backend, for soft.c and group.c. */
#ifndef TRANSPORT_SOFT_SOCKET_H
#define TRANSPORT_SOFT_SOCKET_H

#include "transport/soft/soft.h"

/* Buffers for packets on their way in and out. NULL when memory is short. */
struct soft_wire *soft_wire_open(void);
void soft_wire_close(struct soft_wire *wire);

/*
 * The socket that receives a group's datagrams at a local address; joins the group (IGMP, MLD) with its first member.
 * *result is NULL after a failure, whose cause was told. Each call is one member, to be given back with
 * soft_group_socket_leave().
 */
enum outcome soft_group_socket_join(struct soft_transport *transport, const char *name, const struct soft_socket *local,
				    const struct address *group, struct soft_socket **result);
void soft_group_socket_leave(struct soft_socket *socket);

/* Prepares a local socket to send to a group: from its own interface, and back to this host or not. */
bool soft_socket_multicast(const struct soft_socket *socket, bool loopback);

/*
 * The process that holds UDP port 4791 of that address; 0 if none is seen, as another user's are not by all. In
 * holder.c.
 */
int soft_port_holder(const struct address *address);

/* The contract of endpoint_served(). */
void soft_served(const struct endpoint *listener, char text[ENDPOINT_SERVED_SIZE]);

void soft_sockets_close(struct soft_transport *transport);

#endif
