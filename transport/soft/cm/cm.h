/* SPDX-License-Identifier: BSD-2-Clause */
/* The connection manager: REQ, REP, RTU, REJ, MRA, DREQ and DREP on queue pair 1. */
#ifndef TRANSPORT_SOFT_CM_CM_H
#define TRANSPORT_SOFT_CM_CM_H

#include "transport/soft/endpoint.h"
#include "transport/soft/net/icrc_state.h"

/* NULL when memory is short. Closing says a last word to peers that have not answered yet, and flushes. */
struct soft_cm *soft_cm_open(struct soft_transport *transport);
void soft_cm_close(struct soft_cm *cm);

/* Active side: sends REQ from the endpoint's queue over its path, and goes on from there. */
enum outcome soft_cm_connect(struct soft_endpoint *endpoint, const void *data, size_t length);
/* Passive side, of an endpoint that soft_requested() was told of. */
enum outcome soft_cm_accept(struct soft_endpoint *endpoint, const void *data, size_t length);
enum outcome soft_cm_reject(struct soft_endpoint *endpoint, const void *data, size_t length);
enum outcome soft_cm_disconnect(struct soft_endpoint *endpoint);
/* The endpoint goes: the peer is told if it has to be; late answers are still given for a while. */
void soft_cm_forget(struct soft_endpoint *endpoint);
/* One MAD, 256 bytes, from queue pair 1 of that address, if the case holds. */
void soft_cm_receive(struct soft_transport *transport, struct soft_socket *socket, const struct address *from,
		     const uint8_t *bytes, size_t length, const struct icrc_case *open);
/* The queue of the endpoint got its first valid packet, which is as good as the peer's RTU. */
void soft_cm_packet_received(struct soft_endpoint *endpoint);
/*
 * ICMP says that a packet of ours did not come to that address, and quotes its beginning. ECONNREFUSED, nothing holds
 * port 4791 there: what was connecting with it fails, what is established doubts. Any other errno may pass, and is told
 * should the peer stay silent. Anybody can forge such a message, and the kernel compares its addresses and ports only:
 * one that does not quote the identifier or queue number of a link is not believed.
 */
void soft_cm_unreachable(struct soft_transport *transport, const struct soft_socket *socket, const struct address *peer,
			 int error, const uint8_t *quoted, size_t length);
#define SOFT_UNREACHABLE "nothing holds UDP port 4791 there (no RoCE v2)"

#endif
