/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The figures of pings. A round trip is the time from posting the advertisement of the source to the go-ahead that
 * says that the server has written: three messages there and three back. Comparing and printing are not in it. Pings to
 * warm up are not counted, but how many they were.
 *
 * A run has one distribution for all its targets, so that a thousand of them do not need a thousand.
 */
#ifndef CMD_RPING_FIGURES_H
#define CMD_RPING_FIGURES_H

#include <stdint.h>

#include "cmd/command.h"

/*
 * The time that a ping takes up: with a pace from its beat to the next one, or to its answer if that comes later; else
 * its round trip. So n paced pings take n beats, and a rate is never above the one that was asked for.
 */
struct ping_turn {
	int64_t from;
	int64_t to; /* known once the answer has come */
};

/* Zeroed at first. */
struct ping_counts {
	uint64_t warmup;
	uint64_t sent;
	uint64_t answered;
	uint64_t verified; /* of the answered: every byte was compared */
	uint64_t lost;	   /* sent, and given up or cut off before the answer */
	int64_t started;   /* the turn of the first one; 0 before that */
	int64_t ended;	   /* that of the last one answered */
};

/* Of one target. */
struct ping_record {
	struct ping_counts counts;
	int64_t shortest; /* round trips, in nanoseconds */
	int64_t longest;
	int64_t sum;
};

/* Of all. Zeroed at first, and then ping_figures_next_interval() begins the first interval. */
struct ping_figures {
	struct ping_span {
		struct ping_counts counts;
		struct histogram round_trip;
	} total, interval;
	int64_t interval_began;
};

void ping_sent(struct ping_figures *figures, struct ping_record *record, const struct ping_turn *turn);
void ping_answered(struct ping_figures *figures, struct ping_record *record, const struct ping_turn *turn,
		   int64_t round_trip, bool verified);
void ping_lost(struct ping_figures *figures, struct ping_record *record);
void ping_warmed_up(struct ping_figures *figures, struct ping_record *record);

/* Adds "pings", of size bytes, and "round_trip" to a report. */
void ping_figures_report(const struct ping_figures *figures, uint32_t size, struct report *report,
			 enum report_span span);
/* The same of one target, without percentiles, and for a person without what all of them have alike. */
void ping_record_report(const struct ping_record *record, uint32_t size, struct report *report);
/* Forgets the interval's, and begins the next one now. */
void ping_figures_next_interval(struct ping_figures *figures);

#endif
