/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client: looks the addresses up, connects to the first that answers, learns from the server's hello how long a
 * ping may be, and goes round the cycle of protocol.h until it has done enough or is told to end.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/hello.h"
#include "cmd/rping/figures.h"
#include "cmd/rping/mailbox.h"
#include "cmd/rping/phase.h"
#include "cmd/rping/protocol.h"
#include "cmd/rping/rping.h"
#include "core/payload.h"

enum client_state {
	CLIENT_LOOKING_UP,
	CLIENT_CONNECTING,
	CLIENT_OFFERING_SOURCE,
	CLIENT_OFFERING_SINK,
	CLIENT_SETTLING,
	CLIENT_LEAVING,
	CLIENT_DONE,
};

/* Look-up, connecting and leaving have their deadlines in the resolver and in the transport. */
static const struct phase_row client_states[] = {
	[CLIENT_LOOKING_UP] = { "looking up", PHASE_BIT(CLIENT_CONNECTING) | PHASE_BIT(CLIENT_DONE) },
	[CLIENT_CONNECTING] = { "connecting", PHASE_BIT(CLIENT_CONNECTING) | PHASE_BIT(CLIENT_OFFERING_SOURCE) |
						      PHASE_BIT(CLIENT_LEAVING) | PHASE_BIT(CLIENT_DONE) },
	[CLIENT_OFFERING_SOURCE] = { "waiting for the server to read it",
				     PHASE_BIT(CLIENT_OFFERING_SINK) | PHASE_BIT(CLIENT_LEAVING) |
					     PHASE_BIT(CLIENT_DONE),
				     true },
	[CLIENT_OFFERING_SINK] = { "waiting for the server to write it back",
				   PHASE_BIT(CLIENT_OFFERING_SOURCE) | PHASE_BIT(CLIENT_SETTLING) |
					   PHASE_BIT(CLIENT_LEAVING) | PHASE_BIT(CLIENT_DONE),
				   true },
	[CLIENT_SETTLING] = { "waiting for the news of what it sent",
			      PHASE_BIT(CLIENT_OFFERING_SOURCE) | PHASE_BIT(CLIENT_LEAVING) | PHASE_BIT(CLIENT_DONE),
			      true },
	[CLIENT_LEAVING] = { "disconnecting", PHASE_BIT(CLIENT_DONE) },
	[CLIENT_DONE] = { "done", 0 },
};

/* Indices of the mailbox. What is advertised stays the same from ping to ping, so that it is written only once. */
enum {
	SOURCE,
	SINK
};

/* What the sink holds before a ping, so that a server that writes nothing is not taken for one that did. */
enum {
	SINK_UNTOUCHED = 0xff
};

struct rping_client {
	struct environment *environment;
	const struct rping_options *options;
	const struct log *log;
	struct phase phase;

	struct resolver source_lookup;
	struct resolver address_lookup;
	struct address source; /* ADDRESS_NONE without -I */
	struct address addresses[ADDRESS_RESOLVE_MOST];
	size_t address_count;
	size_t address_next; /* to be tried */

	struct channel *channel;
	struct endpoint *endpoint;
	struct mailbox mailbox;
	struct region *source_region;
	struct region *sink_region;

	struct path path; /* of the last connection */
	bool stock;	  /* the server said no hello */
	uint32_t size;
	uint64_t answered;
	struct ping_figures figures;
	unsigned sending; /* pings whose advertisements have not completed: this one, and perhaps the one before */
	bool last;	  /* end after this ping */
	bool overdue;	  /* the deadline of the run has passed */
	enum outcome outcome;
};

static void enter(struct rping_client *client, enum client_state state)
{
	phase_enter(&client->phase, state, client->endpoint ? client->endpoint->name : client->options->address);
}

