/* SPDX-License-Identifier: BSD-2-Clause */
/* What transport/verbs asks of the device and of the peer, and what it makes of their answers, a case each. */
#include "test/unit/unit.h"

#include <errno.h>

#include "core/clock.h"
#include "test/conformance/pair.h"
#include "test/verbs/provider/provider.h"
#include "transport/backend.h"
#include "transport/verbs/verbs.h"

static struct bench bench;
static struct endpoint_options options;
static struct path_options path;

/* What was printed, with the error of the last call. */
static const char *told(struct capture *capture)
{
	bench_report(&bench);
	return capture_end(capture);
}

static void begin(enum provider_fabric fabric)
{
	provider_begin(fabric, 0);
	assert_true(bench_open(&bench, "verbs", "10.0.0.1", NULL));
	path = (struct path_options)PATH_OPEN;
	options = bench_options(&bench);
	options.path = &path;
}

static void end(void)
{
	bench_clear(&bench);
	bench_close(&bench);
	provider_end();
}

static void connect_both(enum provider_fabric fabric)
{
	begin(fabric);
	bench.accept_receives = 4;
	assert_true(bench_connect(&bench, &options));
	assert_true(bench_await_event(&bench, &bench.server, EVENT_ESTABLISHED));
}

static const struct verbs_endpoint *verbs(const struct endpoint *endpoint)
{
	return (const struct verbs_endpoint *)endpoint;
}

static struct queue_pair *qp_of(const struct endpoint *endpoint)
{
	return (struct queue_pair *)verbs(endpoint)->qp;
}

static struct cm_id *id_of(const struct endpoint *endpoint)
{
	return (struct cm_id *)verbs(endpoint)->id;
}

/* As another program would, without the backend. */
static void post(struct endpoint *endpoint, enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)bench.client_region->memory, length, bench.client_region->local_key };
	struct ibv_send_wr *bad, request = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.imm_data = htobe32(0x01020304),
		.wr = { .rdma = { (uintptr_t)bench.server_region->memory, bench.server_region->remote_key } },
	};

	assert_int_equal(ibv_post_send(verbs(endpoint)->qp, &request, &bad), 0);
}

static void what_took_the_receive(void **state)
{
	const struct completion *completion;

	(void)state;
	connect_both(PROVIDER_ROCE);
	post(bench.client.endpoint, IBV_WR_RDMA_WRITE_WITH_IMM, 3000);
	assert_true(bench_await_completions(&bench, &bench.server, WORK_RECEIVE, 1));
	completion = end_last_completion(&bench.server, WORK_RECEIVE);
	assert_int_equal(completion->status, COMPLETION_OK);
	assert_int_equal(completion->length, 0);
	assert_true(completion->has_immediate);
	assert_int_equal(completion->immediate, 0x01020304);
	post(bench.client.endpoint, IBV_WR_SEND_WITH_IMM, 300);
	assert_true(bench_await_completions(&bench, &bench.server, WORK_RECEIVE, 2));
	completion = end_last_completion(&bench.server, WORK_RECEIVE);
	assert_int_equal(completion->length, 300);
	assert_int_equal(completion->immediate, 0x01020304);
	post(bench.client.endpoint, IBV_WR_SEND, 200);
	assert_true(bench_await_completions(&bench, &bench.server, WORK_RECEIVE, 3));
	completion = end_last_completion(&bench.server, WORK_RECEIVE);
	assert_int_equal(completion->length, 200);
	assert_false(completion->has_immediate);
	end();
}

static void what_is_posted(void **state)
{
	struct work work;
	const struct send_work *posted;

	(void)state;
	begin(PROVIDER_ROCE);
	path.inline_size = 32;
	bench.accept_receives = 4;
	assert_true(bench_connect(&bench, &options));
	provider.signalled = provider.unsignalled = provider.inlined = 0;
	work = (struct work){ .kind = WORK_SEND,
			      .region = bench.client_region,
			      .length = 33,
			      .unsignalled = true,
			      .has_immediate = true,
			      .immediate = 0x0a0b0c0d };
	assert_int_equal(endpoint_post(bench.client.endpoint, &work, 1), 0);
	posted = qp_of(bench.client.endpoint)->sends;
	assert_int_equal(posted->request.imm_data, htobe32(0x0a0b0c0d));
	assert_int_equal(posted->request.opcode, IBV_WR_SEND_WITH_IMM);
	assert_int_equal(provider.unsignalled, 1);
	assert_int_equal(provider.inlined, 0);
	work.unsignalled = work.has_immediate = false;
	work.length = 32;
	assert_int_equal(endpoint_post(bench.client.endpoint, &work, 1), 0);
	assert_int_equal(provider.signalled, 1);
	assert_int_equal(provider.inlined, 1);
	/* What is read comes from the peer. */
	work.kind = WORK_READ;
	work.remote_address = (uintptr_t)bench.server_region->memory;
	work.remote_key = bench.server_region->remote_key;
	assert_int_equal(endpoint_post(bench.client.endpoint, &work, 1), 0);
	assert_true(bench_await_completions(&bench, &bench.client, WORK_READ, 1));
	assert_int_equal(end_last_completion(&bench.client, WORK_READ)->status, COMPLETION_OK);
	assert_int_equal(provider.inlined, 1);
	assert_int_equal(end_completions(&bench.client, WORK_SEND), 1);
	end();
}

/* More in one call than a chain, and more than a queue pair has room for. */
static void long_chains(void **state)
{
	struct work works[40];
	struct capture capture;

	(void)state;
	begin(PROVIDER_ROCE);
	options.receive_depth = options.send_depth = LENGTH(works);
	bench.accept_receives = LENGTH(works);
	assert_true(bench_connect(&bench, &options));
	for (size_t index = 0; index < LENGTH(works); index++)
		works[index] = (struct work){ .kind = WORK_SEND, .region = bench.client_region, .length = 8, .tag = 1 };
	assert_int_equal(endpoint_post(bench.client.endpoint, works, LENGTH(works)), 0);
	assert_true(bench_await_completions(&bench, &bench.server, WORK_RECEIVE, LENGTH(works)));
	assert_true(bench_await_completions(&bench, &bench.client, WORK_SEND, LENGTH(works)));
	works[0].kind = WORK_RECEIVE;
	works[0].region = bench.server_region;
	capture_begin(&capture);
	for (size_t index = 0; index < LENGTH(works); index++)
		assert_int_equal(endpoint_post(bench.server.endpoint, works, 1), 0);
	assert_int_equal(endpoint_post(bench.server.endpoint, works, 1), OUTCOME_INTERNAL);
	assert_non_null(strstr(told(&capture), "posting a receive"));
	end();
}

/* The completion of work of a slot's earlier user. */
static void a_stale_completion(void **state)
{
	struct completion_entry entry = { .base = { .opcode = IBV_WC_RECV, .byte_len = 8 } };
	const struct verbs_endpoint *endpoint;
	uint64_t stale;

	(void)state;
	connect_both(PROVIDER_ROCE);
	stale = qp_of(bench.client.endpoint)->base.qp_num;
	endpoint = verbs(bench.client.endpoint);
	stale = verbs_wr_id(verbs_of(bench.transport)->slots[endpoint->slot].generation, endpoint->slot, WORK_RECEIVE,
			    7);
	endpoint_destroy(bench.client.endpoint);
	bench_linger(&bench, 5);
	region_destroy(bench.client_region);
	bench.client.count = 0;
	assert_true(bench_resolve(&bench, &options));
	assert_int_equal(endpoint_connect(bench.client.endpoint, NULL, 0), 0);
	assert_true(bench_await_event(&bench, &bench.client, EVENT_ESTABLISHED));
	endpoint = verbs(bench.client.endpoint);
	assert_int_equal(endpoint->slot, (stale >> (VERBS_TAG_BITS + VERBS_KIND_BITS)) & ((1u << VERBS_SLOT_BITS) - 1));
	entry.base.wr_id = stale;
	cq_push((struct completion_queue *)endpoint->completions->cq, &entry, true, false);
	bench_linger(&bench, 5);
	assert_int_equal(end_completions(&bench.client, WORK_RECEIVE), 0);
	/* A number that there never was. */
	entry.base.wr_id = ~0ull;
	cq_push((struct completion_queue *)endpoint->completions->cq, &entry, true, false);
	entry.base.wr_id = verbs_wr_id(verbs_of(bench.transport)->slots[endpoint->slot].generation, endpoint->slot,
				       WORK_RECEIVE, 9);
	cq_push((struct completion_queue *)endpoint->completions->cq, &entry, true, false);
	assert_true(bench_await_completions(&bench, &bench.client, WORK_RECEIVE, 1));
	assert_int_equal(end_last_completion(&bench.client, WORK_RECEIVE)->tag, 9);
	end();
}

