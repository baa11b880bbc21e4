/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client: any number of targets on one loop, of which only some connect at a time. Each target has its own result;
 * the first failure decides the exit code, but does not stop other targets.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "cmd/hello.h"
#include "cmd/lookup.h"
#include "cmd/rping/outage.h"
#include "cmd/rping/paths.h"
#include "core/units.h"

enum {
	CONNECTING_MAX = 48 /* targets at once: a server's backlog is limited */
};

/* Time for a server's answer before the next connection to it, shorter if it has not answered others. */
#define ANSWER_FIRST CLOCK_NS_PER_S
#define ANSWER_LEAST (100 * CLOCK_NS_PER_MS)
#define ANSWER_TIMES 4 /* times the last answer's time */

/* ---- the lines of several targets ---- */

static void print_alive(const struct target *target)
{
	const struct samples *times = &target->round_trip;
	char avg[UNITS_TEXT_SIZE], max[UNITS_TEXT_SIZE];
	const struct peer *peer = &target->peer;

	run_print(peer->run, "%s: %s is alive: %" PRIu64 " ping%s %s, avg %s, max %s", peer->run->log.name, peer->name,
		  times->count, units_plural(times->count), peer->options->validate ? "verified" : "answered",
		  units_time(samples_average(times), avg), units_time(times->maximum, max));
}

/* A failed target has a line with its cause on stderr. */
static void print_target(const struct target *target, enum outcome outcome)
{
	if (EXTRA(target->own_path))
		return; /* it has a row in the table of paths */
	if (!has_several(target->client))
		peer_print_result(&target->peer, outcome, true);
	else if (WITH_REPORT && !outcome)
		print_alive(target);
	else if (peer_answered(&target->peer))
		peer_print_result(&target->peer, outcome, false);
}

/* ---- the end of a target, and of all ---- */

static const struct ping_counts *sum_targets(struct rping_client *client)
{
	struct ping_counts *all = &client->figures.counts;
	struct connect_times *longest = &client->figures.connect;

	*all = (struct ping_counts){ 0 };
	*longest = (struct connect_times){ 0 };
	for (const struct target *target = client->targets; target; target = target->next) {
		const struct ping_counts *counts = &target->counts;

		all->size = MAX(all->size, target->peer.size);
		all->warmup += counts->warmup;
		all->sent += counts->sent;
		all->verified += counts->verified;
		all->lost += counts->lost;
		all->outages += counts->outages;
		all->outage += counts->outage;
		all->answered.count += counts->answered.count;
		if (!WITH_REPORT)
			continue;
		all->answered.bytes += counts->answered.bytes;
		if (!all->answered.from || (counts->answered.from && counts->answered.from < all->answered.from))
			all->answered.from = counts->answered.from;
		all->answered.to = MAX(all->answered.to, counts->answered.to);
		for (size_t i = 0; i <= EVENT_ESTABLISHED; i++)
			longest->steps[i] = MAX(longest->steps[i], target->times.steps[i]);
	}
	return all;
}

static void finish_several(struct rping_client *client)
{
	const struct ping_counts *counts = sum_targets(client);
	bool verified = client->options->validate && counts->verified && counts->verified == counts->answered.count;
	bool paths = EXTRA(client->options->paths);
	char worse[RPING_WORSE_SIZE] = "";
	bool unequal = paths && rping_compare_paths(client, worse) && client->options->equal_paths;

	if (unequal && *worse)
		log_error(&client->run->log, "--equal-paths", "%s", worse + strlen("; "));
	run_finish(client->run, unequal ? OUTCOME_FAILED : OUTCOME_OK, NULL,
		   "total: %" PRIu64 " ping%s answered%s, %zu of %zu %s passed%s", counts->answered.count,
		   units_plural(counts->answered.count), verified ? " and verified" : "",
		   client->count - client->failed, client->count, paths ? "paths" : "targets", worse);
}

