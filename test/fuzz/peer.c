/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hostile peer of the real commands: the command runs on one soft transport of the simulated network, and on another
 * one an input decides what its peers send, valid or not, at any step. Whatever they do, the command must end, with an
 * error if and only if it failed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/hello.h"
#include "cmd/mckey/mckey.h"
#include "cmd/rping/protocol.h"
#include "test/fuzz/input.h"
#include "test/fuzz/target.h"
#include "test/network/network.h"
#include "test/unit/pattern.h"
#include "test/unit/stock_ping.h"
#include "transport/soft/qp/qp_internal.h"

enum {
	PEERS = 6,
	MEMORY_LENGTH = 4096,
	SLOTS = 8,
	SLOT_LENGTH = 1500,
	SENDS = 64,
	RECORDS_MAX = 80,
	WORDS_MAX = 24,
	MESSAGE_LENGTH = 100, /* for ucmatose and mckey, as in the command lines below */
	GROUP_LAST = 4,
};

struct peer {
	struct scene *scene;
	struct endpoint *endpoint; /* NULL: free */
	struct region *memory;	   /* accessible to the command */
	struct region *inbox;
	bool established;
	uint32_t number; /* the next message's, or ping's */
	uint32_t connection;
	struct advertisement heard; /* the last message of 16 bytes */
	uint8_t hello[PRIVATE_DATA_MAX];
	size_t hello_length;
};

struct scene {
	const struct command *command;
	struct run run;
	struct errors errors, peer_errors;
	unsigned strangers; /* errors about requests without a connection: not a persistent server's failure */
	struct log peer_log;
	char line[256]; /* the options point to its words */
	void *options, *state;
	bool interrupted;
	struct transport *transport; /* the peers' */
	struct channel *channel;
	struct endpoint *listener;
	struct peer peers[PEERS];
	struct input *input;
	enum hello_tool tool;
	uint16_t port;
};

static struct address address_of(uint8_t first, uint8_t last, uint16_t port)
{
	return (struct address){ .family = ADDRESS_IP4, .bytes = { first, 0, 0, last }, .port = port };
}

/* ---- the command ---- */

static void begin(struct scene *scene, const char *line)
{
	char *words[WORDS_MAX], *rest = scene->line;
	int count = 0;

	snprintf(scene->line, sizeof(scene->line), "%s", line);
	while (count < WORDS_MAX && (words[count] = strsep(&rest, " ")))
		count++;
	scene->run.command = scene->command;
	scene->options = common_options_create(scene->command->options_size);
	if (!scene->options ||
	    options_parse(scene->command->options, &scene->run.log, count, words, scene->options, &scene->run.given) ||
	    scene->command->check(&scene->run, scene->options) ||
	    transport_open("soft", NULL, &scene->run.log, &(struct error){ 0 }, &scene->run.transport))
		violation("the command line does not work: %s", line);
	run_record_outcome(&scene->run, scene->command->start(&scene->run, scene->options, &scene->state));
	if (!scene->state)
		violation("the command does not start: %s", line);
	network_run_due();
}

static void interrupt(struct scene *scene)
{
	if (scene->interrupted || scene->run.ended)
		return;
	scene->interrupted = true;
	scene->command->interrupt(scene->state, INTERRUPTION_SIGNAL);
}

/* ---- its peers ---- */

static void receive(struct peer *peer, uint32_t slot)
{
	endpoint_post(peer->endpoint,
		      &(struct work){ .kind = WORK_RECEIVE,
				      .tag = slot,
				      .region = peer->inbox,
				      .offset = slot * SLOT_LENGTH,
				      .length = SLOT_LENGTH },
		      1);
}

static void completed(void *context, struct endpoint *endpoint, const struct completion *completion)
{
	struct peer *peer = context;

	if (completion->kind != WORK_RECEIVE || completion->status)
		return;
	if (completion->length == ADVERTISEMENT_SIZE)
		advertisement_read(peer->inbox->memory + completion->tag * SLOT_LENGTH, &peer->heard);
	receive(peer, completion->tag);
}

static void prepare(struct peer *peer)
{
	MUST(endpoint_create_qp(peer->endpoint));
	MUST(region_create(peer->endpoint->domain, MEMORY_LENGTH,
			   REGION_REMOTE_READ | REGION_REMOTE_WRITE | REGION_READ_SINK, &peer->memory));
	MUST(region_create(peer->endpoint->domain, (size_t)SLOTS * SLOT_LENGTH, REGION_LOCAL, &peer->inbox));
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		receive(peer, slot);
}

