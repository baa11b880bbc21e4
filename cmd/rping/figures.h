/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statistics of pings. A round trip is the time from posting the source advertisement to receiving the go-ahead after
 * the WRITE: three messages in each direction, without verifying and printing. Of warm-up pings only the number is
 * recorded.
 *
 * All targets of a run share one histogram, because a thousand histograms would need too much memory.
 */
#ifndef CMD_RPING_FIGURES_H
#define CMD_RPING_FIGURES_H

#include <stdint.h>

#include "cmd/command.h"

/*
 * The time slot of a ping, for the rate. With --interval or --rate it lasts from the scheduled time to the next one, or
 * to the answer if that is later; else it is the round trip. So n paced pings take n periods, and the reported rate
 * does not exceed --rate.
 */
struct ping_slot {
	int64_t from;
	int64_t to; /* set when the ping is answered */
};

/* Initially all zeros. */
struct ping_counts {
	uint64_t warmup;
	uint64_t sent;
	uint64_t answered;
	uint64_t verified; /* answered pings whose payload was verified */
	uint64_t lost;	   /* sent, and not answered when the connection ended */
	int64_t started;   /* start of the first slot; 0: no ping sent */
	int64_t ended;	   /* end of the last answered slot */
};

/* Statistics of one target. */
struct ping_record {
	struct ping_counts counts;
	int64_t shortest; /* round trips, in nanoseconds */
	int64_t longest;
	int64_t sum;
};

/* Statistics of all targets. Initially all zeros; then ping_figures_next_interval() starts the first interval. */
struct ping_figures {
	struct ping_span {
		struct ping_counts counts;
		struct histogram round_trip;
	} total, interval;
	int64_t interval_began;
};

void ping_sent(struct ping_figures *figures, struct ping_record *record, const struct ping_slot *slot);
void ping_answered(struct ping_figures *figures, struct ping_record *record, const struct ping_slot *slot,
		   int64_t round_trip, bool verified);
void ping_lost(struct ping_figures *figures, struct ping_record *record);
void ping_warmed_up(struct ping_figures *figures, struct ping_record *record);

/* Adds "pings" and "round_trip" to a report. size is the ping length in bytes. */
void ping_figures_report(const struct ping_figures *figures, uint32_t size, struct report *report,
			 enum report_span span);
/* Adds those of one target, without percentiles. Text has only the answered and lost ones. */
void ping_record_report(const struct ping_record *record, uint32_t size, struct report *report);
/* Clears the statistics of the interval and starts the next interval. */
void ping_figures_next_interval(struct ping_figures *figures);

#endif
