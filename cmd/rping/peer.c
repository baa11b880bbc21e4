/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/peer.h"

#include <inttypes.h>
#include <sys/param.h>

#include "cmd/hello.h"
#include "core/payload.h"
#include "core/units.h"

#define FOREIGN "its first message is not rping's: another program may be there"

/* noinline, like two functions below: inlined copies of the three take 120 bytes. */
void __attribute__((noinline)) peer_enter(struct peer *peer, unsigned state, const char *doing,
					  enum timeout_share limit)
{
	log_debug(&peer->run->log, "%s: %s", peer->name, doing);
	if (WITH_DIAGNOSTICS)
		peer->doing = doing;
	peer->state = state;
	if (!limit) {
		loop_timer_stop(&peer->timer);
		return;
	}
	peer->limit = peer->options->common.timeout / limit;
	loop_phase_start(peer->run->loop, &peer->timer, peer->limit, peer->expired, peer);
}

/* ---- the connection ---- */

/* The tag of a message is its index in the region. */
struct work __attribute__((noinline)) peer_message(const struct peer *peer, enum work_kind kind, uint32_t index)
{
	return (struct work){
		.kind = kind,
		.tag = index,
		.region = peer->messages,
		.offset = (size_t)index * ADVERTISEMENT_SIZE,
		.length = ADVERTISEMENT_SIZE,
		.unsignalled = true,
	};
}

enum outcome peer_post(const struct peer *peer, enum work_kind kind, uint32_t index, bool signalled)
{
	struct work work = peer_message(peer, kind, index);

	work.unsignalled = !signalled;
	return endpoint_post(peer->endpoint, &work, 1);
}

enum outcome peer_open(struct peer *peer)
{
	size_t length = (PEER_SENDS + PEER_RECEIVES) * ADVERTISEMENT_SIZE;
	struct domain *domain = peer->endpoint->domain;
	enum outcome outcome = region_create(domain, length, REGION_LOCAL, &peer->messages);

	peer->device = domain->device;
	if (!outcome)
		outcome = endpoint_create_qp(peer->endpoint);
	for (uint32_t i = PEER_SENDS; i < PEER_SENDS + PEER_RECEIVES && !outcome; i++)
		outcome = peer_post(peer, WORK_RECEIVE, i, false);
	return outcome;
}

enum outcome peer_greet(const struct peer *peer, uint32_t capacity, uint64_t count,
			enum outcome (*send)(struct endpoint *endpoint, const void *data, size_t length))
{
	uint8_t bytes[HELLO_SIZE];
	struct hello hello = { .tool = HELLO_RPING, .capacity = capacity, .count = count };

	if (!peer->options->server && EXTRA(peer->options->paths))
		hello.udp_port = peer->endpoint->options.udp_port;
	hello_write(&hello, bytes);
	return send(peer->endpoint, bytes, sizeof(bytes));
}

static void destroy_region(struct region **region)
{
	region_destroy(*region);
	*region = NULL;
}

void peer_close(struct peer *peer)
{
	loop_timer_stop(&peer->timer);
	endpoint_destroy(peer->endpoint);
	peer->endpoint = NULL;
	destroy_region(&peer->messages);
	destroy_region(&peer->data[0]);
	destroy_region(&peer->data[1]);
}

void __attribute__((noinline)) peer_count_ping(struct peer *peer)
{
	if (!peer->shortest || peer->size < peer->shortest)
		peer->shortest = peer->size;
	peer->longest = MAX(peer->longest, peer->size);
	peer->pings++;
}

uint64_t peer_answered(const struct peer *peer)
{
	uint64_t warmup = (uint64_t)EXTRA(peer->options->warmup);

	return peer->pings - MIN(peer->pings, warmup);
}

void peer_write(struct peer *peer, uint32_t index, const struct advertisement *advertisement)
{
	advertisement_write(advertisement, peer->messages->memory + (size_t)index * ADVERTISEMENT_SIZE);
}

enum outcome peer_receive(struct peer *peer, const struct completion *completion, struct advertisement *advertisement)
{
	if (completion->length != ADVERTISEMENT_SIZE) {
		log_error(peer->log, peer->name, "a message of %u bytes, not %d", completion->length,
			  ADVERTISEMENT_SIZE);
		if (!peer->pings)
			log_hint(peer->log, FOREIGN);
		return OUTCOME_FAILED;
	}
	advertisement_read(peer->messages->memory + (size_t)completion->tag * ADVERTISEMENT_SIZE, advertisement);
	return peer_post(peer, WORK_RECEIVE, completion->tag, false);
}

/* ---- errors ---- */

enum outcome peer_work_failed(const struct peer *peer, const struct completion *completion)
{
	if (WITH_DIAGNOSTICS && completion->kind == WORK_RECEIVE && !peer->pings)
		error_hint(&peer->run->transport->error, FOREIGN);
	return OUTCOME_FAILED;
}

enum outcome peer_failed(const struct peer *peer, const char *what)
{
	const struct endpoint *endpoint = peer->endpoint;
	char text[ENDPOINT_TIMEOUT_CAUSE_SIZE];
	const char *cause;

