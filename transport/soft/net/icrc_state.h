/* SPDX-License-Identifier: BSD-2-Clause */
/* The IP identification of received packets, which completes the ICRC check: one state for each pair of addresses. */
#ifndef TRANSPORT_SOFT_NET_ICRC_STATE_H
#define TRANSPORT_SOFT_NET_ICRC_STATE_H

#include "transport/soft/wire/icrc.h"

/*
 * Whether a peer uses the marks that are solved for. Kernels count the identification up by one for each packet, and by
 * some more for the time that none was sent. They count for each pair of addresses (not ports), so that there is one
 * zeroed judge for each: what a peer sends to a group is counted apart.
 *
 * The first mark of a pair is believed. After that a mark is believed if it lies near the last one: some steps ahead,
 * more after a silence, or a few back for what was overtaken. A jump is not, until a second one in a row shows that the
 * peer's numbering has moved; where there are jumps again and again the peer numbers at random, or several count behind
 * one address, and is believed from then on.
 */
struct icrc_judge {
	struct icrc_mark last;
	int64_t when; /* it was seen, nanoseconds of the clock */
	bool known;
	bool suspected; /* the solution before was refused */
	uint8_t jumps;
};

/* Whether to take a packet with that verdict; now in nanoseconds of a monotonic clock. */
bool icrc_judge_accepts(struct icrc_judge *judge, enum icrc_verdict verdict, struct icrc_mark mark, int64_t now);

/*
 * What is open about a packet until the judge is asked. Whoever receives it asks once it is known to be of a connection
 * of the peer's, by numbers that nobody else can know: strangers that send in its name teach the judge nothing.
 */
struct icrc_case {
	struct icrc_judge *judge;
	enum icrc_verdict verdict;
	struct icrc_mark mark;
	int64_t now;
};

static inline bool icrc_case_holds(const struct icrc_case *open)
{
	return icrc_judge_accepts(open->judge, open->verdict, open->mark, open->now);
}

#endif