static void stream_target(struct rping_client *client, struct target *target)
{
	struct report *record = run_begin_record(client->run, "target");

	if (!record)
		return;
	target_report(target, NULL, record);
	report_close(record);
}

/* Ends a target, and after the last one the run. */
static void end_target(struct target *target, enum outcome outcome)
{
	struct rping_client *client = target->client;

	if (target->peer.state == TARGET_DONE)
		return;
	if (EXTRA(target->gone_at))
		outage_end(target, false);
	if (!outcome && EXTRA(client->options->reconnect) && target->counts.lost &&
	    !reporting_limits(client->run->reporting, "lost"))
		outcome = OUTCOME_FAILED;
	target_end(target, outcome);
	client->failed += outcome != OUTCOME_OK;
	run_record_outcome(client->run, outcome);
	stream_target(client, target);
	print_target(target, outcome);
	if (has_several(client) && client->in_state[TARGET_DONE] == client->count)
		finish_several(client);
	if (EXTRA(client->options->reconnect) && client->run->ended)
		outage_add_verdict(client->run, sum_targets(client));
}

static void outage_expired(void *context)
{
	const struct target *target = context;

	end_target(context, target->peer.pings ? OUTCOME_FAILED : OUTCOME_NO_CONNECTION);
}

/* The connection is over. */
static void end_connection(struct target *target, enum outcome outcome)
{
	if (EXTRA(target->peer.options->reconnect) && outcome == OUTCOME_FAILED &&
	    outage_begin(target, target_note_error(target), outage_expired))
		dial_again(&target->dial);
	else
		end_target(target, outcome);
}

static void end_connection_if_failed(struct target *target, enum outcome outcome)
{
	if (outcome)
		end_connection(target, outcome);
}

static void target_end_if_failed(struct target *target, enum outcome outcome)
{
	if (outcome)
		end_target(target, outcome);
}

/* ---- which targets connect ---- */

static bool is_to(const struct target *target, const char *address, uint16_t port)
{
	return target->dial.options.port == port && !strcmp(target->address, address);
}

/*
 * The stock rping -s -P answers only one of two simultaneous requests. So a server that follows itself in the list gets
 * one at a time, while it answers.
 */
static bool is_answer_due(const struct rping_client *client)
{
	return client->answer.timer.link && client->dialled->peer.state == TARGET_CONNECTING;
}

static int64_t answer_time(const struct rping_client *client)
{
	int64_t longest = client->took ? MAX(ANSWER_TIMES * client->took, ANSWER_LEAST) : ANSWER_FIRST;

	return longest / (client->in_state[TARGET_CONNECTING] + 1);
}

/* The number of targets in the states up to that one. */
static uint32_t count_up_to(const struct rping_client *client, enum target_state last)
{
	uint32_t count = 0;

	for (unsigned state = 0; state <= last; state++)
		count += client->in_state[state];
	return count;
}

/* No further path begins to connect for now: those that have begun may ping. */
static void release_paths(struct rping_client *client)
{
	for (struct target *target = client->targets; target && !client->run->ended; target = target->next) {
		if (target->slot != TARGET_HELD)
			continue;
		target->slot = 0;
		if (target->peer.state == TARGET_PACING)
			target_end_if_failed(target, target_next(target));
	}
}

static void target_looked_up(struct target *target)
{
	enum outcome outcome = target->dial.resolver.outcome;

	if (outcome) {
		end_target(target, outcome);
		return;
	}
	if (EXTRA(target->client->options->reconnect))
		target->dial.until = DIAL_FOREVER;
	target_wait(target);
}

static void look_up_target(struct target *target)
{
	if (target_look_up(target))
		target_looked_up(target);
}

/* More targets may begin. */
static bool goes_on(const struct rping_client *client)
{
	return !client->ending && !client->run->ended && !loop_deadline_passed(client->run->loop);
}

