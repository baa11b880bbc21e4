/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/soft/net/icrc_state.h"

#include "core/clock.h"

enum {
	AHEAD_MOST = 512, /* steps, for packets that were lost or went to others */
	BACK_MOST = 1024, /* steps, for packets that were overtaken: by all that a busy peer's other processors sent */
	JUMP_WEIGHT = 16, /* near marks that make up for a jump */
	JUMPS_MOST = 3 * JUMP_WEIGHT,
};

/* Far enough behind to have been overtaken, but not further. */
static bool is_late(const struct icrc_judge *judge, struct icrc_mark mark)
{
	uint16_t back = (uint16_t)(judge->last.identification - mark.identification);

	return back && back <= BACK_MOST;
}

/*
 * Linux moves the count on after a silence, by a random number of up to one for each tick of its clock: at most one a
 * millisecond.
 */
static bool is_near(const struct icrc_judge *judge, struct icrc_mark mark, int64_t now)
{
	int64_t silence = now > judge->when ? (now - judge->when) / CLOCK_NS_PER_MS : 0;
	uint16_t ahead = (uint16_t)(mark.identification - judge->last.identification);

	return mark.may_fragment == judge->last.may_fragment && (ahead <= AHEAD_MOST + silence || is_late(judge, mark));
}

/* One jump may be a corruption that happens to have a solution; another before any near mark is none. */
static bool accepts_jump(struct icrc_judge *judge)
{
	bool accepts = judge->suspected || judge->jumps >= JUMPS_MOST;

	if (judge->jumps < UINT8_MAX - JUMP_WEIGHT)
		judge->jumps = (uint8_t)(judge->jumps + JUMP_WEIGHT);
	judge->suspected = !accepts;
	return accepts;
}

bool icrc_judge_accepts(struct icrc_judge *judge, enum icrc_verdict verdict, struct icrc_mark mark, int64_t now)
{
	bool late = false;

	if (verdict != ICRC_SOLVED || !mark.identification)
		return verdict != ICRC_BAD;
	if (judge->known && is_near(judge, mark, now)) {
		late = is_late(judge, mark);
		if (judge->jumps)
			judge->jumps--;
	} else if (judge->known && !accepts_jump(judge)) {
		return false;
	}
	if (!late)
		judge->last = mark;
	judge->known = true;
	judge->suspected = false;
	judge->when = now;
	return true;
}
