/* SPDX-License-Identifier: BSD-2-Clause */
/* The requester of a connection: posted work, acknowledgements, READ responses. */
#ifndef TRANSPORT_SOFT_QP_REQUESTER_H
#define TRANSPORT_SOFT_QP_REQUESTER_H

#include "transport/soft/qp/qp_internal.h"

void requester_connect(struct soft_qp *qp, const struct soft_agreement *agreement);
void requester_post(struct soft_qp *qp, const struct work *work);
/* Posts a zero-length WRITE without completion. No other request may be posted. */
void requester_probe(struct soft_qp *qp);
/* Sends what the window allows. */
void requester_transmit(struct soft_qp *qp);
/* An acknowledgement or a READ response. */
void requester_receive(struct soft_qp *qp, const struct packet *packet);

/* Fails the oldest work. */
void requester_retries_exhausted(struct soft_qp *qp);

/* The oldest request is done: reports its completion, unless it is unsignalled. */
void requester_complete_oldest(struct soft_qp *qp);
/* Sends an outstanding packet again with AckReq; of a READ: the rest of its slice that has no response. */
void requester_resend(struct soft_qp *qp, uint32_t psn);

#endif
