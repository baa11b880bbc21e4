/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2 in user space over UDP port 4791, a stack:
 *
 *   endpoint.c  group.c  delivery.c  region.c   transport.h: endpoints, events, completions, memory
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
	SOFT_QPS_MAX = 1 << 16,
	SOFT_LONGEST_MESSAGE = 8 << 20, /* bytes, as soft-RoCE: fewer packets than half the PSNs */
	SOFT_QP_DEPTH_MAX = 16384,
	SOFT_READS_AT_ONCE = 16, /* outstanding RDMA READs in one direction of a connection */
	/* Of a type of service, without ECN's two bits: we do not react to congestion marks. */
	SOFT_DSCP = 0xfc,
};

struct soft_qp;
struct soft_socket;
struct soft_cm_id;

struct soft_transport {
	struct transport base;
	uint64_t guid; /* random: the CA GUID of this process */
	struct soft_channel *channels;
	struct soft_socket *sockets;
	int addresses_fd; /* rtnetlink, for new local addresses; valid if addresses_watched */
	bool addresses_watched;
	struct loop_io addresses_changed;
	struct soft_endpoint *listeners;	   /* few: searched for each request */
	struct soft_endpoint *endpoints;	   /* all others */
	struct soft_endpoint *destroyed_endpoints; /* freed by the reaper */
	struct soft_region *destroyed_regions;
	bool reap_scheduled;
	struct soft_qp_table *qps;	   /* by QPN */
	uint32_t busy_qps;		   /* with outstanding work; they share a socket's window */
	uint64_t send_order;		   /* counts READs and packets with AckReq, of all queue pairs */
	uint64_t acked_send_order;	   /* the highest acknowledged one of those that were timed */
	int64_t last_ack_at;		   /* clock, of the last acknowledgement */
	struct soft_region_table *regions; /* by key */
	struct soft_cm *cm;
	struct soft_delivery *delivery;
	struct soft_packet_io *packet_io;
	struct domain domain; /* the one "device" */
	struct loop_timer reaper;
	struct loop_poller poller; /* of all sockets */
	struct icrc_table icrc;
};

static inline struct soft_transport *soft_of(struct transport *transport)
{
	return (struct soft_transport *)transport;
}

/* Unpredictable: from the kernel. */
uint64_t soft_random(void);
/* Schedules the reaper for the next turn of the loop. */
void soft_reap_later(struct soft_transport *transport);

#endif