/* What a device says in a failed completion besides its status means nothing; each status has its number and words. */
static void failed_completions(void **state)
{
	static const struct {
		enum ibv_wc_status status;
		enum completion_status told;
	} rows[] = {
		{ IBV_WC_LOC_LEN_ERR, COMPLETION_LENGTH },
		{ IBV_WC_LOC_PROT_ERR, COMPLETION_PROTECTION },
		{ IBV_WC_LOC_ACCESS_ERR, COMPLETION_PROTECTION },
		{ IBV_WC_REM_ACCESS_ERR, COMPLETION_REMOTE_ACCESS },
		{ IBV_WC_REM_INV_REQ_ERR, COMPLETION_REMOTE_REQUEST },
		{ IBV_WC_REM_OP_ERR, COMPLETION_REMOTE_OPERATION },
		{ IBV_WC_RETRY_EXC_ERR, COMPLETION_RETRY_EXCEEDED },
		{ IBV_WC_RNR_RETRY_EXC_ERR, COMPLETION_RNR_EXCEEDED },
		{ IBV_WC_FATAL_ERR, COMPLETION_OTHER },
	};

	(void)state;
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct capture capture;
		struct work work;

		connect_both(PROVIDER_ROCE);
		work = (struct work){ .kind = WORK_SEND, .region = bench.client_region, .length = 8, .tag = 77 };
		provider.breaks_with = rows[row].status;
		capture_begin(&capture);
		assert_int_equal(endpoint_post(bench.client.endpoint, &work, 1), 0);
		assert_true(bench_await_completions(&bench, &bench.client, WORK_SEND, 1));
		told(&capture);
		assert_int_equal(end_last_completion(&bench.client, WORK_SEND)->status, rows[row].told);
		assert_int_equal(end_last_completion(&bench.client, WORK_SEND)->tag, 77);
		assert_int_equal(end_last_completion(&bench.client, WORK_SEND)->length, 0);
		assert_non_null(strstr(capture.text, "send failed: "));
		if (rows[row].status != IBV_WC_LOC_ACCESS_ERR && rows[row].told != COMPLETION_OTHER)
			assert_int_equal(rows[row].told, rows[row].status);
		end();
	}
}

/* Between devices of different limits. */
static void reads_of_a_stranger(bool own_qp)
{
	const struct rdma_conn_param parameters = {
		.qp_num = 99, .initiator_depth = 16, .responder_resources = 9, .retry_count = 6, .rnr_retry_count = 5
	};
	struct sockaddr_in to;
	struct cm_id *client, *server;

	begin(PROVIDER_INFINIBAND);
	assert_true(address_parse("10.0.1.1", ADDRESS_FORMAT_IP, &bench.address));
	provider.devices[1]->limits.max_qp_rd_atom = 4;
	provider.devices[1]->limits.max_qp_init_rd_atom = 2;
	options.own_qp = own_qp;
	path.rnr_retry = 3;
	assert_true(bench_listen(&bench, &options));
	to = provider.devices[1]->ports[0].address;
	to.sin_port = htobe16(bench.listener->local.port);
	client = cm_ask((const struct sockaddr *)&provider.devices[0]->ports[0].address, (const struct sockaddr *)&to,
			&parameters);
	assert_true(bench_await_event(&bench, &bench.listening, EVENT_REQUEST));
	assert_int_equal(bench.server.endpoint->state, ENDPOINT_ACCEPTING);
	server = id_of(bench.server.endpoint);
	assert_int_equal(server->local.responder_resources, 4);
	assert_int_equal(server->local.initiator_depth, 2);
	assert_int_equal(server->local.rnr_retry_count, 3);
	assert_int_equal(qp_of(bench.server.endpoint)->attributes.max_dest_rd_atomic, 4);
	assert_int_equal(qp_of(bench.server.endpoint)->attributes.max_rd_atomic, 2);
	assert_int_equal(qp_of(bench.server.endpoint)->attributes.retry_cnt, 6);
	assert_int_equal(qp_of(bench.server.endpoint)->attributes.rnr_retry, 5);
	cm_ask_end(client);
	end();
}

static void reads_are_limited_by_the_device(void **state)
{
	(void)state;
	reads_of_a_stranger(false);
	reads_of_a_stranger(true);
}

/* But on iWARP, where a peer of an older protocol says nothing of that. */
static void peer_that_allows_no_reads(void **state)
{
	(void)state;
	for (int iwarp = 0; iwarp <= 1; iwarp++) {
		const struct rdma_conn_param parameters = { .qp_num = 99 };
		struct sockaddr_in to;
		struct cm_id *client;

		begin(iwarp ? PROVIDER_IWARP : PROVIDER_ROCE);
		assert_true(address_parse("10.0.1.1", ADDRESS_FORMAT_IP, &bench.address));
		assert_true(bench_listen(&bench, &options));
		to = provider.devices[1]->ports[0].address;
		to.sin_port = htobe16(bench.listener->local.port);
		client = cm_ask((const struct sockaddr *)&provider.devices[0]->ports[0].address,
				(const struct sockaddr *)&to, &parameters);
		assert_true(bench_await_event(&bench, &bench.listening, EVENT_REQUEST));
		assert_int_equal(bench.server.endpoint->no_reads, !iwarp);
		cm_ask_end(client);
		end();
	}
}

static void how_often_to_try_again(void **state)
{
	(void)state;
	for (int asked = 0; asked < 2; asked++)
		for (int own_qp = 0; own_qp < 2; own_qp++) {
			const struct ibv_qp_attr *attributes;

			begin(PROVIDER_ROCE);
			options.own_qp = own_qp;
			if (asked) {
				path.retry = 2;
				path.rnr_retry = 5;
				path.ack_timeout = 14;
				path.type_of_service = 96;
				path.backlog = 5;
			}
			assert_true(bench_connect(&bench, &options));
			assert_true(bench_await_event(&bench, &bench.server, EVENT_ESTABLISHED));
			assert_int_equal(id_of(bench.listener)->backlog, asked ? 5 : 1024);
			for (int side = 0; side < 2; side++) {
				const struct endpoint *endpoint = side ? bench.server.endpoint : bench.client.endpoint;

				attributes = &qp_of(endpoint)->attributes;
				assert_int_equal(attributes->retry_cnt, asked ? 2 : 7);
				assert_int_equal(attributes->rnr_retry, asked ? 5 : 7);
				assert_int_equal(attributes->timeout, asked ? 14 : 18);
				assert_int_equal(attributes->max_rd_atomic, 1);
				assert_int_equal(attributes->max_dest_rd_atomic, 1);
				/* 0 would be 655 ms. */
				assert_int_equal(attributes->min_rnr_timer, 1);
				assert_int_equal(id_of(endpoint)->type_of_service, asked ? 96 : -1);
				assert_int_equal(id_of(endpoint)->ack_timeout, asked ? 14 : -1);
			}
			end();
		}
}

/* A sender that may try again only so often, at a receiver that is never ready. */
static void receiver_never_ready(void **state)
{
	struct capture capture;
	struct work work;

	(void)state;
	begin(PROVIDER_ROCE);
	path.rnr_retry = 2;
	assert_true(bench_connect(&bench, &options));
	work = (struct work){ .kind = WORK_SEND, .region = bench.client_region, .length = 8 };
	capture_begin(&capture);
	assert_int_equal(endpoint_post(bench.client.endpoint, &work, 1), 0);
	assert_true(bench_await_completions(&bench, &bench.client, WORK_SEND, 1));
	told(&capture);
	assert_int_equal(end_last_completion(&bench.client, WORK_SEND)->status, COMPLETION_RNR_EXCEEDED);
	end();
}

/* One that is gone answers nothing. */
static void a_peer_without_a_queue(void **state)
{
	struct ibv_qp_attr attributes = { .qp_state = IBV_QPS_ERR };
	struct capture capture;
	struct work work;

	(void)state;
	connect_both(PROVIDER_ROCE);
	provider.retries_end = true;
	assert_int_equal(ibv_modify_qp(verbs(bench.server.endpoint)->qp, &attributes, IBV_QP_STATE), 0);
	work = (struct work){ .kind = WORK_SEND, .region = bench.client_region, .length = 8, .unsignalled = true };
	capture_begin(&capture);
	assert_int_equal(endpoint_post(bench.client.endpoint, &work, 1), 0);
	assert_true(bench_await_completions(&bench, &bench.client, WORK_SEND, 1));
	assert_non_null(strstr(told(&capture), "retries exceeded"));
	assert_int_equal(end_last_completion(&bench.client, WORK_SEND)->status, COMPLETION_RETRY_EXCEEDED);
	/* The peer's receives were flushed, which is no news. */
	assert_int_equal(end_completions(&bench.server, WORK_RECEIVE), 0);
	end();
}

/* Whoever gets no answer is told what is known of the own port. */
static void why_the_peer_is_silent(void **state)
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

	(void)state;
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct capture capture;
		struct work work;

		connect_both(PROVIDER_ROCE);
		provider.devices[0]->ports[0].state = rows[row].state;
		if (rows[row].port)
			device_port_event(provider.devices[0], rows[row].event, rows[row].port);
		bench_linger(&bench, 2);
		work = (struct work){ .kind = WORK_SEND, .region = bench.client_region, .length = 8 };
		provider.breaks_with = IBV_WC_RETRY_EXC_ERR;
		capture_begin(&capture);
		assert_int_equal(endpoint_post(bench.client.endpoint, &work, 1), 0);
		assert_true(bench_await_completions(&bench, &bench.client, WORK_SEND, 1));
		told(&capture);
		if (!strstr(capture.text, rows[row].cause))
			print_message("# row %zu: %s\n", row, capture.text);
		assert_non_null(strstr(capture.text, rows[row].cause));
		end();
	}
}

/* As far as the request of the client. */
static void request_connection(void)
{
	assert_true(bench_listen(&bench, &options));
	assert_true(bench_resolve(&bench, &options));
	assert_int_equal(endpoint_connect(bench.client.endpoint, NULL, 0), 0);
}

