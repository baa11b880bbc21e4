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
#include "core/units.h"

enum {
	CONNECTING_MOST = 48 /* at a time: each lookup is a process, and a server's backlog is limited */
};

struct rping_client {
	struct environment *environment;
	const struct rping_options *options;
	const struct log *log;
	struct target_file file;
	struct target *targets;
	size_t count;
	struct target *first, **last; /* waiting to connect, in order */
	size_t connecting;
	size_t pausing; /* targets that will be retried */
	size_t ended;
	size_t failed;
	bool ending;		     /* start no more targets */
	struct loop_timer beginning; /* starts the first targets from the loop */
	struct resolver source_lookup;
	struct targets all;
};

static void queue(struct rping_client *client, struct target *target)
{
	target->next = NULL;
	*client->last = target;
	client->last = &target->next;
}

static void start_some(struct rping_client *client)
{
	while (client->first && client->connecting < CONNECTING_MOST && !client->ending) {
		struct target *target = client->first;

		client->first = target->next;
		if (!client->first)
			client->last = &client->first;
		if (target->ended)
			continue;
		target->has_slot = true;
		client->connecting++;
		target_start(target);
	}
}

static uint32_t longest_size(const struct rping_client *client)
{
	uint32_t longest = 0;

	for (size_t i = 0; i < client->count; i++)
		if (client->targets[i].size > longest)
			longest = client->targets[i].size;
	return longest;
}

/* Prints the last line of a target. */
static void say_verdict(const struct rping_client *client, const struct target *target)
{
	const char *transport = transport_name(client->environment->transport);
	const struct ping_counts *counts = &target->record.counts;
	FILE *output = environment_output(client->environment);
	bool validate = client->options->validate;
	char pings[PINGS_TEXT_SIZE];

	if (target->outcome) {
		fprintf(output, "%s: FAILED: %s to %s answered (%s%s%s)\n", client->log->name,
			rping_pings_text(counts->answered, (uint64_t)client->options->count, pings),
			target_name(target), transport, target->device ? ", " : "",
			target->device ? target->device : "");
		return;
	}
	fprintf(output, "%s: %s of %" PRIu32 " byte%s to %s answered%s", client->log->name,
		rping_pings_text(counts->answered, 0, pings), target->size, units_plural(target->size),
		target_name(target), validate ? " and verified" : "");
	if (counts->warmup)
		fprintf(output, " after %" PRIu64 " to warm up", counts->warmup);
	fprintf(output, " (%s, %s%s)\n", transport, target->device, validate ? "" : RPING_NOT_COMPARED);
}

static void say_total(const struct rping_client *client)
{
	const struct ping_counts *counts = &client->all.figures.total.counts;
	bool verified = client->options->validate && counts->verified == counts->answered;
	char pings[PINGS_TEXT_SIZE];

	fprintf(environment_output(client->environment), "%s: %stotal: %s answered%s, %zu of %zu targets passed (%s)\n",
		client->log->name, client->failed ? "FAILED: " : "", rping_pings_text(counts->answered, 0, pings),
		verified ? " and verified" : "", client->count - client->failed, client->count,
		transport_name(client->environment->transport));
}

static void stream(struct rping_client *client, const struct target *target)
{
	struct report *record = environment_begin_record(client->environment, "target");

	if (!record)
		return;
	target_report(target, record);
	environment_end_record(client->environment);
}

static void target_ended(struct rping_client *client, struct target *target)
{
	bool all = ++client->ended == client->count;

	client->failed += target->outcome != OUTCOME_OK;
	environment_note(client->environment, target->outcome);
	stream(client, target);
	/* The summary comes before the last line; without a ping there is none. */
	if (all && client->count == 1 && target->record.counts.answered)
		environment_summary(client->environment);
	say_verdict(client, target);
	if (!all)
		return;
	if (client->count > 1) {
		environment_summary(client->environment);
		say_total(client);
	}
	environment_finish(client->environment, OUTCOME_OK);
}

static void count_pause(struct rping_client *client, struct target *target, bool pauses)
{
	if (target->pauses)
		client->pausing--;
	target->pauses = pauses;
	if (pauses)
		client->pausing++;
}

static void target_news(void *owner, struct target *target, enum target_news news)
{
	struct rping_client *client = owner;

	if (target->has_slot && news != TARGET_TRIES) {
		target->has_slot = false;
		client->connecting--;
	}
	count_pause(client, target, news == TARGET_PAUSES);
	if (news == TARGET_TRIES)
		queue(client, target);
	if (news == TARGET_ENDED)
		target_ended(client, target);
	if (client->ended < client->count)
		start_some(client);
	/* Every target is connected or has ended, and none will be retried. */
	if (!client->connecting && !client->first && !client->pausing)
		environment_settled(client->environment);
}

/* The lookup of -I, which all targets need. */

static void source_found(void *owner, enum outcome outcome, const struct address *addresses, size_t count)
{
	struct rping_client *client = owner;

	if (!outcome)
		outcome = path_choose(&client->options->common.family, ADDRESS_NONE, client->log,
				      client->options->source, addresses, count, &client->all.source);
	if (outcome) {
		fprintf(environment_output(client->environment), "%s: FAILED: no ping was sent (%s)\n",
			client->log->name, transport_name(client->environment->transport));
		environment_finish(client->environment, outcome);
		return;
	}
	start_some(client);
}

/* Without -I: the first turn of the loop. */
static void begin(void *owner)
{
	start_some(owner);
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
		queue(client, &client->targets[i]);
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
		.news = target_news,
		.owner = client,
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
		loop_timer_start(environment->loop, &client->beginning, 0, begin, client);
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

/* The maximum of each step over all targets. */
static struct connect_times longest_times(const struct rping_client *client)
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
	struct connect_times times = longest_times(client);
	bool alone = client->count == 1;
	/* Prometheus needs different labels, and an address may be given twice. */
	bool numbered = !alone && !report->format->lists && !report->format->omits_empty;
	char place[24];

	report_text(report, "role", "client");
	report_text(report, "target", alone ? client->targets[0].address : NULL);
	path_report(report, alone ? &client->targets[0].path : &several);
	ping_figures_report(&client->all.figures, longest_size(client), report, span);
	connect_times_report(&times, report);
	/* In text, the summary of a single target has everything. */
	if (alone && report->format->draws_buckets)
		return;
	report_list(report, "targets");
	for (size_t i = 0; i < client->count && span == REPORT_TOTAL; i++) {
		report_object(report, NULL);
		snprintf(place, sizeof(place), "%zu", i);
		if (numbered)
			report_text(report, "index", place);
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
	loop_timer_stop(&client->beginning);
	resolver_stop(&client->source_lookup);
	for (size_t i = 0; i < client->count; i++)
		target_release(&client->targets[i]);
	free(client->targets);
	if (WITH_TARGETS)
		target_file_free(&client->file);
	free(client);
}
