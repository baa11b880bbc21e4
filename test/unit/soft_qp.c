/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/network/network.wrap -Wl,@test/network/qp.wrap */
/* Connections over a simulated network: what arrives, how fast, and how it ends if it does not. */
#include <errno.h>

#include "test/network/qp_run.h"
#include "transport/soft/region.h"
#include "transport/soft/wire/mad.h"

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

			qp_open(mtu);
			run->attr.mtu = mtu;
			for (size_t index = 0; index < LENGTH(lengths); index++)
				for (size_t direction = 0; direction < 2; direction++)
					run_add(run, direction,
						(struct plan){ .kind = kinds[kind],
							       .length = lengths[index],
							       .has_immediate = kinds[kind] == WORK_SEND && index % 2,
							       .immediate = 7 });
			run_all(run);
			assert_int_equal(network->lost, 0);
			free(run);
			qp_close();
		}
	}
}

/* ---- thousands of seeded runs ---- */

static void one_run(uint64_t seed, unsigned loss, unsigned other, size_t works)
{
	static const uint32_t mtus[] = { 256, 512, 1024, 2048, 4096 };
	struct run *run = run_new();

	qp_open(seed);
	network->loss = loss;
	network->repeat = network->reorder = network->damage = other;
	run->attr = (struct qp_attr){
		.mtu = mtus[network_roll(LENGTH(mtus))],
		.depth = 1 + network_roll(20),
		.psn = { network_roll(2) ? network_roll(PSN_MASK + 1) : PSN_MASK - network_roll(60),
			 network_roll(PSN_MASK + 1) },
		.reads = 1 + network_roll(16),
		.ack_timeout = 14 + network_roll(6),
	};
	if (!network_roll(4))
		testbed.window = (4 + network_roll(16)) * run->attr.mtu;
	run_plan_randomly(run, works);
	run_all(run);
	free(run);
	qp_close();
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

	qp_open(loss + 1);
	network->loss = loss;
	for (size_t index = 0; index < works; index++)
		run_add(run, 0, (struct plan){ .kind = kind, .length = length });
	run_all(run);
	megabytes = (double)length * (double)works / 1e6 / ((double)run->taken / 1e9);
	if (getenv("SOFT_QUEUE_TRACE"))
		fprintf(stderr, "%s of %u bytes, loss %u/1000: %.1f MB/s, %llu packets, %llu overflowed\n",
			work_kind_text(kind), length, loss, megabytes, (unsigned long long)network->sent,
			(unsigned long long)network->overflowed);
	free(run);
	qp_close();
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

/* ---- a peer that is busy with something else for a while ---- */

static unsigned requests, repeated;
static uint32_t psn_after_all;

static bool count_repeats(struct network *where, const struct host *from, struct packet *packet)
{
	if (from != &testbed.hosts[0] || !(opcode_form(packet->opcode) & FORM_SEND))
		return true;
	if (requests++ && psn_before(packet->psn, psn_after_all))
		repeated++;
	else
		psn_after_all = psn_add(packet->psn, 1);
	where->wake_time = requests >= 500 && requests < 540 ? 50 * CLOCK_NS_PER_MS : 5 * CLOCK_NS_PER_US;
	return true;
}

static void busy_peer_is_not_hurried(void **state)
{
	struct run *run = run_new();

	(void)state;
	qp_open(1);
	testbed.tap = count_repeats;
	requests = repeated = 0;
	run->attr.ack_timeout = 19;
	for (size_t index = 0; index < 100; index++)
		run_add(run, 0, (struct plan){ .kind = WORK_SEND, .length = 10000 });
	run_all(run);
	assert_int_equal(requests, 1000);
	assert_int_equal(repeated, 0);
	assert_true(run->taken >= 50 * CLOCK_NS_PER_MS);
	free(run);
	qp_close();
}

/* ---- a peer that has become slow, as when thousands of others came to it ---- */

static bool slow_down(struct network *where, const struct host *from, struct packet *packet)
{
	count_repeats(where, from, packet);
	where->wake_time = requests < 50 ? 5 * CLOCK_NS_PER_US : 200 * CLOCK_NS_PER_MS;
	return true;
}

/* One work at a time: each answer comes after the work was sent again, and says nothing of how long it took. */
static void slow_peer_is_learned(void **state)
{
	struct run *run = run_new();

	(void)state;
	qp_open(1);
	testbed.tap = slow_down;
	requests = repeated = 0;
	run->attr.ack_timeout = 19;
	run->attr.depth = 1;
	for (size_t index = 0; index < 100; index++)
		run_add(run, 0, (struct plan){ .kind = WORK_SEND, .length = 100 });
	run_all(run);
	assert_in_range(repeated, 1, 15);
	free(run);
	qp_close();
}

/* ---- a loss long ago ---- */

static const struct requester *watched;
static unsigned losses_at_once;

static bool lose_the_third(struct network *where, const struct host *from, struct packet *packet)
{
	(void)where;
	if (from != &testbed.hosts[0] || !(opcode_form(packet->opcode) & FORM_SEND))
		return true;
	requests++;
	if (requests == 10)
		losses_at_once = watched->recent_losses;
	return requests != 3;
}

/* After 64 round trips without another one. */
static void loss_is_forgotten(void **state)
{
	struct run *run = run_new();

	(void)state;
	qp_open(1);
	run->attr.depth = 1;
	for (size_t index = 0; index < 100; index++)
		run_add(run, 0, (struct plan){ .kind = WORK_SEND, .length = 100 });
	pair_open(&run->pair, &run->attr);
	watched = &qp_of(&run->pair, 0)->requester;
	requests = losses_at_once = 0;
	testbed.tap = lose_the_third;
	run_begin(run);
	run_wait(run);
	assert_int_equal(requests, 101);
	assert_int_equal(losses_at_once, 1);
	assert_int_equal(watched->recent_losses, 0);
	run_check_end(run);
	run_end(run);
}

/* A clock that has not moved on: the least there is, as 0 stands for not measured. */
static void answers_may_take_no_time(void **state)
{
	struct run *run = run_of_sends(10, 0, 7);

	(void)state;
	network->delay = network->byte_time = network->wake_time = 0;
	watched = &qp_of(&run->pair, 0)->requester;
	run_begin(run);
	run_wait(run);
	assert_int_equal(watched->srtt, 1);
	run_check_end(run);
	run_end(run);
}

/* ---- a receiver that is slow to post ---- */

static void not_ready_waits_for_ever(void **state)
{
	struct run *run = run_of_sends(10, 7, 7);
	uint64_t sent;

	(void)state;
	run_begin(run);
	assert_false(network_run(4 * CLOCK_NS_PER_S));
	/* It asks every 5 ms at the most, with one packet. */
	sent = network->sent;
	assert_false(network_run(1 * CLOCK_NS_PER_S));
	assert_in_range(network->sent - sent, 300, 450);
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
	testbed.hosts[1].dead = true;
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
	assert_int_equal(testbed.hosts[0].failures + testbed.hosts[1].failures, 0);
	testbed.hosts[1].dead = true;
	assert_false(network_run(20 * CLOCK_NS_PER_S));
	assert_int_equal(testbed.hosts[0].failures, 1);
	assert_string_equal(testbed.hosts[0].failure, "the peer does not answer");
	run_end(run);
}

/* A probe is under way when the command posts: its work carries the news. */
static void work_behind_a_probe_fails(void **state)
{
	struct run *run = run_of_sends(2, 0, 7);

	(void)state;
	run->may_fail = true;
	run_prepare(run);
	testbed.hosts[1].dead = true;
	soft_qp_probe(qp_of(&run->pair, 0));
	soft_qp_probe(qp_of(&run->pair, 0));
	run_post(run, 0);
	assert_true(network_run(60 * CLOCK_NS_PER_S));
	assert_int_equal(run->failed_status, COMPLETION_RETRY_EXCEEDED);
	assert_int_equal(testbed.hosts[0].failures, 0);
	run_end(run);
}

/* The path says that the peer is gone: it has a moment to show that it is not. Whatever it said is over then. */
static void doubted_peer_answers(void **state)
{
	struct run *run = run_of_sends(2, 0, 7);
	uint64_t sent;

	(void)state;
	network->loss = 200;
	run_begin(run);
	assert_true(network_run(CLOCK_NS_PER_S));
	for (unsigned count = 0; count < 20; count++) {
		sent = network->sent;
		qp_of(&run->pair, 0)->endpoint->icmp_errno = EHOSTUNREACH;
		soft_qp_suspect(qp_of(&run->pair, 0));
		soft_qp_suspect(qp_of(&run->pair, 0));
		hosts_flush();
		assert_true(network->sent > sent);
		assert_false(network_run(3 * CLOCK_NS_PER_S));
		assert_int_equal(qp_of(&run->pair, 0)->endpoint->icmp_errno, 0);
	}
	assert_int_equal(testbed.hosts[0].failures + testbed.hosts[1].failures, 0);
	run_end(run);
}

/* As the call-back of a socket that got the news: with a new look at the clock. */
static void doubt(struct soft_qp *qp)
{
	soft_qp_batch_end(qp->transport);
	soft_qp_suspect(qp);
	soft_qp_batch_end(qp->transport);
}

static bool lose_requests(struct network *where, const struct host *from, struct packet *packet)
{
	(void)where;
	return from != &testbed.hosts[0] || (opcode_form(packet->opcode) & FORM_RESPONSE);
}

/* Work that was agreed to wait for ever does so again, and what was counted during the doubt is forgotten. */
static void doubted_peer_speaks(void **state)
{
	struct bench bench;
	struct counter counter = { .wanted = 2 };
	struct work work = { .length = 100 };
	struct soft_qp *qp, *other;

	(void)state;
	bench_open(&bench, 4);
	qp = qp_of(&bench.pair, 0);
	other = qp_of(&bench.pair, 1);
	testbed.completed = count_completions;
	testbed.owner = &counter;
	qp->ack_timeout = 0;
	qp->retry_count = 0;
	other->probe_interval = 3600 * CLOCK_NS_PER_S;
	work.region = bench.region;
	work.kind = WORK_WRITE;
	work.remote_address = (uintptr_t)bench.region->memory;
	work.remote_key = bench.region->remote_key;
	assert_int_equal(soft_qp_post(qp, &work, 1), OUTCOME_OK);
	bench_run();
	assert_int_equal(counter.good, 1);

	testbed.tap = lose_requests;
	assert_int_equal(soft_qp_post(qp, &work, 1), OUTCOME_OK);
	for (unsigned round = 0; round < 2; round++) {
		network_run(10 * CLOCK_NS_PER_S);
		doubt(qp);
		for (unsigned wait = 0; wait < 40 && qp->requester.timeouts < 4; wait++)
			network_run(10 * CLOCK_NS_PER_MS);
		assert_int_equal(qp->requester.timeouts, 4);
		soft_qp_probe(other);
	}
	network_run(10 * CLOCK_NS_PER_S);
	testbed.tap = NULL;
	doubt(qp);
	assert_true(network_run(CLOCK_NS_PER_S));
	assert_int_equal(testbed.hosts[0].failures + testbed.hosts[1].failures, 0);
	bench_close(&bench);
}

static void doubted_peer_is_gone(void **state)
{
	(void)state;
	/*
	 * Idle, with work that is repeated, with work that waits for ever, with a peer that has no receive, and with
	 * work that has waited for long and has no retries.
	 */
	for (unsigned way = 0; way < 5; way++) {
		struct run *run = run_of_sends(2, way == 3 ? 2 : 0, 7);
		struct soft_qp *qp = qp_of(&run->pair, 0);

		run->may_fail = true;
		if (!way || way == 3)
			run_begin(run);
		else
			run_prepare(run);
		network_run(CLOCK_NS_PER_S / 10);
		testbed.hosts[1].dead = true;
		qp->ack_timeout = way == 2 || way == 4 ? 0 : CLOCK_NS_PER_S * 4;
		if (way == 1 || way == 2 || way == 4)
			run_post(run, 0);
		if (way == 4) {
			qp->retry_count = 0;
			network_run(10 * CLOCK_NS_PER_S);
		}
		doubt(qp);
		network_run(CLOCK_NS_PER_S * 9 / 10);
		assert_int_equal(testbed.hosts[0].failures, 0);
		network_run(CLOCK_NS_PER_S * 7 / 10);
		assert_int_equal(testbed.hosts[0].failures, 1);
		assert_string_equal(testbed.hosts[0].failure,
				    "the peer is gone: nothing holds UDP port 4791 there (no RoCE v2)");
		run_end(run);
	}
}

/* However many others are silent just then, and have to be asked a few at a time. */
static void doubted_peers_of_many_are_gone(void **state)
{
	enum {
		PAIRS = 2000,
		DOUBTED = 50
	};
	struct pair *pairs = calloc(PAIRS, sizeof(*pairs));
	struct qp_attr attr = { .depth = 1, .ack_timeout = 20 };

	(void)state;
	assert_non_null(pairs);
	qp_open(1);
	for (size_t index = 0; index < PAIRS; index++) {
		pair_open(&pairs[index], &attr);
		soft_qp_stop(qp_of(&pairs[index], 1));
	}
	testbed.hosts[1].dead = true;
	network_run(CLOCK_NS_PER_S * 6 / 10);
	soft_qp_batch_end(testbed.hosts[0].transport);
	for (size_t index = 0; index < PAIRS; index += PAIRS / DOUBTED)
		soft_qp_suspect(qp_of(&pairs[index], 0));
	network_run(CLOCK_NS_PER_S * 9 / 10);
	assert_int_equal(testbed.hosts[0].failures, 0);
	network_run(CLOCK_NS_PER_S * 7 / 10);
	assert_int_equal(testbed.hosts[0].failures, DOUBTED);
	for (size_t index = 0; index < PAIRS; index++)
		pair_close(&pairs[index]);
	qp_close();
	free(pairs);
}

/* Who has agreed never to repeat anything, or after hours only, still wants to know whether the peer lives. */
static void probes_do_not_wait_for_hours(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < 2; turn++) {
		struct run *run = run_of_sends(2, 0, 7);
		struct soft_qp *qp = qp_of(&run->pair, 0);

		run_begin(run);
		assert_true(network_run(CLOCK_NS_PER_S));
		qp->ack_timeout = turn ? mad_timeout(31) : 0;
		network->loss = 200;
		assert_false(network_run(60 * CLOCK_NS_PER_S));
		assert_int_equal(testbed.hosts[0].failures, 0);
		testbed.hosts[1].dead = true;
		assert_false(network_run(60 * CLOCK_NS_PER_S));
		assert_int_equal(testbed.hosts[0].failures, 1);
		assert_string_equal(testbed.hosts[0].failure, "the peer does not answer");
		run_end(run);
	}
}

