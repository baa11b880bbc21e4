/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections: negotiated values, ends, and failures to connect. */
#include "test/verbs/ends.h"

#include <errno.h>

#include "core/clock.h"

/* A client of another tool requests a connection from a listener on the second device. */
static struct cm_id *ask(const struct rdma_conn_param *parameters)
{
	struct sockaddr_in to = provider.devices[1]->ports[0].address;
	struct cm_id *client;

	assert_true(address_parse("10.0.1.1", ADDRESS_FORMAT_IP, &bench.address));
	assert_true(bench_listen(&bench, &options));
	to.sin_port = htobe16(bench.listener->local.port);
	client = cm_ask((const struct sockaddr *)&provider.devices[0]->ports[0].address, (const struct sockaddr *)&to,
			parameters);
	assert_true(bench_await_event(&bench, &bench.listening, EVENT_REQUEST));
	return client;
}

TEST(reads_are_one_at_a_time, NULL, end)
{
	const struct rdma_conn_param parameters = {
		.qp_num = 99, .initiator_depth = 16, .responder_resources = 9, .retry_count = 6, .rnr_retry_count = 5
	};

	for (int own_qp = 0; own_qp < 2; own_qp++) {
		const struct ibv_qp_attr *attributes;
		struct cm_id *client, *server;

		begin(PROVIDER_INFINIBAND);
		options.own_qp = own_qp;
		path.rnr_retry = 3;
		client = ask(&parameters);
		assert_int_equal(bench.server.endpoint->state, ENDPOINT_ACCEPTING);
		server = id_of(bench.server.endpoint);
		assert_int_equal(server->local.responder_resources, 1);
		assert_int_equal(server->local.initiator_depth, 1);
		assert_int_equal(server->local.rnr_retry_count, 3);
		attributes = &qp_of(bench.server.endpoint)->attributes;
		assert_int_equal(attributes->max_dest_rd_atomic, 1);
		assert_int_equal(attributes->max_rd_atomic, 1);
		assert_int_equal(attributes->retry_cnt, 6);
		assert_int_equal(attributes->rnr_retry, 5);
		cm_ask_end(client);
	}
}

/* Except on iWARP, where a peer with an older protocol does not send them. */
TEST(peer_that_allows_no_reads, NULL, end)
{
	for (int iwarp = 0; iwarp <= 1; iwarp++) {
		struct cm_id *client;

		begin(iwarp ? PROVIDER_IWARP : PROVIDER_ROCE);
		client = ask(&(struct rdma_conn_param){ .qp_num = 99 });
		assert_int_equal(bench.server.endpoint->no_reads, !iwarp);
		cm_ask_end(client);
	}
}

TEST(retry_counts, NULL, end)
{
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
			establish();
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
		}
}

static unsigned ready_to_receive_with; /* the receiver-not-ready timer's code */

static void note_timer(const struct queue_pair *qp)
{
	if (qp->base.state == IBV_QPS_RTR)
		ready_to_receive_with = qp->attributes.min_rnr_timer;
}

/* From the time when the peer may send, before the connection is reported. */
TEST(shortest_rnr_timer, NULL, end)
{
	begin(PROVIDER_ROCE);
	options.own_qp = true;
	provider.moved = note_timer;
	assert_true(bench_connect(&bench, &options));
	assert_int_equal(ready_to_receive_with, 1);
}