static const struct {
	enum provider_fabric fabric;
	enum rdma_cm_event_type type;
	int status;
	enum error_kind kind;
	const char *cause;
} failures[] = {
	{ PROVIDER_ROCE, RDMA_CM_EVENT_REJECTED, 8, ERROR_NO_LISTENER, "nobody listens there" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_REJECTED, 28, ERROR_OTHER, "refused by the peer" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_REJECTED, 4, ERROR_OTHER, "manager timed out" },
	{ PROVIDER_IWARP, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED, ERROR_NO_LISTENER, "nobody listens there" },
	{ PROVIDER_IWARP, RDMA_CM_EVENT_REJECTED, -ECONNRESET, ERROR_OTHER, "refused by the peer" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, ERROR_NO_REPLY, "no answer in time" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_UNREACHABLE, -EHOSTUNREACH, ERROR_NO_REPLY, "no route to the host" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_UNREACHABLE, -ENETUNREACH, ERROR_OTHER, "no route to the host" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_CONNECT_ERROR, -ECONNRESET, ERROR_OTHER, "the peer closed the connection" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_CONNECT_ERROR, 1, ERROR_OTHER, "connection manager error" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_ADDR_ERROR, -EADDRNOTAVAIL, ERROR_OTHER, "not an address of this host" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, ERROR_OTHER, "no RDMA device on the route to it" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_ROUTE_ERROR, -524, ERROR_OTHER, "the kernel does not support this" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_ROUTE_ERROR, -EADDRINUSE, ERROR_OTHER, "the port is in use" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_ROUTE_ERROR, -EPROTO, ERROR_OTHER, "Protocol error" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT, ERROR_NO_REPLY, "no answer in time" },
};

static void why_it_did_not_connect(void **state)
{
	(void)state;
	for (size_t row = 0; row < LENGTH(failures); row++) {
		struct capture capture;

		begin(failures[row].fabric);
		bench.answer_requests = false;
		request_connection();
		cm_raise(id_of(bench.client.endpoint), failures[row].type, failures[row].status);
		capture_begin(&capture);
		assert_true(bench_await_event(&bench, &bench.client, EVENT_FAILED));
		told(&capture);
		if (!strstr(capture.text, failures[row].cause))
			print_message("# row %zu: %s\n", row, capture.text);
		assert_non_null(strstr(capture.text, failures[row].cause));
		assert_int_equal(bench.error.kind, failures[row].kind);
		assert_int_equal(bench.client.records[bench.client.count - 1].outcome, OUTCOME_NO_CONNECTION);
		/* Once is enough. */
		cm_raise(id_of(bench.client.endpoint), failures[row].type, failures[row].status);
		bench_linger(&bench, 5);
		assert_int_equal(end_events(&bench.client, EVENT_FAILED), 1);
		end();
	}
}

static void a_peer_says_no(void **state)
{
	(void)state;
	for (int fabric = PROVIDER_ROCE; fabric <= PROVIDER_IWARP; fabric++) {
		struct capture capture;

		begin((enum provider_fabric)fabric);
		bench.accept = false;
		request_connection();
		capture_begin(&capture);
		assert_true(bench_await_event(&bench, &bench.client, EVENT_FAILED));
		assert_non_null(strstr(told(&capture), "refused by the peer: \"not today\""));
		assert_int_equal(bench.error.kind, ERROR_OTHER);
		assert_memory_equal(bench.client.private_data, "not today", 9);
		end();
	}
}

/* librdmacm moves the client's QP. */
static void qp_of_client_is_not_moved(void **state)
{
	struct capture capture;

	(void)state;
	begin(PROVIDER_ROCE);
	request_connection();
	provider_fail("ucma_modify_qp", ETIMEDOUT, 0);
	capture_begin(&capture);
	assert_true(bench_await_event(&bench, &bench.client, EVENT_FAILED));
	assert_non_null(strstr(told(&capture), "connecting: no answer in time ("));
	assert_int_equal(bench.error.kind, ERROR_NO_REPLY);
	end();
}

/* The message lies in the completion queue, which nobody was woken for. */
static void the_last_message_before_the_end(void **state)
{
	struct completion_queue *cq;

	(void)state;
	connect_both(PROVIDER_ROCE);
	cq = (struct completion_queue *)verbs(bench.server.endpoint)->completions->cq;
	cq->armed = false;
	post(bench.client.endpoint, IBV_WR_SEND, 100);
	provider_pump();
	assert_int_equal(end_completions(&bench.server, WORK_RECEIVE), 0);
	assert_int_equal(endpoint_disconnect(bench.client.endpoint), 0);
	assert_true(bench_await_event(&bench, &bench.server, EVENT_DISCONNECTED));
	assert_int_equal(end_completions(&bench.server, WORK_RECEIVE), 1);
	assert_int_equal(bench.server.records[bench.server.count - 1].event, EVENT_DISCONNECTED);
	end();
}

/* The RTU is lost. The client's first message proves the connection to the kernel, too: else it would send no DREQ. */
static void a_message_in_place_of_the_rtu(void **state)
{
	(void)state;
	begin(PROVIDER_ROCE);
	bench.accept_receives = 4;
	provider.rtu_lost = true;
	assert_true(bench_connect(&bench, &options));
	post(bench.client.endpoint, IBV_WR_SEND, 8);
	assert_true(bench_await_completions(&bench, &bench.server, WORK_RECEIVE, 1));
	assert_int_equal(endpoint_disconnect(bench.server.endpoint), 0);
	assert_true(bench_await_event(&bench, &bench.client, EVENT_DISCONNECTED));
	bench_linger(&bench, 5);
	assert_int_equal(end_events(&bench.server, EVENT_ESTABLISHED), 1);
	end();
}

/* The connection manager's message overtakes the last acknowledgement; which may also never come. */
static void the_last_acknowledgement(void **state)
{
	(void)state;
	for (int way = 0; way < 3; way++) {
		struct completion_entry entry = { .base = { .opcode = IBV_WC_SEND } };
		int64_t start;
		struct work work;

		begin(PROVIDER_ROCE);
		assert_true(bench_connect(&bench, &options));
		assert_true(bench_await_event(&bench, &bench.server, EVENT_ESTABLISHED));
		work = (struct work){ .kind = WORK_SEND, .region = bench.client_region, .length = 8, .tag = 7 };
		assert_int_equal(endpoint_post(bench.client.endpoint, &work, 1), 0);
		entry.base.wr_id = qp_of(bench.client.endpoint)->sends->request.wr_id;
		entry.base.qp_num = bench.client.endpoint->qpn;
		assert_int_equal(endpoint_disconnect(bench.server.endpoint), 0);
		start = clock_now();
		bench_linger(&bench, 5);
		assert_int_equal(end_events(&bench.client, EVENT_DISCONNECTED), 0);
		if (way == 0)
			cq_push((struct completion_queue *)verbs(bench.client.endpoint)->completions->cq, &entry, false,
				false);
		if (way == 1)
			assert_int_equal(endpoint_disconnect(bench.client.endpoint), 0);
		assert_true(bench_await_event(&bench, &bench.client, EVENT_DISCONNECTED));
		assert_int_equal(end_completions(&bench.client, WORK_SEND), way == 0);
		assert_int_equal(bench.client.records[bench.client.count - 1].event, EVENT_DISCONNECTED);
		assert_int_equal(clock_now() - start >= 400 * CLOCK_NS_PER_MS, way == 2);
		assert_true(bench_await_event(&bench, &bench.server, EVENT_DISCONNECTED));
		end();
	}
}

static void acknowledge_late(struct queue_pair *qp)
{
	struct completion_entry entry = { .base = { .opcode = IBV_WC_SEND, .qp_num = qp->base.qp_num } };

	if (!qp->sends)
		return;
	entry.base.wr_id = qp->sends->request.wr_id;
	cq_push((struct completion_queue *)qp->base.send_cq, &entry, false, true);
}

/* The endpoint is destroyed while it waits for it: when the acknowledgement comes there is nobody to tell. */
static void the_last_acknowledgement_of_nobody(void **state)
{
	struct work work;

	(void)state;
	connect_both(PROVIDER_ROCE);
	provider.keeps_completions = true;
	provider.destroying = acknowledge_late;
	work = (struct work){ .kind = WORK_SEND, .region = bench.client_region, .length = 8 };
	assert_int_equal(endpoint_post(bench.client.endpoint, &work, 1), 0);
	assert_int_equal(endpoint_disconnect(bench.server.endpoint), 0);
	bench_linger(&bench, 5);
	assert_int_equal(end_events(&bench.client, EVENT_DISCONNECTED), 0);
	endpoint_destroy(bench.client.endpoint);
	bench.client.endpoint = NULL;
	bench_linger(&bench, 5);
	assert_int_equal(end_completions(&bench.client, WORK_SEND), 0);
	assert_int_equal(end_events(&bench.client, EVENT_DISCONNECTED), 0);
	end();
}

