/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pace of a sender. Multicast datagrams have no flow control: a receiver or switch drops what it cannot take.
 * --rate and --interval space the datagrams of each QP evenly.
 */
#include "cmd/mckey/mckey.h"

/* A late sender catches up at most this much: more would be a burst. */
#define CATCH_UP (10 * CLOCK_NS_PER_MS)
/* Resolution of the loop's timers. */
#define TICK CLOCK_NS_PER_MS

/* Nanoseconds between two datagrams of a QP; 0: no pace. */
static int64_t spacing(const struct mckey_run *run)
{
	if (!WITH_PACE)
		return 0;
	return run->options->rate ? CLOCK_NS_PER_S / run->options->rate : run->options->interval;
}

uint32_t pace_allows(struct member *member, uint32_t most, int64_t now)
{
	int64_t space = spacing(member->run);
	uint32_t count = 0;

	if (!space)
		return most;
	if (member->due < now - CATCH_UP)
		member->due = now - CATCH_UP;
	while (count < most && member->due <= now) {
		member->due += space;
		count++;
	}
	return count;
}

bool pace_is_last(const struct mckey_run *run, int64_t now)
{
	int64_t duration = run->options->duration;

	return WITH_PACE && duration && now + spacing(run) >= run->traffic_began + duration;
}

static void tick(void *owner)
{
	struct mckey_run *run = owner;

	for (size_t i = 0; i < run->member_count && run->phase == RUN_SENDING; i++)
		if (run->members[i].state == MEMBER_JOINED)
			sender_fill(&run->members[i]);
	pace_start(run);
}

void pace_start(struct mckey_run *run)
{
	int64_t now = clock_now(), soonest = INT64_MAX;

	if (!spacing(run))
		return;
	for (size_t i = 0; i < run->member_count; i++) {
		const struct member *member = &run->members[i];

		if (member->state == MEMBER_JOINED && member->posted < member->total && member->due < soonest)
			soonest = member->due;
	}
	if (run->phase == RUN_SENDING && soonest != INT64_MAX)
		loop_timer_start(run->environment->loop, &run->pace, soonest - now > TICK ? soonest - now : TICK, tick,
				 run);
}
