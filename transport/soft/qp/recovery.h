/* SPDX-License-Identifier: BSD-2-Clause */
/* Retransmission and congestion window of the requester. */
#ifndef TRANSPORT_SOFT_QP_RECOVERY_H
#define TRANSPORT_SOFT_QP_RECOVERY_H

#include "transport/soft/qp/qp_internal.h"

void recovery_connect(struct soft_qp *qp);
/* Packets. Some work must be under way. */
uint32_t recovery_window(const struct soft_qp *qp);
/* The packet at the cursor is about to go, and will be answered as soon as it is there. */
void recovery_sent(struct soft_qp *qp);
/* True if a packet that need not ask for an acknowledgement should do so nevertheless. */
bool recovery_wants_ack(struct soft_qp *qp);
/* Something is under way: an answer must come in time. */
void recovery_arm(struct soft_qp *qp);
/*
 * The path says that the peer is gone: an answer must come in time even to work that was agreed to wait for ever, and
 * its silence counts from here on. Such work waits for ever again once the peer has spoken.
 */
void recovery_suspect(struct soft_qp *qp);
void recovery_confirm(struct soft_qp *qp);
/* The oldest PSN has moved on from where it was before. */
void recovery_progress(struct soft_qp *qp, uint32_t before);
/* The oldest packet under way is missing: by the peer's word, or because some answer came past it. */
void recovery_nak(struct soft_qp *qp);
void recovery_implied_nak(struct soft_qp *qp);
/* The peer is not ready for the oldest packet. */
void recovery_rnr(struct soft_qp *qp, int64_t nanoseconds);

#endif
