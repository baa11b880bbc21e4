/* SPDX-License-Identifier: BSD-2-Clause */
/* Pings, connections or transfers over the soft transport on the simulated network, for test/cost/run, which counts the
 * instructions of the program's own code. Every run of a count is the same.
 * usage: cost ping|connection|write|read COUNT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/network/network.h"
#include "transport/soft/wire/packet.h"
#include "transport/transport.h"

enum {
	PORT = 7174,
	PAYLOAD = 1024, /* bytes of a full packet */
	BUFFER = 212992,
	ADVERTISEMENT = 16,
	PING = 64,
	MEGABYTE = 1 << 20,
	INBOX = PING,
	RECEIVES = 2,
};

struct side {
	struct transport *transport;
	struct channel *channel;
	struct endpoint *endpoint;
	struct region *memory, *inbox;
	unsigned received;
	bool ended;
};

static struct side server, client;
static struct endpoint *listener;
static enum work_kind kind; /* of the transfers; 0: none */
static bool pings;
static unsigned long left; /* of the counted operations */
static struct log quiet;

static void post(struct side *side, enum work_kind what, uint32_t length)
{
	const struct region *remote = (side == &client ? &server : &client)->memory;
	struct work work = { .kind = what, .region = side->memory, .length = length };

	if (what == WORK_RECEIVE) {
		work.region = side->inbox;
	} else if (what != WORK_SEND) {
		work.remote_address = remote->remote_address;
		work.remote_key = remote->remote_key;
	}
	MUST(endpoint_post(side->endpoint, &work, 1));
}

static void prepare(struct side *side)
{
	MUST(endpoint_create_qp(side->endpoint));
	if (!side->memory) {
		MUST(region_create(side->endpoint->domain, MEGABYTE,
				   REGION_READ_SINK | REGION_REMOTE_READ | REGION_REMOTE_WRITE, &side->memory));
		MUST(region_create(side->endpoint->domain, INBOX, REGION_LOCAL, &side->inbox));
	}
	if (pings)
		for (unsigned receive = 0; receive < RECEIVES; receive++)
			post(side, WORK_RECEIVE, INBOX);
}

/* The client begins a ping or a transfer, or ends the connection. */
static void begin(void)
{
	if ((!pings && !kind) || !left)
		MUST(endpoint_disconnect(client.endpoint));
	else if (pings)
		post(&client, WORK_SEND, ADVERTISEMENT);
	else
		post(&client, kind, MEGABYTE);
}

/* A ping, as in cmd/rping/protocol.h: the first and second message that a side receives. */
static void ping_received(struct side *side)
{
	bool first = ++side->received % 2;

	post(side, WORK_RECEIVE, INBOX);
	if (side == &server) {
		post(side, first ? WORK_READ : WORK_WRITE, PING);
		if (!first)
			post(side, WORK_SEND, ADVERTISEMENT);
	} else if (first) {
		post(side, WORK_SEND, ADVERTISEMENT);
	} else {
		left--;
		begin();
	}
}

static void completed(void *context, struct endpoint *endpoint, const struct completion *completion)
{
	if (completion->status)
		violation("work fails: %d", (int)completion->status);
	if (completion->kind == WORK_RECEIVE)
		ping_received(context);
	else if (pings && completion->kind == WORK_READ)
		post(&server, WORK_SEND, ADVERTISEMENT);
	else if (!pings) {
		left--;
		begin();
	}
}

static void event(void *context, struct endpoint *endpoint, const struct endpoint_event *event);

static const struct endpoint_handlers handlers = { .event = event, .completion = completed };

static void event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct side *side = context;

	switch (event->kind) {
	case EVENT_REQUEST:
		server.endpoint = event->request;
		server.endpoint->handlers = &handlers;
		server.endpoint->context = &server;
		prepare(&server);
		MUST(endpoint_accept(server.endpoint, "yes", 3));
		break;
	case EVENT_ADDRESS_RESOLVED:
		prepare(&client);
		break;
	case EVENT_ROUTE_RESOLVED:
		MUST(endpoint_connect(endpoint, "cost", 4));
		break;
	case EVENT_ESTABLISHED:
		if (side == &client)
			begin();
		break;
	case EVENT_DISCONNECTED:
		side->ended = true;
		break;
	default:
		violation("an event of kind %d", (int)event->kind);
	}
}

static void connect_once(struct endpoint_options *options)
{
	struct address to = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 1 }, .port = PORT };
	struct address from = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 2 } };

	MUST(endpoint_create(ENDPOINT_CONNECTION, client.channel, options, &handlers, &client, &client.endpoint));
	MUST(endpoint_resolve(client.endpoint, &from, &to));
	while (!client.ended || !server.ended)
		if (!network_tick())
			violation("no event is left");
	endpoint_destroy(client.endpoint);
	endpoint_destroy(server.endpoint);
	client.ended = server.ended = false;
}

static void open_side(struct side *side)
{
	MUST(transport_open("soft", NULL, &quiet, &(struct error){ 0 }, &side->transport));
	MUST(channel_create(side->transport, &side->channel));
}

static void close_side(struct side *side)
{
	region_destroy(side->memory);
	region_destroy(side->inbox);
	network_drain();
	transport_close(side->transport);
}

int main(int argc, char **argv)
{
	static struct errors errors;
	struct endpoint_options options = { .send_depth = 4, .receive_depth = RECEIVES };
	struct address here = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 1 }, .port = PORT };

	if (argc != 3)
		return 2;
	options.port_space = PORT_SPACE_TCP;
	pings = !strcmp(argv[1], "ping");
	kind = !strcmp(argv[1], "write") ? WORK_WRITE : !strcmp(argv[1], "read") ? WORK_READ : 0;
	left = strtoul(argv[2], NULL, 10);
	quiet = network_log(&errors);
	network_open(1, PAYLOAD + PACKET_OVERHEAD_MAX, BUFFER);
	network->delay = 10 * CLOCK_NS_PER_US;
	network->byte_time = 800; /* 10 Gbit/s */
	network->read_delay = 5 * CLOCK_NS_PER_US;
	network->receive_buffer = BUFFER;
	open_side(&server);
	open_side(&client);
	MUST(endpoint_create(ENDPOINT_LISTENER, server.channel, &options, &handlers, &server, &listener));
	MUST(endpoint_listen(listener, &here));
	if (pings || kind)
		connect_once(&options);
	else
		for (; left; left--)
			connect_once(&options);
	endpoint_destroy(listener);
	close_side(&client);
	close_side(&server);
	network_close();
	return 0;
}
