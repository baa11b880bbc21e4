/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder of a connection: the peer's requests. */
#ifndef TRANSPORT_SOFT_QP_RESPONDER_H
#define TRANSPORT_SOFT_QP_RESPONDER_H

#include "transport/soft/qp/qp_internal.h"

void responder_connect(struct soft_qp *qp, const struct soft_agreement *agreement);
void responder_receive(struct soft_qp *qp, const struct packet *packet);
/* Sends the scheduled reply. False if READ responses are left for the next turn of the loop. */
bool responder_reply(struct soft_qp *qp);
/* Sends the last ACKs before the queue pair enters QP_DRAINING. */
void responder_drain(struct soft_qp *qp);
/* As soft_qp_last_ack(). */
uint32_t responder_last_ack(const struct soft_qp *qp);

/* The oldest receive has that many bytes, of which the packet has the last. */
void responder_complete_receive(struct soft_qp *qp, const struct packet *packet, uint32_t length);

#endif
