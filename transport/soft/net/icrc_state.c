/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/soft/net/icrc_state.h"

#include "core/clock.h"

enum {
	AHEAD_MAX = 512,  /* steps: lost packets, and packets to other ports of this host */
	BACK_MAX = 1024,  /* steps: packets that the peer's other processors sent in between */
	JUMP_WEIGHT = 16, /* near identifications that cancel a jump */
	JUMPS_MAX = 3 * JUMP_WEIGHT,
};

/* The packet was reordered. */
static bool is_late(const struct icrc_state *state, struct icrc_ip_id ip_id)
{
	uint16_t back = (uint16_t)(state->last.identification - ip_id.identification);

	return back && back <= BACK_MAX;
}

/* After an idle time Linux adds a random number of at most one step per clock tick, so at most one per millisecond. */
static bool is_near(const struct icrc_state *state, struct icrc_ip_id ip_id, int64_t now)
{
	int64_t idle_ms = now > state->last_time ? (now - state->last_time) / CLOCK_NS_PER_MS : 0;
	uint16_t ahead = (uint16_t)(ip_id.identification - state->last.identification);

	return ip_id.may_fragment == state->last.may_fragment &&
	       (ahead <= AHEAD_MAX + idle_ms || is_late(state, ip_id));
}

/* A single jump may be a corrupted packet that has a valid solution by chance. Two in a row are not. */
static bool accept_jump(struct icrc_state *state)
{
	bool accepted = state->suspected || state->jumps >= JUMPS_MAX;

	if (state->jumps < UINT8_MAX - JUMP_WEIGHT)
		state->jumps = (uint8_t)(state->jumps + JUMP_WEIGHT);
	state->suspected = !accepted;
	return accepted;
}

bool icrc_state_accepts(struct icrc_state *state, enum icrc_result result, struct icrc_ip_id ip_id, int64_t now)
{
	bool late = false;

	if (result != ICRC_SOLVED || !ip_id.identification)
		return result != ICRC_BAD;
	if (state->known && is_near(state, ip_id, now)) {
		late = is_late(state, ip_id);
		if (state->jumps)
			state->jumps--;
	} else if (state->known && !accept_jump(state)) {
		return false;
	}
	if (!late)
		state->last = ip_id;
	state->known = true;
	state->suspected = false;
	state->last_time = now;
	return true;
}
