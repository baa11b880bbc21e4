/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sender: every member sends -C datagrams, a limited number of them outstanding. A send completion proves that the
 * datagram left the device; only the receivers know whether it arrived.
 *
 * Multicast datagrams have no flow control: a receiver or switch drops what it cannot take. --rate spaces the
 * datagrams of each QP evenly.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cmd/mckey/mckey.h"

enum {
	BATCH = 16 /* work requests per post: one doorbell for all of them */
};

/* A late sender catches up at most this much: more would be a burst. */
#define CATCH_UP (10 * CLOCK_NS_PER_MS)
/* Least time to the next datagram: the loop's timers have this resolution. */
#define TICK CLOCK_NS_PER_MS

/* Nanoseconds between two datagrams of a QP; 0: no pace. */
static int64_t pace_spacing(const struct mckey_run *run)
{
	return EXTRA(run->options->rate) ? CLOCK_NS_PER_S / run->options->rate : 0;
}

uint32_t sender_pace_allows(struct member *member, uint32_t max, int64_t now)
{
	int64_t space = pace_spacing(member->run);
	uint32_t count = 0;

	if (!space)
		return max;
	if (member->due < now - CATCH_UP)
		member->due = now - CATCH_UP;
	while (count < max && member->due <= now) {
		member->due += space;
		count++;
	}
	return count;
}

static struct work next_datagram(struct member *member)
{
	const struct mckey_run *run = member->run;
	uint32_t slot = (uint32_t)(member->posted % member->slots);
	size_t offset = (size_t)slot * member->slot_size;
	const struct datagram_mark mark = { (uint32_t)member->posted, (uint32_t)run->count };

	datagram_write(member->region->memory + offset, run->size, run->pattern, member->endpoint->qpn, &mark);
	member->posted++;
	return (struct work){
		.kind = WORK_SEND,
		.tag = slot,
		.region = member->region,
		.offset = offset,
		.length = run->size,
		.has_immediate = true,
		.immediate = member->endpoint->qpn,
	};
}

static uint32_t sender_least(uint64_t one, uint32_t other)
{
	return one < other ? (uint32_t)one : other;
}

/* Posts as many datagrams as the send queue and the pace allow. */
static void fill_send_queue(struct member *member)
{
	struct mckey_run *run = member->run;
	struct work works[BATCH];
	enum outcome outcome;

	for (;;) {
		int64_t now = clock_now();
		uint32_t room = sender_least(member->slots - (member->posted - member->sent), BATCH);
		uint32_t count = sender_pace_allows(member, sender_least(run->count - member->posted, room), now);
		uint32_t batch = 0;

		if (!count)
			return;
		if (member->posted == member->sent)
			run->progress = now; /* nothing was outstanding: restarts the timeout */
		while (batch < count)
			works[batch++] = next_datagram(member);
		outcome = endpoint_post(member->endpoint, works, batch);
		if (outcome) {
			member_fail(member, outcome);
			return;
		}
	}
}

void sender_check_end(struct mckey_run *run)
{
	size_t sending = 0;

	if (run->phase != MCKEY_SENDING)
		return;
	for (size_t i = 0; i < run->member_count; i++)
		sending += run->members[i].state == MEMBER_JOINED && run->members[i].sent < run->count;
	if (!sending)
		mckey_end(run, OUTCOME_OK);
}

void sender_completion(struct member *member, const struct completion *completion)
{
	struct mckey_run *run = member->run;

	(void)completion;
	member->sent++;
	mckey_figures_counted(run, run->size, member->sent == 1);
	run->progress = run->traffic_ended;
	if (member->sent == run->count)
		sender_check_end(run);
	else if (member->posted - member->sent <= member->slots / 2)
		fill_send_queue(member);
}

/* Returns a member with outstanding sends, or NULL. */
static const struct member *first_outstanding(const struct mckey_run *run)
{
	for (size_t i = 0; i < run->member_count; i++)
		if (run->members[i].state == MEMBER_JOINED && run->members[i].posted != run->members[i].sent)
			return &run->members[i];
	return NULL;
}

