/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiver: every member gets a copy of every datagram, and expects -C of them from every sending queue. It waits
 * for its first datagram as long as it is let, and ends when all that was expected came, or nothing useful has come
 * for --idle-timeout.
 *
 * What does not look as if an mckey had sent it (its immediate value is not the number of its sending queue, as the
 * stock tool's is too) is foreign traffic in the group: told, but neither a result nor a failure. A datagram of a known
 * sender whose immediate was damaged is missing from its stream.
 */
#include <sys/resource.h>

#include "cmd/mckey/mckey.h"

enum {
	BATCH = 64,
	DEPTH_LEAST = 512,
	DEPTH_MOST = 2048,
	BURSTS = 4,		/* senders whose -C datagrams may come faster than they are counted */
	SLOTS_LEAST = 16,	/* of a member, however many there are */
	MEMORY_MOST = 32 << 20, /* for the slots of all members */
};

/*
 * A run ends this long after everything that was expected came: the queues of a stock sender with -c start one after
 * another, and the second may begin when the first is through.
 */
#define GRACE (200 * CLOCK_NS_PER_MS)

/*
 * Room for the longest datagram, not just for -S bytes: one that does not fit would put the queue pair out of order,
 * and anybody may send one. So it is told, and counted.
 */
static uint32_t slot_size(const struct member *member)
{
	return DATAGRAM_HEADER_SIZE + member->endpoint->datagram_most;
}

/* What one member may take: registered memory is locked, and users other than root may lock only so much. */
static uint32_t affordable_slots(const struct member *member)
{
	rlim_t memory = MEMORY_MOST, slots;
	struct rlimit locked;

	if (!getrlimit(RLIMIT_MEMLOCK, &locked) && locked.rlim_cur / 2 < memory)
		memory = locked.rlim_cur / 2;
	slots = memory / member->run->member_count / slot_size(member);
	return slots < SLOTS_LEAST ? SLOTS_LEAST : (uint32_t)slots;
}

static uint32_t least(uint32_t one, uint32_t other)
{
	return one < other ? one : other;
}

uint32_t receiver_depth(const struct member *member)
{
	uint64_t burst = member->run->count * BURSTS;
	uint32_t depth = burst < DEPTH_LEAST ? DEPTH_LEAST : burst > DEPTH_MOST ? DEPTH_MOST : (uint32_t)burst;

	if (!member->run->count)
		return 1;
	return least(least(depth, affordable_slots(member)), member->endpoint->domain->most_queue_entries);
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
	for (size_t i = 0; i < run->heard.count; i++)
		if (!source_complete(run, run->heard.sources[i]))
			return false;
	return run->heard.count > 0;
}

static void time_over(void *owner)
{
	run_end(owner, OUTCOME_OK);
}

static void watch(void *owner)
{
	struct mckey_run *run = owner;
	int64_t timeout = run->options->idle_timeout, silence = clock_now() - run->progress;

	if (silence < timeout)
		loop_timer_start(run->environment->loop, &run->idle, timeout - silence, watch, run);
	else
		run_end(run, OUTCOME_OK);
}

static void first_came(struct mckey_run *run)
{
	watch(run);
	if (WITH_PACE && run->options->duration)
		loop_timer_start(run->environment->loop, &run->over, run->options->duration, time_over, run);
}

/* After something changed that may complete the run, or make it incomplete. */
static void judge(struct mckey_run *run)
{
	if (run->phase != RUN_RECEIVING)
		return;
	if (receiver_has_all(run))
		loop_timer_start(run->environment->loop, &run->grace, GRACE, time_over, run);
	else
		loop_timer_stop(&run->grace);
}

void receiver_settled(struct mckey_run *run)
{
	if (run->phase == RUN_RECEIVING && !run->joined)
		run_end(run, OUTCOME_OK);
	else
		judge(run);
}

void receiver_start(struct mckey_run *run)
{
	run->phase = RUN_RECEIVING;
	environment_ready(run->environment, &run->group, "receiving data transfers");
	if (!run->heard.count)
		return;
	/* A sender was faster than our own last member. */
	run->progress = clock_now();
	first_came(run);
	judge(run);
}

/* What is wrong with a datagram is told once for each sender, and counted. */
static void check_content(struct mckey_run *run, struct source *source, struct window *window, uint32_t length,
			  bool damaged, const struct payload_difference *difference)
{
	char name[SOURCE_TEXT_SIZE];

	if (length != run->size) {
		window->wrong_length++;
		if (!source->wrong_length_told)
			log_error(run->log, source_text(source, name), "sends datagrams of %u byte%s: expected %u (-S)",
				  length, units_plural(length), run->size);
		source->wrong_length_told = true;
	}
	if (damaged) {
		window->damaged++;
		if (!source->damage_told)
			log_error(run->log, source_text(source, name),
				  "a datagram is damaged: byte %zu is 0x%02x instead of 0x%02x", difference->position,
				  difference->found, difference->expected);
		source->damage_told = true;
	}
}

static void count(struct member *member, const struct completion *completion, const uint8_t *slot)
{
	struct mckey_run *run = member->run;
	struct payload_difference difference;
	enum datagram_content content;
	struct datagram_mark mark;
	struct address address;
	struct source *source;
	struct window *window;
	bool was_complete;
	size_t before = run->heard.count;

	if (completion->length > member->slot_size - DATAGRAM_HEADER_SIZE || !completion->has_immediate ||
	    completion->immediate != completion->source_qpn) {
		run->foreign++;
		return;
	}
	datagram_source(slot, &address);
	source = source_find(&run->heard, completion->source_qpn, &address);
	if (!source)
		return;
	window = &source->windows[member - run->members];
	was_complete = window_complete(window, run->count);
	content = datagram_read(slot + DATAGRAM_HEADER_SIZE, completion->length, completion->source_qpn, &mark,
				&difference);
	if (!window_count(window, content == DATAGRAM_PLAIN ? NULL : &mark))
		return;
	figures_counted(run, completion->length, window_arrived(window) == 1);
	check_content(run, source, window, completion->length, content == DATAGRAM_DAMAGED, &difference);
	/* A sender that goes on after its -C must not keep us waiting for another's. */
	if (!was_complete)
		run->progress = run->traffic_ended;
	if (run->phase != RUN_RECEIVING)
		return;
	if (!before)
		first_came(run);
	if (run->heard.count > before || window_complete(window, run->count) != was_complete)
		judge(run);
}

void receiver_completion(struct member *member, const struct completion *completion)
{
	struct work work = receive_work(member, completion->tag);
	enum outcome outcome;

	count(member, completion, member->region->memory + work.offset);
	outcome = endpoint_post(member->endpoint, &work, 1);
	if (outcome)
		member_fail(member, outcome);
}
