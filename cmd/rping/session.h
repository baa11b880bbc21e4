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
 * The session has ended; the cause of a failure is reported. The owner calls session_print_verdict() and destroys it.
 * connected is false if the connection was never established.
 */
typedef void session_callback(void *owner, struct session *session, enum outcome outcome, bool connected);

struct session {
	/* The owner's list. */
	struct session *next;
	struct session **link; /* the pointer to this one: the list's head, or another session's next */

	const struct rping_options *options;
	const struct log *log;
	const struct environment *environment;
	session_callback *ended;
	void *owner;
	struct endpoint *endpoint;
	struct control control;

	struct region *buffer;	 /* at least as long as the longest ping so far */
	struct region *outgrown; /* the previous buffer, while the send queue may still use it */
	uint8_t *expected;	 /* with -V, as long as the buffer */
	uint32_t length;	 /* of the ping under way */
	uint32_t shortest;
	uint32_t longest;
	uint64_t answered;
	bool unconfirmed_answer;  /* one more answer is sent, and its delivery not confirmed */
	uint64_t promised;	  /* pings, by the client's hello, or -C for a stock client; 0: open-ended */
	bool counted;		  /* for the owner: it is in the totals */
	uint64_t *connected;	  /* the owner's number of established sessions */
	bool is_reported;	  /* the end of a client without a ping is printed, */
	bool is_suppressed;	  /* or not, because too many others were */
	struct log_limit *silent; /* the owner's limit of these lines */
	bool overdue;		  /* dismissed because of --deadline */
	struct state state;
};

/*
 * Takes over a request and puts the session at the head of a list. Returns NULL, and leaves the request alone, if
 * memory is short. private_data came with the request.
 */
struct session *session_create(struct session **list, struct environment *environment,
			       const struct rping_options *options, struct endpoint *request,
			       const uint8_t *private_data, size_t length);

/* Allocates what serving needs. If it fails, call session_reject() and session_destroy(). */
enum outcome session_prepare(struct session *session);
void session_reject(struct session *session, const char *reason);

/* Accepts the request. The callback comes when the session ends, but not if this fails. */
enum outcome session_accept(struct session *session, session_callback *ended, void *owner);

/* False for a request: anybody can send one in another host's name. */
bool session_is_connected(const struct session *session);

/* Ends the session because the run ends, by a disconnect if established. The callback may come before this returns. */
void session_dismiss(struct session *session, enum interruption reason);

/* Prints the result of a session that has ended. */
void session_print_verdict(struct session *session, enum outcome outcome);

/* Removes the session from its list and frees it, in any state. */
void session_destroy(struct session *session);

#endif
