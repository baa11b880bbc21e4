/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sender: every member sends -C numbered datagrams, a window of them at a time. A datagram is sent when its
 * completion says so; whether it arrives, only the receivers know.
 */
#include <inttypes.h>

#include "cmd/mckey/mckey.h"

enum {
	BATCH = 16 /* work requests handed over at once: one doorbell for all of them */
};

static void fill(struct member *member)
{
	const struct mckey_run *run = member->run;
	struct work works[BATCH];
	enum outcome outcome;

	while (member->posted < run->count && member->posted - member->sent < member->slots) {
		uint32_t batch = 0;

		while (batch < BATCH && member->posted < run->count && member->posted - member->sent < member->slots) {
			uint32_t slot = member->posted % member->slots;
			size_t offset = (size_t)slot * member->slot_size;
			const struct datagram_mark mark = { .sequence = member->posted, .total = run->count };

			datagram_write(member->region->memory + offset, run->size, member->endpoint->queue_number,
				       &mark);
			works[batch++] = (struct work){
				.kind = WORK_SEND,
				.tag = slot,
				.region = member->region,
				.offset = offset,
				.length = run->size,
				.has_immediate = true,
				.immediate = member->endpoint->queue_number,
			};
			member->posted++;
		}
		outcome = endpoint_post(member->endpoint, works, batch);
		if (outcome) {
			member_fail(member, outcome);
			return;
		}
	}
}

void sender_settled(struct mckey_run *run)
{
	size_t sending = 0;

	if (run->phase != RUN_SENDING)
		return;
	for (size_t i = 0; i < run->member_count; i++)
		sending += run->members[i].state == MEMBER_JOINED && run->members[i].sent < run->count;
	if (!sending)
		run_end(run, OUTCOME_OK);
}

void sender_completion(struct member *member, const struct completion *completion)
{
	struct mckey_run *run = member->run;

	(void)completion;
	member->sent++;
	run->sent++;
	run->progress = clock_now();
	if (member->sent == run->count)
		sender_settled(run);
	else if (member->posted - member->sent <= member->slots / 2)
		fill(member);
}

static void watch(void *owner)
{
	struct mckey_run *run = owner;
	int64_t timeout = run->options->common.timeout, silence = clock_now() - run->progress;

	if (silence < timeout) {
		loop_timer_start(run->environment->loop, &run->idle, timeout - silence, watch, run);
		return;
	}
	log_error(run->log, run->group_text, "sending: timed out: the device completed nothing for %g s",
		  (double)timeout / (double)CLOCK_NS_PER_S);
	run_end(run, OUTCOME_FAILED);
}

void sender_start(struct mckey_run *run)
{
	run->phase = RUN_SENDING;
	run_say(run, "initiating data transfers");
	run->progress = clock_now();
	loop_timer_start(run->environment->loop, &run->idle, run->options->common.timeout, watch, run);
	for (size_t i = 0; i < run->member_count && run->phase == RUN_SENDING; i++) {
		struct member *member = &run->members[i];
		enum outcome outcome;

		if (member->state != MEMBER_JOINED)
			continue;
		member->slots = member->endpoint->options.send_depth;
		if (member->slots > run->count)
			member->slots = run->count;
		member->slot_size = run->size;
		outcome = region_create(member->endpoint->domain, (size_t)member->slots * member->slot_size,
					REGION_LOCAL, &member->region);
		if (outcome)
			member_fail(member, outcome);
		else
			fill(member);
	}
}

void sender_report(struct mckey_run *run)
{
	uint64_t wanted = (uint64_t)run->count * run->member_count;

	if (run->sent == wanted)
		run_say(run, "data transfers complete");
	for (size_t i = 0; i < run->member_count; i++) {
		const struct member *member = &run->members[i];

		if (member->region)
			run_tell(run, "QP %u sent %u of %u datagram%s of %u byte%s", member->endpoint->queue_number,
				 member->sent, run->count, plural(run->count), run->size, plural(run->size));
	}
	run_tell(run, "%" PRIu64 " of %" PRIu64 " datagram%s sent to %s", run->sent, wanted, plural(wanted),
		 run->group_text);
	if (run->sent == wanted)
		return;
	log_error(run->log, run->group_text, "%" PRIu64 " of %" PRIu64 " datagram%s not sent%s%s", wanted - run->sent,
		  wanted, wanted == 1 ? " was" : "s were", run->interrupted ? ": " : "",
		  run->interrupted ? run->interrupted : "");
	environment_note(run->environment, OUTCOME_FAILED);
}
