/* SPDX-License-Identifier: BSD-2-Clause */
/* The path: requested and used. */
#include "test/verbs/ends.h"

#include <errno.h>

TEST(service_level_of_a_connection, NULL, end)
{
	begin(PROVIDER_INFINIBAND);
	path.service_level = 5;
	establish();
	assert_int_equal(qp_of(bench.client.endpoint)->attributes.ah_attr.sl, 5);
	assert_int_equal(qp_of(bench.server.endpoint)->attributes.ah_attr.sl, 5);
}

TEST(the_path_in_use, NULL, end)
{
	struct path taken;

	connect_both(PROVIDER_ROCE);
	endpoint_path(bench.client.endpoint, &taken);
	assert_string_equal(taken.device, "roce0");
	assert_string_equal(taken.gid_type, "RoCE v2");
	assert_string_equal(taken.interface, "lo");
	assert_int_equal(taken.port, 1);
	assert_int_equal(taken.gid_index, 3);
	assert_int_equal(taken.mtu, 2048);
	assert_int_equal(taken.peer_qpn, bench.server.endpoint->qpn);
	/* Without an answer from the device the entry is unknown. */
	provider_fail("ibv_query_qp", EIO, 0);
	endpoint_path(bench.client.endpoint, &taken);
	assert_int_equal(taken.peer_qpn, 0);
	assert_string_equal(taken.gid_type, "RoCE v2");
	provider_fail("ibv_query_gid_ex", EIO, 0);
	endpoint_path(bench.client.endpoint, &taken);
	assert_int_equal(taken.gid_index, PATH_UNSET);
	begin_member(PROVIDER_INFINIBAND);
	join_member();
	endpoint_path(bench.client.endpoint, &taken);
	assert_string_equal(taken.gid_type, "IB");
	assert_int_equal(taken.mtu, 2048);
	/* It is known without reading the table, whose port is not reported. */
	provider_fail("ibv_query_port", EIO, 0);
	endpoint_path(bench.client.endpoint, &taken);
	assert_int_equal(taken.gid_index, 0);
	provider_fail("ibv_query_gid_ex", EIO, 0);
	endpoint_path(bench.client.endpoint, &taken);
	assert_int_equal(taken.gid_index, PATH_UNSET);
}

/* Entries 2 and 3 have the same GID, for RoCE v1 and v2: the used one is known only then. */
TEST(a_gid_of_two_entries, NULL, end)
{
	static const struct {
		int used;
		int64_t client, server;
		bool connects;
	} rows[] = {
		{ 3, 3, PATH_UNSET, true },  { 2, 2, PATH_UNSET, true }, { 3, 2, PATH_UNSET, false },
		{ 2, 3, PATH_UNSET, false }, { 3, PATH_UNSET, 3, true }, { 3, PATH_UNSET, 2, false },
	};

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
		if (rows[row].client == PATH_UNSET)
			continue;
		begin_member(PROVIDER_ROCE);
		provider.devices[0]->ports[0].gid_index = rows[row].used;
		path.gid_index = rows[row].client;
		capture_begin(&capture);
		assert_true(bench_member(&bench, &bench.client, &bench.client_region, &options));
		assert_int_equal(endpoint_join(bench.client.endpoint), 0);
		assert_true(bench_await_event(&bench, &bench.client, rows[row].connects ? EVENT_JOINED : EVENT_FAILED));
		told(&capture);
		if (rows[row].connects) {
			struct path taken;

			endpoint_path(bench.client.endpoint, &taken);
			assert_int_equal(taken.gid_index, rows[row].used);
			assert_string_equal(taken.gid_type, rows[row].used == 2 ? "RoCE v1" : "RoCE v2");
		}
	}
}

TEST(the_requested_path, NULL, end)
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
			bench.client.endpoint = end_create(&bench.client, ENDPOINT_CONNECTION, &options);
			bench.client.endpoint->peer = bench.address;
			assert_int_equal(verbs_resolve(bench.client.endpoint), 0);
			endpoint_enter(bench.client.endpoint, ENDPOINT_RESOLVING_ADDRESS);
			assert_true(bench_await_event(&bench, &bench.client, EVENT_FAILED));
		} else {
			assert_true(bench_await_event(&bench, &bench.client, EVENT_ROUTE_RESOLVED));
		}
		told(&capture);
		assert_int_equal(rows[row].refusal && strstr(capture.text, rows[row].refusal),
				 rows[row].refusal != NULL);
	}
}

