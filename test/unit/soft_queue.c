/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/unit/soft_queue.wrap */
/* Queue pairs of the user-space backend over a simulated network: test/unit/soft_network.h. */
#include "test/unit/soft_network.h"

#include <errno.h>

enum {
	GUARD = 16, /* bytes between the areas of two works */
	GUARD_BYTE = 0xee,
	SCRIBBLE = 0xa5,
	PLAN_MOST = 512,
};

/* What two ends agree on; what is left out of a test is filled in by pair_open(). */
struct terms {
	uint32_t mtu;
	uint32_t depth;
	uint32_t receive_depth;
	uint32_t psn[2]; /* first of each end's requests */
	unsigned retry_count, rnr_retry_count, ack_timeout;
	unsigned reads;
	bool no_reads;
	bool no_rnr_retry;
};

struct pair {
	struct soft_endpoint ends[2];
};

static struct soft_queue *queue_of(struct pair *pair, size_t end)
{
	return pair->ends[end].queue;
}

static void pair_agree(struct pair *pair, const struct terms *terms, size_t end, struct soft_agreement *agreement)
{
	struct host *host = &network->hosts[end];

	*agreement = (struct soft_agreement){
		.path = { .socket = socket_of(host),
			  .local = host->address,
			  .peer = network->hosts[!end].address,
			  .mtu = terms->mtu },
		.peer_queue = soft_queue_number(queue_of(pair, !end)),
		.first_psn_sent = terms->psn[end],
		.first_psn_expected = terms->psn[!end],
		.retry_count = terms->retry_count,
		.rnr_retry_count = terms->rnr_retry_count,
		.ack_timeout = terms->ack_timeout,
		.reads_out = terms->reads,
		.reads_in = terms->reads,
	};
}

static void endpoint_prepare(struct soft_endpoint *endpoint, struct host *host, enum endpoint_kind kind, uint32_t sends,
			     uint32_t receives)
{
	memset(endpoint, 0, sizeof(*endpoint));
	endpoint->base.transport = &host->transport.base;
	endpoint->base.kind = kind;
	endpoint->base.options.send_depth = sends;
	endpoint->base.options.receive_depth = receives;
	strcpy(endpoint->base.name, "peer");
	assert_int_equal(soft_queue_create(endpoint), OUTCOME_OK);
	assert_int_equal(endpoint->base.queue_number, soft_queue_number(endpoint->queue));
}

static void pair_open(struct pair *pair, struct terms *terms)
{
	struct soft_agreement agreement;

	terms->mtu = terms->mtu ? terms->mtu : 1024;
	terms->depth = terms->depth ? terms->depth : 16;
	terms->receive_depth = terms->receive_depth ? terms->receive_depth : terms->depth;
	terms->retry_count = terms->retry_count ? terms->retry_count : 7;
	terms->rnr_retry_count = terms->no_rnr_retry ? 0 : terms->rnr_retry_count ? terms->rnr_retry_count : 7;
	terms->ack_timeout = terms->ack_timeout ? terms->ack_timeout : 14;
	terms->reads = terms->no_reads ? 0 : terms->reads ? terms->reads : 16;
	for (size_t end = 0; end < 2; end++)
		endpoint_prepare(&pair->ends[end], &network->hosts[end], ENDPOINT_CONNECTION, terms->depth,
				 terms->receive_depth);
	for (size_t end = 0; end < 2; end++) {
		pair_agree(pair, terms, end, &agreement);
		soft_queue_connect(queue_of(pair, end), &agreement);
		soft_queue_start(queue_of(pair, end));
	}
}

static void pair_close(struct pair *pair)
{
	for (size_t end = 0; end < 2; end++) {
		soft_queue_destroy(queue_of(pair, end));
		assert_null(pair->ends[end].queue);
	}
}

static struct region *region_of(size_t host, size_t length, unsigned access)
{
	struct region *region;

	assert_int_equal(soft_region_create(&network->hosts[host].transport.domain, length, access, &region),
			 OUTCOME_OK);
	return region;
}

/* ---- runs: both ends post works of all kinds at once, and every byte is checked ---- */

struct plan {
	enum work_kind kind;
	uint32_t length;
	size_t offset; /* in the direction's local and remote region */
	uint32_t immediate;
	bool has_immediate;
	bool silent;
};

/* Of what one end posts. */
struct direction {
	struct plan plans[PLAN_MOST];
	size_t count, posted, finished;
	size_t sends, receives_posted, received; /* of its SENDs, at the other end */
	struct region *local, *remote;
};

struct run {
	struct pair pair;
	struct terms terms;
	struct direction directions[2];
	size_t held_receives; /* not posted before somebody lets them */
	int64_t taken;	      /* virtual time */
	unsigned failed_status;
	bool may_fail;
};

static uint8_t pattern(size_t direction, size_t index, size_t at)
{
	return (uint8_t)(direction * 97 + index * 31 + at * 7 + (at >> 8) + 1);
}

static void pattern_fill(uint8_t *bytes, size_t direction, const struct plan *plan, size_t index)
{
	for (size_t at = 0; at < plan->length; at++)
		bytes[at] = pattern(direction, index, at);
}

static void pattern_check(const uint8_t *bytes, size_t direction, const struct plan *plan, size_t index)
{
	for (size_t at = 0; at < plan->length; at++)
		if (bytes[at] != pattern(direction, index, at))
			fail_msg("work %zu of end %zu: byte %zu of %u is wrong", index, direction, at, plan->length);
}

static void run_add(struct run *run, size_t direction, struct plan plan)
{
	struct direction *way = &run->directions[direction];

	assert_true(way->count < PLAN_MOST);
	plan.offset = GUARD;
	if (way->count)
		plan.offset = way->plans[way->count - 1].offset + way->plans[way->count - 1].length + GUARD;
	way->plans[way->count++] = plan;
	way->sends += plan.kind == WORK_SEND;
}

static uint32_t random_length(uint32_t mtu, enum work_kind kind)
{
	switch (network_roll(8)) {
	case 0:
		return network_roll(3);
	case 1:
		return mtu - 1 + network_roll(3);
	case 2:
		return (1 + network_roll(4)) * mtu;
	case 3:
		return network_roll(kind == WORK_READ ? 40 * mtu : 20 * mtu);
	case 4:
		return network_roll(8 * mtu);
	default:
		return network_roll(200);
	}
}

static void run_plan_randomly(struct run *run, size_t works)
{
	static const enum work_kind kinds[] = { WORK_SEND, WORK_SEND, WORK_WRITE, WORK_READ };

	for (size_t direction = 0; direction < 2; direction++)
		for (size_t index = 0; index < works; index++) {
			enum work_kind kind = kinds[network_roll(LENGTH(kinds))];

			run_add(run, direction,
				(struct plan){
					.kind = kind,
					.length = random_length(run->terms.mtu, kind),
					.has_immediate = kind == WORK_SEND && network_roll(2),
					.immediate = network_roll(UINT32_MAX),
					.silent = index + 1 < works && index % run->terms.depth && network_roll(2),
				});
		}
}

static void run_post_receives(struct run *run, size_t direction)
{
	struct direction *way = &run->directions[direction];
	struct soft_queue *queue = queue_of(&run->pair, !direction);

	while (queue && way->receives_posted + run->held_receives < way->sends &&
	       way->receives_posted - way->received < run->terms.receive_depth) {
		size_t send = way->receives_posted++, index = 0;

		while (way->plans[index].kind != WORK_SEND || send--)
			index++;
		/* Sometimes longer than the message, into the guard. */
		assert_int_equal(
			soft_queue_post(queue,
					&(struct work){ .kind = WORK_RECEIVE,
							.tag = (uint32_t)index,
							.region = way->remote,
							.offset = way->plans[index].offset,
							.length = way->plans[index].length + network_roll(GUARD) },
					1),
			OUTCOME_OK);
	}
}

static void run_post(struct run *run, size_t direction)
{
	struct direction *way = &run->directions[direction];

	while (queue_of(&run->pair, direction) && way->posted < way->count &&
	       way->posted - way->finished < run->terms.depth) {
		const struct plan *plan = &way->plans[way->posted];
		struct work work = {
			.kind = plan->kind,
			.tag = (uint32_t)way->posted,
			.region = way->local,
			.offset = plan->offset,
			.length = plan->length,
			.remote_address = (uintptr_t)(way->remote->memory + plan->offset),
			.remote_key = way->remote->remote_key,
			.silent = plan->silent,
			.has_immediate = plan->has_immediate,
			.immediate = plan->immediate,
		};

		way->posted++;
		assert_int_equal(soft_queue_post(queue_of(&run->pair, direction), &work, 1), OUTCOME_OK);
	}
}

