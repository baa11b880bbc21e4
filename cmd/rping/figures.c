/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/figures.h"

#include <string.h>

static void count_sent(struct ping_counts *counts, const struct ping_slot *slot)
{
	if (!counts->started)
		counts->started = slot->from;
	counts->sent++;
}

void ping_sent(struct ping_figures *figures, struct ping_record *record, const struct ping_slot *slot)
{
	count_sent(&figures->total.counts, slot);
	count_sent(&figures->interval.counts, slot);
	count_sent(&record->counts, slot);
}

static void count_answered(struct ping_counts *counts, int64_t ended, bool verified)
{
	if (ended > counts->ended)
		counts->ended = ended;
	counts->answered++;
	counts->verified += verified;
}

void ping_answered(struct ping_figures *figures, struct ping_record *record, const struct ping_slot *slot,
		   int64_t round_trip, bool verified)
{
	count_answered(&figures->total.counts, slot->to, verified);
	histogram_add(&figures->total.round_trip, round_trip);
	count_answered(&figures->interval.counts, slot->to, verified);
	histogram_add(&figures->interval.round_trip, round_trip);
	if (!record->counts.answered || round_trip < record->shortest)
		record->shortest = round_trip;
	if (round_trip > record->longest)
		record->longest = round_trip;
	record->sum += round_trip;
	count_answered(&record->counts, slot->to, verified);
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

static int64_t elapsed(const struct ping_counts *counts)
{
	return counts->ended - counts->started;
}

static void report_counts(struct report *report, uint32_t size, const struct ping_counts *counts, int64_t time)
{
	report_object(report, "pings");
	report_count_detail(report, "size", size);
	report_count_detail(report, "warmup", counts->warmup);
	report_count(report, "sent", counts->sent);
	report_count(report, "answered", counts->answered);
	report_count_detail(report, "verified", counts->verified);
	report_count(report, "lost", counts->lost);
	report_rate(report, "rate", counts->answered, time);
	report_end(report);
}

void ping_figures_report(const struct ping_figures *figures, uint32_t size, struct report *report,
			 enum report_span span)
{
	bool is_interval = span == REPORT_INTERVAL;
	const struct ping_span *source = is_interval ? &figures->interval : &figures->total;

	report_counts(report, size, &source->counts,
		      is_interval ? clock_now() - figures->interval_began : elapsed(&source->counts));
	report_histogram(report, "round_trip", &source->round_trip);
}

void ping_record_report(const struct ping_record *record, uint32_t size, struct report *report)
{
	/* Text has one short line for each target. */
	if (report->format->omits_empty) {
		report_count(report, "answered", record->counts.answered);
		report_count(report, "lost", record->counts.lost);
	} else {
		report_counts(report, size, &record->counts, elapsed(&record->counts));
	}
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
	figures->interval_began = clock_now();
}
