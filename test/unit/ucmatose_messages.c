/* SPDX-License-Identifier: BSD-2-Clause */
/* ucmatose's messages, between two ends in one process over a wire that a test can watch and corrupt. */
/* link: -Wl,--wrap=endpoint_post -Wl,--wrap=endpoint_create_qp -Wl,--wrap=endpoint_destroy */
/* link: -Wl,--wrap=region_create -Wl,--wrap=region_destroy */
#include <sys/param.h>

#include "unit.h"

#include "cmd/command.h"
#include "cmd/ucmatose/ucmatose.h"
#include "test/unit/figures.h"
#include "test/unit/pattern.h"

enum {
	SERVER,
	CLIENT,
	ENDS,
	QUEUE_MAX = 16384,
};

struct queue {
	struct work work[QUEUE_MAX];
	size_t first;
	size_t count;
};

/* One end: a run of one connection. */
struct end {
	struct run run;
	struct output output;
	struct transport transport;
	struct ucmatose_options options;
	struct ucmatose ucmatose;
	struct ucmatose_connection connection;
	struct domain domain;
	struct endpoint endpoint;
	struct queue sends;
	struct queue receives;
	struct end *peer;
	size_t receives_max;
	uint32_t depth_max; /* receives that fit the device's memory; 0: any number */
};

struct bench {
	struct end ends[ENDS];
	size_t not_ready; /* messages without a receive */
	size_t grants;
	struct capture capture;
};

static struct end *end_of(struct endpoint *endpoint)
{
	return (struct end *)((char *)endpoint - offsetof(struct end, endpoint));
}

static void push(struct queue *queue, const struct work *work)
{
	assert_true(queue->count < QUEUE_MAX);
	queue->work[(queue->first + queue->count++) % QUEUE_MAX] = *work;
}

static struct work pop(struct queue *queue)
{
	struct work work = queue->work[queue->first];

	assert_true(queue->count > 0);
	queue->first = (queue->first + 1) % QUEUE_MAX;
	queue->count--;
	return work;
}

enum outcome __wrap_endpoint_post(struct endpoint *endpoint, const struct work *work, size_t count)
{
	struct end *end = end_of(endpoint);
	struct queue *queue = work->kind == WORK_RECEIVE ? &end->receives : &end->sends;

	for (size_t i = 0; i < count; i++) {
		assert_true(work[i].offset + work[i].length <= work[i].region->length);
		push(queue, &work[i]);
	}
	assert_true(end->receives.count <= endpoint->options.receive_depth);
	assert_true(end->sends.count <= endpoint->options.send_depth);
	if (end->receives.count > end->receives_max)
		end->receives_max = end->receives.count;
	return OUTCOME_OK;
}

enum outcome __wrap_endpoint_create_qp(struct endpoint *endpoint)
{
	const struct end *end = end_of(endpoint);

	if (end->depth_max && endpoint->options.receive_depth > end->depth_max)
		endpoint->options.receive_depth = end->depth_max;
	return OUTCOME_OK;
}

void __wrap_endpoint_destroy(struct endpoint *endpoint)
{
}

enum outcome __wrap_region_create(struct domain *domain, size_t length, unsigned access, struct region **region)
{
	*region = calloc(1, sizeof(**region));
	(*region)->domain = domain;
	(*region)->length = length;
	(*region)->memory = calloc(1, length);
	return OUTCOME_OK;
}

void __wrap_region_destroy(struct region *region)
{
	if (region)
		free(region->memory);
	free(region);
}

static void begin(struct ucmatose_connection *connection)
{
	ucmatose_connection_check(connection, ucmatose_messages_begin(connection));
}

static void completed(struct ucmatose_connection *connection, const struct completion *completion)
{
	ucmatose_connection_check(connection, ucmatose_messages_completed(connection, completion));
}

static struct bench *bench_create(uint32_t count, uint32_t size, enum fabric fabric, uint32_t max_qp_wr)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	for (int i = 0; i < ENDS; i++) {
		struct end *end = &bench->ends[i];

