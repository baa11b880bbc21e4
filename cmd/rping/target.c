/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/target.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "cmd/hello.h"
#include "core/payload.h"
#include "core/units.h"

/* The client's buffers, and the messages that advertise them. The server's answer proves an earlier one's delivery. */
enum {
	SOURCE,
	SINK,
};

enum {
	MTU_LEAST = 256,    /* of --mtu */
	SWEEP_COUNT = 1000, /* pings of each size without -C and --duration */
	SINK_FILL = 0xff,   /* fills the sink before a ping, so that -V detects a server that writes nothing */
};

static void target_enter(struct target *target, enum target_state state, const char *doing, enum timeout_share limit)
{
	target->client->in_state[target->peer.state]--;
	target->client->in_state[state]++;
	peer_enter(&target->peer, state, doing, limit);
}

/* ---- how many pings, and of which size ---- */

/* Returns the requested number of pings (in a sweep: of each size), or 0. */
static uint64_t requested_count(const struct target *target)
{
	const struct rping_options *options = target->peer.options;

	if (rping_sweep(options) && !options->count && !options->duration)
		return SWEEP_COUNT;
	return (uint64_t)options->count;
}

uint64_t target_pings_left(const struct target *target)
{
	uint64_t pings = target->peer.pings, requested = requested_count(target);
	uint64_t taken = pings - MIN(pings, target->first);

	if (EXTRA(target->peer.options->reconnect))
		taken += target->counts.lost;
	return !requested ? UINT64_MAX : requested - MIN(taken, requested);
}

/* True until -C or --duration is reached (in a sweep: for this size), or without either. */
static bool has_more(const struct target *target)
{
	return !(EXTRA(target->until) && clock_now() >= target->until) && target_pings_left(target);
}

static void write_advertisement(struct target *target, uint32_t index, size_t offset)
{
	struct peer *peer = &target->peer;
	const struct region *region = peer->data[index];

	peer_write(peer, index,
		   &(struct advertisement){
			   .address = region->remote_address + offset,
			   .key = region->remote_key,
			   .size = peer->size,
		   });
}

/* Sets up the common state of a size's pings. */
static void begin_size(struct target *target)
{
	payload_ramp_write(target->peer.data[SOURCE]->memory, target->peer.size);
	target->source_offset = 0;
	write_advertisement(target, SINK, 0);
}

/*
 * A size's pings are answered. Begins the sweep's next size, the next power of two or the last one; false if there is
 * none.
 */
static bool next_size(struct target *target)
{
	uint32_t last = rping_sweep(target->peer.options);
	uint32_t next = MIN(UINT32_C(2) << (31 - __builtin_clz(target->peer.size)), last);

	if (last) {
		reporting_end_interval(target->peer.run->reporting);
		if (WITH_EXTRAS)
			reporting_expect_size(target->peer.run->reporting, target->peer.size);
	}
	if (next <= target->peer.size || next > target->last_size)
		return false;
	target->until = 0;
	target->first = target->peer.pings;
	target->peer.size = next;
	begin_size(target);
	return true;
}

/* ---- errors ---- */

static void record_error(struct target *target, const char *text)
{
	if (WITH_REPORT && !target->error)
		target->error = strdup(text);
}

/* For the parent command: where the unanswered ping got stuck. */
static void leave_loss(const struct target *target)
{
	struct ping_facts *facts = target->peer.run->ping;

	if (!HAS_CHILD_RUNS || !facts)
		return;
	facts->not_read = target->peer.state == TARGET_READ;
	facts->not_written_back = target->peer.state == TARGET_WRITTEN;
}

const struct error *target_note_error(struct target *target)
{
	const struct run *run = target->client->run;
	char text[ERROR_TEXT_SIZE];

	run_report_error(run);
	if (WITH_REPORT)
		record_error(target, error_text(&run->log.errors->last, text));
	return &run->log.errors->last;
}