/* The one place that takes a connection down. */
static void drop_connection(struct rping_client *client)
{
	phase_stop(&client->phase);
	endpoint_destroy(client->endpoint);
	client->endpoint = NULL;
	mailbox_destroy(&client->mailbox);
	region_destroy(client->source_region);
	client->source_region = NULL;
	region_destroy(client->sink_region);
	client->sink_region = NULL;
}

static void finish(struct rping_client *client, enum outcome outcome)
{
	enter(client, CLIENT_DONE);
	resolver_stop(&client->source_lookup);
	resolver_stop(&client->address_lookup);
	drop_connection(client);
	if (client->answered)
		environment_summary(client->environment);
	environment_finish(client->environment, outcome);
}

static bool more_asked(const struct rping_client *client)
{
	return !client->options->count || client->answered < (uint64_t)client->options->count;
}

static const char *pings_text(const struct rping_client *client, char text[PINGS_TEXT_SIZE])
{
	return rping_pings_text(client->answered, (uint64_t)client->options->count, text);
}

/* What the whole run was worth, once it has ended in order. */
static enum outcome verdict(const struct rping_client *client)
{
	char pings[PINGS_TEXT_SIZE];
	char peer[ADDRESS_TEXT_SIZE];
	const struct endpoint *endpoint = client->endpoint;

	if (client->outcome)
		return client->outcome;
	if (client->overdue || !client->answered || (client->options->count && more_asked(client))) {
		log_error(client->log, endpoint->name, "ended early, after %s", pings_text(client, pings));
		return OUTCOME_FAILED;
	}
	environment_summary(client->environment);
	fprintf(environment_output(client->environment), "%s: %s of %" PRIu32 " byte%s to %s answered%s (%s, %s%s)\n",
		client->log->name, rping_pings_text(client->answered, 0, pings), client->size,
		client->size == 1 ? "" : "s", address_text(&endpoint->peer, peer),
		client->options->validate ? " and verified" : "", transport_name(endpoint->transport),
		endpoint->domain->device, client->options->validate ? "" : RPING_NOT_COMPARED);
	return OUTCOME_OK;
}

/* Begins the end of a connection whose work is all completed, or of no more interest. */
static void leave(struct rping_client *client, enum outcome outcome)
{
	client->outcome = outcome;
	enter(client, CLIENT_LEAVING);
	outcome = endpoint_disconnect(client->endpoint);
	if (outcome)
		finish(client, client->outcome ? client->outcome : outcome);
}

static void step_timed_out(void *owner)
{
	struct rping_client *client = owner;

	log_error(client->log, client->endpoint->name, "ping %" PRIu64 ": %s: timed out after %g s", client->answered,
		  phase_text(&client->phase), (double)client->options->common.timeout / (double)CLOCK_NS_PER_S);
	finish(client, OUTCOME_FAILED);
}

/* The cycle of a ping. */

static void advertise(struct rping_client *client, uint32_t index, enum client_state state)
{
	struct work send = mailbox_send(&client->mailbox, index);
	enum outcome outcome;

	/* The sink's advertisement comes later on the same queue, and its completion covers the source's. */
	send.silent = index == SOURCE;
	enter(client, state);
	outcome = endpoint_post(client->endpoint, &send, 1);
	if (outcome)
		finish(client, outcome);
}

static void start_ping(struct rping_client *client)
{
	client->sending++;
	payload_ping_fill(client->source_region->memory, client->size, ping_number(client->answered));
	if (client->options->validate || client->options->verbose)
		memset(client->sink_region->memory, SINK_UNTOUCHED, client->size);
	ping_figures_sent(&client->figures, clock_now());
	advertise(client, SOURCE, CLIENT_OFFERING_SOURCE);
}

static bool same_as_sent(const struct rping_client *client)
{
	struct payload_difference difference;

	if (payload_equal(client->source_region->memory, client->sink_region->memory, client->size, &difference))
		return true;
	log_error(client->log, client->endpoint->name,
		  "ping %" PRIu64 ": what came back differs at byte %zu of %" PRIu32 ": sent 0x%02x, found 0x%02x",
		  client->answered, difference.position, client->size, difference.expected, difference.found);
	return false;
}