/* Neither a failed listener nor a listener of another device keeps the identifier of who asks. */
static void an_unwanted_request(void **state)
{
	struct capture capture;
	unsigned before = 0, after = 0;

	(void)state;
	begin(PROVIDER_ROCE);
	assert_true(bench_listen(&bench, &options));
	assert_true(bench_resolve(&bench, &options));
	capture_begin(&capture);
	cm_raise(id_of(bench.listener), RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
	assert_true(bench_await_event(&bench, &bench.listening, EVENT_FAILED));
	for (const struct cm_id *id = provider.ids; id; id = id->next)
		before++;
	assert_int_equal(endpoint_connect(bench.client.endpoint, NULL, 0), 0);
	assert_true(bench_await_event(&bench, &bench.client, EVENT_FAILED));
	assert_non_null(strstr(told(&capture), "refused by the peer"));
	for (const struct cm_id *id = provider.ids; id; id = id->next)
		after++;
	assert_int_equal(after, before);
	assert_int_equal(end_events(&bench.listening, EVENT_REQUEST), 0);
	end();
}

/* The command hears of a request that finds no memory, and the peer is refused. */
static void a_request_without_memory(void **state)
{
	struct capture capture;

	(void)state;
	begin(PROVIDER_ROCE);
	request_connection();
	provider_fail("calloc", ENOMEM, 0);
	capture_begin(&capture);
	assert_true(bench_await_event(&bench, &bench.client, EVENT_FAILED));
	provider_fail(NULL, 0, 0);
	assert_non_null(strstr(told(&capture), "a request is refused: out of memory"));
	assert_int_equal(end_events(&bench.listening, EVENT_REQUEST_FAILED), 1);
	assert_int_equal(end_events(&bench.listening, EVENT_REQUEST), 0);
	end();
}

static struct cm_id *ask(const struct rdma_conn_param *parameters)
{
	struct sockaddr_in to = provider.devices[0]->ports[0].address;

	to.sin_port = htobe16(bench.listener->local.port);
	return cm_ask(NULL, (const struct sockaddr *)&to, parameters);
}

/* The client has gone before its request is answered, and its withdrawal is not yet heard of. */
static void an_answer_to_nobody(void **state)
{
	const struct rdma_conn_param parameters = { .qp_num = 99 };
	struct capture capture;
	struct cm_id *client;

	(void)state;
	begin(PROVIDER_ROCE);
	bench.answer_requests = false;
	assert_true(bench_listen(&bench, &options));
	client = ask(&parameters);
	assert_true(bench_await_event(&bench, &bench.listening, EVENT_REQUEST));
	cm_ask_end(client);
	provider_pump();
	capture_begin(&capture);
	assert_int_equal(endpoint_create_qp(bench.server.endpoint), OUTCOME_NO_CONNECTION);
	assert_non_null(strstr(told(&capture), "the peer withdrew the request"));
	end();
}

static void rights_of_a_region(void **state)
{
	static const unsigned both[] = { IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
					 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

	(void)state;
	for (int fabric = PROVIDER_ROCE; fabric <= PROVIDER_IWARP; fabric++) {
		static const unsigned asked[] = { REGION_LOCAL, REGION_REMOTE_READ, REGION_REMOTE_WRITE,
						  REGION_READ_SINK };
		const unsigned given[] = { IBV_ACCESS_LOCAL_WRITE, both[0], both[1],
					   fabric == PROVIDER_IWARP ? both[1] : (unsigned)IBV_ACCESS_LOCAL_WRITE };
		struct region *region;

		connect_both((enum provider_fabric)fabric);
		for (size_t index = 0; index < LENGTH(asked); index++) {
			const struct region_entry *entry = provider.regions;

			assert_int_equal(region_create(bench.client.endpoint->domain, 64, asked[index], &region), 0);
			while (entry && entry->base.lkey != region->local_key)
				entry = entry->next;
			assert_non_null(entry);
			assert_int_equal(entry->access, given[index]);
			assert_int_equal(entry->base.rkey, region->remote_key);
			region_destroy(region);
		}
		end();
	}
}

static void join_one(enum provider_fabric fabric)
{
	begin(fabric);
	options.port_space = PORT_SPACE_UDP;
}

static void finish_join(void)
{
	assert_true(bench_member(&bench, &bench.client, &bench.client_region, &options));
	assert_int_equal(endpoint_join(bench.client.endpoint, &bench), 0);
	assert_true(bench_await_event(&bench, &bench.client, EVENT_JOINED));
}

static void service_level_of_a_group(void **state)
{
	(void)state;
	for (int asked = 0; asked < 2; asked++) {
		join_one(PROVIDER_INFINIBAND);
		if (asked)
			path.service_level = 6;
		finish_join();
		assert_int_equal(provider.last_handle.sl, asked ? 6 : 3);
		assert_int_equal(bench.client.group.service_level, asked ? 6 : 3);
		assert_int_equal(bench.client.group.lid, 0xc001);
		assert_int_equal(bench.client.group.qkey, UDP_QKEY);
		assert_int_equal(provider.last_handle.dlid, 0xc001);
		end();
	}
}

static void a_datagram_without_immediate(void **state)
{
	const struct completion *completion;
	struct work work;

	(void)state;
	join_one(PROVIDER_ROCE);
	finish_join();
	work = (struct work){ .kind = WORK_RECEIVE, .region = bench.client_region, .length = 1000 };
	assert_int_equal(endpoint_post(bench.client.endpoint, &work, 1), 0);
	work = (struct work){ .kind = WORK_SEND, .region = bench.client_region, .offset = 2000, .length = 300 };
	assert_int_equal(endpoint_post(bench.client.endpoint, &work, 1), 0);
	assert_true(bench_await_completions(&bench, &bench.client, WORK_RECEIVE, 1));
	completion = end_last_completion(&bench.client, WORK_RECEIVE);
	assert_int_equal(completion->length, 300);
	assert_false(completion->has_immediate);
	assert_int_equal(completion->source_qpn, bench.client.endpoint->qpn);
	end();
}

static void service_level_of_a_connection(void **state)
{
	(void)state;
	begin(PROVIDER_INFINIBAND);
	path.service_level = 5;
	assert_true(bench_connect(&bench, &options));
	assert_true(bench_await_event(&bench, &bench.server, EVENT_ESTABLISHED));
	assert_int_equal(qp_of(bench.client.endpoint)->attributes.ah_attr.sl, 5);
	assert_int_equal(qp_of(bench.server.endpoint)->attributes.ah_attr.sl, 5);
	end();
}

static void the_path_that_was_taken(void **state)
{
	struct path taken;

	(void)state;
	connect_both(PROVIDER_ROCE);
	endpoint_path(bench.client.endpoint, &taken);
	assert_string_equal(taken.device, "roce0");
	assert_string_equal(taken.gid_type, "RoCE v2");
	assert_string_equal(taken.interface, "lo");
	assert_int_equal(taken.port, 1);
	assert_int_equal(taken.gid_index, 3);
	assert_int_equal(taken.mtu, 2048);
	assert_int_equal(taken.peer_qpn, bench.server.endpoint->qpn);
	/* What cannot be asked is not known. */
	provider_fail("ibv_query_qp", EIO, 0);
	endpoint_path(bench.client.endpoint, &taken);
	assert_int_equal(taken.peer_qpn, 0);
	assert_string_equal(taken.gid_type, "RoCE v2");
	provider_fail("ibv_query_gid_ex", EIO, 0);
	endpoint_path(bench.client.endpoint, &taken);
	assert_int_equal(taken.gid_index, PATH_UNSET);
	end();
	join_one(PROVIDER_INFINIBAND);
	finish_join();
	endpoint_path(bench.client.endpoint, &taken);
	assert_string_equal(taken.gid_type, "IB");
	assert_int_equal(taken.mtu, 2048);
	/* It is known without a look at the table, of whose port nothing is told. */
	provider_fail("ibv_query_port", EIO, 0);
	endpoint_path(bench.client.endpoint, &taken);
	assert_int_equal(taken.gid_index, 0);
	provider_fail("ibv_query_gid_ex", EIO, 0);
	endpoint_path(bench.client.endpoint, &taken);
	assert_int_equal(taken.gid_index, PATH_UNSET);
	end();
}

/* Entries 2 and 3 have the same GID, for RoCE v1 and v2: which of them is used is known only then. */
static void a_gid_of_two_entries(void **state)
{
	static const struct {
		int used;
		int64_t client, server;
		bool connects;
	} rows[] = {
		{ 3, 3, PATH_UNSET, true },  { 2, 2, PATH_UNSET, true }, { 3, 2, PATH_UNSET, false },
		{ 2, 3, PATH_UNSET, false }, { 3, PATH_UNSET, 3, true }, { 3, PATH_UNSET, 2, false },
	};

	(void)state;
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct path_options of_client = PATH_OPEN;
		struct endpoint_options asked;
		struct capture capture;

		begin(PROVIDER_ROCE);
		provider.devices[0]->ports[0].gid_index = rows[row].used;
		path.gid_index = rows[row].server;
		of_client.device = "roce0";
		of_client.gid_index = rows[row].client;
		asked = options;
		asked.path = &of_client;
		capture_begin(&capture);
		assert_true(bench_listen(&bench, &options));
		assert_true(bench_resolve(&bench, &asked));
		assert_int_equal(endpoint_connect(bench.client.endpoint, NULL, 0), 0);
		assert_true(bench_await_event(&bench, &bench.client,
					      rows[row].connects ? EVENT_ESTABLISHED : EVENT_FAILED));
		told(&capture);
		if (rows[row].client != PATH_UNSET)
			assert_int_equal(strstr(capture.text, "not the requested ") != NULL, !rows[row].connects);
		end();
		if (rows[row].client == PATH_UNSET)
			continue;
		join_one(PROVIDER_ROCE);
		provider.devices[0]->ports[0].gid_index = rows[row].used;
		path.gid_index = rows[row].client;
		capture_begin(&capture);
		assert_true(bench_member(&bench, &bench.client, &bench.client_region, &options));
		assert_int_equal(endpoint_join(bench.client.endpoint, NULL), 0);
		assert_true(bench_await_event(&bench, &bench.client, rows[row].connects ? EVENT_JOINED : EVENT_FAILED));
		told(&capture);
		if (rows[row].connects) {
			struct path taken;

			endpoint_path(bench.client.endpoint, &taken);
			assert_int_equal(taken.gid_index, rows[row].used);
			assert_string_equal(taken.gid_type, rows[row].used == 2 ? "RoCE v1" : "RoCE v2");
		}
		end();
	}
}

static void the_path_that_was_asked_for(void **state)
{
	static const struct {
		const char *device;
		int64_t port, gid_index;
		const char *refusal;
	} rows[] = {
		{ "roce0", 1, 2, NULL },
		{ "roce1", PATH_UNSET, PATH_UNSET, "not to the requested device" },
		{ NULL, 2, PATH_UNSET, "not to the requested port" },
		{ NULL, PATH_UNSET, 0, "not to the requested GID index" },
		{ NULL, PATH_UNSET, 77, "not to the requested GID index" },
	};

	(void)state;
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct capture capture;

		begin(PROVIDER_ROCE);
		assert_true(bench_listen(&bench, &options));
		path.device = rows[row].device;
		path.port = rows[row].port;
		path.gid_index = rows[row].gid_index;
		assert_int_equal(verbs_source_fits(bench.transport, &path, &bench.address), !rows[row].refusal);
		capture_begin(&capture);
		assert_int_equal(bench_start_client(&bench, &options), row < 3);
		if (rows[row].refusal) {
			/* As if the route led elsewhere. */
			endpoint_destroy(bench.client.endpoint);
			assert_int_equal(endpoint_create(ENDPOINT_CONNECTION, bench.channel, &options,
							 bench.listener->handlers, &bench.client,
							 &bench.client.endpoint),
					 0);
			bench.client.endpoint->peer = bench.address;
			assert_int_equal(verbs_resolve(bench.client.endpoint, NULL, &bench.address), 0);
			endpoint_enter(bench.client.endpoint, ENDPOINT_RESOLVING_ADDRESS);
			assert_true(bench_await_event(&bench, &bench.client, EVENT_FAILED));
		} else {
			assert_true(bench_await_event(&bench, &bench.client, EVENT_ROUTE_RESOLVED));
		}
		told(&capture);
		assert_int_equal(rows[row].refusal && strstr(capture.text, rows[row].refusal),
				 rows[row].refusal != NULL);
		end();
	}
}

