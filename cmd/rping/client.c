/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client: any number of targets (target.h) on one loop, of which only some connect at a time. Each target has its
 * own result; the first failure decides the exit code and stops no other target.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "cmd/rping/rping.h"
#include "cmd/rping/target.h"
#include "cmd/rping/target_file.h"

enum {
	LOOKUPS_MAX = 48,   /* at once: each has a process */
	CONNECTING_MAX = 48 /* targets at once: the backlog of a server is limited */
};

struct rping_client {
	const struct rping_options *options;
	struct environment *environment;
	const struct log *log;
	struct target_file file;
	struct target *targets;
	struct histogram *round_trips; /* of each target, for JSON */
	size_t count;
	struct target *first, **last; /* queue of those that wait to connect */
	size_t failed;
	bool ending;		 /* start no more targets */
	struct loop_timer begin; /* of the look-ups, from the loop */
	struct targets all;
	struct ping_figures before;
};

_Static_assert(!offsetof(struct rping_client, options), "is_server() reads it in a state of unknown role");

static void enqueue(struct rping_client *client, struct target *target)
{
	target->next = NULL;
	*client->last = target;
	client->last = &target->next;
}

static void start_some(struct rping_client *client)
{
	const size_t *in_state = client->all.in_state;

	while (client->first && in_state[TARGET_CONNECTING] < CONNECTING_MAX && !client->ending &&
	       !loop_deadline_passed(client->environment->loop)) {
		struct target *target = client->first;

		client->first = target->next;
		if (!client->first)
			client->last = &client->first;
		if (target->state.current == TARGET_WAITING)
			target_start(target);
	}
}

static const struct ping_counts *sum_targets(struct rping_client *client)
{
	struct ping_counts *all = &client->all.figures.counts;
	struct connect_times *longest = &client->all.figures.connect;

	*all = (struct ping_counts){ 0 };
	*longest = (struct connect_times){ 0 };
	for (size_t i = 0; i < client->count; i++) {
		const struct connect_times *times = &client->targets[i].times;
		const struct ping_counts *counts = &client->targets[i].record.counts;

		if (client->targets[i].size > all->size)
			all->size = client->targets[i].size;
		all->warmup += counts->warmup;
		all->sent += counts->sent;
		all->verified += counts->verified;
		all->lost += counts->lost;
		all->answered.count += counts->answered.count;
		if (!WITH_REPORT)
			continue;
		all->answered.bytes += counts->answered.bytes;
		if (!all->answered.from || (counts->answered.from && counts->answered.from < all->answered.from))
			all->answered.from = counts->answered.from;
		all->answered.to = MAX(all->answered.to, counts->answered.to);
		longest->resolve_address = MAX(longest->resolve_address, times->resolve_address);
		longest->resolve_route = MAX(longest->resolve_route, times->resolve_route);
		longest->connect = MAX(longest->connect, times->connect);
	}
	return all;
}

struct figures rping_client_figures(void *state)
{
	struct rping_client *client = state;
	struct ping_figures *figures = &client->all.figures;

	sum_targets(client);
	figures->role = "client";
	figures->client = client;
	if (client->count == 1) {
		figures->target = client->targets[0].address;
		figures->path = client->targets[0].path;
	}
	return (struct figures){ ping_figures, figures, &client->before, sizeof(*figures) };
}

/* Writes the text of a target's verdict. */
static struct verdict target_verdict_text(const struct rping_client *client, const struct target *target,
					  char text[RPING_VERDICT_SIZE])
{
	const struct ping_counts *counts = &target->record.counts;
	bool validate = client->options->validate;
	char pings[PINGS_TEXT_SIZE], sizes[PINGS_TEXT_SIZE], warmup[48] = "";

	if (EXTRA(counts->warmup))
		snprintf(warmup, sizeof(warmup), " after %" PRIu64 " to warm up", counts->warmup);
	if (target->outcome)
		snprintf(text, RPING_VERDICT_SIZE, "%s to %s answered", target_pings_text(target, pings),
			 target_name(target));
	else
		snprintf(text, RPING_VERDICT_SIZE, "%s of %s to %s answered%s%s",
			 rping_pings_text(counts->answered.count, 0, pings),
			 rping_sizes_text(target->shortest, target->size, sizes), target_name(target),
			 validate ? " and verified" : "", warmup);
	return (struct verdict){
		.device = target->device,
		.note = target->outcome || validate ? NULL : RPING_NOT_CHECKED,
		.has_figures = counts->answered.count,
	};
}

static void finish_several(struct rping_client *client)
{
	const struct ping_counts *counts = sum_targets(client);
	bool verified = client->options->validate && counts->verified == counts->answered.count;
	char pings[PINGS_TEXT_SIZE];

	environment_finish(client->environment, OUTCOME_OK, &verdict_with_figures,
			   "total: %s answered%s, %zu of %zu targets passed",
			   rping_pings_text(counts->answered.count, 0, pings), verified ? " and verified" : "",
			   client->count - client->failed, client->count);
}

static void stream_target(struct rping_client *client, struct target *target)
{
	struct report *record = environment_begin_record(client->environment, "target");

	if (!record)
		return;
	target_report(target, NULL, record);
	environment_end_record(client->environment);
}

static void target_ended(struct rping_client *client, struct target *target)
{
	char text[RPING_VERDICT_SIZE];
	struct verdict verdict = target_verdict_text(client, target, text);

	client->failed += target->outcome != OUTCOME_OK;
	environment_record_outcome(client->environment, target->outcome);
	stream_target(client, target);
	if (client->count == 1) {
		environment_finish(client->environment, OUTCOME_OK, &verdict, "%s", text);
		return;
	}
	environment_print_result(client->environment, target->outcome, &verdict, "%s", text);
	if (client->all.in_state[TARGET_DONE] == client->count)
		finish_several(client);
}

