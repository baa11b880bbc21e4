/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One client of the server: asks to connect, goes round the cycle of protocol.h by itself, and leaves. What it does
 * wrong ends this guest and no other.
 */
#ifndef CMD_RPING_GUEST_H
#define CMD_RPING_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cmd/rping/mailbox.h"
#include "cmd/rping/rping.h"
#include "core/state.h"
#include "transport/transport.h"

struct guest;

/*
 * The guest has ended; the cause of a failure has been told. The owner calls guest_say_verdict() and destroys it.
 * connected is false if it never got so far as to be a client.
 */
typedef void guest_callback(void *owner, struct guest *guest, enum outcome outcome, bool connected);

struct guest {
	/* The owner's list. */
	struct guest *next;
	struct guest **link; /* what points here: the head, or another guest's next */

	const struct rping_options *options;
	const struct log *log;
	const struct environment *environment;
	guest_callback *ended;
	void *owner;
	struct endpoint *endpoint;
	struct mailbox mailbox;

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
	uint64_t *connected;	  /* the owner's: how many of its guests are */
	bool is_told;		  /* of a client without a ping: its end is printed, */
	bool is_untold;		  /* or enough was printed of others lately */
	struct log_limit *silent; /* the owner's: what was printed of them */
	bool overdue;		  /* dismissed because the run has lasted too long */
	struct state state;
};

/*
 * Takes over a request and puts the guest at the head of a list. Returns NULL, and leaves the request alone, if memory
 * is short. private_data came with the request.
 */
struct guest *guest_create(struct guest **list, struct environment *environment, const struct rping_options *options,
			   struct endpoint *request, const uint8_t *private_data, size_t length);

/* Makes what it takes to serve the guest. If that fails, guest_refuse() and guest_destroy() are next. */
enum outcome guest_prepare(struct guest *guest);
void guest_refuse(struct guest *guest, const char *reason);

/* Lets it in. The callback comes when it ends, but not if this fails. */
enum outcome guest_accept(struct guest *guest, guest_callback *ended, void *owner);

/* Before that it is a request, which anybody can send in the name of somebody. */
bool guest_is_connected(const struct guest *guest);

/* Ends it because the run ends, in order if it is connected. The callback follows, maybe before this returns. */
void guest_dismiss(struct guest *guest, enum interruption reason);

/* Prints what a guest that has ended was worth. */
void guest_say_verdict(struct guest *guest, enum outcome outcome);

/* Takes it out of its list and frees it, whatever its state. */
void guest_destroy(struct guest *guest);

#endif
