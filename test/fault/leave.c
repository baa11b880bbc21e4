/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * leave TRANSPORT ADDRESS PORT TIMES SOURCE: clients that connect and leave, TIMES of them, sixteen at once. By turns
 * they ask and do not wait for the answer, are gone the moment they are connected, and disconnect. Prints how
 * many were connected and how many were not; ends with 0 if every third at most is not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "transport/transport.h"

enum {
	AT_ONCE = 16,
};

enum manner {
	UNANSWERED,
	GONE,
	ORDERLY,
	MANNERS
};

struct crowd {
	struct loop *loop;
	struct channel *channel;
	struct address target, source;
	unsigned long wanted, begun, ended, connected, failed;
};

struct client {
	struct crowd *crowd;
	struct endpoint *endpoint;
	enum manner manner;
	struct loop_timer next;
};

static void begin(void *context);

/* Destroys the endpoint; the next one begins in a turn of its own. */
static void end(struct client *client)
{
	struct crowd *crowd = client->crowd;

	endpoint_destroy(client->endpoint);
	client->endpoint = NULL;
	if (++crowd->ended == crowd->wanted)
		loop_stop(crowd->loop);
	else if (crowd->begun < crowd->wanted)
		loop_timer_start(crowd->loop, &client->next, 0, begin, client);
}

static void fail(struct client *client)
{
	client->crowd->failed++;
	end(client);
}

static void event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct client *client = context;

	switch (event->kind) {
	case EVENT_ADDRESS_RESOLVED:
		if (endpoint_create_qp(endpoint))
			fail(client);
		break;
	case EVENT_ROUTE_RESOLVED:
		if (endpoint_connect(endpoint, NULL, 0))
			fail(client);
		else if (client->manner == UNANSWERED)
			end(client);
		break;
	case EVENT_ESTABLISHED:
		client->crowd->connected++;
		if (client->manner == GONE || endpoint_disconnect(endpoint))
			end(client);
		break;
	case EVENT_DISCONNECTED:
		end(client);
		break;
	default:
		fail(client);
		break;
	}
}

static void completion(void *context, struct endpoint *endpoint, const struct completion *completion)
{
}

static const struct endpoint_handlers handlers = { .event = event, .completion = completion };

static void begin(void *context)
{
	struct client *client = context;
	struct crowd *crowd = client->crowd;
	struct endpoint_options options = {
		.port_space = PORT_SPACE_TCP, .timeout = 20 * CLOCK_NS_PER_S, .send_depth = 4, .receive_depth = 4
	};

	client->manner = (enum manner)(crowd->begun++ % MANNERS);
	if (endpoint_create(ENDPOINT_CONNECTION, crowd->channel, &options, &handlers, client, &client->endpoint) ||
	    endpoint_resolve(client->endpoint, &crowd->source, &crowd->target))
		fail(client);
}

int main(int argc, char **argv)
{
	static struct client clients[AT_ONCE];
	struct log log = { .name = "leave" };
	struct crowd crowd = { .loop = loop_create() };
	struct transport *transport;

	if (argc != 6 || !address_parse(argv[2], ADDRESS_FORMAT_IP, &crowd.target) ||
	    !address_parse(argv[5], ADDRESS_FORMAT_IP, &crowd.source)) {
		fprintf(stderr, "usage: leave TRANSPORT ADDRESS PORT TIMES SOURCE\n");
		return 2;
	}
	crowd.target.port = (uint16_t)strtoul(argv[3], NULL, 10);
	crowd.wanted = strtoul(argv[4], NULL, 10);
	if (!crowd.loop || transport_open(argv[1], crowd.loop, &log, &(struct error){ 0 }, &transport) ||
	    channel_create(transport, &crowd.channel))
		return 1;
	for (size_t place = 0; place < AT_ONCE; place++) {
		clients[place].crowd = &crowd;
		loop_timer_start(crowd.loop, &clients[place].next, 0, begin, &clients[place]);
	}
	loop_run(crowd.loop);
	transport_close(transport);
	loop_destroy(crowd.loop);
	printf("%lu connected, %lu failed of %lu\n", crowd.connected, crowd.failed, crowd.wanted);
	return crowd.failed > crowd.wanted / MANNERS;
}
