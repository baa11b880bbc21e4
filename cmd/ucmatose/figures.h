/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The figures of a run, over all its connections.
 *
 * The time of a step is what one connection waits for it: from asking the transport to the event that it is done,
 * however many other connections are under way. A rate is over the time in which it was asked for: connections from the
 * first one begun to the last one made; messages from the first one posted to the last one acknowledged, or from the
 * moment the first connection waits for one to the last one that came. A client waits once all are connected, a server
 * once all the messages of a connection are posted: with few of them its two rates are over almost the same time.
 */
#ifndef CMD_UCMATOSE_FIGURES_H
#define CMD_UCMATOSE_FIGURES_H

#include <stdint.h>

#include "core/histogram.h"

enum step {
	STEP_RESOLVE_ADDRESS,
	STEP_RESOLVE_ROUTE,
	STEP_CONNECT,	 /* client: from the request to the server's answer */
	STEP_ACCEPT,	 /* server: from the answer to the client's last word */
	STEP_DISCONNECT, /* at the end that asks for it: the server, unless a run is cut short */
	STEPS,
};

/* What goes on for a while, is counted, and so has a rate. */
enum activity {
	ACTIVITY_CONNECTING, /* counts connections made */
	ACTIVITY_SENDING,    /* messages acknowledged */
	ACTIVITY_RECEIVING,  /* messages */
	ACTIVITIES,
};

/* Of the whole run, or of an interval. */
struct figures_span {
	struct activity_record {
		uint64_t count;
		int64_t started; /* 0 before that */
		int64_t ended;	 /* when it was last counted */
	} activities[ACTIVITIES];
	uint64_t failed;
	uint64_t refused;  /* requests beyond -c */
	uint64_t verified; /* of the messages that came: every byte was compared */
	struct histogram steps[STEPS];
};

/* Zeroed at first. */
struct ucmatose_figures {
	struct figures_span total;
	struct figures_span interval;
};

/* Only the first start counts. */
void ucmatose_figures_start(struct ucmatose_figures *figures, enum activity activity, int64_t now);
/* The first connection is tried, maybe again: what earlier tries took does not count. */
void ucmatose_figures_try(struct ucmatose_figures *figures, int64_t now);
/* What it was waited for so far does not count, unless something was counted. */
void ucmatose_figures_restart(struct ucmatose_figures *figures, enum activity activity, int64_t now);
void ucmatose_figures_count(struct ucmatose_figures *figures, enum activity activity, uint64_t count, int64_t now);
void ucmatose_figures_failed(struct ucmatose_figures *figures);
void ucmatose_figures_refused(struct ucmatose_figures *figures);
void ucmatose_figures_verified(struct ucmatose_figures *figures);
void ucmatose_figures_step(struct ucmatose_figures *figures, enum step step, int64_t time);
/* A new interval begins. */
void ucmatose_figures_next_interval(struct ucmatose_figures *figures, int64_t now);

#endif
