/* SPDX-License-Identifier: BSD-2-Clause */
/* Conformance: data over a connection. */
#include <string.h>

#include "test/conformance/pair.h"
#include "test/unit/pattern.h"

static struct work send_of(const struct bench *bench, uint32_t tag, uint32_t length)
{
	return (struct work){ .kind = WORK_SEND, .tag = tag, .region = bench->client_region, .length = length };
}

static struct work remote_work(const struct bench *bench, enum work_kind kind, size_t offset, uint32_t length)
{
	return (struct work){
		.kind = kind,
		.region = bench->client_region,
		.offset = offset,
		.length = length,
		.remote_address = bench->server_region->remote_address + offset,
		.remote_key = bench->server_region->remote_key,
	};
}

static bool connected(struct bench *bench, size_t receives)
{
	bench->accept_receives = receives;
	return bench_connect_both(bench);
}

CASE(send_every_size)
{
	static const uint32_t sizes[] = { 0, 1, 3, 4, 100, 1023, 1024, 1025, 4096, 65535, 65536, 1 << 20 };
	enum {
		COUNT = sizeof(sizes) / sizeof(*sizes)
	};

	bench->region_size = 1 << 20;
	REQUIRE(bench, connected(bench, COUNT));
	for (uint32_t index = 0; index < COUNT; index++) {
		struct work work = send_of(bench, index, sizes[index]);

		pattern_write(bench->client_region->memory, sizes[index], 1, index);
		REQUIRE(bench, !endpoint_post(bench->client.endpoint, &work, 1));
		REQUIRE(bench, bench_await_completions(bench, &bench->client, WORK_SEND, index + 1));
		REQUIRE(bench, bench_await_completions(bench, &bench->server, WORK_RECEIVE, index + 1));
		REQUIRE(bench, end_last_completion(&bench->client, WORK_SEND)->status == COMPLETION_OK);
		REQUIRE(bench, end_last_completion(&bench->client, WORK_SEND)->tag == index);
		REQUIRE(bench, end_last_completion(&bench->server, WORK_RECEIVE)->length == sizes[index]);
		REQUIRE(bench, pattern_equal(bench->server_region->memory, sizes[index], 1, index));
	}
}

/*
 * The client sends and disconnects as soon as it is connected: the server must report the connection, then the message,
 * then the end, in any order of the kernel's two descriptors.
 */
CASE(order_of_news)
{
	bench->accept_receives = 1;
	REQUIRE(bench, bench_listen(bench, NULL));
	for (int round = 0; round < 20; round++) {
		struct work work;

		bench->client.count = bench->server.count = 0;
		REQUIRE(bench, bench_resolve(bench, NULL));
		REQUIRE(bench, !endpoint_connect(bench->client.endpoint, NULL, 0));
		REQUIRE(bench, bench_await_event(bench, &bench->client, EVENT_ESTABLISHED));
		work = send_of(bench, 0, 64);
		REQUIRE(bench, !endpoint_post(bench->client.endpoint, &work, 1));
		REQUIRE(bench, bench_await_completions(bench, &bench->client, WORK_SEND, 1));
		REQUIRE(bench, !endpoint_disconnect(bench->client.endpoint));
		REQUIRE(bench, bench_await_event(bench, &bench->server, EVENT_DISCONNECTED));
		REQUIRE(bench, bench->server.count == 3);
		REQUIRE(bench, bench->server.records[0].event == EVENT_ESTABLISHED);
		REQUIRE(bench, bench->server.records[1].completion.kind == WORK_RECEIVE);
		REQUIRE(bench, bench->server.records[2].event == EVENT_DISCONNECTED);
		endpoint_destroy(bench->client.endpoint);
		endpoint_destroy(bench->server.endpoint);
		bench->client.endpoint = bench->server.endpoint = NULL;
		region_destroy(bench->client_region);
		bench->client_region = NULL;
	}
}

