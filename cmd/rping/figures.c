/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/figures.h"

#include <string.h>

static void count_sent(struct ping_counts *counts, int64_t now)
{
	if (!counts->started)
		counts->started = now;
	counts->sent++;
}

void ping_sent(struct ping_figures *figures, struct ping_record *record, int64_t now)
{
	count_sent(&figures->total.counts, now);
	count_sent(&figures->interval.counts, now);
	count_sent(&record->counts, now);
}

static void count_answered(struct ping_counts *counts, int64_t now, int64_t round_trip, bool verified)
{
	/* A ping may come back in the interval after the one that sent it. */
	if (!counts->started)
		counts->started = now - round_trip;
	counts->ended = now;
	counts->answered++;
	counts->verified += verified;
}

void ping_answered(struct ping_figures *figures, struct ping_record *record, int64_t now, int64_t round_trip,
		   bool verified)
{
	count_answered(&figures->total.counts, now, round_trip, verified);
	histogram_add(&figures->total.round_trip, round_trip);
	count_answered(&figures->interval.counts, now, round_trip, verified);
	histogram_add(&figures->interval.round_trip, round_trip);
	if (!record->counts.answered || round_trip < record->shortest)
		record->shortest = round_trip;
	if (round_trip > record->longest)
		record->longest = round_trip;
	record->sum += round_trip;
	count_answered(&record->counts, now, round_trip, verified);
}

void ping_lost(struct ping_figures *figures, struct ping_record *record)
{
	figures->total.counts.lost++;
	figures->interval.counts.lost++;
	record->counts.lost++;
}

void ping_warmed_up(struct ping_figures *figures, struct ping_record *record)
{
	figures->total.counts.warmup++;
	figures->interval.counts.warmup++;
	record->counts.warmup++;
}

static void report_counts(struct report *report, uint32_t size, const struct ping_counts *counts)
{
	report_object(report, "pings");
	report_count(report, "size", size);
	report_count(report, "warmup", counts->warmup);
	report_count(report, "sent", counts->sent);
	report_count(report, "answered", counts->answered);
	report_count(report, "verified", counts->verified);
	report_count(report, "lost", counts->lost);
	report_rate(report, "rate", counts->answered, counts->ended - counts->started);
	report_end(report);
}

void ping_figures_report(const struct ping_figures *figures, uint32_t size, struct report *report,
			 enum report_span span)
{
	const struct ping_span *found = span == REPORT_INTERVAL ? &figures->interval : &figures->total;

	report_counts(report, size, &found->counts);
	report_histogram(report, "round_trip", &found->round_trip);
}

void ping_record_report(const struct ping_record *record, uint32_t size, struct report *report)
{
	report_counts(report, size, &record->counts);
	if (!record->counts.answered)
		return;
	report_object(report, "round_trip");
	report_time(report, "min", record->shortest);
	report_time(report, "avg", record->sum / (int64_t)record->counts.answered);
	report_time(report, "max", record->longest);
	report_end(report);
}

void ping_figures_next_interval(struct ping_figures *figures)
{
	memset(&figures->interval, 0, sizeof(figures->interval));
}