/* ---- access violations ---- */

static void try_violation(struct work work, unsigned access, unsigned loss, uint32_t key_error, uint64_t address_error)
{
	struct run *run = run_new();
	uint8_t before[9000];
	struct region *region, *source;

	qp_open(work.length + loss + key_error + address_error + 1);
	network->loss = loss;
	run->may_fail = true;
	pair_open(&run->pair, &run->attr);
	run_prepare(run);
	region = region_of(1, sizeof(before), access);
	for (size_t at = 0; at < sizeof(before); at++)
		before[at] = region->memory[at] = (uint8_t)(at * 3);
	source = region_of(0, sizeof(before), 0);
	work.region = source;
	work.remote_address = (uintptr_t)region->memory + address_error;
	work.remote_key = region->remote_key + key_error;
	assert_int_equal(soft_qp_post(qp_of(&run->pair, 0), &work, 1), OUTCOME_OK);
	assert_true(network_run(60 * CLOCK_NS_PER_S));
	assert_int_equal(run->failed_status, COMPLETION_REMOTE_ACCESS);
	assert_memory_equal(before, region->memory, sizeof(before));
	assert_int_equal(testbed.hosts[1].failures, 1);
	/* Nothing is taken any more. */
	work.remote_address -= address_error;
	work.remote_key -= key_error;
	assert_int_equal(soft_qp_post(qp_of(&run->pair, 0), &work, 1), OUTCOME_OK);
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

			try_violation((struct work){ .kind = kinds[kind], .length = 16 }, wrong, loss, 0, 0);
			try_violation((struct work){ .kind = kinds[kind], .length = 5000 }, right, loss, 1, 0);
			try_violation((struct work){ .kind = kinds[kind], .length = 9000 }, right, loss, 0, 1);
			try_violation((struct work){ .kind = kinds[kind], .length = 1 }, right, loss, 0, 9000);
			try_violation((struct work){ .kind = kinds[kind], .length = 5000 }, right, loss, 0, UINT64_MAX);
			try_violation((struct work){ .kind = kinds[kind], .length = 5000 }, right, loss, 0,
				      UINT64_MAX - 8000);
		}
}

