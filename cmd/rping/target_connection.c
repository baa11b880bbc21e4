/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <string.h>

#include "cmd/hello.h"
#include "cmd/rping/target_state.h"

void target_connection_drop(struct target *target)
{
	state_stop(&target->state);
	loop_timer_stop(&target->pace_timer);
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

static void step_finished(struct target *target, int64_t *time)
{
	int64_t now = clock_now();

	*time = now - target->times.begun;
	target->times.begun = now;
}

/* The ping size depends on the server's hello, which arrives with the REP. */
static void established(struct target *target, const struct endpoint_event *event)
{
	int64_t requested = target->all->options->size;
	struct hello hello;

	step_finished(target, &target->times.connect);
	endpoint_path(target->endpoint, &target->path);
	dial_stop(&target->dial);
	target->stock = !hello_read(event->private_data, event->private_length, HELLO_RPING, &hello);
	target->size = ping_size((uint32_t)requested, target->stock ? NULL : &hello);
	if (!target->size) {
		log_error(target->state.log, target->endpoint->name,
			  "the server accepts pings of at most %" PRIu32 " bytes, not %" PRId64, hello.capacity,
			  requested ? requested : PING_SIZE);
		target_disconnect(target, OUTCOME_FAILED);
		return;
	}
	log_debug(target->state.log, "%s: %s server, pings of %" PRIu32 " bytes", target->endpoint->name,
		  target->stock ? "stock" : "our", target->size);
	target_notify(target, TARGET_CONNECTED);
	/* The run ends if it cannot drop its privileges. */
	if (!target->all->environment->ended)
		target_cycle_begin(target);
}

static void server_disconnected(struct target *target)
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

/* The address is resolved. Allocates what does not depend on the server while the route is being resolved. */
static enum outcome prepare(struct target *target)
{
	enum outcome outcome;

	step_finished(target, &target->times.resolve_address);
	target->device = target->endpoint->domain->device;
	outcome = control_create(&target->control, target->endpoint->domain);
	if (!outcome)
		outcome = endpoint_create_qp(target->endpoint);
	if (!outcome)
		outcome = control_post_receives(&target->control, target->endpoint);
	return outcome;
}

static enum outcome send_request(struct target *target)
{
	const struct rping_options *options = target->all->options;
	struct hello hello = {
		.tool = HELLO_RPING,
		.capacity = PING_SIZE_MAX,
		/* With --duration the number is unknown: the server must not expect -C pings. */
		.count =
			options->count && !options->duration ? (uint64_t)options->count + (uint64_t)options->warmup : 0,
	};
	uint8_t bytes[HELLO_SIZE];

	step_finished(target, &target->times.resolve_route);
	hello_write(&hello, bytes);
	return endpoint_connect(target->endpoint, bytes, sizeof(bytes));
}

static bool is_busy(const struct endpoint_event *event)
{
	return event->private_length >= sizeof(PING_BUSY) && !memcmp(event->private_data, PING_BUSY, sizeof(PING_BUSY));
}

static void target_endpoint_event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct target *target = context;
	enum outcome outcome = OUTCOME_OK;

	rping_classic_event(target->all->environment, target->all->options, endpoint, event->kind);
	switch (event->kind) {
	case EVENT_ADDRESS_RESOLVED:
		outcome = prepare(target);
		break;
	case EVENT_ROUTE_RESOLVED:
		outcome = send_request(target);
		if (outcome)
			dial_failed(&target->dial, outcome, false);
		return;
	case EVENT_ESTABLISHED:
		established(target, event);
		break;
	case EVENT_DISCONNECTED:
		if (target->state.now == TARGET_DISCONNECTING)
			target_finish(target, target_verdict(target));
		else
			server_disconnected(target);
		break;
	case EVENT_FAILED:
		if (target->state.now == TARGET_CONNECTING)
			dial_failed(&target->dial, event->outcome, is_busy(event));
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
	.event = target_endpoint_event,
	.completion = target_cycle_completed,
};

/* ---- callbacks of the dial ---- */

static void target_dial_resolved(void *context, enum outcome outcome)
{
	struct target *target = context;

	if (outcome)
		target_finish(target, outcome);
	else
		dial_begin(&target->dial);
}

static enum outcome target_dial_connect(void *context)
{
	struct target *target = context;
	struct endpoint_options options = rping_endpoint_options(target->all->options);
	const struct address *source = target->all->source.family ? &target->all->source : NULL;
	enum outcome outcome;

	options.log = &target->dial.log;
	target_connection_drop(target);
	target_enter(target, TARGET_CONNECTING);
	target->times.begun = clock_now();
	outcome = endpoint_create(ENDPOINT_CONNECTION, target->all->channel, &options, &target_handlers, target,
				  &target->endpoint);
	if (!outcome)
		outcome = endpoint_resolve(target->endpoint, source, &target->dial.address);
	return outcome;
}

static void target_dial_paused(void *context)
{
	struct target *target = context;

	target_enter(target, TARGET_WAITING);
	target_connection_drop(target);
	target_notify(target, TARGET_RETRY_WAIT);
}

static void target_dial_resumed(void *context)
{
	target_notify(context, TARGET_RETRY);
}

static void target_dial_failed(void *context, enum outcome outcome)
{
	target_finish(context, outcome);
}

const struct dial_handlers target_dial_handlers = {
	.resolved = target_dial_resolved,
	.connect = target_dial_connect,
	.paused = target_dial_paused,
	.resumed = target_dial_resumed,
	.failed = target_dial_failed,
};

void target_start(struct target *target)
{
	if (target->dial.address_count) {
		dial_begin(&target->dial);
		return;
	}
	target_enter(target, TARGET_RESOLVING);
	dial_resolve(&target->dial, target->all->source.family);
}

/* time is 0 if the step was not reached. */
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
