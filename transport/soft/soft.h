/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2 in user space over UDP port 4791, a stack:
 *
 *   endpoint.c  group.c  delivery.c  region.c   the contract of transport.h: endpoints, events, completions, memory
 *        |                   |
 *   cm/  connection manager  |  qp/  queue pairs: requester, responder, datagrams
 *        |                   |
 *   net/   UDP sockets, packets in batches, ICRC check
 *        |
 *   wire/  formats of packets and MADs, ICRC; no state, no I/O
 *
 * A packet goes socket -> packet_io -> qp (by its destination QPN) or cm (QP 1) -> delivery -> endpoint, and back in
 * the same order. Everything runs in callbacks of the loop; each ends with soft_flush(), which sends what is queued.
 */
#ifndef TRANSPORT_SOFT_SOFT_H
#define TRANSPORT_SOFT_SOFT_H

#include "transport/backend.h"
#include "transport/soft/wire/icrc.h"

extern const struct backend soft_backend;

enum {
	SOFT_QUEUES_MOST = 1 << 16,
	SOFT_LONGEST_MESSAGE = 8 << 20, /* as soft-RoCE; any message has fewer packets than half the PSNs */
	SOFT_DEEPEST_QUEUE = 16384,
	SOFT_READS_AT_ONCE = 16, /* RDMA READs under way in one direction of a connection */
	/* Of a type of service. ECN's two bits would promise that a mark of congestion is answered, which is not so. */
	SOFT_DSCP = 0xfc,
};

struct soft_qp;
struct soft_socket;
struct soft_cm_id; /* the connection manager's side of an endpoint */

struct soft_transport {
	struct transport base;
	uint64_t guid; /* random: a peer tells processes apart by it */
	struct soft_channel *channels;
	struct soft_socket *sockets;
	int addresses_fd; /* tells of new local addresses, while ... */
	bool addresses_watched;
	struct loop_io addresses_changed;
	struct soft_endpoint *listeners; /* few, and looked through for each request */
	struct soft_endpoint *endpoints; /* all others */
	struct soft_endpoint *destroyed; /* wait for the reaper, as do regions */
	struct soft_region *unwanted;
	bool reaping;
	struct soft_qp_table *qps;	   /* by QPN */
	uint32_t busy_qps;		   /* with work under way, which share the window of a socket */
	uint64_t asked;			   /* packets of all queues that asked for an answer, so far */
	uint64_t answered;		   /* the latest of them, so counted, that was answered */
	int64_t answered_at;		   /* when the last answer came */
	struct soft_region_table *regions; /* by key */
	struct soft_cm *cm;		   /* its cm_ids, by identifier */
	struct soft_delivery *delivery;
	struct soft_packet_io *packet_io; /* packets on their way in and out */
	struct domain domain;		  /* the one "device" */
	struct loop_timer reaper;
	struct loop_poller poller; /* of all sockets */
	struct icrc_table icrc;
};

static inline struct soft_transport *soft_of(struct transport *transport)
{
	return (struct soft_transport *)transport;
}

/* 64 bits that nobody can guess. */
uint64_t soft_random(void);
/* Schedules the clean-up of what was destroyed for the next turn of the loop. */
void soft_reap_later(struct soft_transport *transport);

#endif