static void answer_request(struct peer *peer, unsigned how)
{
	if (peer->endpoint->state != ENDPOINT_REQUESTED)
		return;
	if (how % 8 == 7) {
		endpoint_reject(peer->endpoint, peer->hello, peer->hello_length);
		peer->endpoint = NULL;
		return;
	}
	prepare(peer);
	endpoint_accept(peer->endpoint, peer->hello, peer->hello_length);
}

/* The hello of another of our tools, or as the input says. */
static void make_hello(struct peer *peer)
{
	struct input *input = peer->scene->input;
	unsigned how = take8(input);
	struct hello hello = {
		.tool = peer->scene->tool,
		.capacity = peer->scene->tool == HELLO_RPING ? PING_SIZE_MAX : MESSAGE_LENGTH,
		.connections = peer->scene->tool == HELLO_RPING ? 0 : 2,
		.count = 3,
		.connection = peer->connection,
		.window = peer->scene->tool == HELLO_RPING ? 0 : 3,
	};

	if (how & 1)
		hello.capacity = (uint32_t)take(input, 4);
	if (how & 2)
		hello.connections = (uint32_t)take(input, 4);
	if (how & 4)
		hello.count = take(input, 8);
	if (how & 8)
		hello.connection = (uint32_t)take(input, 4);
	if (how & 16)
		hello.window = (uint32_t)take(input, 4);
	hello_write(&hello, peer->hello);
	peer->hello_length = HELLO_SIZE;
	if (how & 32)
		peer->hello_length = take_bytes(input, peer->hello, take8(input) % sizeof(peer->hello));
	if (how & 64)
		peer->hello_length = 0;
}

static void event(void *context, struct endpoint *endpoint, const struct endpoint_event *event);

static const struct endpoint_handlers handlers = { .event = event, .completion = completed };

static struct peer *free_peer(struct scene *scene)
{
	for (unsigned index = 0; index < PEERS; index++)
		if (!scene->peers[index].endpoint) {
			struct peer *peer = &scene->peers[index];

			*peer = (struct peer){ .scene = scene, .connection = index };
			make_hello(peer);
			return peer;
		}
	return NULL;
}

static void requested(struct scene *scene, struct endpoint *request)
{
	struct peer *peer = free_peer(scene);
	unsigned how = take8(scene->input);

	request->handlers = &handlers;
	request->context = peer;
	if (!peer) {
		endpoint_reject(request, NULL, 0);
		return;
	}
	peer->endpoint = request;
	/* Else a record may do it. */
	if (how % 8 != 6)
		answer_request(peer, how);
}

static void event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct peer *peer = context;

	switch (event->kind) {
	case EVENT_REQUEST:
		requested(context, event->request);
		break;
	case EVENT_ADDRESS_RESOLVED:
		prepare(peer);
		if (endpoint->kind == ENDPOINT_GROUP)
			endpoint_join(endpoint);
		break;
	case EVENT_ROUTE_RESOLVED:
		endpoint_connect(endpoint, peer->hello, peer->hello_length);
		break;
	case EVENT_ESTABLISHED:
	case EVENT_JOINED:
		peer->established = true;
		break;
	default:
		break;
	}
}

static void connect_peer(struct scene *scene, enum endpoint_kind kind)
{
	struct endpoint_options options = {
		.port_space = kind == ENDPOINT_GROUP ? PORT_SPACE_UDP : PORT_SPACE_TCP,
		.send_depth = SENDS,
		.receive_depth = SLOTS,
	};
	struct address source = address_of(10, 2, 0), destination = address_of(10, 1, scene->port);
	struct peer *peer = free_peer(scene);

	if (!peer)
		return;
	if (kind == ENDPOINT_GROUP)
		destination = address_of(239, GROUP_LAST, 0);
	MUST(endpoint_create(kind, scene->channel, &options, &handlers, peer, &peer->endpoint));
	MUST(endpoint_resolve(peer->endpoint, &source, &destination));
}