/* A listener that wants one device does not answer who comes by another. */
static void a_request_by_another_way(void **state)
{
	struct endpoint_options anywhere;
	struct capture capture;

	(void)state;
	begin(PROVIDER_ROCE);
	anywhere = bench_options(&bench);
	path.port = 2;
	assert_true(address_parse("0.0.0.0", ADDRESS_FORMAT_IP, &bench.address));
	assert_int_equal(endpoint_create(ENDPOINT_LISTENER, bench.channel, &options, &(struct endpoint_handlers){ 0 },
					 &bench.listening, &bench.listener),
			 0);
	assert_int_equal(verbs_listen(bench.listener, &bench.address), 0);
	endpoint_enter(bench.listener, ENDPOINT_LISTENING);
	assert_true(address_parse("10.0.0.1", ADDRESS_FORMAT_IP, &bench.address));
	assert_true(bench_resolve(&bench, &anywhere));
	assert_int_equal(endpoint_connect(bench.client.endpoint, NULL, 0), 0);
	capture_begin(&capture);
	assert_true(bench_await_event(&bench, &bench.client, EVENT_FAILED));
	assert_non_null(strstr(told(&capture), "refused by the peer"));
	end();
}

/* A thousand connections cost one domain, and few completion queues, of which none overflows. */
static void queues_are_shared(void **state)
{
	struct capture capture;
	unsigned count = 0;

	(void)state;
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
	/* Of a queue pair with two queues of that length one completion queue takes all completions. */
	assert_int_equal(bench.client.endpoint->domain->max_qp_wr, 300);
	end();
	/* Each is twice as large as the one before, up to 65536 entries. */
	begin(PROVIDER_ROCE);
	provider.devices[0]->limits.max_cqe = provider.devices[0]->limits.max_qp_wr = 1 << 20;
	options.send_depth = options.receive_depth = 20000;
	assert_true(bench_connect(&bench, &options));
	assert_int_equal(provider.cqs->capacity, 40000);
	assert_int_equal(provider.cqs->next->capacity, 65536);
	end();
	begin(PROVIDER_ROCE);
	provider.devices[0]->limits.max_cqe = 20;
	assert_true(bench_listen(&bench, &options));
	capture_begin(&capture);
	assert_false(bench_resolve(&bench, &options));
	assert_non_null(strstr(told(&capture), "has at most 20 entries, 32 are needed"));
	end();
}

static struct endpoint *connect_port_2(struct end *end)
{
	struct endpoint *endpoint;

	assert_true(address_parse("10.0.0.2", ADDRESS_FORMAT_IP, &bench.address));
	assert_int_equal(endpoint_create(ENDPOINT_CONNECTION, bench.channel, &options, bench.client.endpoint->handlers,
					 end, &endpoint),
			 0);
	assert_int_equal(endpoint_resolve(endpoint, NULL, &bench.address), 0);
	assert_true(bench_await_event(&bench, end, EVENT_ROUTE_RESOLVED));
	assert_int_equal(endpoint_create_qp(endpoint), 0);
	return endpoint;
}

/* Port 1 is InfiniBand, port 2 Ethernet; an event of the device finds the endpoint of either. */
static void a_card_of_two_fabrics(void **state)
{
	(void)state;
	for (int whole = 0; whole < 2; whole++) {
		struct endpoint *other;
		struct capture capture;

		begin(PROVIDER_INFINIBAND);
		device_drive(provider.devices[0], "mlx4");
		provider.devices[0]->ports[1].max_message = 1u << 24;
		assert_true(bench_connect(&bench, &options));
		other = connect_port_2(&bench.listening);
		assert_int_equal(bench.client.endpoint->domain->fabric, FABRIC_INFINIBAND);
		assert_int_equal(bench.client.endpoint->domain->max_message, 1u << 30);
		assert_int_equal(other->domain->fabric, FABRIC_ROCE);
		assert_int_equal(other->domain->max_message, 1u << 24);
		capture_begin(&capture);
		if (whole)
			device_event(provider.devices[0], IBV_EVENT_DEVICE_FATAL, NULL);
		else
			device_event(provider.devices[0], IBV_EVENT_QP_FATAL, verbs(other)->qp);
		bench_linger(&bench, 5);
		told(&capture);
		assert_int_equal(end_events(&bench.listening, EVENT_FAILED), 1);
		assert_int_equal(end_events(&bench.client, EVENT_FAILED), whole);
		endpoint_destroy(other);
		end();
	}
}

#define INLINE_HINT "the device may take fewer bytes inline"

/* What is too much inline is named; what is too deep is made less deep. */
static void limits_of_drivers(void **state)
{
	static const struct {
		const char *driver;
		int64_t inline_size;
		uint32_t depth, got;
		const char *hint;
	} rows[] = {
		{ "mlx5", 800, 0, 0, NULL },
		{ "mlx5", 1024, 0, 0, INLINE_HINT },
		{ "mlx5", PATH_UNSET, 32768, 32768, NULL },
		{ "mlx5", PATH_UNSET, 65536, 32768, NULL },
		{ "irdma", 101, 0, 0, NULL },
		{ "irdma", 102, 0, 0, INLINE_HINT },
		{ "bnxt_re", 96, 0, 0, NULL },
		{ "bnxt_re", 200, 0, 0, INLINE_HINT },
		{ "mlx4", 4096, 0, 0, INLINE_HINT },
	};

	(void)state;
	for (size_t row = 0; row < LENGTH(rows); row++)
		for (int own_qp = 0; own_qp < 2; own_qp++) {
			struct capture capture;
			bool opened;

			begin(PROVIDER_ROCE);
			device_drive(provider.devices[0], rows[row].driver);
			provider.devices[0]->limits.max_cqe = 1 << 20;
			path.inline_size = rows[row].inline_size;
			options.own_qp = own_qp;
			if (rows[row].depth)
				options.receive_depth = rows[row].depth;
			capture_begin(&capture);
			opened = bench_resolve(&bench, &options);
			told(&capture);
			if (opened == (rows[row].hint != NULL) ||
			    (rows[row].hint && !strstr(capture.text, rows[row].hint)))
				print_message("# row %zu: %s\n", row, capture.text);
			assert_int_equal(opened, rows[row].hint == NULL);
			if (rows[row].hint) {
				assert_non_null(strstr(capture.text, rows[row].hint));
				assert_non_null(strstr(capture.text, "Invalid argument"));
				assert_null(strstr(capture.text, "locked"));
			}
			if (rows[row].got)
				assert_int_equal(bench.client.endpoint->options.receive_depth, rows[row].got);
			end();
		}
}

/* A queue pair that could not be made keeps no entries. */
static void what_failed_takes_no_room(void **state)
{
	struct capture capture;

	(void)state;
	begin(PROVIDER_ROCE);
	assert_true(bench_listen(&bench, &options));
	provider_fail("ibv_create_qp", ENOMEM, 0);
	capture_begin(&capture);
	assert_false(bench_resolve(&bench, &options));
	told(&capture);
	provider_fail(NULL, 0, 0);
	endpoint_destroy(bench.client.endpoint);
	region_destroy(bench.client_region);
	bench_linger(&bench, 5);
	bench.client.count = 0;
	assert_true(bench_resolve(&bench, &options));
	assert_int_equal(verbs(bench.client.endpoint)->completions->reserved, 2 * PAIR_DEPTH);
	end();
}

