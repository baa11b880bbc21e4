/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/hello.h"
#include "cmd/rping/target.h"

/* The transport limits the time of connecting and disconnecting. */
static const struct state_row target_states[] = {
	[TARGET_WAITING] = { "waiting to connect", STATE_BIT(TARGET_CONNECTING) | STATE_BIT(TARGET_DONE) },
	[TARGET_CONNECTING] = { "connecting", STATE_BIT(TARGET_CONNECTING) | STATE_BIT(TARGET_WAITING) |
						      STATE_BIT(TARGET_CONNECTED) | STATE_BIT(TARGET_DONE) },
	[TARGET_CONNECTED] = { "connected", STATE_BIT(TARGET_SOURCE_ADVERTISED) | STATE_BIT(TARGET_DISCONNECTING) |
						    STATE_BIT(TARGET_DONE) },
	[TARGET_SOURCE_ADVERTISED] = { "waiting for the server to read the ping",
				       STATE_BIT(TARGET_SINK_ADVERTISED) | STATE_BIT(TARGET_DISCONNECTING) |
					       STATE_BIT(TARGET_DONE),
				       .waits = true },
	[TARGET_SINK_ADVERTISED] = { "waiting for the server to write the ping back",
				     STATE_BIT(TARGET_SOURCE_ADVERTISED) | STATE_BIT(TARGET_DRAINING) |
					     STATE_BIT(TARGET_PACING) | STATE_BIT(TARGET_DISCONNECTING) |
					     STATE_BIT(TARGET_DONE),
				     .waits = true },
	[TARGET_DRAINING] = { "waiting for send completions",
			      STATE_BIT(TARGET_SOURCE_ADVERTISED) | STATE_BIT(TARGET_PACING) |
				      STATE_BIT(TARGET_DISCONNECTING) | STATE_BIT(TARGET_DONE),
			      .waits = true },
	[TARGET_PACING] = { "waiting for the next slot", STATE_BIT(TARGET_SOURCE_ADVERTISED) |
								 STATE_BIT(TARGET_DRAINING) | STATE_BIT(TARGET_PACING) |
								 STATE_BIT(TARGET_DISCONNECTING) |
								 STATE_BIT(TARGET_DONE) },
	[TARGET_DISCONNECTING] = { "disconnecting", STATE_BIT(TARGET_DONE) },
	[TARGET_DONE] = { "done", 0 },
};

const char *target_name(const struct target *target)
{
	return target->dial.name[0] ? target->dial.name : target->address;
}

void target_enter(struct target *target, enum target_state state)
{
	target->all->in_state[target->state.current]--;
	target->all->in_state[state]++;
	state_enter(&target->state, state, target->endpoint ? target->endpoint->name : target->address);
}

static bool target_is_done(const struct target *target)
{
	return target->state.current == TARGET_DONE;
}

static void target_notify(struct target *target)
{
	target->all->changed(target->all->context, target);
}

/* ---- errors ---- */

static void record_error(struct target *target, const char *text)
{
	if (WITH_REPORT && !target->error)
		target->error = strdup(text);
}

static void error_reported(const struct log *log, const struct error *error)
{
	struct target *target = log->context;
	char text[ERROR_TEXT_SIZE];

	if (!target_is_done(target))
		record_error(target, error_text(error, text));
	log_report(&target->all->environment->log, error);
}

static void hint_reported(const struct log *log, const char *text)
{
	const struct target *target = log->context;

	log_hint(&target->all->environment->log, "%s", text);
}

static const struct log_sink target_log_sink = { .error = error_reported, .hint = hint_reported };

/* ---- end ---- */

/* Destroys the endpoint and its memory, and counts an unanswered ping as lost. Does nothing without a connection. */
static void drop_connection(struct target *target)
{
	state_stop(&target->state);
	loop_timer_stop(&target->pace_timer);
	loop_timer_stop(&target->duration);
	if (target->sent_at)
		target->record.counts.lost++;
	target->sent_at = 0;
	endpoint_destroy(target->endpoint);
	target->endpoint = NULL;
	control_destroy(&target->control);
	region_destroy(target->source_region);
	target->source_region = NULL;
	region_destroy(target->sink_region);
	target->sink_region = NULL;
}

