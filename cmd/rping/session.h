/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session: one client of the server, from its request through the pings of protocol.h to the disconnect. Each
 * function changes the session and returns its outcome; server.c ends a session that failed.
 */
#ifndef CMD_RPING_SESSION_H
#define CMD_RPING_SESSION_H

#include "cmd/rping/peer.h"

/* Of all clients of a server. */
struct server_figures {
	const char *role;
	const char *target;
	uint64_t served; /* without failure */
	uint64_t failed;
	uint64_t connected; /* established sessions */
	uint64_t answered;  /* pings, also of established sessions */
	uint64_t verified;
};

/* The run of a server, which server.c fills. */
struct rping_server {
	const struct rping_options *options; /* first, for rping.c */
	struct environment *environment;
	const char *host; /* the address that it listens on, as given */
	struct channel *channel;
	struct endpoint *listener; /* NULL before it listens and after stop_listening() */
	struct session *sessions;
	uint64_t session_count;
	uint64_t limit;			/* clients to serve; 0: any number */
	enum interruption interruption; /* the reason of an interruption; 0: none */
	bool one_shot;			/* ends with the first client */
	bool listened;			/* else there is nothing to summarise */
	bool idle_expired;		/* ends because of --idle-timeout */
	bool ending;			/* accepts no more clients */
	struct server_figures figures, before;
	struct log_limit no_ping_limit;
	struct log silent;	/* of many clients without a ping, which could fill the log */
	struct loop_timer idle; /* --idle-timeout, while there is no session */
};

/* The data of its peer. */
enum {
	BUFFER,	    /* at least as long as the longest ping so far */
	OLD_BUFFER, /* the last WRITE may use it until the next READ completes */
};

struct session {
	struct peer peer; /* first, so that one can be had from the other */
	struct rping_server *server;
	struct session *next;  /* the server's list */
	struct session **link; /* the pointer to this one: the list's head, or another session's next */
};

/* Initialises a zeroed session, which owns the endpoint of the request. log: of its errors until its first ping. */
void session_prepare(struct session *session, struct rping_server *server, const struct log *log,
		     const struct endpoint_event *request);

/* Allocates queue pair and memory, and accepts the request. NULL: there is no memory for it. */
enum outcome session_accept(struct session *session);
void session_established(struct session *session);
/* False for a pending request: its source address may be forged. */
bool session_is_connected(const struct session *session);

enum outcome session_complete(struct session *session, const struct completion *completion);
/* The timer of the state has expired. */
enum outcome session_expire(struct session *session);
/* Begins to disconnect. OUTCOME_FAILED: it was not established. */
enum outcome session_interrupt(struct session *session, enum interruption reason);
/* Returns the outcome of a session that has disconnected, and reports an early end. */
enum outcome session_verdict(struct session *session);

#endif
