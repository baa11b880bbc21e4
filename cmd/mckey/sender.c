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

int64_t sender_pause(const struct mckey_run *run)
{
	const struct environment *environment = run->environment;

	if (options_given(environment->command->options, environment->given, "pause"))
		return run->options->pause;
	return run->members->endpoint->domain->fabric == FABRIC_INFINIBAND ? PAUSE_INFINIBAND : PAUSE_ROCE;
}

/* How many datagrams each member may have posted by now. */
static uint64_t allowed(struct mckey_run *run, int64_t now)
{
	int64_t spacing, steps;

	if (!EXTRA(run->options->rate))
		return run->count;
	if (!run->due)
		run->due = now;
	if (run->due <= now) {
		spacing = CLOCK_NS_PER_S / run->options->rate;
		run->due = MAX(run->due, now - CATCH_UP);
		steps = (now - run->due) / spacing + 1;
		run->allowed += (uint64_t)steps;
		run->due += steps * spacing;
	}
	return MIN(run->allowed, run->count);
}

/* Until the pace allows another datagram. */
static int64_t next_due(const struct mckey_run *run, int64_t now)
{
	if (!EXTRA(run->options->rate) || run->allowed >= run->count)
		return INT64_MAX;
	return MAX(run->due - now, TICK);
}

static void next_datagram(struct member *member, struct work *work)
{
	const struct mckey_run *run = member->run;
	const struct datagram_mark mark = { member->posted++, run->count };

	*work = (struct work){
		.kind = WORK_SEND,
		.tag = mark.sequence % member->slots,
		.region = member->region,
		.length = member->slot_size,
		.has_immediate = true,
		.immediate = member->endpoint->qpn,
	};
	work->offset = (size_t)work->tag * work->length;
	datagram_write(work->region->memory + work->offset, work->length, run->pattern, work->immediate, &mark);
}

/* Posts as many datagrams as the send queue and the pace allow. */
static enum outcome fill_send_queue(struct member *member)
{
	struct mckey_run *run = member->run;
	int64_t now = clock_now();
	uint64_t until = MIN(allowed(run, now), member->sent + member->slots);
	struct work works[BATCH];
	enum outcome outcome = OUTCOME_OK;

	if (!run->outstanding)
		run->progress = now;
	while (!outcome && member->posted < until) {
		uint32_t batch = 0;

		while (batch < BATCH && member->posted < until)
			next_datagram(member, &works[batch++]);
		run->outstanding += batch;
		outcome = endpoint_post(member->endpoint, works, batch);
	}
	return outcome;
}

enum outcome sender_send(struct mckey_run *run)
{
	enum outcome outcome = OUTCOME_OK;

	for (size_t i = 0; !outcome && i < run->figures.asked; i++)
		outcome = fill_send_queue(&run->members[i]);
	return outcome;
}

static uint64_t sender_total(const struct mckey_run *run)
{
	return run->figures.asked * run->count;
}

enum outcome sender_completed(struct member *member)
{
	struct mckey_run *run = member->run;

	mckey_figures_counted(run, !member->sent++);
	run->outstanding--;
	run->recheck = ++run->figures.sent == sender_total(run);
	if (member->posted - member->sent > member->slots / 2)
		return OUTCOME_OK;
	return fill_send_queue(member);
}

/* A device without completions for --timeout, or until the deadline. */
int64_t sender_time_left(struct mckey_run *run)
{
	const struct loop *loop = run->environment->loop;
	int64_t now = clock_now(), next = next_due(run, now);
	int64_t timeout = run->options->common.timeout, silence = now - run->progress;
	char reason[ENDPOINT_TIMEOUT_CAUSE_SIZE], text[LOOP_PHASE_TEXT_SIZE];

	if (run->figures.sent == sender_total(run))
		return 0;
	if (EXTRA(run->options->rate) && !run->outstanding) /* all wait for their pace */
		return next;
	if (silence < timeout && !loop_deadline_passed(loop))
		return MIN(timeout - silence, next);
	log_cause(run->log, run->figures.target, "sending", 0, "%s%s%s", loop_phase_text(loop, timeout, text),
		  !WITH_CAUSES || silence < timeout ? "" : ": the device completed nothing",
		  endpoint_timeout_cause(run->members->endpoint, reason));
	return 0;
}

void sender_result(const struct mckey_run *run, struct mckey_result *result)
{
	*result = (struct mckey_result){
		run->figures.sent, sender_total(run), "datagram", "sent", " to ", run->figures.target,
	};
}
