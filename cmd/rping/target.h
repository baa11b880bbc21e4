/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target: one server that the client pings. It connects to the first address that answers, reads the maximum ping
 * size from the server's hello and repeats the cycle of protocol.h until it is done or interrupted. Each function
 * changes the target and returns an outcome; client.c ends a target that failed.
 */
#pragma once

#include "cmd/dial.h"
#include "cmd/rping/peer.h"

/*
 * A path of --paths starts pinging when the others to its server have begun to connect, so that all meet the same load.
 */
#define TARGET_HELD INT64_MAX

enum target_state {
	TARGET_UNKNOWN, /* its name is not looked up yet */
	TARGET_LOOKING, /* its name is being looked up */
	TARGET_WAITING, /* waits for its turn to connect */
	TARGET_PAUSED,	/* is between two rounds of its dial */
	TARGET_CONNECTING,
	TARGET_READ,
	TARGET_WRITTEN,
	TARGET_PACING,
	TARGET_DISCONNECTING,
	TARGET_DONE,
	TARGET_STATES,
};

/* Of one target, or of all. Initially all zeros. Warm-up pings are only counted. */
struct ping_counts {
	uint64_t size; /* bytes of a ping, in a sweep of the current size; set for a report */
	uint64_t warmup;
	uint64_t sent;
	uint64_t verified; /* answered pings with verified payload */
	uint64_t lost;	   /* sent and unanswered when the connection ended, or due in an outage */
	uint64_t outages;  /* cmd/rping/outage.h */
	int64_t outage;	   /* their time, ns */
	/* From the first ping to the last answer; with --interval to the end of its slot, so n pings take n slots. */
	struct rate answered;
};

/* Durations of the connection steps by the event that ends them, nanoseconds; 0: not reached. */
struct connect_times {
	int64_t steps[EVENT_ESTABLISHED + 1];
};

extern const struct figure ping_count_figures[], connect_figures[];

/* Sums over all targets, for a report. */
struct client_figures {
	const char *role;
	const char *target; /* NULL with several targets; path is then zeroed */
	struct path path;
	struct ping_counts counts;
	struct histogram round_trip;
	struct connect_times connect;	   /* the maximum of all targets; so is the size */
	const struct rping_client *client; /* for its list of targets */
};

/* A target's events, handled by client.c. */
struct target_handlers {
	struct dial_handlers dial;
	struct endpoint_handlers endpoint;
	loop_callback *expired; /* a target's timer: target_expire() */
};

/* A client's run, filled by client.c. */
struct rping_client {
	const struct rping_options *options; /* first, for rping.c */
	struct run *run;
	const struct target_handlers *handlers;
	struct channel *channel;
	struct target *targets, **last; /* all of them */
	struct target *unknown;		/* the first one whose name is not looked up */
	struct target *next;		/* the next of those waiting to connect */
	size_t count, failed;
	uint32_t in_state[TARGET_STATES];
	bool ending;		  /* start no more targets */
	struct target *dialled;	  /* the last one, if the next has the same server */
	int64_t took;		  /* how long the last connection took, ns; 0: none */
	struct loop_timer answer; /* the dialled target's time limit before the next one */
	struct resolver source;	  /* for -I; without it the address is ADDRESS_NONE */
	struct dial_shared dials; /* with a process if names may be looked up while others are connected */
	size_t repeated;	  /* repeated target lines */
	struct client_figures figures, before;
};

/* Without WITH_DIAGNOSTICS there is one target. */
static inline bool has_several(const struct rping_client *client)
{
	return OPTION_LIST_MAX > 1 && client->count > 1;
}

/* Whether a report uses a target's counts. */
static inline bool has_counts(const struct rping_client *client)
{
	return WITH_REPORT || has_several(client);
}