/* They take the client's messages, which may come before the event. */
CASE(receives_posted_while_accepting)
{
	struct work work;

	bench->answer_requests = false;
	REQUIRE(bench, bench_listen(bench, NULL));
	REQUIRE(bench, bench_resolve(bench, NULL));
	REQUIRE(bench, !endpoint_connect(bench->client.endpoint, NULL, 0));
	REQUIRE(bench, bench_await_event(bench, &bench->listening, EVENT_REQUEST));
	REQUIRE(bench, !bench_accept(bench));
	for (uint32_t tag = 0; tag < 2; tag++) {
		work = (struct work){ .kind = WORK_RECEIVE, .tag = tag, .region = bench->server_region, .length = 100 };
		REQUIRE(bench, !endpoint_post(bench->server.endpoint, &work, 1));
	}
	REQUIRE(bench, bench_await_event(bench, &bench->client, EVENT_ESTABLISHED));
	for (uint32_t tag = 0; tag < 2; tag++) {
		work = send_of(bench, tag, 10 + tag);
		REQUIRE(bench, !endpoint_post(bench->client.endpoint, &work, 1));
	}
	REQUIRE(bench, bench_await_completions(bench, &bench->server, WORK_RECEIVE, 2));
	REQUIRE(bench, bench->server.records[0].event == EVENT_ESTABLISHED);
	for (uint32_t tag = 0; tag < 2; tag++) {
		REQUIRE(bench, bench->server.records[1 + tag].completion.tag == tag);
		REQUIRE(bench, bench->server.records[1 + tag].completion.length == 10 + tag);
	}
}

CASE(read_and_write)
{
	struct work work;

	bench->region_size = 65536;
	REQUIRE(bench, connected(bench, 0));
	pattern_write(bench->server_region->memory, 65536, 2, 1);
	work = remote_work(bench, WORK_READ, 100, 60000);
	REQUIRE(bench, !endpoint_post(bench->client.endpoint, &work, 1));
	REQUIRE(bench, bench_await_completions(bench, &bench->client, WORK_READ, 1));
	REQUIRE(bench, end_last_completion(&bench->client, WORK_READ)->status == COMPLETION_OK);
	REQUIRE(bench, !memcmp(bench->client_region->memory + 100, bench->server_region->memory + 100, 60000));
	REQUIRE(bench, bench->client_region->memory[99] == 0 && bench->client_region->memory[60100] == 0);
	pattern_write(bench->client_region->memory, 65536, 2, 2);
	work = remote_work(bench, WORK_WRITE, 5000, 50000);
	REQUIRE(bench, !endpoint_post(bench->client.endpoint, &work, 1));
	REQUIRE(bench, bench_await_completions(bench, &bench->client, WORK_WRITE, 1));
	REQUIRE(bench, end_last_completion(&bench->client, WORK_WRITE)->status == COMPLETION_OK);
	REQUIRE(bench, !memcmp(bench->client_region->memory + 5000, bench->server_region->memory + 5000, 50000));
	REQUIRE(bench, pattern_equal(bench->server_region->memory, 5000, 2, 1));
}

/* An unsignalled WRITE followed by a SEND: the message proves that the data has arrived. A receive always completes. */
CASE(silent_write_then_send)
{
	struct work works[2];

	REQUIRE(bench, connected(bench, 0));
	works[0] = (struct work){
		.kind = WORK_RECEIVE, .region = bench->server_region, .length = 16, .unsignalled = true
	};
	REQUIRE(bench, !endpoint_post(bench->server.endpoint, works, 1));
	memset(bench->client_region->memory, 0x5a, 4096);
	works[0] = remote_work(bench, WORK_WRITE, 100, 3000);
	works[0].unsignalled = true;
	works[1] = send_of(bench, 9, 16);
	REQUIRE(bench, !endpoint_post(bench->client.endpoint, works, 2));
	REQUIRE(bench, bench_await_completions(bench, &bench->server, WORK_RECEIVE, 1));
	REQUIRE(bench, !memcmp(bench->client_region->memory + 100, bench->server_region->memory + 100, 3000));
	REQUIRE(bench, bench_await_completions(bench, &bench->client, WORK_SEND, 1));
	REQUIRE(bench, end_completions(&bench->client, WORK_WRITE) == 0);
	REQUIRE(bench, end_last_completion(&bench->client, WORK_SEND)->tag == 9);
}

/*
 * The peer's memory is unchanged, and the initiator gets an error: as the work's status, or on iWARP, where a WRITE
 * completes once TCP has it, as the end of the connection.
 */
static void refused_access(struct bench *bench, struct work work)
{
	static uint8_t before[4096];

	pattern_write(bench->server_region->memory, 4096, 3, 1);
	memcpy(before, bench->server_region->memory, 4096);
	REQUIRE(bench, !endpoint_post(bench->client.endpoint, &work, 1));
	REQUIRE(bench, bench_await_trouble(bench, &bench->client));
	REQUIRE(bench, !memcmp(bench->server_region->memory, before, 4096));
}

