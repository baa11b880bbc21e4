/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client: any number of targets (target.h) on one loop, of which only some connect at a time. Each target has its
 * own result; the first failure decides the exit code and stops no other target.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/rping/rping.h"
#include "cmd/rping/target.h"
#include "cmd/rping/target_file.h"
#include "core/resolver.h"
#include "core/units.h"

enum {
	CONNECTING_MAX = 48 /* targets at once: each lookup forks a process, and the backlog of a server is limited */
};

struct rping_client {
	struct environment *environment;
	const struct rping_options *options;
	const struct log *log;
	struct target_file file;
	struct target *targets;
	size_t count;
	struct target *first, **last; /* queue of those that wait to connect */
	size_t connecting;
	size_t retrying; /* targets that wait for a retry */
	size_t ended;
	size_t failed;
	bool ending;		       /* start no more targets */
	struct loop_timer start_timer; /* starts the first targets from the loop */
	struct resolver source_lookup;
	struct targets all;
};

static void enqueue(struct rping_client *client, struct target *target)
{
	target->next = NULL;
	*client->last = target;
	client->last = &target->next;
}

static void start_some(struct rping_client *client)
{
	while (client->first && client->connecting < CONNECTING_MAX && !client->ending) {
		struct target *target = client->first;

		client->first = target->next;
		if (!client->first)
			client->last = &client->first;
		if (target->ended)
			continue;
		target->is_connecting = true;
		client->connecting++;
		target_start(target);
	}
}

static uint32_t max_size(const struct rping_client *client)
{
	uint32_t longest = 0;

	for (size_t i = 0; i < client->count; i++)
		if (client->targets[i].size > longest)
			longest = client->targets[i].size;
	return longest;
}

/* Writes the text of a target's verdict. */
static struct verdict target_verdict_text(const struct rping_client *client, const struct target *target,
					  char text[RPING_VERDICT_SIZE])
{
	const struct ping_counts *counts = &target->record.counts;
	bool validate = client->options->validate;
	char pings[PINGS_TEXT_SIZE], warmup[48] = "";

	if (counts->warmup)
		snprintf(warmup, sizeof(warmup), " after %" PRIu64 " to warm up", counts->warmup);
	if (target->outcome)
		snprintf(text, RPING_VERDICT_SIZE, "%s to %s answered",
			 rping_pings_text(counts->answered, (uint64_t)client->options->count, pings),
			 target_name(target));
	else
		snprintf(text, RPING_VERDICT_SIZE, "%s of %" PRIu32 " byte%s to %s answered%s%s",
			 rping_pings_text(counts->answered, 0, pings), target->size, units_plural(target->size),
			 target_name(target), validate ? " and verified" : "", warmup);
	return (struct verdict){
		.device = target->device,
		.note = target->outcome || validate ? NULL : RPING_NOT_CHECKED,
		.has_figures = counts->answered,
	};
}

static void finish_several(struct rping_client *client)
{
	const struct ping_counts *counts = &client->all.figures.total.counts;
	bool verified = client->options->validate && counts->verified == counts->answered;
	char pings[PINGS_TEXT_SIZE];

	environment_finish(client->environment, OUTCOME_OK, &(struct verdict){ .has_figures = true },
			   "total: %s answered%s, %zu of %zu targets passed",
			   rping_pings_text(counts->answered, 0, pings), verified ? " and verified" : "",
			   client->count - client->failed, client->count);
}

static void stream_target(struct rping_client *client, const struct target *target)
{
	struct report *record = environment_begin_record(client->environment, "target");

	if (!record)
		return;
	target_report(target, record);
	environment_end_record(client->environment);
}

static void target_ended(struct rping_client *client, struct target *target)
{
	char text[RPING_VERDICT_SIZE];
	struct verdict verdict = target_verdict_text(client, target, text);

	client->ended++;
	client->failed += target->outcome != OUTCOME_OK;
	environment_note(client->environment, target->outcome);
	stream_target(client, target);
	if (client->count == 1) {
		environment_finish(client->environment, OUTCOME_OK, &verdict, "%s", text);
		return;
	}
	environment_print_result(client->environment, target->outcome, &verdict, "%s", text);
	if (client->ended == client->count)
		finish_several(client);
}

static void count_retrying(struct rping_client *client, struct target *target, bool retrying)
{
	if (target->retrying)
		client->retrying--;
	target->retrying = retrying;
	if (retrying)
		client->retrying++;
}

static void client_target_event(void *context, struct target *target, enum target_event event)
{
	struct rping_client *client = context;

	if (target->is_connecting && event != TARGET_RETRY) {
		target->is_connecting = false;
		client->connecting--;
	}
	count_retrying(client, target, event == TARGET_RETRY_WAIT);
	if (event == TARGET_RETRY)
		enqueue(client, target);
	if (event == TARGET_ENDED)
		target_ended(client, target);
	if (client->ended < client->count)
		start_some(client);
	/* Every target is connected or has ended, and none waits for a retry. */
	if (!client->environment->ended && !client->connecting && !client->first && !client->retrying)
		environment_ready(client->environment, NULL, NULL);
}

