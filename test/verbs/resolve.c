/* SPDX-License-Identifier: BSD-2-Clause */
/* Resolving an address and a route: the kernel's attempts within --timeout, its result, and the timeout. */
#include "test/verbs/ends.h"

#include <errno.h>

#include "core/clock.h"

/* The client fails; returns its output. */
static const char *fails(void)
{
	static struct capture capture;

	capture_begin(&capture);
	assert_true(bench_start_client(&bench, &options));
	assert_true(bench_await_event(&bench, &bench.client, EVENT_FAILED));
	capture_end(&capture);
	assert_int_equal(bench.client.records[bench.client.count - 1].outcome, OUTCOME_NO_CONNECTION);
	assert_int_equal(end_events(&bench.client, EVENT_FAILED), 1);
	return capture.text;
}

/* The kernel looks again when an attempt's limit is over, and must do so before the endpoint's own timeout. */
TEST(an_answer_that_the_kernel_misses, NULL, end)
{
	begin(PROVIDER_ROCE);
	options.timeout = 500 * CLOCK_NS_PER_MS;
	provider.answer_missed = true;
	assert_true(bench_resolve(&bench, &options));
	assert_non_null(strstr(provider.trace, "from none in 20 ms\nresolve the route in "));
}

TEST(each_try_is_twice_as_long, NULL, end)
{
	begin(PROVIDER_ROCE);
	options.timeout = 0;
	provider.tries_unanswered = 4;
	assert_true(bench_resolve(&bench, &options));
	assert_string_equal(provider.trace, "create_id space 0x0106\n"
					    "resolve 10.0.0.1:1 from none in 20 ms\n"
					    "create_id space 0x0106\n"
					    "resolve 10.0.0.1:1 from none in 40 ms\n"
					    "create_id space 0x0106\n"
					    "resolve 10.0.0.1:1 from none in 80 ms\n"
					    "create_id space 0x0106\n"
					    "resolve 10.0.0.1:1 from none in 160 ms\n"
					    "create_id space 0x0106\n"
					    "resolve 10.0.0.1:1 from none in 320 ms\n"
					    "resolve the route in 2000 ms\n"
					    "create_qp RC by the manager\n");
}

/* An address without a device is known long before --timeout is over, even if the kernel looks late. */
TEST(the_verdict_comes_before_the_time_out, NULL, end)
{
	static const struct {
		int status;
		const char *cause;
	} rows[] = {
		{ -ENODEV, "resolving the address: no RDMA device on the route to it" },
		{ -ENODEV, "these addresses of this host have an RDMA device: 10.0.0.1, 10.0.0.2, 10.0.1.1, " },
		{ -ENODEV, "; use the peer's address in one of their networks\n" },
		{ -EHOSTUNREACH, "resolving the address: no route to the host" },
		/* librdmacm does not find the kernel's device: -1. */
		{ -1, "resolving the address: no RDMA device on the route to it" },
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {
		begin(PROVIDER_ROCE);
		options.timeout = 500 * CLOCK_NS_PER_MS;
		provider.answer_missed = true;
		provider.address_status = rows[row].status;
		assert_non_null(strstr(fails(), rows[row].cause));
	}
}

TEST(no_answer_within_the_limit, NULL, end)
{
	begin(PROVIDER_ROCE);
	options.timeout = 100 * CLOCK_NS_PER_MS;
	provider.tries_unanswered = 1000;
	assert_non_null(strstr(fails(), "10.0.0.1:1: resolving the address: timed out after 0.1 s\n"));
	assert_int_equal(bench.error.kind, ERROR_NO_REPLY);
	assert_null(strstr(provider.trace, "in 160 ms"));
}

/* The second attempt fails at once. */
TEST(a_try_that_fails, NULL, end)
{
	static const struct {
		const char *call, *cause;
		int error;
	} rows[] = {
		{ "rdma_create_id", "creating a connection identifier", ENOMEM },
		{ "rdma_resolve_addr", "resolving the address: no route to the host", ENETUNREACH },
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct capture capture;

		begin(PROVIDER_ROCE);
		provider.tries_unanswered = 1;
		assert_true(bench_start_client(&bench, &options));
		provider_fail(rows[row].call, rows[row].error, 0);
		capture_begin(&capture);
		assert_true(bench_await_event(&bench, &bench.client, EVENT_FAILED));
		assert_non_null(strstr(capture_end(&capture), rows[row].cause));
	}
}

/* Up to the first attempt for the route, which does not end by itself. */
static struct cm_id *begin_route(int64_t timeout)
{
	begin(PROVIDER_INFINIBAND);
	options.timeout = timeout;
	provider.route_held = true;
	assert_true(bench_start_client(&bench, &options));
	assert_true(bench_await_event(&bench, &bench.client, EVENT_ADDRESS_RESOLVED));
	return (struct cm_id *)((struct verbs_endpoint *)bench.client.endpoint)->id;
}

/* The kernel repeats a subnet manager query after a tenth of the limit, and a slow one needs a long limit. */
TEST(each_try_of_a_route_is_twice_as_long, NULL, end)
{
	struct cm_id *id;

	id = begin_route(0);
	for (int count = 0; count < 3; count++) {
		cm_raise(id, RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT);
		bench_linger(&bench, 1);
	}
	assert_non_null(strstr(provider.trace, "resolve the route in 2000 ms\nresolve the route in 4000 ms\n"
					       "resolve the route in 8000 ms\nresolve the route in 16000 ms\n"));
}

TEST(a_route_that_is_not_found, NULL, end)
{
	struct capture capture;
	struct cm_id *id = begin_route(500 * CLOCK_NS_PER_MS);

	capture_begin(&capture);
	cm_raise(id, RDMA_CM_EVENT_ROUTE_ERROR, -EINVAL);
	assert_true(bench_await_event(&bench, &bench.client, EVENT_FAILED));
	assert_non_null(strstr(capture_end(&capture), "resolving the route: Invalid argument"));
	assert_int_equal(bench.error.kind, ERROR_OTHER);
	begin_route(50 * CLOCK_NS_PER_MS);
	capture_begin(&capture);
	assert_true(bench_await_event(&bench, &bench.client, EVENT_FAILED));
	assert_non_null(strstr(capture_end(&capture), "resolving the route: timed out after 0.05 s\n"));
	assert_int_equal(bench.error.kind, ERROR_NO_REPLY);
}
