/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server: one listener, and a guest for every client that asks to connect. Each guest goes round the cycle of
 * protocol.h by itself; what one of them does wrong ends that guest and no other.
 *
 * Without -P there is one guest at a time, and the first that gets connected decides the run.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/hello.h"
#include "cmd/rping/mailbox.h"
#include "cmd/rping/phase.h"
#include "cmd/rping/protocol.h"
#include "cmd/rping/rping.h"
#include "core/payload.h"

enum guest_state {
	GUEST_ASKING,
	GUEST_ACCEPTING,
	GUEST_GREETED,
	GUEST_IDLE,
	GUEST_READING,
	GUEST_AWAITING_SINK,
	GUEST_WRITING,
	GUEST_LEAVING,
};

/*
 * A client may take its time between two pings, but not in the middle of one, nor before the first: who connects and
 * says nothing would hold a server without -P for ever. Accepting and leaving have the transport's deadlines.
 */
static const struct phase_row guest_states[] = {
	[GUEST_ASKING] = { "asking to connect", PHASE_BIT(GUEST_ACCEPTING) },
	[GUEST_ACCEPTING] = { "accepting", PHASE_BIT(GUEST_GREETED) },
	[GUEST_GREETED] = { "waiting for it to begin", PHASE_BIT(GUEST_READING) | PHASE_BIT(GUEST_LEAVING), true },
	[GUEST_IDLE] = { "waiting for the next ping", PHASE_BIT(GUEST_READING) | PHASE_BIT(GUEST_LEAVING) },
	[GUEST_READING] = { "reading it", PHASE_BIT(GUEST_AWAITING_SINK) | PHASE_BIT(GUEST_LEAVING), true },
	[GUEST_AWAITING_SINK] = { "waiting for the client's sink", PHASE_BIT(GUEST_WRITING) | PHASE_BIT(GUEST_LEAVING),
				  true },
	[GUEST_WRITING] = { "writing it back", PHASE_BIT(GUEST_IDLE) | PHASE_BIT(GUEST_LEAVING), true },
	[GUEST_LEAVING] = { "disconnecting", 0 },
};

/* The one message of a server, in its mailbox: a go-ahead is all zeros. */
enum {
	GO_AHEAD
};

static const char reason_busy[] = "busy with another client";
static const char reason_resources[] = "out of resources";

struct guest {
	struct rping_server *server;
	struct guest *next;
	struct guest **link; /* what points here: the list's head or another guest's next */
	struct endpoint *endpoint;
	struct phase phase;
	struct mailbox mailbox;

	struct region *buffer; /* as long as the longest ping so far, or longer */
	uint8_t *expected;     /* with -V, as long as the buffer */
	uint32_t length;       /* of the ping under way */
	uint32_t shortest;
	uint32_t longest;
	uint64_t answered;
	uint64_t promised; /* by the client's hello, 0 for no end */

	bool has_early; /* the next ping was advertised before the news that our answer has arrived */
	struct advertisement early;
};

struct rping_server {
	struct environment *environment;
	const struct rping_options *options;
	const struct log *log;
	struct resolver lookup;
	struct channel *channel;
	struct endpoint *listener; /* NULL before the look-up, and again once no more clients are wanted */
	struct guest *guests;
	bool ending;
	bool overdue; /* the deadline of the run has passed */
	bool finished;

	/* Of guests that have ended, or that have not got so far as to be one. */
	uint64_t served;
	uint64_t failed;
	uint64_t pings;
};

static void enter(struct guest *guest, enum guest_state state)
{
	phase_enter(&guest->phase, state, guest->endpoint->name);
}

/* The one place that takes a guest down. endpoint_reject() has taken the endpoint down already. */
static void guest_destroy(struct guest *guest)
{
	phase_stop(&guest->phase);
	endpoint_destroy(guest->endpoint);
	mailbox_destroy(&guest->mailbox);
	region_destroy(guest->buffer);
	free(guest->expected);
	*guest->link = guest->next;
	if (guest->next)
		guest->next->link = guest->link;
	free(guest);
}

static void server_finish(struct rping_server *server, enum outcome outcome)
{
	endpoint_destroy(server->listener);
	server->listener = NULL;
	server->finished = true;
	environment_finish(server->environment, outcome);
}

/* The end of a server that was told to end and has no guests left. Without -P it has spoken of its one guest already.
 */
