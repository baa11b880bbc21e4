/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: RC for a connection, UD for a multicast group. Memory regions. */
#pragma once

#include "transport/soft/net/socket.h"

/* The parameters of a connection that both connection managers agreed on. */
struct soft_agreement {
	uint32_t peer_qpn;
	uint32_t sq_psn;	  /* first PSN of our requests: the starting PSN in the peer's REQ or REP */
	uint32_t rq_psn;	  /* first PSN of the peer's requests: the starting PSN in our REQ or REP */
	unsigned retry_count;	  /* 0-7 */
	unsigned rnr_retry_count; /* 0-7; 7: no limit */
	unsigned ack_timeout;	  /* 0-31: 4.096 us x 2^n; 0: no retransmission */
	unsigned reads_out;	  /* our outstanding RDMA READs */
	unsigned reads_in;	  /* the peer's */
};

/*
 * Creates the endpoint's queue pair with the depths of its options and a random QPN that this process has not used
 * before. It accepts receives at once.
 */
enum outcome soft_qp_create(struct endpoint *endpoint);
void soft_qp_destroy(struct soft_qp *qp);

/* Enters RTR: the queue pair receives packets. It sends by the endpoint's path. */
void soft_qp_connect(struct soft_qp *qp, const struct soft_agreement *agreement);
/* Enters RTS: the queue pair sends. */
void soft_qp_start(struct soft_qp *qp);
/*
 * Drops posted work without completions, sends no request and accepts none. A queue pair in RTS drains: until it is
 * destroyed, it acknowledges each request that the peer repeats because an acknowledgement was lost.
 */
void soft_qp_drain(struct soft_qp *qp);
/* True if the peer has not acknowledged some signalled work. */
bool soft_qp_has_signalled_work(const struct soft_qp *qp);
/* The PSN that the last acknowledgement of a stopped queue pair names, or one before the peer's first request. */
uint32_t soft_qp_last_ack(const struct soft_qp *qp);
/* The peer's last acknowledgement, which came with its DREQ. */
void soft_qp_acknowledged(struct soft_qp *qp, uint32_t psn);

/* A group's queue pair sends to the endpoint's path. */
void soft_qp_join(struct soft_qp *qp, uint32_t qkey);

/* The contract of endpoint_post(). No completion is reported before the next turn of the loop. */
enum outcome soft_qp_post(struct soft_qp *qp, const struct work *work, size_t count);

/* True if the queue pair's connection has that peer address. */
bool soft_qp_is_peer(struct soft_transport *transport, const struct soft_socket *socket, const struct address *from,
		     uint32_t qpn);
/* One packet from that address. */
void soft_qp_receive(struct soft_transport *transport, struct soft_socket *socket, const struct address *from,
		     const struct packet *packet);
/* A multicast datagram, for each member's queue pair with that group socket. */
void soft_qp_receive_group(struct soft_transport *transport, const struct soft_socket *socket,
			   const struct address *from, const struct packet *packet);

/* Sends a probe, a zero-length RDMA WRITE, unless work is outstanding. The connection fails without an answer. */
void soft_qp_probe(struct soft_qp *qp);
/* ICMP: the peer's port is closed. Probes; without a packet in 1 to 1.5 s, the connection fails. */
void soft_qp_suspect(struct soft_qp *qp);

/* NULL without memory. All queue pairs must be destroyed before the table is closed. */
struct soft_qp_table *soft_qp_table_open(struct soft_transport *transport);
void soft_qp_table_close(struct soft_qp_table *table);

/*
 * Replies to the packets received since the last call: acknowledgements, and a limited number of READ responses for
 * each queue pair. Returns whether some are left for the next turn of the loop.
 */
bool soft_qp_batch_end(struct soft_transport *transport);

/* ---- memory regions, for local work and for RDMA READ and WRITE of peers ---- */

struct soft_region {
	struct region base;
	unsigned access; /* enum region_access bits */
	struct soft_table_entry by_key;
	struct soft_region *next; /* in destroyed_regions */
};

enum outcome soft_region_create(struct domain *domain, size_t length, unsigned access, struct region **region);
void soft_region_destroy(struct region *region);
void soft_region_free(struct soft_region *region);
/*
 * The memory for a peer's RDMA request. NULL: unknown key, access right missing, or range outside the region. access:
 * REGION_REMOTE_READ or REGION_REMOTE_WRITE. A range of length 0 is always valid (IBTA C9-88).
 */
uint8_t *soft_region_find(struct soft_transport *transport, uint32_t key, uint64_t address, uint64_t length,
			  unsigned access);