		end->peer = &bench->ends[!i];
		end->run.command = &ucmatose_command;
		end->run.log.name = "ucmatose";
		end->output.stream = stdout;
		end->run.output = &end->output;
		end->run.transport = &end->transport;
		end->options.common.timeout = CLOCK_NS_PER_S;
		end->domain = (struct domain){
			.device = "test0", .fabric = fabric, .max_message = 1 << 23, .max_qp_wr = max_qp_wr
		};
		end->endpoint.domain = &end->domain;
		end->endpoint.context = &end->connection;
		end->ucmatose = (struct ucmatose){ .run = &end->run,
						   .options = &end->options,
						   .connections = &end->connection,
						   .messages = count,
						   .size = size,
						   .wanted = 1,
						   .is_server = i == SERVER,
						   .phase = PHASE_ENDED };
		end->ucmatose.in_state[CONNECTION_NEW] = 1;
		end->connection =
			(struct ucmatose_connection){ .ucmatose = &end->ucmatose, .endpoint = &end->endpoint };
		ucmatose_connection_enter(&end->connection, CONNECTION_CONNECTING);
	}
	capture_begin(&bench->capture);
	return bench;
}

static void greet(struct end *end, struct end *peer)
{
	struct hello hello;

	ucmatose_hello_write(&peer->ucmatose, 0);
	assert_true(hello_read(peer->ucmatose.hello, HELLO_SIZE, HELLO_UCMATOSE, &hello));
	assert_true(ucmatose_hello_agrees(&end->ucmatose, "peer", &hello));
	ucmatose_hello_apply(&end->connection, &hello);
}

/* Events as in a run. Stock ends send no hello. */
static void connect_ends(struct bench *bench, bool ours)
{
	struct end *server = &bench->ends[SERVER];
	struct end *client = &bench->ends[CLIENT];

	assert_int_equal(ucmatose_messages_prepare(&client->connection), OUTCOME_OK);
	if (ours)
		greet(server, client);
	assert_int_equal(ucmatose_messages_prepare(&server->connection), OUTCOME_OK);
	if (ours)
		greet(client, server);
	ucmatose_connection_enter(&client->connection, CONNECTION_ESTABLISHED);
	ucmatose_connection_enter(&server->connection, CONNECTION_ESTABLISHED);
	begin(&client->connection);
	begin(&server->connection);
}

static bool is_alive(const struct end *end)
{
	return end->connection.state != CONNECTION_FAILED;
}

static void complete(struct end *end, const struct work *work, uint32_t length)
{
	struct completion completion = { .kind = work->kind, .tag = work->tag, .length = length };

	if (is_alive(end))
		completed(&end->connection, &completion);
}

/* Transfers one message to the peer, if it has a receive. */
static bool carry(struct bench *bench, struct end *end)
{
	struct end *peer = end->peer;
	struct work send, receive;

	if (!end->sends.count || !is_alive(end) || !is_alive(peer))
		return false;
	if (!peer->receives.count) {
		bench->not_ready++;
		return false;
	}
	send = pop(&end->sends);
	receive = pop(&peer->receives);
	assert_true(send.length <= receive.length);
	bench->grants += send.length == 0;
	memcpy(receive.region->memory + receive.offset, send.region->memory + send.offset, send.length);
	complete(peer, &receive, send.length);
	complete(end, &send, 0);
	return true;
}

/* Each end gets its turn. */
static bool carry_both(struct bench *bench)
{
	bool served = carry(bench, &bench->ends[SERVER]);

	return carry(bench, &bench->ends[CLIENT]) || served;
}

static void carry_all(struct bench *bench)
{
	while (carry_both(bench))
		;
}

/* Returns the output on stderr; valid until the next bench. */
static const char *bench_destroy(struct bench *bench)
{
	static char text[4096];

	snprintf(text, sizeof(text), "%s", capture_end(&bench->capture));
	for (int i = 0; i < ENDS; i++)
		ucmatose_messages_free(&bench->ends[i].ucmatose);
	free(bench);
	return text;
}

