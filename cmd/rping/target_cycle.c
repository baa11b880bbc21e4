/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/rping/target.h"
#include "core/units.h"

/* Send buffers of the control messages. The server's answer proves the delivery of what was in one before. */
enum {
	SOURCE,
	SINK
};

/* Fills the sink before a ping, so that -V detects a server that writes nothing. */
enum {
	SINK_FILL = 0xff
};

static bool is_measured(const struct target *target)
{
	return !WITH_EXTRAS || target->done >= (uint64_t)target->all->options->warmup;
}

static bool is_signalled(const struct target *target)
{
	return target->done % RPING_SIGNAL_EVERY == RPING_SIGNAL_EVERY - 1;
}

static void advertise(struct target *target, uint32_t index, enum target_state state)
{
	struct work send = control_send(&target->control, index);
	enum outcome outcome;

	/* The server's answer confirms delivery. A later signalled send frees the entry of the send queue. */
	send.unsignalled = index == SOURCE || !is_signalled(target);
	target_enter(target, state);
	outcome = endpoint_post(target->endpoint, &send, 1);
	if (outcome)
		target_finish(target, outcome);
}

static void duration_expired(void *context)
{
	struct target *target = context;

	target->duration_passed = true;
	if (target->state.current == TARGET_PACING)
		target_cycle_continue(target);
}

static void write_advertisement(struct target *target, uint32_t index, const struct region *region, size_t offset)
{
	control_write(&target->control, index,
		      &(struct advertisement){
			      .address = (uintptr_t)region->memory + offset,
			      .key = region->remote_key,
			      .size = target->size,
		      });
}

static void start_ping(struct target *target)
{
	const struct rping_options *options = target->all->options;
	bool first = target->done == target->first;
	int64_t now;

	if (first && rping_sweep(options)) {
		environment_begin_interval(target->all->environment);
		target->pace.next = 0; /* the slots of a size begin with its first ping */
	}
	if (is_signalled(target))
		target->uncompleted++;
	target->source_offset = payload_ping_write(target->source_region->memory, target->size,
						   ping_number(target->done), target->source_offset);
	write_advertisement(target, SOURCE, target->source_region, target->source_offset);
	if (options->validate || options->verbose)
		memset(target->sink_region->memory, SINK_FILL, target->size);
	now = clock_now();
	pace_start(&target->pace, now);
	if (is_measured(target)) {
		if (EXTRA(options->duration) && first)
			loop_timer_start(target->state.loop, &target->duration, options->duration, duration_expired,
					 target);
		target->sent_at = now;
		target->slot.from = pace_slot(&target->pace, now);
		ping_sent(&target->record, &target->slot);
	}
	advertise(target, SOURCE, TARGET_SOURCE_ADVERTISED);
}

/* What is the same for all pings of a size. */
static void begin_size(struct target *target)
{
	payload_ramp_write(target->source_region->memory, target->size);
	target->source_offset = 0;
	write_advertisement(target, SINK, target->sink_region, 0);
}

void target_cycle_begin(struct target *target)
{
	struct domain *domain = target->endpoint->domain;
	enum outcome outcome =
		region_create(domain, target->longest + PAYLOAD_RAMP, REGION_REMOTE_READ, &target->source_region);

	if (!outcome)
		outcome = region_create(domain, target->longest, REGION_REMOTE_WRITE, &target->sink_region);
	if (outcome) {
		target_finish(target, outcome);
		return;
	}
	begin_size(target);
	start_ping(target);
}

/* The pings of a size are answered. Begins the next size of a sweep; false if there is none. */
static bool next_size(struct target *target)
{
	uint32_t size = target_next_size(target);

	if (rping_sweep(target->all->options))
		environment_end_interval(target->all->environment);
	if (!size)
		return false;
	loop_timer_stop(&target->duration);
	loop_timer_stop(&target->pace_timer);
	target->duration_passed = false;
	target->first = target->done;
	target->passed = target->size;
	target->size = size;
	begin_size(target);
	return true;
}

static void pace_expired(void *context)
{
	start_ping(context);
}