/* Of the address's two entries the connection manager uses the one for RoCE v2. */
TEST(the_gid_index_of_an_address, NULL, end)
{
	begin(PROVIDER_ROCE);
	path.gid_index = 0;
	bench.listener = end_create(&bench.listening, ENDPOINT_LISTENER, &options);
	EXPECT_TOLD("10.0.0.1 has GID index 3",
		    assert_int_equal(endpoint_listen(bench.listener, &bench.address), OUTCOME_USAGE));
}

/* A route does not lead to that device, or it has no address. */
TEST(the_device_of_an_address, NULL, end)
{
	begin(PROVIDER_ROCE);
	path.device = "roce1";
	bench.listener = end_create(&bench.listening, ENDPOINT_LISTENER, &options);
	EXPECT_TOLD("10.0.0.1 on lo belongs to roce0/1\n",
		    assert_int_equal(endpoint_listen(bench.listener, &bench.address), OUTCOME_USAGE));
	path.device = "nowhere0";
	EXPECT_TOLD("hint: 10.0.0.1 on lo belongs to roce0/1, 10.0.0.2 on lo belongs to roce0/2, "
		    "10.0.1.1 on lo belongs to roce1/1, 10.0.1.2 on lo belongs to roce1/2\n",
		    assert_false(bench_start_client(&bench, &options)));
}

/* Before a run begins: missing devices, and the existing ones. */
TEST(options_are_looked_up, NULL, end)
{
	static const struct {
		enum provider_fabric fabric;
		const char *device;
		int64_t port, gid_index;
		const char *cause; /* NULL: it exists */
	} rows[] = {
		{ PROVIDER_ROCE, "roce0", PATH_UNSET, PATH_UNSET, NULL },
		{ PROVIDER_ROCE, "roce1", 2, 3, NULL },
		{ PROVIDER_ROCE, NULL, PATH_UNSET, 3, NULL },
		{ PROVIDER_ROCE, "mlx5_0", PATH_UNSET, PATH_UNSET, "no device mlx5_0 here: roce0, roce1\n" },
		{ PROVIDER_ROCE, "roce", 1, 0, "no device roce here: roce0, roce1\n" },
		{ PROVIDER_ROCE, "roce0", 3, PATH_UNSET, "no port 3 here: roce0 has 2\n" },
		{ PROVIDER_ROCE, "roce0", 1, 4, "no GID index 4 here: roce0/1: 0 1 2 3\n" },
		{ PROVIDER_ROCE, "roce0", PATH_UNSET, 9, "no GID index 9 here: roce0/1: 0 1 2 3; roce0/2: 0 1 2 3\n" },
		{ PROVIDER_INFINIBAND, NULL, PATH_UNSET, 1, "here: ib0/1: 0; ib0/2: 0; ib1/1: 0; ib1/2: 0\n" },
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct capture capture;

		begin(rows[row].fabric);
		path.device = rows[row].device;
		path.port = rows[row].port;
		path.gid_index = rows[row].gid_index;
		capture_begin(&capture);
		assert_int_equal(transport_check_path(bench.transport, &path),
				 rows[row].cause ? OUTCOME_USAGE : OUTCOME_OK);
		assert_non_null(strstr(told(&capture), rows[row].cause ? rows[row].cause : ""));
		assert_int_equal(!*capture.text, !rows[row].cause);
	}
	/* Only the second device has it. */
	begin(PROVIDER_ROCE);
	provider.devices[0]->ports[0].gid_count = provider.devices[0]->ports[1].gid_count = 1;
	path.gid_index = 3;
	assert_int_equal(transport_check_path(bench.transport, &path), OUTCOME_OK);
	assert_false(error_is_set(&bench.transport->error));
}

