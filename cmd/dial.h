/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects a client: looks the server's name up, tries one address after the other, and with --wait-server all of them
 * again, at intervals, until a server accepts or the time is over. It also waits for a name that is not known yet.
 * After a lost connection it looks the name up again beside the attempts: the server may have another address by then.
 *
 * An attempt tries one address, a round all of them; an attempt rejected as stale is repeated. The owner makes the
 * attempts. The dial keeps one error: the last one of a known kind, else the last one. If another address follows
 * without --wait-server, the error becomes a hint. Another round replaces it. Otherwise it is reported. A lack of
 * memory or the like, OUTCOME_INTERNAL, ends the dial at once, with its error.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/lookup.h"

struct dial_handlers {
	/* The end of a look-up by dial_look_up_beside(). */
	void (*looked_up)(void *context);
	/* Begins an attempt at dial->address. A failure ends the attempt. */
	enum outcome (*connect)(void *context);
	/* No server was found, and another round follows. May be NULL. */
	void (*paused)(void *context);
	/* The pause is over: call dial_begin(). NULL: the dial calls it. */
	void (*resumed)(void *context);
	/* No attempts are left: call dial_give_up(). */
	void (*failed)(void *context, enum outcome outcome);
};

enum {
	DIAL_LOOKUPS_MAX = 48 /* at once, of dials that share: each has a process */
};

/* Of all dials of a run. */
struct dial_shared {
	struct resolver_process process; /* for look-ups while the loop runs; may have no child */
	unsigned looking;		 /* look-ups while the loop runs */
	unsigned hinted;		 /* bits of the error kinds with a printed hint */
};

struct dial_options {
	const struct dial_handlers *handlers;
	void *context;
	const struct run *run;
	const struct common_options *common;
	enum address_format format;
	struct dial_shared *shared;
	const struct address *source; /* the addresses must have its family; ADDRESS_NONE: any */
	const char *host;	      /* as the user typed it */
	uint16_t port;
	const char *server;  /* server command for the hint: "rping -s" */
	int64_t wait_server; /* nanoseconds; 0: one round */
};

struct dial_lookup;

/* Rounds follow until the run ends, whatever their errors but OUTCOME_INTERNAL: an outage, with --reconnect. */
#define DIAL_FOREVER INT64_MAX

/* Its owner zeroes it, then sets the options. */
struct dial {
	struct dial_options options;
	struct address address;	      /* in use; ADDRESS_NONE before */
	char name[ADDRESS_TEXT_SIZE]; /* its text; "" before */
	struct error *error;	      /* NULL: none */
	int64_t until;	/* rounds begin until then, on the clock: --wait-server's end; 0: one; or DIAL_FOREVER */
	bool may_retry; /* an address of this round failed, not with ERROR_OTHER or ERROR_HELD */
	unsigned stale; /* dial_repeats(): of this round */
	struct loop_timer pause;
	struct resolver resolver;   /* the outcome of the look-up, and the addresses */
	struct dial_lookup *lookup; /* while the loop runs; NULL: none */
	int64_t looked_up;	    /* when a name's last look-up began; 0: host is an address */
	size_t address_next;	    /* of the next attempt */
};

/* Looks the name up, and waits for that (cmd/lookup.h). */
enum outcome dial_look_up(struct dial *dial);

/* The same while the loop runs. Returns true if it is over at once, as without WITH_NAMES; else calls looked_up(). */
bool dial_look_up_beside(struct dial *dial);

/* Begins a round, at the first address. May call connect(), paused() and failed() before it returns. */
void dial_begin(struct dial *dial);

/* The attempt has failed, with the transport's error. Calls connect() for the next address, paused(), or failed(). */
void dial_failed(struct dial *dial, enum outcome outcome);

/*
 * Whether to try the same address again: the peer has rejected the request as that of an older connection's queue pair,
 * and dropped that connection (IBTA 12.9.8.3.1). A client that comes back after a crash may meet several. Clears the
 * transport's error if so. dial_failed() asks for itself. stale: how often this connection's attempts were repeated.
 */
bool dial_repeats(const struct dial *dial, unsigned *stale);

/* The connection is lost: calls paused(), and begins rounds, as of DIAL_FOREVER. */
void dial_again(struct dial *dial);

/* The owner ends without a connection: reports the error. */
void dial_give_up(struct dial *dial);

/* The run is cut short, without more attempts: reports the last error as a hint, because it did not end the run. */
void dial_hint(struct dial *dial);

/* The server has accepted, or no attempt is wanted: forgets the error, without a callback. Harmless at any time. */
void dial_stop(struct dial *dial);