/* No ping of this size was answered. Blames the size, unless a packet of the full path MTU got through. */
static void hint_at_size(const struct target *target)
{
	const struct peer *peer = &target->peer;
	bool in_ping = peer->state == TARGET_READ || peer->state == TARGET_WRITTEN;
	uint32_t mtu = target->path.mtu ? target->path.mtu : UINT32_MAX;

	if (!in_ping || loop_deadline_passed(peer->run->loop) || peer->longest >= MIN(peer->size, mtu))
		return;
	if (target->stock && peer->size > PING_SIZE_STOCK && peer->endpoint->state == ENDPOINT_DISCONNECTED) {
		log_hint(peer->log, "a stock server ends when a ping is longer than its own -S (64 by default): "
				    "give both ends the same -S");
	} else if (peer->longest) {
		log_hint(peer->log,
			 "pings of up to %" PRIu32 " bytes passed, none of %" PRIu32
			 ": a hop with a smaller MTU may drop long packets",
			 peer->longest, peer->size);
		/* Verbs has no --mtu. */
		if (WITH_EXTRAS && peer->longest >= MTU_LEAST &&
		    !transport_opens_devices(transport_name(peer->run->transport)))
			log_hint(peer->log, "shorter packets: --mtu %" PRIu32,
				 UINT32_C(1) << (31 - __builtin_clz(peer->longest)));
	} else if (peer->size > PING_SIZE) {
		log_hint(peer->log, "if pings with -S %d pass, a hop with a smaller MTU may drop long packets",
			 PING_SIZE);
	}
}

/*
 * Reports how far the target came. command.c reports a passed deadline once for all targets. Phases that it cuts short
 * report an error of their own; a target that waits to connect is in no phase.
 */
static enum outcome ended_early(struct target *target)
{
	const char *passed = "deadline exceeded";
	const struct peer *peer = &target->peer;

	if (!peer->deadline_passed)
		return peer_failed(peer, "interrupted");
	if (WITH_DIAGNOSTICS && peer->state <= TARGET_WAITING)
		return peer_failed(peer, passed);
	record_error(target, passed);
	return OUTCOME_FAILED;
}

/* ---- the connection ---- */

/* It is unknown how many unanswered packets were lost, and in which direction. */
bool target_losses(const struct target *target, struct losses *losses)
{
	const struct endpoint *endpoint = target->peer.endpoint;
	bool answered = peer_answered(&target->peer) && !target->counts.lost && !target->failed;

	*losses = target->losses;
	if (endpoint) {
		losses->out += endpoint->losses.out;
		losses->back += endpoint->losses.back;
	}
	return target->udp && (answered || losses->out || losses->back);
}

static bool shows_pings(const struct target *target)
{
	return WITH_EXTRAS && run_live(target->peer.run) == LIVE_EVENTS;
}

enum {
	SHOWN_SIZE = ADDRESS_TEXT_SIZE + sizeof(", UDP port 65535")
};

static const char *shown_host(const struct target *target, char text[SHOWN_SIZE])
{
	if (EXTRA(target->own_path))
		return log_text(text, SHOWN_SIZE, "%s, %s port %u", target->peer.name, target->udp ? "UDP" : "CM",
				target->port);
	return has_several(target->client) ? target->peer.name : address_host(&target->dial.address, text);
}

/* Prints a line after a second in which a ping has no answer, then for each further second or slot. */
static void show_silence(void *context)
{
	struct target *target = context;
	struct run *run = target->peer.run;
	char host[SHOWN_SIZE];

	run_print(run, "no answer yet from %s: seq=%" PRIu64, shown_host(target, host), target->peer.pings);
	loop_timer_start(run->loop, &target->silence, MAX(CLOCK_NS_PER_S, target->peer.options->interval), show_silence,
			 target);
}

/* Closes the connection, and counts an unanswered ping as lost. Without a connection only shows an outage. */
static void drop_connection(struct target *target)
{
	if (has_counts(target->client)) {
		target->counts.lost += target->sent_at != 0;
		target->sent_at = 0;
	}
	if (EXTRA(target->own_path))
		target_losses(target, &target->losses);
	if (!EXTRA(target->gone_at))
		loop_timer_stop(&target->silence);
	else if (shows_pings(target) && !target->silence.timer.link)
		loop_timer_start(target->peer.run->loop, &target->silence, CLOCK_NS_PER_S, show_silence, target);
	peer_close(&target->peer);
}