static void sender_check_progress(void *context)
{
	struct mckey_run *run = context;
	int64_t timeout = run->options->common.timeout;
	const struct member *member = first_outstanding(run);
	int64_t silence = member ? clock_now() - run->progress : 0;
	struct loop *loop = run->environment->loop;
	char reason[ENDPOINT_TIMEOUT_CAUSE_SIZE], text[LOOP_PHASE_TEXT_SIZE];

	if (!member || (silence < timeout && !loop_deadline_passed(loop))) {
		loop_phase_start(loop, &run->idle, timeout - silence, sender_check_progress, run);
		return;
	}
	log_cause(run->log, run->group_text, "sending", 0, "%s%s%s", loop_phase_text(loop, timeout, text),
		  silence < timeout ? "" : ": the device completed nothing",
		  endpoint_timeout_cause(member->endpoint, reason));
	mckey_end(run, OUTCOME_FAILED);
}

static void start_pace_timer(struct mckey_run *run);

static void send_due(void *context)
{
	struct mckey_run *run = context;

	for (size_t i = 0; i < run->member_count && run->phase == MCKEY_SENDING; i++)
		if (run->members[i].state == MEMBER_JOINED)
			fill_send_queue(&run->members[i]);
	start_pace_timer(run);
}

static void start_pace_timer(struct mckey_run *run)
{
	int64_t now = clock_now(), soonest = INT64_MAX;

	if (!pace_spacing(run))
		return;
	for (size_t i = 0; i < run->member_count; i++) {
		const struct member *member = &run->members[i];

		if (member->state == MEMBER_JOINED && member->posted < run->count && member->due < soonest)
			soonest = member->due;
	}
	if (run->phase == MCKEY_SENDING && soonest != INT64_MAX)
		loop_timer_start(run->environment->loop, &run->pace, soonest - now > TICK ? soonest - now : TICK,
				 send_due, run);
}

void sender_start(struct mckey_run *run)
{
	run->phase = MCKEY_SENDING;
	if (!environment_setup_done(run->environment, NULL, NULL))
		return;
	environment_print(run->environment, "initiating data transfers");
	run->progress = run->traffic_began = clock_now();
	loop_phase_start(run->environment->loop, &run->idle, run->options->common.timeout, sender_check_progress, run);
	for (size_t i = 0; i < run->member_count && run->phase == MCKEY_SENDING; i++) {
		struct member *member = &run->members[i];
		enum outcome outcome;

		if (member->state != MEMBER_JOINED)
			continue;
		member->slots = sender_least(run->count, member->endpoint->options.send_depth);
		member->due = run->traffic_began;
		member->slot_size = run->size;
		outcome = region_create(member->endpoint->domain, (size_t)member->slots * member->slot_size,
					REGION_LOCAL, &member->region);
		if (outcome)
			member_fail(member, outcome);
		else
			fill_send_queue(member);
	}
	start_pace_timer(run);
}

void sender_print(struct mckey_run *run)
{
	uint64_t wanted = run->count * run->member_count;
	bool all = run->figures.sent == wanted;

	if (all)
		environment_print(run->environment, "data transfers complete");
	for (size_t i = 0; i < run->member_count; i++) {
		const struct member *member = &run->members[i];

		if (member->region)
			environment_print_result(run->environment, false, &run->verdict,
						 "QP %u sent %" PRIu64 " of %" PRIu64 " datagram%s of %u byte%s",
						 member->endpoint->qpn, member->sent, run->count,
						 units_plural(run->count), run->size, units_plural(run->size));
	}
	if (!all)
		environment_record_outcome(run->environment, OUTCOME_FAILED);
	run->verdict.has_figures = true;
	snprintf(run->verdict_text, sizeof(run->verdict_text), "%" PRIu64 " of %" PRIu64 " datagram%s sent to %s",
		 run->figures.sent, wanted, units_plural(wanted), run->group_text);
	if (all || run->deadline_passed)
		return;
	log_error(run->log, run->group_text, "%" PRIu64 " of %" PRIu64 " datagram%s not sent%s",
		  wanted - run->figures.sent, wanted, wanted == 1 ? " was" : "s were",
		  run->interrupted ? ": interrupted" : "");
}