static void server_ended(struct rping_server *server)
{
	char pings[PINGS_TEXT_SIZE];

	if (server->finished)
		return;
	if (!server->options->persistent) {
		log_error(server->log, NULL, "ended early, before a client was served");
		server_finish(server, OUTCOME_FAILED);
		return;
	}
	printf("%s: served %" PRIu64 " client%s, %s", server->log->name, server->served, server->served == 1 ? "" : "s",
	       rping_pings_text(server->pings, 0, pings));
	if (server->failed)
		printf(", %" PRIu64 " client%s failed", server->failed, server->failed == 1 ? "" : "s");
	putchar('\n');
	server_finish(server, server->failed ? OUTCOME_FAILED : OUTCOME_OK);
}

/* Takes a connected guest down and draws the conclusions for the run. */
static void guest_end(struct guest *guest, enum outcome outcome)
{
	struct rping_server *server = guest->server;

	server->pings += guest->answered;
	if (outcome)
		server->failed++;
	else
		server->served++;
	guest_destroy(guest);
	if (!server->options->persistent) {
		server_finish(server, outcome);
		return;
	}
	environment_note(server->environment, outcome);
	if (server->ending && !server->guests)
		server_ended(server);
}

/* What a guest was worth that has gone in order. */
static enum outcome guest_verdict(const struct guest *guest)
{
	const struct rping_server *server = guest->server;
	const struct rping_options *options = server->options;
	const struct endpoint *endpoint = guest->endpoint;
	/* A server with -P is ended from outside by its nature, and its clients with it. */
	bool cut_off = server->overdue || (server->ending && !options->persistent && !guest->answered);
	bool promised_more = guest->answered < guest->promised && !(server->ending && options->persistent);
	char pings[PINGS_TEXT_SIZE];
	char sizes[48];

	if (cut_off || promised_more) {
		log_error(server->log, endpoint->name, "%s ended early, after %s", server->ending ? "we" : "the client",
			  rping_pings_text(guest->answered, guest->promised, pings));
		return OUTCOME_FAILED;
	}
	if (!guest->answered) {
		printf("%s: %s came and went without a ping (%s, %s)\n", server->log->name, endpoint->name,
		       transport_name(endpoint->transport), endpoint->domain->device);
		return OUTCOME_OK;
	}
	if (guest->shortest == guest->longest)
		snprintf(sizes, sizeof(sizes), "%" PRIu32, guest->longest);
	else
		snprintf(sizes, sizeof(sizes), "%" PRIu32 " to %" PRIu32, guest->shortest, guest->longest);
	printf("%s: %s of %s bytes from %s %s (%s, %s)\n", server->log->name,
	       rping_pings_text(guest->answered, 0, pings), sizes, endpoint->name,
	       options->validate ? "verified and answered" : "answered (not compared; -V compares)",
	       transport_name(endpoint->transport), endpoint->domain->device);
	return OUTCOME_OK;
}

static void guest_timed_out(void *owner)
{
	struct guest *guest = owner;

	log_error(guest->server->log, guest->endpoint->name, "ping %" PRIu64 ": %s: timed out after %g s",
		  guest->answered, phase_text(&guest->phase), (double)guest->phase.timeout / (double)CLOCK_NS_PER_S);
	guest_end(guest, OUTCOME_FAILED);
}

/* The cycle of a ping. Every step returns how it went; guest_completed() ends the guest if it went wrong. */

static enum outcome out_of_order(struct guest *guest)
{
	log_error(guest->server->log, guest->endpoint->name, "ping %" PRIu64 ": a message out of order, while %s",
		  guest->answered, phase_text(&guest->phase));
	return OUTCOME_FAILED;
}

static enum outcome check_advertisement(struct guest *guest, const char *what, const struct advertisement *memory,
					uint32_t least)
{
	const char *fault = advertisement_fault(memory, least, PING_SIZE_MOST);

	if (!fault)
		return OUTCOME_OK;
	log_error(guest->server->log, guest->endpoint->name,
		  "ping %" PRIu64 ": the client's %s of %" PRIu32 " bytes cannot be used: %s", guest->answered, what,
		  memory->size, fault);
	return OUTCOME_FAILED;
}

/*
 * Makes the buffer long enough. It grows by doubling, so that a client whose pings get longer and longer does not make
 * us register memory for each.
 */
static enum outcome reserve(struct guest *guest, uint32_t length)
{
	size_t room = guest->buffer ? guest->buffer->length : 0;

