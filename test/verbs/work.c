/* SPDX-License-Identifier: BSD-2-Clause */
/* Posted work, its access rights, and memory regions. */
#include "test/verbs/ends.h"

TEST(posted_work, NULL, end)
{
	struct work work;
	const struct send_work *posted;

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
	provider_fail("ibv_post_send", EINVAL, 0);
	EXPECT_TOLD("hint: does it work without inline data?\n",
		    assert_int_equal(endpoint_post(bench.client.endpoint, &work, 1), OUTCOME_INTERNAL));
	provider_fail(NULL, 0, 0);
	/* The read bytes come from the peer. */
	work.kind = WORK_READ;
	work.remote_address = bench.server_region->remote_address;
	work.remote_key = bench.server_region->remote_key;
	assert_int_equal(endpoint_post(bench.client.endpoint, &work, 1), 0);
	assert_true(bench_await_completions(&bench, &bench.client, WORK_READ, 1));
	assert_int_equal(end_last_completion(&bench.client, WORK_READ)->status, COMPLETION_OK);
	assert_int_equal(provider.inlined, 1);
	assert_int_equal(end_completions(&bench.client, WORK_SEND), 1);
}

/* More in one call than a chain, and more than fit into a queue pair. */
TEST(long_chains, NULL, end)
{
	struct work works[40];

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
	for (size_t index = 0; index < LENGTH(works); index++)
		assert_int_equal(endpoint_post(bench.server.endpoint, works, 1), 0);
	EXPECT_TOLD("posting a receive",
		    assert_int_equal(endpoint_post(bench.server.endpoint, works, 1), OUTCOME_INTERNAL));
}

TEST(rights_of_a_region, NULL, end)
{
	static const unsigned both[] = { IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
					 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

	for (int fabric = PROVIDER_ROCE; fabric <= PROVIDER_IWARP; fabric++) {
		static const unsigned asked[] = { REGION_LOCAL, REGION_REMOTE_READ, REGION_REMOTE_WRITE,
						  REGION_READ_SINK };
		/* On iWARP the device writes to a READ's sink like the peer. */
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
	}
}

static struct loop_timer turn;
static unsigned turns, regions;

/* Restarts its timer first, which then comes before the reaper's. */
static void end_a_region(void *context)
{
	struct region *region;

	if (++turns < 100)
		loop_timer_start(bench.loop, &turn, 0, end_a_region, NULL);
	assert_int_equal(region_create(bench.client.endpoint->domain, 64, REGION_LOCAL, &region), 0);
	region_destroy(region);
	regions = 0;
	for (const struct region_entry *entry = provider.regions; entry; entry = entry->next)
		regions++;
}

TEST(regions_that_end_in_every_turn, NULL, end)
{
	connect_both(PROVIDER_ROCE);
	end_a_region(NULL);
	while (turns < 100)
		bench_linger(&bench, 1);
	assert_true(regions < 10);
}
