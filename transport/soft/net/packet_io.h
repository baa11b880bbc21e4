/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends and receives packets in batches, with their ICRC. */
#ifndef TRANSPORT_SOFT_NET_PACKET_IO_H
#define TRANSPORT_SOFT_NET_PACKET_IO_H

#include "transport/soft/net/socket.h"
#include "transport/soft/wire/packet.h"

/* Allocates the buffers for both directions. Returns NULL if out of memory. */
struct soft_packet_io *soft_packet_io_open(void);
void soft_packet_io_close(struct soft_packet_io *packet_io);

/*
 * Queues a packet. Its payload must stay valid until soft_flush(). Sending never blocks: a packet that the socket does
 * not accept is lost, and path->unsent counts it.
 */
void soft_transmit(struct soft_transport *transport, const struct soft_path *path, const struct packet *packet);
/* Sends the queued packets. */
void soft_flush(struct soft_transport *transport);

/* Loop callback: a socket has packets, or an ICMP error. */
void soft_packet_io_readable(void *socket);

/*
 * Whether a time-out may send again from that socket. While received packets, which may be the answer, wait in its
 * buffer, time-outs send no more packets than are read: else thousands would keep each other from being answered.
 */
bool soft_may_resend(struct soft_socket *socket);

/* Loop poller: receives from the sockets that have queue pairs. Returns whether anything was received. */
bool soft_packet_io_poll(void *transport);

#endif
