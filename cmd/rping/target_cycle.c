/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/rping/target_state.h"
#include "core/payload.h"

/* Indices of control messages. Each advertisement is the same for every ping, and written once. */
enum {
	SOURCE,
	SINK
};

/* Fills the sink before a ping, so that a server that writes nothing does not pass the comparison. */
enum {
	SINK_UNTOUCHED = 0xff
};

static bool is_warm(const struct target *target)
{
	return !WITH_PACE || target->done >= (uint64_t)target->all->options->warmup;
}

static bool is_reported(const struct target *target)
{
	return target->done % RPING_REPORT_EVERY == RPING_REPORT_EVERY - 1;
}

static void advertise(struct target *target, uint32_t index, enum target_state state)
{
	struct work send = control_send(&target->control, index);
	enum outcome outcome;

	/* The server's answer proves delivery. A later signalled send on the same queue frees the slot. */
	send.silent = index == SOURCE || !is_reported(target);
	target_enter(target, state);
	outcome = endpoint_post(target->endpoint, &send, 1);
	if (outcome)
		target_finish(target, outcome);
}

static void duration_over(void *owner)
{
	struct target *target = owner;

	target->last = true;
	target->timed = true;
	if (target->state.now == TARGET_RESTING)
		target_cycle_go_on(target);
}

static void start_ping(struct target *target)
{
	const struct rping_options *options = target->all->options;
	int64_t now;

	if (is_reported(target))
		target->sending++;
	payload_ping_fill(target->source_region->memory, target->size, ping_number(target->done));
	if (options->validate || options->verbose)
		memset(target->sink_region->memory, SINK_UNTOUCHED, target->size);
	now = clock_now();
	pace_go(&target->pace, now);
	if (is_warm(target)) {
		if (WITH_PACE && options->duration && !target->record.counts.sent)
			loop_timer_start(target->state.loop, &target->duration, options->duration, duration_over,
					 target);
		target->sent_at = now;
		target->turn.from = pace_beat(&target->pace, now);
		ping_sent(&target->all->figures, &target->record, &target->turn);
	}
	advertise(target, SOURCE, TARGET_OFFERING_SOURCE);
}

static enum outcome offer_memory(struct target *target, uint32_t index, unsigned access, struct region **region)
{
	enum outcome outcome = region_create(target->endpoint->domain, target->size, access, region);

	if (outcome)
		return outcome;
	control_write(&target->control, index,
		      &(struct advertisement){
			      .address = (uintptr_t)(*region)->memory,
			      .key = (*region)->remote_key,
			      .size = target->size,
		      });
	return OUTCOME_OK;
}

void target_cycle_begin(struct target *target)
{
	enum outcome outcome = offer_memory(target, SOURCE, REGION_REMOTE_READ, &target->source_region);

	if (!outcome)
		outcome = offer_memory(target, SINK, REGION_REMOTE_WRITE, &target->sink_region);
	if (outcome)
		target_finish(target, outcome);
	else
		start_ping(target);
}

static void beat(void *owner)
{
	start_ping(owner);
}

/* Starts the next ping at its time, without a turn of the loop if it is due now. */
static void next_ping(struct target *target)
{
	int64_t wait = pace_wait(&target->pace, clock_now());

	if (!wait) {
		start_ping(target);
		return;
	}
	target_enter(target, TARGET_RESTING);
	loop_timer_start(target->state.loop, &target->beat, wait, beat, target);
	loop_wake(target->state.loop, wait);
}

/*
 * The server has written the sink, so our advertisement was delivered, but its completion may be outstanding. The next
 * pings do not wait for it. The next signalled send does, and so does the end.
 */
void target_cycle_go_on(struct target *target)
{
	bool last = target->last || !target_more_asked(target);

	if (target->sending > (last ? 0 : 1)) {
		loop_timer_stop(&target->beat);
		if (target->state.now != TARGET_SETTLING)
			target_enter(target, TARGET_SETTLING);
	} else if (last) {
		target_leave(target, OUTCOME_OK);
	} else {
		next_ping(target);
	}
}

static bool same_as_sent(const struct target *target)
{
	struct payload_difference difference;

	if (payload_equal(target->source_region->memory, target->sink_region->memory, target->size, &difference))
		return true;
	log_error(target->state.log, target->endpoint->name,
		  "ping %" PRIu64 ": what came back differs at byte %zu of %" PRIu32 ": sent 0x%02x, found 0x%02x",
		  target->done, difference.position, target->size, difference.expected, difference.found);
	return false;
}

static void stream(const struct target *target, int64_t round_trip, bool verified)
{
	struct report *record = environment_begin_record(target->all->environment, "ping");

	if (!record)
		return;
	report_text(record, "target", target_name(target));
	report_count(record, "sequence", target->done);
	report_time(record, "round_trip", round_trip);
	report_flag(record, "verified", verified);
	environment_end_record(target->all->environment);
}

static void count(struct target *target, int64_t now, bool verified)
{
	if (target->sent_at) {
		target->turn.to = pace_end(&target->pace, now);
		ping_answered(&target->all->figures, &target->record, &target->turn, now - target->sent_at, verified);
		stream(target, now - target->sent_at, verified);
	} else {
		ping_warmed_up(&target->all->figures, &target->record);
	}
	target->sent_at = 0;
}

/* Names the target only if there are several: scripts read the lines of the stock tool. */
static void print_ping(const struct target *target)
{
	FILE *output = environment_output(target->all->environment);
	char label[ADDRESS_TEXT_SIZE + 16];

	snprintf(label, sizeof(label), "ping data%s%s", target->all->several ? ": " : "",
		 target->all->several ? target_name(target) : "");
	ping_print(output, label, target->sink_region->memory, target->size);
}

static void ping_came_back(struct target *target)
{
	const struct rping_options *options = target->all->options;
	int64_t now = clock_now();
	bool same = options->validate && same_as_sent(target);

	count(target, now, same);
	if (options->validate && !same) {
		target_leave(target, OUTCOME_FAILED);
		return;
	}
	if (options->verbose)
		print_ping(target);
	target->done++;
	target_cycle_go_on(target);
}

static void go_ahead_came(struct target *target, const struct completion *completion)
{
	struct advertisement meaningless;
	enum outcome outcome = control_take(&target->control, target->endpoint, completion, &meaningless);

	if (outcome) {
		target_finish(target, outcome);
		return;
	}
	rping_classic_completion(target->all->environment, "send");
	rping_classic_completion(target->all->environment, "recv");
	if (target->state.now == TARGET_OFFERING_SOURCE) {
		advertise(target, SINK, TARGET_OFFERING_SINK);
	} else if (target->state.now == TARGET_OFFERING_SINK) {
		ping_came_back(target);
	} else {
		log_error(target->state.log, target->endpoint->name,
			  "ping %" PRIu64 ": a message out of order, while %s", target->done,
			  state_text(&target->state));
		target_finish(target, OUTCOME_FAILED);
	}
}

void target_cycle_completed(void *owner, struct endpoint *endpoint, const struct completion *completion)
{
	struct target *target = owner;

	(void)endpoint;
	if (completion->status != COMPLETION_OK) {
		target_finish(target, OUTCOME_FAILED);
	} else if (completion->kind == WORK_RECEIVE) {
		go_ahead_came(target, completion);
	} else {
		target->sending--;
		if (target->state.now == TARGET_SETTLING)
			target_cycle_go_on(target);
	}
}
