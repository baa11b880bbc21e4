/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: completions during arming, the contents of a completion, and the number of queues. */
#include "test/verbs/ends.h"

#include <errno.h>

static struct completion_entry late = { .base = { .opcode = IBV_WC_RECV, .byte_len = 8 } };
static unsigned arms;

/* The completion arrives just before the first arming takes effect: it raises no event. */
static int notify_late(struct ibv_cq *cq, int solicited)
{
	if (!arms++)
		cq_push((struct completion_queue *)(void *)cq, &late, true, false);
	return cq_notify(cq, solicited);
}

TEST(arming_loses_no_completion, NULL, end)
{
	for (int64_t spin = 0; spin <= 50000; spin += 50000) {
		struct ibv_context *context;

		connect_both(PROVIDER_ROCE);
		if (spin)
			transport_spin(bench.transport, spin);
		late.base.wr_id = work_id(bench.server.endpoint, WORK_RECEIVE, 9);
		context = verbs(bench.server.endpoint)->id->verbs;
		context->ops.req_notify_cq = notify_late;
		arms = 0;
		/* A message raises the event after which the queue is armed again. */
		send_8(0, false);
		assert_true(bench_await_completions(&bench, &bench.server, WORK_RECEIVE, 2));
		assert_true(arms > 0);
		assert_int_equal(end_last_completion(&bench.server, WORK_RECEIVE)->tag, 9);
		context->ops.req_notify_cq = cq_notify;
	}
}

/* A connection's reserved entries are available to the next one. */
TEST(queues_are_used_again, NULL, end)
{
	begin(PROVIDER_ROCE);
	options.send_depth = options.receive_depth = 60;
	for (unsigned turn = 0; turn < 10; turn++) {
		if (turn)
			bench_clear(&bench);
		establish();
	}
	assert_non_null(provider.cqs);
	assert_null(provider.cqs->next);
}

/* A device may leave a destroyed queue pair's completions in the queue: their entries are the next connection's. */
TEST(a_queue_pair_leaves_no_completion, NULL, end)
{
	struct completion_queue *queue;

	begin(PROVIDER_ROCE);
	provider.keeps_completions = true;
	establish();
	queue = cq_of(bench.client.endpoint);
	late.base.wr_id = work_id(bench.client.endpoint, WORK_RECEIVE, 9);
	cq_push(queue, &late, true, true);
	bench_clear(&bench);
	assert_int_equal(queue->count, 0);
}

/* The server's receive that was used as the nth. */
static const struct completion *await_receive(size_t count)
{
	assert_true(bench_await_completions(&bench, &bench.server, WORK_RECEIVE, count));
	return end_last_completion(&bench.server, WORK_RECEIVE);
}

TEST(immediate_and_length_of_receives, NULL, end)
{
	const struct completion *completion;

	connect_both(PROVIDER_ROCE);
	post(IBV_WR_RDMA_WRITE_WITH_IMM, 3000);
	completion = await_receive(1);
	assert_int_equal(completion->status, COMPLETION_OK);
	assert_int_equal(completion->length, 0);
	assert_true(completion->has_immediate);
	assert_int_equal(completion->immediate, 0x01020304);
	post(IBV_WR_SEND_WITH_IMM, 300);
	completion = await_receive(2);
	assert_int_equal(completion->length, 300);
	assert_int_equal(completion->immediate, 0x01020304);
	post(IBV_WR_SEND, 200);
	completion = await_receive(3);
	assert_int_equal(completion->length, 200);
	assert_false(completion->has_immediate);
}

