/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/peer.h"

#include <inttypes.h>

#include "core/payload.h"
#include "core/units.h"

void peer_prepare(struct peer *peer, struct environment *environment, const struct rping_options *options,
		  const struct log *log, const struct peer_state *states, loop_callback *expired)
{
	peer->options = options;
	peer->environment = environment;
	peer->log = log;
	peer->states = states;
	peer->limit = options->common.timeout;
	peer->expired = expired;
}

const char *peer_state_text(const struct peer *peer)
{
	return peer->states[peer->state].text;
}

void peer_enter(struct peer *peer, unsigned state, const char *object)
{
	log_debug(&peer->environment->log, "%s: %s -> %s", object, peer_state_text(peer), peer->states[state].text);
	peer->state = state;
	if (peer->states[state].waits)
		loop_phase_start(peer->environment->loop, &peer->timer, peer->limit, peer->expired, peer);
	else
		loop_timer_stop(&peer->timer);
}

/* ---- the connection ---- */

/* The tag of a message is its index in the region. */
static struct work message(const struct peer *peer, enum work_kind kind, uint32_t index)
{
	return (struct work){
		.kind = kind,
		.tag = index,
		.region = peer->messages,
		.offset = (size_t)index * ADVERTISEMENT_SIZE,
		.length = ADVERTISEMENT_SIZE,
	};
}

enum outcome peer_open(struct peer *peer)
{
	size_t length = (PEER_SENDS + PEER_RECEIVES) * ADVERTISEMENT_SIZE;
	struct work receives[PEER_RECEIVES];
	enum outcome outcome = region_create(peer->endpoint->domain, length, REGION_LOCAL, &peer->messages);

	if (!outcome)
		outcome = endpoint_create_qp(peer->endpoint);
	if (outcome)
		return outcome;
	for (uint32_t i = 0; i < PEER_RECEIVES; i++)
		receives[i] = message(peer, WORK_RECEIVE, PEER_SENDS + i);
	return endpoint_post(peer->endpoint, receives, PEER_RECEIVES);
}

void peer_close(struct peer *peer)
{
	loop_timer_stop(&peer->timer);
	endpoint_destroy(peer->endpoint);
	peer->endpoint = NULL;
	region_destroy(peer->messages);
	peer->messages = NULL;
}

void peer_write(struct peer *peer, uint32_t index, const struct advertisement *advertisement)
{
	advertisement_write(advertisement, peer->messages->memory + (size_t)index * ADVERTISEMENT_SIZE);
}

struct work peer_send(const struct peer *peer, uint32_t index)
{
	struct work send = message(peer, WORK_SEND, index);

	send.unsignalled = true;
	return send;
}

enum outcome peer_receive(struct peer *peer, const struct completion *completion, struct advertisement *advertisement)
{
	struct work receive = message(peer, WORK_RECEIVE, completion->tag);

	if (completion->length != ADVERTISEMENT_SIZE)
		return peer_error(peer, "receive: a message of %u bytes instead of %d", completion->length,
				  ADVERTISEMENT_SIZE);
	advertisement_read(peer->messages->memory + receive.offset, advertisement);
	return endpoint_post(peer->endpoint, &receive, 1);
}

/* ---- errors ---- */

enum outcome peer_timed_out(const struct peer *peer)
{
	char silence[ENDPOINT_TIMEOUT_CAUSE_SIZE], text[LOOP_PHASE_TEXT_SIZE];

	log_cause(peer->log, peer->endpoint->name, peer_state_text(peer), 0, "%s in ping %" PRIu64 "%s",
		  loop_phase_text(peer->environment->loop, peer->limit, text), peer->pings,
		  endpoint_timeout_cause(peer->endpoint, silence));
	return OUTCOME_FAILED;
}

enum outcome peer_out_of_order(const struct peer *peer)
{
	return peer_error(peer, "ping %" PRIu64 ": a message out of order, while %s", peer->pings,
			  peer_state_text(peer));
}

bool peer_verify(const struct peer *peer, const uint8_t *ping, uint32_t size)
{
	struct payload_difference difference;

	return payload_ping_check(ping, size, ping_number(peer->pings), &difference) ||
	       !peer_error(peer,
			   "ping %" PRIu64 ": payload differs at byte %zu of %" PRIu32
			   ": expected 0x%02x, found 0x%02x",
			   peer->pings, difference.position, size, difference.expected, difference.found);
}