/* Delivers the remaining messages: both ends have all of them, and no error is reported. */
static void assert_all_goes(struct bench *bench, uint32_t count)
{
	carry_all(bench);
	for (int i = 0; i < ENDS; i++) {
		const struct ucmatose_connection *connection = &bench->ends[i].connection;

		assert_int_equal(connection->state, CONNECTION_TRANSFERRED);
		assert_int_equal(connection->received, count);
		assert_int_equal(connection->acknowledged, count);
	}
	assert_string_equal(bench_destroy(bench), "");
}

TEST(every_count_and_size_goes_both_ways)
{
	static const uint32_t counts[] = { 1,	2,   3,	  31,  32,  33,	 63,  64,   65,	 96,
					   127, 128, 129, 255, 256, 257, 384, 1000, 5000 };
	static const uint32_t sizes[] = { 1, 100, 4096, 1 << 20, 1 << 23 };
	static const uint32_t entries[] = { 2, 3, 4, 7, 64, 16384 };

	for (size_t c = 0; c < LENGTH(counts); c++)
		for (size_t s = 0; s < LENGTH(sizes); s++)
			for (size_t e = 0; e < LENGTH(entries); e++)
				for (int fabric = FABRIC_ROCE; fabric <= FABRIC_IWARP; fabric++) {
					struct bench *bench;

					if (counts[c] * sizes[s] > 1 << 24)
						continue;
					bench = bench_create(counts[c], sizes[s], (enum fabric)fabric, entries[e]);
					connect_ends(bench, true);
					carry_all(bench);
					/* With grants the receiver always has a receive posted. */
					assert_int_equal(bench->not_ready, 0);
					assert_all_goes(bench, counts[c]);
				}
}

/* As between this version and one with a window of 64 messages. */
TEST(each_end_has_a_window_of_its_own)
{
	static const uint32_t windows[] = { 1, 5, 64, 256 };

	for (size_t i = 0; i < LENGTH(windows) * LENGTH(windows); i++) {
		struct bench *bench = bench_create(1000, 100, FABRIC_ROCE, 16384);
		const uint32_t *window[ENDS] = { &windows[i % LENGTH(windows)], &windows[i / LENGTH(windows)] };

		for (int end = 0; end < ENDS; end++)
			bench->ends[end].domain.max_qp_wr = *window[end] + 2;
		connect_ends(bench, true);
		for (int end = 0; end < ENDS; end++)
			assert_int_equal(bench->ends[end].ucmatose.slots, *window[end]);
		carry_all(bench);
		assert_int_equal(bench->not_ready, 0);
		assert_all_goes(bench, 1000);
	}
}

/* The last send is posted long before it completes, which ends the direction. */
TEST(a_direction_ends_with_its_last_completion)
{
	struct bench *bench = bench_create(2, 100, FABRIC_ROCE, 16384);

	connect_ends(bench, true);
	for (int i = 0; i < ENDS; i++) {
		struct end *end = &bench->ends[i];

		assert_int_equal(end->connection.sent, 2);
		assert_true(carry(bench, end));
		assert_int_equal(end->connection.state, CONNECTION_SENDING);
		assert_true(carry(bench, end));
		assert_int_equal(end->connection.state, i == SERVER ? CONNECTION_RECEIVING : CONNECTION_TRANSFERRED);
	}
	assert_all_goes(bench, 2);
}

/* The second half of a window is granted before the grant of the first half is acknowledged. */
TEST(both_halves_of_a_window_are_granted_at_once)
{
	struct bench *bench = bench_create(1000, 100, FABRIC_ROCE, 16384);

	connect_ends(bench, true);
	for (int i = 0; i < 256; i++)
		assert_true(carry(bench, &bench->ends[SERVER]));
	assert_false(carry(bench, &bench->ends[SERVER]));
	assert_int_equal(bench->ends[CLIENT].sends.count, 2);
	assert_all_goes(bench, 1000);
}