/* Where the bytes of a work arrive. */
static uint8_t *target_of(const struct direction *way, const struct plan *plan)
{
	return (plan->kind == WORK_READ ? way->local : way->remote)->memory + plan->offset;
}

/* What is done must not be done again: anything that touches the bytes later shows. */
static void scribble(const struct direction *way, const struct plan *plan)
{
	memset(target_of(way, plan), SCRIBBLE, plan->length);
}

static void run_received(struct run *run, size_t direction, const struct completion *completion)
{
	struct direction *way = &run->directions[direction];
	const struct plan *plan = &way->plans[completion->tag];
	size_t before = 0;

	for (size_t index = 0; index < completion->tag; index++)
		before += way->plans[index].kind == WORK_SEND;
	assert_int_equal(before, way->received);
	assert_int_equal(completion->length, plan->length);
	assert_int_equal(completion->has_immediate, plan->has_immediate);
	if (plan->has_immediate)
		assert_int_equal(completion->immediate, plan->immediate);
	pattern_check(target_of(way, plan), direction, plan, completion->tag);
	scribble(way, plan);
	way->received++;
	run_post_receives(run, direction);
}

static void run_finished(struct run *run, size_t direction, const struct completion *completion)
{
	struct direction *way = &run->directions[direction];

	assert_true(completion->tag >= way->finished);
	for (; way->finished <= completion->tag; way->finished++) {
		const struct plan *plan = &way->plans[way->finished];

		assert_true(plan->silent || way->finished == completion->tag);
		if (plan->kind == WORK_SEND)
			continue;
		pattern_check(target_of(way, plan), direction, plan, way->finished);
		scribble(way, plan);
	}
	run_post(run, direction);
}

static bool run_is_done(const struct run *run)
{
	for (size_t direction = 0; direction < 2; direction++) {
		const struct direction *way = &run->directions[direction];

		if (way->finished < way->count || way->received < way->sends)
			return false;
	}
	return true;
}

static void run_completed(void *owner, struct host *host, const struct told *told)
{
	struct run *run = owner;
	size_t end = (size_t)(host - network->hosts);

	if (told->endpoint != &run->pair.ends[end])
		return;
	if (told->completion.status != COMPLETION_OK) {
		if (!run->may_fail)
			fail_msg("work of end %zu failed: %s", end, completion_status_text(told->completion.status));
		run->failed_status = told->completion.status;
		network->done = true;
		return;
	}
	if (told->completion.kind == WORK_RECEIVE)
		run_received(run, !end, &told->completion);
	else
		run_finished(run, end, &told->completion);
	network->done |= run_is_done(run);
}

static void run_prepare(struct run *run)
{
	for (size_t direction = 0; direction < 2; direction++) {
		struct direction *way = &run->directions[direction];
		size_t length = GUARD;

		if (way->count)
			length = way->plans[way->count - 1].offset + way->plans[way->count - 1].length + GUARD;
		way->local = region_of(direction, length, REGION_READ_SINK);
		way->remote = region_of(!direction, length, REGION_REMOTE_READ | REGION_REMOTE_WRITE);
		memset(way->local->memory, GUARD_BYTE, length);
		memset(way->remote->memory, GUARD_BYTE, length);
		for (size_t index = 0; index < way->count; index++) {
			const struct plan *plan = &way->plans[index];
			struct region *source = plan->kind == WORK_READ ? way->remote : way->local;

			pattern_fill(source->memory + plan->offset, direction, plan, index);
			memset(target_of(way, plan), 0, plan->length);
		}
	}
	network->completed = run_completed;
	network->owner = run;
}

static void run_begin(struct run *run)
{
	run_prepare(run);
	run->taken = network->now;
	for (size_t direction = 0; direction < 2; direction++)
		run_post_receives(run, direction);
	for (size_t direction = 0; direction < 2; direction++)
		run_post(run, direction);
}

/* All that was done is still as it was scribbled over, and nothing beside it was touched. */
static void run_check_end(const struct run *run)
{
	for (size_t direction = 0; direction < 2; direction++) {
		const struct direction *way = &run->directions[direction];
		size_t end = 0;

		for (size_t index = 0; index <= way->count; index++) {
			const struct plan *plan = &way->plans[index];
			size_t start = index < way->count ? plan->offset : way->local->length;

			for (; end < start; end++) {
				assert_int_equal(way->local->memory[end], GUARD_BYTE);
				assert_int_equal(way->remote->memory[end], GUARD_BYTE);
			}
			if (index == way->count)
				break;
			for (size_t at = 0; at < plan->length; at++)
				if (target_of(way, plan)[at] != SCRIBBLE)
					fail_msg("work %zu of end %zu was carried out again", index, direction);
			end = start + plan->length;
		}
	}
}

static void run_close(struct run *run)
{
	pair_close(&run->pair);
	for (size_t direction = 0; direction < 2; direction++) {
		soft_region_destroy(run->directions[direction].local);
		soft_region_destroy(run->directions[direction].remote);
	}
}

static void run_finish(const struct run *run)
{
	if (!run_is_done(run) && !network_run(600 * CLOCK_NS_PER_S))
		fail_msg("hangs: %zu and %zu of %zu and %zu done", run->directions[0].finished,
			 run->directions[1].finished, run->directions[0].count, run->directions[1].count);
}

static void run_through(struct run *run)
{
	pair_open(&run->pair, &run->terms);
	run_begin(run);
	run_finish(run);
	run->taken = network->now - run->taken;
	assert_int_equal(network->hosts[0].failures + network->hosts[1].failures, 0);
	/* Late packets change nothing. */
	network_run(CLOCK_NS_PER_S / 2);
	run_check_end(run);
	run_close(run);
}

static struct run *run_new(void)
{
	struct run *run = calloc(1, sizeof(*run));

	assert_non_null(run);
	return run;
}

/* ---- every kind and size ---- */

static void every_kind_and_size(void **state)
{
	(void)state;
	for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2) {
		static const enum work_kind kinds[] = { WORK_SEND, WORK_WRITE, WORK_READ };

		for (size_t kind = 0; kind < LENGTH(kinds); kind++) {
			const uint32_t lengths[] = { 0,	      1,       2,	3,     4,     mtu - 1,	mtu,
						     mtu + 1, 2 * mtu, 3 * mtu, 65535, 65536, 100 * mtu };
			struct run *run = run_new();

			network_open(mtu);
			run->terms.mtu = mtu;
			for (size_t index = 0; index < LENGTH(lengths); index++)
				for (size_t direction = 0; direction < 2; direction++)
					run_add(run, direction,
						(struct plan){ .kind = kinds[kind],
							       .length = lengths[index],
							       .has_immediate = kinds[kind] == WORK_SEND && index % 2,
							       .immediate = 7 });
			run_through(run);
			assert_int_equal(network->lost, 0);
			free(run);
			network_close();
		}
	}
}

/* ---- thousands of seeded runs ---- */

static bool is_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "vgpreload");
}

static unsigned seeds(unsigned count)
{
	const char *text = getenv("SOFT_QUEUE_SEEDS");

	if (text)
		return (unsigned)strtoul(text, NULL, 10);
#ifdef __SANITIZE_ADDRESS__
	count /= 4;
#endif
	return is_valgrind() ? count / 100 + 1 : count;
}

static void one_run(uint64_t seed, unsigned loss, unsigned other, size_t works)
{
	static const uint32_t mtus[] = { 256, 512, 1024, 2048, 4096 };
	struct run *run = run_new();

	network_open(seed);
	network->loss = loss;
	network->repeat = network->reorder = network->damage = other;
	run->terms = (struct terms){
		.mtu = mtus[network_roll(LENGTH(mtus))],
		.depth = 1 + network_roll(20),
		.psn = { network_roll(2) ? network_roll(PSN_MASK + 1) : PSN_MASK - network_roll(60),
			 network_roll(PSN_MASK + 1) },
		.reads = 1 + network_roll(16),
		.ack_timeout = 14 + network_roll(6),
	};
	if (!network_roll(4))
		network->window = (4 + network_roll(16)) * run->terms.mtu;
	run_plan_randomly(run, works);
	run_through(run);
	free(run);
	network_close();
}