struct target {
	struct peer peer;	     /* first: the two have one address; its data is source and sink */
	struct rping_client *client; /* the owner */
	struct target *next;	     /* the owner's list */
	const char *address;	     /* as the user typed it */
	size_t source_offset;	     /* the ping's, in its source */
	bool stock;		     /* the server sent no hello */
	bool own_path;		     /* of --paths */
	bool complete;		     /* all requested pings are answered, or no number was requested */
	uint32_t last_size;	     /* the last size of a sweep that the server accepts, or the only one */
	uint64_t first;		     /* number of the first measured ping, in a sweep of this size */
	int64_t sent_at;	     /* clock time of the current ping's start; 0: none, or a warm-up ping */
	int64_t slot;		     /* when the next ping may start: with --interval, or TARGET_HELD; else 0 */
	int64_t until;		     /* the end of --duration; 0 before the first measured ping */
	struct loop_timer silence;   /* LIVE_EVENTS: prints the next line about the unanswered ping */

	/* An outage: */
	int64_t gone_at;      /* when the first ping was lost, on the clock; 0: no outage */
	uint64_t lost_before; /* lost pings in counts before it */
	char *cause;
	struct loop_timer gone; /* expires when no ping is left */

	/* For the report: */
	const char *index, *name;
	const char *verdict; /* NULL until it has ended */
	bool failed;
	char *error;  /* the first one; NULL: none */
	bool refused; /* it did not connect, and the error is no silence; for a parent command */
	struct ping_counts counts;
	struct samples round_trip;
	struct histogram *histogram; /* for JSON and --paths, 10 KB; empty in a sweep; the owner's */
	bool udp;		     /* with --paths: port is the UDP port, else the connection manager's */
	uint16_t port;		     /* with --paths; 0: unknown */
	uint32_t qpn;
	struct losses losses; /* with --paths, of earlier connections: target_losses() */
	const char *worse;    /* with --paths, when all have ended: how it is worse; NULL: it is not */
	struct connect_times times;
	struct path path; /* the last connection's */

	struct dial dial;
};

/* Initialises a zeroed target. The address must outlive it. */
void target_prepare(struct target *target, struct rping_client *client, const char *address, uint16_t port);

/* Looks its name up, as dial_look_up_beside() does. */
bool target_look_up(struct target *target);
/* Waits for its turn to connect. For the dial: pauses, without a connection; connects to its address. */
void target_wait(struct target *target);
void target_pause(void *target);
enum outcome target_connect(void *target);
/* The route is resolved: sends the request. */
enum outcome target_request(struct target *target);
/* Chooses the size of the pings, and allocates them. The target is then TARGET_PACING: target_next() may follow. */
enum outcome target_established(struct target *target, const struct endpoint_event *event);

/*
 * Returns the pings left of -C (in a sweep: of this size), without --warmup; UINT64_MAX: any number. With --reconnect
 * lost pings are not repeated.
 */
uint64_t target_pings_left(const struct target *target);
/* Starts the next ping, or waits for its slot, or disconnects after the last one. */
enum outcome target_next(struct target *target);
enum outcome target_complete(struct target *target, const struct completion *completion);
/* The timer of the state has expired. */
enum outcome target_expire(struct target *target);
/* Disconnects, after the current ping unless --deadline has passed. OUTCOME_FAILED: do not wait. */
enum outcome target_interrupt(struct target *target, enum interruption reason);
/* Returns a disconnected target's outcome, and reports an early end. */
enum outcome target_verdict(struct target *target);
/* Ends the target, without a connection. */
void target_end(struct target *target, enum outcome outcome);

/* Of --paths: how often packets were lost until now. Returns whether that is known. */
bool target_losses(const struct target *target, struct losses *losses);

/* Reports the transport's error, if any; the last error of the run is then the target's, which is returned. */
const struct error *target_note_error(struct target *target);

/* Adds the target's figures to a report. index may be NULL. */
void target_report(struct target *target, const char *index, struct report *report);

/* Frees its members, in any state. */
void target_release(struct target *target);
