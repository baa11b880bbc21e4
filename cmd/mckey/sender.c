/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sender: every member sends -C datagrams, a limited number of them outstanding. A completion proves that the
 * datagram left the device; only the receivers know whether it arrived.
 *
 * Multicast datagrams have no flow control: a receiver or switch drops what it cannot take. --rate spaces the datagrams
 * of each QP evenly.
 */
#include <sys/param.h>

#include "cmd/mckey/mckey.h"

enum {
	BATCH = 16 /* work requests per post: one doorbell for all of them */
};

/* Until the subnet manager has set up the group in every switch. The stock tool waits as long. */
#define PAUSE_INFINIBAND (3 * CLOCK_NS_PER_S)
/* Until a receiver that starts at the same time has joined; IGMP snooping then forwards the group at once. */
#define PAUSE_ROCE (100 * CLOCK_NS_PER_MS)
/* A late sender catches up at most this much: more would be a burst. */
#define CATCH_UP (10 * CLOCK_NS_PER_MS)
/* Least time to the next datagram: the loop's timers have this resolution. */
#define TICK CLOCK_NS_PER_MS

int64_t sender_pause(const struct mckey *mckey)
{
	const struct run *run = mckey->run;

	if (options_given(run->command->options, run->given, "pause"))
		return mckey->options->pause;
	return mckey->members->endpoint->domain->fabric == FABRIC_INFINIBAND ? PAUSE_INFINIBAND : PAUSE_ROCE;
}

/* How many datagrams each member may have posted by now. */
static uint64_t allowed(struct mckey *mckey, int64_t now)
{
	int64_t spacing, steps;

	if (!EXTRA(mckey->options->rate))
		return mckey->count;
	if (!mckey->due)
		mckey->due = now;
	if (mckey->due <= now) {
		spacing = CLOCK_NS_PER_S / mckey->options->rate;
		mckey->due = MAX(mckey->due, now - CATCH_UP);
		steps = (now - mckey->due) / spacing + 1;
		mckey->allowed += (uint64_t)steps;
		mckey->due += steps * spacing;
	}
	return MIN(mckey->allowed, mckey->count);
}

/* Until the pace allows another datagram. */
static int64_t next_due(const struct mckey *mckey, int64_t now)
{
	if (!EXTRA(mckey->options->rate) || mckey->allowed >= mckey->count)
		return INT64_MAX;
	return MAX(mckey->due - now, TICK);
}

static void next_datagram(struct member *member, struct work *work)
{
	const struct mckey *mckey = member->mckey;
	const struct datagram_mark mark = { member->posted++, mckey->count };

	*work = (struct work){
		.kind = WORK_SEND,
		.tag = mark.sequence % member->slots,
		.region = member->region,
		.length = member->slot_size,
		.has_immediate = true,
		.immediate = member->endpoint->qpn,
	};
	work->offset = (size_t)work->tag * work->length;
	datagram_write(work->region->memory + work->offset, work->length, mckey->pattern, work->immediate, &mark);
}

/* Posts as many datagrams as the send queue and the pace allow. */
static enum outcome fill_send_queue(struct member *member)
{
	struct mckey *mckey = member->mckey;
	int64_t now = clock_now();
	uint64_t until = MIN(allowed(mckey, now), member->sent + member->slots);
	struct work works[BATCH];
	enum outcome outcome = OUTCOME_OK;

	if (!mckey->outstanding)
		mckey->progress = now;
	while (!outcome && member->posted < until) {
		uint32_t batch = 0;

		while (batch < BATCH && member->posted < until)
			next_datagram(member, &works[batch++]);
		mckey->outstanding += batch;
		outcome = endpoint_post(member->endpoint, works, batch);
	}
	return outcome;
}

enum outcome sender_send(struct mckey *mckey)
{
	enum outcome outcome = OUTCOME_OK;

	for (size_t i = 0; !outcome && i < mckey->figures.asked; i++)
		outcome = fill_send_queue(&mckey->members[i]);
	return outcome;
}

static uint64_t sender_total(const struct mckey *mckey)
{
	return mckey->figures.asked * mckey->count;
}

enum outcome sender_completed(struct member *member)
{
	struct mckey *mckey = member->mckey;

	mckey_figures_counted(mckey, !member->sent++);
	mckey->outstanding--;
	mckey->recheck = ++mckey->figures.sent == sender_total(mckey);
	if (member->posted - member->sent > member->slots / 2)
		return OUTCOME_OK;
	return fill_send_queue(member);
}

/* A device without completions for --timeout, or until the deadline. */
int64_t sender_time_left(struct mckey *mckey)
{
	const struct loop *loop = mckey->run->loop;
	int64_t now = clock_now(), next = next_due(mckey, now);
	int64_t timeout = mckey->options->common.timeout, silence = now - mckey->progress;
	char reason[ENDPOINT_TIMEOUT_CAUSE_SIZE], text[LOOP_PHASE_TEXT_SIZE];

	if (mckey->figures.sent == sender_total(mckey))
		return 0;
	if (EXTRA(mckey->options->rate) && !mckey->outstanding) /* all wait for their pace */
		return next;
	if (silence < timeout && !loop_deadline_passed(loop))
		return MIN(timeout - silence, next);
	log_cause(mckey->log, mckey->figures.target, "sending", 0, "%s%s%s", loop_phase_text(loop, timeout, text),
		  !WITH_DIAGNOSTICS || silence < timeout ? "" : ": the device completed nothing",
		  endpoint_timeout_cause(mckey->members->endpoint, reason));
	return 0;
}

void sender_result(const struct mckey *mckey, struct mckey_result *result)
{
	*result = (struct mckey_result){
		mckey->figures.sent, sender_total(mckey), "datagram", "sent", " to ", mckey->figures.target,
	};
}
