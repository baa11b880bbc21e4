/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets from and to the sockets, in batches, with their ICRC. */
#ifndef TRANSPORT_SOFT_NET_PACKET_IO_H
#define TRANSPORT_SOFT_NET_PACKET_IO_H

#include "transport/soft/net/socket.h"
#include "transport/soft/wire/packet.h"

/* Buffers for packets on their way in and out. NULL when memory is short. */
struct soft_packet_io *soft_packet_io_open(void);
void soft_packet_io_close(struct soft_packet_io *packet_io);

/* Queues a packet for sending; its payload must stay until soft_flush(). Sending never waits: what does not fit is
 * lost. */
void soft_transmit(struct soft_transport *transport, const struct soft_path *path, const struct packet *packet);
void soft_flush(struct soft_transport *transport);

/* A socket has packets, or an error that came back from the path. */
void soft_packet_io_readable(void *socket);

/* The same for every socket of the transport, when there may be nothing. Returns whether there was something. */
bool soft_packet_io_poll(void *transport);

/* The socket is about to be closed: nothing that is known of its peers may outlive it. */
void soft_packet_io_forget(const struct soft_socket *socket);

#endif