struct ends {
	enum completion_status statuses[4];
	size_t count;
};

static void note_end(void *owner, struct host *host, const struct reported *reported)
{
	struct ends *ends = owner;

	if (host == &testbed.hosts[0] && ends->count < LENGTH(ends->statuses))
		ends->statuses[ends->count++] = reported->completion.status;
}

/* The refusal of one work is all that the peer says of those before it, which were carried out. */
static void works_before_a_violation_are_done(void **state)
{
	struct run *run = run_of_sends(1, 0, 7);
	struct ends ends = { .count = 0 };
	struct work works[3] = { { .kind = WORK_SEND, .length = 8 },
				 { .kind = WORK_WRITE, .length = 8 },
				 { .kind = WORK_WRITE, .length = 8 } };

	(void)state;
	run_prepare(run);
	run_post_receives(run, 0);
	network->wake_time = CLOCK_NS_PER_MS; /* all in one batch */
	testbed.completed = note_end;
	testbed.owner = &ends;
	for (size_t index = 0; index < LENGTH(works); index++) {
		works[index].region = run->directions[0].local;
		works[index].remote_address = (uintptr_t)run->directions[0].remote->memory;
		works[index].remote_key = run->directions[0].remote->remote_key + (index == 2);
	}
	assert_int_equal(soft_qp_post(qp_of(&run->pair, 0), works, 3), OUTCOME_OK);
	network_run(CLOCK_NS_PER_S);
	assert_int_equal(ends.count, 3);
	assert_int_equal(ends.statuses[0], COMPLETION_OK);
	assert_int_equal(ends.statuses[1], COMPLETION_OK);
	assert_int_equal(ends.statuses[2], COMPLETION_REMOTE_ACCESS);
	run_end(run);
}