static void many_runs(const char *what, unsigned loss, unsigned other, unsigned count)
{
	unsigned total = seeds(count);

	for (unsigned seed = 0; seed < total; seed++) {
		if (getenv("SOFT_QUEUE_TRACE"))
			fprintf(stderr, "%s: seed %u\n", what, seed);
		one_run(seed * 1000 + loss, loss, other, 30);
	}
}

static void runs_without_loss(void **state)
{
	(void)state;
	many_runs("without loss", 0, 0, 400);
}

static void runs_with_one_per_cent(void **state)
{
	(void)state;
	many_runs("1 %", 10, 10, 1000);
}

static void runs_with_five_per_cent(void **state)
{
	(void)state;
	many_runs("5 %", 50, 50, 1000);
}

static void runs_with_twenty_per_cent(void **state)
{
	(void)state;
	many_runs("20 %", 200, 50, 1000);
}

static void runs_with_reordering(void **state)
{
	(void)state;
	many_runs("reordering", 0, 200, 600);
}

/* ---- speed in virtual time ---- */

/* MB/s of works of that kind in one direction, on a line of 10 Gbit/s and a round trip of some 30 us. */
static double speed(enum work_kind kind, uint32_t length, size_t works, unsigned loss)
{
	struct run *run = run_new();
	double megabytes;

	network_open(loss + 1);
	network->loss = loss;
	for (size_t index = 0; index < works; index++)
		run_add(run, 0, (struct plan){ .kind = kind, .length = length });
	run_through(run);
	megabytes = (double)length * (double)works / 1e6 / ((double)run->taken / 1e9);
	if (getenv("SOFT_QUEUE_TRACE"))
		fprintf(stderr, "%s of %u bytes, loss %u/1000: %.1f MB/s, %llu packets, %llu overflowed\n",
			work_kind_text(kind), length, loss, megabytes, (unsigned long long)network->sent,
			(unsigned long long)network->overflowed);
	free(run);
	network_close();
	return megabytes;
}

static void speed_survives_loss(void **state)
{
	/* On a line of 1,250 MB/s; what is reached lies well above. */
	static const struct {
		enum work_kind kind;
		unsigned loss;
		double least;
	} rows[] = {
		{ WORK_SEND, 0, 1100 }, { WORK_SEND, 10, 300 }, { WORK_SEND, 50, 80 }, { WORK_SEND, 200, 2 },
		{ WORK_READ, 0, 1100 }, { WORK_READ, 10, 250 }, { WORK_READ, 50, 80 }, { WORK_READ, 200, 2 },
	};

	(void)state;
	for (size_t index = 0; index < LENGTH(rows); index++)
		assert_true(speed(rows[index].kind, 65536, is_valgrind() ? 8 : 128, rows[index].loss) >=
			    (is_valgrind() ? 0 : rows[index].least));
}

/* ---- a receiver that is slow to post ---- */

static struct run *run_of_sends(size_t count, size_t held, unsigned rnr_retry_count)
{
	struct run *run = run_new();

	network_open(count + held);
	run->terms.rnr_retry_count = rnr_retry_count;
	run->terms.no_rnr_retry = !rnr_retry_count;
	run->held_receives = held;
	for (size_t index = 0; index < count; index++)
		run_add(run, 0, (struct plan){ .kind = WORK_SEND, .length = 3000 });
	pair_open(&run->pair, &run->terms);
	return run;
}

static void run_end(struct run *run)
{
	run_close(run);
	free(run);
	network_close();
}

static void not_ready_waits_for_ever(void **state)
{
	struct run *run = run_of_sends(10, 7, 7);

	(void)state;
	run_begin(run);
	assert_false(network_run(5 * CLOCK_NS_PER_S));
	assert_int_equal(run->directions[0].finished, 3);
	run->held_receives = 0;
	run_post_receives(run, 0);
	run->taken = network->now;
	assert_true(network_run(CLOCK_NS_PER_S));
	assert_true(network->now - run->taken < 20 * CLOCK_NS_PER_MS);
	run_check_end(run);
	run_end(run);
}

static void not_ready_is_given_up(void **state)
{
	(void)state;
	for (unsigned count = 0; count < 7; count += 3) {
		struct run *run = run_of_sends(4, 3, count);

		run->may_fail = true;
		run_begin(run);
		assert_true(network_run(5 * CLOCK_NS_PER_S));
		assert_int_equal(run->failed_status, COMPLETION_RNR_EXCEEDED);
		assert_int_equal(run->directions[0].finished, 1);
		run_end(run);
	}
}

/* ---- a peer that is gone ---- */

static void dead_peer_is_noticed(void **state)
{
	struct run *run = run_of_sends(4, 3, 7);
	int64_t round = INT64_C(4096) << 14;

	(void)state;
	run->may_fail = true;
	network->hosts[1].dead = true;
	run_begin(run);
	run->taken = network->now;
	assert_true(network_run(60 * CLOCK_NS_PER_S));
	assert_int_equal(run->failed_status, COMPLETION_RETRY_EXCEEDED);
	/* Eight rounds of what was agreed on, or four tries in each of them. */
	assert_true(network->now - run->taken >= 8 * round);
	assert_true(network->now - run->taken < 3 * CLOCK_NS_PER_S);
	run_end(run);
}

static void idle_connection_is_probed(void **state)
{
	struct run *run = run_of_sends(2, 0, 7);
	uint64_t sent;

	(void)state;
	run_begin(run);
	assert_true(network_run(CLOCK_NS_PER_S));
	sent = network->sent;
	/* The probes cost nothing: no work, no receive, few packets. */
	assert_false(network_run(60 * CLOCK_NS_PER_S));
	assert_in_range(network->sent - sent, 10, 80);
	assert_int_equal(network->hosts[0].failures + network->hosts[1].failures, 0);
	network->hosts[1].dead = true;
	assert_false(network_run(20 * CLOCK_NS_PER_S));
	assert_int_equal(network->hosts[0].failures, 1);
	assert_string_equal(network->hosts[0].failure, "the peer does not answer");
	run_end(run);
}

/* A probe is under way when the command posts: its work carries the news. */
static void work_behind_a_probe_fails(void **state)
{
	struct run *run = run_of_sends(2, 0, 7);

	(void)state;
	run->may_fail = true;
	run_prepare(run);
	network->hosts[1].dead = true;
	soft_queue_probe(queue_of(&run->pair, 0));
	soft_queue_probe(queue_of(&run->pair, 0));
	run_post(run, 0);
	assert_true(network_run(60 * CLOCK_NS_PER_S));
	assert_int_equal(run->failed_status, COMPLETION_RETRY_EXCEEDED);
	assert_int_equal(network->hosts[0].failures, 0);
	run_end(run);
}

/* ---- access violations ---- */

static void violation(struct work work, unsigned access, unsigned loss, uint32_t key_error, uint64_t address_error)
{
	struct run *run = run_new();
	uint8_t before[9000];
	struct region *region, *source;

	network_open(work.length + loss + key_error + address_error + 1);
	network->loss = loss;
	run->may_fail = true;
	pair_open(&run->pair, &run->terms);
	run_prepare(run);
	region = region_of(1, sizeof(before), access);
	for (size_t at = 0; at < sizeof(before); at++)
		before[at] = region->memory[at] = (uint8_t)(at * 3);
	source = region_of(0, sizeof(before), 0);
	work.region = source;
	work.remote_address = (uintptr_t)region->memory + address_error;
	work.remote_key = region->remote_key + key_error;
	assert_int_equal(soft_queue_post(queue_of(&run->pair, 0), &work, 1), OUTCOME_OK);
	assert_true(network_run(60 * CLOCK_NS_PER_S));
	assert_int_equal(run->failed_status, COMPLETION_REMOTE_ACCESS);
	assert_memory_equal(before, region->memory, sizeof(before));
	assert_int_equal(network->hosts[1].failures, 1);
	/* Nothing is taken any more. */
	work.remote_address -= address_error;
	work.remote_key -= key_error;
	assert_int_equal(soft_queue_post(queue_of(&run->pair, 0), &work, 1), OUTCOME_OK);
	network_run(CLOCK_NS_PER_S);
	assert_memory_equal(before, region->memory, sizeof(before));
	soft_region_destroy(region);
	soft_region_destroy(source);
	run_end(run);
}

