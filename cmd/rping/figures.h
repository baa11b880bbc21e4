/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The figures of pings. A round trip is the time from posting the advertisement of the source to the go-ahead that
 * says that the server has written: three messages there and three back. Comparing and printing are not in it.
 */
#ifndef CMD_RPING_FIGURES_H
#define CMD_RPING_FIGURES_H

#include <stdint.h>

#include "cmd/command.h"

struct ping_counts {
	uint64_t sent;
	uint64_t answered;
	uint64_t verified; /* of the answered: every byte was compared */
	int64_t started;   /* when the first one was sent; 0 before that */
	int64_t ended;	   /* when the last answer came */
	struct histogram round_trip;
};

/* Zeroed at first. */
struct ping_figures {
	int64_t sent_at; /* the ping under way */
	struct ping_counts total;
	struct ping_counts interval;
};

void ping_figures_sent(struct ping_figures *figures, int64_t now);
void ping_figures_answered(struct ping_figures *figures, int64_t now);
void ping_figures_verified(struct ping_figures *figures);

/* Adds "pings", of size bytes, and "round_trip" to a report. */
void ping_figures_report(const struct ping_figures *figures, uint32_t size, struct report *report,
			 enum report_span span);
/* Forgets the interval's. */
void ping_figures_next_interval(struct ping_figures *figures);

#endif