/* A native group is reached from an address of a device. */
static void a_group_without_a_device(void **state)
{
	struct address any, gid = { .family = ADDRESS_GID, .bytes = { 0xff, 0x12, 0x40, 0x1b, [15] = 5 } };
	struct capture capture;

	(void)state;
	join_one(PROVIDER_INFINIBAND);
	assert_true(address_parse("0.0.0.0", ADDRESS_FORMAT_IP, &any));
	assert_int_equal(endpoint_create(ENDPOINT_GROUP, bench.channel, &options, &(struct endpoint_handlers){ 0 },
					 &bench.client, &bench.client.endpoint),
			 0);
	capture_begin(&capture);
	assert_int_equal(endpoint_resolve(bench.client.endpoint, &any, &gid), OUTCOME_NO_CONNECTION);
	assert_non_null(strstr(told(&capture), "the address does not belong to an RDMA device"));
	end();
}

/* Events of completion queues are paid back, and the last before a queue goes: the provider sees to the sum. */
static void events_are_paid_back(void **state)
{
	const struct completion_queue *cq;
	unsigned max = 0;

	(void)state;
	connect_both(PROVIDER_ROCE);
	cq = (const struct completion_queue *)verbs(bench.server.endpoint)->completions->cq;
	for (uint32_t round = 0; round < 200; round++) {
		struct work work = { .kind = WORK_RECEIVE, .region = bench.server_region, .length = 8 };

		post(bench.client.endpoint, IBV_WR_SEND, 8);
		assert_int_equal(endpoint_post(bench.server.endpoint, &work, 1), 0);
		assert_true(bench_await_completions(&bench, &bench.server, WORK_RECEIVE, round + 1));
		bench_linger(&bench, 0);
		if (cq->taken - cq->acknowledged > max)
			max = cq->taken - cq->acknowledged;
		if (round % 8 == 7) {
			work = (struct work){ .kind = WORK_SEND, .region = bench.client_region, .length = 8 };
			assert_int_equal(endpoint_post(bench.client.endpoint, &work, 1), 0);
			work = (struct work){ .kind = WORK_RECEIVE, .region = bench.server_region, .length = 8 };
			bench_linger(&bench, 1);
			assert_int_equal(endpoint_post(bench.server.endpoint, &work, 1), 0);
			bench.server.count--;
		}
	}
	assert_true(cq->taken > 64);
	assert_true(cq->acknowledged > 0);
	assert_true(max < 64);
	end();
}

/* Woken for an event that is not there: another process may have taken it, or the kernel woke too many. */
static void woken_for_nothing(void **state)
{
	struct verbs_domain *domain;

	(void)state;
	connect_both(PROVIDER_ROCE);
	bench_linger(&bench, 5);
	domain = verbs_domain_of(verbs(bench.client.endpoint));
	verbs_completion_readable(domain);
	assert_false(domain->base.removed);
	end();
}

/* It fails where nobody awaits a completion any more: no news. But one who does makes it news for all. */
static void a_failure_that_harms_nobody(void **state)
{
	static const struct {
		enum endpoint_state client;
		bool done, told;
	} rows[] = {
		{ ENDPOINT_ESTABLISHED, false, true },
		{ ENDPOINT_ESTABLISHED, true, false },
		{ ENDPOINT_DISCONNECTING, false, false },
		{ ENDPOINT_DISCONNECTED, false, false },
	};

	(void)state;
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct capture capture;

		connect_both(PROVIDER_ROCE);
		bench.server.endpoint->done = true;
		bench.client.endpoint->done = rows[row].done;
		if (rows[row].client > ENDPOINT_ESTABLISHED)
			assert_int_equal(endpoint_disconnect(bench.client.endpoint), 0);
		if (rows[row].client == ENDPOINT_DISCONNECTED)
			assert_true(bench_await_event(&bench, &bench.client, EVENT_DISCONNECTED));
		assert_int_equal(bench.client.endpoint->state, rows[row].client);
		capture_begin(&capture);
		verbs_domain_failed(verbs_domain_of(verbs(bench.client.endpoint)), EIO, "polling");
		told(&capture);
		assert_int_equal(strstr(capture.text, "roce0: polling") != NULL, rows[row].told);
		assert_int_equal(bench.client.endpoint->state, rows[row].told ? ENDPOINT_FAILED : rows[row].client);
		end();
	}
}

/* Armed when it was made, and not any more: without the news a connection would wait for ever. */
static void a_queue_that_cannot_be_armed(void **state)
{
	struct capture capture;

	(void)state;
	connect_both(PROVIDER_ROCE);
	bench_linger(&bench, 5);
	provider_fail("ibv_req_notify_cq", EIO, 0);
	capture_begin(&capture);
	post(bench.client.endpoint, IBV_WR_SEND, 8);
	assert_true(bench_await_event(&bench, &bench.client, EVENT_FAILED));
	assert_true(bench_await_event(&bench, &bench.server, EVENT_FAILED));
	assert_non_null(strstr(told(&capture), "roce0: arming a completion queue"));
	end();
}

/* More than one turn of the loop may handle, before the first is told. */
static void a_flood_of_completions(void **state)
{
	enum {
		COUNT = 1200
	};
	struct completion_entry entry = { .base = { .opcode = IBV_WC_RECV, .byte_len = 8 } };
	const struct verbs_endpoint *endpoint;

	(void)state;
	begin(PROVIDER_ROCE);
	options.receive_depth = options.send_depth = COUNT / 2;
	bench.accept_receives = 4;
	assert_true(bench_connect(&bench, &options));
	assert_true(bench_await_event(&bench, &bench.server, EVENT_ESTABLISHED));
	endpoint = verbs(bench.server.endpoint);
	for (uint32_t index = 0; index < COUNT; index++) {
		entry.base.wr_id = verbs_wr_id(verbs_of(bench.transport)->slots[endpoint->slot].generation,
					       endpoint->slot, WORK_RECEIVE, index);
		cq_push((struct completion_queue *)endpoint->completions->cq, &entry, false, false);
	}
	assert_true(bench_await_completions(&bench, &bench.server, WORK_RECEIVE, COUNT));
	for (uint32_t index = 0; index < COUNT; index++)
		assert_int_equal(bench.server.records[1 + index].completion.tag, index);
	end();
}

/* iWARP's client is told of its connection a moment late; what comes for it meanwhile, or ends it, comes behind. */
static void news_are_kept_back(void **state)
{
	(void)state;
	for (int way = 0; way < 3; way++) {
		int64_t start = clock_now();
		struct work work;

		begin(PROVIDER_IWARP);
		bench.accept_receives = 1;
		assert_true(bench_listen(&bench, &options));
		assert_true(bench_resolve(&bench, &options));
		work = (struct work){ .kind = WORK_RECEIVE, .region = bench.client_region, .length = 100 };
		assert_int_equal(endpoint_post(bench.client.endpoint, &work, 1), 0);
		assert_int_equal(endpoint_connect(bench.client.endpoint, "hello", 5), 0);
		assert_true(bench_await_event(&bench, &bench.server, EVENT_ESTABLISHED));
		if (way == 1) {
			work = (struct work){ .kind = WORK_SEND, .region = bench.server_region, .length = 100 };
			assert_int_equal(endpoint_post(bench.server.endpoint, &work, 1), 0);
			assert_true(bench_await_completions(&bench, &bench.client, WORK_RECEIVE, 1));
		} else if (way == 2) {
			assert_int_equal(endpoint_disconnect(bench.server.endpoint), 0);
			assert_true(bench_await_event(&bench, &bench.client, EVENT_DISCONNECTED));
		}
		assert_true(bench_await_event(&bench, &bench.client, EVENT_ESTABLISHED));
		assert_int_equal(bench.client.records[2].event, EVENT_ESTABLISHED);
		assert_int_equal(bench.client.private_length, 7);
		assert_memory_equal(bench.client.private_data, "welcome", 7);
		if (way == 0)
			assert_true(clock_now() - start >= 20 * CLOCK_NS_PER_MS);
		end();
	}
}

/* Only soft-iWARP needs the moment. */
static void a_card_keeps_no_news(void **state)
{
	(void)state;
	begin(PROVIDER_IWARP);
	device_drive(provider.devices[0], "irdma");
	assert_true(bench_connect(&bench, &options));
	assert_null(verbs(bench.client.endpoint)->delayed);
	end();
}

/* A kernel that does not know the option: the queue pair is moved by hand, with the time-out. */
static void a_time_out_that_the_kernel_lacks(void **state)
{
	(void)state;
	begin(PROVIDER_ROCE);
	path.ack_timeout = 14;
	provider_fail("rdma_set_option", ENOSYS, 0);
	assert_true(bench_connect(&bench, &options));
	assert_true(bench_await_event(&bench, &bench.server, EVENT_ESTABLISHED));
	assert_int_equal(qp_of(bench.client.endpoint)->attributes.timeout, 14);
	assert_int_equal(qp_of(bench.server.endpoint)->attributes.timeout, 14);
	end();
}

static unsigned ready_to_receive_with; /* of the receiver-not-ready timer */