bool target_look_up(struct target *target)
{
	target_enter(target, TARGET_LOOKING, "looking up", WITHOUT_LIMIT);
	return dial_look_up_beside(&target->dial);
}

void target_wait(struct target *target)
{
	target_enter(target, TARGET_WAITING, "waiting to connect", WITHOUT_LIMIT);
}

void target_pause(void *context)
{
	struct target *target = context;

	target_enter(target, TARGET_PAUSED, "waiting to connect", WITHOUT_LIMIT);
	drop_connection(target);
}

enum outcome target_connect(void *context)
{
	struct target *target = context;
	const struct rping_client *client = target->client;
	const struct address *source = client->source.addresses;
	enum outcome outcome;

	drop_connection(target);
	target->peer.name = target->dial.name;
	target_enter(target, TARGET_CONNECTING, "connecting", WITHOUT_LIMIT);
	/* With --reconnect the first connection's stay: a later one waits for the server's return. */
	if (WITH_REPORT && !target->times.steps[EVENT_ESTABLISHED])
		target->times = (struct connect_times){ 0 };
	outcome = peer_create_endpoint(ENDPOINT_CONNECTION, client->channel, client->options,
				       &client->handlers->endpoint, target, &target->peer.endpoint);
	if (!outcome && EXTRA(target->udp)) {
		target->peer.endpoint->options.udp_port = target->port;
		target->peer.endpoint->options.udp_step = (uint16_t)client->options->paths;
	}
	if (!outcome)
		outcome =
			endpoint_resolve(target->peer.endpoint, source->family ? source : NULL, &target->dial.address);
	return outcome;
}

enum outcome target_request(struct target *target)
{
	const struct rping_options *options = target->peer.options;
	/* With --duration or --reconnect or in a sweep the number is unknown: the server must not expect -C pings. */
	bool known = target->peer.requested && !EXTRA(options->duration) && !EXTRA(options->reconnect);
	const struct endpoint *endpoint = target->peer.endpoint;

	if (EXTRA(target->own_path)) {
		target->port = target->udp ? endpoint->options.udp_port : endpoint->local.port;
		target->qpn = endpoint->qpn;
	}
	return peer_greet(&target->peer, PING_SIZE_MAX,
			  known ? target->peer.requested + (uint64_t)EXTRA(options->warmup) : 0, endpoint_connect);
}

static enum outcome target_disconnect(struct target *target)
{
	target_enter(target, TARGET_DISCONNECTING, "disconnecting", WITHOUT_LIMIT);
	return endpoint_disconnect(target->peer.endpoint);
}

/* A ping's size depends on the server's hello, which arrives with the REP. */
static enum outcome choose_size(struct target *target, const struct endpoint_event *event)
{
	struct peer *peer = &target->peer;
	uint32_t requested = (uint32_t)peer->options->size, last = rping_sweep(peer->options), maximum;
	struct hello hello;

	target->stock = !hello_read(event->private_data, event->private_length, HELLO_RPING, &hello);
	maximum = ping_limit(peer->endpoint->domain, target->stock ? PING_SIZE_STOCK_MAX : hello.capacity);
	if (target->stock && hello_check(peer->log, "server", peer->endpoint, event, HELLO_RPING))
		return OUTCOME_FAILED;
	/* doctor does not know the server: its pings are as long as that surely takes. */
	if (HAS_CHILD_RUNS && peer->run->ping)
		requested = MIN(requested, target->stock ? PING_SIZE_STOCK : maximum);
	peer->size = requested ? requested : MAX(MIN(target->stock ? PING_SIZE_STOCK : PING_SIZE, maximum), 1);
	if (peer->size > maximum)
		return peer_error(peer, "the server accepts pings of at most %" PRIu32 " bytes, not %" PRIu32, maximum,
				  peer->size);
	/* 0-TO: a longer ping than the default may end a stock server. */
	target->last_size = !last || (target->stock && !requested) ? peer->size : MIN(MAX(peer->size, last), maximum);
	if (last > maximum)
		log_hint(peer->log, "sizes above %" PRIu32 " are skipped: the server does not accept longer pings",
			 maximum);
	log_debug(peer->log, "%s: %s server, pings of %" PRIu32 " bytes", peer->name, target->stock ? "stock" : "our",
		  peer->size);
	return OUTCOME_OK;
}

