/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/target.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/hello.h"
#include "cmd/rping/protocol.h"
#include "core/payload.h"
#include "core/quantity.h"

enum target_state {
	TARGET_WAITING,
	TARGET_LOOKING_UP,
	TARGET_CONNECTING,
	TARGET_OFFERING_SOURCE,
	TARGET_OFFERING_SINK,
	TARGET_SETTLING,
	TARGET_RESTING,
	TARGET_LEAVING,
	TARGET_DONE,
};

/* Look-up, connecting and leaving have their deadlines in the resolver and in the transport. */
static const struct phase_row target_states[] = {
	[TARGET_WAITING] = { "waiting to connect",
			     PHASE_BIT(TARGET_LOOKING_UP) | PHASE_BIT(TARGET_CONNECTING) | PHASE_BIT(TARGET_DONE) },
	[TARGET_LOOKING_UP] = { "looking up", PHASE_BIT(TARGET_CONNECTING) | PHASE_BIT(TARGET_DONE) },
	[TARGET_CONNECTING] = { "connecting", PHASE_BIT(TARGET_CONNECTING) | PHASE_BIT(TARGET_WAITING) |
						      PHASE_BIT(TARGET_OFFERING_SOURCE) | PHASE_BIT(TARGET_LEAVING) |
						      PHASE_BIT(TARGET_DONE) },
	[TARGET_OFFERING_SOURCE] = { "waiting for the server to read it",
				     PHASE_BIT(TARGET_OFFERING_SINK) | PHASE_BIT(TARGET_LEAVING) |
					     PHASE_BIT(TARGET_DONE),
				     true },
	[TARGET_OFFERING_SINK] = { "waiting for the server to write it back",
				   PHASE_BIT(TARGET_OFFERING_SOURCE) | PHASE_BIT(TARGET_SETTLING) |
					   PHASE_BIT(TARGET_RESTING) | PHASE_BIT(TARGET_LEAVING) |
					   PHASE_BIT(TARGET_DONE),
				   true },
	[TARGET_SETTLING] = { "waiting for the news of what it sent",
			      PHASE_BIT(TARGET_OFFERING_SOURCE) | PHASE_BIT(TARGET_RESTING) |
				      PHASE_BIT(TARGET_LEAVING) | PHASE_BIT(TARGET_DONE),
			      true },
	[TARGET_RESTING] = { "waiting for its time", PHASE_BIT(TARGET_OFFERING_SOURCE) | PHASE_BIT(TARGET_SETTLING) |
							     PHASE_BIT(TARGET_LEAVING) | PHASE_BIT(TARGET_DONE) },
	[TARGET_LEAVING] = { "disconnecting", PHASE_BIT(TARGET_DONE) },
	[TARGET_DONE] = { "done", 0 },
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

static const struct rping_options *options_of(const struct target *target)
{
	return target->all->options;
}

static struct environment *environment_of(const struct target *target)
{
	return target->all->environment;
}

static const struct log *log_of(const struct target *target)
{
	return &target->all->environment->log;
}

const char *target_name(const struct target *target)
{
	return target->name[0] ? target->name : target->address;
}

static void enter(struct target *target, enum target_state state)
{
	phase_enter(&target->phase, state, target->endpoint ? target->endpoint->name : target->address);
}

static void tell(struct target *target, enum target_news news)
{
	target->all->news(target->all->owner, target, news);
}

/* The one place that takes a connection down. */
static void drop_connection(struct target *target)
{
	phase_stop(&target->phase);
	loop_timer_stop(&target->beat);
	loop_timer_stop(&target->duration);
	if (target->sent_at)
		ping_lost(&target->all->figures, &target->record);
	target->sent_at = 0;
	endpoint_destroy(target->endpoint);
	target->endpoint = NULL;
	mailbox_destroy(&target->mailbox);
	region_destroy(target->source_region);
	target->source_region = NULL;
	region_destroy(target->sink_region);
	target->sink_region = NULL;
}

/* What was held back is told. */
static void give_up_waiting(struct target *target)
{
	patience_again(&target->patience, target->phase.loop, log_of(target), target->name, false, NULL, NULL);
}

/* The owner may have ended the run when this returns. */
static void finish(struct target *target, enum outcome outcome)
{
	if (target->ended)
		return;
	if (outcome)
		give_up_waiting(target);
	enter(target, TARGET_DONE);
	resolver_stop(&target->lookup);
	patience_end(&target->patience);
	drop_connection(target);
	target->outcome = outcome;
	target->ended = true;
	tell(target, TARGET_ENDED);
}

static uint64_t count_asked(const struct target *target)
{
	return (uint64_t)options_of(target)->count;
}

static uint64_t answered(const struct target *target)
{
	return target->record.counts.answered;
}

static bool more_asked(const struct target *target)
{
	return !count_asked(target) || answered(target) < count_asked(target);
}

static bool is_warm(const struct target *target)
{
	return !WITH_PACE || target->done >= (uint64_t)options_of(target)->warmup;
}

static const char *pings_text(const struct target *target, char text[PINGS_TEXT_SIZE])
{
	return rping_pings_text(answered(target), count_asked(target), text);
}

static void keep_error(struct target *target, const char *text)
{
	if (!target->error)
		target->error = strdup(text);
}

/* text says how far it came. That the deadline has passed has been told, for all targets. */
static void cut_off(struct target *target, const char *text)
{
	if (target->overdue)
		keep_error(target, text);
	else
		log_error(log_of(target), target_name(target), "%s: interrupted", text);
}

/* True if it has come to the end that it had; a run without one may end at any time. */
static bool is_complete(const struct target *target)
{
	if (count_asked(target) && !more_asked(target))
		return true;
	return target->timed || (!count_asked(target) && !options_of(target)->duration);
}

/* What it was worth, once it has ended in order. */
static enum outcome verdict(struct target *target)
{
	char pings[PINGS_TEXT_SIZE];
	char text[PINGS_TEXT_SIZE + 32];

	if (target->outcome)
		return target->outcome;
	if (!target->overdue && answered(target) && is_complete(target))
		return OUTCOME_OK;
	snprintf(text, sizeof(text), "ended early, after %s", pings_text(target, pings));
	cut_off(target, text);
	return OUTCOME_FAILED;
}

/* Begins the end of a connection whose work is all completed, or of no more interest. */
static void leave(struct target *target, enum outcome outcome)
{
	target->outcome = outcome;
	loop_timer_stop(&target->beat);
	enter(target, TARGET_LEAVING);
	outcome = endpoint_disconnect(target->endpoint);
	if (outcome)
		finish(target, target->outcome ? target->outcome : outcome);
}

static void step_timed_out(void *owner)
{
	struct target *target = owner;
	char silence[ENDPOINT_SILENCE_SIZE];

	log_error(log_of(target), target->endpoint->name, "ping %" PRIu64 ": %s: timed out after %g s%s", target->done,
		  phase_text(&target->phase), quantity_seconds(target->phase.timeout),
		  endpoint_silence(target->endpoint, silence));
	finish(target, OUTCOME_FAILED);
}

/* The cycle of a ping. */

static bool is_reported(const struct target *target)
{
	return target->done % RPING_REPORT_EVERY == RPING_REPORT_EVERY - 1;
}

static void advertise(struct target *target, uint32_t index, enum target_state state)
{
	struct work send = mailbox_send(&target->mailbox, index);
	enum outcome outcome;

	/* The server's answer proves that it arrived; what is later reported is for the queue's sake, and covers it. */
	send.silent = index == SOURCE || !is_reported(target);
	enter(target, state);
	outcome = endpoint_post(target->endpoint, &send, 1);
	if (outcome)
		finish(target, outcome);
}

static void go_on(struct target *target);

static void duration_over(void *owner)
{
	struct target *target = owner;

	target->last = true;
	target->timed = true;
	if (target->phase.state == TARGET_RESTING)
		go_on(target);
}

static void start_ping(struct target *target)
{
	const struct rping_options *options = options_of(target);
	int64_t now;

	if (is_reported(target))
		target->sending++;
	payload_ping_fill(target->source_region->memory, target->size, ping_number(target->done));
	if (options->validate || options->verbose)
		memset(target->sink_region->memory, SINK_UNTOUCHED, target->size);
	now = clock_now();
	pace_go(&target->pace, now);
	if (is_warm(target)) {
		if (WITH_PACE && options->duration && !target->record.counts.sent)
			loop_timer_start(target->phase.loop, &target->duration, options->duration, duration_over,
					 target);
		target->sent_at = now;
		target->turn.from = pace_beat(&target->pace, now);
		ping_sent(&target->all->figures, &target->record, &target->turn);
	}
	advertise(target, SOURCE, TARGET_OFFERING_SOURCE);
}

static void beat(void *owner)
{
	start_ping(owner);
}

/* At its time. Between two pings that are due at once there is no turn of the loop. */
static void next_ping(struct target *target)
{
	int64_t wait = pace_wait(&target->pace, clock_now());

	if (!wait) {
		start_ping(target);
		return;
	}
	enter(target, TARGET_RESTING);
	loop_timer_start(target->phase.loop, &target->beat, wait, beat, target);
	loop_wake(target->phase.loop, wait);
}

/*
 * The server has written, so that the sink was offered, but the report of that may still be on its way. The next pings
 * need not wait for it; those after the next report do, and so does the end.
 */
static void go_on(struct target *target)
{
	bool last = target->last || !more_asked(target);

	if (target->sending > (last ? 0 : 1)) {
		loop_timer_stop(&target->beat);
		if (target->phase.state != TARGET_SETTLING)
			enter(target, TARGET_SETTLING);
	} else if (last) {
		leave(target, OUTCOME_OK);
	} else {
		next_ping(target);
	}
}

static bool same_as_sent(const struct target *target)
{
	struct payload_difference difference;

	if (payload_equal(target->source_region->memory, target->sink_region->memory, target->size, &difference))
		return true;
	log_error(log_of(target), target->endpoint->name,
		  "ping %" PRIu64 ": what came back differs at byte %zu of %" PRIu32 ": sent 0x%02x, found 0x%02x",
		  target->done, difference.position, target->size, difference.expected, difference.found);
	return false;
}

static void stream(const struct target *target, int64_t round_trip, bool verified)
{
	struct report *record = environment_begin_record(environment_of(target), "ping");

	if (!record)
		return;
	report_text(record, "target", target->name);
	report_count(record, "sequence", target->done);
	report_time(record, "round_trip", round_trip);
	report_flag(record, "verified", verified);
	environment_end_record(environment_of(target));
}

static void count(struct target *target, int64_t now, bool verified)
{
	if (target->sent_at) {
		target->turn.to = pace_end(&target->pace, now);
		ping_answered(&target->all->figures, &target->record, &target->turn, now - target->sent_at, verified);
		stream(target, now - target->sent_at, verified);
	} else {
		ping_warmed_up(&target->all->figures, &target->record);
	}
	target->sent_at = 0;
}

/* Whose it is stands there only where it may be another's: scripts read the lines of the stock tool. */
static void print_ping(const struct target *target)
{
	FILE *output = environment_output(environment_of(target));
	char label[ADDRESS_TEXT_SIZE + 16];

	snprintf(label, sizeof(label), "ping data%s%s", target->all->several ? ": " : "",
		 target->all->several ? target->name : "");
	ping_print(output, label, target->sink_region->memory, target->size);
}

static void ping_came_back(struct target *target)
{
	const struct rping_options *options = options_of(target);
	int64_t now = clock_now();
	bool same = options->validate && same_as_sent(target);

	count(target, now, same);
	if (options->validate && !same) {
		leave(target, OUTCOME_FAILED);
		return;
	}
	if (options->verbose)
		print_ping(target);
	target->done++;
	go_on(target);
}

static void go_ahead_came(struct target *target, const struct completion *completion)
{
	struct advertisement meaningless;
	enum outcome outcome = mailbox_take(&target->mailbox, target->endpoint, completion, &meaningless);

	if (outcome) {
		finish(target, outcome);
		return;
	}
	if (target->phase.state == TARGET_OFFERING_SOURCE) {
		advertise(target, SINK, TARGET_OFFERING_SINK);
	} else if (target->phase.state == TARGET_OFFERING_SINK) {
		ping_came_back(target);
	} else {
		log_error(log_of(target), target->endpoint->name, "ping %" PRIu64 ": a message out of order, while %s",
			  target->done, phase_text(&target->phase));
		finish(target, OUTCOME_FAILED);
	}
}

static void target_completed(void *owner, struct endpoint *endpoint, const struct completion *completion)
{
	struct target *target = owner;

	(void)endpoint;
	if (completion->status != COMPLETION_OK) {
		finish(target, OUTCOME_FAILED);
	} else if (completion->kind == WORK_RECEIVE) {
		go_ahead_came(target, completion);
	} else {
		target->sending--;
		if (target->phase.state == TARGET_SETTLING)
			go_on(target);
	}
}

/* The connection. */

static enum outcome offer_memory(struct target *target, uint32_t index, unsigned access, struct region **region)
{
	enum outcome outcome = region_create(target->endpoint->domain, target->size, access, region);

	if (outcome)
		return outcome;
	mailbox_write(&target->mailbox, index,
		      &(struct advertisement){
			      .address = (uintptr_t)(*region)->memory,
			      .key = (*region)->remote_key,
			      .size = target->size,
		      });
	return OUTCOME_OK;
}

static void step_over(struct target *target, int64_t *time)
{
	int64_t now = clock_now();

	*time = now - target->times.begun;
	target->times.begun = now;
}

/* Only now is the size known: the server's hello came with its acceptance. */
static void established(struct target *target, const struct endpoint_event *event)
{
	int64_t asked = options_of(target)->size;
	struct hello hello;
	enum outcome outcome;

	step_over(target, &target->times.connect);
	endpoint_path(target->endpoint, &target->path);
	patience_end(&target->patience);
	target->stock = !hello_read(event->private_data, event->private_length, HELLO_RPING, &hello);
	target->size = ping_size((uint32_t)asked, target->stock ? NULL : &hello);
	if (!target->size) {
		log_error(log_of(target), target->endpoint->name,
			  "the server takes pings of at most %" PRIu32 " bytes, and -S asks for %" PRId64,
			  hello.capacity, asked ? asked : PING_SIZE);
		leave(target, OUTCOME_FAILED);
		return;
	}
	log_debug(log_of(target), "%s: %s server, pings of %" PRIu32 " bytes", target->endpoint->name,
		  target->stock ? "stock" : "our", target->size);
	outcome = offer_memory(target, SOURCE, REGION_REMOTE_READ, &target->source_region);
	if (!outcome)
		outcome = offer_memory(target, SINK, REGION_REMOTE_WRITE, &target->sink_region);
	if (outcome) {
		finish(target, outcome);
		return;
	}
	start_ping(target);
	if (!target->ended)
		tell(target, TARGET_CONNECTED);
}

static void server_left(struct target *target)
{
	char pings[PINGS_TEXT_SIZE];

	log_error(log_of(target), target->endpoint->name, "ping %" PRIu64 ": %s: the server went away after %s",
		  target->done, phase_text(&target->phase), pings_text(target, pings));
	if (target->stock && !target->done)
		log_hint(log_of(target), "a stock server ends when a ping is longer than its own -S (64 by default): "
					 "give both ends the same -S");
	finish(target, OUTCOME_FAILED);
}

/* The address is known: what does not depend on the server's answer is made while the route is looked for. */
static enum outcome prepare(struct target *target)
{
	enum outcome outcome;

	step_over(target, &target->times.resolve_address);
	target->device = target->endpoint->domain->device;
	outcome = mailbox_create(&target->mailbox, target->endpoint->domain);
	if (!outcome)
		outcome = endpoint_open_queue(target->endpoint);
	if (!outcome)
		outcome = mailbox_open(&target->mailbox, target->endpoint);
	return outcome;
}

static enum outcome ask_to_connect(struct target *target)
{
	const struct rping_options *options = options_of(target);
	struct hello hello = {
		.tool = HELLO_RPING,
		.capacity = PING_SIZE_MOST,
		/* With --duration there may be fewer, and no server is to take that for a failure. */
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
	tell(owner, TARGET_TRIES);
}

static enum outcome connect_to_next(struct target *target);

/* Another address of it may do, or the same one later. */
static void not_connected(struct target *target, enum outcome outcome)
{
	bool absent = target->endpoint->absent;

	if (target->address_next < target->address_count) {
		outcome = connect_to_next(target);
		if (outcome)
			finish(target, outcome);
		return;
	}
	if (patience_again(&target->patience, target->phase.loop, log_of(target), target->name, absent, pause_over,
			   target)) {
		enter(target, TARGET_WAITING);
		drop_connection(target);
		tell(target, TARGET_PAUSES);
	} else {
		finish(target, outcome);
	}
}

static void target_event(void *owner, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct target *target = owner;
	enum outcome outcome = OUTCOME_OK;

	(void)endpoint;
	switch (event->kind) {
	case EVENT_ADDRESS_RESOLVED:
		outcome = prepare(target);
		break;
	case EVENT_ROUTE_RESOLVED:
		outcome = ask_to_connect(target);
		if (outcome)
			not_connected(target, outcome);
		return;
	case EVENT_ESTABLISHED:
		established(target, event);
		break;
	case EVENT_DISCONNECTED:
		if (target->phase.state == TARGET_LEAVING)
			finish(target, verdict(target));
		else
			server_left(target);
		break;
	case EVENT_FAILED:
		if (target->phase.state == TARGET_CONNECTING)
			not_connected(target, event->outcome);
		else
			outcome = target->outcome ? target->outcome : event->outcome;
		break;
	default:
		break;
	}
	if (outcome)
		finish(target, outcome);
}

static const struct endpoint_handlers target_handlers = {
	.event = target_event,
	.completion = target_completed,
};

static enum outcome connect_to(struct target *target, const struct address *address)
{
	struct endpoint_options options = rping_endpoint_options(options_of(target));
	const struct address *source = target->all->source.family ? &target->all->source : NULL;
	enum outcome outcome;

	drop_connection(target);
	address_text(address, target->name);
	enter(target, TARGET_CONNECTING);
	target->times.begun = clock_now();
	outcome = endpoint_create(ENDPOINT_CONNECTION, target->all->channel, &options, &target_handlers, target,
				  &target->endpoint);
	if (!outcome)
		outcome = endpoint_resolve(target->endpoint, source, address);
	return outcome;
}

/* A name may lead to several addresses, and not all of them to an RDMA device or to the server. */
static enum outcome connect_to_next(struct target *target)
{
	char text[ADDRESS_TEXT_SIZE];
	enum outcome outcome;

	do {
		const struct address *address = &target->addresses[target->address_next++];

		if (target->address_next > 1)
			log_hint(log_of(target), "trying the next address of %s: %s", target->address,
				 address_text(address, text));
		outcome = connect_to(target, address);
	} while (outcome && target->address_next < target->address_count);
	return outcome;
}

static void connect_to_first(struct target *target)
{
	enum outcome outcome;

	patience_try(&target->patience, options_of(target)->wait_server);
	target->address_next = 0;
	outcome = connect_to_next(target);
	if (outcome)
		finish(target, outcome);
}

static void address_found(void *owner, enum outcome outcome, const struct address *addresses, size_t count)
{
	struct target *target = owner;
	const struct family_options *family = &options_of(target)->common.family;
	enum address_family source = target->all->source.family;

	for (size_t i = 0; i < count; i++) {
		if (!path_allows(family, source, addresses[i].family))
			continue;
		target->addresses[target->address_count] = addresses[i];
		target->addresses[target->address_count++].port = target->port;
	}
	if (!outcome && !target->address_count)
		outcome = path_no_address(family, source, log_of(target), target->address);
	if (outcome)
		finish(target, outcome);
	else
		connect_to_first(target);
}

/* The way in and out. */

void target_prepare(struct target *target, struct targets *all, const char *address, uint16_t port)
{
	int64_t rate = all->options->rate;

	target->all = all;
	target->address = address;
	target->port = port;
	target->pace.period = rate ? CLOCK_NS_PER_S / rate : all->options->interval;
	target->phase = (struct phase){
		.rows = target_states,
		.loop = all->environment->loop,
		.log = &all->environment->log,
		.timeout = all->options->common.timeout,
		.expired = step_timed_out,
		.owner = target,
	};
}

void target_start(struct target *target)
{
	if (target->address_count) {
		connect_to_first(target);
		return;
	}
	enter(target, TARGET_LOOKING_UP);
	resolver_start(&target->lookup, target->phase.loop, log_of(target), target->address, ADDRESS_FORMAT_ANY,
		       target->phase.timeout, address_found, target);
}

static void cut_off_without_ping(struct target *target)
{
	char text[96];

	patience_stop(&target->patience);
	snprintf(text, sizeof(text), "ended early, before the first ping, while %s", phase_text(&target->phase));
	cut_off(target, text);
	if (!target->all->several)
		patience_tell(&target->patience, log_of(target), target_name(target));
	patience_end(&target->patience);
}

void target_interrupt(struct target *target, enum interruption reason)
{
	target->overdue = reason == INTERRUPTION_DEADLINE;
	target->last = true;
	switch ((enum target_state)target->phase.state) {
	case TARGET_WAITING:
	case TARGET_LOOKING_UP:
	case TARGET_CONNECTING:
		cut_off_without_ping(target);
		finish(target, OUTCOME_FAILED);
		break;
	case TARGET_OFFERING_SOURCE:
	case TARGET_OFFERING_SINK:
	case TARGET_SETTLING:
		/* Over soft a server that waits for the rest of a ping does not let go in the time that is left. */
		if (target->overdue)
			finish(target, verdict(target));
		break;
	case TARGET_RESTING:
		go_on(target);
		break;
	case TARGET_LEAVING:
	case TARGET_DONE:
		break;
	}
}

bool target_hears(struct target *target, const char *object, const char *text)
{
	if (target->ended || !object || (strcmp(object, target->name) && strcmp(object, target->address)))
		return false;
	if (target->phase.state == TARGET_CONNECTING && patience_hold(&target->patience, text))
		return true;
	keep_error(target, text);
	return false;
}

/* A step takes some time, or it did not come to it. */
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

void target_report(const struct target *target, struct report *report)
{
	/* Only the name comes first: what does is a label of the figures for Prometheus. */
	report_text(report, "target", target_name(target));
	ping_record_report(&target->record, target->size, report);
	if (!report->format->sparing) {
		connect_times_report(&target->times, report);
		report_flag(report, "failed", target->ended && target->outcome);
		path_report(report, &target->path);
	}
	report_text(report, "verdict", !target->ended ? NULL : target->outcome ? "fail" : "pass");
	report_text(report, "error", target->error);
}

/* The channel is still in use by the endpoints on their way out; transport_close() frees it after them. */
void target_release(struct target *target)
{
	resolver_stop(&target->lookup);
	patience_end(&target->patience);
	drop_connection(target);
	free(target->error);
	target->error = NULL;
}
