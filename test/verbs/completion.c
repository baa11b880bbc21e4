/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: what comes while one is being armed, and how many of them there are. */
#include "test/unit/unit.h"

#include "test/conformance/pair.h"
#include "test/verbs/provider/provider.h"
#include "transport/backend.h"
#include "transport/verbs/verbs.h"

static struct completion_entry late = { .base = { .opcode = IBV_WC_RECV, .byte_len = 8 } };
static unsigned arms;

/* The completion comes just before the first arming takes effect: it raises no event. */
static int notify_late(struct ibv_cq *cq, int solicited)
{
	if (!arms++)
		cq_push((struct completion_queue *)(void *)cq, &late, true, false);
	return cq_notify(cq, solicited);
}

static void arming_loses_nothing(void **state)
{
	static const int64_t spins[] = { 0, 50000 };

	(void)state;
	for (size_t index = 0; index < LENGTH(spins); index++) {
		static struct bench bench;
		struct endpoint_options options;
		struct path_options path = PATH_OPEN;
		const struct verbs_endpoint *endpoint;
		struct ibv_context *context;

		provider_begin(PROVIDER_ROCE, 0);
		assert_true(bench_open(&bench, "verbs", "10.0.0.1", NULL));
		options = bench_options(&bench);
		options.path = &path;
		bench.accept_receives = 4;
		assert_true(bench_connect(&bench, &options));
		assert_true(bench_await_event(&bench, &bench.server, EVENT_ESTABLISHED));
		if (spins[index])
			transport_spin(bench.transport, spins[index]);
		endpoint = (const struct verbs_endpoint *)bench.server.endpoint;
		late.base.wr_id = verbs_wr_id(verbs_of(bench.transport)->slots[endpoint->slot].generation,
					      endpoint->slot, WORK_RECEIVE, 9);
		context = endpoint->id->verbs;
		context->ops.req_notify_cq = notify_late;
		arms = 0;
		/* A message raises the event after which the queue is armed again. */
		assert_int_equal(
			endpoint_post(bench.client.endpoint,
				      &(struct work){ .kind = WORK_SEND, .region = bench.client_region, .length = 8 },
				      1),
			OUTCOME_OK);
		assert_true(bench_await_completions(&bench, &bench.server, WORK_RECEIVE, 2));
		assert_true(arms > 0);
		assert_int_equal(end_last_completion(&bench.server, WORK_RECEIVE)->tag, 9);
		context->ops.req_notify_cq = cq_notify;
		bench_clear(&bench);
		bench_close(&bench);
		provider_end();
	}
}

/* What a connection had reserved of a queue is there for the next one. */
static void queues_are_used_again(void **state)
{
	static struct bench bench;
	struct endpoint_options options;
	struct path_options path = PATH_OPEN;
	unsigned count = 0;

	(void)state;
	provider_begin(PROVIDER_ROCE, 0);
	assert_true(bench_open(&bench, "verbs", "10.0.0.1", NULL));
	options = bench_options(&bench);
	options.path = &path;
	options.send_depth = options.receive_depth = 60;
	for (unsigned turn = 0; turn < 10; turn++) {
		assert_true(bench_connect(&bench, &options));
		assert_true(bench_await_event(&bench, &bench.server, EVENT_ESTABLISHED));
		bench_clear(&bench);
		bench.client = bench.server = bench.listening = (struct end){ .bench = &bench };
		bench.client_region = bench.server_region = NULL;
	}
	for (const struct completion_queue *queue = provider.cqs; queue; queue = queue->next)
		count++;
	assert_int_equal(count, 1);
	bench_close(&bench);
	provider_end();
}

/* A device may leave completions of a queue pair that goes in the queue: their places are the next connection's. */
static void a_queue_pair_leaves_no_completion(void **state)
{
	static struct bench bench;
	struct endpoint_options options;
	struct path_options path = PATH_OPEN;
	const struct verbs_endpoint *endpoint;
	struct completion_queue *queue;

	(void)state;
	provider_begin(PROVIDER_ROCE, 0);
	provider.keeps_completions = true;
	assert_true(bench_open(&bench, "verbs", "10.0.0.1", NULL));
	options = bench_options(&bench);
	options.path = &path;
	assert_true(bench_connect(&bench, &options));
	assert_true(bench_await_event(&bench, &bench.server, EVENT_ESTABLISHED));
	endpoint = (const struct verbs_endpoint *)bench.client.endpoint;
	queue = (struct completion_queue *)endpoint->completions->cq;
	late.base.wr_id = verbs_wr_id(verbs_of(bench.transport)->slots[endpoint->slot].generation, endpoint->slot,
				      WORK_RECEIVE, 9);
	cq_push(queue, &late, true, true);
	bench_clear(&bench);
	assert_int_equal(queue->count, 0);
	bench_close(&bench);
	provider_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arming_loses_nothing),
		cmocka_unit_test(queues_are_used_again),
		cmocka_unit_test(a_queue_pair_leaves_no_completion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
