/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams of the queue pair of a multicast group. */
#ifndef TRANSPORT_SOFT_QP_DATAGRAM_H
#define TRANSPORT_SOFT_QP_DATAGRAM_H

#include "transport/soft/qp/qp_internal.h"

/* Sends as many datagrams as one turn of the loop allows. They complete in the next turn. */
void datagram_transmit(struct soft_qp *qp);
void datagram_receive(struct soft_qp *qp, const struct address *from, const struct address *to,
		      const struct packet *packet);

#endif
