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

	while (queue && way->receives_posted < way->sends - run->held_receives &&
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

static void run_through(struct run *run)
{
	bool done;

	pair_open(&run->pair, &run->terms);
	run_begin(run);
	done = run_is_done(run) || network_run(600 * CLOCK_NS_PER_S);
	if (!done)
		fail_msg("hangs: %zu and %zu of %zu and %zu done", run->directions[0].finished,
			 run->directions[1].finished, run->directions[0].count, run->directions[1].count);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_and_size),	     cmocka_unit_test(runs_without_loss),
		cmocka_unit_test(runs_with_one_per_cent),    cmocka_unit_test(runs_with_five_per_cent),
		cmocka_unit_test(runs_with_twenty_per_cent), cmocka_unit_test(runs_with_reordering),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