static void look_up_targets(struct rping_client *client)
{
	while (client->unknown && client->dials.looking < DIAL_LOOKUPS_MAX && goes_on(client)) {
		struct target *target = client->unknown;

		client->unknown = target->next;
		if (target->peer.state == TARGET_UNKNOWN)
			look_up_target(target);
	}
}

static void client_advance(void *client);

static void connect_target(struct target *target)
{
	struct rping_client *client = target->client;
	const struct target *next = target->next;

	if (EXTRA(target->own_path && !target->gone_at))
		target->slot = TARGET_HELD;
	dial_begin(&target->dial);
	if (OPTION_LIST_MAX > 1 && next && is_to(next, target->address, target->dial.options.port)) {
		client->dialled = target;
		loop_timer_start(client->run->loop, &client->answer, answer_time(client), client_advance, client);
	} else if (EXTRA(target->own_path)) {
		release_paths(client);
	}
}

/* After each change: looks names up, and connects targets that wait, in turn. */
static void client_advance(void *context)
{
	struct rping_client *client = context;
	const uint32_t *in_state = client->in_state;

	look_up_targets(client);
	while (in_state[TARGET_WAITING] && in_state[TARGET_CONNECTING] < CONNECTING_MAX && goes_on(client) &&
	       !is_answer_due(client)) {
		struct target *target = client->next ? client->next : client->targets;

		client->next = target->next;
		if (target->peer.state == TARGET_WAITING)
			connect_target(target);
	}
	if (EXTRA(client->options->paths) &&
	    (!count_up_to(client, TARGET_WAITING) || in_state[TARGET_CONNECTING] >= CONNECTING_MAX))
		release_paths(client);
	/* Every target is connected or has ended. */
	if (!client->run->ended && !count_up_to(client, TARGET_CONNECTING))
		run_setup_done(client->run, NULL, NULL);
}

/* ---- callbacks of a target ---- */

static void target_dial_looked_up(void *context)
{
	struct target *target = context;

	target_looked_up(target);
	client_advance(target->client);
}

static void target_dial_resumed(void *context)
{
	struct target *target = context;

	target_wait(target);
	if (loop_deadline_passed(target->client->run->loop))
		dial_begin(&target->dial); /* gives up */
	client_advance(target->client);
}

static void target_dial_paused(void *context)
{
	struct target *target = context;

	if (EXTRA(target->client->options->reconnect) && !target->gone_at && target->dial.error) {
		log_report(&target->client->run->log, target->dial.error);
		outage_begin(target, target->dial.error, outage_expired);
	}
	target_pause(target);
}

static void target_dial_failed(void *context, enum outcome outcome)
{
	end_target(context, outcome);
}

/* The server has accepted. The run ends before the first ping if it cannot drop its privileges. */
static enum outcome begin_pings(struct target *target, const struct endpoint_event *event)
{
	enum outcome outcome;

	/* Other targets may be connecting while this one pings. */
	run_drop_privileges(target->client->run, 0);
	outcome = target_established(target, event);
	if (outcome)
		return outcome;
	client_advance(target->client);
	/* It may have been released. */
	return target->client->run->ended || target->peer.state != TARGET_PACING ? OUTCOME_OK : target_next(target);
}

static void hint_at_busy(const struct target *target, const struct endpoint_event *event)
{
	struct error *error = &target->client->run->transport->error;

	hello_explain_rejection(event, error);
	if (WITH_DIAGNOSTICS && error->kind == ERROR_BUSY)
		error_hint(error, "a server with -P serves many at once");
}