TEST(memory_is_bounded)
{
	struct bench *bench = bench_create(UINT32_C(1) << 31, 1 << 20, FABRIC_ROCE, 16384);

	connect_ends(bench, true);
	for (int i = 0; i < 1000; i++)
		carry(bench, &bench->ends[SERVER]) ? (void)0 : (void)carry(bench, &bench->ends[CLIENT]);
	for (int i = 0; i < ENDS; i++) {
		assert_true(bench->ends[i].ucmatose.memory->region->length <= 8 << 20);
		/* A client posts its receives before it knows whether the peer waits for grants. */
		assert_true(bench->ends[i].receives_max <= (i == SERVER ? 64 : 16384));
	}
	bench_destroy(bench);
}

/* Slots that fit caches and queues: more for short messages, fewer with many connections. */
TEST(slots_depend_on_size_and_connections)
{
	static const struct {
		uint32_t connections, size, count, slots;
	} rows[] = {
		{ 1, 1, 5000, 256 },	{ 1, 64, 5000, 256 },	{ 1, 4096, 5000, 256 },	  { 1, 8192, 5000, 128 },
		{ 1, 16384, 5000, 64 }, { 1, 65536, 5000, 64 }, { 1, 1 << 20, 5000, 4 },  { 1, 1 << 23, 5000, 1 },
		{ 1, 64, 10, 10 },	{ 64, 1, 5000, 256 },	{ 100, 64, 5000, 163 },	  { 1000, 1, 5000, 64 },
		{ 10000, 1, 5000, 64 }, { 10000, 64, 5000, 6 }, { 10000, 1000, 5000, 1 },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct bench *bench = bench_create(rows[i].count, rows[i].size, FABRIC_ROCE, 16384);
		struct end *end = &bench->ends[CLIENT];

		end->ucmatose.wanted = rows[i].connections;
		assert_int_equal(ucmatose_messages_prepare(&end->connection), OUTCOME_OK);
		assert_int_equal(end->ucmatose.slots, rows[i].slots);
		bench_destroy(bench);
	}
}

/* Each of many connections has its own slots, and together they stay within the limit. */
TEST(connections_share_memory)
{
	static const uint32_t sizes[] = { 1, 100, 65536, 1 << 20 };
	enum {
		CONNECTIONS = 150
	};

	for (size_t row = 0; row < ENDS * LENGTH(sizes); row++) {
		const uint64_t size = sizes[row / ENDS];
		struct bench *bench = bench_create(5000, (uint32_t)size, FABRIC_ROCE, 16384);
		struct end *end = &bench->ends[row % ENDS];
		size_t free_from = 0;

		end->ucmatose.wanted = CONNECTIONS;
		for (uint32_t i = 0; i < CONNECTIONS; i++) {
			struct ucmatose_connection one = { .ucmatose = &end->ucmatose,
							   .endpoint = &end->endpoint,
							   .index = i };

			end->receives = (struct queue){ 0 };
			assert_int_equal(ucmatose_messages_prepare(&one), OUTCOME_OK);
			assert_ptr_equal(one.region, end->ucmatose.memory->region);
			/* Its last grants may be in flight when all slots are. */
			assert_int_equal(end->endpoint.options.send_depth, end->ucmatose.slots + 2);
			assert_int_equal(end->receives.count, MAX(end->ucmatose.slots, (1 << 17) / CONNECTIONS));
			for (uint32_t j = 0; j < end->ucmatose.slots; j++)
				assert_int_equal(pop(&end->receives).offset, free_from + j * size);
			free_from += end->ucmatose.slots * size;
		}
		assert_null(end->ucmatose.memory->next);
		assert_int_equal(end->ucmatose.pattern, free_from);
		assert_int_equal(end->ucmatose.memory->region->length, free_from + payload_pattern_size((size_t)size));
		/* 4 MiB, except one slot per connection. */
		assert_true(free_from <= 4 << 20 || free_from <= CONNECTIONS * size);
		bench_destroy(bench);
	}
}