static void destroy_peer(struct peer *peer)
{
	endpoint_destroy(peer->endpoint);
	region_destroy(peer->memory);
	region_destroy(peer->inbox);
	peer->endpoint = NULL;
	peer->memory = peer->inbox = NULL;
}

static void destroy_peers(struct scene *scene)
{
	for (unsigned index = 0; index < PEERS; index++)
		if (scene->peers[index].endpoint)
			destroy_peer(&scene->peers[index]);
}

/* ---- what they do ---- */

static bool may_send(const struct peer *peer)
{
	return peer->endpoint && peer->established && peer->memory;
}

static void send_bytes(struct peer *peer, size_t offset, size_t length, bool immediate)
{
	if (peer->endpoint->kind == ENDPOINT_GROUP && length > peer->endpoint->max_datagram)
		return;
	endpoint_post(peer->endpoint,
		      &(struct work){ .kind = WORK_SEND,
				      .tag = 1,
				      .region = peer->memory,
				      .offset = offset,
				      .length = (uint32_t)length,
				      .has_immediate = immediate,
				      .immediate = peer->number },
		      1);
}

/* The upper half of the memory is for messages, which must not change until they are sent; a ring of 16. */
static uint8_t *message_place(const struct peer *peer, size_t *offset)
{
	*offset = MEMORY_LENGTH / 2 + (size_t)(peer->number % 16) * 128;
	return peer->memory->memory + *offset;
}

static void advertise(struct peer *peer)
{
	static const uint32_t sizes[] = { 32, 64, 100, 1, 1000, 2000, 65536, (1 << 20) + 1 };
	struct input *input = peer->scene->input;
	unsigned how = take8(input);
	struct advertisement advertisement = {
		.address = peer->memory->remote_address,
		.key = peer->memory->remote_key,
		.size = sizes[how % 8],
	};
	size_t offset;
	uint8_t *bytes = message_place(peer, &offset);

	/* A source with the right text, so that the server continues with the sink. */
	if (!(how & 8) && advertisement.size <= MEMORY_LENGTH / 2)
		stock_ping(peer->memory->memory, advertisement.size, peer->number / 2);
	if (how & 16)
		advertisement.size = (uint32_t)take(input, 4);
	if (how & 32)
		advertisement.address += (uint64_t)(int64_t)(int8_t)take8(input) << (how & 8 ? 56 : 0);
	if (how & 64)
		advertisement.key ^= take8(input);
	advertisement_write(&advertisement, bytes);
	send_bytes(peer, offset, how & 128 ? take8(input) % 128 : ADVERTISEMENT_SIZE, false);
	peer->number++;
}

static void send_raw(struct peer *peer)
{
	struct input *input = peer->scene->input;
	unsigned length = take16(input) % SLOT_LENGTH;
	size_t offset;
	uint8_t *bytes = message_place(peer, &offset);

	take_bytes(input, bytes, length < 64 ? length : 64);
	send_bytes(peer, length > 128 ? 0 : offset, length, length & 1);
	peer->number++;
}

/* The next message of our ucmatose or mckey, perhaps with a changed byte. */
static void send_message(struct peer *peer)
{
	struct input *input = peer->scene->input;
	unsigned how = take8(input);
	size_t offset;
	uint8_t *bytes = message_place(peer, &offset);
	struct datagram_mark mark = { .sequence = peer->number, .total = how & 8 ? take8(input) : 3 };

	if (how & 1)
		mark.sequence = take8(input);
	if (peer->endpoint->kind == ENDPOINT_GROUP)
		datagram_write(bytes, MESSAGE_LENGTH, pattern(), peer->endpoint->qpn, &mark);
	else
		pattern_write(bytes, MESSAGE_LENGTH, 2 * peer->connection + !(how & 16), mark.sequence);
	if (how & 2)
		bytes[take8(input) % MESSAGE_LENGTH] ^= take8(input);
	send_bytes(peer, offset, how & 4 ? take8(input) % 128 : MESSAGE_LENGTH, how & 32);
	peer->number++;
}

