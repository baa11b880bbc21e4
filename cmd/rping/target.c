/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/target.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "cmd/hello.h"
#include "core/payload.h"
#include "core/units.h"

/* The transport limits the time of connecting and disconnecting. */
static const struct peer_state states[TARGET_STATES] = {
	[TARGET_WAITING] = { "waiting to connect" },
	[TARGET_CONNECTING] = { "connecting" },
	[TARGET_READ] = { "waiting for the server to read the ping", .waits = true },
	[TARGET_WRITTEN] = { "waiting for the server to write the ping back", .waits = true },
	[TARGET_PACING] = { "waiting for the next slot" },
	[TARGET_DISCONNECTING] = { "disconnecting" },
	[TARGET_DONE] = { "done" },
};

/* The client's messages. The server's answer proves the delivery of what was in one before. */
enum {
	SOURCE,
	SINK,
};

enum {
	SWEEP_COUNT = 1000, /* pings of each size without -C and --duration */
	SINK_FILL = 0xff,   /* fills the sink before a ping, so that -V detects a server that writes nothing */
};

const char *target_name(const struct target *target)
{
	return target->dial.name[0] ? target->dial.name : target->address;
}

static void target_enter(struct target *target, enum target_state state)
{
	target->client->in_state[target->peer.state]--;
	target->client->in_state[state]++;
	peer_enter(&target->peer, state, target->peer.endpoint ? target->peer.endpoint->name : target->address);
}

/* ---- how many pings, and of which size ---- */

/* Returns the requested number of pings, of a sweep that of each size, or 0. */
static uint64_t requested_count(const struct target *target)
{
	const struct rping_options *options = target->peer.options;

	if (rping_sweep(options) && !options->count && !options->duration)
		return SWEEP_COUNT;
	return (uint64_t)options->count;
}

uint64_t target_requested(const struct target *target)
{
	return rping_sweep(target->peer.options) ? 0 : (uint64_t)target->peer.options->count;
}

static const char *pings_text(const struct target *target, char text[PINGS_TEXT_SIZE])
{
	return peer_pings_text(target->counts.answered.count, target_requested(target), text);
}

/* True if -C or --duration, of a sweep that of this size, is not reached, or there is none. */
static bool has_more(const struct target *target)
{
	uint64_t requested = requested_count(target);

	if (EXTRA(target->until) && clock_now() >= target->until)
		return false;
	return !requested || target->peer.pings < target->first + requested;
}

static void write_advertisement(struct target *target, uint32_t index, const struct region *region, size_t offset)
{
	peer_write(&target->peer, index,
		   &(struct advertisement){
			   .address = (uintptr_t)region->memory + offset,
			   .key = region->remote_key,
			   .size = target->size,
		   });
}

/* What is the same for all pings of a size. */
static void begin_size(struct target *target)
{
	payload_ramp_write(target->source->memory, target->size);
	target->source_offset = 0;
	write_advertisement(target, SINK, target->sink, 0);
}

/*
 * The pings of a size are answered. Begins the next size of a sweep, the next power of two or the last one; false if
 * there is none.
 */
static bool next_size(struct target *target)
{
	uint32_t last = rping_sweep(target->peer.options);
	uint32_t next = MIN(UINT32_C(2) << (31 - __builtin_clz(target->size)), last);

	if (last)
		reporting_end_interval(target->peer.environment->reporting);
	if (next <= target->size || next > target->longest)
		return false;
	target->until = 0;
	target->first = target->peer.pings;
	target->passed = target->size;
	target->size = next;
	begin_size(target);
	return true;
}

/* ---- errors ---- */

static void record_error(struct target *target, const char *text)
{
	if (WITH_REPORT && !target->error)
		target->error = strdup(text);
}

/* Reports the transport's error, if any. The last error of the run is then the target's. */
static void note_error(struct target *target)
{
	const struct environment *environment = target->client->environment;
	char text[ERROR_TEXT_SIZE];

	environment_report_error(environment);
	if (WITH_REPORT)
		record_error(target, error_text(&environment->log.errors->last, text));
}

/* Of a size no ping has been answered, which may be the reason. */
static void hint_at_size(const struct target *target)
{
	const struct peer *peer = &target->peer;
	bool in_ping = peer->state == TARGET_READ || peer->state == TARGET_WRITTEN;

	if (!in_ping || loop_deadline_passed(peer->environment->loop) || (peer->pings && peer->pings != target->first))
		return;
	if (target->stock && target->size > PING_SIZE_STOCK && peer->endpoint->state == ENDPOINT_DISCONNECTED)
		log_hint(peer->log, "a stock server ends when a ping is longer than its own -S (64 by default): "
				    "give both ends the same -S");
	else if (target->passed)
		log_hint(peer->log,
			 "pings of up to %" PRIu32 " bytes passed, of %" PRIu32
			 " none: a hop with a smaller MTU may drop long packets",
			 target->passed, target->size);
	else if (target->size > PING_SIZE)
		log_hint(peer->log, "if pings with -S %d pass, a hop with a smaller MTU may drop long packets",
			 PING_SIZE);
}