/* Of a size no ping has been answered, which may be the reason. */
static void hint_at_size(const struct target *target)
{
	const struct log *log = target->state.log;
	bool in_ping = target->state.current >= TARGET_SOURCE_ADVERTISED && target->state.current <= TARGET_DRAINING;

	if (!in_ping || (target->done && target->done != target->first))
		return;
	if (target->stock && target->size > PING_SIZE_STOCK && target->endpoint->state == ENDPOINT_DISCONNECTED)
		log_hint(log, "a stock server ends when a ping is longer than its own -S (64 by default): "
			      "give both ends the same -S");
	else if (target->passed)
		log_hint(log,
			 "pings of up to %" PRIu32 " bytes passed, of %" PRIu32
			 " none: a hop with a smaller MTU may drop long packets",
			 target->passed, target->size);
	else if (target->size > PING_SIZE)
		log_hint(log, "if pings with -S %d pass, a hop with a smaller MTU may drop long packets", PING_SIZE);
}

void target_finish(struct target *target, enum outcome outcome)
{
	const struct error *error = dial_error(&target->dial);
	char text[ERROR_TEXT_SIZE];

	if (target_is_done(target))
		return;
	if (outcome == OUTCOME_FAILED)
		hint_at_size(target);
	if (WITH_REPORT && outcome && error)
		record_error(target, error_text(error, text));
	if (outcome)
		dial_give_up(&target->dial);
	else
		dial_stop(&target->dial);
	target_enter(target, TARGET_DONE);
	drop_connection(target);
	target->outcome = outcome;
	target->failed = outcome;
	target->verdict = outcome ? "fail" : "pass";
	target_notify(target);
}

/* Returns the requested number of pings, of a sweep that of each size, or 0. */
static uint64_t requested_count(const struct target *target)
{
	const struct rping_options *options = target->all->options;

	if (rping_sweep(options) && !options->count && !EXTRA(options->duration))
		return SWEEP_COUNT;
	return (uint64_t)options->count;
}

static uint64_t answered(const struct target *target)
{
	return target->record.counts.answered.count;
}

bool target_has_more(const struct target *target)
{
	if (EXTRA(target->duration_passed))
		return false;
	return !requested_count(target) || target->done < target->first + requested_count(target);
}

uint32_t target_next_size(const struct target *target)
{
	uint32_t last = rping_sweep(target->all->options);
	uint32_t next = target->size < last ? UINT32_C(2) << (31 - __builtin_clz(target->size)) : 0;

	if (next > last)
		next = last;
	return next <= target->longest ? next : 0;
}

const char *target_pings_text(const struct target *target, char text[PINGS_TEXT_SIZE])
{
	uint64_t requested = rping_sweep(target->all->options) ? 0 : requested_count(target);

	return rping_pings_text(answered(target), requested, text);
}

/* Reports an interruption at that progress. run.c has reported a passed deadline, once for all targets. */
static void report_interrupted(struct target *target, const char *text)
{
	if (target->deadline_passed)
		record_error(target, text);
	else
		log_error(target->state.log, target_name(target), "%s: interrupted", text);
}

/* True if all requested pings are done. An open-ended run is always complete. */
static bool is_complete(const struct target *target)
{
	bool open_ended = !requested_count(target) && !EXTRA(target->all->options->duration);

	return open_ended || (!target_has_more(target) && !target_next_size(target));
}

/* Returns the outcome of a target after a disconnect, and reports an early end. */
static enum outcome target_verdict(struct target *target)
{
	char pings[PINGS_TEXT_SIZE];
	char text[PINGS_TEXT_SIZE + 32];

	if (target->outcome)
		return target->outcome;
	if (!target->deadline_passed && answered(target) && is_complete(target))
		return OUTCOME_OK;
	snprintf(text, sizeof(text), "ended early, after %s", target_pings_text(target, pings));
	report_interrupted(target, text);
	return OUTCOME_FAILED;
}

void target_disconnect(struct target *target, enum outcome outcome)
{
	target->outcome = outcome;
	loop_timer_stop(&target->pace_timer);
	target_enter(target, TARGET_DISCONNECTING);
	outcome = endpoint_disconnect(target->endpoint);
	if (outcome)
		target_finish(target, target->outcome ? target->outcome : outcome);
}

static void target_timed_out(void *context)
{
	struct target *target = context;

	ping_timed_out(&target->state, target->endpoint, target->done);
	target_finish(target, OUTCOME_FAILED);
}

/* ---- connection ---- */

static void step_finished(struct target *target, int64_t *time)
{
	int64_t now = clock_now();

	if (!WITH_REPORT)
		return;
	*time = now - target->times.begun;
	target->times.begun = now;
}