static void reach(struct peer *peer, enum work_kind kind)
{
	struct input *input = peer->scene->input;
	unsigned how = take8(input);
	uint32_t length = peer->heard.size < MEMORY_LENGTH / 2 ? peer->heard.size : MEMORY_LENGTH / 2;
	struct work work = {
		.kind = kind,
		.tag = 2,
		.region = peer->memory,
		.length = how & 1 ? take16(input) % (MEMORY_LENGTH / 2) : length,
		.remote_address = peer->heard.address + (how & 2 ? (uint64_t)(int64_t)(int8_t)take8(input) : 0),
		.remote_key = peer->heard.key ^ (how & 4 ? take8(input) : 0),
	};

	if (peer->endpoint->kind == ENDPOINT_CONNECTION)
		endpoint_post(peer->endpoint, &work, 1);
}

/* Like rping's other end: reads or writes back the ping, and sends the go-ahead. */
static void serve(struct peer *peer)
{
	size_t offset;

	reach(peer, peer->number % 2 ? WORK_WRITE : WORK_READ);
	memset(message_place(peer, &offset), 0, ADVERTISEMENT_SIZE);
	network_run_due();
	send_bytes(peer, offset, ADVERTISEMENT_SIZE, false);
	peer->number++;
}

/* The chosen peer or the next one that can. */
static struct peer *choose(struct scene *scene, unsigned choice)
{
	for (unsigned index = 0; index < PEERS; index++) {
		struct peer *peer = &scene->peers[(choice + index) % PEERS];

		if (may_send(peer))
			return peer;
	}
	return &scene->peers[choice % PEERS];
}

static void speak(struct peer *peer, unsigned what)
{
	if (!may_send(peer))
		return;
	switch (what) {
	case 0:
	case 1:
		advertise(peer);
		break;
	case 2:
		send_raw(peer);
		break;
	case 3:
	case 4:
		send_message(peer);
		break;
	case 5:
		send_bytes(peer, 0, 0, false);
		break;
	case 6:
		reach(peer, WORK_READ);
		break;
	case 7:
		reach(peer, WORK_WRITE);
		break;
	default:
		serve(peer);
		break;
	}
}

static void act(struct scene *scene, unsigned record)
{
	struct peer *peer = choose(scene, record >> 4);
	unsigned how;

	switch (record & 15) {
	case 9:
		if (peer->established && peer->endpoint && peer->endpoint->state == ENDPOINT_ESTABLISHED)
			endpoint_disconnect(peer->endpoint);
		break;
	case 10:
		if (peer->endpoint)
			destroy_peer(peer);
		break;
	case 11:
	case 12:
		connect_peer(scene, scene->tool ? ENDPOINT_CONNECTION : ENDPOINT_GROUP);
		break;
	case 13:
		if (peer->endpoint && peer->endpoint->kind == ENDPOINT_CONNECTION)
			answer_request(peer, take8(scene->input));
		break;
	case 14:
		how = take8(scene->input);
		if (how >= 250)
			interrupt(scene);
		else
			network_advance((how & 1 ? CLOCK_NS_PER_S : CLOCK_NS_PER_MS) * (how >> 1), 1000);
		break;
	case 15:
		break;
	default:
		speak(peer, record & 15);
		break;
	}
	/* Else it continues in the same turn. */
	if (!(record & 128))
		network_run_due();
}

/* ---- a run ---- */

static void reported(void *context, const struct error *error)
{
	struct scene *scene = context;

	network_reported(NULL, error);
	scene->strangers += !strcmp(error->phase, "accepting");
}

static void open_scene(struct scene *scene, const char *line)
{
	static struct output nowhere;
	struct endpoint_options options = { .port_space = PORT_SPACE_TCP, .send_depth = SENDS, .receive_depth = SLOTS };
	struct address here = address_of(10, 2, scene->port);

	scene->peer_log = network_log(&scene->peer_errors);
	MUST(!nowhere.stream && !output_discard(&nowhere));
	MUST(transport_open("soft", NULL, &scene->peer_log, &(struct error){ 0 }, &scene->transport));
	MUST(channel_create(scene->transport, &scene->channel));
	MUST(endpoint_create(ENDPOINT_LISTENER, scene->channel, &options, &handlers, scene, &scene->listener));
	MUST(endpoint_listen(scene->listener, &here));
	scene->run = (struct run){
		.log = network_log(&scene->errors),
		.output = &nowhere,
	};
	scene->run.log.reported = reported;
	scene->run.log.context = scene;
	begin(scene, line);
}