static void violations_change_nothing(void **state)
{
	static const enum work_kind kinds[] = { WORK_READ, WORK_WRITE };

	(void)state;
	for (size_t kind = 0; kind < LENGTH(kinds); kind++)
		for (unsigned loss = 0; loss <= 200; loss += 200) {
			unsigned right = kinds[kind] == WORK_READ ? REGION_REMOTE_READ : REGION_REMOTE_WRITE;
			unsigned wrong = kinds[kind] == WORK_READ ? REGION_REMOTE_WRITE : REGION_REMOTE_READ;

			violation((struct work){ .kind = kinds[kind], .length = 16 }, wrong, loss, 0, 0);
			violation((struct work){ .kind = kinds[kind], .length = 5000 }, right, loss, 1, 0);
			violation((struct work){ .kind = kinds[kind], .length = 9000 }, right, loss, 0, 1);
			violation((struct work){ .kind = kinds[kind], .length = 1 }, right, loss, 0, 9000);
			violation((struct work){ .kind = kinds[kind], .length = 5000 }, right, loss, 0, UINT64_MAX);
			violation((struct work){ .kind = kinds[kind], .length = 5000 }, right, loss, 0,
				  UINT64_MAX - 8000);
		}
}

struct counted {
	size_t good, wanted;
};

static void count_completions(void *owner, struct host *host, const struct told *told)
{
	struct counted *counted = owner;

	(void)host;
	assert_int_equal(told->completion.status, COMPLETION_OK);
	network->done = ++counted->good == counted->wanted;
}

static void nothing_needs_no_key(void **state)
{
	struct run *run = run_of_sends(1, 1, 7);
	struct work works[2] = { { .kind = WORK_READ, .tag = 1 }, { .kind = WORK_WRITE, .tag = 2 } };
	struct counted counted = { .wanted = 2 };

	(void)state;
	run_prepare(run);
	network->completed = count_completions;
	network->owner = &counted;
	works[0].region = works[1].region = run->directions[0].local;
	assert_int_equal(soft_queue_post(queue_of(&run->pair, 0), works, 2), OUTCOME_OK);
	assert_true(network_run(CLOCK_NS_PER_S));
	run_end(run);
}

/* A region that goes in the middle of a READ or WRITE is out of reach at once. */
static void region_goes_under_way(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < 2; turn++) {
		struct run *run = run_of_sends(1, 1, 7);
		struct region *target = region_of(1, 8 << 20, REGION_REMOTE_READ | REGION_REMOTE_WRITE);
		struct region *local = region_of(0, 8 << 20, 0);
		struct work work = {
			.kind = turn ? WORK_READ : WORK_WRITE,
			.region = local,
			.length = 8 << 20,
			.remote_address = (uintptr_t)target->memory,
			.remote_key = target->remote_key,
		};

		run->may_fail = true;
		run_prepare(run);
		assert_int_equal(soft_queue_post(queue_of(&run->pair, 0), &work, 1), OUTCOME_OK);
		network_run(CLOCK_NS_PER_MS);
		soft_region_destroy(target);
		assert_ptr_equal(network->hosts[1].transport.unwanted, target);
		network->hosts[1].transport.unwanted = NULL;
		soft_region_free((struct soft_region *)target);
		assert_true(network_run(60 * CLOCK_NS_PER_S));
		assert_int_equal(run->failed_status, COMPLETION_REMOTE_ACCESS);
		soft_region_destroy(local);
		run_end(run);
	}
}

/* ---- messages that do not fit, requests that make no sense ---- */

static unsigned length_errors, other_errors;

static void count_errors(void *owner, struct host *host, const struct told *told)
{
	(void)owner;
	if (told->completion.status == COMPLETION_LENGTH && host == &network->hosts[1])
		length_errors++;
	else if (told->completion.status != COMPLETION_OK)
		other_errors += told->completion.status == COMPLETION_REMOTE_REQUEST;
}

static void longer_than_the_receive(void **state)
{
	(void)state;
	for (uint32_t length = 1; length < 5000; length += 700) {
		struct run *run = run_of_sends(1, 1, 7);
		struct region *target = region_of(1, 5000, 0);
		struct region *source = region_of(0, 5000, 0);
		struct work receive = { .kind = WORK_RECEIVE, .region = target, .length = length - 1 };
		struct work send = { .kind = WORK_SEND, .region = source, .length = length };

		length_errors = other_errors = 0;
		run_prepare(run);
		network->completed = count_errors;
		memset(source->memory, 1, 5000);
		assert_int_equal(soft_queue_post(queue_of(&run->pair, 1), &receive, 1), OUTCOME_OK);
		assert_int_equal(soft_queue_post(queue_of(&run->pair, 0), &send, 1), OUTCOME_OK);
		network_run(CLOCK_NS_PER_S);
		assert_int_equal(length_errors, 1);
		assert_int_equal(other_errors, 1);
		assert_int_equal(network->hosts[0].failures + network->hosts[1].failures, 0);
		assert_int_equal(target->memory[length - 1], 0);
		soft_region_destroy(source);
		soft_region_destroy(target);
		run_end(run);
	}
}

/* The acknowledgements that host 1 says. */
static unsigned said_sequence, said_invalid, said_access, said_rnr, said_good, said_data;
static uint32_t said_psn;

static bool listen_to_answers(struct network *where, const struct host *from, struct packet *packet)
{
	if (from != &where->hosts[1])
		return true;
	said_psn = packet->psn;
	if (packet->opcode != OPCODE_ACKNOWLEDGE) {
		said_data++;
		return true;
	}
	switch (syndrome_kind(packet->acknowledgement.syndrome)) {
	case SYNDROME_ACK:
		assert_int_equal(packet->acknowledgement.syndrome, CREDITS_UNLIMITED);
		said_good++;
		break;
	case SYNDROME_RNR:
		said_rnr++;
		break;
	default:
		said_sequence += syndrome_value(packet->acknowledgement.syndrome) == NAK_SEQUENCE;
		said_invalid += syndrome_value(packet->acknowledgement.syndrome) == NAK_INVALID_REQUEST;
		said_access += syndrome_value(packet->acknowledgement.syndrome) == NAK_REMOTE_ACCESS;
		break;
	}
	return true;
}

/* A responder at host 1 for packets made by hand; its memory is all ones. */
struct bench {
	struct pair pair;
	struct terms terms;
	struct region *region;
	uint32_t psn;
};

static const uint8_t zeros[PACKET_PAYLOAD_MOST];

static void bench_open(struct bench *bench, unsigned reads)
{
	*bench = (struct bench){ .terms = { .psn = { 100, 200 }, .reads = reads, .no_reads = !reads }, .psn = 100 };
	network_open(1);
	pair_open(&bench->pair, &bench->terms);
	bench->region = region_of(1, 65536, REGION_REMOTE_READ | REGION_REMOTE_WRITE);
	memset(bench->region->memory, 1, 65536);
	network->tap = listen_to_answers;
	said_sequence = said_invalid = said_access = said_rnr = said_good = said_data = 0;
	length_errors = other_errors = 0;
	network->completed = count_errors;
}

static void bench_close(struct bench *bench)
{
	soft_region_destroy(bench->region);
	pair_close(&bench->pair);
	network_close();
}

static struct packet bench_packet(const struct bench *bench, uint8_t opcode, uint32_t psn, size_t length)
{
	return (struct packet){
		.opcode = opcode,
		.ack_request = true,
		.pkey = PACKET_PKEY,
		.destination = soft_queue_number(bench->pair.ends[1].queue),
		.psn = psn,
		.remote = { .address = (uintptr_t)bench->region->memory,
			    .key = bench->region->remote_key,
			    .length = (uint32_t)length },
		.pad = packet_pad(length),
		.payload = zeros,
		.length = opcode == OPCODE_READ_REQUEST ? 0 : length,
	};
}

static void bench_say(struct bench *bench, uint8_t opcode, uint32_t psn, size_t length)
{
	struct packet packet = bench_packet(bench, opcode, psn, length);

	packet.pad = packet_pad(packet.length);
	network_send_packet(&network->hosts[0], &network->hosts[1], &packet);
}

