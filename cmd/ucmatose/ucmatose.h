/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each file calls only those below it:
 *
 *   ucmatose.c    the options, their check, and the command
 *   run.c         the callbacks of the loop: the run dials or listens, and ends what failed
 *   phases.c      the phases, which all connections enter together, and the verdict
 *   messages.c    the messages of one connection
 *   connection.c  one connection: its states, its hello, its end
 *   figures.c     the figures of all connections
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cmd/command.h"
#include "cmd/dial.h"
#include "cmd/hello.h"
#include "core/figures.h"

enum {
	/*
	 * Connections that are being made, or ended, at once. A listener drops requests beyond its backlog, and a
	 * client resends a dropped request after five seconds; the smallest backlog in use is 128. If thousands ended
	 * at once, the last would wait for the others for longer than --timeout.
	 */
	UNDER_WAY_MAX = 48,
};

struct ucmatose_options {
	struct common_options common;
	const char *server; /* makes this end the client; NULL: server */
	const char *bind;
	int64_t format; /* enum address_format */
	int64_t port_space;
	int64_t connections;
	int64_t count;
	int64_t size;
	int64_t port;
	int64_t wait_server;
	int64_t idle_timeout; /* nanoseconds; 0: none */
	bool migrate;
};

/*
 * Client: connecting, receiving, sending, transferred, closed. Server: connecting, established (until all are),
 * sending, receiving, transferred, disconnecting, closed. Every state from connecting to disconnecting may lead to
 * failed.
 */
enum connection_state {
	CONNECTION_NEW = 0, /* free for the next one */
	CONNECTION_CONNECTING,
	CONNECTION_SENDING,
	CONNECTION_RECEIVING,	/* these three have a rate in the figures */
	CONNECTION_TRANSFERRED, /* a client waits for the server to disconnect */
	CONNECTION_DISCONNECTING,
	CONNECTION_ESTABLISHED,
	CONNECTION_CLOSED, /* all went well */
	CONNECTION_FAILED,
	CONNECTION_STATES,
};

/*
 * A device's memory: a ring of receive slots per connection, then the pattern from which all messages are taken
 * (core/payload.h).
 */
struct ucmatose_memory {
	struct ucmatose_memory *next;
	struct region *region;
};

struct ucmatose_connection {
	struct ucmatose *ucmatose;
	struct endpoint *endpoint;
	const struct region *region; /* NULL: no messages */
	uint32_t index;
	enum connection_state state;
	unsigned stale;	   /* dial_repeats(): not of the first connection */
	bool peer_is_ours; /* rdmatest: it sent a hello, so its payload is known */
	uint32_t send_seed, receive_seed;
	uint32_t peer_window;	   /* the peer's slots; 0: it sends no grants, and expects none */
	uint32_t posted, consumed; /* receives, for messages and grants */
	uint32_t grants_in_flight;
	uint32_t allowed, granted;	       /* messages granted so far, to this end and to the peer */
	uint32_t received, sent, acknowledged; /* messages */
};

/*
 * A rate is a count over a time. Connections: from the first one begun to the last one established. Messages sent: from
 * the first post to the last completion. Messages received: from the moment the first connection waits for one to the
 * last arrival. A client waits once all connections are established, a server once all messages of a connection are
 * posted: with few messages, the server's two rates are over almost the same time.
 */
struct ucmatose_figures {
	const char *role;
	const char *target;
	struct path path; /* of the first connection established */
	uint64_t asked;
	uint64_t failed;
	uint64_t refused;
	uint64_t size;
	uint64_t verified;			     /* received messages with their bytes compared */
	struct rate rates[CONNECTION_RECEIVING + 1]; /* connections made, messages acknowledged, messages received */
	struct histogram
		steps[EVENT_DISCONNECTED + 1]; /* by the event that ends them; EVENT_REQUEST: a server's accept */
};

/* All connections enter a phase together. */
enum ucmatose_phase {
	PHASE_STARTING = 0,
	PHASE_CONNECTING,
	PHASE_FIRST_HALF, /* of the messages: the server sends */
	PHASE_SECOND_HALF,
	PHASE_CLOSING,
	PHASE_ENDED,
};