enum outcome target_established(struct target *target, const struct endpoint_event *event)
{
	struct peer *peer = &target->peer;
	struct domain *domain = peer->endpoint->domain;
	enum outcome outcome;

	if (WITH_REPORT)
		endpoint_path(target->peer.endpoint, &target->path);
	dial_stop(&target->dial);
	target_enter(target, TARGET_PACING, "beginning", WITHOUT_LIMIT);
	outcome = choose_size(target, event);
	if (outcome)
		return outcome;
	outcome = region_create(domain, target->last_size + PAYLOAD_RAMP, REGION_REMOTE_READ, &peer->data[SOURCE]);
	if (!outcome)
		outcome = region_create(domain, target->last_size, REGION_REMOTE_WRITE, &peer->data[SINK]);
	if (!outcome)
		begin_size(target);
	return outcome;
}

/* ---- the pings ---- */

/* Posts one advertisement. The server's answer proves delivery; one signalled send in many frees the send queue. */
static enum outcome advertise(struct target *target, uint32_t index, enum target_state state, const char *doing)
{
	bool signalled = index == SINK && target->peer.pings % RPING_SIGNAL_EVERY == RPING_SIGNAL_EVERY - 1;

	target_enter(target, state, doing, FOR_TIMEOUT);
	return peer_post(&target->peer, WORK_SEND, index, signalled);
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
	struct peer *peer = &target->peer;
	const struct rping_options *options = peer->options;
	struct ping_counts *counts = &target->counts;
	bool first = peer->pings == target->first;
	int64_t now;

	if (first && rping_sweep(options)) {
		reporting_begin_interval(peer->run->reporting);
		target->slot = 0; /* a size's slots begin with its first ping */
	}
	target->source_offset = payload_ping_write(peer->data[SOURCE]->memory, peer->size, ping_number(peer->pings),
						   target->source_offset);
	write_advertisement(target, SOURCE, target->source_offset);
	if (options->validate || options->verbose)
		memset(peer->data[SINK]->memory, SINK_FILL, peer->size);
	now = clock_now();
	take_slot(target, now);
	if (EXTRA(options->duration) && first && !(EXTRA(options->reconnect) && target->until))
		target->until = now + options->duration;
	if (has_counts(target->client) && peer->pings >= target->first) {
		if (WITH_REPORT && !counts->answered.from)
			counts->answered.from = now;
		target->sent_at = now;
		counts->sent++;
	}
	if (shows_pings(target))
		loop_timer_start(peer->run->loop, &target->silence, CLOCK_NS_PER_S, show_silence, target);
	return advertise(target, SOURCE, TARGET_READ, "waiting for the server to read the ping");
}

enum outcome target_next(struct target *target)
{
	struct loop *loop = target->peer.run->loop;
	int64_t now, wait;

	if (!has_more(target) && !next_size(target))
		target->complete = target->peer.ending = true;
	if (target->peer.ending)
		return target_disconnect(target);
	now = EXTRA(target->slot) ? clock_now() : 0;
	/* If a slot and the deadline are due in the same turn of the loop, the deadline comes first. */
	if (now >= EXTRA(target->slot) && !(EXTRA(target->slot) && loop_deadline_passed(loop)))
		return start_ping(target);
	wait = (target->until ? MIN(target->slot, target->until) : target->slot) - now;
	target_enter(target, TARGET_PACING,
		     EXTRA(target->slot) == TARGET_HELD ? "waiting for the other paths" : "waiting for the next slot",
		     WITHOUT_LIMIT);
	loop_timer_start(loop, &target->peer.timer, wait, target->peer.expired, target);
	return OUTCOME_OK;
}