static void nothing_needs_no_key(void **state)
{
	struct run *run = run_of_sends(1, 1, 7);
	struct work works[2] = { { .kind = WORK_READ, .tag = 1 }, { .kind = WORK_WRITE, .tag = 2 } };
	struct counter counter = { .wanted = 2 };

	(void)state;
	run_prepare(run);
	testbed.completed = count_completions;
	testbed.owner = &counter;
	works[0].region = works[1].region = run->directions[0].local;
	assert_int_equal(soft_qp_post(qp_of(&run->pair, 0), works, 2), OUTCOME_OK);
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
		assert_int_equal(soft_qp_post(qp_of(&run->pair, 0), &work, 1), OUTCOME_OK);
		network_run(CLOCK_NS_PER_MS);
		soft_region_destroy(target);
		assert_ptr_equal(testbed.hosts[1].transport->destroyed_regions, target);
		testbed.hosts[1].transport->destroyed_regions = NULL;
		soft_region_free((struct soft_region *)target);
		assert_true(network_run(60 * CLOCK_NS_PER_S));
		assert_int_equal(run->failed_status, COMPLETION_REMOTE_ACCESS);
		soft_region_destroy(local);
		run_end(run);
	}
}

/* ---- answers that make no sense ---- */

static void strange_answers_are_dropped(void **state)
{
	struct run *run = run_of_sends(8, 8, 7);
	struct packet packet = { .pkey = PACKET_PKEY };

	(void)state;
	run_begin(run);
	network_run(CLOCK_NS_PER_MS);
	packet.destination = soft_qp_qpn(qp_of(&run->pair, 0));
	for (uint32_t psn = 0; psn <= PSN_MASK; psn += 4093) {
		if (psn < 100)
			continue;
		packet.opcode = (uint8_t)(OPCODE_READ_RESPONSE_FIRST + psn % 5);
		packet.psn = psn;
		packet.acknowledgement.syndrome = (uint8_t)psn;
		host_send_packet(&testbed.hosts[1], &testbed.hosts[0], &packet);
		network_run(CLOCK_NS_PER_US * 10);
	}
	/* Inside the window, but not what was asked for. */
	packet.opcode = OPCODE_READ_RESPONSE_ONLY;
	packet.psn = 0;
	host_send_packet(&testbed.hosts[1], &testbed.hosts[0], &packet);
	packet.opcode = OPCODE_ACKNOWLEDGE;
	packet.acknowledgement.syndrome = 0x5f;
	host_send_packet(&testbed.hosts[1], &testbed.hosts[0], &packet);
	packet.acknowledgement.syndrome = syndrome_make(SYNDROME_NAK, 9);
	host_send_packet(&testbed.hosts[1], &testbed.hosts[0], &packet);
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

		qp_open(seed);
		run->attr = (struct qp_attr){ .mtu = 1024, .depth = 8, .reads = 4 };
		run_plan_randomly(run, 20);
		pair_open(&run->pair, &run->attr);
		bench.attr.psn[0] = bench.attr.psn[1] = PSN_MASK - 20;
		bench.attr.receive_depth = 200;
		bench.attr.reads = network_roll(16);
		bench.attr.no_reads = !bench.attr.reads;
		pair_open(&bench.pair, &bench.attr);
		bench.region = region_of(1, 65536, REGION_REMOTE_READ | REGION_REMOTE_WRITE);
		number = soft_qp_qpn(bench.pair.ends[1].qp);
		testbed.completed = NULL;
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
			host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
			if (!network_roll(4))
				soft_qp_post(bench.pair.ends[1].qp, &receive, network_roll(2));
			if (!network_roll(4))
				network_run(network_roll(100) * CLOCK_NS_PER_US);
		}
		run_begin(run);
		run_wait(run);
		pair_close(&bench.pair);
		soft_region_destroy(bench.region);
		run_check_end(run);
		run_end(run);
	}
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

		qp_open(seed);
		network->loss = network_roll(60);
		run->attr = (struct qp_attr){ .mtu = 1024, .depth = 8 };
		run_plan_randomly(run, 30);
		pair_open(&run->pair, &run->attr);
		source = region_of(0, 65536, 0);
		for (size_t index = 0; index < LENGTH(benches); index++) {
			struct work work = { .kind = index ? WORK_WRITE : WORK_READ, .region = source };

			pair_open(&benches[index].pair, &benches[index].attr);
			benches[index].region = region_of(1, 65536, REGION_REMOTE_READ | REGION_REMOTE_WRITE);
			work.length = 60000;
			work.remote_address = (uintptr_t)benches[index].region->memory;
			work.remote_key = benches[index].region->remote_key + (index == 1);
			soft_qp_post(benches[index].pair.ends[0].qp, &work, 1);
		}
		run_begin(run);
		network_run(network_roll(300) * CLOCK_NS_PER_US);
		for (size_t index = 0; index < LENGTH(benches); index++) {
			if (network_roll(2))
				soft_qp_stop(benches[index].pair.ends[network_roll(2)].qp);
			pair_close(&benches[index].pair);
			soft_region_destroy(benches[index].region);
		}
		run_wait(run);
		run_check_end(run);
		soft_region_destroy(source);
		run_end(run);
	}
}

