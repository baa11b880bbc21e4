/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/ucmatose/figures.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/path.h"
#include "cmd/ucmatose/ucmatose.h"

#define ROW(kind, name, member, ...) FIGURE(kind, name, struct ucmatose_figures, member, __VA_ARGS__)

static const struct figure ucmatose_figures[] = {
	ROW(TEXT, "role", role, .flags = FIGURE_LABEL),
	ROW(TEXT, "target", target, .flags = FIGURE_LABEL),
	FIGURES_OF_CODE(OBJECT, "path", struct ucmatose_figures, path, path_report, .flags = FIGURE_NOT_TABLE),
	FIGURES_OPEN("connections"),
	ROW(GAUGE, "asked", asked, .flags = FIGURE_NOT_TABLE),
	ROW(TEXT, "connected", connected, .flags = FIGURE_ONLY_TEXT | FIGURE_NOT_BLOCK),
	ROW(COUNT, "made", activities[ACTIVITY_CONNECTING].count, .flags = FIGURE_NOT_TABLE),
	ROW(COUNT, "failed", failed, .flags = FIGURE_NOT_0),
	ROW(COUNT, "refused", refused, .flags = FIGURE_NOT_TABLE),
	ROW(RATE, "rate", activities[ACTIVITY_CONNECTING], .flags = FIGURE_NOT_TABLE),
	FIGURES_CLOSE,
	ROW(HISTOGRAM, "resolve_address", steps[STEP_RESOLVE_ADDRESS], .flags = FIGURE_NOT_TABLE),
	ROW(HISTOGRAM, "resolve_route", steps[STEP_RESOLVE_ROUTE], .flags = FIGURE_NOT_TABLE),
	ROW(HISTOGRAM, "connect", steps[STEP_CONNECT], .flags = FIGURE_NOT_TABLE),
	ROW(HISTOGRAM, "accept", steps[STEP_ACCEPT], .flags = FIGURE_NOT_TABLE),
	ROW(HISTOGRAM, "disconnect", steps[STEP_DISCONNECT], .flags = FIGURE_NOT_TABLE),
	FIGURES_OPEN("messages"),
	ROW(GAUGE, "size", size, .flags = FIGURE_NOT_TABLE),
	ROW(COUNT, "sent", activities[ACTIVITY_SENDING].count),
	ROW(COUNT, "received", activities[ACTIVITY_RECEIVING].count),
	ROW(COUNT, "verified", verified),
	ROW(RATE, "sent_rate", activities[ACTIVITY_SENDING]),
	ROW(RATE, "received_rate", activities[ACTIVITY_RECEIVING]),
	ROW(BANDWIDTH, "sent_bytes", activities[ACTIVITY_SENDING], .flags = FIGURE_NOT_TABLE),
	ROW(BANDWIDTH, "received_bytes", activities[ACTIVITY_RECEIVING], .flags = FIGURE_NOT_TABLE),
	FIGURES_CLOSE,
	FIGURES_END,
};

void ucmatose_figures_start(struct ucmatose_figures *figures, enum activity activity, int64_t now)
{
	if (WITH_REPORT && !figures->activities[activity].from)
		figures->activities[activity].from = now;
}

void ucmatose_figures_restart(struct ucmatose_figures *figures, enum activity activity, int64_t now)
{
	struct rate *rate = &figures->activities[activity];

	if (WITH_REPORT && rate->from && !rate->count)
		rate->from = now;
}

void ucmatose_figures_try(struct ucmatose *run, int64_t now)
{
	if (!WITH_REPORT)
		return;
	memset(run->figures.steps, 0, sizeof(run->figures.steps));
	memset(run->before.steps, 0, sizeof(run->before.steps));
	ucmatose_figures_restart(&run->figures, ACTIVITY_CONNECTING, now);
}

void ucmatose_figures_count(struct ucmatose_figures *figures, enum activity activity, int64_t now)
{
	figures->activities[activity].count++;
	figures->activities[activity].to = now;
}

struct figures ucmatose_figures_update(void *state)
{
	static const enum connection_state states[ACTIVITIES] = {
		[ACTIVITY_CONNECTING] = CONNECTION_CONNECTING,
		[ACTIVITY_SENDING] = CONNECTION_SENDING,
		[ACTIVITY_RECEIVING] = CONNECTION_RECEIVING,
	};
	struct ucmatose *run = state;
	struct ucmatose_figures *figures = &run->figures;
	const char *target = run->is_server ? run->options->bind : run->options->server;

	figures->role = run->is_server ? "server" : "client";
	figures->target = target ? target : run->source.family ? address_host(&run->source, figures->source) : NULL;
	figures->asked = run->wanted;
	snprintf(figures->of_asked, sizeof(figures->of_asked), "%" PRIu64 "/%" PRIu64,
		 figures->activities[ACTIVITY_CONNECTING].count, figures->asked);
	figures->connected = figures->of_asked;
	figures->size = (uint64_t)run->options->size;
	for (int i = 0; i < ACTIVITIES; i++) {
		figures->activities[i].bytes = figures->activities[i].count * figures->size;
		figures->activities[i].goes_on = run->in_state[states[i]];
	}
	return (struct figures){ ucmatose_figures, figures, &run->before, sizeof(*figures) };
}
