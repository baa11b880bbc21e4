/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups: joining, and features that a device or fabric lacks. */
#include "test/verbs/ends.h"

#include <errno.h>

TEST(service_level_of_a_group, NULL, end)
{
	for (int asked = 0; asked < 2; asked++) {
		begin_member(PROVIDER_INFINIBAND);
		if (asked)
			path.service_level = 6;
		join_member();
		assert_int_equal(provider.last_handle.sl, asked ? 6 : 3);
		assert_int_equal(bench.client.group.service_level, asked ? 6 : 3);
		assert_int_equal(bench.client.group.lid, 0xc001);
		assert_int_equal(bench.client.group.qkey, UDP_QKEY);
		assert_int_equal(provider.last_handle.dlid, 0xc001);
	}
}

/* A native group is reached from an address of a device. */
TEST(a_group_without_a_device, NULL, end)
{
	struct address any, gid = { .family = ADDRESS_GID, .bytes = { 0xff, 0x12, 0x40, 0x1b, [15] = 5 } };

	begin_member(PROVIDER_INFINIBAND);
	assert_true(address_parse("0.0.0.0", ADDRESS_FORMAT_IP, &any));
	bench.client.endpoint = end_create(&bench.client, ENDPOINT_GROUP, &options);
	EXPECT_TOLD("not an address of this host with an RDMA device",
		    assert_int_equal(endpoint_resolve(bench.client.endpoint, &any, &gid), OUTCOME_NO_CONNECTION));
}

/* The default route, which a group without a bound address takes, leads to no device. */
TEST(a_group_on_another_route, NULL, end)
{
	begin_member(PROVIDER_ROCE);
	provider.address_status = -ENODEV;
	EXPECT_TOLD("these addresses of this host have an RDMA device: 10.0.0.1, 10.0.0.2, 10.0.1.1, 10.0.1.2 "
		    "(-b ADDRESS)\n",
		    assert_false(bench_member(&bench, &bench.client, &bench.client_region, &options)));
}

TEST(a_membership_that_fails, NULL, end)
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

	for (size_t row = 0; row < LENGTH(rows); row++) {
		begin_member(PROVIDER_INFINIBAND);
		assert_true(bench_member(&bench, &bench.client, &bench.client_region, &options));
		provider_fail(rows[row].call, rows[row].error, 0);
		EXPECT_TOLD(rows[row].cause, assert_true(endpoint_join(bench.client.endpoint) ||
							 bench_await_event(&bench, &bench.client, EVENT_FAILED)));
		/* A group never joined is not left. */
		assert_int_equal(verbs(bench.client.endpoint)->is_member, row != 0);
	}
	/* The subnet manager knows no send-only members. */
	for (int error = 0; error < 2; error++) {
		struct capture capture;

		begin_member(PROVIDER_INFINIBAND);
		options.send_only = true;
		assert_true(bench_member(&bench, &bench.client, &bench.client_region, &options));
		provider_fail("rdma_join_multicast", error ? EINVAL : ENODEV, 0);
		capture_begin(&capture);
		assert_int_equal(endpoint_join(bench.client.endpoint), OUTCOME_NO_CONNECTION);
		assert_int_equal(strstr(told(&capture), "needs a subnet manager that supports it") != NULL, error);
	}
}

TEST(missing_features, NULL, end)
{
	begin(PROVIDER_IWARP);
	path.ack_timeout = 14;
	assert_true(bench_listen(&bench, &options));
	EXPECT_TOLD("iWARP has no acknowledgement timeout", assert_false(bench_resolve(&bench, &options)));
	/* Neither iWARP nor some RoCE cards have multicast. */
	for (int card = 0; card < 2; card++) {
		begin_member(card ? PROVIDER_ROCE : PROVIDER_IWARP);
		if (card)
			device_drive(provider.devices[0], "bnxt_re");
		EXPECT_TOLD("the device has no multicast",
			    assert_false(bench_member(&bench, &bench.client, &bench.client_region, &options)));
		assert_false(bench.client.endpoint->domain->multicast);
	}
	begin_member(PROVIDER_ROCE);
	options.no_loopback = true;
	EXPECT_TOLD("cannot keep multicast from looping back",
		    assert_false(bench_member(&bench, &bench.client, &bench.client_region, &options)));
}
