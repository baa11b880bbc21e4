/* SPDX-License-Identifier: BSD-2-Clause */
/* The connection manager: REQ, REP, RTU, REJ, MRA, DREQ and DREP on queue pair 1. */
#pragma once

#include "transport/soft/base/shared.h"
#include "transport/soft/wire/mad.h"

/* NULL without memory. Closing sends extra copies of unanswered DREQs and recent DREPs, and flushes. */
struct soft_cm *soft_cm_open(struct soft_transport *transport);
void soft_cm_close(struct soft_cm *cm);

/* NULL: no listener. local: the destination address of the request. */
struct soft_endpoint *soft_listener_find(struct soft_transport *transport, enum port_space port_space, uint16_t port,
					 const struct address *local);
/* An IPv4 address becomes an IPv4-mapped GID. */
void soft_cm_gid(const struct address *address, uint8_t gid[MAD_GID_SIZE]);

/* Four functions of struct backend. Active side: */
enum outcome soft_cm_connect(struct endpoint *endpoint, const void *data, size_t length);
/* Passive side, from SOFT_EVENT_REQUESTED: */
enum outcome soft_cm_accept(struct endpoint *endpoint, const void *data, size_t length);
void soft_cm_reject(struct endpoint *endpoint, const void *data, size_t length);
/* Either side: */
enum outcome soft_cm_disconnect(struct endpoint *endpoint);
/* The endpoint is being freed: sends REJ or DREQ if the state requires it. The cm_id lives on to timewait. */
void soft_cm_release(struct soft_endpoint *endpoint);
/* One MAD from QP 1 of that address. damaged: its ICRC is wrong, so nothing is answered. */
void soft_cm_receive(struct soft_transport *transport, struct soft_socket *socket, const struct address *from,
		     const uint8_t *bytes, size_t length, bool damaged);
/* Whether a cm_id, or a REQ that waits, has that socket. */
bool soft_cm_uses(const struct soft_cm *cm, const struct soft_socket *socket);
/* The first valid packet of the endpoint's queue pair implies RTU. */
void soft_cm_first_packet(struct soft_endpoint *endpoint);
/*
 * An ICMP error, which quotes the first bytes of a packet. ECONNREFUSED (port unreachable): a connecting endpoint
 * fails, an established one probes its peer. Any other errno may be transient and is only reported with a later
 * timeout. The kernel checks addresses and ports only, so anybody can forge the error: it must
 * quote a local identifier or the QPN of a cm_id.
 */
void soft_cm_unreachable(struct soft_transport *transport, const struct soft_socket *socket,
			 const struct soft_icmp *icmp, const uint8_t *quoted, size_t length);
