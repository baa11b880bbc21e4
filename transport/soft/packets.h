/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets between the sockets and the engine; and what a socket is, which only the two files about sockets know. */
#ifndef TRANSPORT_SOFT_PACKETS_H
#define TRANSPORT_SOFT_PACKETS_H

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

/* A socket has packets, or an error that came back from the path. */
void soft_packets_readable(void *socket);

/* The same for every socket of the transport, when there may be nothing. Returns whether there was something. */
bool soft_packets_poll(void *transport);

/* The socket is about to be closed: nothing that is known of its peers may outlive it. */
void soft_packets_forget(const struct soft_socket *socket);

#endif