static void target_event(void *context, struct endpoint *endpoint, const struct endpoint_event *event)
{
	struct target *target = context;
	enum outcome outcome = OUTCOME_OK;

	(void)endpoint;
	peer_print_event(&target->peer, event->kind);
	if (WITH_REPORT && event->kind <= EVENT_ESTABLISHED && !target->times.steps[EVENT_ESTABLISHED])
		target->times.steps[event->kind] = event->took;
	switch (event->kind) {
	/* Allocates what does not depend on the server while the route is being resolved. */
	case EVENT_ADDRESS_RESOLVED:
		target_end_if_failed(target, peer_open(&target->peer));
		break;
	case EVENT_ROUTE_RESOLVED:
		outcome = target_request(target);
		break;
	case EVENT_ESTABLISHED:
		target->client->took = MAX(event->took, 1);
		if (EXTRA(target->gone_at))
			outage_end(target, true);
		target_end_if_failed(target, begin_pings(target, event));
		break;
	case EVENT_DISCONNECTED:
		end_connection(target, target_verdict(target));
		break;
	case EVENT_FAILED:
		if (target->peer.state == TARGET_CONNECTING) {
			hint_at_busy(target, event);
			outcome = event->outcome;
		} else {
			end_connection(target, event->outcome);
		}
		break;
	default:
		break;
	}
	if (outcome && target->peer.state == TARGET_CONNECTING)
		dial_failed(&target->dial, outcome);
	client_advance(target->client);
}

static void target_completed(void *context, struct endpoint *endpoint, const struct completion *completion)
{
	(void)endpoint;
	end_connection_if_failed(context, target_complete(context, completion));
}

static void target_expired(void *context)
{
	end_connection_if_failed(context, target_expire(context));
}

static const struct target_handlers target_handlers = {
	.dial = {
		.looked_up = target_dial_looked_up,
		.connect = target_connect,
		.paused = EXTRA(target_dial_paused),
		.resumed = EXTRA(target_dial_resumed),
		.failed = target_dial_failed,
	},
	.endpoint = {
		.event = target_event,
		.completion = target_completed,
	},
	.expired = target_expired,
};

/* ---- the targets ---- */

enum outcome rping_client_check(const struct rping_options *options, const char *option, const char *text,
				const struct log *log)
{
	return peer_check(log, options->source, EXTRA(options->common.path.interface), option, text);
}

static enum outcome add_target(struct rping_client *client, const char *address, uint16_t port)
{
	const struct reporting_options *reporting = &client->options->common.reporting;
	bool histogram = WITH_REPORT && (reporting->json || reporting->json_stream || EXTRA(reporting->expect.count) ||
					 EXTRA(client->options->paths));
	int64_t paths = EXTRA(client->options->paths), path = 0;

	do {
		struct target *target =
			run_allocate(client->run, 1, sizeof(*target) + (histogram ? sizeof(struct histogram) : 0));

		if (!target)
			return OUTCOME_INTERNAL;
		target_prepare(target, client, address, port);
		target->own_path = paths > 0;
		target->udp = paths && !transport_opens_devices(transport_name(client->run->transport));
		target->port = target->udp ? (uint16_t)(UDP_PORT_FIRST + path) : 0;
		if (histogram)
			target->histogram = (struct histogram *)(target + 1);
		*client->last = target;
		client->last = &target->next;
		client->count++;
	} while (++path < paths);
	return OUTCOME_OK;
}

/* A list that repeats a target pings it once. Each repeated -a is a connection of its own. */
static bool is_repeated(const struct rping_client *client, const char *address, uint16_t port)
{
	for (const struct target *target = client->targets; target; target = target->next)
		if (is_to(target, address, port))
			return true;
	return false;
}

/* Adds the target of a --targets line: "ADDRESS [PORT]"; a '#' starts a comment. place: FILE:LINE. */
static enum outcome add_line(struct rping_client *client, char *line, const char *place)
{
	static const char blanks[] = " \t\r\n";
	const struct log *log = &client->run->log;
	unsigned long long port = (unsigned long long)client->options->port;
	char *address = line + strspn(line, blanks), *number, *end;
	enum outcome outcome;