static void note_timer(const struct queue_pair *qp)
{
	if (qp->base.state == IBV_QPS_RTR)
		ready_to_receive_with = qp->attributes.min_rnr_timer;
}

/* From the moment that the peer may send, not only when the connection is told of. */
static void how_soon_the_peer_tries_again(void **state)
{
	(void)state;
	begin(PROVIDER_ROCE);
	options.own_qp = true;
	provider.moved = note_timer;
	assert_true(bench_connect(&bench, &options));
	assert_int_equal(ready_to_receive_with, 1);
	end();
}

static void complete_late(struct queue_pair *qp)
{
	struct completion_entry entry = { .base = { .opcode = IBV_WC_RECV, .byte_len = 8 } };

	if (qp->receives)
		entry.base.wr_id = qp->receives->request.wr_id;
	if (qp->receives)
		cq_push((struct completion_queue *)qp->base.recv_cq, &entry, false, true);
}

/* It is cut short while its news are kept back: what the device still completes finds nothing to settle. */
static void news_kept_back_are_freed_once(void **state)
{
	struct work work;

	(void)state;
	begin(PROVIDER_IWARP);
	provider.keeps_completions = true;
	provider.destroying = complete_late;
	assert_true(bench_listen(&bench, &options));
	assert_true(bench_resolve(&bench, &options));
	work = (struct work){ .kind = WORK_RECEIVE, .region = bench.client_region, .length = 100 };
	assert_int_equal(endpoint_post(bench.client.endpoint, &work, 1), 0);
	assert_int_equal(endpoint_connect(bench.client.endpoint, NULL, 0), 0);
	assert_true(bench_await_event(&bench, &bench.server, EVENT_ESTABLISHED));
	assert_non_null(verbs(bench.client.endpoint)->delayed);
	endpoint_destroy(bench.client.endpoint);
	bench.client.endpoint = NULL;
	bench_linger(&bench, 30);
	assert_int_equal(end_events(&bench.client, EVENT_ESTABLISHED), 0);
	end();
}

static void events_of_the_device(void **state)
{
	static const struct {
		enum ibv_event_type type;
		int of; /* 0: the port, 1: the client's queue pair, 2: the completion queue of both, 3: the device */
		bool client_fails, server_fails;
	} rows[] = {
		{ IBV_EVENT_PORT_ACTIVE, 0, false, false }, { IBV_EVENT_QP_FATAL, 1, true, false },
		{ IBV_EVENT_QP_REQ_ERR, 1, true, false },   { IBV_EVENT_QP_ACCESS_ERR, 1, true, false },
		{ IBV_EVENT_CQ_ERR, 2, true, true },	    { IBV_EVENT_DEVICE_FATAL, 3, true, true },
	};

	(void)state;
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct capture capture;
		void *elements[4] = { 0 };

		connect_both(PROVIDER_ROCE);
		elements[1] = verbs(bench.client.endpoint)->qp;
		elements[2] = verbs(bench.client.endpoint)->completions->cq;
		capture_begin(&capture);
		device_event(provider.devices[0], rows[row].type, elements[rows[row].of]);
		bench_linger(&bench, 5);
		told(&capture);
		assert_int_equal(end_events(&bench.client, EVENT_FAILED), rows[row].client_fails);
		assert_int_equal(end_events(&bench.server, EVENT_FAILED), rows[row].server_fails);
		assert_int_equal(bench.client.endpoint->domain->removed, rows[row].of == 3);
		assert_int_equal(*capture.text != '\0', rows[row].client_fails);
		/* Nobody connects over a device that has failed. */
		if (rows[row].of == 3) {
			struct endpoint *kept = bench.client.endpoint;

			capture_begin(&capture);
			bench.client.count = 0;
			assert_true(bench_start_client(&bench, &options));
			assert_true(bench_await_event(&bench, &bench.client, EVENT_FAILED));
			assert_non_null(strstr(told(&capture), "roce0: the device has failed before"));
			endpoint_destroy(kept);
		}
		end();
	}
}

/* One goes, and the connections of the other stay. */
static void one_device_of_two_goes(void **state)
{
	struct capture capture;
	struct work work;

	(void)state;
	for (unsigned ways = REMOVAL_BY_MANAGER; ways <= (REMOVAL_BY_MANAGER | REMOVAL_BY_ASYNC); ways++) {
		struct endpoint *other;
		struct end *end_of_other = &bench.listening;

		connect_both(PROVIDER_ROCE);
		assert_int_equal(endpoint_create(ENDPOINT_CONNECTION, bench.channel, &options,
						 bench.client.endpoint->handlers, end_of_other, &other),
				 0);
		assert_true(address_parse("10.0.1.2", ADDRESS_FORMAT_IP, &bench.address));
		assert_int_equal(endpoint_resolve(other, NULL, &bench.address), 0);
		assert_true(bench_await_event(&bench, end_of_other, EVENT_ROUTE_RESOLVED));
		work = (struct work){ .kind = WORK_SEND, .region = bench.client_region, .length = 8 };
		capture_begin(&capture);
		device_remove(provider.devices[0], ways);
		assert_int_equal(endpoint_post(bench.client.endpoint, &work, 1), OUTCOME_INTERNAL);
		assert_true(bench_await_event(&bench, &bench.client, EVENT_FAILED));
		assert_true(bench_await_event(&bench, &bench.server, EVENT_FAILED));
		bench_linger(&bench, 5);
		told(&capture);
		assert_int_equal(end_events(&bench.client, EVENT_FAILED), 1);
		assert_int_equal(end_events(end_of_other, EVENT_FAILED), ways & REMOVAL_BY_MANAGER ? 1 : 0);
		assert_int_equal(other->state, ENDPOINT_ROUTE_RESOLVED);
		assert_non_null(strstr(capture.text, "roce0: the device was removed"));
		assert_null(strstr(strstr(capture.text, "roce0: the device was removed") + 1,
				   "roce0: the device was removed"));
		/* Another comes in its place. */
		provider.devices[2] = device_add(PROVIDER_ROCE, 0);
		endpoint_destroy(other);
		endpoint_destroy(bench.client.endpoint);
		endpoint_destroy(bench.server.endpoint);
		endpoint_destroy(bench.listener);
		region_destroy(bench.client_region);
		region_destroy(bench.server_region);
		bench_linger(&bench, 5);
		bench.client = (struct end){ .bench = &bench };
		bench.server = bench.listening = bench.client;
		bench.listener = NULL;
		bench.client_region = bench.server_region = NULL;
		assert_true(address_parse("10.0.0.1", ADDRESS_FORMAT_IP, &bench.address));
		assert_true(bench_connect(&bench, &options));
		assert_ptr_equal(verbs(bench.client.endpoint)->id->verbs, &provider.devices[2]->verbs.context);
		assert_false(bench.client.endpoint->domain->removed);
		end();
	}
}

static void forget_connections(void)
{
	endpoint_destroy(bench.client.endpoint);
	endpoint_destroy(bench.server.endpoint);
	region_destroy(bench.client_region);
	region_destroy(bench.server_region);
	bench.client = bench.server = (struct end){ .bench = &bench };
	bench.client_region = bench.server_region = NULL;
	bench_linger(&bench, 5);
}

static void connect_to(const char *address)
{
	assert_true(address_parse(address, ADDRESS_FORMAT_IP, &bench.address));
	assert_true(bench_resolve(&bench, &options));
	assert_int_equal(endpoint_connect(bench.client.endpoint, NULL, 0), 0);
	assert_true(bench_await_event(&bench, &bench.client, EVENT_ESTABLISHED));
	assert_true(bench_await_event(&bench, &bench.server, EVENT_ESTABLISHED));
}

/* Under a server that goes on: its device is removed, with a connection or without, and another comes, ten times. */
static void devices_come_and_go(void **state)
{
	(void)state;
	for (unsigned ways = REMOVAL_BY_MANAGER; ways <= (REMOVAL_BY_MANAGER | REMOVAL_BY_ASYNC); ways++) {
		begin(PROVIDER_ROCE);
		bench.accept_receives = 4;
		assert_true(address_parse("0.0.0.0", ADDRESS_FORMAT_IP, &bench.address));
		assert_true(bench_listen(&bench, &options));
		connect_to("10.0.1.1");
		forget_connections();
		for (unsigned round = 0; round < 10; round++) {
			unsigned place = round % 2 ? 2 : 0;
			struct capture capture;

			connect_to("10.0.0.1");
			if (round < 5)
				forget_connections();
			capture_begin(&capture);
			device_remove(provider.devices[place], ways);
			bench_linger(&bench, 5);
			assert_non_null(strstr(told(&capture), "roce0: the device was removed"));
			forget_connections();
			/* Only that of the other device is left. */
			assert_int_equal(provider.protection_domains, 1);
			assert_int_equal(device_is_held(provider.devices[place]), ways == REMOVAL_BY_ASYNC);
			provider.devices[2 - place] = device_add(PROVIDER_ROCE, 0);
		}
		end();
	}
}

/* The connection manager may know no address to bind another identifier to: an IPv6 address without its interface. */
static void a_device_that_cannot_be_held(void **state)
{
	(void)state;
	begin(PROVIDER_ROCE);
	assert_true(address_parse("0.0.0.0", ADDRESS_FORMAT_IP, &bench.address));
	assert_true(bench_listen(&bench, &options));
	provider.binds_no_holder = true;
	connect_to("10.0.0.1");
	assert_int_equal(provider.protection_domains, 1);
	forget_connections();
	assert_int_equal(provider.protection_domains, 0);
	end();
}