/* ---- options and texts ---- */

struct endpoint_options peer_endpoint_options(const struct rping_options *options)
{
	return (struct endpoint_options){
		.port_space = PORT_SPACE_TCP,
		.timeout = options->common.timeout,
		/*
		 * A server has at most five outstanding: a go-ahead, a WRITE and its go-ahead, a WRITE of length 0, and
		 * the READ of the next ping. With soft-RoCE, which adds one and rounds up, seven fit in a page. A
		 * client has two for each ping, and signals one in half of the pings that fit.
		 */
		.send_depth = options->server ? 7 : 4 * RPING_SIGNAL_EVERY,
		.receive_depth = PEER_RECEIVES,
		.path = &options->common.path,
		.own_qp = options->own_qp,
	};
}

void peer_print_event(const struct peer *peer, enum event_kind kind)
{
	static const char names[][16] = {
		[EVENT_ADDRESS_RESOLVED] = "ADDR_RESOLVED", [EVENT_ROUTE_RESOLVED] = "ROUTE_RESOLVED",
		[EVENT_REQUEST] = "CONNECT_REQUEST",	    [EVENT_ESTABLISHED] = "ESTABLISHED",
		[EVENT_DISCONNECTED] = "DISCONNECTED",
	};
	const struct environment *environment = peer->environment;
	bool debug = environment->log.debug, server = peer->options->server;

	if (debug && kind < sizeof(names) / sizeof(names[0]) && *names[kind])
		environment_print(environment, "cma_event type RDMA_CM_EVENT_%s cma_id %p (%s)", names[kind],
				  (const void *)peer->endpoint, server ? "child" : "parent");
	if (debug && kind == EVENT_ESTABLISHED && !server)
		environment_print(environment, "rdma_connect successful");
	if (kind == EVENT_DISCONNECTED && (peer->options->verbose || debug))
		environment_print(environment, "%s DISCONNECT EVENT...", server ? "server" : "client");
}

void peer_print_completion(const struct peer *peer, const char *name)
{
	if (peer->environment->log.debug)
		environment_print(peer->environment, "%s completion", name);
}

const char *peer_pings_text(uint64_t answered, uint64_t requested, char text[PINGS_TEXT_SIZE])
{
	if (requested)
		log_text(text, PINGS_TEXT_SIZE, "%" PRIu64 " of %" PRIu64 " pings", answered, requested);
	else
		log_text(text, PINGS_TEXT_SIZE, "%" PRIu64 " ping%s", answered, units_plural(answered));
	return text;
}

void peer_print_result(const struct peer *peer, enum outcome outcome, const struct result *result, bool ends_run)
{
	bool validate = peer->options->validate, passed = !outcome && result->answered;
	bool checked = !passed || validate;
	char device[128];
	char pings[PINGS_TEXT_SIZE], sizes[64] = "", warmup[48] = "", text[ADDRESS_TEXT_SIZE + 512];

	peer_pings_text(result->answered, outcome ? result->requested : 0, pings);
	if (passed && result->shortest < result->longest)
		log_text(sizes, sizeof(sizes), " of %" PRIu32 " to %" PRIu32 " bytes", result->shortest,
			 result->longest);
	else if (passed)
		log_text(sizes, sizeof(sizes), " of %" PRIu32 " byte%s", result->longest,
			 units_plural(result->longest));
	if (passed && result->warmup)
		log_text(warmup, sizeof(warmup), " after %" PRIu64 " to warm up", result->warmup);
	log_text(text, sizeof(text), "%s%s %s %s answered%s%s", pings, sizes, peer->options->server ? "from" : "to",
		 result->name, passed && validate ? " and verified" : "", warmup);
	log_text(device, sizeof(device), "%s%s", result->device ? result->device : "",
		 checked ? "" : "; payload not checked, use -V");
	if (ends_run)
		environment_finish(peer->environment, outcome, *device ? device : NULL, "%s", text);
	else
		environment_print_result(peer->environment, outcome, *device ? device : NULL, "%s", text);
}