static void bench_run(void)
{
	network_run(100 * CLOCK_NS_PER_MS);
}

static void wrong_orders_are_refused(void **state)
{
	static const struct {
		uint8_t opcodes[3];
		uint16_t lengths[3];
	} rows[] = {
		{ { OPCODE_SEND_MIDDLE }, { 1024 } },
		{ { OPCODE_SEND_LAST }, { 1024 } },
		{ { OPCODE_WRITE_MIDDLE }, { 1024 } },
		{ { OPCODE_WRITE_LAST }, { 4 } },
		{ { OPCODE_WRITE_FIRST, OPCODE_WRITE_ONLY }, { 1024, 4 } },
		{ { OPCODE_WRITE_FIRST, OPCODE_SEND_ONLY }, { 1024, 4 } },
		{ { OPCODE_WRITE_FIRST, OPCODE_READ_REQUEST }, { 1024, 4 } },
		{ { OPCODE_SEND_FIRST, OPCODE_WRITE_LAST }, { 1024, 4 } },
		{ { OPCODE_SEND_FIRST, OPCODE_SEND_FIRST }, { 1024, 1024 } },
		{ { OPCODE_SEND_FIRST, OPCODE_SEND_LAST }, { 1024, 0 } },
		{ { OPCODE_SEND_FIRST }, { 512 } },
		{ { OPCODE_SEND_FIRST }, { 2048 } },
		{ { OPCODE_SEND_ONLY }, { 2048 } },
		{ { OPCODE_WRITE_ONLY }, { 1028 } },
		{ { OPCODE_SEND_FIRST, OPCODE_SEND_MIDDLE, OPCODE_SEND_MIDDLE }, { 1024, 1024, 1020 } },
	};

	(void)state;
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct bench bench;
		struct work receive = { .kind = WORK_RECEIVE, .length = 60000 };
		size_t count = 0;

		bench_open(&bench, 4);
		receive.region = bench.region;
		assert_int_equal(soft_queue_post(bench.pair.ends[1].queue, &receive, 1), OUTCOME_OK);
		while (count < 3 && rows[row].lengths[count]) {
			bench_say(&bench, rows[row].opcodes[count], bench.psn + (uint32_t)count,
				  rows[row].lengths[count]);
			count++;
		}
		if (count < 3 && rows[row].opcodes[count])
			bench_say(&bench, rows[row].opcodes[count], bench.psn + (uint32_t)count, 0);
		bench_run();
		if (said_invalid != 1)
			fail_msg("row %zu: %u refusals", row, said_invalid);
		assert_int_equal(said_sequence + said_access + said_rnr, 0);
		assert_int_equal(network->hosts[1].failures, 1);
		/* Another try gets the same answer, and only that. */
		bench_say(&bench, OPCODE_SEND_ONLY, bench.psn + (uint32_t)count, 4);
		bench_say(&bench, OPCODE_SEND_ONLY, bench.psn + (uint32_t)count + 1, 4);
		bench_run();
		assert_int_equal(said_invalid, 2);
		assert_int_equal(network->hosts[1].failures, 1);
		bench_close(&bench);
	}
}

static void write_is_held_to_its_length(void **state)
{
	struct bench bench;
	struct packet packet;

	(void)state;
	for (unsigned turn = 0; turn < 3; turn++) {
		bench_open(&bench, 4);
		packet = bench_packet(&bench, OPCODE_WRITE_FIRST, 100, 1024);
		packet.remote.length = turn == 0 ? 1000 : turn == 1 ? 1500 : 2000;
		network_send_packet(&network->hosts[0], &network->hosts[1], &packet);
		if (turn)
			bench_say(&bench, turn == 1 ? OPCODE_WRITE_MIDDLE : OPCODE_WRITE_LAST, 101,
				  turn == 1 ? 1024 : 900);
		bench_run();
		assert_int_equal(said_invalid, 1);
		assert_int_equal(bench.region->memory[turn ? 1024 : 0], 1);
		bench_close(&bench);
	}
}

static void reads_beyond_the_agreement(void **state)
{
	struct bench bench;

	(void)state;
	bench_open(&bench, 0);
	bench_say(&bench, OPCODE_READ_REQUEST, 100, 16);
	bench_run();
	assert_int_equal(said_invalid, 1);
	assert_int_equal(said_data, 0);
	bench_close(&bench);

	bench_open(&bench, 2);
	for (uint32_t read = 0; read < 3; read++)
		bench_say(&bench, OPCODE_READ_REQUEST, 100 + read * 64, 65536);
	bench_run();
	assert_int_equal(said_invalid, 1);
	/* The first two are answered all the same. */
	assert_int_equal(said_data, 128);
	bench_close(&bench);

	/* One after the other is no crime. */
	bench_open(&bench, 1);
	for (uint32_t read = 0; read < 3; read++) {
		bench_say(&bench, OPCODE_READ_REQUEST, 100 + read * 64, 65536);
		bench_run();
	}
	assert_int_equal(said_data, 192);
	assert_int_equal(said_invalid, 0);
	bench_close(&bench);
}

static void gaps_are_told_once(void **state)
{
	struct bench bench;

	(void)state;
	bench_open(&bench, 4);
	for (uint32_t psn = 101; psn < 110; psn++) {
		struct packet packet = bench_packet(&bench, OPCODE_WRITE_ONLY, psn, 16);

		packet.ack_request = false;
		network_send_packet(&network->hosts[0], &network->hosts[1], &packet);
		network_run(CLOCK_NS_PER_MS);
	}
	assert_int_equal(said_sequence, 1);
	assert_int_equal(said_psn, 100);
	/* What comes again, and still without the missing one. */
	bench_say(&bench, OPCODE_WRITE_ONLY, 101, 16);
	bench_run();
	assert_int_equal(said_sequence, 2);
	assert_int_equal(said_good, 0);
	/* Far beyond, or from before the connection: none of this connection's. */
	bench_say(&bench, OPCODE_WRITE_ONLY, 0x700000, 16);
	bench_say(&bench, OPCODE_WRITE_ONLY, 90, 16);
	bench_run();
	assert_int_equal(said_sequence + said_good, 2);
	assert_int_equal(bench.region->memory[0], 1);
	bench_say(&bench, OPCODE_WRITE_ONLY, 100, 16);
	bench_run();
	assert_int_equal(said_good, 1);
	assert_int_equal(said_psn, 100);
	assert_int_equal(bench.region->memory[0], 0);
	bench_close(&bench);
}

static void acknowledgements_are_coalesced(void **state)
{
	struct bench bench;

	(void)state;
	bench_open(&bench, 4);
	network->wake_time = CLOCK_NS_PER_MS;
	for (uint32_t psn = 100; psn < 150; psn++)
		bench_say(&bench, OPCODE_WRITE_ONLY, psn, 16);
	bench_run();
	assert_int_equal(said_good, 1);
	assert_int_equal(said_psn, 149);
	/* Behind a READ that is in front of it. */
	bench_say(&bench, OPCODE_READ_REQUEST, 150, 65536);
	bench_say(&bench, OPCODE_WRITE_ONLY, 214, 16);
	bench_run();
	assert_int_equal(said_data, 64);
	assert_int_equal(said_good, 2);
	assert_int_equal(said_psn, 214);
	/* Repeated ones: the READ is answered from where it was asked, nothing is written. */
	memset(bench.region->memory, 5, 16);
	bench_say(&bench, OPCODE_WRITE_ONLY, 120, 16);
	bench_run();
	assert_int_equal(said_good, 3);
	assert_int_equal(said_psn, 214);
	assert_int_equal(bench.region->memory[0], 5);
	bench_say(&bench, OPCODE_READ_REQUEST, 210, 4096);
	bench_run();
	assert_int_equal(said_data, 68);
	/* Repeated, and longer than what it repeats. */
	bench_say(&bench, OPCODE_READ_REQUEST, 210, 65536);
	bench_run();
	assert_int_equal(said_data, 68);
	bench_close(&bench);
}