/*
 * The server has written, so that the sink was offered, but the news of that may still be on its way. The next ping
 * need not wait for it; the one after that does, and so does the end.
 */
static void go_on(struct rping_client *client)
{
	bool last = client->last || !more_asked(client);

	if (client->sending > (last ? 0 : 1)) {
		if (client->phase.state != CLIENT_SETTLING)
			enter(client, CLIENT_SETTLING);
	} else if (last) {
		leave(client, OUTCOME_OK);
	} else {
		start_ping(client);
	}
}

static void ping_answered(struct rping_client *client)
{
	ping_figures_answered(&client->figures, clock_now());
	if (client->options->validate && !same_as_sent(client)) {
		leave(client, OUTCOME_FAILED);
		return;
	}
	if (client->options->validate)
		ping_figures_verified(&client->figures);
	if (client->options->verbose)
		ping_print(environment_output(client->environment), "ping data", client->sink_region->memory,
			   client->size);
	client->answered++;
	go_on(client);
}

static void go_ahead_came(struct rping_client *client, const struct completion *completion)
{
	struct advertisement meaningless;
	enum outcome outcome = mailbox_take(&client->mailbox, client->endpoint, completion, &meaningless);

	if (outcome) {
		finish(client, outcome);
		return;
	}
	if (client->phase.state == CLIENT_OFFERING_SOURCE) {
		advertise(client, SINK, CLIENT_OFFERING_SINK);
	} else if (client->phase.state == CLIENT_OFFERING_SINK) {
		ping_answered(client);
	} else {
		log_error(client->log, client->endpoint->name, "ping %" PRIu64 ": a message out of order, while %s",
			  client->answered, phase_text(&client->phase));
		finish(client, OUTCOME_FAILED);
	}
}

static void client_completed(void *owner, struct endpoint *endpoint, const struct completion *completion)
{
	struct rping_client *client = owner;

	(void)endpoint;
	if (completion->status != COMPLETION_OK) {
		finish(client, OUTCOME_FAILED);
	} else if (completion->kind == WORK_RECEIVE) {
		go_ahead_came(client, completion);
	} else {
		client->sending--;
		if (client->phase.state == CLIENT_SETTLING)
			go_on(client);
	}
}

/* The connection. */

static enum outcome offer_memory(struct rping_client *client, uint32_t index, unsigned access, struct region **region)
{
	enum outcome outcome = region_create(client->endpoint->domain, client->size, access, region);

	if (outcome)
		return outcome;
	mailbox_write(&client->mailbox, index,
		      &(struct advertisement){
			      .address = (uintptr_t)(*region)->memory,
			      .key = (*region)->remote_key,
			      .size = client->size,
		      });
	return OUTCOME_OK;
}

/* Only now is the size known: the server's hello came with its acceptance. */
static void established(struct rping_client *client, const struct endpoint_event *event)
{
	struct hello hello;
	enum outcome outcome;

	endpoint_path(client->endpoint, &client->path);
	client->stock = !hello_read(event->private_data, event->private_length, HELLO_RPING, &hello);
	client->size = ping_size((uint32_t)client->options->size, client->stock ? NULL : &hello);
	if (!client->size) {
		log_error(client->log, client->endpoint->name,
			  "the server takes pings of at most %" PRIu32 " bytes, and -S asks for %" PRId64,
			  hello.capacity, client->options->size ? client->options->size : PING_SIZE);
		leave(client, OUTCOME_FAILED);
		return;
	}
	log_debug(client->log, "%s: %s server, pings of %" PRIu32 " bytes", client->endpoint->name,
		  client->stock ? "stock" : "our", client->size);
	outcome = offer_memory(client, SOURCE, REGION_REMOTE_READ, &client->source_region);
	if (!outcome)
		outcome = offer_memory(client, SINK, REGION_REMOTE_WRITE, &client->sink_region);
	if (outcome)
		finish(client, outcome);
	else
		start_ping(client);
}