/* Starts the next ping in its slot, without a loop iteration if the slot has begun. */
static void next_ping(struct target *target)
{
	int64_t wait = pace_wait(&target->pace, clock_now());

	if (!wait) {
		start_ping(target);
		return;
	}
	target_enter(target, TARGET_PACING);
	loop_timer_start(target->state.loop, &target->pace_timer, wait, pace_expired, target);
	loop_wake(target->state.loop, wait);
}

/*
 * When the server has written the sink, the completion of the signalled advertisement may be outstanding. The next
 * pings do not wait for it. The next signalled ping and the disconnect do.
 */
void target_cycle_continue(struct target *target)
{
	if (!target->last && !target_has_more(target))
		target->last = !next_size(target);
	if (target->uncompleted > (target->last ? 0 : 1)) {
		loop_timer_stop(&target->pace_timer);
		if (target->state.current != TARGET_DRAINING)
			target_enter(target, TARGET_DRAINING);
	} else if (target->last) {
		target_disconnect(target, OUTCOME_OK);
	} else {
		next_ping(target);
	}
}

static void stream_ping(const struct target *target, int64_t round_trip, bool verified)
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

/* A line on the terminal, as ping's. */
static void show_ping(const struct target *target, int64_t round_trip)
{
	char host[ADDRESS_TEXT_SIZE], time[UNITS_TEXT_SIZE];

	if (WITH_EXTRAS && environment_shows_events(target->all->environment))
		environment_print(
			target->all->environment, "%" PRIu32 " bytes from %s: seq=%" PRIu64 " time=%s", target->size,
			target->all->several ? target_name(target) : address_host(&target->dial.address, host),
			target->done, units_time(round_trip, time));
}

static void count_ping(struct target *target, int64_t now, bool verified)
{
	int64_t round_trip = now - target->sent_at;

	if (target->sent_at) {
		target->slot.to = pace_slot_end(&target->pace, now);
		ping_answered(&target->record, &target->slot, target->size, round_trip, verified);
		histogram_add(&target->all->figures.round_trip, round_trip);
		if (target->round_trips && !rping_sweep(target->all->options))
			histogram_add(target->round_trips, round_trip);
		stream_ping(target, round_trip, verified);
		show_ping(target, round_trip);
	} else {
		target->record.counts.warmup++;
	}
	target->sent_at = 0;
}

/* With several targets the label names the target; else the line has the form of the stock tool. */
static void print_ping(const struct target *target)
{
	FILE *output = target->all->environment->output;
	char label[ADDRESS_TEXT_SIZE + 16];

	snprintf(label, sizeof(label), "ping data%s%s", target->all->several ? ": " : "",
		 target->all->several ? target_name(target) : "");
	ping_print(output, label, target->sink_region->memory, target->size);
}

static void ping_finished(struct target *target)
{
	const struct rping_options *options = target->all->options;
	int64_t now = clock_now();
	bool same = options->validate && ping_verify(&target->state, target->endpoint, target->done,
						     target->sink_region->memory, target->size);

	count_ping(target, now, same);
	if (options->validate && !same) {
		target_disconnect(target, OUTCOME_FAILED);
		return;
	}
	if (options->verbose)
		print_ping(target);
	target->done++;
	target_cycle_continue(target);
}

static void go_ahead_received(struct target *target, const struct completion *completion)
{
	struct advertisement ignored;
	enum outcome outcome = control_receive(&target->control, target->endpoint, completion, &ignored);

	if (outcome) {
		target_finish(target, outcome);
		return;
	}
	rping_classic_completion(target->all->environment, "send");
	rping_classic_completion(target->all->environment, "recv");
	if (target->state.current == TARGET_SOURCE_ADVERTISED) {
		advertise(target, SINK, TARGET_SINK_ADVERTISED);
	} else if (target->state.current == TARGET_SINK_ADVERTISED) {
		ping_finished(target);
	} else {
		target_finish(target, ping_out_of_order(&target->state, target->endpoint, target->done));
	}
}

void target_cycle_completed(void *context, struct endpoint *endpoint, const struct completion *completion)
{
	struct target *target = context;

	(void)endpoint;
	if (completion->status != COMPLETION_OK) {
		target_finish(target, OUTCOME_FAILED);
	} else if (completion->kind == WORK_RECEIVE) {
		go_ahead_received(target, completion);
	} else {
		target->uncompleted--;
		if (target->state.current == TARGET_DRAINING)
			target_cycle_continue(target);
	}
}