/* Reports how far the target came. run.c has reported a passed deadline, once for all targets. */
static enum outcome ended_early(struct target *target)
{
	char pings[PINGS_TEXT_SIZE], text[PINGS_TEXT_SIZE + 96];

	if (target->peer.state <= TARGET_CONNECTING)
		log_text(text, sizeof(text), "ended early, before the first ping, while %s",
			 peer_state_text(&target->peer));
	else
		log_text(text, sizeof(text), "ended early, after %s", pings_text(target, pings));
	if (target->deadline_passed)
		record_error(target, text);
	else
		log_error(target->peer.log, target_name(target), "%s: interrupted", text);
	return OUTCOME_FAILED;
}

/* ---- the connection ---- */

/* Destroys the endpoint and its memory, and counts an unanswered ping as lost. Does nothing without a connection. */
static void drop_connection(struct target *target)
{
	target->counts.lost += target->sent_at != 0;
	target->sent_at = 0;
	peer_close(&target->peer);
	region_destroy(target->source);
	region_destroy(target->sink);
	target->source = target->sink = NULL;
}

void target_wait(void *context)
{
	struct target *target = context;

	target_enter(target, TARGET_WAITING);
	drop_connection(target);
}

enum outcome target_connect(void *context)
{
	struct target *target = context;
	const struct rping_client *client = target->client;
	struct endpoint_options options = peer_endpoint_options(client->options);
	enum outcome outcome;

	drop_connection(target);
	target_enter(target, TARGET_CONNECTING);
	target->times = (struct connect_times){ 0 };
	outcome = endpoint_create(ENDPOINT_CONNECTION, client->channel, &options, client->endpoint_handlers, target,
				  &target->peer.endpoint);
	if (!outcome)
		outcome = endpoint_resolve(target->peer.endpoint, client->source.family ? &client->source : NULL,
					   &target->dial.address);
	return outcome;
}

enum outcome target_open(struct target *target)
{
	target->device = target->peer.endpoint->domain->device;
	return peer_open(&target->peer);
}

enum outcome target_request(struct target *target)
{
	const struct rping_options *options = target->peer.options;
	struct hello hello = {
		.tool = HELLO_RPING,
		.capacity = PING_SIZE_MAX,
		/* With --duration or in a sweep the number is unknown: the server must not expect -C pings. */
		.count = options->count && !options->duration && !rping_sweep(options)
				 ? (uint64_t)options->count + (uint64_t)options->warmup
				 : 0,
	};
	uint8_t bytes[HELLO_SIZE];

	hello_write(&hello, bytes);
	return endpoint_connect(target->peer.endpoint, bytes, sizeof(bytes));
}

/* With OUTCOME_OK, the pings that were answered decide the outcome. */
static enum outcome target_disconnect(struct target *target, enum outcome outcome)
{
	target->outcome = outcome;
	if (outcome)
		note_error(target);
	target_enter(target, TARGET_DISCONNECTING);
	return endpoint_disconnect(target->peer.endpoint);
}

/* The size of a ping depends on the server's hello, which arrives with the REP. */
static enum outcome choose_size(struct target *target, const struct endpoint_event *event)
{
	const struct peer *peer = &target->peer;
	uint32_t requested = (uint32_t)peer->options->size, last = rping_sweep(peer->options), maximum;
	struct hello hello;

	target->stock = !hello_read(event->private_data, event->private_length, HELLO_RPING, &hello);
	maximum = ping_limit(peer->endpoint->domain, target->stock ? PING_SIZE_STOCK_MAX : hello.capacity);
	if (target->stock && hello_read(event->private_data, event->private_length, HELLO_UCMATOSE, &hello))
		return peer_error(peer, "the server is ucmatose, not rping");
	target->size = ping_size(requested, maximum, target->stock);
	target->shortest = target->size;
	/* 0-TO: a longer ping than the default may end a stock server. */
	target->longest = target->stock && !requested ? target->size : MIN(MAX(target->size, last), maximum);
	if (!target->size)
		return peer_error(peer, "the server accepts pings of at most %" PRIu32 " bytes, not %" PRIu32, maximum,
				  requested ? requested : PING_SIZE);
	if (last > maximum)
		log_hint(peer->log, "sizes above %" PRIu32 " are left out: the server accepts no longer pings",
			 maximum);
	log_debug(peer->log, "%s: %s server, pings of %" PRIu32 " bytes", peer->endpoint->name,
		  target->stock ? "stock" : "our", target->size);
	return OUTCOME_OK;
}

