/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2 in user space over UDP port 4791, a stack of layers:
 *
 *   endpoint.c  group.c  delivery.c  soft.c   transport.h: endpoints, events, completions; open and close
 *        |
 *   cm/    connection manager
 *        |
 *   qp/    queue pairs: requester, responder, datagrams; memory regions
 *        |
 *   net/   UDP sockets, packets in batches, ICRC check
 *        |
 *   base/  shared state, the queue of events and completions, tables, lists, random numbers
 *        |
 *   wire/  formats of packets and MADs, ICRC; no state, no I/O
 *
 * Includes and calls go down only. What goes up is queued (base/queue.h), or is one of struct soft_handlers
 * (base/state.h): a received packet goes socket -> packet_io -> soft.c -> qp (by its destination QPN) or cm (QP 1), its
 * completion or event goes queue -> delivery -> endpoint. Everything runs in callbacks of the loop; each ends with
 * soft_flush(), which sends what is queued.
 */
#ifndef TRANSPORT_SOFT_SOFT_H
#define TRANSPORT_SOFT_SOFT_H

#include "transport/soft/base/state.h"

extern const struct soft_handlers soft_handlers;

#endif
