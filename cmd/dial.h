/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of a client to its server: looks the name up, tries one address after the other, and with --wait-server all
 * of them again, at intervals, until there is a server or the time is over.
 *
 * The owner connects, with dial->log as the endpoint's log: the errors of an attempt are held until it is known what
 * they are. Those of an address are hints if another address follows; those of a try are dropped if another try
 * follows; the rest is reported as errors.
 */
#ifndef CMD_DIAL_H
#define CMD_DIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/path.h"
#include "core/address.h"
#include "core/log.h"
#include "core/loop.h"

struct held_message;

struct dial_handlers {
	/* The addresses are known, or the cause is reported why not. dial_begin() is next. */
	void (*resolved)(void *owner, enum outcome outcome);
	/* Begins an attempt at dial->address. A failure ends the attempt. */
	enum outcome (*connect)(void *owner);
	/* No server was there, and there will be another try. */
	void (*paused)(void *owner);
	/* It is time for that: dial_begin() is next. */
	void (*resumed)(void *owner);
	/* There are no more attempts. The errors are reported. */
	void (*failed)(void *owner, enum outcome outcome);
};

struct dial_options {
	const struct dial_handlers *handlers;
	void *owner;
	struct loop *loop;
	const struct log *log; /* of what is not held */
	const struct family_options *family;
	enum address_format format;
	const char *host; /* as the user typed it */
	uint16_t port;
	int64_t timeout;     /* of the look-up, nanoseconds */
	int64_t wait_server; /* nanoseconds; 0: one try */
};

struct dial {
	struct dial_options options;
	struct address address;	      /* in use; ADDRESS_NONE before */
	char name[ADDRESS_TEXT_SIZE]; /* its text; "" before */
	struct log log;
	int64_t until; /* of --wait-server, on the clock; 0: no waiting */
	bool attempting;
	bool absent; /* no server was there, at one of the addresses of this try */
	bool stale;  /* the held messages are of the try before */
	struct loop_timer pause;
	struct resolver resolver;
	enum address_family source;
	struct address addresses[ADDRESS_RESOLVE_MOST];
	size_t address_count;
	size_t address_next; /* the next to try */
	struct held_message *held;
	size_t held_count;
};

/* Copies options; what they point to must outlive the dial. Does nothing else. */
void dial_initialise(struct dial *dial, const struct dial_options *options);

/* Looks the name up. source: the family of the source address, ADDRESS_NONE for any. resolved() follows. */
void dial_resolve(struct dial *dial, enum address_family source);

/* Begins a try, at the first address. May call connect(), paused() and failed() before it returns. */
void dial_begin(struct dial *dial);

/*
 * The attempt has failed. absent: no server was there, or it was busy with another client. Calls connect() for the next
 * address, or paused(), or failed().
 */
void dial_failed(struct dial *dial, enum outcome outcome, bool absent);

/* The server is there: forgets what is held. From now on errors are reported at once. */
void dial_connected(struct dial *dial);

/* There are no more attempts, and the owner knows why: reports what is held, as errors. */
void dial_give_up(struct dial *dial);

/* The run is cut short: there are no more attempts. Harmless at any time. */
void dial_interrupt(struct dial *dial);
/* After that: reports the error of the last try, which is not why the run ends, as a hint. */
void dial_hint(struct dial *dial);

/* Frees what it holds, without a callback. Harmless at any time. */
void dial_stop(struct dial *dial);

#endif
