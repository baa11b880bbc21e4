/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs of groups: datagrams. */
#ifndef TRANSPORT_SOFT_QP_DATAGRAM_H
#define TRANSPORT_SOFT_QP_DATAGRAM_H

#include "transport/soft/qp/qp_internal.h"

void datagram_post(struct soft_qp *qp, const struct work *work);
/* Hands a turn's share of the datagrams to the socket; they are told in the next turn. */
void datagram_transmit(struct soft_qp *qp);
void datagram_receive(struct soft_qp *qp, const struct address *from, const struct address *to,
		      const struct packet *packet);

#endif
