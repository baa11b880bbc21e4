/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiver: every member gets a copy of every datagram, and expects -C of them from every sending QP. The run waits
 * for its first datagram without a limit of its own. It ends GRACE after all expected datagrams have arrived, or after
 * --idle-timeout without a new one.
 *
 * A datagram whose immediate data is not the QP number of its sender is foreign traffic: mckey, also the stock one,
 * sends its QP number. Foreign datagrams are counted and printed, and do not fail the run. A datagram of mckey with
 * damaged immediate data is foreign, too, and so missing.
 */
#include <sys/param.h>
#include <sys/resource.h>

#include "cmd/mckey/mckey.h"

enum {
	BATCH = 64,
	DEPTH_LEAST = 512,
	DEPTH_MAX = 2048,
	BURSTS = 4,	       /* senders whose -C datagrams may all wait in the receive queue */
	SLOTS_LEAST = 16,      /* of a member, also above MEMORY_MAX */
	MEMORY_MAX = 32 << 20, /* bytes for the slots of all members */
};

/*
 * The run waits this long for another sender: the QPs of a stock sender with -c send one after another, and the second
 * may start when the first has finished.
 */
#define GRACE (200 * CLOCK_NS_PER_MS)

/*
 * A slot takes the longest datagram of the MTU, not only -S bytes: any host may send one, and a datagram that does not
 * fit moves the QP to the error state.
 */
static uint32_t slot_size(const struct member *member)
{
	return DATAGRAM_HEADER_SIZE + member->endpoint->max_datagram;
}

/* A member's share of MEMORY_MAX and of half of RLIMIT_MEMLOCK, as registered memory is locked. */
static uint32_t affordable_slots(const struct member *member)
{
	rlim_t memory = MEMORY_MAX, slots;
	struct rlimit locked;

	if (!getrlimit(RLIMIT_MEMLOCK, &locked) && locked.rlim_cur / 2 < memory)
		memory = locked.rlim_cur / 2;
	slots = memory / member->run->member_count / slot_size(member);
	return slots < SLOTS_LEAST ? SLOTS_LEAST : (uint32_t)slots;
}

uint32_t receiver_depth(const struct member *member)
{
	uint64_t burst = member->run->count * BURSTS;
	uint32_t depth = burst < DEPTH_LEAST ? DEPTH_LEAST : burst > DEPTH_MAX ? DEPTH_MAX : (uint32_t)burst;
	uint32_t slots = affordable_slots(member);

	if (!member->run->count)
		return 1;
	return MIN(MIN(depth, slots), member->endpoint->domain->max_qp_wr);
}

static struct work receive_work(const struct member *member, uint32_t slot)
{
	return (struct work){
		.kind = WORK_RECEIVE,
		.tag = slot,
		.region = member->region,
		.offset = (size_t)slot * member->slot_size,
		.length = member->slot_size,
	};
}

enum outcome receiver_prepare(struct member *member)
{
	struct work works[BATCH];
	enum outcome outcome;
	uint32_t slot = 0;

	if (!member->run->count)
		return OUTCOME_OK;
	member->slot_size = slot_size(member);
	member->slots = member->endpoint->options.receive_depth;
	outcome = region_create(member->endpoint->domain, (size_t)member->slots * member->slot_size, REGION_LOCAL,
				&member->region);
	while (!outcome && slot < member->slots) {
		uint32_t batch = 0;

		while (batch < BATCH && slot < member->slots)
			works[batch++] = receive_work(member, slot++);
		outcome = endpoint_post(member->endpoint, works, batch);
	}
	return outcome;
}

static bool source_complete(const struct mckey_run *run, const struct source *source)
{
	for (size_t i = 0; i < run->member_count; i++)
		if (run->members[i].state == MEMBER_JOINED && !window_complete(&source->windows[i], run->count))
			return false;
	return true;
}

bool receiver_has_all(const struct mckey_run *run)
{
	for (size_t i = 0; i < run->sources.count; i++)
		if (!source_complete(run, run->sources.entries[i]))
			return false;
	return run->sources.count > 0;
}

