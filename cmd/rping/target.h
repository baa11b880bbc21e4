/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target: one server that the client pings. It looks the name up, connects to the first address that answers, reads
 * the maximum ping size from the server's hello and repeats the cycle of protocol.h until it is done or interrupted. An
 * error ends this target only.
 */
#ifndef CMD_RPING_TARGET_H
#define CMD_RPING_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/dial.h"
#include "cmd/rping/figures.h"
#include "cmd/rping/pace.h"
#include "cmd/rping/protocol.h"
#include "cmd/rping/rping.h"
#include "core/state.h"
#include "transport/transport.h"

struct target;

/* target.c has the table of transitions. */
enum target_state {
	TARGET_WAITING,
	TARGET_CONNECTING,
	TARGET_CONNECTED,
	TARGET_SOURCE_ADVERTISED,
	TARGET_SINK_ADVERTISED,
	TARGET_DRAINING,
	TARGET_PACING,
	TARGET_DISCONNECTING,
	TARGET_DONE,
	TARGET_STATES,
};

/* Shared by the targets of a run. */
struct targets {
	struct environment *environment;
	const struct rping_options *options;
	struct channel *channel;
	struct address source; /* ADDRESS_NONE without -I */
	bool several;
	size_t in_state[TARGET_STATES];
	struct ping_figures figures;
	/*
	 * Called from the loop, or by target_interrupt(): a target waits to connect again, is connected, or is done,
	 * with its outcome.
	 */
	void (*changed)(void *context, struct target *target);
	/* A target can connect: call target_start() after those that wait already. */
	void (*enqueue)(void *context, struct target *target);
	void *context;
};

struct target {
	struct target *next; /* the owner's queue */
	struct targets *all;
	const char *address; /* as given on the command line */

	struct endpoint *endpoint;
	struct control control;
	struct region *source_region;
	struct region *sink_region;
	const char *device;

	bool stock; /* the server sent no hello */
	uint32_t size;
	size_t source_offset; /* of the ping in source_region */
	uint32_t shortest;    /* the first size of a sweep, or size */
	uint32_t passed;      /* the last size of a sweep that was answered; 0: none */
	uint32_t longest;     /* the last size of a sweep that the server accepts, or size */
	uint64_t done;	      /* pings answered, including warm-up */
	uint64_t first;	      /* done at the first measured ping, of a sweep of this size */
	int64_t sent_at;      /* clock time of the current ping; 0: none, or a warm-up ping */
	unsigned uncompleted; /* signalled advertisements without a completion, see RPING_SIGNAL_EVERY */
	bool last;	      /* end after this ping */
	bool duration_passed; /* --duration */
	bool deadline_passed; /* --deadline */
	enum outcome outcome;

	/* For the report: */
	const char *index, *name;
	const char *verdict; /* NULL until it has ended */
	bool failed;
	char *error; /* the first one; NULL: none */

	struct log log; /* records the first error */
	struct state state;
	struct dial dial;
	struct connect_times times;
	struct path path; /* of the last connection */
	struct ping_record record;
	struct histogram *round_trips; /* NULL: not for JSON; the owner's. Empty in a sweep */
	struct pace pace;
	struct ping_slot slot; /* of the current ping */
	struct loop_timer pace_timer;
	struct loop_timer duration;
};

/* Initialises a target. It is idle until target_start(). address must outlive it. */
void target_prepare(struct target *target, struct targets *all, const char *address, uint16_t port);

/* Starts to look its name up. */
void target_look_up(struct target *target);

/* Waits for that. A failure ends the target. */
void target_looked_up(struct target *target);

/* Connects, or tries again. */
void target_start(struct target *target);

/* Ends the target by a disconnect, after the current ping unless --deadline has passed. */
void target_interrupt(struct target *target, enum interruption reason);

/* Returns the address and port; before the name is resolved, the address as given. */
const char *target_name(const struct target *target);

/* Writes "3 pings", or "3 of 10 pings" if their number was requested. Returns text. */
const char *target_pings_text(const struct target *target, char text[PINGS_TEXT_SIZE]);

/* Adds the figures of the target to a report. index may be NULL. */
void target_report(struct target *target, const char *index, struct report *report);

/* Frees all resources, in any state, without an event. */
void target_release(struct target *target);

/* ---- for target_cycle.c ---- */

void target_enter(struct target *target, enum target_state state);
/* Disconnects. With OUTCOME_OK, the pings that were answered decide the outcome. */
void target_disconnect(struct target *target, enum outcome outcome);
/* Ends the target immediately. The owner may have ended the run when this returns. */
void target_finish(struct target *target, enum outcome outcome);
/* True if -C or --duration, of a sweep that of this size, is not reached, or there is none. */
bool target_has_more(const struct target *target);
/* Returns the next size of a sweep, or 0. */
uint32_t target_next_size(const struct target *target);

/* ---- target_cycle.c: the pings ---- */

/* Allocates the source and the sink, and starts the first ping. */
void target_cycle_begin(struct target *target);
/* Starts the next ping in its slot, or disconnects after the last one. */
void target_cycle_continue(struct target *target);
void target_cycle_completed(void *context, struct endpoint *endpoint, const struct completion *completion);

#endif