enum outcome target_established(struct target *target, const struct endpoint_event *event)
{
	struct domain *domain = target->peer.endpoint->domain;
	enum outcome outcome;

	if (WITH_REPORT)
		endpoint_path(target->peer.endpoint, &target->path);
	dial_stop(&target->dial);
	target_enter(target, TARGET_PACING);
	outcome = choose_size(target, event);
	if (outcome)
		return target_disconnect(target, outcome);
	outcome = region_create(domain, target->longest + PAYLOAD_RAMP, REGION_REMOTE_READ, &target->source);
	if (!outcome)
		outcome = region_create(domain, target->longest, REGION_REMOTE_WRITE, &target->sink);
	if (!outcome)
		begin_size(target);
	return outcome;
}

/* ---- the pings ---- */

/* Posts one advertisement. The server's answer proves delivery; one signalled send in many frees the send queue. */
static enum outcome advertise(struct target *target, uint32_t index, enum target_state state)
{
	struct work send = peer_send(&target->peer, index);

	send.unsignalled = index == SOURCE || target->peer.pings % RPING_SIGNAL_EVERY != RPING_SIGNAL_EVERY - 1;
	target_enter(target, state);
	return endpoint_post(target->peer.endpoint, &send, 1);
}

/* Slots begin at fixed times: a slow ping does not shift later ones, and missed ones are skipped. */
static void take_slot(struct target *target, int64_t now)
{
	int64_t period = EXTRA(target->peer.options->interval);

	if (!period)
		return;
	if (!target->slot)
		target->slot = now;
	target->slot += ((now - target->slot) / period + 1) * period;
}

static enum outcome start_ping(struct target *target)
{
	const struct rping_options *options = target->peer.options;
	struct ping_counts *counts = &target->counts;
	bool first = target->peer.pings == target->first;
	int64_t now;

	if (first && rping_sweep(options)) {
		reporting_begin_interval(target->peer.environment->reporting);
		target->slot = 0; /* the slots of a size begin with its first ping */
	}
	target->source_offset = payload_ping_write(target->source->memory, target->size,
						   ping_number(target->peer.pings), target->source_offset);
	write_advertisement(target, SOURCE, target->source, target->source_offset);
	if (options->validate || options->verbose)
		memset(target->sink->memory, SINK_FILL, target->size);
	now = clock_now();
	take_slot(target, now);
	if (target->peer.pings >= (uint64_t)options->warmup) {
		if (options->duration && first)
			target->until = now + options->duration;
		if (WITH_REPORT && !counts->answered.from)
			counts->answered.from = now;
		target->sent_at = now;
		counts->sent++;
	}
	return advertise(target, SOURCE, TARGET_READ);
}

enum outcome target_next(struct target *target)
{
	struct loop *loop = target->peer.environment->loop;
	int64_t now, wait;

	if (!has_more(target) && !next_size(target))
		target->complete = target->last = true;
	if (target->last)
		return target_disconnect(target, OUTCOME_OK);
	now = EXTRA(target->slot) ? clock_now() : 0;
	if (now >= EXTRA(target->slot))
		return start_ping(target);
	wait = (target->until ? MIN(target->slot, target->until) : target->slot) - now;
	target_enter(target, TARGET_PACING);
	loop_timer_start(loop, &target->peer.timer, wait, target->client->expired, target);
	loop_wake(loop, wait);
	return OUTCOME_OK;
}

enum outcome target_expire(struct target *target)
{
	return target->peer.state == TARGET_PACING ? target_next(target) : peer_timed_out(&target->peer);
}

/* In the JSON stream, and as a line on the terminal, as ping's. */
static void show_ping(const struct target *target, int64_t round_trip, bool verified)
{
	struct environment *environment = target->peer.environment;
	struct report *record = environment_begin_record(environment, "ping");
	char host[ADDRESS_TEXT_SIZE], time[UNITS_TEXT_SIZE];

	if (record) {
		report_text(record, "target", target_name(target));
		report_count(record, "sequence", target->peer.pings);
		report_time(record, "round_trip", round_trip);
		report_flag(record, "verified", verified);
		report_close(record);
	}
	if (WITH_EXTRAS && environment_live(environment) == LIVE_EVENTS)
		environment_print(environment, "%" PRIu32 " bytes from %s: seq=%" PRIu64 " time=%s", target->size,
				  has_several(target->client) ? target_name(target)
							      : address_host(&target->dial.address, host),
				  target->peer.pings, units_time(round_trip, time));
}