CASE(write_beyond_the_region)
{
	struct work work;

	REQUIRE(bench, connected(bench, 0));
	work = remote_work(bench, WORK_WRITE, 0, 4096);
	work.remote_address += 1;
	refused_access(bench, work);
}

CASE(read_with_a_wrong_key)
{
	struct work work;

	REQUIRE(bench, connected(bench, 0));
	work = remote_work(bench, WORK_READ, 0, 16);
	work.remote_key ^= 0x5500;
	refused_access(bench, work);
}

CASE(write_without_the_right)
{
	bench->access = REGION_REMOTE_READ;
	REQUIRE(bench, connected(bench, 0));
	refused_access(bench, remote_work(bench, WORK_WRITE, 0, 16));
}

CASE(message_longer_than_the_receive)
{
	struct work work;

	REQUIRE(bench, connected(bench, 0));
	work = (struct work){ .kind = WORK_RECEIVE, .region = bench->server_region, .length = 100 };
	REQUIRE(bench, !endpoint_post(bench->server.endpoint, &work, 1));
	work = send_of(bench, 0, 200);
	REQUIRE(bench, !endpoint_post(bench->client.endpoint, &work, 1));
	REQUIRE(bench, bench_await_completions(bench, &bench->server, WORK_RECEIVE, 1));
	REQUIRE(bench, end_last_completion(&bench->server, WORK_RECEIVE)->status != COMPLETION_OK);
}

/* Its last completion is the second, which failed. */
static bool ends_at_second(const struct end *end, enum work_kind kind)
{
	const struct completion *last = end_last_completion(end, kind);

	return end_completions(end, (int)kind) == 2 && last->tag == 1 && last->status != COMPLETION_OK;
}

/*
 * Work before a failed one completes, work behind it does not, whenever it was posted. On iWARP a send completes once
 * TCP has it.
 */
CASE(work_after_a_failed_one)
{
	static const uint32_t lengths[] = { 100, 200, 100, 100 };
	struct work sends[4], receive;

	REQUIRE(bench, connected(bench, 0));
	for (uint32_t tag = 0; tag < 4; tag++) {
		receive = (struct work){
			.kind = WORK_RECEIVE, .tag = tag, .region = bench->server_region, .length = 100
		};
		REQUIRE(bench, !endpoint_post(bench->server.endpoint, &receive, 1));
		sends[tag] = send_of(bench, tag, lengths[tag]);
	}
	REQUIRE(bench, !endpoint_post(bench->client.endpoint, sends, 4));
	REQUIRE(bench, bench_await_trouble(bench, &bench->client));
	REQUIRE(bench, bench_await_completions(bench, &bench->server, WORK_RECEIVE, 2));
	REQUIRE(bench, !endpoint_post(bench->client.endpoint, sends, 4));
	REQUIRE(bench, !endpoint_post(bench->server.endpoint, &receive, 1));
	bench_linger(bench, 600);
	REQUIRE(bench, ends_at_second(&bench->server, WORK_RECEIVE));
	if (bench->client.endpoint->domain->fabric == FABRIC_IWARP)
		return;
	REQUIRE(bench, ends_at_second(&bench->client, WORK_SEND));
	REQUIRE(bench, !end_events(&bench->client, EVENT_FAILED) && !end_events(&bench->server, EVENT_FAILED));
}

/* Sends that arrive before their receives wait, but not long. */
CASE(receiver_not_ready)
{
	struct work work;

	REQUIRE(bench, connected(bench, 0));
	for (uint32_t index = 0; index < 8; index++) {
		work = send_of(bench, index, 100);
		REQUIRE(bench, !endpoint_post(bench->client.endpoint, &work, 1));
	}
	bench_linger(bench, 100);
	REQUIRE(bench, end_completions(&bench->client, WORK_SEND) == 0);
	for (size_t index = 0; index < 8; index++) {
		work = (struct work){ .kind = WORK_RECEIVE, .region = bench->server_region, .length = 100 };
		REQUIRE(bench, !endpoint_post(bench->server.endpoint, &work, 1));
		REQUIRE(bench, bench_await_completions(bench, &bench->server, WORK_RECEIVE, index + 1));
	}
	REQUIRE(bench, bench_await_completions(bench, &bench->client, WORK_SEND, 8));
}
