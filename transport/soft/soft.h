/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2 in user space over UDP port 4791, a stack of folders:
 *
 *   cm/    connection manager
 *   qp/    queue pairs: requester, responder, datagrams; memory regions
 *   net/   UDP sockets, packets in batches, ICRC check
 *   base/  shared state, the queue of events and completions, tables, lists, random numbers
 *   wire/  formats of packets and MADs, ICRC; no state, no I/O
 *
 * and above them this folder's files, the functions of struct backend. Each file calls only those below it:
 *
 *   soft.c       open and close, the reaper, received packets
 *   delivery.c   events and completions to the command
 *   endpoint.c   resolving, listening, joining, and calls to the connection manager and queue pair
 *
 * Reports upwards are queued (base/queue.h), or use soft_handlers (base/shared.h): a received packet goes socket ->
 * packet_io -> soft.c -> qp (by its destination QPN) or cm (QP 1), its completion or event goes queue -> delivery ->
 * transport/endpoint.c. Everything runs in callbacks of the loop; each ends with soft_callback_end(), which delivers
 * and sends what is queued.
 */
#pragma once

#include "transport/soft/base/shared.h"

struct soft_endpoint *soft_request_create(struct soft_endpoint *listener, const struct soft_path *path,
					  const struct address *peer);
/* Delivers SOFT_EVENT_REQUESTED to the listener. */
void soft_request_report(struct soft_endpoint *endpoint, const uint8_t *data, size_t length);

enum outcome soft_channel_create(struct transport *transport, struct channel **channel);

enum outcome soft_endpoint_create(struct channel *channel, enum endpoint_kind kind,
				  const struct endpoint_options *options, struct endpoint **endpoint);
void soft_endpoint_destroy(struct endpoint *endpoint);
void soft_endpoint_free(struct soft_endpoint *endpoint);
enum outcome soft_listen(struct endpoint *endpoint);
enum outcome soft_resolve(struct endpoint *endpoint);
enum outcome soft_join(struct endpoint *endpoint);
enum outcome soft_post(struct endpoint *endpoint, const struct work *work, size_t count);
void soft_endpoint_path(const struct endpoint *endpoint, struct path *path);
void soft_timeout_cause(const struct endpoint *endpoint, char text[ENDPOINT_TIMEOUT_CAUSE_SIZE]);
void soft_explain(const struct endpoint *endpoint, struct error *error);

/* delivery.c */
bool soft_deliver(struct soft_transport *transport);
