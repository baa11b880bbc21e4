/* SPDX-License-Identifier: BSD-2-Clause */
/* Validates the IPv4 identifications that the ICRC check solves for. One state per pair of addresses. */
#ifndef TRANSPORT_SOFT_NET_ICRC_STATE_H
#define TRANSPORT_SOFT_NET_ICRC_STATE_H

#include "transport/soft/wire/icrc.h"

/*
 * What identifications a peer uses. Zeroed at first. Linux increments the identification per pair of addresses, not
 * ports, and adds an increment after an idle time. A multicast group is a destination of its own and has its own state.
 *
 * The first identification is accepted. A later one is accepted if it is near the last: a few steps ahead, more after
 * an idle time, or a few steps behind (reordering). A jump is rejected, unless the previous solved packet was rejected
 * too: then the peer's counter has moved. After repeated jumps every jump is accepted: the peer uses random
 * identifications, or several hosts share its address.
 */
struct icrc_state {
	struct icrc_ip_id last;
	int64_t last_time; /* nanoseconds, monotonic clock */
	bool known;	   /* last is valid */
	bool suspected;	   /* the previous solved packet was rejected */
	uint8_t jumps;	   /* score: JUMP_WEIGHT per jump, less 1 per near identification */
};

/* Returns whether to accept a packet with this check result. now: nanoseconds, monotonic clock. */
bool icrc_state_accepts(struct icrc_state *state, enum icrc_result result, struct icrc_ip_id ip_id, int64_t now);

/*
 * A received packet whose identification is not validated yet. The receiver calls icrc_confirm() only after it has
 * matched the packet to a connection by numbers that only the peer knows: a forged packet must not move the state.
 * Packets from many other addresses can make this host forget it (struct peer in packet_io.c, a cache): then the next
 * identification is accepted as the first one. That weakens the protection of one packet against corruption; whose
 * packets are accepted does not depend on it.
 */
struct icrc_pending {
	struct icrc_state *state;
	enum icrc_result result;
	struct icrc_ip_id ip_id;
	int64_t now;
};

/* Returns whether to accept the packet, and updates its state. */
static inline bool icrc_confirm(const struct icrc_pending *pending)
{
	return icrc_state_accepts(pending->state, pending->result, pending->ip_id, pending->now);
}

#endif
