/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session: one accepted connection of the server, from the request through the cycles of protocol.h to the
 * disconnect. An error ends this session only.
 */
#ifndef CMD_RPING_SESSION_H
#define CMD_RPING_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/rping/protocol.h"
#include "cmd/rping/rping.h"
#include "core/state.h"
#include "transport/transport.h"

struct session;

/*
 * The session has ended, and a failure has been reported. The owner prints its verdict and destroys it.
 * connected is false if the connection was never established.
 */
typedef void session_callback(void *context, struct session *session, enum outcome outcome, bool connected);

/* Of no_ping_limit, made once for all lines about a client. */
enum log_decision {
	LOG_UNDECIDED = 0,
	LOG_ALLOWED,
	LOG_SUPPRESSED,
};

struct session {
	/* The owner's list. */
	struct session *next;
	struct session **link; /* the pointer to this one: the list's head, or another session's next */

	const struct rping_options *options;
	const struct log *log;
	const struct environment *environment;
	session_callback *ended; /* set by the owner, as context is */
	void *context;
	struct endpoint *endpoint;
	struct control control;

	struct region *buffer;	   /* at least as long as the longest ping so far */
	struct region *old_buffer; /* the previous buffer, while the send queue may still use it */
	uint32_t length;	   /* of the current ping */
	uint32_t shortest;
	uint32_t longest;
	uint64_t answered;
	bool unconfirmed_answer;	 /* one more answer was sent; its delivery is not confirmed */
	uint64_t expected_pings;	 /* from the client's hello, or -C with a stock client; 0: unknown */
	bool counted;			 /* for the owner: included in the totals */
	uint64_t *connected;		 /* the owner's number of established sessions */
	struct log_limit *no_ping_limit; /* the owner's limit of lines about clients without a ping */
	enum log_decision log_decision;
	bool ending;	      /* interrupted: disconnects when the last answer is confirmed */
	bool deadline_passed; /* --deadline */
	struct state state;
};

/*
 * Creates a session that owns the request, and inserts it at the head of the list. Returns NULL if there is no memory;
 * then the caller still owns the request. private_data is that of the request.
 */
struct session *session_create(struct session **list, struct environment *environment,
			       const struct rping_options *options, struct endpoint *request,
			       const uint8_t *private_data, size_t length);

/*
 * Allocates queue pair and memory, and accepts the request. The callback is called when the session ends, but not if
 * this function fails.
 */
enum outcome session_accept(void *session);

/* False for a pending request: its source address may be forged. */
bool session_is_connected(const struct session *session);

/* Ends the session, by a disconnect if established. The callback may be called before this function returns. */
void session_interrupt(struct session *session, enum interruption reason);

/* Writes the text of the verdict of a session that has ended. */
struct verdict session_verdict_text(const struct session *session, enum outcome outcome, char text[RPING_VERDICT_SIZE]);

/* Limits the lines about clients that connect and send no ping: they could fill the log. */
bool session_may_log(struct session *session);

/* Removes the session from its list and frees it, in any state. */
void session_destroy(struct session *session);

#endif
