/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <string.h>

#include "cmd/hello.h"
#include "cmd/rping/target_state.h"

void target_connection_drop(struct target *target)
{
	state_stop(&target->state);
	loop_timer_stop(&target->beat);
	loop_timer_stop(&target->duration);
	if (target->sent_at)
		ping_lost(&target->all->figures, &target->record);
	target->sent_at = 0;
	endpoint_destroy(target->endpoint);
	target->endpoint = NULL;
	control_destroy(&target->control);
	region_destroy(target->source_region);
	target->source_region = NULL;
	region_destroy(target->sink_region);
	target->sink_region = NULL;
}

static void step_over(struct target *target, int64_t *time)
{
	int64_t now = clock_now();

	*time = now - target->times.begun;
	target->times.begun = now;
}

/* The ping size is known now: the server's hello came with its REP. */
static void established(struct target *target, const struct endpoint_event *event)
{
	int64_t asked = target->all->options->size;
	struct hello hello;

	step_over(target, &target->times.connect);
	endpoint_path(target->endpoint, &target->path);
	retry_end(&target->retry);
	target->stock = !hello_read(event->private_data, event->private_length, HELLO_RPING, &hello);
	target->size = ping_size((uint32_t)asked, target->stock ? NULL : &hello);
	if (!target->size) {
		log_error(target->state.log, target->endpoint->name,
			  "the server takes pings of at most %" PRIu32 " bytes, and -S asks for %" PRId64,
			  hello.capacity, asked ? asked : PING_SIZE);
		target_leave(target, OUTCOME_FAILED);
		return;
	}
	log_debug(target->state.log, "%s: %s server, pings of %" PRIu32 " bytes", target->endpoint->name,
		  target->stock ? "stock" : "our", target->size);
	target_tell(target, TARGET_CONNECTED);
	target_cycle_begin(target);
}

static void server_left(struct target *target)
{
	char pings[PINGS_TEXT_SIZE];

	log_failure(target->state.log,
		    &(struct failure){ .object = target->endpoint->name, .phase = state_text(&target->state) },
		    "the server went away after %s", target_pings_text(target, pings));
	if (target->stock && !target->done && target->size > PING_SIZE_STOCK)
		log_hint(target->state.log,
			 "a stock server ends when a ping is longer than its own -S (64 by default): "
			 "give both ends the same -S");
	target_finish(target, OUTCOME_FAILED);
}

/* The address is resolved: allocates what does not depend on the server while the route is resolved. */
static enum outcome prepare(struct target *target)
{
	enum outcome outcome;

	step_over(target, &target->times.resolve_address);
	target->device = target->endpoint->domain->device;
	outcome = control_create(&target->control, target->endpoint->domain);
	if (!outcome)
		outcome = endpoint_open_queue(target->endpoint);
	if (!outcome)
		outcome = control_open(&target->control, target->endpoint);
	return outcome;
}

static enum outcome ask_to_connect(struct target *target)
{
	const struct rping_options *options = target->all->options;
	struct hello hello = {
		.tool = HELLO_RPING,
		.capacity = PING_SIZE_MOST,
		/* With --duration there may be fewer pings, which is no failure for the server. */
		.count =
			options->count && !options->duration ? (uint64_t)options->count + (uint64_t)options->warmup : 0,
	};
	uint8_t bytes[HELLO_SIZE];

	step_over(target, &target->times.resolve_route);
	hello_write(&hello, bytes);
	return endpoint_connect(target->endpoint, bytes, sizeof(bytes));
}

static void pause_over(void *owner)
{
	target_tell(owner, TARGET_TRIES);
}

static enum outcome connect_to_next(struct target *target);

static bool is_busy(const struct endpoint_event *event)
{
	return event->private_length >= sizeof(PING_BUSY) && !memcmp(event->private_data, PING_BUSY, sizeof(PING_BUSY));
}

/* Tries the next address, or the same one later. event is NULL if no request was sent. */
static void not_connected(struct target *target, enum outcome outcome, const struct endpoint_event *event)
{
	if (target->endpoint->absent || (event && is_busy(event)))
		retry_absent(&target->retry);
	if (target->address_next < target->address_count)
		outcome = connect_to_next(target);
	if (!outcome)
		return;
	if (outcome == OUTCOME_NO_CONNECTION && retry_again(&target->retry, target->state.loop, pause_over, target)) {
		target_enter(target, TARGET_WAITING);
		target_connection_drop(target);
		target_tell(target, TARGET_PAUSES);
	} else {
		target_finish(target, outcome);
	}
}

