/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statistics of pings. A round trip is the time from posting the source advertisement to receiving the go-ahead after
 * the WRITE: three messages in each direction, without verifying and printing. Of warm-up pings only the number is
 * recorded.
 *
 * All targets of a run share one histogram. Only for JSON each also has its own, 10 KB.
 */
#ifndef CMD_RPING_FIGURES_H
#define CMD_RPING_FIGURES_H

#include <stdint.h>

#include "cmd/command.h"

/*
 * The time slot of a ping, for the rate. With --interval it lasts from the scheduled time to the next one, or to the
 * answer if that is later; else it is the round trip. So n paced pings take n periods, and the reported rate is at most
 * that of the schedule.
 */
struct ping_slot {
	int64_t from;
	int64_t to; /* set when the ping is answered */
};

/* Initially all zeros. */
struct ping_counts {
	uint64_t size; /* bytes of a ping, of a sweep the current one; set for a report */
	uint64_t warmup;
	uint64_t sent;
	uint64_t verified;    /* answered pings whose payload was verified */
	uint64_t lost;	      /* sent, and not answered when the connection ended */
	struct rate answered; /* from the start of the first slot to the end of the last answered one */
};

/* Durations of the connection steps, nanoseconds; 0: not reached. */
struct connect_times {
	int64_t begun; /* start of the current step, on the clock */
	int64_t resolve_address;
	int64_t resolve_route;
	int64_t connect;
};

/* Statistics of one target. */
struct ping_record {
	struct ping_counts counts;
	struct samples round_trip;
};

/* Statistics of all targets, summed for a report. Initially all zeros. */
struct ping_figures {
	const char *role;
	const char *target; /* NULL with several targets; so is path zeroed */
	struct path path;
	struct ping_counts counts;
	struct histogram round_trip;
	struct connect_times connect;	   /* the maximum of all targets; so is the size */
	const struct rping_client *client; /* for the list of its targets */
};

extern const struct figure ping_figures[], ping_count_figures[], connect_figures[];

void ping_sent(struct ping_record *record, const struct ping_slot *slot);
void ping_answered(struct ping_record *record, const struct ping_slot *slot, uint32_t size, int64_t round_trip,
		   bool verified);

#endif