	address[strcspn(address, "#")] = 0;
	number = address + strcspn(address, blanks);
	if (*number)
		*number++ = 0;
	number += strspn(number, blanks);
	if (!*address)
		return OUTCOME_OK;
	if (*number) {
		port = strtoull(number, &end, 10);
		if (end[strspn(end, blanks)] || !port || port > UINT16_MAX) {
			number[strcspn(number, "\r\n")] = 0;
			log_error(log, place, "'%s' is not a port: 1 to 65535", number);
			if (end == number)
				log_hint(log, "a line is ADDRESS [PORT]: awk '{ print $1 }' %s | rping --targets -",
					 client->options->targets);
			return OUTCOME_USAGE;
		}
	}
	outcome = rping_client_check(client->options, place, address, log);
	if (!outcome && is_repeated(client, address, (uint16_t)port))
		client->repeated++;
	else if (!outcome)
		outcome = add_target(client, address, (uint16_t)port);
	return outcome;
}

static const char *list_name(const char *file)
{
	return strcmp(file, "-") != 0 ? file : "standard input";
}

enum outcome rping_client_read(struct run *run, const void *options)
{
	const char *file = ((const struct rping_options *)options)->targets;
	enum outcome outcome = OUTCOME_USAGE;
	size_t size = 1;
	FILE *stream;

	if (!file)
		return OUTCOME_OK;
	run->input = strdup(""); /* getdelim(3) leaves it unchanged if there is nothing to read */
	stream = list_name(file) == file ? fopen(file, "r") : stdin;
	if (stream) {
		/* A 0 byte, which no text has, would end it early. Out of memory, ferror() is false. */
		errno = EILSEQ;
		outcome = getdelim(&run->input, &size, '\0', stream) && feof(stream) ? OUTCOME_OK : OUTCOME_INTERNAL;
	}
	if (outcome)
		log_errno(&run->log, "--targets", errno, "%s", list_name(file));
	if (stream && stream != stdin)
		fclose(stream);
	return outcome;
}

static enum outcome add_lines(struct rping_client *client)
{
	static const char mark[] = "\xef\xbb\xbf"; /* UTF-8's: some editors put it at the start of a file */
	const char *name = list_name(client->options->targets);
	const struct log *log = &client->run->log;
	char *rest = client->run->input, *line;
	enum outcome outcome = OUTCOME_OK;
	char place[ERROR_OBJECT_SIZE];

	if (!strncmp(rest, mark, strlen(mark)))
		rest += strlen(mark);
	for (unsigned number = 1; !outcome && (line = strsep(&rest, "\n")); number++)
		outcome = add_line(client, line, log_text(place, sizeof(place), "%.200s:%u", name, number));
	if (!outcome && !client->count) {
		log_error(log, "--targets", "%s: no targets", name);
		outcome = OUTCOME_USAGE;
	}
	if (!outcome && client->repeated)
		log_hint(log, "%s: repeated lines left out: %zu", name, client->repeated);
	return outcome;
}

static enum outcome make_targets(struct rping_client *client)
{
	const struct rping_options *options = client->options;
	enum outcome outcome = OUTCOME_OK;

	for (size_t i = 0; i < options->addresses.count && !outcome; i++)
		outcome = add_target(client, options->addresses.texts[i], (uint16_t)options->port);
	return !outcome && EXTRA(options->targets) ? add_lines(client) : outcome;
}

/* ---- start and stop ---- */

/*
 * outcome: the source's. Addresses do not wait for names. Look-ups after the first ones need a process that forks:
 * other targets may have registered memory by then. None has here: that follows a target's first event, and none is
 * handled before this returns.
 */
static void begin_targets(struct rping_client *client, enum outcome outcome)
{
	struct address address;
	size_t names = 0;

	for (struct target *target = client->targets; target && !outcome; target = target->next)
		if (address_parse(target->address, ADDRESS_FORMAT_IP, &address))
			look_up_target(target);
		else
			names++;
	if (WITH_NAMES && WITH_DIAGNOSTICS &&
	    (names > DIAL_LOOKUPS_MAX || (names && EXTRA(client->options->reconnect))))
		outcome = resolver_process_start(&client->dials.process, &client->run->log);
	for (struct target *target = client->targets; target && outcome; target = target->next)
		end_target(target, outcome);
	client->unknown = client->targets;
}

