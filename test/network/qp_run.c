/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/network/qp_run.h"

#include "test/unit/pattern.h"

static const uint8_t *bytes_of(size_t direction, const struct plan *plan, size_t index)
{
	return pattern() + payload_pattern_offset(plan->length, (uint32_t)direction, (uint32_t)index);
}

void qp_run_add(struct qp_run *run, size_t direction, struct plan plan)
{
	struct direction *dir = &run->directions[direction];

	assert_true(dir->count < PLAN_MAX);
	plan.offset = GUARD;
	if (dir->count)
		plan.offset = dir->plans[dir->count - 1].offset + dir->plans[dir->count - 1].length + GUARD;
	dir->plans[dir->count++] = plan;
	dir->sends += plan.kind == WORK_SEND;
}

static uint32_t random_length(uint32_t mtu, enum work_kind kind)
{
	switch (network_below(8)) {
	case 0:
		return network_below(3);
	case 1:
		return mtu - 1 + network_below(3);
	case 2:
		return (1 + network_below(4)) * mtu;
	case 3:
		return network_below(kind == WORK_READ ? 40 * mtu : 20 * mtu);
	case 4:
		return network_below(8 * mtu);
	default:
		return network_below(200);
	}
}

void qp_run_plan_randomly(struct qp_run *run, size_t works)
{
	static const enum work_kind kinds[] = { WORK_SEND, WORK_SEND, WORK_WRITE, WORK_READ };

	for (size_t direction = 0; direction < 2; direction++)
		for (size_t index = 0; index < works; index++) {
			enum work_kind kind = kinds[network_below(LENGTH(kinds))];

			qp_run_add(
				run, direction,
				(struct plan){
					.kind = kind,
					.length = random_length(run->attr.mtu, kind),
					.has_immediate = kind == WORK_SEND && network_below(2),
					.immediate = network_below(UINT32_MAX),
					.unsignalled = index + 1 < works && index % run->attr.depth && network_below(2),
				});
		}
}

void qp_run_post_receives(struct qp_run *run, size_t direction)
{
	struct direction *dir = &run->directions[direction];
	struct soft_qp *qp = qp_of(&run->pair, !direction);

	while (qp && dir->receives_posted + run->held_receives < dir->sends &&
	       dir->receives_posted - dir->received < run->attr.receive_depth) {
		size_t send = dir->receives_posted++, index = 0;

		while (dir->plans[index].kind != WORK_SEND || send--)
			index++;
		/* Sometimes longer than the message, into the guard. */
		assert_int_equal(
			soft_qp_post(qp,
				     &(struct work){ .kind = WORK_RECEIVE,
						     .tag = (uint32_t)index,
						     .region = dir->remote,
						     .offset = dir->plans[index].offset,
						     .length = dir->plans[index].length + network_below(GUARD) },
				     1),
			OUTCOME_OK);
	}
}

void qp_run_post(struct qp_run *run, size_t direction)
{
	struct direction *dir = &run->directions[direction];

	while (qp_of(&run->pair, direction) && dir->posted < dir->count &&
	       dir->posted - dir->finished < run->attr.depth) {
		const struct plan *plan = &dir->plans[dir->posted];
		struct work work = {
			.kind = plan->kind,
			.tag = (uint32_t)dir->posted,
			.region = dir->local,
			.offset = plan->offset,
			.length = plan->length,
			.remote_address = dir->remote->remote_address + plan->offset,
			.remote_key = dir->remote->remote_key,
			.unsignalled = plan->unsignalled,
			.has_immediate = plan->has_immediate,
			.immediate = plan->immediate,
		};

		dir->posted++;
		assert_int_equal(soft_qp_post(qp_of(&run->pair, direction), &work, 1), OUTCOME_OK);
	}
}

/* The memory to which the work request transfers its bytes. */
static uint8_t *target_memory(const struct direction *dir, const struct plan *plan)
{
	return (plan->kind == WORK_READ ? dir->local : dir->remote)->memory + plan->offset;
}

/* Checks the transferred bytes and overwrites them: qp_run_check_end() detects a second transfer. */
static void check_and_overwrite(const struct direction *dir, const struct plan *plan, size_t direction, size_t index)
{
	uint8_t *memory = target_memory(dir, plan);

	if (memcmp(memory, bytes_of(direction, plan, index), plan->length) != 0)
		fail_msg("work %zu of end %zu has other bytes", index, direction);
	memset(memory, OVERWRITTEN, plan->length);
}

static void qp_run_receive_completed(struct qp_run *run, size_t direction, const struct completion *completion)
{
	struct direction *dir = &run->directions[direction];
	const struct plan *plan = &dir->plans[completion->tag];
	size_t before = 0;

	for (size_t index = 0; index < completion->tag; index++)
		before += dir->plans[index].kind == WORK_SEND;
	assert_int_equal(before, dir->received);
	assert_int_equal(completion->length, plan->length);
	assert_int_equal(completion->has_immediate, plan->has_immediate);
	if (plan->has_immediate)
		assert_int_equal(completion->immediate, plan->immediate);
	check_and_overwrite(dir, plan, direction, completion->tag);
	dir->received++;
	qp_run_post_receives(run, direction);
}