/*
 * A round trip is the time from posting the source advertisement to receiving the last go-ahead: three messages in each
 * direction, without verifying and printing.
 */
static void count_ping(struct target *target, int64_t now, bool verified)
{
	struct ping_counts *counts = &target->counts;
	int64_t round_trip = now - target->sent_at;

	if (!target->sent_at) {
		counts->warmup++;
		return;
	}
	target->sent_at = 0;
	counts->answered.count++;
	counts->verified += verified;
	if (!WITH_REPORT)
		return;
	counts->answered.to = MAX(now, target->slot);
	counts->answered.bytes += target->size;
	samples_add(&target->round_trip, round_trip);
	histogram_add(&target->client->figures.round_trip, round_trip);
	if (target->histogram && !rping_sweep(target->peer.options))
		histogram_add(target->histogram, round_trip);
	show_ping(target, round_trip, verified);
}

/* With several targets the label names the target; else the line has the form of the stock tool. */
static void print_ping(const struct target *target)
{
	char label[ADDRESS_TEXT_SIZE + 16] = "ping data";

	if (has_several(target->client))
		log_text(label, sizeof(label), "ping data: %s", target_name(target));
	ping_print(target->peer.environment->output, label, target->sink->memory, target->size);
}

static enum outcome ping_finished(struct target *target)
{
	const struct rping_options *options = target->peer.options;
	int64_t now = clock_now();
	bool same = options->validate && peer_verify(&target->peer, target->sink->memory, target->size);

	count_ping(target, now, same);
	if (options->validate && !same)
		return target_disconnect(target, OUTCOME_FAILED);
	if (options->verbose)
		print_ping(target);
	target->peer.pings++;
	return target_next(target);
}

enum outcome target_complete(struct target *target, const struct completion *completion)
{
	struct advertisement ignored;
	enum outcome outcome;

	if (completion->status != COMPLETION_OK)
		return OUTCOME_FAILED;
	if (completion->kind == WORK_SEND)
		return OUTCOME_OK;
	outcome = peer_receive(&target->peer, completion, &ignored);
	if (outcome)
		return outcome;
	peer_print_completion(&target->peer, "send");
	peer_print_completion(&target->peer, "recv");
	if (target->peer.state == TARGET_READ)
		return advertise(target, SINK, TARGET_WRITTEN);
	return target->peer.state == TARGET_WRITTEN ? ping_finished(target) : peer_out_of_order(&target->peer);
}

/* ---- the end ---- */

enum outcome target_interrupt(struct target *target, enum interruption reason)
{
	enum target_state state = target->peer.state;

	target->deadline_passed = reason == INTERRUPTION_DEADLINE;
	target->last = true;
	if (state == TARGET_PACING)
		return target_next(target);
	if (state >= TARGET_DISCONNECTING)
		return OUTCOME_OK;
	if (state <= TARGET_CONNECTING) {
		ended_early(target);
		if (!has_several(target->client))
			dial_hint(&target->dial);
		dial_stop(&target->dial);
		return OUTCOME_FAILED;
	}
	/*
	 * A signal: the ping is completed first. A deadline: over soft, a server that waits for the rest of a ping
	 * would not answer a DREQ in the remaining time.
	 */
	return target->deadline_passed ? ended_early(target) : OUTCOME_OK;
}

enum outcome target_verdict(struct target *target)
{
	const struct peer *peer = &target->peer;
	char pings[PINGS_TEXT_SIZE], cause[ENDPOINT_TIMEOUT_CAUSE_SIZE];

	if (peer->state != TARGET_DISCONNECTING) {
		log_cause(peer->log, peer->endpoint->name, peer_state_text(peer), 0,
			  "the server disconnected after %s%s", pings_text(target, pings),
			  endpoint_timeout_cause(peer->endpoint, cause));
		return OUTCOME_FAILED;
	}
	if (target->outcome)
		return target->outcome;
	if (target->complete && target->counts.answered.count && !target->deadline_passed)
		return OUTCOME_OK;
	return ended_early(target);
}

void target_end(struct target *target, enum outcome outcome)
{
	if (outcome && target->outcome)
		outcome = target->outcome;
	if (outcome) {
		dial_give_up(&target->dial);
		note_error(target);
	} else {
		dial_stop(&target->dial);
	}
	if (outcome == OUTCOME_FAILED)
		hint_at_size(target);
	target_enter(target, TARGET_DONE);
	drop_connection(target);
	target->outcome = outcome;
	target->failed = outcome;
	target->verdict = outcome ? "fail" : "pass";
}