	if (room >= length)
		return OUTCOME_OK;
	room *= 2;
	if (room < length)
		room = length;
	if (room > PING_SIZE_MOST)
		room = PING_SIZE_MOST;
	/* Nothing is under way in the old one: its last WRITE has completed. */
	region_destroy(guest->buffer);
	guest->buffer = NULL;
	free(guest->expected);
	guest->expected = NULL;
	if (guest->server->options->validate) {
		guest->expected = malloc(room);
		if (!guest->expected) {
			log_error(guest->server->log, guest->endpoint->name, "out of memory");
			return OUTCOME_INTERNAL;
		}
	}
	return region_create(guest->endpoint->domain, room, REGION_READ_SINK, &guest->buffer);
}

static enum outcome read_source(struct guest *guest, const struct advertisement *source)
{
	enum outcome outcome = check_advertisement(guest, "source", source, 1);

	if (!outcome)
		outcome = reserve(guest, source->size);
	if (outcome)
		return outcome;
	guest->length = source->size;
	enter(guest, GUEST_READING);
	return endpoint_post(guest->endpoint,
			     &(struct work){
				     .kind = WORK_READ,
				     .region = guest->buffer,
				     .length = guest->length,
				     .remote_address = source->address,
				     .remote_key = source->key,
			     },
			     1);
}

/* A ping's text follows from its number alone, whoever sends it. */
static enum outcome compare(struct guest *guest)
{
	struct payload_difference difference;

	payload_ping_fill(guest->expected, guest->length, ping_number(guest->answered));
	if (payload_equal(guest->expected, guest->buffer->memory, guest->length, &difference))
		return OUTCOME_OK;
	log_error(guest->server->log, guest->endpoint->name,
		  "ping %" PRIu64 ": what was read differs at byte %zu of %" PRIu32 ": expected 0x%02x, found 0x%02x",
		  guest->answered, difference.position, guest->length, difference.expected, difference.found);
	return OUTCOME_FAILED;
}

static enum outcome source_read(struct guest *guest)
{
	const struct rping_options *options = guest->server->options;
	struct work go_ahead = mailbox_send(&guest->mailbox, GO_AHEAD);

	if (options->validate && compare(guest))
		return OUTCOME_FAILED;
	if (options->verbose)
		ping_print(stdout, "server ping data", guest->buffer->memory, guest->length);
	/* The second go-ahead is later on the same queue, and its completion covers this one. */
	go_ahead.silent = true;
	enter(guest, GUEST_AWAITING_SINK);
	return endpoint_post(guest->endpoint, &go_ahead, 1);
}

/* The queue keeps its order, so that the go-ahead may follow the WRITE at once: a round trip less. */
static enum outcome write_sink(struct guest *guest, const struct advertisement *sink)
{
	enum outcome outcome = check_advertisement(guest, "sink", sink, guest->length);
	struct work works[] = {
		{
			.kind = WORK_WRITE,
			.region = guest->buffer,
			.length = guest->length,
			.remote_address = sink->address,
			.remote_key = sink->key,
			.silent = true,
		},
		mailbox_send(&guest->mailbox, GO_AHEAD),
	};

	if (outcome)
		return outcome;
	enter(guest, GUEST_WRITING);
	return endpoint_post(guest->endpoint, works, sizeof(works) / sizeof(works[0]));
}

static void count_answer(struct guest *guest)
{
	if (!guest->answered || guest->length < guest->shortest)
		guest->shortest = guest->length;
	if (guest->length > guest->longest)
		guest->longest = guest->length;
	guest->answered++;
}

static enum outcome answer_arrived(struct guest *guest)
{
	if (guest->phase.state != GUEST_WRITING)
		return OUTCOME_OK;
	count_answer(guest);
	enter(guest, GUEST_IDLE);
	if (!guest->has_early)
		return OUTCOME_OK;
	guest->has_early = false;
	return read_source(guest, &guest->early);
}

static enum outcome message_came(struct guest *guest, const struct completion *completion)
{
	struct advertisement memory;
	enum outcome outcome = mailbox_take(&guest->mailbox, guest->endpoint, completion, &memory);

	if (outcome)
		return outcome;
	switch ((enum guest_state)guest->phase.state) {
	case GUEST_GREETED:
	case GUEST_IDLE:
		return read_source(guest, &memory);
	case GUEST_AWAITING_SINK:
		return write_sink(guest, &memory);
	case GUEST_WRITING:
		/* Our go-ahead was there before the news of it was here. */
		if (guest->has_early)
			return out_of_order(guest);
		guest->has_early = true;
		guest->early = memory;
		return OUTCOME_OK;
	default:
		return out_of_order(guest);
	}
}