/* The completion of an earlier slot user's work. */
TEST(a_stale_completion, NULL, end)
{
	uint32_t slot;
	uint64_t stale;

	connect_both(PROVIDER_ROCE);
	slot = verbs(bench.client.endpoint)->slot;
	stale = work_id(bench.client.endpoint, WORK_RECEIVE, 7);
	endpoint_destroy(bench.client.endpoint);
	bench_linger(&bench, 5);
	region_destroy(bench.client_region);
	bench.client.count = 0;
	assert_true(bench_resolve(&bench, &options));
	assert_int_equal(endpoint_connect(bench.client.endpoint, NULL, 0), 0);
	assert_true(bench_await_event(&bench, &bench.client, EVENT_ESTABLISHED));
	assert_int_equal(verbs(bench.client.endpoint)->slot, slot);
	late.base.wr_id = stale;
	cq_push(cq_of(bench.client.endpoint), &late, true, false);
	bench_linger(&bench, 5);
	assert_int_equal(end_completions(&bench.client, WORK_RECEIVE), 0);
	/* A number never used. */
	late.base.wr_id = ~0ull;
	cq_push(cq_of(bench.client.endpoint), &late, true, false);
	late.base.wr_id = work_id(bench.client.endpoint, WORK_RECEIVE, 9);
	cq_push(cq_of(bench.client.endpoint), &late, true, false);
	assert_true(bench_await_completions(&bench, &bench.client, WORK_RECEIVE, 1));
	assert_int_equal(end_last_completion(&bench.client, WORK_RECEIVE)->tag, 9);
}

/* A client's send that completes with that status, and its error's words. */
static void expect_failed_send(bool unsignalled, enum completion_status status, const char *cause)
{
	const struct completion *completion;

	EXPECT_TOLD(cause, {
		send_8(77, unsignalled);
		assert_true(bench_await_completions(&bench, &bench.client, WORK_SEND, 1));
	});
	completion = end_last_completion(&bench.client, WORK_SEND);
	assert_int_equal(completion->status, status);
	assert_int_equal(completion->tag, 77);
	assert_int_equal(completion->length, 0);
}

/* In a failed completion only the status counts; each status has its number and words. */
TEST(failed_completions, NULL, end)
{
	static const enum ibv_wc_status statuses[] = {
		IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_PROT_ERR,  IBV_WC_REM_ACCESS_ERR,    IBV_WC_REM_INV_REQ_ERR,
		IBV_WC_REM_OP_ERR,  IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_FATAL_ERR,
	};

	for (size_t index = 0; index < LENGTH(statuses); index++) {
		connect_both(PROVIDER_ROCE);
		provider.breaks_with = statuses[index];
		expect_failed_send(false, (enum completion_status)statuses[index], "send failed: ");
	}
}

/* A vanished end does not answer. */
TEST(a_peer_without_a_queue, NULL, end)
{
	struct ibv_qp_attr attributes = { .qp_state = IBV_QPS_ERR };

	connect_both(PROVIDER_ROCE);
	provider.retries_end = true;
	assert_int_equal(ibv_modify_qp(verbs(bench.server.endpoint)->qp, &attributes, IBV_QP_STATE), 0);
	expect_failed_send(true, COMPLETION_RETRY_EXCEEDED, "retries exceeded");
	/* The peer's receives were flushed, which is not reported. */
	assert_int_equal(end_completions(&bench.server, WORK_RECEIVE), 0);
}