/* The ping size depends on the server's hello, which arrives with the REP. */
static void established(struct target *target, const struct endpoint_event *event)
{
	int64_t requested = target->all->options->size;
	uint32_t last = rping_sweep(target->all->options), maximum = PING_SIZE_STOCK_MAX;
	struct hello hello;

	step_finished(target, &target->times.connect);
	target_enter(target, TARGET_CONNECTED);
	if (WITH_REPORT)
		endpoint_path(target->endpoint, &target->path);
	dial_stop(&target->dial);
	target->stock = !hello_read(event->private_data, event->private_length, HELLO_RPING, &hello);
	if (target->stock && hello_read(event->private_data, event->private_length, HELLO_UCMATOSE, &hello)) {
		log_error(target->state.log, target->endpoint->name, "the server is ucmatose, not rping");
		target_disconnect(target, OUTCOME_FAILED);
		return;
	}
	if (!target->stock)
		maximum = hello.capacity;
	maximum = ping_limit(target->endpoint->domain, maximum);
	target->size = ping_size((uint32_t)requested, maximum, target->stock);
	target->shortest = target->size;
	/* 0-TO: a longer ping than the default may end a stock server. */
	target->longest = !last || (target->stock && !requested) ? target->size : last < maximum ? last : maximum;
	if (!target->size) {
		log_error(target->state.log, target->endpoint->name,
			  "the server accepts pings of at most %" PRIu32 " bytes, not %" PRId64, maximum,
			  requested ? requested : PING_SIZE);
		target_disconnect(target, OUTCOME_FAILED);
		return;
	}
	if (last > maximum)
		log_hint(target->state.log, "sizes above %" PRIu32 " are left out: the server accepts no longer pings",
			 maximum);
	log_debug(target->state.log, "%s: %s server, pings of %" PRIu32 " bytes", target->endpoint->name,
		  target->stock ? "stock" : "our", target->size);
	target_notify(target);
	/* The run ends if it cannot drop its privileges. */
	if (!target->all->environment->ended)
		target_cycle_begin(target);
}

static void server_disconnected(struct target *target)
{
	char pings[PINGS_TEXT_SIZE], cause[ENDPOINT_TIMEOUT_CAUSE_SIZE];

	log_cause(target->state.log, target->endpoint->name, state_text(&target->state), 0,
		  "the server disconnected after %s%s", target_pings_text(target, pings),
		  endpoint_timeout_cause(target->endpoint, cause));
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
		/* With --duration or in a sweep the number is unknown: the server must not expect -C pings. */
		.count = options->count && !EXTRA(options->duration) && !rping_sweep(options)
				 ? (uint64_t)options->count + (uint64_t)EXTRA(options->warmup)
				 : 0,
	};
	uint8_t bytes[HELLO_SIZE];

	step_finished(target, &target->times.resolve_route);
	hello_write(&hello, bytes);
	return endpoint_connect(target->endpoint, bytes, sizeof(bytes));
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
		if (target->state.current == TARGET_DISCONNECTING)
			target_finish(target, target_verdict(target));
		else
			server_disconnected(target);
		break;
	case EVENT_FAILED:
		if (target->state.current == TARGET_CONNECTING)
			dial_failed(&target->dial, event->outcome,
				    hello_says_busy(event->private_data, event->private_length));
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

static enum outcome target_dial_connect(void *context)
{
	struct target *target = context;
	struct endpoint_options options = rping_endpoint_options(target->all->options);
	const struct address *source = target->all->source.family ? &target->all->source : NULL;
	enum outcome outcome;

	options.log = &target->dial.log;
	drop_connection(target);
	target_enter(target, TARGET_CONNECTING);
	target->times = (struct connect_times){ .begun = clock_now() };
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
	drop_connection(target);
	target_notify(target);
}

static void target_dial_resumed(void *context)
{
	struct target *target = context;

	if (loop_deadline_passed(target->state.loop))
		dial_begin(&target->dial); /* which gives up */
	else
		target->all->enqueue(target->all->context, target);
}

static void target_dial_failed(void *context, enum outcome outcome)
{
	target_finish(context, outcome);
}

static const struct dial_handlers target_dial_handlers = {
	.connect = target_dial_connect,
	.paused = EXTRA(target_dial_paused),
	.resumed = EXTRA(target_dial_resumed),
	.failed = target_dial_failed,
};

/* ---- interface ---- */