enum outcome target_expire(struct target *target)
{
	if (target->peer.state == TARGET_PACING)
		return target_next(target);
	leave_loss(target);
	return peer_timed_out(&target->peer);
}

/* In the JSON stream, and as a line on the terminal, like ping(8)'s. */
static void show_ping(const struct target *target, int64_t round_trip, bool verified)
{
	struct run *run = target->peer.run;
	struct report *record = run_begin_record(run, "ping");
	char host[SHOWN_SIZE], time[UNITS_TEXT_SIZE];

	if (record) {
		report_text(record, "target", target->peer.name);
		report_count(record, "sequence", target->peer.pings);
		report_time(record, "round_trip", round_trip);
		report_flag(record, "verified", verified);
		report_close(record);
	}
	if (shows_pings(target))
		run_print(run, "%" PRIu32 " bytes from %s: seq=%" PRIu64 " time=%s", target->peer.size,
			  shown_host(target, host), target->peer.pings, units_time(round_trip, time));
}

/*
 * A round trip is the time from posting the source advertisement to receiving the last go-ahead: three messages in each
 * direction, without verifying and printing.
 */
static void count_ping(struct target *target, int64_t now, bool verified)
{
	struct ping_counts *counts = &target->counts;
	int64_t round_trip = now - target->sent_at;

	if (!has_counts(target->client))
		return;
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
	counts->answered.bytes += target->peer.size;
	samples_add(&target->round_trip, round_trip);
	histogram_add(&target->client->figures.round_trip, round_trip);
	if (target->histogram && !rping_sweep(target->peer.options))
		histogram_add(target->histogram, round_trip);
	show_ping(target, round_trip, verified);
}

/* With several targets the label names the target; else the line has the stock tool's form. */
static void print_ping(const struct target *target)
{
	char text[ADDRESS_TEXT_SIZE + 16];
	const char *label = "ping data";

	if (has_several(target->client))
		label = log_text(text, sizeof(text), "ping data: %s", target->peer.name);
	ping_print(target->peer.run->output, label, target->peer.data[SINK]->memory, target->peer.size);
}

static enum outcome ping_finished(struct target *target)
{
	const struct rping_options *options = target->peer.options;
	int64_t now = clock_now();
	bool wrong = options->validate && !peer_verify(&target->peer, target->peer.data[SINK]->memory);

	loop_timer_stop(&target->silence);
	count_ping(target, now, options->validate && !wrong);
	if (options->verbose && !wrong)
		print_ping(target);
	peer_count_ping(&target->peer);
	target->peer.ending |= wrong; /* another connection would not help */
	return wrong ? OUTCOME_FAILED : target_next(target);
}

enum outcome target_complete(struct target *target, const struct completion *completion)
{
	struct advertisement ignored;
	enum outcome outcome;

	if (completion->status != COMPLETION_OK)
		return peer_work_failed(&target->peer, completion);
	if (completion->kind == WORK_SEND)
		return OUTCOME_OK;
	outcome = peer_receive(&target->peer, completion, &ignored);
	if (outcome)
		return outcome;
	peer_print_completions(&target->peer, "send completion\nrecv");
	if (target->peer.state == TARGET_READ) {
		if (WITH_REPORT && HAS_CHILD_RUNS && target->peer.run->ping)
			target->peer.run->ping->there += clock_now() - target->sent_at;
		return advertise(target, SINK, TARGET_WRITTEN, "waiting for the server to write the ping back");
	}
	return target->peer.state == TARGET_WRITTEN ? ping_finished(target) : peer_out_of_order(&target->peer);
}

/* ---- the end ---- */

enum outcome target_interrupt(struct target *target, enum interruption reason)
{
	enum target_state state = target->peer.state;

	target->peer.deadline_passed = reason == INTERRUPTION_DEADLINE;
	target->peer.ending = true;
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
	 * A signal: the ping is completed first. A deadline: over soft, a server waiting for the rest of a ping would
	 * not answer a DREQ in the remaining time.
	 */
	return target->peer.deadline_passed ? ended_early(target) : OUTCOME_OK;
}

enum outcome target_verdict(struct target *target)
{
	const struct peer *peer = &target->peer;

