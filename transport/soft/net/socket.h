/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UDP sockets, one per local address, and the paths from them to peers.
 * Each file calls only those below it:
 *
 *   socket.c     opens sockets, finds paths, joins groups
 *   packet_io.c  sends and receives packets in batches
 */
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "transport/soft/base/shared.h"
#include "transport/soft/wire/packet.h"

struct soft_socket {
	struct soft_transport *transport;
	int fd;
	struct address address; /* local, or the group's */
	uint16_t port;		/* UDP_PORT_ROCE, or a sender's own */
	bool group;
	bool no_segmentation; /* its interface refused UDP_SEGMENT */
	bool errors_queued;   /* perhaps: ICMP errors */
	uint32_t path_mtu;    /* bytes of an IP packet, from the last "packet too long" ICMP error; 0: none */
	int send_error;	      /* errno of the last failed send; 0 again once an equally long packet was sent */
	size_t refused;	      /* bytes of that packet */
	uint32_t dropped;     /* packets, before its last user came */
	unsigned users;	      /* queue pairs; of a group socket: members; of a sender: paths */
	unsigned interface;   /* a group socket's, an index */
	size_t buffer;	      /* SO_RCVBUF, bytes */
	struct loop_io readable;
	bool streaming;	  /* the last poll received something */
	bool unread;	  /* the last read may have left packets in the buffer */
	unsigned resends; /* soft_may_resend()'s, since then */
	struct soft_socket *next;
};

/*
 * Finds or opens the socket for a peer and fills *path. Without a source (NULL or the any address) the routing table
 * chooses the local address; on the loopback interface it is a free 127.0.0.x. Applies the endpoint's options.
 */
enum outcome soft_path_find(const struct endpoint *endpoint, const struct address *source, const struct address *peer,
			    struct soft_path *path);
/* Returns the largest payload of a packet (path->mtu) for an IP MTU; the least one if none fits. */
uint32_t soft_packet_mtu(uint32_t mtu);
/* Sets the interface and the MTU, and a local address that is still the any address. Returns 0 or an errno. */
int soft_path_route(struct soft_transport *transport, struct soft_path *path);
/* Applies --tos, --dscp and --mtu. */
void soft_path_apply_options(struct soft_path *path, const struct endpoint *endpoint);
/*
 * Sends the path's packets from that UDP port from now on, or if another process has it, the first free one in steps
 * (0: none). Packets are still received at 4791. Without a port nothing changes. Returns 0 or an errno: EUSERS if all
 * of UDP_SENDERS_MAX are in use.
 */
int soft_path_leave_from(struct soft_path *path, uint16_t port, unsigned step);
/*
 * For a client without an answer: sends one datagram to an unused port of the peer's host, whose ICMP error shows that
 * the host is up. soft_handlers.icmp gets it. A no-op if the present silence has had one.
 */
void soft_probe_host(struct soft_endpoint *endpoint);
/* Registered to traceroute: no program should listen there. */
#define UDP_PORT_CLOSED 33434
/* A copy of a path shares its sender. Each copy is released, and then has none. */
void soft_path_share(const struct soft_path *path);
void soft_path_release(struct soft_path *path);

/*
 * Opens the socket of a local address. For the any address: of every local address of its family (IPv6: both families),
 * including later ones.
 */
enum outcome soft_socket_listen(const struct endpoint *listener, const struct address *address);

/*
 * Returns how many packets with that many payload bytes the socket's receive buffer holds, at least 1. A sender assumes
 * that its peer has an equal buffer.
 */
size_t soft_socket_window(const struct soft_socket *socket, size_t payload);
/*
 * Returns how many packets it has dropped since its last user came (SK_MEMINFO_DROPS), mostly because its buffer was
 * full.
 */
uint32_t soft_socket_dropped(const struct soft_socket *socket);

/*
 * Returns in *result the socket that receives a group's datagrams at the interface of a path to it. The first call
 * joins the group (IGMP, MLD). Each call adds a member, which soft_group_socket_leave() removes. On failure *result
 * is NULL.
 */
enum outcome soft_group_socket_join(const struct endpoint *endpoint, const struct soft_path *path,
				    struct soft_socket **result);
void soft_group_socket_leave(struct soft_socket *socket);

/* Returns the socket that sends its packets. */
static inline struct soft_socket *soft_path_sender(const struct soft_path *path)
{
	return path->sender ? path->sender : path->socket;
}

/*
 * Adds to the number of queue pairs. A new one's failures begin now: earlier errors are forgotten. Sockets with queue
 * pairs come first in the transport's list: a poller skips the others, perhaps thousands.
 */
void soft_socket_use(struct soft_socket *socket, int change);

/* Sets the interface and IP_MULTICAST_LOOP for sending to a group. Returns false with errno on failure. */
bool soft_socket_multicast(const struct soft_path *path, bool loopback);

/* Implements endpoint_local_addresses(). */
void soft_local_addresses(const struct endpoint *listener, char text[ENDPOINT_ADDRESSES_SIZE]);

/* Opens the netlink socket for routes. */
enum outcome soft_sockets_open(struct soft_transport *transport, struct error *reason);
void soft_sockets_close(struct soft_transport *transport);

/* ---- packet_io.c: sends and receives packets in batches, with their ICRC ---- */

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
/* The same for a sender, to which only routers send: packets are dropped. */
void soft_packet_io_sender_readable(void *socket);

/*
 * Whether a timeout may resend from that socket. While received packets, perhaps the answer, wait in its buffer,
 * timeouts send no more packets than are read: else thousands of queue pairs would block each other's answers.
 */
bool soft_may_resend(struct soft_socket *socket);

/* Loop poller: receives from the sockets that have queue pairs. Returns whether a packet was received. */
bool soft_packet_io_poll(void *transport);