struct ucmatose {
	struct run *run;
	const struct ucmatose_options *options;
	struct channel *channel;
	struct endpoint *listener;
	struct ucmatose_connection *connections; /* as many as requested */
	struct ucmatose_memory *memory;		 /* list, of each device in use */
	const char *device;			 /* for the verdict; NULL: none yet */
	int64_t progressed;			 /* time of the last event or completion */
	int64_t limit;				 /* of a silence */
	uint32_t messages;			 /* per direction of each connection; 0 with -C 0 or -S 0 */
	uint32_t size;				 /* bytes of each */
	uint32_t wanted;
	uint32_t slots;	  /* per connection, as many as the first device allows; 0: none yet */
	uint32_t batch;	  /* half of them */
	uint32_t refused; /* requests beyond -c or from another client */
	uint32_t next;	  /* earlier connections are not new (when closing: not transferred) */
	enum ucmatose_phase phase;
	uint16_t client_id; /* the client run's, in its hellos; 0: unknown to the server */
	bool is_server;
	bool no_more;	  /* begin or await no further connections, even if some are missing */
	bool stock;	  /* some peer is: its bytes are unknown */
	bool stock_iwarp; /* of them, on iWARP */
	bool pausing;	  /* before the next phase */
	uint32_t in_state[CONNECTION_STATES];
	size_t pattern;		   /* its offset in a device's memory */
	uint8_t hello[HELLO_SIZE]; /* the one that is sent */
	struct endpoint_options endpoint_options;
	struct dial dial; /* of a client's first connection */
	struct dial_shared dials;
	struct resolver local;	   /* its first address: to listen on, or connect from; ADDRESS_NONE: any */
	struct loop_timer pause;   /* begins the next phase */
	struct loop_timer silence; /* no progress, or no client */
	struct ucmatose_figures figures, before;
};

/* run.c: the functions of struct command */
enum outcome ucmatose_start(struct run *run, const void *options, void **state);
void ucmatose_interrupt(void *state, enum interruption reason);
void ucmatose_stop(void *state);

/* phases.c */
/* A server waits for requests, a client makes connections. */
bool ucmatose_wants_more(const struct ucmatose *ucmatose);
/* Connections begun and not failed. */
uint32_t ucmatose_good(const struct ucmatose *ucmatose);
/* All connections are ready for the next phase, or have failed. */
bool ucmatose_phase_is_over(const struct ucmatose *ucmatose);
/* Nanoseconds until the next phase, at least one turn of the loop; 0: it begins at once. */
uint32_t ucmatose_phase_pause(const struct ucmatose *ucmatose);
void ucmatose_next_phase(struct ucmatose *ucmatose);
/* Of a server that is closing. */
void ucmatose_disconnect_more(struct ucmatose *ucmatose);
/* Ends the run. */
void ucmatose_finish(struct ucmatose *ucmatose, enum outcome outcome);
/* Frees the objects that make callbacks. */
void ucmatose_release(struct ucmatose *ucmatose);

/* messages.c: the caller ends a failed connection, with the outcome. */
/* Creates the QP, with memory and receives. The domain must be known; at a server also the hello. */
enum outcome ucmatose_messages_prepare(struct ucmatose_connection *connection);
enum outcome ucmatose_messages_begin(struct ucmatose_connection *connection);
enum outcome ucmatose_messages_completed(struct ucmatose_connection *connection, const struct completion *completion);
void ucmatose_messages_free(struct ucmatose *ucmatose);

/* connection.c */
void ucmatose_connection_enter(struct ucmatose_connection *connection, enum connection_state state);
/* The next new or transferred connection, which must exist. It enters the following state. */
struct ucmatose_connection *ucmatose_connection_next(struct ucmatose *ucmatose, enum connection_state state);
/* Frees an unestablished connection's resources: it can be tried again. */
void ucmatose_connection_reset(struct ucmatose_connection *connection);
/* Frees it; the state is closed or failed. */
void ucmatose_connection_end(struct ucmatose_connection *connection, enum connection_state state);
/* Handles an event's outcome: a failure ends the connection, with the transport's error. */
void ucmatose_connection_check(struct ucmatose_connection *connection, enum outcome outcome);
/* The peer left too early, or is silent. */
void ucmatose_connection_fail(struct ucmatose_connection *connection, const char *cause);
/* Into ucmatose->hello. */
void ucmatose_hello_write(struct ucmatose *ucmatose, uint32_t index);
/* False if the peer's options differ, after an error that names the difference. */
bool ucmatose_hello_agrees(const struct ucmatose *ucmatose, const char *object, const struct hello *hello);
/* Takes seeds and window from an rdmatest peer's hello. */
void ucmatose_hello_apply(struct ucmatose_connection *connection, const struct hello *hello);

/* Of a server. */
const char *ucmatose_listen_address(const struct ucmatose_options *options);

/* figures.c: a rate's time begins with the first connection in that state, and ends with the last count. */
void ucmatose_figures_begin(struct ucmatose *ucmatose, enum connection_state state);
/* Restarts the time, unless something is counted already. */
void ucmatose_figures_restart(struct ucmatose *ucmatose, enum connection_state state);
/* Another attempt to connect: only the last one's figures count. */
void ucmatose_figures_clear(struct ucmatose *ucmatose);
void ucmatose_figures_count(const struct ucmatose_connection *connection, enum connection_state state);
/* The duration of the step that the event ends. */
void ucmatose_figures_time(struct ucmatose *ucmatose, const struct endpoint_event *event);
struct figures ucmatose_figures_update(void *state);