	leave_loss(target);
	if (peer->state != TARGET_DISCONNECTING)
		return peer_failed(peer, "the peer disconnected");
	if (target->complete && peer_answered(peer) && !peer->deadline_passed)
		return OUTCOME_OK;
	return ended_early(target);
}

void target_end(struct target *target, enum outcome outcome)
{
	struct ping_facts *facts = target->peer.run->ping;
	const struct endpoint *endpoint = target->peer.endpoint;

	/* Scripts take its absence for success. */
	if (outcome && endpoint && !endpoint->domain)
		log_debug(target->peer.log, "waiting for addr/route resolution state 1");
	if (HAS_CHILD_RUNS && facts) {
		facts->connecting = target->client->took;
		facts->mtu = target->path.mtu;
		facts->size = target->peer.size;
		facts->answered = peer_answered(&target->peer);
		facts->both = target->round_trip.sum;
		target->refused = target->dial.error && target->dial.error->kind != ERROR_NO_REPLY;
	}
	if (outcome) {
		dial_give_up(&target->dial);
		target_note_error(target);
	} else {
		dial_stop(&target->dial);
	}
	/* With --paths only the first failed path has the hint. */
	if (outcome == OUTCOME_FAILED && !(EXTRA(target->own_path) && target->client->failed))
		hint_at_size(target);
	target_enter(target, TARGET_DONE, "done", WITHOUT_LIMIT);
	drop_connection(target);
	if (!WITH_REPORT)
		return;
	target->failed = outcome;
	target->verdict = outcome ? "fail" : "pass";
}

void target_prepare(struct target *target, struct rping_client *client, const char *address, uint16_t port)
{
	const struct rping_options *options = client->options;
	struct dial_options *dial = &target->dial.options;
	struct peer *peer = &target->peer;

	client->in_state[TARGET_UNKNOWN]++;
	target->client = client;
	target->address = peer->name = address;
	peer->options = options;
	peer->run = client->run;
	peer->log = &client->run->log;
	peer->expired = client->handlers->expired;
	peer->requested = rping_sweep(options) ? 0 : (uint64_t)options->count;
	dial->handlers = &client->handlers->dial;
	dial->context = target;
	dial->run = client->run;
	dial->common = &options->common;
	dial->source = client->source.addresses;
	dial->shared = &client->dials;
	dial->host = address;
	dial->port = port;
	if (WITH_DIAGNOSTICS)
		dial->server = "rping -s";
	if (WITH_EXTRAS)
		dial->wait_server = options->wait_server;
	target->first = (uint64_t)EXTRA(options->warmup);
	target->complete = !requested_count(target) && !EXTRA(options->duration);
}

/* Endpoints still use the channel while they are destroyed: transport_close() frees it. */
void target_release(struct target *target)
{
	dial_stop(&target->dial);
	target->gone_at = 0;
	drop_connection(target);
	loop_timer_stop(&target->gone);
	free(target->cause);
	free(target->error);
}

/* ---- figures ---- */

const struct figure ping_count_figures[] = {
	FIGURE(GAUGE, "size", struct ping_counts, size, .forms = IN_FULL),
	FIGURE(GAUGE, "ping_size", struct ping_counts, size, .forms = IN_STEP),
	FIGURE(COUNT, "warmup", struct ping_counts, warmup, .forms = IN_FULL, .flags = FIGURE_UNLESS_0),
	FIGURE(COUNT, "sent", struct ping_counts, sent, .forms = IN_FULL),
	FIGURE(COUNT, "answered", struct ping_counts, answered.count),
	FIGURE(COUNT, "verified", struct ping_counts, verified, .forms = IN_FULL, .flags = FIGURE_UNLESS_0),
	FIGURE(COUNT, "lost", struct ping_counts, lost, .forms = IN_FULL | IN_ROW,
	       .others = FIGURE_OTHERS(struct ping_counts, lost, answered.count)),
	FIGURE(COUNT, "outages", struct ping_counts, outages, .forms = IN_FULL, .flags = FIGURE_UNLESS_0),
	FIGURE(TIME, "outage", struct ping_counts, outage, .forms = IN_FULL),
	FIGURE(RATE, "rate", struct ping_counts, answered, .flags = FIGURE_WHOLE),
	FIGURE(BANDWIDTH, "bytes", struct ping_counts, answered, .forms = IN_PROGRAMS | IN_STEP, .flags = FIGURE_WHOLE),
	FIGURES_END,
};

