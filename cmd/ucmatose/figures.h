/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The figures of a run, over all its connections.
 *
 * The time of a step is that of one connection, from the call of the transport to the event that completes it. It does
 * not depend on the number of connections in progress.
 *
 * A rate is a count over a time. Connections: from the first one begun to the last one established. Messages sent: from
 * the first post to the last completion. Messages received: from the moment the first connection waits for one to the
 * last arrival. A client waits once all connections are established, a server once all messages of a connection are
 * posted: with few messages, the server's two rates are over almost the same time.
 */
#ifndef CMD_UCMATOSE_FIGURES_H
#define CMD_UCMATOSE_FIGURES_H

#include <stdint.h>

#include "core/figures.h"
#include "transport/transport.h"

struct ucmatose;

enum step {
	STEP_RESOLVE_ADDRESS,
	STEP_RESOLVE_ROUTE,
	STEP_CONNECT,	 /* client: from the request to the server's accept */
	STEP_ACCEPT,	 /* server: from the accept to the client's confirmation (IB: RTU) */
	STEP_DISCONNECT, /* at the end that disconnects: the server, or either one in an interrupted run */
	STEPS,
};

/* An activity has a count and a duration, hence a rate. */
enum activity {
	ACTIVITY_CONNECTING, /* connections established */
	ACTIVITY_SENDING,    /* messages acknowledged */
	ACTIVITY_RECEIVING,  /* messages received */
	ACTIVITIES,
};

/* Zero it before use. */
struct ucmatose_figures {
	const char *role;
	const char *target;
	char source[ADDRESS_TEXT_SIZE]; /* the text of target, if it was not given as one */
	struct path path;		/* of the first connection established */
	char of_asked[48];		/* "230/1000" */
	const char *connected;		/* that text */
	uint64_t asked;
	uint64_t failed;
	uint64_t refused;  /* requests beyond -c or of another client */
	uint64_t size;	   /* bytes of a message */
	uint64_t verified; /* messages received whose bytes were compared */
	struct rate activities[ACTIVITIES];
	struct histogram steps[STEPS];
};

/* Starts an activity; ignored if it has started. */
void ucmatose_figures_start(struct ucmatose_figures *figures, enum activity activity, int64_t now);
/* The first connection begins an attempt: discards the times of earlier attempts. */
void ucmatose_figures_try(struct ucmatose *run, int64_t now);
/* Restarts the time of an activity that has started and has counted nothing yet. */
void ucmatose_figures_restart(struct ucmatose_figures *figures, enum activity activity, int64_t now);
void ucmatose_figures_count(struct ucmatose_figures *figures, enum activity activity, int64_t now);

#endif