/* Returns how many packets found no room in the receiver's socket. */
static uint64_t senders_at_once(size_t count_of_pairs)
{
	enum {
		PAIRS = 64,
		WORKS = 16,
		SIZE = 16384
	};
	static struct pair pairs[PAIRS];
	struct region *source, *target;
	struct counter counter = { .wanted = count_of_pairs * (is_valgrind() ? 1 : WORKS) };
	uint64_t overflowed;
	int64_t began;

	assert_true(count_of_pairs <= PAIRS);
	qp_open(3);
	network->room = 212992;
	network->packet_time = 2 * CLOCK_NS_PER_US;
	testbed.window = network->room / 2;
	testbed.completed = count_completions;
	testbed.owner = &counter;
	source = region_of(0, SIZE, 0);
	target = region_of(1, SIZE, REGION_REMOTE_WRITE);
	began = network->now;
	for (size_t index = 0; index < count_of_pairs; index++) {
		struct qp_attr attr = { .depth = WORKS };
		struct work work = { .kind = WORK_WRITE,
				     .region = source,
				     .length = SIZE,
				     .remote_address = (uintptr_t)target->memory,
				     .remote_key = target->remote_key };

		pair_open(&pairs[index], &attr);
		for (unsigned count = 0; count < counter.wanted / count_of_pairs; count++)
			assert_int_equal(soft_qp_post(qp_of(&pairs[index], 0), &work, 1), OUTCOME_OK);
	}
	assert_true(network_run(60 * CLOCK_NS_PER_S));
	if (getenv("SOFT_QUEUE_TRACE"))
		fprintf(stderr, "%zu senders: %.1f MB/s, %llu packets, %llu overflowed\n", count_of_pairs,
			(double)(counter.wanted * SIZE) / 1e6 / ((double)(network->now - began) / 1e9),
			(unsigned long long)network->sent, (unsigned long long)network->overflowed);
	assert_true(network->now - began < CLOCK_NS_PER_S);
	overflowed = network->overflowed;
	for (size_t index = 0; index < count_of_pairs; index++)
		pair_close(&pairs[index]);
	soft_region_destroy(source);
	soft_region_destroy(target);
	qp_close();
	return overflowed;
}

