/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session: one client of the server, from its request through the pings of protocol.h to the disconnect. Each
 * function changes the session and returns its outcome; server.c ends a failed session.
 */
#pragma once

#include "cmd/rping/peer.h"

/* Totals over a server's clients. */
struct server_figures {
	const char *role;
	const char *target;
	uint64_t served; /* without failure */
	uint64_t failed;
	uint64_t connected; /* established sessions */
	uint64_t answered;  /* pings, also of established sessions */
	uint64_t verified;
};

/* A server's run, filled by server.c. */
struct rping_server {
	const struct rping_options *options; /* first, for rping.c */
	struct run *run;
	const char *host; /* the listening address, as given */
	struct channel *channel;
	struct endpoint *listener; /* NULL before it listens and after stop_listening() */
	struct session *sessions;
	uint64_t session_count;
	uint64_t limit;			/* clients to serve; 0: any number */
	enum interruption interruption; /* the reason of an interruption; 0: none */
	bool one_shot;			/* ends with the first client */
	bool listened;			/* else there is no summary */
	bool idle_expired;		/* ends because of --idle-timeout */
	bool ending;			/* accepts no more clients */
	struct server_figures figures, before;
	struct log_limit no_ping_limit;
	struct log silent;	/* errors of clients without a ping, which could fill the log */
	struct loop_timer idle; /* --idle-timeout, while no client is connected */
};

/* Indexes of its peer's data. */
enum {
	BUFFER,	    /* at least as long as the longest ping so far */
	OLD_BUFFER, /* the last WRITE may use it until the next READ completes */
};

struct session {
	struct peer peer; /* first: the two have one address */
	struct rping_server *server;
	struct session *next;	     /* the server's list */
	struct session **link;	     /* the pointer to this one: the list's head, or another session's next */
	struct advertisement source; /* the last ping's */
};

/* Initialises a zeroed session, which owns the request's endpoint. log: for its errors until its first ping. */
void session_prepare(struct session *session, struct rping_server *server, const struct log *log,
		     const struct endpoint_event *request);

/* Allocates queue pair and memory, and accepts the request. NULL: out of memory. */
enum outcome session_accept(struct session *session);
void session_established(struct session *session);
/* False for a pending request: its source address may be forged. */
bool session_is_connected(const struct session *session);

enum outcome session_complete(struct session *session, const struct completion *completion);
/* The state's timer has expired. */
enum outcome session_expire(struct session *session);
/* Begins to disconnect. OUTCOME_FAILED: it was not established. */
enum outcome session_interrupt(struct session *session, enum interruption reason);
/* Returns a disconnected session's outcome, and reports an early end. */
enum outcome session_verdict(struct session *session);
