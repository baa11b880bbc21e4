/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One server to ping, as the client sees it: looks its addresses up, connects to the first that answers, learns from
 * the server's hello how long a ping may be, and goes round the cycle of protocol.h until it has done enough or is told
 * to end. What goes wrong ends this target and no other.
 */
#ifndef CMD_RPING_TARGET_H
#define CMD_RPING_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/patience.h"
#include "cmd/rping/control.h"
#include "cmd/rping/figures.h"
#include "cmd/rping/pace.h"
#include "cmd/rping/rping.h"
#include "core/state.h"
#include "transport/transport.h"

struct target;

/* They come from the loop, or out of target_interrupt(). */
enum target_news {
	TARGET_CONNECTED, /* and pings from now on */
	TARGET_PAUSES,	  /* nobody is there: it will try again */
	TARGET_TRIES,	  /* and now it would: target_start() */
	TARGET_ENDED,	  /* target->outcome says how */
};

/* What the targets of a run share. */
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

/* How long the steps of connecting took; 0 of one that has not been made. */
struct connect_times {
	int64_t begun; /* the one under way, on the clock */
	int64_t resolve_address;
	int64_t resolve_route;
	int64_t connect;
};

struct target {
	struct target *next; /* the owner's queue */
	struct targets *all;
	const char *address; /* as it was given */
	uint16_t port;

	size_t address_count;
	size_t address_next; /* to be tried */

	struct endpoint *endpoint;
	struct control control;
	struct region *source_region;
	struct region *sink_region;
	const char *device;

	bool stock; /* the server said no hello */
	uint32_t size;
	uint64_t done;	  /* pings answered, with those to warm up */
	int64_t sent_at;  /* the ping under way; 0 if there is none that counts */
	unsigned sending; /* reports of advertisements that are to come: one a few pings, see RPING_REPORT_EVERY */
	bool last;	  /* end after this ping */
	bool timed;	  /* because it has pinged for the whole --duration */
	bool overdue;	  /* the deadline of the run has passed */
	bool pauses;	  /* the client's: it will be tried again */
	bool has_slot;	  /* the owner's: one of those that connect at a time */
	bool ended;
	enum outcome outcome;
	char *error; /* the first one, for the report; NULL for none */
	struct state state;
	struct patience patience;
	char name[ADDRESS_TEXT_SIZE]; /* of its endpoint, once it has had one */
	struct connect_times times;
	struct path path; /* of its last connection */
	struct ping_record record;
	struct pace pace;
	struct ping_turn turn;
	struct loop_timer beat;
	struct loop_timer duration;
	struct resolver lookup;
	struct address addresses[ADDRESS_RESOLVE_MOST];
};

/* address must live as long as the target. Nothing happens before target_start(). */
void target_prepare(struct target *target, struct targets *all, const char *address, uint16_t port);

/* Begins, or tries again after TARGET_TRIES. */
void target_start(struct target *target);

/* Ends it in order. A ping under way is let come back unless the run has been too long already. */
void target_interrupt(struct target *target, enum interruption reason);

/* True if an error of that object is of this target. */
bool target_is_named(const struct target *target, const char *object);
/* True if what it meets with is no failure yet: its name has another address, which is tried next. */
bool target_has_next_address(const struct target *target);
/* For the hold of a log: keeps its first error for the report, and holds it back (true) while the server is waited for.
 */
bool target_hears(struct target *target, const char *object, const char *text);

/* Its address and port, or before they are known its address as it was given. */
const char *target_name(const struct target *target);

/* Adds its fields to an entry of the report's list. */
void target_report(const struct target *target, struct report *report);
/* Adds "connect". */
void connect_times_report(const struct connect_times *times, struct report *report);

/* Frees what it holds, whatever its state, without a call-back. */
void target_release(struct target *target);

#endif
