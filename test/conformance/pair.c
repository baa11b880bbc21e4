/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/conformance/pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"

static const int64_t patience = 10 * CLOCK_NS_PER_S;

bool bench_require(struct bench *bench, bool condition, const char *text, const char *file, int line)
{
	if (condition || bench->why)
		return condition && !bench->why;
	snprintf(bench->why_text, sizeof(bench->why_text), "%s:%d: %s", file, line, text);
	bench->why = bench->why_text;
	return false;
}

struct endpoint_options bench_options(const struct bench *bench)
{
	return (struct endpoint_options){
		.port_space = PORT_SPACE_TCP,
		.timeout = patience,
		.send_depth = PAIR_DEPTH,
		.receive_depth = PAIR_DEPTH,
	};
}

void bench_report(struct bench *bench)
{
	struct error *error = bench->transport ? &bench->transport->error : NULL;

	if (!error || !error_is_set(error))
		return;
	bench->error = *error;
	log_report(&bench->log, error);
	error_clear(error);
}

static void note(struct end *end, const struct record *record)
{
	if (end->count < RECORD_MAX)
		end->records[end->count++] = *record;
	bench_report(end->bench);
	loop_stop(end->bench->loop);
}

static void note_event(struct end *end, struct endpoint *endpoint, const struct endpoint_event *event)
{
	if (event->private_data) {
		end->private_length = event->private_length < sizeof(end->private_data) ? event->private_length
											: sizeof(end->private_data);
		memcpy(end->private_data, event->private_data, end->private_length);
	}
	if (event->group)
		end->group = *event->group;
	note(end, &(struct record){ .event = event->kind, .outcome = event->outcome });
	if (end->destroy_at == event->kind) {
		endpoint_destroy(endpoint);
		end->endpoint = NULL;
	}
}

static void end_event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	note_event(context, endpoint, event);
}

static void end_completion(void *context, struct endpoint *endpoint, const struct completion *completion)
{
	note(context, &(struct record){ .completion = *completion });
}

static const struct endpoint_handlers end_handlers = { end_event, end_completion };

static enum outcome post_receives(struct endpoint *endpoint, struct region *region, size_t count)
{
	enum outcome outcome = OUTCOME_OK;

	for (size_t index = 0; index < count && !outcome; index++) {
		struct work work = { .kind = WORK_RECEIVE,
				     .tag = (uint32_t)index,
				     .region = region,
				     .length = (uint32_t)region->length };

		outcome = endpoint_post(endpoint, &work, 1);
	}
	return outcome;
}

enum outcome bench_accept(struct bench *bench)
{
	struct endpoint *endpoint = bench->server.endpoint;
	enum outcome outcome = OUTCOME_OK;

	if (!bench->server_region)
		outcome = region_create(endpoint->domain, bench->region_size, bench->access, &bench->server_region);
	if (!outcome)
		outcome = endpoint_create_qp(endpoint);
	if (!outcome)
		outcome = post_receives(endpoint, bench->server_region, bench->accept_receives);
	return outcome ? outcome : endpoint_accept(endpoint, "welcome", 7);
}

static void answer(struct bench *bench, struct endpoint *endpoint)
{
	struct end *end = &bench->server;

	end->endpoint = endpoint;
	endpoint->handlers = &end_handlers;
	endpoint->context = end;
	if (!bench->answer_requests)
		return;
	if (!bench->accept) {
		endpoint_reject(endpoint, "not today", 9);
		end->endpoint = NULL;
		return;
	}
	bench_accept(bench);
}

static void listener_event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct end *end = context;

	note_event(end, endpoint, event);
	if (event->kind == EVENT_REQUEST)
		answer(end->bench, event->request);
}

static const struct endpoint_handlers listener_handlers = { listener_event, end_completion };

static void patience_ends(void *context)
{
	bool *ended = context;

	*ended = true;
}

/* loop_stop() comes with every record, so that the condition is checked after each. */
static bool await(struct bench *bench, size_t (*count_of)(const struct end *, int), const struct end *end, int what,
		  size_t count, int64_t limit)
{
	struct loop_timer timer = { 0 };
	bool ended = false;

	loop_timer_start(bench->loop, &timer, limit, patience_ends, &ended);
	while (!ended && count_of(end, what) < count) {
		struct loop_timer tick = { 0 };

		loop_timer_start(bench->loop, &tick, 2 * CLOCK_NS_PER_MS, (loop_callback *)(void (*)(void))loop_stop,
				 bench->loop);
		loop_run(bench->loop);
		loop_timer_stop(&tick);
	}
	loop_timer_stop(&timer);
	return count_of(end, what) >= count;
}

size_t end_events(const struct end *end, int event)
{
	size_t count = 0;

	for (size_t index = 0; index < end->count; index++)
		count += end->records[index].event == (enum event_kind)event;
	return count;
}

size_t end_completions(const struct end *end, int kind)
{
	size_t count = 0;

	for (size_t index = 0; index < end->count; index++)
		count += !end->records[index].event && end->records[index].completion.kind == (enum work_kind)kind;
	return count;
}

const struct completion *end_last_completion(const struct end *end, enum work_kind kind)
{
	for (size_t index = end->count; index--;)
		if (!end->records[index].event && end->records[index].completion.kind == kind)
			return &end->records[index].completion;
	return NULL;
}

