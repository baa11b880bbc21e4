/* SPDX-License-Identifier: BSD-2-Clause */
/* Common part of the transport/verbs tests: two ends on the simulated device, and access to the device. */
#pragma once

#include "test/conformance/pair.h"
#include "test/unit/unit.h"
#include "test/verbs/provider/provider.h"
#include "transport/backend.h"
#include "transport/verbs/verbs.h"

static struct bench bench;
static struct endpoint_options options; /* both ends' */
static struct path_options path;	/* requested in them */

/* The tear-down of a test. */
static inline int end(void **state)
{
	if (bench.transport) {
		bench_clear(&bench);
		bench_close(&bench);
		bench.transport = NULL;
		provider_end();
	}
	return 0;
}

/* Ends the previous test. */
static inline void begin(enum provider_fabric fabric)
{
	end(NULL);
	provider_begin(fabric, 0);
	assert_true(bench_open(&bench, "verbs", "10.0.0.1", NULL));
	path = (struct path_options)PATH_OPEN;
	options = bench_options(&bench);
	options.path = &path;
}

/* Connects the ends. */
static inline void establish(void)
{
	assert_true(bench_connect(&bench, &options));
	assert_true(bench_await_event(&bench, &bench.server, EVENT_ESTABLISHED));
}

static inline void connect_both(enum provider_fabric fabric)
{
	begin(fabric);
	bench.accept_receives = 4;
	establish();
}

static inline const struct verbs_endpoint *verbs(const struct endpoint *endpoint)
{
	return (const struct verbs_endpoint *)endpoint;
}

static inline struct queue_pair *qp_of(const struct endpoint *endpoint)
{
	return (struct queue_pair *)verbs(endpoint)->qp;
}

static inline struct completion_queue *cq_of(const struct endpoint *endpoint)
{
	return (struct completion_queue *)verbs(endpoint)->completions->cq;
}

static inline struct cm_id *id_of(const struct endpoint *endpoint)
{
	return (struct cm_id *)verbs(endpoint)->id;
}

/* The device's number for one of the endpoint's works. */
static inline uint64_t work_id(const struct endpoint *endpoint, enum work_kind kind, uint32_t tag)
{
	uint32_t slot = verbs(endpoint)->slot;

	return verbs_wr_id(verbs_of(bench.transport)->slots[slot].generation, slot, kind, tag);
}

/* Posts for the client without the backend, as another program would. */
static inline void post(enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)bench.client_region->memory, length, bench.client_region->local_key };
	struct ibv_send_wr *bad, request = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.imm_data = htobe32(0x01020304),
		.wr = { .rdma = { (uintptr_t)bench.server_region->memory, bench.server_region->remote_key } },
	};

	assert_int_equal(ibv_post_send(verbs(bench.client.endpoint)->qp, &request, &bad), 0);
}

/* The client posts a send of 8 bytes. */
static inline void send_8(uint32_t tag, bool unsignalled)
{
	const struct work work = {
		.kind = WORK_SEND, .region = bench.client_region, .length = 8, .tag = tag, .unsignalled = unsignalled
	};

	assert_int_equal(endpoint_post(bench.client.endpoint, &work, 1), 0);
}

/* Up to the client's request. */
static inline void request_connection(void)
{
	assert_true(bench_listen(&bench, &options));
	assert_true(bench_resolve(&bench, &options));
	assert_int_equal(endpoint_connect(bench.client.endpoint, NULL, 0), 0);
}

static inline void begin_member(enum provider_fabric fabric)
{
	begin(fabric);
	options.port_space = PORT_SPACE_UDP;
}

static inline void join_member(void)
{
	assert_true(bench_member(&bench, &bench.client, &bench.client_region, &options));
	assert_int_equal(endpoint_join(bench.client.endpoint), 0);
	assert_true(bench_await_event(&bench, &bench.client, EVENT_JOINED));
}

/* The output, with the last call's error. */
static inline const char *told(struct capture *capture)
{
	bench_report(&bench);
	return capture_end(capture);
}

static inline void expect_told(struct capture *capture, const char *cause)
{
	if (!strstr(told(capture), cause))
		print_message("# %s\n# not told: %s\n", capture->text, cause);
	assert_non_null(strstr(capture->text, cause));
}

/* The statement must print that cause. */
#define EXPECT_TOLD(cause, statement)                                                                                  \
	do {                                                                                                           \
		struct capture told_capture;                                                                           \
                                                                                                                       \
		capture_begin(&told_capture);                                                                          \
		statement;                                                                                             \
		expect_told(&told_capture, cause);                                                                     \
	} while (0)

#define EXPECT_FAILURE(end, cause) EXPECT_TOLD(cause, assert_true(bench_await_event(&bench, end, EVENT_FAILED)))