static void guest_completed(void *owner, struct endpoint *endpoint, const struct completion *completion)
{
	struct guest *guest = owner;
	enum outcome outcome = OUTCOME_FAILED;

	(void)endpoint;
	if (completion->status == COMPLETION_OK) {
		if (completion->kind == WORK_RECEIVE)
			outcome = message_came(guest, completion);
		else if (completion->kind == WORK_READ)
			outcome = source_read(guest);
		else
			outcome = answer_arrived(guest);
	}
	if (outcome)
		guest_end(guest, outcome);
}

/* The connection. */

static void client_left(struct guest *guest)
{
	enum outcome outcome;

	/*
	 * A client that has its last answer disconnects at once, and the news of its arrival can be lost with the
	 * connection. Nobody leaves in order a moment too soon, so that this is taken for the news.
	 */
	if (guest->phase.state == GUEST_WRITING && !guest->has_early) {
		count_answer(guest);
		enter(guest, GUEST_IDLE);
	}
	switch ((enum guest_state)guest->phase.state) {
	case GUEST_GREETED:
	case GUEST_IDLE:
	case GUEST_LEAVING:
		outcome = guest_verdict(guest);
		break;
	default:
		log_error(guest->server->log, guest->endpoint->name,
			  "ping %" PRIu64 ": %s: the client went away in the middle", guest->answered,
			  phase_text(&guest->phase));
		outcome = OUTCOME_FAILED;
		break;
	}
	guest_end(guest, outcome);
}

static void guest_failed(struct guest *guest, enum outcome outcome)
{
	struct rping_server *server = guest->server;
	bool was_connected = guest->phase.state >= GUEST_GREETED;

	if (was_connected) {
		guest_end(guest, outcome);
		return;
	}
	/* The transport has said why. It is the client's affair; we go on waiting for the next. */
	guest_destroy(guest);
	if (server->ending && !server->guests)
		server_ended(server);
}

static void guest_event(void *owner, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct guest *guest = owner;

	(void)endpoint;
	switch (event->kind) {
	case EVENT_ESTABLISHED:
		enter(guest, GUEST_GREETED);
		break;
	case EVENT_DISCONNECTED:
		client_left(guest);
		break;
	case EVENT_FAILED:
		guest_failed(guest, event->outcome);
		break;
	default:
		break;
	}
}

static const struct endpoint_handlers guest_handlers = {
	.event = guest_event,
	.completion = guest_completed,
};

/* Makes what a connection needs before it is accepted: the client's first message may come with its confirmation. */
static enum outcome prepare(struct guest *guest)
{
	enum outcome outcome = mailbox_create(&guest->mailbox, guest->endpoint->domain);

	if (!outcome)
		outcome = endpoint_open_queue(guest->endpoint);
	if (!outcome)
		outcome = mailbox_open(&guest->mailbox, guest->endpoint);
	return outcome;
}

static enum outcome accept_guest(struct guest *guest)
{
	struct hello hello = { .tool = HELLO_RPING, .capacity = PING_SIZE_MOST };
	uint8_t bytes[HELLO_SIZE];

	hello_write(&hello, bytes);
	enter(guest, GUEST_ACCEPTING);
	return endpoint_accept(guest->endpoint, bytes, sizeof(bytes));
}

static struct guest *guest_create(struct rping_server *server, struct endpoint *request)
{
	struct guest *guest = calloc(1, sizeof(*guest));

	if (!guest)
		return NULL;
	guest->server = server;
	guest->endpoint = request;
	guest->phase = (struct phase){
		.rows = guest_states,
		.loop = server->environment->loop,
		.log = server->log,
		.timeout = server->options->common.timeout,
		.expired = guest_timed_out,
		.owner = guest,
	};
	guest->next = server->guests;
	guest->link = &server->guests;
	if (guest->next)
		guest->next->link = &guest->next;
	server->guests = guest;
	request->handlers = &guest_handlers;
	request->owner = guest;
	return guest;
}

/* We cannot serve a client, for want of memory or the like: without -P that is the end, as nobody else would end it. */
static void out_of_resources(struct rping_server *server, enum outcome outcome)
{
	if (server->options->persistent)
		environment_note(server->environment, outcome);
	else
		server_finish(server, outcome);
}

