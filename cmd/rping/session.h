/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session: one client of the server, from its connection request through the cycles of protocol.h to its disconnect.
 * A client's error ends its own session only.
 */
#ifndef CMD_RPING_SESSION_H
#define CMD_RPING_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cmd/rping/control.h"
#include "cmd/rping/rping.h"
#include "core/state.h"
#include "transport/transport.h"

struct session;

/*
 * The session has ended; the cause of a failure has been told. The owner calls session_say_verdict() and destroys it.
 * connected is false if it never got so far as to be a client.
 */
typedef void session_callback(void *owner, struct session *session, enum outcome outcome, bool connected);

struct session {
	/* The owner's list. */
	struct session *next;
	struct session **link; /* what points here: the head, or another session's next */

	const struct rping_options *options;
	const struct log *log;
	const struct environment *environment;
	session_callback *ended;
	void *owner;
	struct endpoint *endpoint;
	struct control control;

	struct region *buffer;	 /* as long as the longest ping so far, or longer */
	struct region *outgrown; /* the one before it, until the queue has no more use for it */
	uint8_t *expected;	 /* with -V, as long as the buffer */
	uint32_t length;	 /* of the ping under way */
	uint32_t shortest;
	uint32_t longest;
	uint64_t answered;
	bool unproven;		  /* the answer after these is sent, and nothing says yet that it arrived */
	uint64_t promised;	  /* by the client's hello, or of a stock client by -C; 0 for no end */
	bool counted;		  /* the owner's: in its totals */
	uint64_t *connected;	  /* the owner's: how many of its sessions are */
	bool is_told;		  /* of a client without a ping: its end is printed, */
	bool is_untold;		  /* or enough was printed of others lately */
	struct log_limit *silent; /* the owner's: what was printed of them */
	bool overdue;		  /* dismissed because the run has lasted too long */
	struct state state;
};

/*
 * Takes over a request and puts the session at the head of a list. Returns NULL, and leaves the request alone, if
 * memory is short. private_data came with the request.
 */
struct session *session_create(struct session **list, struct environment *environment,
			       const struct rping_options *options, struct endpoint *request,
			       const uint8_t *private_data, size_t length);

/* Makes what it takes to serve the session. If that fails, session_refuse() and session_destroy() are next. */
enum outcome session_prepare(struct session *session);
void session_refuse(struct session *session, const char *reason);

/* Lets it in. The callback comes when it ends, but not if this fails. */
enum outcome session_accept(struct session *session, session_callback *ended, void *owner);

/* Before that it is a request, which anybody can send in the name of somebody. */
bool session_is_connected(const struct session *session);

/* Ends it because the run ends, in order if it is connected. The callback follows, maybe before this returns. */
void session_dismiss(struct session *session, enum interruption reason);

/* Prints what a session that has ended was worth. */
void session_say_verdict(struct session *session, enum outcome outcome);

/* Takes it out of its list and frees it, whatever its state. */
void session_destroy(struct session *session);

#endif
