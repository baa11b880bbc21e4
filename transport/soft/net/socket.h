/* SPDX-License-Identifier: BSD-2-Clause */
/* UDP sockets, one for each local address, and the paths that lead from them to peers. */
#ifndef TRANSPORT_SOFT_NET_SOCKET_H
#define TRANSPORT_SOFT_NET_SOCKET_H

#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "transport/soft/soft.h"

struct soft_socket {
	struct soft_transport *transport;
	int fd;
	struct address address; /* local, or of the group */
	bool group;
	bool failed;	    /* the last send: an error may wait in the socket's queue of them */
	bool narrow;	    /* ICMP has said that some path is too narrow for what was sent */
	int refusal;	    /* errno with which the kernel refuses to send; 0 if it took the last message */
	unsigned members;   /* of a group's socket ... */
	unsigned interface; /* ... that joined there */
	size_t buffer;	    /* that the kernel accounts received packets against, bytes */
	uint32_t mtu;	    /* of its paths; 0 before it was looked up */
	int64_t mtu_old;    /* from when on it is looked up again */
	struct loop_io readable;
	bool streaming; /* there was something at the last look of the poller */
	struct soft_socket *next;
};

/* Nothing repeats a datagram: those that this host did not take, the last of what its queue transmitted. */
struct soft_unsent {
	uint32_t count;
	int error; /* errno of the first; 0: there was no room, and may be soon */
};

/* Where a queue pair's packets, or the manager's, go. */
struct soft_path {
	struct soft_socket *socket; /* of the local address; lives until the transport is closed */
	struct address local;
	struct address peer;
	uint32_t mtu;		    /* payload bytes of a packet: 256, 512, 1024, 2048 or 4096 */
	uint8_t type_of_service;    /* within SOFT_DSCP */
	struct soft_unsent *unsent; /* NULL: what is not taken is lost like what gets lost on its way */
};

/*
 * The path to a peer: finds or opens the socket of the local address from which it is reached (source, or as the
 * routing table says if that is NULL or any; 127.0.0.x: one that is free). On failure the cause was told.
 */
enum outcome soft_path_find(struct soft_transport *transport, const char *name, const struct address *source,
			    const struct address *peer, struct soft_path *path);
/* The way back to where a packet came from: local is the socket's address, and no port is set. */
void soft_path_back(struct soft_socket *socket, const struct address *from, struct soft_path *path);
/* The interface that has a local address; false if none is found. */
bool soft_interface_name(const struct address *local, char name[IF_NAMESIZE]);
/* Whether that interface is the loopback, where IP_MULTICAST_LOOP has no effect: all that is sent comes back. */
bool soft_is_loopback(const struct address *local);
/*
 * Opens the socket of a local address, or those of all for the any address (of its family; IPv6 any: both), and of
 * those that come later.
 */
enum outcome soft_socket_listen(struct soft_transport *transport, const char *name, const struct address *address);

/*
 * Packets with that many bytes of payload that may be under way to us without overflowing the socket's buffer; or from
 * us, if the peer has one like ours. At least 1.
 */
size_t soft_socket_window(const struct soft_socket *socket, size_t payload);
/* Packets that the socket has dropped so far, nearly always because its buffer was full. */
uint32_t soft_socket_dropped(const struct soft_socket *socket);
/* The errno with which this host refuses to send from there; 0 if it took the last packet. */
int soft_socket_refusal(const struct soft_socket *socket);
/* Somebody on a path said that packets from there are too long for it. */
bool soft_socket_is_narrow(const struct soft_socket *socket);

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

/* The contract of endpoint_served(). */
void soft_served(const struct endpoint *listener, char text[ENDPOINT_SERVED_SIZE]);

void soft_sockets_close(struct soft_transport *transport);

#endif