static void server_left(struct rping_client *client)
{
	char pings[PINGS_TEXT_SIZE];

	log_error(client->log, client->endpoint->name, "ping %" PRIu64 ": %s: the server went away after %s",
		  client->answered, phase_text(&client->phase), pings_text(client, pings));
	if (client->stock && !client->answered)
		log_hint(client->log, "a stock server ends when a ping is longer than its own -S (64 by default): "
				      "give both ends the same -S");
	finish(client, OUTCOME_FAILED);
}

/* The address is known: what does not depend on the server's answer is made while the route is looked for. */
static enum outcome prepare(struct rping_client *client)
{
	enum outcome outcome = mailbox_create(&client->mailbox, client->endpoint->domain);

	if (!outcome)
		outcome = endpoint_open_queue(client->endpoint);
	if (!outcome)
		outcome = mailbox_open(&client->mailbox, client->endpoint);
	return outcome;
}

static enum outcome ask_to_connect(struct rping_client *client)
{
	struct hello hello = {
		.tool = HELLO_RPING,
		.capacity = PING_SIZE_MOST,
		.count = (uint64_t)client->options->count,
	};
	uint8_t bytes[HELLO_SIZE];

	hello_write(&hello, bytes);
	return endpoint_connect(client->endpoint, bytes, sizeof(bytes));
}

static enum outcome connect_to_next(struct rping_client *client);

static void client_event(void *owner, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct rping_client *client = owner;
	enum outcome outcome = OUTCOME_OK;

	(void)endpoint;
	switch (event->kind) {
	case EVENT_ADDRESS_RESOLVED:
		outcome = prepare(client);
		break;
	case EVENT_ROUTE_RESOLVED:
		outcome = ask_to_connect(client);
		break;
	case EVENT_ESTABLISHED:
		established(client, event);
		break;
	case EVENT_DISCONNECTED:
		if (client->phase.state == CLIENT_LEAVING)
			finish(client, verdict(client));
		else
			server_left(client);
		break;
	case EVENT_FAILED:
		outcome = event->outcome;
		if (client->phase.state == CLIENT_CONNECTING && client->address_next < client->address_count)
			outcome = connect_to_next(client);
		else if (client->outcome)
			outcome = client->outcome;
		break;
	default:
		break;
	}
	if (outcome)
		finish(client, outcome);
}

static const struct endpoint_handlers client_handlers = {
	.event = client_event,
	.completion = client_completed,
};

static enum outcome connect_to(struct rping_client *client, const struct address *address)
{
	struct endpoint_options options = rping_endpoint_options(client->options);
	const struct address *source = client->source.family ? &client->source : NULL;
	enum outcome outcome;

	drop_connection(client);
	outcome = endpoint_create(ENDPOINT_CONNECTION, client->channel, &options, &client_handlers, client,
				  &client->endpoint);
	if (!outcome)
		outcome = endpoint_resolve(client->endpoint, source, address);
	if (!outcome)
		enter(client, CLIENT_CONNECTING);
	return outcome;
}

/* A name may lead to several addresses, and not all of them to an RDMA device or to the server. */
static enum outcome connect_to_next(struct rping_client *client)
{
	char text[ADDRESS_TEXT_SIZE];
	enum outcome outcome;

	do {
		const struct address *address = &client->addresses[client->address_next++];

		if (client->address_next > 1)
			log_hint(client->log, "trying the next address of %s: %s", client->options->address,
				 address_text(address, text));
		outcome = connect_to(client, address);
	} while (outcome && client->address_next < client->address_count);
	return outcome;
}

