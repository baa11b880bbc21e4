/* SPDX-License-Identifier: BSD-2-Clause */
/* Conformance: multicast groups. */
#include <string.h>

#include "test/conformance/pair.h"
#include "test/unit/pattern.h"

static struct endpoint_options group_options(const struct bench *bench)
{
	struct endpoint_options options = bench_options(bench);

	options.port_space = PORT_SPACE_UDP;
	return options;
}

static bool member_with_receive(struct bench *bench, struct end *end, struct region **region,
				const struct endpoint_options *options)
{
	if (!bench_member(bench, end, region, options))
		return false;
	return !endpoint_post(
		end->endpoint,
		&(struct work){ .kind = WORK_RECEIVE, .region = *region, .length = DATAGRAM_HEADER_SIZE + 512 }, 1);
}

static bool joined(struct bench *bench, struct end *end)
{
	return !endpoint_join(end->endpoint) && bench_await_event(bench, end, EVENT_JOINED);
}

/* The client sends, the server receives; both are members. */
static void exchange(struct bench *bench, const struct endpoint_options *sender_options,
		     const struct endpoint_options *receiver_options)
{
	const struct completion *received;
	struct work work;

	REQUIRE(bench, member_with_receive(bench, &bench->server, &bench->server_region, receiver_options));
	REQUIRE(bench, bench_member(bench, &bench->client, &bench->client_region, sender_options));
	REQUIRE(bench, joined(bench, &bench->server));
	REQUIRE(bench, joined(bench, &bench->client));
	REQUIRE(bench, bench->client.group.qpn == 0xffffff);
	REQUIRE(bench, bench->client.group.qkey == 0x01234567);
	pattern_write(bench->client_region->memory, 500, 4, 1);
	work = (struct work){
		.kind = WORK_SEND,
		.region = bench->client_region,
		.length = 500,
		.has_immediate = true,
		.immediate = bench->client.endpoint->qpn,
	};
	REQUIRE(bench, !endpoint_post(bench->client.endpoint, &work, 1));
	REQUIRE(bench, bench_await_completions(bench, &bench->client, WORK_SEND, 1));
	REQUIRE(bench, bench_await_completions(bench, &bench->server, WORK_RECEIVE, 1));
	received = end_last_completion(&bench->server, WORK_RECEIVE);
	REQUIRE(bench, received->status == COMPLETION_OK && received->length == 500);
	REQUIRE(bench, received->has_immediate && received->immediate == bench->client.endpoint->qpn);
	REQUIRE(bench, received->source_qpn == bench->client.endpoint->qpn);
	REQUIRE(bench, pattern_equal(bench->server_region->memory + DATAGRAM_HEADER_SIZE, 500, 4, 1));
}

CASE(group_exchange, .group = true)
{
	struct endpoint_options options = group_options(bench);

	exchange(bench, &options, &options);
}

CASE(group_send_only, .group = true)
{
	struct endpoint_options receiver = group_options(bench), sender = receiver;

	sender.send_only = true;
	exchange(bench, &sender, &receiver);
}

/* A member that does not receive its own datagram. */
static void hears_nothing(struct bench *bench, const struct endpoint_options *options)
{
	struct work work;

	REQUIRE(bench, member_with_receive(bench, &bench->client, &bench->client_region, options));
	REQUIRE(bench, joined(bench, &bench->client));
	work = (struct work){ .kind = WORK_SEND, .region = bench->client_region, .length = 100 };
	REQUIRE(bench, !endpoint_post(bench->client.endpoint, &work, 1));
	REQUIRE(bench, bench_await_completions(bench, &bench->client, WORK_SEND, 1));
	bench_linger(bench, 200);
	REQUIRE(bench, end_completions(&bench->client, WORK_RECEIVE) == 0);
}

/* A send-only member's QP is not attached. */
CASE(group_send_only_hears_nothing, .group = true)
{
	struct endpoint_options options = group_options(bench);

	options.send_only = true;
	hears_nothing(bench, &options);
}

CASE(group_no_loopback, .group = true)
{
	struct endpoint_options options = group_options(bench);

	options.no_loopback = true;
	hears_nothing(bench, &options);
}

CASE(group_mtu_is_known, .group = true)
{
	struct endpoint_options options = group_options(bench);

	REQUIRE(bench, bench_member(bench, &bench->client, &bench->client_region, &options));
	REQUIRE(bench, bench->client.endpoint->max_datagram >= 256);
	REQUIRE(bench, bench->client.endpoint->max_datagram <= 4096);
}