	if (!WITH_DIAGNOSTICS)
		return peer_error(peer, "%s in ping %" PRIu64, what, peer->pings);
	cause = endpoint ? endpoint_timeout_cause(endpoint, text) : "";
	if (!endpoint || endpoint->state < ENDPOINT_ESTABLISHED)
		log_cause(peer->log, peer->name, peer->doing, 0, "%s%s", what, cause);
	else
		log_cause(peer->log, peer->name, peer->doing, 0, "%s in ping %" PRIu64 "%s", what, peer->pings, cause);
	return OUTCOME_FAILED;
}

enum outcome peer_timed_out(const struct peer *peer)
{
	char text[LOOP_PHASE_TEXT_SIZE];

	return peer_failed(peer, loop_phase_text(peer->run->loop, peer->limit, text));
}

enum outcome peer_out_of_order(const struct peer *peer)
{
	return peer_failed(peer, "unexpected message");
}

bool peer_verify(const struct peer *peer, const uint8_t *ping)
{
	struct payload_difference difference;

	return payload_ping_check(ping, peer->size, ping_number(peer->pings), &difference) ||
	       !peer_error(peer,
			   "ping %" PRIu64 ": payload differs at byte %zu of %" PRIu32
			   ": expected 0x%02x, found 0x%02x",
			   peer->pings, difference.position, peer->size, difference.expected, difference.found);
}

/* ---- options and texts ---- */

enum outcome peer_create_endpoint(enum endpoint_kind kind, struct channel *channel, const struct rping_options *options,
				  const struct endpoint_handlers *handlers, void *context, struct endpoint **endpoint)
{
	const struct endpoint_options endpoint_options = {
		.port_space = PORT_SPACE_TCP,
		.timeout = options->common.timeout,
		/*
		 * A server has at most five outstanding: a go-ahead, a WRITE and its go-ahead, a WRITE of length 0, and
		 * the next ping's READ. With soft-RoCE, which adds one and rounds up, seven fit in a page. A client has
		 * two for each ping, and signals one in half of the pings that fit.
		 */
		.send_depth = options->server ? 7 : 4 * RPING_SIGNAL_EVERY,
		.receive_depth = PEER_RECEIVES,
		.path = &options->common.path,
		.own_qp = options->own_qp,
	};

	return endpoint_create(kind, channel, &endpoint_options, handlers, context, endpoint);
}

void peer_print_event(const struct peer *peer, enum event_kind kind)
{
	static const char names[][16] = {
		[EVENT_ADDRESS_RESOLVED] = "ADDR_RESOLVED", [EVENT_ROUTE_RESOLVED] = "ROUTE_RESOLVED",
		[EVENT_REQUEST] = "CONNECT_REQUEST",	    [EVENT_ESTABLISHED] = "ESTABLISHED",
		[EVENT_DISCONNECTED] = "DISCONNECTED",
	};
	const struct run *run = peer->run;
	bool debug = run->log.debug, server = peer->options->server;

	if (debug && kind <= EVENT_DISCONNECTED)
		run_print(run, "cma_event type RDMA_CM_EVENT_%s cma_id %p (%s)", names[kind],
			  (const void *)peer->endpoint, server ? "child" : "parent");
	if (debug && kind == EVENT_ESTABLISHED && !server)
		run_print(run, "rdma_connect successful");
	if (kind == EVENT_DISCONNECTED && ((peer->options->verbose && !peer->log->silent) || debug))
		run_print(run, "%s DISCONNECT EVENT...", server ? "server" : "client");
}

void peer_print_completions(const struct peer *peer, const char *lines)
{
	if (peer->run->log.debug)
		output_print(peer->run->output, "%s completion\n", lines);
}

void peer_print_result(const struct peer *peer, enum outcome outcome, bool ends_run)
{
	const struct rping_options *options = peer->options;
	uint64_t answered = peer_answered(peer), warmup = peer->pings - answered;
	const char *device = peer->device, *of = "", *plural = units_plural(answered);
	const char *to = "", *sizes = "", *checked = "", *warmed_up = "";
	char of_text[32], to_text[16], sizes_text[64], warmup_text[48], device_text[128];

	if (outcome && peer->requested) {
		of = log_text(of_text, sizeof(of_text), " of %" PRIu64, peer->requested);
		plural = units_plural(peer->requested);
	}
	if (!outcome && answered) {
		if (peer->shortest < peer->longest)
			to = log_text(to_text, sizeof(to_text), " to %" PRIu32, peer->longest);
		sizes = log_text(sizes_text, sizeof(sizes_text), " of %" PRIu32 "%s byte%s", peer->shortest, to,
				 units_plural(peer->longest));
		if (options->validate)
			checked = " and verified";
		else if (WITH_DIAGNOSTICS && !options->server)
			device = log_text(device_text, sizeof(device_text), "%s; payload not verified, use -V", device);
		if (EXTRA(warmup))
			warmed_up = log_text(warmup_text, sizeof(warmup_text), " after %" PRIu64 " to warm up", warmup);
	}
	(ends_run ? run_finish : run_print_result)(
		peer->run, outcome, device, "%" PRIu64 "%s ping%s%s %s %s answered%s%s", answered, of, plural, sizes,
		options->server ? "from" : "to", peer->name, checked, warmed_up);
}