static void target_changed(void *context, struct target *target)
{
	struct rping_client *client = context;
	const size_t *in_state = client->all.in_state;

	if (target->state.current == TARGET_DONE)
		target_ended(client, target);
	start_some(client);
	/* Every target is connected or has ended. */
	if (!client->environment->ended && !(in_state[TARGET_WAITING] + in_state[TARGET_CONNECTING]))
		environment_setup_done(client->environment, NULL, NULL);
}

static void enqueue_target(void *context, struct target *target)
{
	struct rping_client *client = context;

	enqueue(client, target);
	start_some(client);
}

/* LOOKUPS_MAX names are looked up beside the one that is waited for. */
static void look_up_targets(struct rping_client *client)
{
	client->ending = true; /* no target connects before all are looked up */
	for (size_t i = 0, begun = 0; i < client->count; i++) {
		for (; begun < client->count && begun < i + LOOKUPS_MAX; begun++)
			target_look_up(&client->targets[begun]);
		target_looked_up(&client->targets[i]);
	}
	client->ending = false;
}

static void client_begin(void *context)
{
	struct rping_client *client = context;
	const struct rping_options *options = client->options;
	struct resolver source = { 0 };
	enum outcome outcome = OUTCOME_OK;

	if (options->source)
		outcome = lookup(&source, client->environment, &options->common, options->source, ADDRESS_FORMAT_ANY);
	if (outcome) {
		environment_finish(client->environment, outcome, &verdict_empty, "no ping was sent");
		return;
	}
	client->all.source = source.addresses[0];
	look_up_targets(client);
	start_some(client);
}

/* ---- start and stop ---- */

static enum outcome make_targets(struct rping_client *client)
{
	const struct rping_options *options = client->options;
	uint16_t port = (uint16_t)options->port;
	enum outcome outcome = OUTCOME_OK;

	if (EXTRA(options->targets))
		outcome = target_file_read(&client->file, options->targets, port, client->log);
	for (size_t i = 0; i < EXTRA(client->file.count) && !outcome; i++)
		outcome = rping_check_address(options, "--targets", client->file.lines[i].address, client->log);
	if (outcome)
		return outcome;
	client->targets = environment_allocate(client->environment, options->addresses.count + client->file.count,
					       sizeof(*client->targets));
	if (!client->targets)
		return OUTCOME_INTERNAL;
	for (size_t i = 0; i < options->addresses.count; i++)
		target_prepare(&client->targets[client->count++], &client->all, options->addresses.texts[i], port);
	for (size_t i = 0; i < EXTRA(client->file.count); i++)
		target_prepare(&client->targets[client->count++], &client->all, client->file.lines[i].address,
			       client->file.lines[i].port);
	client->all.several = client->count > 1;
	for (size_t i = 0; i < client->count; i++)
		enqueue(client, &client->targets[i]);
	if (!WITH_REPORT || !(options->common.reporting.json || options->common.reporting.json_stream))
		return OUTCOME_OK;
	client->round_trips = environment_allocate(client->environment, client->count, sizeof(*client->round_trips));
	for (size_t i = 0; i < client->count && client->round_trips; i++)
		client->targets[i].round_trips = &client->round_trips[i];
	return client->round_trips ? OUTCOME_OK : OUTCOME_INTERNAL;
}

enum outcome rping_client_start(struct environment *environment, const struct rping_options *options, void **state)
{
	struct rping_client *client = *state = environment_allocate(environment, 1, sizeof(*client));
	enum outcome outcome;

	if (!client)
		return OUTCOME_INTERNAL;
	client->environment = environment;
	client->options = options;
	client->log = &environment->log;
	client->last = &client->first;
	client->all = (struct targets){
		.environment = environment,
		.options = options,
		.changed = target_changed,
		.enqueue = enqueue_target,
		.context = client,
	};
	outcome = make_targets(client);
	if (!outcome)
		outcome = channel_create(environment->transport, &client->all.channel);
	if (outcome)
		return outcome;
	/* A look-up may take seconds, and so may a server that does not reply. */
	if (environment_shows_progress(environment))
		environment_print(environment, "%s: connecting to %s", environment->log.name,
				  client->count == 1 ? client->targets[0].address : "the servers");
	loop_timer_start(environment->loop, &client->begin, 0, client_begin, client);
	return OUTCOME_OK;
}

void rping_client_interrupt(void *state, enum interruption reason)
{
	struct rping_client *client = state;

	client->ending = true;
	for (size_t i = 0; i < client->count; i++)
		target_interrupt(&client->targets[i], reason);
}

void rping_client_report_targets(struct report *report, const void *member)
{
	const struct rping_client *client = *(const struct rping_client *const *)member;
	char index[24];

	/* In text, a single target has no entry of its own. */
	if (client->count == 1 && report->format->draws_buckets)
		return;
	for (size_t i = 0; i < client->count; i++) {
		report_object(report, NULL);
		snprintf(index, sizeof(index), "%zu", i);
		target_report(&client->targets[i], client->count > 1 ? index : NULL, report);
		report_end(report);
	}
}

void rping_client_stop(void *state)
{
	struct rping_client *client = state;

	loop_timer_stop(&client->begin);
	for (size_t i = 0; i < client->count; i++)
		target_release(&client->targets[i]);
	free(client->targets);
	free(client->round_trips);
	if (WITH_EXTRAS)
		target_file_free(&client->file);
	free(client);
}