/* WRITEs with immediate take a receive; our own commands never send them. */
static void write_with_immediate(void **state)
{
	struct bench bench;
	struct work receive = { .kind = WORK_RECEIVE };

	(void)state;
	bench_open(&bench, 4);
	receive.region = bench.region;
	bench_say(&bench, OPCODE_WRITE_ONLY_IMMEDIATE, 100, 16);
	bench_run();
	assert_int_equal(said_rnr, 1);
	assert_int_equal(said_psn, 100);
	assert_int_equal(bench.region->memory[0], 1);
	assert_int_equal(soft_queue_post(bench.pair.ends[1].queue, &receive, 1), OUTCOME_OK);
	bench_say(&bench, OPCODE_WRITE_ONLY_IMMEDIATE, 100, 16);
	bench_run();
	assert_int_equal(said_good, 1);
	assert_int_equal(bench.region->memory[0], 0);
	bench_close(&bench);
}

/* ---- answers that make no sense ---- */

static void strange_answers_are_dropped(void **state)
{
	struct run *run = run_of_sends(8, 8, 7);
	struct packet packet = { .pkey = PACKET_PKEY };

	(void)state;
	run_begin(run);
	network_run(CLOCK_NS_PER_MS);
	packet.destination = soft_queue_number(queue_of(&run->pair, 0));
	for (uint32_t psn = 0; psn <= PSN_MASK; psn += 4093) {
		if (psn < 100)
			continue;
		packet.opcode = (uint8_t)(OPCODE_READ_RESPONSE_FIRST + psn % 5);
		packet.psn = psn;
		packet.acknowledgement.syndrome = (uint8_t)psn;
		network_send_packet(&network->hosts[1], &network->hosts[0], &packet);
		network_run(CLOCK_NS_PER_US * 10);
	}
	/* Inside the window, but not what was asked for. */
	packet.opcode = OPCODE_READ_RESPONSE_ONLY;
	packet.psn = 0;
	network_send_packet(&network->hosts[1], &network->hosts[0], &packet);
	packet.opcode = OPCODE_ACKNOWLEDGE;
	packet.acknowledgement.syndrome = 0x5f;
	network_send_packet(&network->hosts[1], &network->hosts[0], &packet);
	packet.acknowledgement.syndrome = syndrome_make(SYNDROME_NAK, 9);
	network_send_packet(&network->hosts[1], &network->hosts[0], &packet);
	network_run(CLOCK_NS_PER_S);
	assert_int_equal(run->directions[0].finished, 0);
	run->held_receives = 0;
	run_post_receives(run, 0);
	assert_true(network_run(CLOCK_NS_PER_S));
	run_check_end(run);
	run_end(run);
}

/* Whatever comes, in any state: nothing breaks that the address sanitizer would see, and nobody else is hurt. */
static void random_packets(void **state)
{
	unsigned total = seeds(300);

	(void)state;
	for (unsigned seed = 0; seed < total; seed++) {
		struct run *run = run_new();
		struct bench bench = { .psn = 0 };
		uint32_t number;

		network_open(seed);
		run->terms = (struct terms){ .mtu = 1024, .depth = 8, .reads = 4 };
		run_plan_randomly(run, 20);
		pair_open(&run->pair, &run->terms);
		bench.terms.psn[0] = bench.terms.psn[1] = PSN_MASK - 20;
		bench.terms.receive_depth = 200;
		bench.terms.reads = network_roll(16);
		bench.terms.no_reads = !bench.terms.reads;
		pair_open(&bench.pair, &bench.terms);
		bench.region = region_of(1, 65536, REGION_REMOTE_READ | REGION_REMOTE_WRITE);
		number = soft_queue_number(bench.pair.ends[1].queue);
		network->completed = NULL;
		for (unsigned count = 0; count < 200; count++) {
			struct packet packet = bench_packet(&bench, (uint8_t)network_roll(0x12),
							    (PSN_MASK - 20 + network_roll(40)) & PSN_MASK,
							    network_roll(8) ? network_roll(1025) : 1024);
			struct work receive = { .kind = WORK_RECEIVE, .region = bench.region, .length = 5000 };

			packet.ack_request = network_roll(2);
			packet.destination = network_roll(20) ? number : network_roll(PSN_MASK + 1);
			packet.remote.key ^= !network_roll(20);
			packet.remote.address += network_roll(70000);
			packet.remote.length = network_roll(network_roll(2) ? 70000 : 2000);
			packet.acknowledgement.syndrome = (uint8_t)network_roll(256);
			packet.pad = packet_pad(packet.length);
			if (!(opcode_form(packet.opcode) & FORM_PAYLOAD))
				packet.length = packet.pad = 0;
			network_send_packet(&network->hosts[0], &network->hosts[1], &packet);
			if (!network_roll(4))
				soft_queue_post(bench.pair.ends[1].queue, &receive, network_roll(2));
			if (!network_roll(4))
				network_run(network_roll(100) * CLOCK_NS_PER_US);
		}
		run_begin(run);
		run_finish(run);
		pair_close(&bench.pair);
		soft_region_destroy(bench.region);
		run_check_end(run);
		run_end(run);
	}
}

static void strangers_are_not_heard(void **state)
{
	struct bench bench;
	struct packet packet;
	struct address stranger = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 3 } };
	struct host *host;

	(void)state;
	bench_open(&bench, 4);
	host = &network->hosts[1];
	packet = bench_packet(&bench, OPCODE_WRITE_ONLY, 100, 16);
	soft_queue_receive(&host->transport, socket_of(host), &stranger, &packet);
	soft_queue_receive(&host->transport, socket_of(&network->hosts[0]), &network->hosts[0].address, &packet);
	packet.pkey = 0x1234;
	soft_queue_receive(&host->transport, socket_of(host), &network->hosts[0].address, &packet);
	packet.pkey = PACKET_PKEY;
	packet.opcode = OPCODE_DATAGRAM;
	soft_queue_receive(&host->transport, socket_of(host), &network->hosts[0].address, &packet);
	soft_queue_batch_end(&host->transport);
	assert_int_equal(host->heard, 0);
	assert_int_equal(said_good + said_sequence, 0);
	assert_int_equal(bench.region->memory[0], 1);
	packet.opcode = OPCODE_WRITE_ONLY;
	soft_queue_receive(&host->transport, socket_of(host), &network->hosts[0].address, &packet);
	soft_queue_batch_end(&host->transport);
	assert_int_equal(host->heard, 1);
	assert_int_equal(said_good, 1);
	soft_queue_stop(bench.pair.ends[1].queue);
	soft_queue_receive(&host->transport, socket_of(host), &network->hosts[0].address, &packet);
	soft_queue_batch_end(&host->transport);
	assert_int_equal(said_good, 1);
	bench_close(&bench);
}

/* ---- several queues ---- */

/* Some break, some are destroyed under way; the others do not notice. */
static void queues_do_not_disturb_each_other(void **state)
{
	unsigned total = seeds(100);

	(void)state;
	for (unsigned seed = 0; seed < total; seed++) {
		struct run *run = run_new();
		struct bench benches[3] = { { .psn = 0 } };
		struct region *source;

		network_open(seed);
		network->loss = network_roll(60);
		run->terms = (struct terms){ .mtu = 1024, .depth = 8 };
		run_plan_randomly(run, 30);
		pair_open(&run->pair, &run->terms);
		source = region_of(0, 65536, 0);
		for (size_t index = 0; index < LENGTH(benches); index++) {
			struct work work = { .kind = index ? WORK_WRITE : WORK_READ, .region = source };

			pair_open(&benches[index].pair, &benches[index].terms);
			benches[index].region = region_of(1, 65536, REGION_REMOTE_READ | REGION_REMOTE_WRITE);
			work.length = 60000;
			work.remote_address = (uintptr_t)benches[index].region->memory;
			work.remote_key = benches[index].region->remote_key + (index == 1);
			soft_queue_post(benches[index].pair.ends[0].queue, &work, 1);
		}
		run_begin(run);
		network_run(network_roll(300) * CLOCK_NS_PER_US);
		for (size_t index = 0; index < LENGTH(benches); index++) {
			if (network_roll(2))
				soft_queue_stop(benches[index].pair.ends[network_roll(2)].queue);
			pair_close(&benches[index].pair);
			soft_region_destroy(benches[index].region);
		}
		run_finish(run);
		run_check_end(run);
		soft_region_destroy(source);
		run_end(run);
	}
}