void target_prepare(struct target *target, struct rping_client *client, char *address, uint16_t port)
{
	const struct rping_options *options = client->options;

	client->in_state[TARGET_WAITING]++;
	target->client = client;
	target->address = address;
	peer_prepare(&target->peer, client->environment, options, &client->environment->log, states, client->expired);
	target->dial.options = (struct dial_options){
		.handlers = client->dial_handlers,
		.context = target,
		.environment = client->environment,
		.common = &options->common,
		.format = ADDRESS_FORMAT_ANY,
		.host = address,
		.port = port,
		.server = options->addresses.count == 1 ? "rping -s" : NULL,
		.wait_server = options->wait_server,
	};
	target->first = (uint64_t)options->warmup;
	target->complete = !requested_count(target) && !options->duration;
}

/* Endpoints still use the channel while they are destroyed: transport_close() frees it. */
void target_release(struct target *target)
{
	dial_stop(&target->dial);
	drop_connection(target);
	free(target->error);
	free(target->address);
}

/* ---- figures ---- */

const struct figure ping_count_figures[] = {
	FIGURE(GAUGE, "size", struct ping_counts, size, .forms = IN_FULL),
	FIGURE(GAUGE, "ping_size", struct ping_counts, size, .forms = IN_STEP),
	FIGURE(COUNT, "warmup", struct ping_counts, warmup, .forms = IN_FULL),
	FIGURE(COUNT, "sent", struct ping_counts, sent, .forms = IN_FULL),
	FIGURE(COUNT, "answered", struct ping_counts, answered.count),
	FIGURE(COUNT, "verified", struct ping_counts, verified, .forms = IN_FULL),
	FIGURE(COUNT, "lost", struct ping_counts, lost, .forms = IN_FULL | IN_ROW),
	FIGURE(RATE, "rate", struct ping_counts, answered, .flags = FIGURE_WHOLE),
	FIGURE(BANDWIDTH, "bytes", struct ping_counts, answered, .forms = IN_PROGRAMS, .flags = FIGURE_WHOLE),
	FIGURE(BANDWIDTH, "bandwidth", struct ping_counts, answered, .forms = IN_STEP, .flags = FIGURE_WHOLE),
	FIGURES_END,
};

const struct figure connect_figures[] = {
	FIGURE(TIME, "resolve_address", struct connect_times, steps[EVENT_ADDRESS_RESOLVED]),
	FIGURE(TIME, "resolve_route", struct connect_times, steps[EVENT_ROUTE_RESOLVED]),
	FIGURE(TIME, "connect", struct connect_times, steps[EVENT_ESTABLISHED]),
	FIGURES_END,
};

/*
 * Text has one short line for each target. For Prometheus the index is a label, too: an address may be given twice, and
 * labels must be unique.
 */
static const struct figure target_figures[] = {
	FIGURE(TEXT, "index", struct target, index, .forms = IN_PROMETHEUS, .flags = FIGURE_LABEL),
	FIGURE(TEXT, "target", struct target, name, .flags = FIGURE_LABEL),
	FIGURE(COUNT, "answered", struct target, counts.answered.count, .forms = IN_TEXT),
	FIGURE(COUNT, "lost", struct target, counts.lost, .forms = IN_TEXT),
	FIGURES_OF_ROWS("pings", struct target, counts, ping_count_figures, .forms = IN_PROGRAMS),
	FIGURE(SAMPLES, "round_trip", struct target, round_trip, .forms = IN_TEXT | IN_PROMETHEUS),
	FIGURES_OF_ROWS("connect", struct target, times, connect_figures, .forms = IN_PROGRAMS),
	FIGURE(FLAG, "failed", struct target, failed, .forms = IN_PROGRAMS),
	FIGURES_OF_CODE(OBJECT, "path", struct target, path, common_report_path, .forms = IN_PROGRAMS),
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
	if (report->format->form == IN_PROMETHEUS) {
		bool numeric = address_parse(target->address, ADDRESS_FORMAT_IP, &address);

		address.port = target->dial.options.port;
		target->name = numeric ? address_text(&address, label)
				       : log_text(label, sizeof(label), "%s:%u", target->address, address.port);
	}
	target->counts.size = target->size;
	figures_report(report, target_figures, target, NULL);
	if (target->histogram && report->format == &report_json)
		report_histogram(report, "round_trip", target->histogram);
}
