/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target: one server that the client pings. It resolves the name, connects to the first address that answers, takes
 * the maximum ping size from the server's hello and runs the cycle of protocol.h until it is done or interrupted. An
 * error ends this target only.
 */
#ifndef CMD_RPING_TARGET_H
#define CMD_RPING_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/dial.h"
#include "cmd/rping/control.h"
#include "cmd/rping/figures.h"
#include "cmd/rping/pace.h"
#include "cmd/rping/rping.h"
#include "core/state.h"
#include "transport/transport.h"

struct target;

/* Called from the loop, or by target_interrupt(). */
enum target_news {
	TARGET_CONNECTED, /* pings start */
	TARGET_PAUSES,	  /* no server answered: it will retry */
	TARGET_TRIES,	  /* time to retry: call target_start() */
	TARGET_ENDED,	  /* with target->outcome */
};

/* Shared by the targets of a run. */
struct targets {
	struct environment *environment;
	const struct rping_options *options;
	struct channel *channel;
	struct address source; /* ADDRESS_NONE without -I */
	bool several;
	struct ping_figures figures;
	void (*news)(void *owner, struct target *target, enum target_news news);
	void *owner;
};

/* Durations of the connection steps, nanoseconds; 0: not reached. */
struct connect_times {
	int64_t begun; /* start of the current step, on the clock */
	int64_t resolve_address;
	int64_t resolve_route;
	int64_t connect;
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
	uint64_t done;	  /* pings answered, including warm-up */
	int64_t sent_at;  /* of the current ping; 0: none, or not measured */
	unsigned sending; /* signalled advertisements not yet completed, see RPING_REPORT_EVERY */
	bool last;	  /* end after this ping */
	bool timed;	  /* because --duration has passed */
	bool overdue;	  /* --deadline has passed */
	bool pauses;	  /* for the client: will be retried */
	bool has_slot;	  /* for the owner: counts as connecting */
	bool ended;
	enum outcome outcome;
	char *error;	/* the first, for the report; NULL: none */
	struct log log; /* keeps the first error */
	struct state state;
	struct dial dial;
	struct connect_times times;
	struct path path; /* of the last connection */
	struct ping_record record;
	struct pace pace;
	struct ping_turn turn;
	struct loop_timer beat;
	struct loop_timer duration;
};

/* address must outlive the target. Does nothing before target_start(). */
void target_prepare(struct target *target, struct targets *all, const char *address, uint16_t port);

/* Starts, or retries after TARGET_TRIES. */
void target_start(struct target *target);

/* Ends the target by a disconnect, after the current ping unless --deadline has passed. */
void target_interrupt(struct target *target, enum interruption reason);

/* Its address and port; before they are resolved, the address as given. */
const char *target_name(const struct target *target);

/* Adds its fields to an entry of the report's list of targets. */
void target_report(const struct target *target, struct report *report);
/* Adds "connect". */
void connect_times_report(const struct connect_times *times, struct report *report);

/* Releases everything, in any state, without a callback. */
void target_release(struct target *target);

#endif