/* Many senders whose windows together are far more than the receiver's socket holds. */
static void many_senders_get_through(void **state)
{
	enum {
		PAIRS = 64,
		WORKS = 16,
		SIZE = 16384
	};
	static struct pair pairs[PAIRS];
	struct region *source, *target;
	struct counted counted = { .wanted = PAIRS * (is_valgrind() ? 1 : WORKS) };
	int64_t began;

	(void)state;
	network_open(3);
	network->inbox_most = 212992;
	network->packet_time = 2 * CLOCK_NS_PER_US;
	network->window = network->inbox_most / 2;
	network->completed = count_completions;
	network->owner = &counted;
	source = region_of(0, SIZE, 0);
	target = region_of(1, SIZE, REGION_REMOTE_WRITE);
	began = network->now;
	for (size_t index = 0; index < PAIRS; index++) {
		struct terms terms = { .depth = WORKS };
		struct work work = { .kind = WORK_WRITE,
				     .region = source,
				     .length = SIZE,
				     .remote_address = (uintptr_t)target->memory,
				     .remote_key = target->remote_key };

		pair_open(&pairs[index], &terms);
		for (unsigned count = 0; count < counted.wanted / PAIRS; count++)
			assert_int_equal(soft_queue_post(queue_of(&pairs[index], 0), &work, 1), OUTCOME_OK);
	}
	assert_true(network_run(60 * CLOCK_NS_PER_S));
	if (getenv("SOFT_QUEUE_TRACE"))
		fprintf(stderr, "%d senders: %.1f MB/s, %llu packets, %llu overflowed\n", PAIRS,
			(double)counted.wanted * SIZE / 1e6 / ((double)(network->now - began) / 1e9),
			(unsigned long long)network->sent, (unsigned long long)network->overflowed);
	assert_true(network->now - began < CLOCK_NS_PER_S);
	for (size_t index = 0; index < PAIRS; index++)
		pair_close(&pairs[index]);
	soft_region_destroy(source);
	soft_region_destroy(target);
	network_close();
}

static void numbers_come_once(void **state)
{
	enum {
		COUNT = 20000
	};
	static uint8_t seen[(PSN_MASK + 1) / 8];
	struct soft_endpoint endpoint;

	(void)state;
	network_open(5);
	memset(seen, 0, sizeof(seen));
	for (unsigned count = 0; count < (is_valgrind() ? 500u : (unsigned)COUNT); count++) {
		uint32_t number;

		endpoint_prepare(&endpoint, &network->hosts[0], ENDPOINT_CONNECTION, 1, 1);
		number = soft_queue_number(endpoint.queue);
		assert_in_range(number, 2, 0xfffffe);
		assert_false(seen[number / 8] & 1 << number % 8);
		seen[number / 8] |= (uint8_t)(1 << number % 8);
		soft_queue_destroy(endpoint.queue);
	}
	network_close();
}

/* The command leaves in the call-back that brings it the last message: its peer still learns that it arrived. */
static void leave_at_the_last_message(void *owner, struct host *host, const struct told *told)
{
	struct counted *counted = owner;

	if (told->completion.kind == WORK_RECEIVE)
		soft_queue_stop(told->endpoint->queue);
	else if (host == &network->hosts[0])
		counted->good += told->completion.status == COMPLETION_OK;
}

static void last_message_is_acknowledged(void **state)
{
	struct bench bench;
	struct counted counted = { .wanted = 1 };
	struct work receive = { .kind = WORK_RECEIVE, .length = 100 };
	struct work send = { .kind = WORK_SEND, .length = 100 };
	struct region *source;

	(void)state;
	bench_open(&bench, 4);
	source = region_of(0, 100, 0);
	receive.region = bench.region;
	send.region = source;
	network->completed = leave_at_the_last_message;
	network->owner = &counted;
	assert_int_equal(soft_queue_post(bench.pair.ends[1].queue, &receive, 1), OUTCOME_OK);
	assert_int_equal(soft_queue_post(bench.pair.ends[0].queue, &send, 1), OUTCOME_OK);
	network_run(CLOCK_NS_PER_S);
	assert_int_equal(counted.good, 1);
	soft_region_destroy(source);
	bench_close(&bench);
}

/* ---- what cannot be posted ---- */

static enum outcome post_silently(struct soft_queue *queue, const struct work *work)
{
	struct capture capture;
	enum outcome outcome;

	capture_begin(&capture);
	outcome = soft_queue_post(queue, work, 1);
	assert_int_equal(outcome == OUTCOME_OK, !*capture_end(&capture));
	return outcome;
}

static void what_cannot_be_posted(void **state)
{
	struct bench bench;
	struct soft_endpoint fresh;
	struct region *large;
	struct work work = { .kind = WORK_SEND };
	struct soft_queue *queue;

	(void)state;
	bench_open(&bench, 0);
	network->hosts[0].dead = true;
	queue = bench.pair.ends[0].queue;
	large = region_of(0, SOFT_LONGEST_MESSAGE + 1, 0);
	work.region = large;
	work.length = SOFT_LONGEST_MESSAGE + 1;
	assert_int_equal(post_silently(queue, &work), OUTCOME_INTERNAL);
	work.offset = SOFT_LONGEST_MESSAGE + 1;
	work.length = 1;
	assert_int_equal(post_silently(queue, &work), OUTCOME_INTERNAL);
	work.offset = SIZE_MAX;
	assert_int_equal(post_silently(queue, &work), OUTCOME_INTERNAL);
	work = (struct work){ .kind = WORK_READ, .region = large, .length = 1 };
	assert_int_equal(post_silently(queue, &work), OUTCOME_INTERNAL);
	work.kind = WORK_RECEIVE;
	for (unsigned count = 0; count < 16; count++)
		assert_int_equal(post_silently(queue, &work), OUTCOME_OK);
	assert_int_equal(post_silently(queue, &work), OUTCOME_INTERNAL);
	/* The probe takes no place of the command's. */
	work.kind = WORK_SEND;
	soft_queue_probe(queue);
	for (unsigned count = 0; count < 16; count++)
		assert_int_equal(post_silently(queue, &work), OUTCOME_OK);
	assert_int_equal(post_silently(queue, &work), OUTCOME_INTERNAL);
	soft_queue_stop(queue);
	assert_int_equal(post_silently(queue, &work), OUTCOME_OK);

	endpoint_prepare(&fresh, &network->hosts[0], ENDPOINT_CONNECTION, 1, 1);
	assert_int_equal(post_silently(fresh.queue, &work), OUTCOME_INTERNAL);
	work.kind = WORK_RECEIVE;
	assert_int_equal(post_silently(fresh.queue, &work), OUTCOME_OK);
	soft_queue_destroy(fresh.queue);
	soft_region_destroy(large);
	bench_close(&bench);
}

/* ---- datagrams ---- */

struct datagrams {
	struct soft_endpoint ends[2];
	struct region *regions[2];
	struct completion received[64], sent[64];
	size_t received_count, sent_count;
};

static void datagram_completed(void *owner, struct host *host, const struct told *told)
{
	struct datagrams *datagrams = owner;

	(void)host;
	if (told->completion.kind == WORK_RECEIVE)
		datagrams->received[datagrams->received_count++] = told->completion;
	else
		datagrams->sent[datagrams->sent_count++] = told->completion;
}

static void datagrams_open(struct datagrams *datagrams, enum address_family family)
{
	memset(datagrams, 0, sizeof(*datagrams));
	network_open(1);
	network->group = (struct address){ .family = ADDRESS_IP4, .bytes = { 239, 1, 2, 3 } };
	if (family == ADDRESS_IP6) {
		network->group = (struct address){ .family = ADDRESS_IP6, .bytes = { 0xff, 0x15, [15] = 9 } };
		for (size_t end = 0; end < 2; end++)
			network->hosts[end].address =
				(struct address){ .family = ADDRESS_IP6, .bytes = { 0xfd, [15] = (uint8_t)(end + 1) } };
	}
	for (size_t end = 0; end < 2; end++) {
		struct host *host = &network->hosts[end];
		struct soft_path path = {
			.socket = socket_of(host), .local = host->address, .peer = network->group, .mtu = 1024
		};

		endpoint_prepare(&datagrams->ends[end], host, ENDPOINT_GROUP, 16, 16);
		datagrams->ends[end].group_socket = socket_of(host);
		soft_queue_aim(datagrams->ends[end].queue, &path, 0x01234567);
		datagrams->regions[end] = region_of(end, 65536, 0);
	}
	network->completed = datagram_completed;
	network->owner = datagrams;
}