/* A kernel that does not know the option: the queue pair is moved by hand, with the timeout. */
TEST(a_time_out_that_the_kernel_lacks, NULL, end)
{
	begin(PROVIDER_ROCE);
	path.ack_timeout = 14;
	provider_fail("rdma_set_option", ENOSYS, 0);
	establish();
	assert_int_equal(qp_of(bench.client.endpoint)->attributes.timeout, 14);
	assert_int_equal(qp_of(bench.server.endpoint)->attributes.timeout, 14);
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
	{ PROVIDER_ROCE, RDMA_CM_EVENT_REJECTED, 4, ERROR_NO_REPLY, "manager timed out" },
	{ PROVIDER_IWARP, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED, ERROR_NO_LISTENER,
	  "nobody listens there: this device is iWARP (TCP), and the peer's must be, too" },
	{ PROVIDER_IWARP, RDMA_CM_EVENT_REJECTED, -ECONNRESET, ERROR_OTHER,
	  "refused by the peer, or a service without iWARP has that TCP port" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, ERROR_NO_REPLY, "no answer in time" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_UNREACHABLE, -EHOSTUNREACH, ERROR_NO_REPLY, "no route to the host" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_UNREACHABLE, -ENETUNREACH, ERROR_OTHER, "no route to the host" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_CONNECT_ERROR, -ECONNRESET, ERROR_OTHER, "the peer closed the connection" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_CONNECT_ERROR, 1, ERROR_OTHER, "connection manager error" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_ADDR_ERROR, -EADDRNOTAVAIL, ERROR_OTHER, "not an address of this host" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_ADDR_ERROR, -EAFNOSUPPORT, ERROR_OTHER, "this kernel has no IPv6" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_ADDR_ERROR, -ENOENT, ERROR_OTHER, "no RDMA device on the route to it" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, ERROR_OTHER, "no RDMA device on the route to it" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_ROUTE_ERROR, -524, ERROR_OTHER, "the kernel does not support this" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_ROUTE_ERROR, -EADDRINUSE, ERROR_OTHER, "the port is in use" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_ROUTE_ERROR, -EPROTO, ERROR_OTHER, "Protocol error" },
	{ PROVIDER_ROCE, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT, ERROR_NO_REPLY, "no answer in time" },
};

TEST(errors_of_connecting, NULL, end)
{
	for (size_t row = 0; row < LENGTH(failures); row++) {
		begin(failures[row].fabric);
		bench.answer_requests = false;
		request_connection();
		cm_raise(id_of(bench.client.endpoint), failures[row].type, failures[row].status);
		EXPECT_FAILURE(&bench.client, failures[row].cause);
		assert_int_equal(bench.error.kind, failures[row].kind);
		assert_int_equal(bench.client.records[bench.client.count - 1].outcome, OUTCOME_NO_CONNECTION);
		/* Once is enough. */
		cm_raise(id_of(bench.client.endpoint), failures[row].type, failures[row].status);
		bench_linger(&bench, 5);
		assert_int_equal(end_events(&bench.client, EVENT_FAILED), 1);
	}
}