/* A device that raises no event for flushed work; and the work is no news in any case. */
static void a_silent_flush(void **state)
{
	(void)state;
	for (int fabric = PROVIDER_ROCE; fabric <= PROVIDER_IWARP; fabric++) {
		connect_both((enum provider_fabric)fabric);
		provider.silent_flush = true;
		assert_int_equal(endpoint_disconnect(bench.server.endpoint), 0);
		assert_true(bench_await_event(&bench, &bench.client, EVENT_DISCONNECTED));
		assert_true(bench_await_event(&bench, &bench.server, EVENT_DISCONNECTED));
		assert_int_equal(end_completions(&bench.server, WORK_RECEIVE), 0);
		end();
	}
}

/* soft-RoCE flushes the queue pair whose peer was refused, and raises no event of the device. */
static void a_queue_that_is_flushed_without_a_reason(void **state)
{
	struct capture capture;

	(void)state;
	for (int silent = 0; silent < 2; silent++) {
		connect_both(PROVIDER_ROCE);
		provider.refuses_in_silence = silent;
		capture_begin(&capture);
		assert_int_equal(endpoint_post(bench.client.endpoint,
					       &(struct work){ .kind = WORK_WRITE,
							       .region = bench.client_region,
							       .length = 8,
							       .remote_address = 1,
							       .remote_key = 1 },
					       1),
				 0);
		assert_true(bench_await_event(&bench, &bench.server, EVENT_FAILED));
		told(&capture);
		assert_non_null(strstr(capture.text, silent ? "the queue pair failed, and the device gives no reason"
							    : "access error"));
		assert_int_equal(end_completions(&bench.server, WORK_RECEIVE), 0);
		end();
	}
}

static void a_membership_that_fails(void **state)
{
	static const struct {
		const char *call, *cause;
		int error;
	} rows[] = {
		{ "rdma_join_multicast", "joining the group: no RDMA device on the route to it", ENODEV },
		{ "join", "joining: ", ENETUNREACH },
		{ "ibv_create_ah", "creating the group's address handle", ENOMEM },
		{ "ibv_attach_mcast", "joining: Cannot allocate memory", ENOMEM },
		{ "ibv_attach_mcast", "joining: Operation not supported", EOPNOTSUPP },
	};

	(void)state;
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct capture capture;

		join_one(PROVIDER_INFINIBAND);
		assert_true(bench_member(&bench, &bench.client, &bench.client_region, &options));
		provider_fail(rows[row].call, rows[row].error, 0);
		capture_begin(&capture);
		if (!endpoint_join(bench.client.endpoint, NULL))
			assert_true(bench_await_event(&bench, &bench.client, EVENT_FAILED));
		told(&capture);
		assert_non_null(strstr(capture.text, rows[row].cause));
		/* What was never joined is not left. */
		assert_int_equal(verbs(bench.client.endpoint)->is_member, row != 0);
		end();
	}
	/* The subnet manager knows no send-only members. */
	for (int error = 0; error < 2; error++) {
		struct capture capture;

		join_one(PROVIDER_INFINIBAND);
		options.send_only = true;
		assert_true(bench_member(&bench, &bench.client, &bench.client_region, &options));
		provider_fail("rdma_join_multicast", error ? EINVAL : ENODEV, 0);
		capture_begin(&capture);
		assert_int_equal(endpoint_join(bench.client.endpoint, NULL), OUTCOME_NO_CONNECTION);
		assert_int_equal(strstr(told(&capture), "needs a subnet manager that supports it") != NULL, error);
		end();
	}
}

/* What librdmacm answers at once decides what becomes of the endpoint; only without a listener or a reply another try
 * may succeed. */
static void connecting_and_leaving_that_fail(void **state)
{
	static const struct {
		int error;
		enum error_kind kind;
	} rows[] = { { ECONNREFUSED, ERROR_NO_LISTENER },
		     { ETIMEDOUT, ERROR_NO_REPLY },
		     { EHOSTUNREACH, ERROR_NO_REPLY },
		     { EINVAL, ERROR_OTHER } };

	(void)state;
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct capture capture;

		begin(PROVIDER_ROCE);
		assert_true(bench_listen(&bench, &options));
		assert_true(bench_resolve(&bench, &options));
		provider_fail("rdma_connect", rows[row].error, 0);
		capture_begin(&capture);
		assert_int_equal(endpoint_connect(bench.client.endpoint, NULL, 0), OUTCOME_NO_CONNECTION);
		assert_non_null(strstr(told(&capture), "connecting: "));
		assert_int_equal(bench.error.kind, rows[row].kind);
		end();
	}
	for (int own_qp = 0; own_qp < 2; own_qp++) {
		struct capture capture;

		begin(PROVIDER_ROCE);
		options.own_qp = own_qp;
		assert_true(bench_connect(&bench, &options));
		provider_fail("rdma_disconnect", EINVAL, 0);
		capture_begin(&capture);
		assert_int_equal(endpoint_disconnect(bench.client.endpoint), OUTCOME_FAILED);
		assert_non_null(strstr(told(&capture), "disconnecting: "));
		/* librdmacm, which failed, has not moved its own. */
		assert_int_equal(qp_of(bench.client.endpoint)->base.state == IBV_QPS_ERR, own_qp);
		end();
	}
}

static void what_a_fabric_has_not(void **state)
{
	struct capture capture;

	(void)state;
	begin(PROVIDER_IWARP);
	path.ack_timeout = 14;
	capture_begin(&capture);
	assert_true(bench_listen(&bench, &options));
	assert_false(bench_resolve(&bench, &options));
	assert_non_null(strstr(told(&capture), "iWARP has no acknowledgement time-out"));
	end();
	/* Neither iWARP nor some RoCE cards have multicast. */
	for (int card = 0; card < 2; card++) {
		join_one(card ? PROVIDER_ROCE : PROVIDER_IWARP);
		if (card)
			device_drive(provider.devices[0], "bnxt_re");
		capture_begin(&capture);
		assert_false(bench_member(&bench, &bench.client, &bench.client_region, &options));
		assert_non_null(strstr(told(&capture), "the device has no multicast"));
		assert_false(bench.client.endpoint->domain->multicast);
		end();
	}
	join_one(PROVIDER_ROCE);
	options.no_loopback = true;
	capture_begin(&capture);
	assert_false(bench_member(&bench, &bench.client, &bench.client_region, &options));
	assert_non_null(strstr(told(&capture), "cannot keep multicast from looping back"));
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_took_the_receive),
		cmocka_unit_test(what_is_posted),
		cmocka_unit_test(long_chains),
		cmocka_unit_test(a_stale_completion),
		cmocka_unit_test(failed_completions),
		cmocka_unit_test(reads_are_limited_by_the_device),
		cmocka_unit_test(peer_that_allows_no_reads),
		cmocka_unit_test(how_often_to_try_again),
		cmocka_unit_test(receiver_never_ready),
		cmocka_unit_test(a_peer_without_a_queue),
		cmocka_unit_test(why_the_peer_is_silent),
		cmocka_unit_test(why_it_did_not_connect),
		cmocka_unit_test(a_peer_says_no),
		cmocka_unit_test(qp_of_client_is_not_moved),
		cmocka_unit_test(the_last_message_before_the_end),
		cmocka_unit_test(a_message_in_place_of_the_rtu),
		cmocka_unit_test(the_last_acknowledgement),
		cmocka_unit_test(the_last_acknowledgement_of_nobody),
		cmocka_unit_test(an_unwanted_request),
		cmocka_unit_test(a_request_without_memory),
		cmocka_unit_test(an_answer_to_nobody),
		cmocka_unit_test(rights_of_a_region),
		cmocka_unit_test(service_level_of_a_group),
		cmocka_unit_test(a_datagram_without_immediate),
		cmocka_unit_test(service_level_of_a_connection),
		cmocka_unit_test(the_path_that_was_taken),
		cmocka_unit_test(a_gid_of_two_entries),
		cmocka_unit_test(the_path_that_was_asked_for),
		cmocka_unit_test(a_request_by_another_way),
		cmocka_unit_test(queues_are_shared),
		cmocka_unit_test(a_card_of_two_fabrics),
		cmocka_unit_test(limits_of_drivers),
		cmocka_unit_test(what_failed_takes_no_room),
		cmocka_unit_test(a_group_without_a_device),
		cmocka_unit_test(events_are_paid_back),
		cmocka_unit_test(woken_for_nothing),
		cmocka_unit_test(a_failure_that_harms_nobody),
		cmocka_unit_test(a_queue_that_cannot_be_armed),
		cmocka_unit_test(a_flood_of_completions),
		cmocka_unit_test(news_are_kept_back),
		cmocka_unit_test(a_card_keeps_no_news),
		cmocka_unit_test(a_time_out_that_the_kernel_lacks),
		cmocka_unit_test(how_soon_the_peer_tries_again),
		cmocka_unit_test(news_kept_back_are_freed_once),
		cmocka_unit_test(events_of_the_device),
		cmocka_unit_test(one_device_of_two_goes),
		cmocka_unit_test(devices_come_and_go),
		cmocka_unit_test(a_device_that_cannot_be_held),
		cmocka_unit_test(a_silent_flush),
		cmocka_unit_test(a_queue_that_is_flushed_without_a_reason),
		cmocka_unit_test(a_membership_that_fails),
		cmocka_unit_test(connecting_and_leaving_that_fail),
		cmocka_unit_test(what_a_fabric_has_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