static void datagrams_close(struct datagrams *datagrams)
{
	for (size_t end = 0; end < 2; end++) {
		soft_queue_destroy(datagrams->ends[end].queue);
		soft_region_destroy(datagrams->regions[end]);
	}
	network_close();
}

static void datagram_post_one(struct datagrams *datagrams, size_t end, enum work_kind kind, uint32_t tag,
			      uint32_t length)
{
	struct work work = { .kind = kind,
			     .tag = tag,
			     .region = datagrams->regions[end],
			     .offset = (size_t)tag * 2048,
			     .length = length,
			     .has_immediate = tag & 1,
			     .immediate = tag + 1000 };

	assert_int_equal(soft_queue_post(datagrams->ends[end].queue, &work, 1), OUTCOME_OK);
}

static void datagrams_arrive(void **state)
{
	static const uint32_t lengths[] = { 0, 1, 4, 7, 100, 1024 };
	struct datagrams datagrams;
	const uint8_t *header;

	(void)state;
	for (enum address_family family = ADDRESS_IP4; family <= ADDRESS_IP6; family++) {
		datagrams_open(&datagrams, family);
		memset(datagrams.regions[0]->memory, 0x77, 65536);
		for (uint32_t tag = 0; tag < LENGTH(lengths); tag++) {
			datagram_post_one(&datagrams, 1, WORK_RECEIVE, tag, DATAGRAM_HEADER_SIZE + lengths[tag]);
			datagram_post_one(&datagrams, 0, WORK_SEND, tag, lengths[tag]);
		}
		assert_int_equal(datagrams.sent_count, 0);
		network_run(CLOCK_NS_PER_S);
		assert_int_equal(datagrams.sent_count, LENGTH(lengths));
		assert_int_equal(datagrams.received_count, LENGTH(lengths));
		for (uint32_t tag = 0; tag < LENGTH(lengths); tag++) {
			const struct completion *completion = &datagrams.received[tag];

			assert_int_equal(datagrams.sent[tag].tag, tag);
			assert_int_equal(completion->tag, tag);
			assert_int_equal(completion->length, lengths[tag]);
			assert_int_equal(completion->has_immediate, tag & 1);
			assert_int_equal(completion->immediate, tag & 1 ? tag + 1000 : 0);
			assert_int_equal(completion->source_queue_number, soft_queue_number(datagrams.ends[0].queue));
			header = datagrams.regions[1]->memory + (size_t)tag * 2048;
			if (lengths[tag])
				assert_memory_equal(header + 40, datagrams.regions[0]->memory, lengths[tag]);
			assert_int_equal(header[40 + lengths[tag]], 0);
			if (family == ADDRESS_IP6) {
				assert_int_equal(header[0], 0x60);
				assert_memory_equal(header + 8, network->hosts[0].address.bytes, 16);
				assert_memory_equal(header + 24, network->group.bytes, 16);
			} else {
				assert_int_equal(header[0], 0);
				assert_int_equal(header[20], 0x45);
				assert_memory_equal(header + 32, network->hosts[0].address.bytes, 4);
				assert_memory_equal(header + 36, network->group.bytes, 4);
				assert_int_equal(header[22] << 8 | header[23],
						 52 + (tag & 1 ? 4u : 0u) + ((lengths[tag] + 3) & ~3u));
			}
		}
		datagrams_close(&datagrams);
	}
}

static void datagrams_that_are_lost(void **state)
{
	struct datagrams datagrams;
	struct work work = { .kind = WORK_SEND, .length = 1025 };

	(void)state;
	datagrams_open(&datagrams, ADDRESS_IP4);
	work.region = datagrams.regions[0];
	assert_int_equal(post_silently(datagrams.ends[0].queue, &work), OUTCOME_INTERNAL);
	work.kind = WORK_WRITE;
	assert_int_equal(post_silently(datagrams.ends[0].queue, &work), OUTCOME_INTERNAL);
	/* No receive; one that is too short, which stays; another key; another group; left. */
	datagram_post_one(&datagrams, 0, WORK_SEND, 0, 100);
	network_run(CLOCK_NS_PER_MS);
	datagram_post_one(&datagrams, 1, WORK_RECEIVE, 0, 139);
	datagram_post_one(&datagrams, 0, WORK_SEND, 0, 100);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(datagrams.received_count, 0);
	soft_queue_aim(datagrams.ends[0].queue,
		       &(struct soft_path){ .socket = socket_of(&network->hosts[0]),
					    .local = network->hosts[0].address,
					    .peer = network->group,
					    .mtu = 1024 },
		       5);
	datagram_post_one(&datagrams, 0, WORK_SEND, 0, 99);
	network_run(CLOCK_NS_PER_MS);
	soft_queue_aim(datagrams.ends[0].queue,
		       &(struct soft_path){ .socket = socket_of(&network->hosts[0]),
					    .local = network->hosts[0].address,
					    .peer = network->group,
					    .mtu = 1024 },
		       0x01234567);
	network->group.bytes[3]++;
	datagram_post_one(&datagrams, 0, WORK_SEND, 0, 99);
	network_run(CLOCK_NS_PER_MS);
	network->group.bytes[3]--;
	datagrams.ends[1].group_socket = NULL;
	datagram_post_one(&datagrams, 0, WORK_SEND, 0, 99);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(datagrams.received_count, 0);
	datagrams.ends[1].group_socket = socket_of(&network->hosts[1]);
	datagram_post_one(&datagrams, 0, WORK_SEND, 0, 99);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(datagrams.received_count, 1);
	assert_int_equal(datagrams.sent_count, 6);
	datagrams_close(&datagrams);
}

/* A burst longer than the socket's window goes out in several turns, and completes in order. */
static void datagrams_go_in_turns(void **state)
{
	struct datagrams datagrams;

	(void)state;
	datagrams_open(&datagrams, ADDRESS_IP4);
	network->window = 3000;
	for (uint32_t tag = 0; tag < 16; tag++)
		datagram_post_one(&datagrams, 0, WORK_SEND, tag, 1000);
	assert_in_range(network->sent, 3, 4);
	network_run(CLOCK_NS_PER_MS);
	assert_int_equal(datagrams.sent_count, 16);
	assert_int_equal(network->sent, 16);
	for (uint32_t tag = 0; tag < 16; tag++)
		assert_int_equal(datagrams.sent[tag].tag, tag);
	datagrams_close(&datagrams);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_and_size),
		cmocka_unit_test(runs_without_loss),
		cmocka_unit_test(runs_with_one_per_cent),
		cmocka_unit_test(runs_with_five_per_cent),
		cmocka_unit_test(runs_with_twenty_per_cent),
		cmocka_unit_test(runs_with_reordering),
		cmocka_unit_test(speed_survives_loss),
		cmocka_unit_test(not_ready_waits_for_ever),
		cmocka_unit_test(not_ready_is_given_up),
		cmocka_unit_test(dead_peer_is_noticed),
		cmocka_unit_test(idle_connection_is_probed),
		cmocka_unit_test(work_behind_a_probe_fails),
		cmocka_unit_test(violations_change_nothing),
		cmocka_unit_test(nothing_needs_no_key),
		cmocka_unit_test(region_goes_under_way),
		cmocka_unit_test(longer_than_the_receive),
		cmocka_unit_test(wrong_orders_are_refused),
		cmocka_unit_test(write_is_held_to_its_length),
		cmocka_unit_test(reads_beyond_the_agreement),
		cmocka_unit_test(gaps_are_told_once),
		cmocka_unit_test(acknowledgements_are_coalesced),
		cmocka_unit_test(write_with_immediate),
		cmocka_unit_test(strange_answers_are_dropped),
		cmocka_unit_test(random_packets),
		cmocka_unit_test(strangers_are_not_heard),
		cmocka_unit_test(queues_do_not_disturb_each_other),
		cmocka_unit_test(many_senders_get_through),
		cmocka_unit_test(numbers_come_once),
		cmocka_unit_test(last_message_is_acknowledged),
		cmocka_unit_test(what_cannot_be_posted),
		cmocka_unit_test(datagrams_arrive),
		cmocka_unit_test(datagrams_that_are_lost),
		cmocka_unit_test(datagrams_go_in_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