static void client_asks(struct rping_server *server, const struct endpoint_event *event)
{
	struct endpoint *request = event->request;
	struct guest *guest;
	struct hello hello;
	enum outcome outcome;

	if (server->guests && !server->options->persistent) {
		log_debug(server->log, "%s: refused: %s", request->name, reason_busy);
		endpoint_reject(request, reason_busy, sizeof(reason_busy));
		return;
	}
	guest = guest_create(server, request);
	if (!guest) {
		log_error(server->log, request->name, "out of memory");
		endpoint_reject(request, reason_resources, sizeof(reason_resources));
		out_of_resources(server, OUTCOME_INTERNAL);
		return;
	}
	if (hello_read(event->private_data, event->private_length, HELLO_RPING, &hello))
		guest->promised = hello.count;
	outcome = prepare(guest);
	if (outcome) {
		endpoint_reject(request, reason_resources, sizeof(reason_resources));
		guest->endpoint = NULL;
		guest_destroy(guest);
		out_of_resources(server, outcome);
		return;
	}
	/* What fails here and later, but before the connection stands, counts as a client that never came. */
	outcome = accept_guest(guest);
	if (outcome)
		guest_failed(guest, outcome);
}

static void server_begin_end(struct rping_server *server)
{
	struct guest *next;

	server->ending = true;
	resolver_stop(&server->lookup);
	endpoint_destroy(server->listener);
	server->listener = NULL;
	for (struct guest *guest = server->guests; guest; guest = next) {
		next = guest->next;
		if (guest->phase.state < GUEST_GREETED) {
			guest_destroy(guest);
		} else if (guest->phase.state != GUEST_LEAVING) {
			enum outcome outcome;

			enter(guest, GUEST_LEAVING);
			outcome = endpoint_disconnect(guest->endpoint);
			if (outcome)
				guest_end(guest, outcome);
		}
	}
	if (!server->guests)
		server_ended(server);
}

static void listener_event(void *owner, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct rping_server *server = owner;

	(void)endpoint;
	if (event->kind == EVENT_REQUEST) {
		client_asks(server, event);
	} else if (event->kind == EVENT_FAILED) {
		if (server->options->persistent || server->guests) {
			environment_note(server->environment, event->outcome);
			server_begin_end(server);
		} else {
			server_finish(server, event->outcome);
		}
	}
}

static const struct endpoint_handlers listener_handlers = {
	.event = listener_event,
};

static enum outcome listen_at(struct rping_server *server, struct address address)
{
	struct endpoint_options options = rping_endpoint_options(server->options);
	enum outcome outcome = endpoint_create(ENDPOINT_LISTENER, server->channel, &options, &listener_handlers, server,
					       &server->listener);

	if (outcome)
		return outcome;
	address.port = (uint16_t)server->options->port;
	return endpoint_listen(server->listener, &address);
}

static void address_found(void *owner, enum outcome outcome, const struct address *addresses, size_t count)
{
	struct rping_server *server = owner;

	if (count)
		outcome = listen_at(server, addresses[0]);
	if (outcome)
		server_finish(server, outcome);
}

/* The way in and out. */

enum outcome rping_server_start(struct environment *environment, const struct rping_options *options,
				struct rping_server **result)
{
	struct rping_server *server = calloc(1, sizeof(*server));
	enum outcome outcome;

	if (!server) {
		log_error(&environment->log, NULL, "out of memory");
		return OUTCOME_INTERNAL;
	}
	outcome = channel_create(environment->transport, &server->channel);
	if (outcome) {
		free(server);
		return outcome;
	}
	server->environment = environment;
	server->options = options;
	server->log = &environment->log;
	resolver_start(&server->lookup, environment->loop, server->log, options->address ? options->address : "0.0.0.0",
		       ADDRESS_FORMAT_ANY, options->common.timeout, address_found, server);
	*result = server;
	return OUTCOME_OK;
}

void rping_server_interrupt(struct rping_server *server, enum interruption reason)
{
	if (!server)
		return;
	server->overdue = reason == INTERRUPTION_DEADLINE;
	server_begin_end(server);
}

/* The channel is still in use by the endpoints on their way out; transport_close() frees it after them. */
void rping_server_stop(struct rping_server *server)
{
	if (!server)
		return;
	resolver_stop(&server->lookup);
	while (server->guests)
		guest_destroy(server->guests);
	endpoint_destroy(server->listener);
	free(server);
}