const struct figure connect_figures[] = {
	FIGURE(TIME, "resolve_address", struct connect_times, steps[EVENT_ADDRESS_RESOLVED]),
	FIGURE(TIME, "resolve_route", struct connect_times, steps[EVENT_ROUTE_RESOLVED]),
	FIGURE(TIME, "connect", struct connect_times, steps[EVENT_ESTABLISHED]),
	FIGURES_END,
};

/*
 * Text has one short line for each target. For Prometheus the index is also a label: an address may be given twice, and
 * labels must be unique.
 */
static const struct figure target_name_figures[] = {
	FIGURE(TEXT, "index", struct target, index, .forms = IN_PROMETHEUS, .flags = FIGURE_LABEL),
	FIGURE(TEXT, "target", struct target, name, .flags = FIGURE_LABEL),
	FIGURES_END,
};

static const struct figure target_figures[] = {
	FIGURE(COUNT, "answered", struct target, counts.answered.count, .forms = IN_TEXT),
	FIGURE(COUNT, "lost", struct target, counts.lost, .forms = IN_TEXT,
	       .others = FIGURE_OTHERS(struct target, counts.lost, counts.answered.count)),
	FIGURES_OF_ROWS("pings", struct target, counts, ping_count_figures, .forms = IN_PROGRAMS),
	FIGURE(SAMPLES, "round_trip", struct target, round_trip, .forms = IN_TEXT | IN_PROMETHEUS),
	FIGURES_OF_ROWS("connect", struct target, times, connect_figures, .forms = IN_PROGRAMS),
	FIGURE(FLAG, "failed", struct target, failed, .forms = IN_PROGRAMS),
	FIGURES_END,
};

/* For Prometheus these have more labels, so they come last. */
static const struct figure target_path_figures[] = {
	FIGURES_OF_CODE(OBJECT, "path", struct target, path, common_report_path, .forms = IN_PROGRAMS),
	FIGURE(TEXT, "verdict", struct target, verdict),
	FIGURE(TEXT, "error", struct target, error),
	FIGURES_END,
};

/* The fields that identify a path of --paths. */
static void report_own_port(struct report *report, const struct target *target)
{
	report_count_known(report, "udp_port", target->port, target->udp);
	report_count_known(report, "cm_port", target->port, !target->udp && target->port);
}

static void report_losses(struct report *report, const struct target *target)
{
	struct losses losses;
	bool known = target_losses(target, &losses);

	report_count_known(report, "losses_out", losses.out, known);
	report_count_known(report, "losses_back", losses.back, known);
	report_text(report, "worse", target->worse);
}

void target_report(struct target *target, const char *index, struct report *report)
{
	char label[ERROR_OBJECT_SIZE];
	struct address address;
	bool has_own_path = EXTRA(target->own_path) && report->format->form & IN_PROGRAMS;

	target->index = index;
	target->name = target->peer.name;
	/* A label must not change after a name look-up: that would begin a new series. */
	if (report->format->form == IN_PROMETHEUS) {
		bool numeric = address_parse(target->address, ADDRESS_FORMAT_IP, &address);

		address.port = target->dial.options.port;
		target->name = numeric ? address_text(&address, label)
				       : log_text(label, sizeof(label), "%s:%u", target->address, address.port);
	}
	target->counts.size = target->peer.size;
	figures_report(report, target_name_figures, target, NULL);
	if (has_own_path)
		report_own_port(report, target);
	figures_report(report, target_figures, target, NULL);
	if (has_own_path)
		report_losses(report, target);
	figures_report(report, target_path_figures, target, NULL);
	if (target->histogram && report->format->form == IN_JSON)
		report_histogram(report, "round_trip", target->histogram);
}