/* A server with two devices has the memory twice. */
TEST(each_device_has_memory)
{
	struct bench *bench = bench_create(10, 100, FABRIC_ROCE, 16384);
	struct end *server = &bench->ends[SERVER], other = { .domain = server->domain };
	struct ucmatose_connection second = { .ucmatose = &server->ucmatose, .endpoint = &other.endpoint };

	other.endpoint.domain = &other.domain;
	assert_int_equal(ucmatose_messages_prepare(&server->connection), OUTCOME_OK);
	assert_int_equal(ucmatose_messages_prepare(&second), OUTCOME_OK);
	assert_ptr_equal(server->connection.region->domain, &server->domain);
	assert_ptr_equal(second.region->domain, &other.domain);
	bench_destroy(bench);
}

/* A stock end sends all its messages at once: those without a receive wait. */
TEST(stock_ends_find_receives_posted)
{
	static const struct {
		enum fabric fabric;
		uint32_t entries;
	} rows[] = { { FABRIC_ROCE, 16384 }, { FABRIC_ROCE, 100 }, { FABRIC_IWARP, 2000 } };

	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct bench *bench = bench_create(1000, 100, rows[row].fabric, rows[row].entries);

		connect_ends(bench, false);
		for (int i = 0; i < ENDS; i++)
			assert_int_equal(bench->ends[i].receives.count, MIN(1000, rows[row].entries));
		carry_all(bench);
		assert_int_equal(bench->grants, 0);
		assert_true(rows[row].entries < 1000 || !bench->not_ready);
		assert_all_goes(bench, 1000);
	}
}

/* A later connection of the same memory got fewer: each keeps as many posted as its own queue pair holds. */
TEST(each_queue_pair_has_a_depth_of_its_own)
{
	struct bench *bench = bench_create(5000, 100, FABRIC_IWARP, 16384);
	struct end *client = &bench->ends[CLIENT], later = { .depth_max = 100 };

	client->ucmatose.wanted = client->peer->ucmatose.wanted = 2;
	connect_ends(bench, true);
	later.endpoint.domain = &client->domain;
	later.connection = (struct ucmatose_connection){ .ucmatose = &client->ucmatose, .endpoint = &later.endpoint };
	assert_int_equal(ucmatose_messages_prepare(&later.connection), OUTCOME_OK);
	assert_int_equal(later.receives.count, 100);
	assert_all_goes(bench, 5000);
}

TEST(on_iwarp_the_client_sends_first)
{
	struct bench *bench = bench_create(10, 100, FABRIC_IWARP, 2000);

	connect_ends(bench, true);
	assert_int_equal(bench->ends[SERVER].sends.count, 0);
	assert_int_equal(bench->ends[CLIENT].sends.count, 1);
	assert_all_goes(bench, 10);
}

/* Corrupts the server's first message, and expects the client's error. */
static void spoiled(void (*spoil)(struct bench *bench, struct work *send), bool ours, const char *words)
{
	struct bench *bench = bench_create(10, 100, FABRIC_ROCE, 16384);

	connect_ends(bench, ours);
	spoil(bench, &bench->ends[SERVER].sends.work[bench->ends[SERVER].sends.first]);
	carry_all(bench);
	assert_int_equal(bench->ends[CLIENT].connection.state, CONNECTION_FAILED);
	assert_int_equal(bench->ends[CLIENT].ucmatose.run->outcome, OUTCOME_FAILED);
	assert_non_null(strstr(bench_destroy(bench), words));
}

static void one_byte(struct bench *bench, struct work *send)
{
	send->region->memory[send->offset + 42] ^= 1;
}

static void shorter(struct bench *bench, struct work *send)
{
	send->length = 99;
}

static void empty(struct bench *bench, struct work *send)
{
	send->length = 0;
}

static void another_message(struct bench *bench, struct work *send)
{
	send->offset += 100;
}

static void the_peers_own(struct bench *bench, struct work *send)
{
	const struct ucmatose_connection *client = &bench->ends[CLIENT].connection;

	pattern_write(send->region->memory + send->offset, 100, client->send_seed, 0);
}