void target_prepare(struct target *target, struct targets *all, const char *address, uint16_t port)
{
	all->in_state[TARGET_WAITING]++;
	target->all = all;
	target->address = address;
	target->log = all->environment->log;
	if (WITH_REPORT) {
		target->log.sink = &target_log_sink;
		target->log.context = target;
	}
	dial_initialise(&target->dial, &(struct dial_options){
					       .handlers = &target_dial_handlers,
					       .context = target,
					       .environment = all->environment,
					       .log = &target->log,
					       .common = &all->options->common,
					       .format = ADDRESS_FORMAT_ANY,
					       .host = address,
					       .port = port,
					       .server = all->options->addresses.count == 1 ? "rping -s" : NULL,
					       .transport = all->environment->transport,
					       .wait_server = all->options->wait_server,
				       });
	target->first = (uint64_t)EXTRA(all->options->warmup);
	target->pace.period = EXTRA(all->options->interval);
	target->state = (struct state){
		.rows = target_states,
		.loop = all->environment->loop,
		.log = &target->log,
		.timeout = all->options->common.timeout,
		.expired = target_timed_out,
		.context = target,
	};
}

void target_look_up(struct target *target)
{
	dial_look_up(&target->dial);
}

void target_looked_up(struct target *target)
{
	enum outcome outcome = dial_looked_up(&target->dial, target->all->source.family);

	if (outcome)
		target_finish(target, outcome);
}

void target_start(struct target *target)
{
	dial_begin(&target->dial);
}

static void interrupt_before_ping(struct target *target)
{
	char text[96];

	dial_interrupt(&target->dial);
	snprintf(text, sizeof(text), "ended early, before the first ping, while %s", state_text(&target->state));
	report_interrupted(target, text);
	if (!target->all->several)
		dial_hint(&target->dial);
	dial_stop(&target->dial);
}

void target_interrupt(struct target *target, enum interruption reason)
{
	target->deadline_passed = reason == INTERRUPTION_DEADLINE;
	target->last = true;
	switch ((enum target_state)target->state.current) {
	case TARGET_WAITING:
	case TARGET_CONNECTING:
	case TARGET_CONNECTED:
		interrupt_before_ping(target);
		target_finish(target, OUTCOME_FAILED);
		break;
	case TARGET_SOURCE_ADVERTISED:
	case TARGET_SINK_ADVERTISED:
	case TARGET_DRAINING:
		/*
		 * A signal: the ping is completed first. A deadline: over soft, a server that waits for the rest of a
		 * ping would not answer a DREQ in the remaining time.
		 */
		if (target->deadline_passed)
			target_finish(target, target_verdict(target));
		break;
	case TARGET_PACING:
		target_cycle_continue(target);
		break;
	default:
		break;
	}
}

/*
 * Text has one short line for each target. For Prometheus the index is a label, too: an address may be given twice, and
 * labels must be unique.
 */
static const struct figure target_figures[] = {
	FIGURE(TEXT, "index", struct target, index, .flags = FIGURE_NOT_TEXT | FIGURE_NOT_JSON | FIGURE_LABEL),
	FIGURE(TEXT, "target", struct target, name, .flags = FIGURE_LABEL),
	FIGURE(COUNT, "answered", struct target, record.counts.answered.count, .flags = FIGURE_ONLY_TEXT),
	FIGURE(COUNT, "lost", struct target, record.counts.lost, .flags = FIGURE_ONLY_TEXT),
	FIGURES_OF_ROWS("pings", struct target, record.counts, ping_count_figures, .flags = FIGURE_NOT_TEXT),
	FIGURE(SAMPLES, "round_trip", struct target, record.round_trip, .flags = FIGURE_NOT_JSON),
	FIGURES_OF_ROWS("connect", struct target, times, connect_figures, .flags = FIGURE_NOT_TEXT),
	FIGURE(FLAG, "failed", struct target, failed, .flags = FIGURE_NOT_TEXT),
	FIGURES_OF_CODE(OBJECT, "path", struct target, path, path_report, .flags = FIGURE_NOT_TEXT),
	FIGURE(TEXT, "verdict", struct target, verdict),
	FIGURE(TEXT, "error", struct target, error),
	FIGURES_END,
};

void target_report(struct target *target, const char *index, struct report *report)
{
	char label[ERROR_OBJECT_SIZE];
	struct address address;

	target->index = index;
	target->name = target_name(target);
	/* A label must not change when a name has been looked up: it would begin a new series. */
	if (report->format->labels) {
		bool numeric = address_parse(target->address, ADDRESS_FORMAT_IP, &address);

		address.port = target->dial.options.port;
		target->name = numeric ? address_text(&address, label)
				       : log_text(label, sizeof(label), "%s:%u", target->address, address.port);
	}
	target->record.counts.size = target->size;
	figures_report(report, target_figures, target, NULL);
	if (target->round_trips && report->format == &report_json)
		report_histogram(report, "round_trip", target->round_trips);
}

/* Endpoints still use the channel while they are destroyed: transport_close() frees it. */
void target_release(struct target *target)
{
	dial_stop(&target->dial);
	drop_connection(target);
	free(target->error);
	target->error = NULL;
}