static void target_event(void *owner, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct target *target = owner;
	enum outcome outcome = OUTCOME_OK;

	rping_classic_event(target->all->environment, target->all->options, endpoint, event->kind);
	switch (event->kind) {
	case EVENT_ADDRESS_RESOLVED:
		outcome = prepare(target);
		break;
	case EVENT_ROUTE_RESOLVED:
		outcome = ask_to_connect(target);
		if (outcome)
			not_connected(target, outcome, NULL);
		return;
	case EVENT_ESTABLISHED:
		established(target, event);
		break;
	case EVENT_DISCONNECTED:
		if (target->state.now == TARGET_LEAVING)
			target_finish(target, target_verdict(target));
		else
			server_left(target);
		break;
	case EVENT_FAILED:
		if (target->state.now == TARGET_CONNECTING)
			not_connected(target, event->outcome, event);
		else
			outcome = target->outcome ? target->outcome : event->outcome;
		break;
	default:
		break;
	}
	if (outcome)
		target_finish(target, outcome);
}

static const struct endpoint_handlers target_handlers = {
	.event = target_event,
	.completion = target_cycle_completed,
};

static enum outcome connect_to(struct target *target, const struct address *address)
{
	struct endpoint_options options = rping_endpoint_options(target->all->options);
	const struct address *source = target->all->source.family ? &target->all->source : NULL;
	enum outcome outcome;

	options.log = &target->log;
	target_connection_drop(target);
	address_text(address, target->name);
	target_enter(target, TARGET_CONNECTING);
	target->times.begun = clock_now();
	outcome = endpoint_create(ENDPOINT_CONNECTION, target->all->channel, &options, &target_handlers, target,
				  &target->endpoint);
	if (!outcome)
		outcome = endpoint_resolve(target->endpoint, source, address);
	return outcome;
}

/* A name may have several addresses; not all of them need lead to an RDMA device or to the server. */
static enum outcome connect_to_next(struct target *target)
{
	char text[ADDRESS_TEXT_SIZE];
	enum outcome outcome;

	do {
		const struct address *address = &target->addresses[target->address_next++];

		if (target->address_next > 1)
			log_hint(target->state.log, "trying the next address of %s: %s", target->address,
				 address_text(address, text));
		outcome = connect_to(target, address);
	} while (outcome && target->address_next < target->address_count);
	return outcome;
}

static void connect_to_first(struct target *target)
{
	enum outcome outcome;

	retry_begin(&target->retry, target->all->options->wait_server);
	target->address_next = 0;
	outcome = connect_to_next(target);
	if (outcome)
		target_finish(target, outcome);
}

static void address_found(void *owner, enum outcome outcome, const struct address *addresses, size_t count)
{
	struct target *target = owner;
	const struct family_options *family = &target->all->options->common.family;

	if (!outcome)
		outcome = path_keep(family, target->all->source.family, target->state.log, target->address, addresses,
				    count, target->addresses, &target->address_count);
	for (size_t i = 0; i < target->address_count; i++)
		target->addresses[i].port = target->port;
	if (outcome)
		target_finish(target, outcome);
	else
		connect_to_first(target);
}

void target_start(struct target *target)
{
	if (target->address_count) {
		connect_to_first(target);
		return;
	}
	target_enter(target, TARGET_LOOKING_UP);
	resolver_start(&target->lookup, target->state.loop, target->state.log, target->address, ADDRESS_FORMAT_ANY,
		       target->state.timeout, address_found, target);
}

/* 0 is a step that was not reached. */
static void report_step(struct report *report, const char *name, int64_t time)
{
	if (time)
		report_time(report, name, time);
	else
		report_none(report, name, REPORT_TIME);
}

void connect_times_report(const struct connect_times *times, struct report *report)
{
	report_detail(report, "connect");
	report_step(report, "resolve_address", times->resolve_address);
	report_step(report, "resolve_route", times->resolve_route);
	report_step(report, "connect", times->connect);
	report_end(report);
}