/* The least windows of all of them together are far more than the receiver's socket holds. */
static void many_senders_get_through(void **state)
{
	(void)state;
	senders_at_once(64);
}

/* Each by itself would fill it. */
static void busy_senders_share_the_window(void **state)
{
	(void)state;
	assert_int_equal(senders_at_once(20), 0);
	assert_int_equal(senders_at_once(2), 0);
}

static size_t requests_sent;
static size_t request_to_lose; /* counted from 1 in the order of sending; 0: none */
static int64_t last_request_at;

static bool count_requests(struct network *where, const struct host *from, struct packet *packet)
{
	(void)where;
	(void)packet;
	if (from != &testbed.hosts[0])
		return true;
	last_request_at = clock_now();
	return ++requests_sent != request_to_lose;
}

/*
 * Many queue pairs keep a slow network busy for longer than the time-out of any of them. Returns how long the last
 * completion came after the last request was sent, in nanoseconds.
 */
static int64_t run_backlog(size_t lose)
{
	enum {
		PAIRS = 256,
		WORKS = 4
	};
	static struct pair pairs[PAIRS];
	struct counter counter = { .wanted = (size_t)PAIRS * WORKS };
	struct region *source, *target;
	int64_t left;

	qp_open(3);
	request_to_lose = lose;
	network->byte_time = 5000000; /* picoseconds: half a millisecond for each packet */
	testbed.tap = count_requests;
	testbed.completed = count_completions;
	testbed.owner = &counter;
	requests_sent = 0;
	source = region_of(0, 64, 0);
	target = region_of(1, 64, REGION_REMOTE_WRITE);
	for (size_t index = 0; index < PAIRS; index++) {
		struct qp_attr attr = { .depth = WORKS, .ack_timeout = 18 };
		struct work work = { .kind = WORK_WRITE,
				     .region = source,
				     .length = 64,
				     .remote_address = (uintptr_t)target->memory,
				     .remote_key = target->remote_key };

		pair_open(&pairs[index], &attr);
		for (unsigned count = 0; count < WORKS; count++)
			assert_int_equal(soft_qp_post(qp_of(&pairs[index], 0), &work, 1), OUTCOME_OK);
	}
	assert_true(network_run(60 * CLOCK_NS_PER_S));
	left = clock_now() - last_request_at;
	/* A repeat of the lost one, and of those behind it in its queue pair. */
	assert_in_range(requests_sent, counter.wanted + (lose > 0), counter.wanted + (lose ? WORKS : 0));
	for (size_t index = 0; index < PAIRS; index++)
		pair_close(&pairs[index]);
	soft_region_destroy(source);
	soft_region_destroy(target);
	qp_close();
	return left;
}