TEST(a_bad_message_fails_the_connection)
{
	spoiled(one_byte, true, "message 1 differs at byte 42: ");
	spoiled(another_message, true, "message 1 differs at byte ");
	spoiled(the_peers_own, true, "message 1 differs at byte ");
	spoiled(shorter, true, "message 1 has 99 bytes instead of 100");
	spoiled(shorter, false, "message 1 has 99 bytes instead of 100");
	spoiled(empty, true, "message 1 has 0 bytes instead of 100");
	spoiled(empty, false, "message 1 has 0 bytes instead of 100");
}

/* A peer that sends more than granted, with receives posted for its grants. */
TEST(messages_beyond_the_count_fail_the_connection)
{
	struct bench *bench = bench_create(1000, 100, FABRIC_ROCE, 16384);
	struct end *client = &bench->ends[CLIENT];

	connect_ends(bench, true);
	while (client->connection.received < 1000 && carry_both(bench))
		;
	assert_true(client->receives.count > 0);
	complete(client, &(struct work){ .kind = WORK_RECEIVE }, 100);
	assert_int_equal(client->connection.state, CONNECTION_FAILED);
	assert_non_null(strstr(bench_destroy(bench), "message 1001 has 100 bytes instead of 0"));
}

TEST(too_many_grants_do_no_harm)
{
	struct bench *bench = bench_create(200, 100, FABRIC_ROCE, 16384);
	struct end *server = &bench->ends[SERVER];

	connect_ends(bench, true);
	for (int i = 0; i < 1000 && is_alive(server); i++) {
		struct work receive = pop(&server->receives);

		complete(server, &receive, 0);
		assert_true(server->connection.sent <= 200);
		assert_true(server->sends.count <= server->endpoint.options.send_depth);
	}
	assert_false(is_alive(server));
	assert_non_null(strstr(bench_destroy(bench), "has 0 bytes instead of 100"));
}

/* A failure that a stock peer's -S may explain; our peer's is known from its hello. */
TEST(failures_that_another_size_explains)
{
	static const struct {
		enum work_kind kind;
		enum completion_status status;
		bool explained;
	} rows[] = {
		{ WORK_RECEIVE, COMPLETION_LENGTH, true },	    { WORK_RECEIVE, COMPLETION_OTHER, true },
		{ WORK_RECEIVE, COMPLETION_RETRY_EXCEEDED, false }, { WORK_SEND, COMPLETION_REMOTE_REQUEST, true },
		{ WORK_SEND, COMPLETION_RETRY_EXCEEDED, false },    { WORK_SEND, COMPLETION_RNR_EXCEEDED, false },
	};

	for (size_t i = 0; i < 2 * LENGTH(rows); i++) {
		const struct completion completion = { .kind = rows[i / 2].kind, .status = rows[i / 2].status };
		struct bench *bench = bench_create(10, 100, FABRIC_ROCE, 16384);
		struct end *client = &bench->ends[CLIENT];
		bool ours = i % 2;

		connect_ends(bench, ours);
		error_set(&client->transport.error, NULL, "it failed");
		completed(&client->connection, &completion);
		assert_int_equal(client->connection.state, CONNECTION_FAILED);
		assert_int_equal(client->ucmatose.run->outcome, OUTCOME_FAILED);
		assert_int_equal(strstr(bench_destroy(bench), "the peer's -S may differ") != NULL,
				 rows[i / 2].explained && !ours);
	}
}

/* Without messages only the connections are compared. */
TEST(sizes_do_not_matter_without_messages)
{
	struct bench *bench = bench_create(0, 100, FABRIC_ROCE, 16384);
	const struct hello other = { .capacity = 0, .connections = 1, .count = 0 };

	assert_true(ucmatose_hello_agrees(&bench->ends[SERVER].ucmatose, "peer", &other));
	connect_ends(bench, true);
	assert_all_goes(bench, 0);
}
