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

struct session {
	struct peer peer; /* first, so that one can be had from the other */
	struct rping_server *server;
	struct session *next;		 /* the server's list */
	struct session **link;		 /* the pointer to this one: the list's head, or another session's next */
	struct region *buffer;		 /* at least as long as the longest ping so far */
	struct region *old_buffer;	 /* the last WRITE may use it until the next READ completes */
	uint32_t length;		 /* of the current ping */
	uint32_t shortest, longest;	 /* of the answered pings */
	uint64_t expected_pings;	 /* from the client's hello, or -C with a stock client; 0: unknown */
	bool unconfirmed;		 /* an answer was sent; its delivery is not known */
	bool ending;			 /* interrupted: disconnects when the last answer is confirmed */
	bool deadline_passed;		 /* --deadline */
	struct server_figures *figures;	 /* the server's, to which it adds */
	struct log_limit *no_ping_limit; /* the server's, of lines about clients without a ping */
};

/* Initialises a zeroed session, which owns the endpoint of the request. log: of its errors until its first ping. */
void session_prepare(struct session *session, struct environment *environment, const struct rping_options *options,
		     const struct log *log, const struct endpoint_event *request, loop_callback *expired);

/* Allocates queue pair and memory, and accepts the request. */
enum outcome session_accept(void *session);
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

/* Frees what it owns, in any state. */
void session_close(struct session *session);

#endif