/* All peers vanish. Then the command's time limits apply, and an open-ended one gets a signal. */
static void await_end(struct scene *scene, bool vanish)
{
	struct address nobody = { .family = ADDRESS_NONE };

	if (vanish)
		network_drop_next(UINT32_MAX, &nobody);
	destroy_peers(scene);
	network_run_due();
	if (!scene->run.ended)
		network_advance(120 * CLOCK_NS_PER_S, 20000);
	interrupt(scene);
	network_run_due();
	if (!scene->run.ended)
		network_advance(30 * CLOCK_NS_PER_S, 20000);
	if (!scene->run.ended)
		violation("the command does not end");
	/* It may have reconnected. */
	destroy_peers(scene);
}

static void run(const uint8_t *bytes, size_t length, const struct command *command, enum hello_tool tool, uint16_t port,
		const char *const *lines, unsigned count)
{
	struct input input = { .bytes = bytes, .length = length };
	struct scene scene = { .command = command, .tool = tool, .port = port, .input = &input };
	unsigned choice = take8(&input), seed = take8(&input);

	network_open(seed, choice & 128 ? 1500 : 356, 212992);
	unsetenv("RDMATEST_SCRAMBLE");
	if (choice & 64)
		setenv("RDMATEST_SCRAMBLE", "5", 1);
	open_scene(&scene, lines[(choice & 31) % count]);
	for (unsigned record = 0; input.length && record < RECORDS_MAX && !scene.run.ended; record++)
		act(&scene, take8(&input));
	await_end(&scene, choice & 32);
	if (scene.run.outcome ? !scene.errors.count : scene.errors.count != scene.strangers)
		violation("the command ends with %d after %u messages", (int)scene.run.outcome,
			  (unsigned)scene.errors.count);
	command->stop(scene.state);
	free(scene.options);
	network_run_due();
	transport_close(scene.run.transport);
	transport_close(scene.transport);
	network_close();
}

#define RUN(command, tool, port, lines)                                                                                \
	run(bytes, length, command, tool, port, lines, sizeof(lines) / sizeof((lines)[0]))

void peer_of_rping(const uint8_t *bytes, size_t length)
{
	static const char *const lines[] = {
		"rping -s -V -a 10.0.0.1",
		"rping -s -P -v -V -a 10.0.0.1 --max-clients 3",
		"rping -s -P -a 10.0.0.1 --idle-timeout 3s",
		"rping -I 10.0.0.1 10.0.0.2 -C 3 -V -v",
		"rping -I 10.0.0.1 10.0.0.2 -C 2 -S 1000 -V --interval 1s",
		"rping -I 10.0.0.1 -a 10.0.0.2 -a 10.0.0.9 -C 2 --wait-server 5s",
		"rping -I 10.0.0.1 10.0.0.2 --duration 1s -V -q",
	};

	RUN(&rping_command, HELLO_RPING, 7174, lines);
}

void peer_of_ucmatose(const uint8_t *bytes, size_t length)
{
	static const char *const lines[] = {
		"ucmatose -b 10.0.0.1 -c 2 -C 3",
		"ucmatose -b 10.0.0.1 -c 1 -C 40 -m --idle-timeout 5s",
		"ucmatose -s 10.0.0.2 -b 10.0.0.1 -c 2 -C 3",
		"ucmatose -s 10.0.0.2 -b 10.0.0.1 -c 1 -C 200 -m",
		"ucmatose -s 10.0.0.2 -b 10.0.0.1 -c 3 -C 0",
		"ucmatose 10.0.0.2 -b 10.0.0.1 -c 2 -C 3 -a 14 --wait-server 3s",
	};

	RUN(&ucmatose_command, HELLO_UCMATOSE, 7471, lines);
}

void peer_of_mckey(const uint8_t *bytes, size_t length)
{
	static const char *const lines[] = {
		"mckey -m 239.0.0.4 -b 10.0.0.1 -C 3",
		"mckey -m 239.0.0.4 -b 10.0.0.1 -c 2 -C 3 --idle-timeout 2s",
		"mckey -m 239.0.0.4 -b 10.0.0.1 -C 1000 --idle-timeout 2s",
		"mckey -m 239.0.0.4 -b 10.0.0.1 -s -C 5",
		"mckey -m 239.0.0.4 -b 10.0.0.1 -s -c 2 -C 20 --rate 10",
	};

	RUN(&mckey_command, 0, 7174, lines);
}