static void end_receiving(void *context)
{
	mckey_end(context, OUTCOME_OK);
}

static void receiver_check_idle(void *context)
{
	struct mckey_run *run = context;
	int64_t timeout = run->options->idle_timeout, silence = clock_now() - run->progress;

	if (silence < timeout)
		loop_timer_start(run->environment->loop, &run->idle, timeout - silence, receiver_check_idle, run);
	else
		mckey_end(run, OUTCOME_OK);
}

/* Starts the grace timer if every sender is complete, stops it otherwise. */
static void check_complete(struct mckey_run *run)
{
	if (run->phase != MCKEY_RECEIVING)
		return;
	if (receiver_has_all(run))
		loop_timer_start(run->environment->loop, &run->grace, GRACE, end_receiving, run);
	else
		loop_timer_stop(&run->grace);
}

void receiver_check_end(struct mckey_run *run)
{
	if (run->phase == MCKEY_RECEIVING && !run->joined)
		mckey_end(run, OUTCOME_OK);
	else
		check_complete(run);
}

void receiver_start(struct mckey_run *run)
{
	run->phase = MCKEY_RECEIVING;
	if (!environment_setup_done(run->environment, &run->group, "receiving data transfers") || !run->sources.count)
		return;
	/* Datagrams arrived before the last member had joined. */
	run->progress = clock_now();
	receiver_check_idle(run);
	check_complete(run);
}

/* Counts wrong lengths and damage, and logs the first of each for a sender. */
static void check_content(struct mckey_run *run, struct source *source, struct window *window, uint32_t length,
			  bool damaged, const struct payload_difference *difference)
{
	char name[SOURCE_TEXT_SIZE];

	if (length != run->size) {
		window->wrong_length++;
		if (!source->wrong_length_reported)
			log_error(run->log, source_text(source, name), "sends datagrams of %u byte%s: expected %u (-S)",
				  length, units_plural(length), run->size);
		source->wrong_length_reported = true;
	}
	if (damaged) {
		window->damaged++;
		if (!source->damage_reported)
			log_error(run->log, source_text(source, name),
				  "a datagram is damaged: byte %zu is 0x%02x instead of 0x%02x", difference->position,
				  difference->found, difference->expected);
		source->damage_reported = true;
	}
}

static void count_datagram(struct member *member, const struct completion *completion, const uint8_t *slot)
{
	struct mckey_run *run = member->run;
	struct payload_difference difference;
	enum datagram_content content;
	struct datagram_mark mark;
	struct address address;
	struct source *source;
	struct window *window;
	bool was_complete;
	size_t before = run->sources.count;

	if (completion->length > member->slot_size - DATAGRAM_HEADER_SIZE || !completion->has_immediate ||
	    completion->immediate != completion->source_qpn) {
		run->figures.foreign++;
		return;
	}
	datagram_source(slot, &address);
	source = source_find(&run->sources, completion->source_qpn, &address);
	if (!source)
		return;
	window = &source->windows[member - run->members];
	was_complete = window_complete(window, run->count);
	content = datagram_read(slot + DATAGRAM_HEADER_SIZE, completion->length, run->pattern, completion->source_qpn,
				&mark, &difference);
	if (!window_count(window, content == DATAGRAM_UNMARKED ? NULL : &mark))
		return;
	mckey_figures_counted(run, completion->length, window_arrived(window) == 1);
	check_content(run, source, window, completion->length, content == DATAGRAM_DAMAGED, &difference);
	/* A sender that sends more than -C is no progress: a run that misses datagrams of another must end. */
	if (!was_complete)
		run->progress = run->traffic_ended;
	if (run->phase != MCKEY_RECEIVING)
		return;
	if (!before)
		receiver_check_idle(run);
	if (run->sources.count > before || window_complete(window, run->count) != was_complete)
		check_complete(run);
}

void receiver_completion(struct member *member, const struct completion *completion)
{
	struct work work = receive_work(member, completion->tag);
	enum outcome outcome;

	count_datagram(member, completion, member->region->memory + work.offset);
	outcome = endpoint_post(member->endpoint, &work, 1);
	if (outcome)
		member_fail(member, outcome);
}
