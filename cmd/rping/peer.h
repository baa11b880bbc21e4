/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Common part of both ends of a connection: control messages, states with time limits, ping errors, verdicts. A target
 * (target.h) or a session (session.h) begins with its peer.
 *
 * Sends are unsignalled, because the peer's next message proves their delivery. Measured with rping -S 64 against a
 * build that signals each send: 1.12 times the rate over soft, 1.03 times if each end sleeps on its own processor or on
 * soft-RoCE.
 */
#pragma once

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

/* A state's time limit is --timeout divided by this. The transport limits connecting, accepting and disconnecting. */
enum timeout_share {
	WITHOUT_LIMIT,
	FOR_TIMEOUT,
	FOR_HALF_TIMEOUT,
};

/* The owner zeroes it, and sets the first four members. */
struct peer {
	const struct rping_options *options;
	struct run *run;
	const struct log *log;
	loop_callback *expired; /* a state has lasted too long */
	const char *name;	/* for messages */
	const char *doing;	/* the state in words, "connecting"; NULL without WITH_DIAGNOSTICS */
	const char *device;
	struct endpoint *endpoint; /* NULL: no connection */
	struct region *messages;
	struct region *data[2];
	uint64_t pings;		    /* answered, including warm-up */
	uint64_t requested;	    /* 0: any number, or a sweep */
	uint32_t size;		    /* the current ping's */
	uint32_t shortest, longest; /* of answered pings; 0: none */
	unsigned state;
	bool ending;	      /* interrupted, or done: disconnects after this ping */
	bool deadline_passed; /* --deadline */
	int64_t limit;	      /* the state's, nanoseconds */
	struct loop_timer timer;
};

/* Enters a state, with a new timer if that has a limit. doing: in words. */
void peer_enter(struct peer *peer, unsigned state, const char *doing, enum timeout_share limit);

/*
 * The domain is known: allocates memory and queue pair, and posts the receives. That must precede the connection: its
 * first message may arrive together with EVENT_ESTABLISHED.
 */
enum outcome peer_open(struct peer *peer);

/* Calls send, endpoint_connect() or endpoint_accept(), with a hello. */
enum outcome peer_greet(const struct peer *peer, uint32_t capacity, uint64_t count,
			enum outcome (*send)(struct endpoint *endpoint, const void *data, size_t length));

/* Frees the connection and its memory, in any state. */
void peer_close(struct peer *peer);

/* Counts the answered current ping. */
void peer_count_ping(struct peer *peer);
/* Returns the number of answered pings without warm-up. */
uint64_t peer_answered(const struct peer *peer);

/* Sets the contents of send message index, initially all zeros. It must not be outstanding. */
void peer_write(struct peer *peer, uint32_t index, const struct advertisement *advertisement);
/* Returns the work that sends or receives message index, unsignalled; posts it. */
struct work peer_message(const struct peer *peer, enum work_kind kind, uint32_t index);
enum outcome peer_post(const struct peer *peer, enum work_kind kind, uint32_t index, bool signalled);
/* Reads the message of a completed receive, and reposts the receive. Fails on a wrong length. */
enum outcome peer_receive(struct peer *peer, const struct completion *completion, struct advertisement *advertisement);

/* A failed completion's outcome. For the peer's first message, adds a hint to transport->error. */
enum outcome peer_work_failed(const struct peer *peer, const struct completion *completion);

/* Reports an error of the connection; format gives the cause. Is OUTCOME_FAILED. */
#define peer_error(peer, ...) (log_error((peer)->log, (peer)->name, __VA_ARGS__), OUTCOME_FAILED)
/* Reports the connection's error, with its state and ping. Returns OUTCOME_FAILED. */
enum outcome peer_failed(const struct peer *peer, const char *what);
/* Reports that the state has taken too long. Returns OUTCOME_FAILED. */
enum outcome peer_timed_out(const struct peer *peer);
/* Reports a message that the state does not expect. Returns OUTCOME_FAILED. */
enum outcome peer_out_of_order(const struct peer *peer);
/* Compares every byte of the current ping. Returns false after it has reported the first difference. */
bool peer_verify(const struct peer *peer, const uint8_t *ping);

/* Creates an endpoint of the run. */
enum outcome peer_create_endpoint(enum endpoint_kind kind, struct channel *channel, const struct rping_options *options,
				  const struct endpoint_handlers *handlers, void *context, struct endpoint **endpoint);

/*
 * Print the -d lines of the stock tool that scripts look for, and with -v the line of a disconnect. A completion is
 * printed when delivery is known: most sends have none.
 */
void peer_print_event(const struct peer *peer, enum event_kind kind);
void peer_print_completions(const struct peer *peer, const char *lines);

/* Prints the verdict, and if the run has no other part, ends it. */
void peer_print_result(const struct peer *peer, enum outcome outcome, bool ends_run);