static void a_backlog_is_no_loss(void **state)
{
	(void)state;
	run_backlog(0);
}

/* Acknowledged packets of other queue pairs that were sent later prove the loss long before the backlog is gone. */
static void a_loss_in_a_backlog_is_noticed(void **state)
{
	(void)state;
	printf("left %g ms\n", (double)run_backlog(100) / 1e6);
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
		cmocka_unit_test(busy_peer_is_not_hurried),
		cmocka_unit_test(slow_peer_is_learned),
		cmocka_unit_test(loss_is_forgotten),
		cmocka_unit_test(answers_may_take_no_time),
		cmocka_unit_test(not_ready_waits_for_ever),
		cmocka_unit_test(not_ready_is_given_up),
		cmocka_unit_test(dead_peer_is_noticed),
		cmocka_unit_test(idle_connection_is_probed),
		cmocka_unit_test(work_behind_a_probe_fails),
		cmocka_unit_test(doubted_peer_answers),
		cmocka_unit_test(doubted_peer_speaks),
		cmocka_unit_test(doubted_peer_is_gone),
		cmocka_unit_test(doubted_peers_of_many_are_gone),
		cmocka_unit_test(probes_do_not_wait_for_hours),
		cmocka_unit_test(violations_change_nothing),
		cmocka_unit_test(works_before_a_violation_are_done),
		cmocka_unit_test(nothing_needs_no_key),
		cmocka_unit_test(region_goes_under_way),
		cmocka_unit_test(strange_answers_are_dropped),
		cmocka_unit_test(random_packets),
		cmocka_unit_test(queues_do_not_disturb_each_other),
		cmocka_unit_test(many_senders_get_through),
		cmocka_unit_test(busy_senders_share_the_window),
		cmocka_unit_test(a_backlog_is_no_loss),
		cmocka_unit_test(a_loss_in_a_backlog_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