static void address_found(void *owner, enum outcome outcome, const struct address *addresses, size_t count)
{
	struct rping_client *client = owner;

	for (size_t i = 0; i < count; i++) {
		if (client->source.family && client->source.family != addresses[i].family)
			continue;
		if (!path_allows_family(&client->options->common.family, addresses[i].family))
			continue;
		client->addresses[client->address_count] = addresses[i];
		client->addresses[client->address_count++].port = (uint16_t)client->options->port;
	}
	if (!outcome && !client->address_count) {
		log_error(client->log, client->options->address, "no address of the family that %s asks for",
			  client->source.family		       ? "-I"
			  : client->options->common.family.ip4 ? "--ipv4"
							       : "--ipv6");
		outcome = OUTCOME_NO_CONNECTION;
	}
	if (!outcome)
		outcome = connect_to_next(client);
	if (outcome)
		finish(client, outcome);
}

static void look_address_up(struct rping_client *client)
{
	resolver_start(&client->address_lookup, client->environment->loop, client->log, client->options->address,
		       ADDRESS_FORMAT_ANY, client->options->common.timeout, address_found, client);
}

static void source_found(void *owner, enum outcome outcome, const struct address *addresses, size_t count)
{
	struct rping_client *client = owner;

	if (!count) {
		finish(client, outcome);
		return;
	}
	client->source = addresses[0];
	look_address_up(client);
}

/* The way in and out. */

enum outcome rping_client_start(struct environment *environment, const struct rping_options *options,
				struct rping_client **result)
{
	struct rping_client *client = calloc(1, sizeof(*client));
	enum outcome outcome;

	if (!client) {
		log_error(&environment->log, NULL, "out of memory");
		return OUTCOME_INTERNAL;
	}
	outcome = channel_create(environment->transport, &client->channel);
	if (outcome) {
		free(client);
		return outcome;
	}
	client->environment = environment;
	client->options = options;
	client->log = &environment->log;
	client->phase = (struct phase){
		.rows = client_states,
		.loop = environment->loop,
		.log = &environment->log,
		.timeout = options->common.timeout,
		.expired = step_timed_out,
		.owner = client,
	};
	if (options->source)
		resolver_start(&client->source_lookup, environment->loop, client->log, options->source,
			       ADDRESS_FORMAT_ANY, options->common.timeout, source_found, client);
	else
		look_address_up(client);
	*result = client;
	return OUTCOME_OK;
}

/* A ping under way is let come back, which takes microseconds, unless the run has been too long already. */
void rping_client_interrupt(struct rping_client *client, enum interruption reason)
{
	if (!client)
		return;
	client->overdue = reason == INTERRUPTION_DEADLINE;
	client->last = true;
	switch ((enum client_state)client->phase.state) {
	case CLIENT_LOOKING_UP:
	case CLIENT_CONNECTING:
		log_error(client->log, client->options->address, "%s: ended early, before the first ping",
			  phase_text(&client->phase));
		finish(client, OUTCOME_FAILED);
		break;
	case CLIENT_OFFERING_SOURCE:
	case CLIENT_OFFERING_SINK:
	case CLIENT_SETTLING:
		if (client->overdue)
			leave(client, OUTCOME_OK);
		break;
	case CLIENT_LEAVING:
	case CLIENT_DONE:
		break;
	}
}

void rping_client_report(struct rping_client *client, struct report *report, enum report_span span)
{
	report_text(report, "role", "client");
	report_text(report, "target", client->options->address);
	path_report(report, &client->path);
	ping_figures_report(&client->figures, client->size, report, span);
}

void rping_client_interval_over(struct rping_client *client)
{
	ping_figures_next_interval(&client->figures);
}

/* The channel is still in use by the endpoints on their way out; transport_close() frees it after them. */
void rping_client_stop(struct rping_client *client)
{
	if (!client)
		return;
	resolver_stop(&client->source_lookup);
	resolver_stop(&client->address_lookup);
	drop_connection(client);
	free(client);
}