bool bench_await_event(struct bench *bench, const struct end *end, enum event_kind event)
{
	return await(bench, end_events, end, (int)event, 1, patience);
}

bool bench_await_completions(struct bench *bench, const struct end *end, enum work_kind kind, size_t count)
{
	return await(bench, end_completions, end, (int)kind, count, patience);
}

static size_t count_trouble(const struct end *end, int what)
{
	size_t count = end_events(end, EVENT_FAILED) + end_events(end, EVENT_DISCONNECTED);

	for (size_t index = 0; index < end->count; index++)
		count += !end->records[index].event && end->records[index].completion.status != COMPLETION_OK;
	return count;
}

bool bench_await_trouble(struct bench *bench, const struct end *end)
{
	return await(bench, count_trouble, end, 0, 1, patience);
}

void bench_linger(struct bench *bench, int milliseconds)
{
	await(bench, end_events, &bench->client, 0, SIZE_MAX, milliseconds * CLOCK_NS_PER_MS);
}

struct endpoint *end_create(struct end *end, enum endpoint_kind kind, const struct endpoint_options *options)
{
	const struct endpoint_options usual = bench_options(end->bench);
	struct endpoint *endpoint = NULL;

	endpoint_create(kind, end->bench->channel, options ? options : &usual,
			kind == ENDPOINT_LISTENER ? &listener_handlers : &end_handlers, end, &endpoint);
	return endpoint;
}

bool bench_listen(struct bench *bench, const struct endpoint_options *options)
{
	bench->listener = end_create(&bench->listening, ENDPOINT_LISTENER, options);
	return bench->listener && !endpoint_listen(bench->listener, &bench->address);
}

bool bench_start_client(struct bench *bench, const struct endpoint_options *options)
{
	struct address peer = bench->address;
	struct end *end = &bench->client;

	peer.port = bench->listener ? bench->listener->local.port : 1;
	end->endpoint = end_create(end, ENDPOINT_CONNECTION, options);
	return end->endpoint && !endpoint_resolve(end->endpoint, NULL, &peer);
}

bool bench_resolve(struct bench *bench, const struct endpoint_options *options)
{
	struct end *end = &bench->client;

	return bench_start_client(bench, options) && bench_await_event(bench, end, EVENT_ROUTE_RESOLVED) &&
	       !region_create(end->endpoint->domain, bench->region_size, bench->access, &bench->client_region) &&
	       !endpoint_create_qp(end->endpoint);
}

bool bench_connect(struct bench *bench, const struct endpoint_options *options)
{
	return bench_listen(bench, options) && bench_resolve(bench, options) &&
	       !endpoint_connect(bench->client.endpoint, "hello", 5) &&
	       bench_await_event(bench, &bench->client, EVENT_ESTABLISHED);
}

bool bench_connect_both(struct bench *bench)
{
	return bench_connect(bench, NULL) && bench_await_event(bench, &bench->server, EVENT_ESTABLISHED);
}

bool bench_member(struct bench *bench, struct end *end, struct region **region, const struct endpoint_options *options)
{
	end->endpoint = end_create(end, ENDPOINT_GROUP, options);
	return end->endpoint && !endpoint_resolve(end->endpoint, &bench->address, &bench->group) &&
	       bench_await_event(bench, end, EVENT_ADDRESS_RESOLVED) &&
	       !region_create(end->endpoint->domain, bench->region_size, bench->access, region) &&
	       !endpoint_create_qp(end->endpoint);
}

void bench_clear(struct bench *bench)
{
	endpoint_destroy(bench->client.endpoint);
	endpoint_destroy(bench->server.endpoint);
	endpoint_destroy(bench->listener);
	region_destroy(bench->client_region);
	region_destroy(bench->server_region);
	bench_linger(bench, 5);
	bench->client = bench->server = bench->listening = (struct end){ .bench = bench };
	bench->listener = NULL;
	bench->client_region = bench->server_region = NULL;
}

bool bench_open(struct bench *bench, const char *transport, const char *address, const char *remove_command)
{
	const char *spin = getenv("CONFORMANCE_SPIN");

	memset(bench, 0, sizeof(*bench));
	bench->log = (struct log){ .name = "conformance", .debug = getenv("CONFORMANCE_DEBUG") != NULL };
	bench->remove_command = remove_command;
	bench->accept = bench->answer_requests = true;
	bench->region_size = 4096;
	bench->access = REGION_REMOTE_READ | REGION_REMOTE_WRITE | REGION_READ_SINK;
	bench->listening.bench = bench->server.bench = bench->client.bench = bench;
	bench->loop = loop_create();
	if (!bench->loop ||
	    transport_open(transport, bench->loop, &bench->log, &(struct error){ 0 }, &bench->transport))
		return false;
	if (spin)
		transport_spin(bench->transport, atol(spin) < 0 ? LOOP_SPIN_ALWAYS : atol(spin) * CLOCK_NS_PER_US);
	return address_parse(address, ADDRESS_FORMAT_IP, &bench->address) &&
	       address_parse(bench->address.family == ADDRESS_IP6 ? "ff15::4791" : "239.1.2.3", ADDRESS_FORMAT_IP,
			     &bench->group) &&
	       !channel_create(bench->transport, &bench->channel);
}

void bench_close(struct bench *bench)
{
	transport_close(bench->transport);
	loop_destroy(bench->loop);
}
