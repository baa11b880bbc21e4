/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/figures.h"

#include "cmd/path.h"
#include "cmd/rping/rping.h"

const struct figure ping_count_figures[] = {
	FIGURE(GAUGE, "size", struct ping_counts, size, .flags = FIGURE_NOT_TABLE),
	FIGURE(GAUGE, "ping_size", struct ping_counts, size,
	       .flags = FIGURE_ONLY_TEXT | FIGURE_NOT_BLOCK | FIGURE_NOT_ROW),
	FIGURE(COUNT, "warmup", struct ping_counts, warmup, .flags = FIGURE_NOT_TABLE),
	FIGURE(COUNT, "sent", struct ping_counts, sent, .flags = FIGURE_NOT_TABLE),
	FIGURE(COUNT, "answered", struct ping_counts, answered.count),
	FIGURE(COUNT, "verified", struct ping_counts, verified, .flags = FIGURE_NOT_TABLE),
	FIGURE(COUNT, "lost", struct ping_counts, lost, .flags = FIGURE_NOT_STEP),
	FIGURE(RATE, "rate", struct ping_counts, answered, .flags = FIGURE_WHOLE),
	FIGURE(BANDWIDTH, "bytes", struct ping_counts, answered, .flags = FIGURE_NOT_TEXT | FIGURE_WHOLE),
	FIGURE(BANDWIDTH, "bandwidth", struct ping_counts, answered,
	       .flags = FIGURE_ONLY_TEXT | FIGURE_NOT_BLOCK | FIGURE_NOT_ROW | FIGURE_WHOLE),
	FIGURES_END,
};

const struct figure connect_figures[] = {
	FIGURE(TIME, "resolve_address", struct connect_times, resolve_address),
	FIGURE(TIME, "resolve_route", struct connect_times, resolve_route),
	FIGURE(TIME, "connect", struct connect_times, connect),
	FIGURES_END,
};

const struct figure ping_figures[] = {
	FIGURE(TEXT, "role", struct ping_figures, role, .flags = FIGURE_LABEL),
	FIGURE(TEXT, "target", struct ping_figures, target, .flags = FIGURE_LABEL),
	FIGURES_OF_CODE(OBJECT, "path", struct ping_figures, path, path_report, .flags = FIGURE_NOT_TABLE),
	FIGURES_OF_ROWS("pings", struct ping_figures, counts, ping_count_figures),
	FIGURE(HISTOGRAM, "round_trip", struct ping_figures, round_trip),
	FIGURES_OF_ROWS("connect", struct ping_figures, connect, connect_figures, .flags = FIGURE_NOT_TABLE),
	FIGURES_OF_CODE(LIST, "targets", struct ping_figures, client, rping_client_report_targets),
	FIGURES_END,
};

void ping_sent(struct ping_record *record, const struct ping_slot *slot)
{
	if (WITH_REPORT && !record->counts.answered.from)
		record->counts.answered.from = slot->from;
	record->counts.sent++;
}

void ping_answered(struct ping_record *record, const struct ping_slot *slot, uint32_t size, int64_t round_trip,
		   bool verified)
{
	struct ping_counts *counts = &record->counts;

	if (WITH_REPORT && slot->to > counts->answered.to)
		counts->answered.to = slot->to;
	counts->answered.count++;
	counts->answered.bytes += size;
	counts->verified += verified;
	samples_add(&record->round_trip, round_trip);
}
