/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What both ends of a connection do alike: control messages, states with their time limit, errors of a ping, verdicts.
 * A target (target.h) or a session (session.h) begins with its peer.
 *
 * Sends are unsignalled, because the peer's next message proves their delivery. Measured with rping -S 64, beside a
 * build that signals each send: 1.12 times the rate over soft, 1.03 times if each end sleeps on its own processor or on
 * soft-RoCE.
 */
#ifndef CMD_RPING_PEER_H
#define CMD_RPING_PEER_H

#include "cmd/rping/protocol.h"
#include "cmd/rping/rping.h"

/*
 * The control messages, in one region: the client's two advertisements or the server's go-ahead, and the receives. A
 * receive is reposted when its message has been read, so the other end gets no receiver-not-ready NAK.
 */
enum {
	PEER_SENDS = 2,
	PEER_RECEIVES = 4, /* the protocol needs two */
};

enum {
	PINGS_TEXT_SIZE = 64
};

struct peer_state {
	const char *text; /* "connecting" */
	bool waits;	  /* for at most peer->limit */
};

struct peer {
	const struct rping_options *options;
	struct environment *environment;
	const struct log *log;
	struct endpoint *endpoint; /* NULL: no connection */
	struct region *messages;
	uint64_t pings; /* answered, including warm-up */
	unsigned state; /* an index of states */
	const struct peer_state *states;
	int64_t limit; /* nanoseconds */
	loop_callback *expired;
	struct loop_timer timer;
};

/* Initialises a zeroed peer, which has no connection. expired is called when a state has taken too long. */
void peer_prepare(struct peer *peer, struct environment *environment, const struct rping_options *options,
		  const struct log *log, const struct peer_state *states, loop_callback *expired);

/* Enters a state, with a fresh timer if that one waits. object is the name in the trace. */
void peer_enter(struct peer *peer, unsigned state, const char *object);
const char *peer_state_text(const struct peer *peer);

/*
 * The domain is known: allocates memory and queue pair, and posts the receives. That must precede the connection: its
 * first message may arrive together with EVENT_ESTABLISHED.
 */
enum outcome peer_open(struct peer *peer);

/* Frees the connection, in any state. */
void peer_close(struct peer *peer);

/* Sets the contents of send message index, initially all zeros. No send of it may be outstanding. */
void peer_write(struct peer *peer, uint32_t index, const struct advertisement *advertisement);
/* Returns the work that sends message index, unsignalled. */
struct work peer_send(const struct peer *peer, uint32_t index);
/* Reads the message of a completed receive, and reposts that. Fails if it has another length. */
enum outcome peer_receive(struct peer *peer, const struct completion *completion, struct advertisement *advertisement);

/* Reports an error of the connection; format gives the cause. Is OUTCOME_FAILED. */
#define peer_error(peer, ...) (log_error((peer)->log, (peer)->endpoint->name, __VA_ARGS__), OUTCOME_FAILED)
/* Reports that the state has taken too long. Returns OUTCOME_FAILED. */
enum outcome peer_timed_out(const struct peer *peer);
/* Reports a message that the state does not expect. Returns OUTCOME_FAILED. */
enum outcome peer_out_of_order(const struct peer *peer);
/* Compares every byte of the current ping. Returns false after it has reported the first difference. */
bool peer_verify(const struct peer *peer, const uint8_t *ping, uint32_t size);

/* Returns the options of each endpoint of the run. */
struct endpoint_options peer_endpoint_options(const struct rping_options *options);

/*
 * Print the -d lines of the stock tool that scripts look for, and with -v the line of a disconnect. A completion is
 * printed when delivery is known: most sends have none.
 */
void peer_print_event(const struct peer *peer, enum event_kind kind);
void peer_print_completion(const struct peer *peer, const char *name);

/* Writes "1 ping", "3 pings", or if requested is not 0, "3 of 10 pings". Returns text. */
const char *peer_pings_text(uint64_t answered, uint64_t requested, char text[PINGS_TEXT_SIZE]);

/* What the verdict on a connection says. */
struct result {
	const char *name; /* of the peer */
	const char *device;
	uint64_t answered, requested, warmup;
	uint32_t shortest, longest; /* pings that were answered */
};

/* Prints the verdict, and if that is all of the run, ends it. */
void peer_print_result(const struct peer *peer, enum outcome outcome, const struct result *result, bool ends_run);

#endif
