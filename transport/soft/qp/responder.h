/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder of a connected queue pair: the peer's requests. */
#ifndef TRANSPORT_SOFT_QP_RESPONDER_H
#define TRANSPORT_SOFT_QP_RESPONDER_H

#include "transport/soft/qp/qp_internal.h"

void responder_connect(struct soft_qp *qp, const struct soft_agreement *agreement);
void responder_receive(struct soft_qp *qp, const struct packet *packet);
/* False if there is more to send in the next turn. */
bool responder_reply(struct soft_qp *qp);
/* The last word before the queue stops. */
void responder_drain(struct soft_qp *qp);

#endif
