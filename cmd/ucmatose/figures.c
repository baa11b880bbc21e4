/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/ucmatose/figures.h"

#include <string.h>

#include "cmd/path.h"
#include "cmd/ucmatose/ucmatose.h"

static void span_start(struct figures_span *span, enum activity activity, int64_t now)
{
	if (!span->activities[activity].started)
		span->activities[activity].started = now;
}

void ucmatose_figures_start(struct ucmatose_figures *figures, enum activity activity, int64_t now)
{
	span_start(&figures->total, activity, now);
	span_start(&figures->interval, activity, now);
}

static void activity_restart(struct activity_record *record, int64_t now)
{
	if (record->started && !record->count)
		record->started = now;
}

void ucmatose_figures_restart(struct ucmatose_figures *figures, enum activity activity, int64_t now)
{
	activity_restart(&figures->total.activities[activity], now);
	activity_restart(&figures->interval.activities[activity], now);
}

void ucmatose_figures_try(struct ucmatose_figures *figures, int64_t now)
{
	memset(figures->total.steps, 0, sizeof(figures->total.steps));
	memset(figures->interval.steps, 0, sizeof(figures->interval.steps));
	ucmatose_figures_restart(figures, ACTIVITY_CONNECTING, now);
}

static void span_count(struct figures_span *span, enum activity activity, int64_t now)
{
	span->activities[activity].count++;
	span->activities[activity].ended = now;
}

void ucmatose_figures_count(struct ucmatose_figures *figures, enum activity activity, int64_t now)
{
	span_count(&figures->total, activity, now);
	span_count(&figures->interval, activity, now);
}

void ucmatose_figures_failed(struct ucmatose_figures *figures)
{
	figures->total.failed++;
	figures->interval.failed++;
}

void ucmatose_figures_refused(struct ucmatose_figures *figures)
{
	figures->total.refused++;
	figures->interval.refused++;
}

void ucmatose_figures_verified(struct ucmatose_figures *figures)
{
	figures->total.verified++;
	figures->interval.verified++;
}

void ucmatose_figures_step(struct ucmatose_figures *figures, enum step step, int64_t time)
{
	histogram_add(&figures->total.steps[step], time);
	histogram_add(&figures->interval.steps[step], time);
}

/* Activities that have started count from the start of the interval. */
void ucmatose_figures_next_interval(struct ucmatose_figures *figures, int64_t now)
{
	memset(&figures->interval, 0, sizeof(figures->interval));
	for (int i = 0; i < ACTIVITIES; i++)
		if (figures->total.activities[i].started)
			figures->interval.activities[i].started = now;
}

/* The duration of an activity, pauses included: it ends when no connection is in its state any more. */
static int64_t activity_time(const struct ucmatose *run, const struct figures_span *span, enum activity activity)
{
	static const enum connection_state states[ACTIVITIES] = {
		[ACTIVITY_CONNECTING] = CONNECTION_CONNECTING,
		[ACTIVITY_SENDING] = CONNECTION_SENDING,
		[ACTIVITY_RECEIVING] = CONNECTION_RECEIVING,
	};
	const struct activity_record *record = &span->activities[activity];

	if (!record->started)
		return 0;
	return (run->in_state[states[activity]] ? clock_now() : record->ended) - record->started;
}

static void report_connections(const struct ucmatose *run, const struct figures_span *span, struct report *report)
{
	uint64_t made = span->activities[ACTIVITY_CONNECTING].count;

	report_object(report, "connections");
	report_count(report, "asked", run->wanted);
	report_count(report, "made", made);
	report_failed(report, span->failed);
	report_count(report, "refused", span->refused);
	report_count(report, "warmup",
		     run->options->warmup < run->wanted ? (uint64_t)run->options->warmup : run->wanted);
	report_rate(report, "rate", made, activity_time(run, span, ACTIVITY_CONNECTING));
	report_end(report);
}

static void report_messages(const struct ucmatose *run, const struct figures_span *span, struct report *report)
{
	uint64_t sent = span->activities[ACTIVITY_SENDING].count;
	uint64_t received = span->activities[ACTIVITY_RECEIVING].count;
	int64_t sending = activity_time(run, span, ACTIVITY_SENDING),
		receiving = activity_time(run, span, ACTIVITY_RECEIVING);
	uint64_t size = (uint64_t)run->options->size;

	report_object(report, "messages");
	report_count(report, "size", size);
	report_count(report, "sent", sent);
	report_count(report, "received", received);
	report_count(report, "verified", span->verified);
	report_rate(report, "sent_rate", sent, sending);
	report_rate(report, "received_rate", received, receiving);
	report_bandwidth(report, "sent_bytes", sent * size, sending);
	report_bandwidth(report, "received_bytes", received * size, receiving);
	report_end(report);
}

void ucmatose_report(const struct ucmatose *run, struct report *report, enum report_span span)
{
	static const char *const names[STEPS] = {
		[STEP_RESOLVE_ADDRESS] = "resolve_address",
		[STEP_RESOLVE_ROUTE] = "resolve_route",
		[STEP_CONNECT] = "connect",
		[STEP_ACCEPT] = "accept",
		[STEP_DISCONNECT] = "disconnect",
	};
	const struct figures_span *found = span == REPORT_INTERVAL ? &run->figures.interval : &run->figures.total;
	const char *target = run->is_server ? run->options->bind : run->options->server;
	char any[ADDRESS_TEXT_SIZE];

	report_text(report, "role", run->is_server ? "server" : "client");
	report_text(report, "target", target ? target : run->source.family ? address_host(&run->source, any) : NULL);
	path_report(report, &run->path);
	report_connections(run, found, report);
	for (int i = 0; i < STEPS; i++)
		report_histogram(report, names[i], &found->steps[i]);
	report_messages(run, found, report);
}