/* A timeout's error includes the local port's state. */
TEST(the_cause_of_the_peers_silence, NULL, end)
{
	static const struct {
		enum ibv_port_state state;
		enum ibv_event_type event;
		uint8_t port;
		const char *cause;
	} rows[] = {
		{ IBV_PORT_ACTIVE, IBV_EVENT_QP_FATAL, 0, "retries exceeded (" },
		{ IBV_PORT_DOWN, IBV_EVENT_PORT_ERR, 1, "retries exceeded; port 1 of roce0 is down (" },
		{ IBV_PORT_INIT, IBV_EVENT_QP_FATAL, 0, "retries exceeded; port 1 of roce0 is not active (" },
		{ IBV_PORT_ACTIVE, IBV_EVENT_GID_CHANGE, 1, "; last event of port 1 of roce0: GID table change (" },
		{ IBV_PORT_ACTIVE, IBV_EVENT_GID_CHANGE, 2, "retries exceeded (" },
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {
		connect_both(PROVIDER_ROCE);
		provider.devices[0]->ports[0].state = rows[row].state;
		if (rows[row].port)
			device_port_event(provider.devices[0], rows[row].event, rows[row].port);
		bench_linger(&bench, 2);
		provider.breaks_with = IBV_WC_RETRY_EXC_ERR;
		expect_failed_send(false, COMPLETION_RETRY_EXCEEDED, rows[row].cause);
	}
}

/* A thousand connections need one domain and few completion queues, and none overflows. */
TEST(queues_are_shared, NULL, end)
{
	unsigned count = 0;

	begin(PROVIDER_ROCE);
	provider.devices[0]->limits.max_cqe = 600;
	options.send_depth = 200;
	options.receive_depth = 100;
	assert_true(bench_connect(&bench, &options));
	for (const struct completion_queue *cq = provider.cqs; cq; cq = cq->next) {
		assert_int_equal(cq->capacity, count ? 600 : 300);
		count++;
	}
	assert_int_equal(count, 2);
	assert_int_equal(provider.protection_domains, 1);
	/* One completion queue takes all completions of a queue pair with two queues of that length. */
	assert_int_equal(bench.client.endpoint->domain->max_qp_wr, 300);
	/* Each is twice as large as the previous one, up to 65536 entries. */
	begin(PROVIDER_ROCE);
	provider.devices[0]->limits.max_cqe = provider.devices[0]->limits.max_qp_wr = 1 << 20;
	options.send_depth = options.receive_depth = 20000;
	assert_true(bench_connect(&bench, &options));
	assert_int_equal(provider.cqs->capacity, 40000);
	assert_int_equal(provider.cqs->next->capacity, 65536);
	/* Or with what there is memory for. */
	begin(PROVIDER_ROCE);
	provider_fail("ibv_create_cq", ENOMEM, 1);
	provider.fails_once = true;
	options.send_depth = options.receive_depth = 150;
	assert_true(bench_connect(&bench, &options));
	assert_int_equal(provider.cqs->next->capacity, 300);
	begin(PROVIDER_ROCE);
	provider.devices[0]->limits.max_cqe = 20;
	assert_true(bench_listen(&bench, &options));
	EXPECT_TOLD("creating a completion queue: Invalid argument", assert_false(bench_resolve(&bench, &options)));
}

/* A queue pair that could not be created keeps no entries. */
TEST(a_failed_queue_pair_keeps_no_entries, NULL, end)
{
	begin(PROVIDER_ROCE);
	assert_true(bench_listen(&bench, &options));
	provider_fail("ibv_create_qp", ENOMEM, 0);
	EXPECT_TOLD("creating a queue pair", assert_false(bench_resolve(&bench, &options)));
	provider_fail(NULL, 0, 0);
	endpoint_destroy(bench.client.endpoint);
	region_destroy(bench.client_region);
	bench_linger(&bench, 5);
	bench.client.count = 0;
	assert_true(bench_resolve(&bench, &options));
	assert_int_equal(verbs(bench.client.endpoint)->completions->reserved, 2 * PAIR_DEPTH);
}

/* Completion events are acknowledged, the last before the queue is destroyed: the provider checks the sum. */
TEST(events_are_acknowledged, NULL, end)
{
	const struct completion_queue *cq;
	unsigned max = 0;

	connect_both(PROVIDER_ROCE);
	cq = cq_of(bench.server.endpoint);
	for (uint32_t round = 0; round < 200; round++) {
		struct work work = { .kind = WORK_RECEIVE, .region = bench.server_region, .length = 8 };

		send_8(0, false);
		assert_int_equal(endpoint_post(bench.server.endpoint, &work, 1), 0);
		assert_true(bench_await_completions(&bench, &bench.server, WORK_RECEIVE, round + 1));
		bench_linger(&bench, 0);
		if (cq->taken - cq->acknowledged > max)
			max = cq->taken - cq->acknowledged;
	}
	assert_true(cq->taken > 64);
	assert_true(cq->acknowledged > 0);
	assert_true(max < 64);
}

/* Woken without an event: another process may have taken it, or the kernel woke too many. */
TEST(a_wake_up_without_an_event, NULL, end)
{
	struct verbs_domain *domain;

	connect_both(PROVIDER_ROCE);
	bench_linger(&bench, 5);
	domain = verbs_domain_of(verbs(bench.client.endpoint));
	domain->completion_readable.callback(domain);
	assert_false(bench.client.endpoint->domain->removed);
}

/* The queue was armed when it was created, and later arming fails: without an error a connection would wait forever. */
TEST(a_queue_that_cannot_be_armed, NULL, end)
{
	connect_both(PROVIDER_ROCE);
	bench_linger(&bench, 5);
	provider_fail("ibv_req_notify_cq", EIO, 0);
	post(IBV_WR_SEND, 8);
	EXPECT_TOLD("roce0: arming a completion queue", {
		assert_true(bench_await_event(&bench, &bench.client, EVENT_FAILED));
		assert_true(bench_await_event(&bench, &bench.server, EVENT_FAILED));
	});
}

/* More completions than one turn of the loop may handle, before the first is reported. */
TEST(a_flood_of_completions, NULL, end)
{
	enum {
		COUNT = 1200
	};

	begin(PROVIDER_ROCE);
	options.receive_depth = options.send_depth = COUNT / 2;
	bench.accept_receives = 4;
	establish();
	for (uint32_t index = 0; index < COUNT; index++) {
		late.base.wr_id = work_id(bench.server.endpoint, WORK_RECEIVE, index);
		cq_push(cq_of(bench.server.endpoint), &late, false, false);
	}
	assert_true(bench_await_completions(&bench, &bench.server, WORK_RECEIVE, COUNT));
	for (uint32_t index = 0; index < COUNT; index++)
		assert_int_equal(bench.server.records[1 + index].completion.tag, index);
}

/* The message is in the completion queue, without a wake-up. */
TEST(the_last_message_before_the_end, NULL, end)
{
	struct completion_queue *cq;

	connect_both(PROVIDER_ROCE);
	cq = cq_of(bench.server.endpoint);
	cq->armed = false;
	post(IBV_WR_SEND, 100);
	provider_pump();
	assert_int_equal(end_completions(&bench.server, WORK_RECEIVE), 0);
	assert_int_equal(endpoint_disconnect(bench.client.endpoint), 0);
	assert_true(bench_await_event(&bench, &bench.server, EVENT_DISCONNECTED));
	assert_int_equal(end_completions(&bench.server, WORK_RECEIVE), 1);
	assert_int_equal(bench.server.records[bench.server.count - 1].event, EVENT_DISCONNECTED);
}

/* A device that raises no event for flushed work. Flushed work is never reported. */
TEST(a_silent_flush, NULL, end)
{
	for (int fabric = PROVIDER_ROCE; fabric <= PROVIDER_IWARP; fabric++) {
		connect_both((enum provider_fabric)fabric);
		provider.silent_flush = true;
		assert_int_equal(endpoint_disconnect(bench.server.endpoint), 0);
		assert_true(bench_await_event(&bench, &bench.client, EVENT_DISCONNECTED));
		assert_true(bench_await_event(&bench, &bench.server, EVENT_DISCONNECTED));
		assert_int_equal(end_completions(&bench.server, WORK_RECEIVE), 0);
	}
}

/* soft-RoCE flushes the queue pair whose peer was refused, and raises no device event. */
TEST(a_queue_that_is_flushed_without_a_reason, NULL, end)
{
	for (int silent = 0; silent < 2; silent++) {
		struct work work = { .kind = WORK_WRITE, .length = 8, .remote_address = 1, .remote_key = 1 };

		connect_both(PROVIDER_ROCE);
		provider.refuses_in_silence = silent;
		work.region = bench.client_region;
		assert_int_equal(endpoint_post(bench.client.endpoint, &work, 1), 0);
		EXPECT_FAILURE(&bench.server,
			       silent ? "the queue pair failed, and the device gives no reason" : "access error");
		assert_int_equal(end_completions(&bench.server, WORK_RECEIVE), 0);
	}
}