/* The kernel's tables explain an event, a timeout, and a call without a route. */
TEST(kernel_tables_explain_errors, NULL, end)
{
	connect_both(PROVIDER_ROCE);
	cm_raise(id_of(bench.client.endpoint), RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	EXPECT_FAILURE(&bench.client, "established: the peer's or its router's link-layer address has changed");

	begin(PROVIDER_ROCE);
	provider.route_cause = "10.0.0.1 answers no ARP on eth0";
	bench.answer_requests = false;
	request_connection();
	cm_raise(id_of(bench.client.endpoint), RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	EXPECT_FAILURE(&bench.client, "no answer in time; 10.0.0.1 answers no ARP on eth0 (");

	begin(PROVIDER_ROCE);
	provider.route_cause = "10.0.0.1 answers no ARP on eth0";
	provider.elsewhere = "10.0.0.2 is on f0, but the route to the peer is by f1";
	bench.answer_requests = false;
	request_connection();
	cm_raise(id_of(bench.client.endpoint), RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	EXPECT_FAILURE(&bench.client, "no answer in time; 10.0.0.2 is on f0, but the route to the peer is by f1 (");

	begin(PROVIDER_ROCE);
	provider.route_cause = "packets from 10.0.0.2 have a route: -I 10.0.0.2";
	provider_fail("rdma_resolve_addr", ENETUNREACH, 0);
	EXPECT_TOLD("hint: packets from 10.0.0.2 have a route: -I 10.0.0.2\n",
		    assert_false(bench_resolve(&bench, &options)));

	begin(PROVIDER_ROCE);
	provider.elsewhere = "10.0.0.2 is on f0, but the route to the peer is by f1";
	provider_fail("rdma_resolve_addr", ENETUNREACH, 0);
	EXPECT_TOLD("hint: 10.0.0.2 is on f0, but the route to the peer is by f1\n",
		    assert_false(bench_resolve(&bench, &options)));
}

/* librdmacm moves the client's QP. */
TEST(qp_of_client_is_not_moved, NULL, end)
{
	begin(PROVIDER_ROCE);
	request_connection();
	provider_fail("ucma_modify_qp", ETIMEDOUT, 0);
	EXPECT_FAILURE(&bench.client, "connecting: no answer in time (");
	assert_int_equal(bench.error.kind, ERROR_NO_REPLY);
}

/*
 * librdmacm's immediate result decides the endpoint's outcome; another try may succeed only without a listener or a
 * reply.
 */
TEST(connecting_and_leaving_that_fail, NULL, end)
{
	static const struct {
		int error;
		enum error_kind kind;
	} rows[] = { { ECONNREFUSED, ERROR_NO_LISTENER },
		     { ETIMEDOUT, ERROR_NO_REPLY },
		     { EHOSTUNREACH, ERROR_NO_REPLY },
		     { EINVAL, ERROR_OTHER } };

	for (size_t row = 0; row < LENGTH(rows); row++) {
		begin(PROVIDER_ROCE);
		assert_true(bench_listen(&bench, &options));
		assert_true(bench_resolve(&bench, &options));
		provider_fail("rdma_connect", rows[row].error, 0);
		EXPECT_TOLD("connecting: ",
			    assert_int_equal(endpoint_connect(bench.client.endpoint, NULL, 0), OUTCOME_NO_CONNECTION));
		assert_int_equal(bench.error.kind, rows[row].kind);
	}
	for (int own_qp = 0; own_qp < 2; own_qp++) {
		begin(PROVIDER_ROCE);
		options.own_qp = own_qp;
		assert_true(bench_connect(&bench, &options));
		provider_fail("rdma_disconnect", EINVAL, 0);
		EXPECT_TOLD("disconnecting: ",
			    assert_int_equal(endpoint_disconnect(bench.client.endpoint), OUTCOME_FAILED));
		/* librdmacm failed, and has not moved its own. */
		assert_int_equal(qp_of(bench.client.endpoint)->base.state == IBV_QPS_ERR, own_qp);
	}
}

/* Neither a failed listener nor a listener of another device keeps the identifier of a request. */
TEST(an_unwanted_request, NULL, end)
{
	unsigned before = 0, after = 0;

	begin(PROVIDER_ROCE);
	assert_true(bench_listen(&bench, &options));
	assert_true(bench_resolve(&bench, &options));
	cm_raise(id_of(bench.listener), RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
	EXPECT_FAILURE(&bench.listening, "listening: ");
	for (const struct cm_id *id = provider.ids; id; id = id->next)
		before++;
	assert_int_equal(endpoint_connect(bench.client.endpoint, NULL, 0), 0);
	EXPECT_FAILURE(&bench.client, "refused by the peer");
	for (const struct cm_id *id = provider.ids; id; id = id->next)
		after++;
	assert_int_equal(after, before);
	assert_int_equal(end_events(&bench.listening, EVENT_REQUEST), 0);
}

/* A request without memory is reported to the command, and the peer is rejected. */
TEST(a_request_without_memory, NULL, end)
{
	begin(PROVIDER_ROCE);
	request_connection();
	provider_fail("calloc", ENOMEM, 0);
	EXPECT_TOLD("refused a connection request: out of memory", {
		assert_true(bench_await_event(&bench, &bench.client, EVENT_FAILED));
		provider_fail(NULL, 0, 0);
	});
	assert_int_equal(end_events(&bench.listening, EVENT_REQUEST_FAILED), 1);
	assert_int_equal(end_events(&bench.listening, EVENT_REQUEST), 0);
}

/* The client has gone before its request is answered, and its withdrawal has not arrived yet. */
TEST(an_answer_to_a_withdrawn_request, NULL, end)
{
	for (int own_qp = 0; own_qp < 2; own_qp++) {
		begin(PROVIDER_ROCE);
		options.own_qp = own_qp;
		bench.answer_requests = false;
		cm_ask_end(ask(&(struct rdma_conn_param){ .qp_num = 99 }));
		provider_pump();
		EXPECT_TOLD("the peer withdrew the request",
			    assert_int_equal(endpoint_create_qp(bench.server.endpoint), OUTCOME_NO_CONNECTION));
	}
}

/* Only the kernel's EINVAL means that it has gone. */
TEST(an_answer_that_fails, NULL, end)
{
	struct cm_id *client;

	begin(PROVIDER_ROCE);
	options.own_qp = true;
	bench.answer_requests = false;
	client = ask(&(struct rdma_conn_param){ .qp_num = 99 });
	provider_fail("rdma_init_qp_attr", ENOMEM, 0);
	EXPECT_TOLD("moving the queue pair to state 1",
		    assert_int_equal(endpoint_create_qp(bench.server.endpoint), OUTCOME_INTERNAL));
	cm_ask_end(client);
}

/* The client's first message comes before its RTU. The kernel sends a DREQ only after that, without an error. */
TEST(a_message_in_place_of_the_rtu, NULL, end)
{
	begin(PROVIDER_ROCE);
	bench.accept_receives = 4;
	provider.rtu_lost = true;
	assert_true(bench_connect(&bench, &options));
	post(IBV_WR_SEND, 8);
	assert_true(bench_await_completions(&bench, &bench.server, WORK_RECEIVE, 1));
	assert_int_equal(endpoint_disconnect(bench.server.endpoint), 0);
	bench_linger(&bench, 5);
	assert_int_equal(end_events(&bench.server, EVENT_DISCONNECTED), 0);
	id_of(bench.server.endpoint)->state = CM_ESTABLISHED;
	cm_raise(id_of(bench.server.endpoint), RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_true(bench_await_event(&bench, &bench.client, EVENT_DISCONNECTED));
	assert_true(bench_await_event(&bench, &bench.server, EVENT_DISCONNECTED));
	assert_int_equal(end_events(&bench.server, EVENT_ESTABLISHED), 1);
}

/* The connection manager's message overtakes the last acknowledgement, which may also be lost. */
TEST(the_last_acknowledgement, NULL, end)
{
	for (int way = 0; way < 3; way++) {
		struct completion_entry entry = { .base = { .opcode = IBV_WC_SEND } };
		int64_t start;

		begin(PROVIDER_ROCE);
		establish();
		send_8(7, false);
		entry.base.wr_id = qp_of(bench.client.endpoint)->sends->request.wr_id;
		entry.base.qp_num = bench.client.endpoint->qpn;
		assert_int_equal(endpoint_disconnect(bench.server.endpoint), 0);
		start = clock_now();
		bench_linger(&bench, 5);
		assert_int_equal(end_events(&bench.client, EVENT_DISCONNECTED), 0);
		if (way == 0)
			cq_push(cq_of(bench.client.endpoint), &entry, false, false);
		if (way == 1)
			assert_int_equal(endpoint_disconnect(bench.client.endpoint), 0);
		assert_true(bench_await_event(&bench, &bench.client, EVENT_DISCONNECTED));
		assert_int_equal(end_completions(&bench.client, WORK_SEND), way == 0);
		assert_int_equal(bench.client.records[bench.client.count - 1].event, EVENT_DISCONNECTED);
		assert_int_equal(clock_now() - start >= 400 * CLOCK_NS_PER_MS, way == 2);
		assert_true(bench_await_event(&bench, &bench.server, EVENT_DISCONNECTED));
	}
}

/*
 * A disconnect waits for the last acknowledgements, also if work is flushed meanwhile, and a flush waits for its cause.
 * On iWARP neither waits: TCP keeps the order, and a CM event reports the cause.
 */
TEST(iwarp_waits_for_nothing, NULL, end)
{
	const struct rdma_cm_event event = { .event = RDMA_CM_EVENT_DISCONNECTED };

	for (int iwarp = 0; iwarp <= 1; iwarp++) {
		struct verbs_endpoint *client, *server;

		connect_both(iwarp ? PROVIDER_IWARP : PROVIDER_ROCE);
		client = (struct verbs_endpoint *)bench.client.endpoint;
		server = (struct verbs_endpoint *)bench.server.endpoint;
		client->outstanding = 1;
		verbs_endpoint_event(client, &event);
		assert_int_equal(end_events(&bench.client, EVENT_DISCONNECTED), iwarp);
		verbs_flushed(client);
		if (!iwarp)
			assert_ptr_equal(client->timer.callback, verbs_deliver_disconnected);
		verbs_flushed(server);
		assert_int_equal(!server->timer.callback, iwarp);
	}
}

/* A destroyed queue pair's posted work completes after all. */
static void complete_late(struct queue_pair *qp)
{
	struct completion_entry entry = { .base = { .opcode = IBV_WC_SEND, .qp_num = qp->base.qp_num } };

	if (qp->sends) {
		entry.base.wr_id = qp->sends->request.wr_id;
		cq_push((struct completion_queue *)qp->base.send_cq, &entry, false, true);
	}
	entry.base.opcode = IBV_WC_RECV;
	if (qp->receives) {
		entry.base.wr_id = qp->receives->request.wr_id;
		cq_push((struct completion_queue *)qp->base.recv_cq, &entry, false, true);
	}
}

/* The endpoint is destroyed while it waits for the acknowledgement, which then has no recipient. */
TEST(the_last_acknowledgement_of_a_destroyed_endpoint, NULL, end)
{
	connect_both(PROVIDER_ROCE);
	provider.keeps_completions = true;
	provider.destroying = complete_late;
	send_8(0, false);
	assert_int_equal(endpoint_disconnect(bench.server.endpoint), 0);
	bench_linger(&bench, 5);
	assert_int_equal(end_events(&bench.client, EVENT_DISCONNECTED), 0);
	endpoint_destroy(bench.client.endpoint);
	bench.client.endpoint = NULL;
	bench_linger(&bench, 5);
	assert_int_equal(end_completions(&bench.client, WORK_SEND), 0);
	assert_int_equal(end_events(&bench.client, EVENT_DISCONNECTED), 0);
}

/* iWARP's client, whose server has reported the connection. */
static void connect_iwarp(void)
{
	struct work work = { .kind = WORK_RECEIVE, .length = 100 };

	begin(PROVIDER_IWARP);
	bench.accept_receives = 1;
	assert_true(bench_listen(&bench, &options));
	assert_true(bench_resolve(&bench, &options));
	work.region = bench.client_region;
	assert_int_equal(endpoint_post(bench.client.endpoint, &work, 1), 0);
	assert_int_equal(endpoint_connect(bench.client.endpoint, NULL, 0), 0);
	assert_true(bench_await_event(&bench, &bench.server, EVENT_ESTABLISHED));
}

/* On iWARP a client's connection is reported slightly late; its completions and its end are reported after it. */
TEST(events_are_delayed, NULL, end)
{
	for (int way = 0; way < 3; way++) {
		int64_t start = clock_now();

		connect_iwarp();
		if (way == 1) {
			const struct work work = { .kind = WORK_SEND, .region = bench.server_region, .length = 100 };

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
	}
}

/* Only soft-iWARP needs the delay. */
TEST(a_card_delays_no_events, NULL, end)
{
	begin(PROVIDER_IWARP);
	device_drive(provider.devices[0], "irdma");
	assert_true(bench_connect(&bench, &options));
	assert_false(verbs(bench.client.endpoint)->delayed);
}

/* It is destroyed while its events are delayed: later completions find no endpoint. */
TEST(delayed_events_end_with_their_endpoint, NULL, end)
{
	connect_iwarp();
	provider.keeps_completions = true;
	provider.destroying = complete_late;
	assert_true(verbs(bench.client.endpoint)->delayed);
	endpoint_destroy(bench.client.endpoint);
	bench.client.endpoint = NULL;
	bench_linger(&bench, 30);
	assert_int_equal(end_events(&bench.client, EVENT_ESTABLISHED), 0);
}

static void hear_nothing(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	log_report(endpoint->transport->log, &endpoint->transport->error);
	assert_int_equal(event->kind, EVENT_FAILED);
}

/* Peers that cancel request after request do not fill a server's log; a listener's failure is reported. */
TEST(strangers_do_not_fill_the_log, NULL, end)
{
	static const struct endpoint_handlers handlers = { .event = hear_nothing };
	const struct rdma_cm_event event = { .event = RDMA_CM_EVENT_REJECTED, .status = 28 };
	struct log log = { .name = "test" };
	struct transport transport = { .backend = &verbs_backend, .log = &log };
	struct verbs_endpoint endpoint = {
		.base = { .transport = &transport, .kind = ENDPOINT_CONNECTION, .handlers = &handlers }
	};
	struct capture capture;
	unsigned lines = 0;

	capture_begin(&capture);
	for (unsigned i = 0; i < 50; i++) {
		endpoint.base.state = ENDPOINT_ACCEPTING;
		verbs_endpoint_event(&endpoint, &event);
		assert_int_equal(endpoint.base.state, ENDPOINT_FAILED);
	}
	endpoint.base.kind = ENDPOINT_LISTENER;
	endpoint.base.state = ENDPOINT_LISTENING;
	verbs_endpoint_event(&endpoint, &event);
	capture_end(&capture);
	for (const char *at = capture.text; (at = strchr(at, '\n')); at++)
		lines++;
	assert_int_equal(lines, 11);
	assert_non_null(strstr(capture.text, "listening: "));
}
