/* SPDX-License-Identifier: BSD-2-Clause */
/* Retransmission and congestion window of the requester. */
#ifndef TRANSPORT_SOFT_QP_RECOVERY_H
#define TRANSPORT_SOFT_QP_RECOVERY_H

#include "transport/soft/qp/qp_internal.h"

void recovery_connect(struct soft_qp *qp);
/* Packets that may be outstanding. Some request must be posted. */
uint32_t recovery_window(const struct soft_qp *qp);
/* A READ request or a packet with AckReq is about to be sent at next_psn. */
void recovery_sent(struct soft_qp *qp);
/* True if the last packet of an unsignalled request should set AckReq. */
bool recovery_wants_ack(struct soft_qp *qp);
/* Starts the retransmission time-out, unless ack_timeout is 0. */
void recovery_arm(struct soft_qp *qp);
/*
 * ICMP reported the peer's port closed: work without an ACK time-out gets the one of a probe, until the peer sends a
 * valid packet.
 */
void recovery_suspect(struct soft_qp *qp);
void recovery_confirm(struct soft_qp *qp);
/* unacked_psn has advanced. */
void recovery_progress(struct soft_qp *qp, uint32_t old_unacked_psn);
/* The oldest outstanding packet is missing: the peer sent a sequence NAK, or a reply to a later packet. */
void recovery_nak(struct soft_qp *qp);
void recovery_implied_nak(struct soft_qp *qp);
/* The peer sent an RNR NAK of the oldest outstanding packet. */
void recovery_rnr(struct soft_qp *qp, int64_t nanoseconds);

#endif