/* The address of -I is resolved: connects the targets. */
static void source_found(void *context, enum outcome outcome, const struct address *addresses, size_t count)
{
	struct rping_client *client = context;

	if (!outcome)
		outcome = path_choose(&client->options->common.family, ADDRESS_NONE, client->log,
				      client->options->source, addresses, count, &client->all.source);
	if (outcome) {
		environment_finish(client->environment, outcome, &(struct verdict){ .device = NULL },
				   "no ping was sent");
		return;
	}
	start_some(client);
}

/* The first callback of the loop without -I. */
static void start_first(void *context)
{
	start_some(context);
}

/* ---- start and stop ---- */

static enum outcome make_targets(struct rping_client *client)
{
	const struct rping_options *options = client->options;
	uint16_t port = (uint16_t)options->port;
	enum outcome outcome = OUTCOME_OK;

	if (WITH_TARGETS && options->targets)
		outcome = target_file_read(&client->file, options->targets, port, client->log);
	for (size_t i = 0; i < client->file.count && !outcome; i++)
		outcome = rping_check_address(options, "--targets", client->file.lines[i].address, &client->all.source,
					      client->log);
	if (outcome)
		return outcome;
	client->targets = calloc(options->addresses.count + client->file.count, sizeof(*client->targets));
	if (!client->targets) {
		log_error(client->log, NULL, "out of memory");
		return OUTCOME_INTERNAL;
	}
	for (size_t i = 0; i < options->addresses.count; i++)
		target_prepare(&client->targets[client->count++], &client->all, options->addresses.texts[i], port);
	for (size_t i = 0; i < client->file.count; i++)
		target_prepare(&client->targets[client->count++], &client->all, client->file.lines[i].address,
			       client->file.lines[i].port);
	client->all.several = client->count > 1;
	for (size_t i = 0; i < client->count; i++)
		enqueue(client, &client->targets[i]);
	return OUTCOME_OK;
}

enum outcome rping_client_start(struct environment *environment, const struct rping_options *options,
				struct rping_client **result)
{
	struct rping_client *client = calloc(1, sizeof(*client));
	enum outcome outcome;

	if (!client) {
		log_error(&environment->log, NULL, "out of memory");
		return OUTCOME_INTERNAL;
	}
	client->environment = environment;
	client->options = options;
	client->log = &environment->log;
	client->last = &client->first;
	client->all = (struct targets){
		.environment = environment,
		.options = options,
		.event = client_target_event,
		.context = client,
	};
	ping_figures_next_interval(&client->all.figures);
	outcome = make_targets(client);
	if (!outcome)
		outcome = channel_create(environment->transport, &client->all.channel);
	if (outcome) {
		rping_client_stop(client);
		return outcome;
	}
	if (options->source)
		resolver_start(&client->source_lookup, environment->loop, client->log, options->source,
			       ADDRESS_FORMAT_ANY, options->common.timeout, source_found, client);
	else
		loop_timer_start(environment->loop, &client->start_timer, 0, start_first, client);
	*result = client;
	return OUTCOME_OK;
}

void rping_client_interrupt(struct rping_client *client, enum interruption reason)
{
	if (!client)
		return;
	if (reason != INTERRUPTION_NO_READER) {
		client->ending = true;
		resolver_stop(&client->source_lookup);
	}
	for (size_t i = 0; i < client->count; i++)
		target_interrupt(&client->targets[i], reason);
}

/* Returns the maximum of each step over all targets. */
static struct connect_times max_times(const struct rping_client *client)
{
	struct connect_times longest = { 0 };

	for (size_t i = 0; i < client->count; i++) {
		const struct connect_times *times = &client->targets[i].times;

		if (times->resolve_address > longest.resolve_address)
			longest.resolve_address = times->resolve_address;
		if (times->resolve_route > longest.resolve_route)
			longest.resolve_route = times->resolve_route;
		if (times->connect > longest.connect)
			longest.connect = times->connect;
	}
	return longest;
}

void rping_client_report(struct rping_client *client, struct report *report, enum report_span span)
{
	static const struct path several = { 0 };
	struct connect_times times = max_times(client);
	bool alone = client->count == 1;
	/* Prometheus needs unique labels, and an address may be given twice. */
	bool numbered = !alone && !report->format->lists && !report->format->omits_empty;
	char index[24];

	report_text(report, "role", "client");
	report_text(report, "target", alone ? client->targets[0].address : NULL);
	path_report(report, alone ? &client->targets[0].path : &several);
	ping_figures_report(&client->all.figures, max_size(client), report, span);
	connect_times_report(&times, report);
	/* In text, a single target has no entry of its own. */
	if (alone && report->format->draws_buckets)
		return;
	report_list(report, "targets");
	for (size_t i = 0; i < client->count && span == REPORT_TOTAL; i++) {
		report_object(report, NULL);
		snprintf(index, sizeof(index), "%zu", i);
		if (numbered)
			report_text(report, "index", index);
		target_report(&client->targets[i], report);
		report_end(report);
	}
	report_end(report);
}

void rping_client_interval_over(struct rping_client *client)
{
	ping_figures_next_interval(&client->all.figures);
}

void rping_client_stop(struct rping_client *client)
{
	if (!client)
		return;
	loop_timer_stop(&client->start_timer);
	resolver_stop(&client->source_lookup);
	for (size_t i = 0; i < client->count; i++)
		target_release(&client->targets[i]);
	free(client->targets);
	if (WITH_TARGETS)
		target_file_free(&client->file);
	free(client);
}