static void qp_run_send_completed(struct qp_run *run, size_t direction, const struct completion *completion)
{
	struct direction *dir = &run->directions[direction];

	assert_true(completion->tag >= dir->finished);
	for (; dir->finished <= completion->tag; dir->finished++) {
		const struct plan *plan = &dir->plans[dir->finished];

		assert_true(plan->unsignalled || dir->finished == completion->tag);
		if (plan->kind == WORK_SEND)
			continue;
		check_and_overwrite(dir, plan, direction, dir->finished);
	}
	qp_run_post(run, direction);
}

static bool qp_run_is_done(const struct qp_run *run)
{
	for (size_t direction = 0; direction < 2; direction++) {
		const struct direction *dir = &run->directions[direction];

		if (dir->finished < dir->count || dir->received < dir->sends)
			return false;
	}
	return true;
}

static void qp_run_completed(void *context, struct host *host, const struct reported *reported)
{
	struct qp_run *run = context;
	size_t end = (size_t)(host - testbed.hosts);

	if (reported->endpoint != &run->pair.ends[end])
		return;
	if (reported->completion.status != COMPLETION_OK) {
		if (!run->may_fail)
			fail_msg("work of end %zu failed: %s", end,
				 completion_status_text(reported->completion.status));
		run->failed_status = reported->completion.status;
		network->done = true;
		return;
	}
	if (reported->completion.kind == WORK_RECEIVE)
		qp_run_receive_completed(run, !end, &reported->completion);
	else
		qp_run_send_completed(run, end, &reported->completion);
	network->done |= qp_run_is_done(run);
}

void qp_run_prepare(struct qp_run *run)
{
	for (size_t direction = 0; direction < 2; direction++) {
		struct direction *dir = &run->directions[direction];
		size_t length = GUARD;

		if (dir->count)
			length = dir->plans[dir->count - 1].offset + dir->plans[dir->count - 1].length + GUARD;
		dir->local = region_of(direction, length, REGION_READ_SINK);
		dir->remote = region_of(!direction, length, REGION_REMOTE_READ | REGION_REMOTE_WRITE);
		memset(dir->local->memory, GUARD_BYTE, length);
		memset(dir->remote->memory, GUARD_BYTE, length);
		for (size_t index = 0; index < dir->count; index++) {
			const struct plan *plan = &dir->plans[index];
			struct region *source = plan->kind == WORK_READ ? dir->remote : dir->local;

			memcpy(source->memory + plan->offset, bytes_of(direction, plan, index), plan->length);
			memset(target_memory(dir, plan), 0, plan->length);
		}
	}
	testbed.completed = qp_run_completed;
	testbed.context = run;
}

void qp_run_begin(struct qp_run *run)
{
	qp_run_prepare(run);
	run->taken = network->now;
	for (size_t direction = 0; direction < 2; direction++)
		qp_run_post_receives(run, direction);
	for (size_t direction = 0; direction < 2; direction++)
		qp_run_post(run, direction);
}

void qp_run_check_end(const struct qp_run *run)
{
	for (size_t direction = 0; direction < 2; direction++) {
		const struct direction *dir = &run->directions[direction];
		size_t end = 0;

		for (size_t index = 0; index <= dir->count; index++) {
			const struct plan *plan = &dir->plans[index];
			size_t start = index < dir->count ? plan->offset : dir->local->length;

			for (; end < start; end++) {
				assert_int_equal(dir->local->memory[end], GUARD_BYTE);
				assert_int_equal(dir->remote->memory[end], GUARD_BYTE);
			}
			if (index == dir->count)
				break;
			for (size_t at = 0; at < plan->length; at++)
				if (target_memory(dir, plan)[at] != OVERWRITTEN)
					fail_msg("work %zu of end %zu was carried out again", index, direction);
			end = start + plan->length;
		}
	}
}

void qp_run_wait(const struct qp_run *run)
{
	if (!qp_run_is_done(run) && !network_run(600 * CLOCK_NS_PER_S))
		fail_msg("hangs: %zu and %zu of %zu and %zu done", run->directions[0].finished,
			 run->directions[1].finished, run->directions[0].count, run->directions[1].count);
}

void qp_run_all(struct qp_run *run)
{
	pair_open(&run->pair, &run->attr);
	qp_run_begin(run);
	qp_run_wait(run);
	run->taken = network->now - run->taken;
	assert_int_equal(testbed.hosts[0].failures + testbed.hosts[1].failures, 0);
	/* Late packets change nothing. */
	network_run(CLOCK_NS_PER_S / 2);
	qp_run_check_end(run);
}

struct qp_run *qp_run_new(uint64_t seed)
{
	struct qp_run *run = calloc(1, sizeof(*run));

	assert_non_null(run);
	qp_open(seed);
	return run;
}

struct qp_run *qp_run_of_sends(size_t count, size_t held, unsigned rnr_retry_count)
{
	struct qp_run *run = qp_run_new(count + held);

	run->attr.rnr_retry_count = rnr_retry_count;
	run->attr.no_rnr_retry = !rnr_retry_count;
	run->held_receives = held;
	for (size_t index = 0; index < count; index++)
		qp_run_add(run, 0, (struct plan){ .kind = WORK_SEND, .length = 3000 });
	pair_open(&run->pair, &run->attr);
	return run;
}

void qp_run_end(struct qp_run *run)
{
	pair_close(&run->pair);
	for (size_t direction = 0; direction < 2; direction++) {
		soft_region_destroy(run->directions[direction].local);
		soft_region_destroy(run->directions[direction].remote);
	}
	free(run);
	qp_close();
}
