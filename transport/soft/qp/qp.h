/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: reliable connections, and datagrams to groups. */
#ifndef TRANSPORT_SOFT_QP_QP_H
#define TRANSPORT_SOFT_QP_QP_H

#include "transport/soft/net/icrc_state.h"
#include "transport/soft/net/socket.h"
#include "transport/soft/wire/packet.h"

/* What the two managers agreed on. */
struct soft_agreement {
	struct soft_path path;
	uint32_t peer_qpn;
	uint32_t first_psn_sent; /* of our requests: the peer's starting PSN, see below */
	uint32_t
		first_psn_expected; /* of the peer's: our starting PSN. A REQ or REP says where its *receiver* begins */
	unsigned retry_count;	    /* 0-7 */
	unsigned rnr_retry_count;   /* 0-7; 7 for ever */
	unsigned ack_timeout;	    /* 0-31: 4.096 us x 2^n; 0 never retransmits */
	unsigned reads_out;	    /* of ours under way at once */
	unsigned reads_in;	    /* of the peer's */
};

/*
 * Makes the queue pair of an endpoint (a connection's, or a group's datagram queue), as deep as its options say, with a
 * random number that this process has not used before. It takes receives at once.
 */
enum outcome soft_qp_create(struct soft_endpoint *endpoint);
void soft_qp_destroy(struct soft_qp *qp);
uint32_t soft_qp_number(const struct soft_qp *qp);

/* A connection's queue may receive from here on; and send from soft_qp_start() on. */
void soft_qp_connect(struct soft_qp *qp, const struct soft_agreement *agreement);
void soft_qp_start(struct soft_qp *qp);
/*
 * Into the error state: nothing new is sent or taken any more, posted work is dropped without a word. What the peer
 * repeats, because the acknowledgement was lost, is acknowledged again until the queue is destroyed.
 */
void soft_qp_stop(struct soft_qp *qp);
/* Whether some work that the command will hear of waits for the peer's acknowledgement. */
bool soft_qp_is_waiting(const struct soft_qp *qp);

/* Where a group's queue sends to. */
void soft_qp_aim(struct soft_qp *qp, const struct soft_path *path, uint32_t qkey);

/* The contract of endpoint_post(). Nothing is reported before the next turn of the loop. */
enum outcome soft_qp_post(struct soft_qp *qp, const struct work *work, size_t count);

/* One packet from that address, whose ICRC is good if the case holds. */
void soft_qp_receive(struct soft_transport *transport, struct soft_socket *socket, const struct address *from,
		     const struct packet *packet, const struct icrc_pending *pending);
/* A datagram to a group, for the queue of every member that joined by that socket. */
void soft_qp_receive_group(struct soft_transport *transport, const struct soft_socket *socket,
			   const struct address *from, const struct packet *packet, const struct icrc_pending *pending);

/* Sends a probe (a zero-length RDMA WRITE) after some silence, so that a peer that is gone is noticed. */
void soft_qp_probe(struct soft_qp *qp);
/* The path says that nothing listens there: probes, and fails with SOFT_UNREACHABLE without an answer in 1 to 1.5 s. */
void soft_qp_suspect(struct soft_qp *qp);

/* NULL when memory is short. Closed after the last queue was destroyed. */
struct soft_qp_table *soft_qp_table_open(struct soft_transport *transport);
void soft_qp_table_close(struct soft_qp_table *table);

/*
 * Answers what was received since the last time: acknowledgements, READ responses in slices; what does not fit into
 * the slices goes on in the next turn of the loop.
 */
void soft_qp_batch_end(struct soft_transport *transport);

#endif