/* Checks that are impossible here are left to the call that needs them. */
TEST(options_that_cannot_be_looked_up, NULL, end)
{
	begin(PROVIDER_ROCE);
	path.gid_index = 9;
	for (unsigned device = 0; device < 2; device++)
		provider_fail(device ? "ibv_query_device" : "ibv_open_device", EACCES, 0);
	assert_int_equal(transport_check_path(bench.transport, &path), OUTCOME_OK);
	path.device = "mlx5_0";
	provider.devices[0]->removed = provider.devices[1]->removed = true;
	assert_int_equal(transport_check_path(bench.transport, &path), OUTCOME_OK);
	provider.devices[0]->removed = provider.devices[1]->removed = false;
}

/* A listener on one device rejects requests that arrive by another, and both ends report the reason. */
TEST(a_request_by_another_device, NULL, end)
{
	struct endpoint_options anywhere;

	begin(PROVIDER_ROCE);
	anywhere = bench_options(&bench);
	path.port = 2;
	assert_true(address_parse("0.0.0.0", ADDRESS_FORMAT_IP, &bench.address));
	bench.listener = end_create(&bench.listening, ENDPOINT_LISTENER, &options);
	bench.listener->local = bench.address;
	assert_int_equal(verbs_listen(bench.listener), 0);
	endpoint_enter(bench.listener, ENDPOINT_LISTENING);
	assert_true(address_parse("10.0.0.1", ADDRESS_FORMAT_IP, &bench.address));
	assert_true(bench_resolve(&bench, &anywhere));
	assert_int_equal(endpoint_connect(bench.client.endpoint, NULL, 0), 0);
	EXPECT_FAILURE(&bench.client, ": rejected: only port 2 is served\n");
	assert_non_null(strstr(bench.error.cause, "refused by the peer: \"only port 2 is served\""));
}

/* As if one of its interfaces had none. */
TEST(a_listener_at_an_address_without_a_device, NULL, end)
{
	begin(PROVIDER_ROCE);
	bench.listener = end_create(&bench.listening, ENDPOINT_LISTENER, &options);
	provider_fail("rdma_bind_addr", ENODEV, 0);
	EXPECT_TOLD("10.0.0.1 is on lo; no address of this host leads to an RDMA device; the interface of the device "
		    "must be up and "
		    "have an address (rdmatest doctor shows more)",
		    assert_int_equal(endpoint_listen(bench.listener, &bench.address), OUTCOME_NO_CONNECTION));
}

TEST(a_listener_at_a_port_in_use, NULL, end)
{
	struct capture capture;

	begin(PROVIDER_ROCE);
	bench.listener = end_create(&bench.listening, ENDPOINT_LISTENER, &options);
	provider_fail("rdma_bind_addr", EADDRINUSE, 0);
	capture_begin(&capture);
	assert_int_equal(endpoint_listen(bench.listener, &bench.address), OUTCOME_NO_CONNECTION);
	assert_non_null(strstr(told(&capture), "binding: the port is in use (98)\n"));
	assert_null(strstr(capture.text, "hint: "));
}

TEST(a_listener_on_all_addresses_names_those_of_a_device, NULL, end)
{
	char text[ENDPOINT_ADDRESSES_SIZE];

	begin(PROVIDER_ROCE);
	bench.listener = end_create(&bench.listening, ENDPOINT_LISTENER, &options);
	bench.listener->local = bench.address;
	assert_string_equal(endpoint_local_addresses(bench.listener, text), "");
	assert_true(address_parse("0.0.0.0", ADDRESS_FORMAT_IP, &bench.listener->local));
	assert_string_equal(endpoint_local_addresses(bench.listener, text),
			    " (10.0.0.1, 10.0.0.2, 10.0.1.1, 10.0.1.2)");
	provider_fail("rdma_bind_addr", ENODEV, 0);
	provider.fails_once = true;
	assert_string_equal(endpoint_local_addresses(bench.listener, text), " (10.0.0.2, 10.0.1.1, 10.0.1.2)");
	path.device = "nowhere0";
	assert_string_equal(endpoint_local_addresses(bench.listener, text), "");
}