enum outcome rping_client_start(struct run *run, const struct rping_options *options, void **state)
{
	struct rping_client *client = *state = run_allocate(run, 1, sizeof(*client));
	enum outcome outcome;

	if (!client)
		return OUTCOME_INTERNAL;
	client->run = run;
	client->options = options;
	client->last = &client->targets;
	client->handlers = &target_handlers;
	outcome = make_targets(client);
	if (!outcome)
		outcome = channel_create(run->transport, &client->channel);
	if (outcome)
		return outcome;
	/* A look-up may take seconds, and so may a silent server. */
	if (run_live(run) >= LIVE_ROWS)
		run_print(run, "%s: connecting to %s", run->log.name,
			  client->count > MAX((size_t)EXTRA(options->paths), 1) ? "the servers"
										: client->targets->address);
	if (options->source)
		outcome = lookup(&client->source, run, &options->common, options->source, ADDRESS_FORMAT_ANY);
	begin_targets(client, outcome);
	client_advance(client);
	return OUTCOME_OK;
}

void rping_client_interrupt(void *state, enum interruption reason)
{
	struct rping_client *client = state;

	client->ending = true;
	for (struct target *target = client->targets; target; target = target->next)
		target_end_if_failed(target, target_interrupt(target, reason));
}

static void report_targets(struct report *report, const void *member)
{
	const struct rping_client *client = *(const struct rping_client *const *)member;
	char text[24];
	size_t index = 0;

	/* In text a single target has no separate entry, and ended targets have their lines. */
	if (report->format->form & IN_TEXT && (!has_several(client) || client->in_state[TARGET_DONE] == client->count))
		return;
	for (struct target *target = client->targets; target; target = target->next) {
		report_object(report, NULL);
		log_text(text, sizeof(text), "%zu", index++);
		target_report(target, has_several(client) ? text : NULL, report);
		report_end(report);
	}
}

static const struct figure ping_figures[] = {
	FIGURE(TEXT, "role", struct client_figures, role, .flags = FIGURE_LABEL),
	FIGURE(TEXT, "target", struct client_figures, target, .flags = FIGURE_LABEL),
	FIGURES_OF_CODE(OBJECT, "path", struct client_figures, path, common_report_path, .forms = IN_FULL),
	FIGURES_OF_ROWS("pings", struct client_figures, counts, ping_count_figures),
	FIGURE(HISTOGRAM, "round_trip", struct client_figures, round_trip),
	FIGURES_OF_ROWS("connect", struct client_figures, connect, connect_figures, .forms = IN_FULL),
	FIGURES_OF_CODE(LIST, "targets", struct client_figures, client, report_targets),
	FIGURES_END,
};

struct figures rping_client_figures(void *state)
{
	struct rping_client *client = state;
	struct client_figures *figures = &client->figures;

	sum_targets(client);
	figures->role = "client";
	figures->client = client;
	if (client->count == 1) {
		figures->target = client->targets->address;
		figures->path = client->targets->path;
	}
	return (struct figures){ ping_figures,
				 figures,
				 &client->before,
				 sizeof(*figures),
				 .summarised = figures->counts.answered.count,
				 .under_way = figures->counts.sent || client->in_state[TARGET_READ] ||
					      client->in_state[TARGET_WRITTEN] };
}

void rping_client_stop(void *state)
{
	struct rping_client *client = state;
	struct target *target;

	loop_timer_stop(&client->answer);
	resolver_process_stop(&client->dials.process);
	while ((target = client->targets)) {
		client->targets = target->next;
		target_release(target);
		free(target);
	}
	free(client);
}
