/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/figures.h"

#include <string.h>

static void count_sent(struct ping_counts *counts, int64_t now)
{
	if (!counts->started)
		counts->started = now;
	counts->sent++;
}

void ping_figures_sent(struct ping_figures *figures, int64_t now)
{
	figures->sent_at = now;
	count_sent(&figures->total, now);
	count_sent(&figures->interval, now);
}

static void count_answered(struct ping_counts *counts, int64_t now, int64_t round_trip)
{
	/* A ping may come back in the interval after the one that sent it. */
	if (!counts->started)
		counts->started = now - round_trip;
	counts->ended = now;
	counts->answered++;
	histogram_add(&counts->round_trip, round_trip);
}

void ping_figures_answered(struct ping_figures *figures, int64_t now)
{
	count_answered(&figures->total, now, now - figures->sent_at);
	count_answered(&figures->interval, now, now - figures->sent_at);
}

void ping_figures_verified(struct ping_figures *figures)
{
	figures->total.verified++;
	figures->interval.verified++;
}

void ping_figures_report(const struct ping_figures *figures, uint32_t size, struct report *report,
			 enum report_span span)
{
	const struct ping_counts *counts = span == REPORT_INTERVAL ? &figures->interval : &figures->total;

	report_object(report, "pings");
	report_count(report, "size", size);
	report_count(report, "sent", counts->sent);
	report_count(report, "answered", counts->answered);
	report_count(report, "verified", counts->verified);
	report_rate(report, "rate", counts->answered, counts->ended - counts->started);
	report_end(report);
	report_histogram(report, "round_trip", &counts->round_trip);
}

void ping_figures_next_interval(struct ping_figures *figures)
{
	memset(&figures->interval, 0, sizeof(figures->interval));
}
