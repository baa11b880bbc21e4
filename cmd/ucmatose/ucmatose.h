/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of this command share: one run, and its connections.
 *
 *   ucmatose.c    options, start and end
 *   run.c         the phases all connections go through together, and the verdict
 *   client.c      makes the connections
 *   server.c      takes them
 *   connection.c  the life of one connection
 *   transfer.c    its messages
 *   figures.c     what is counted and timed
 *
 * Only what the loop calls (an event, a completion, a timer) ends with ucmatose_advance(), which moves the run to its
 * next phase when the last connection is ready for it. Everything below just changes the state of a connection.
 */
#ifndef CMD_UCMATOSE_UCMATOSE_H
#define CMD_UCMATOSE_UCMATOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/command.h"
#include "cmd/hello.h"
#include "cmd/patience.h"
#include "cmd/ucmatose/figures.h"

struct ucmatose_options {
	struct common_options common;
	const char *server; /* makes this end the client */
	const char *bind;
	int64_t format; /* enum address_format */
	int64_t port_space;
	int64_t connections;
	int64_t count;
	int64_t size;
	int64_t port;
	int64_t warmup;
	int64_t wait_server;
	int64_t idle_timeout; /* nanoseconds; 0 for none */
	bool migrate;
};

enum connection_state {
	CONNECTION_NEW = 0, /* also of a server whose request came to nothing: its place is free */
	CONNECTION_CONNECTING,
	CONNECTION_ESTABLISHED, /* a server waits here for the other connections */
	CONNECTION_RECEIVING,
	CONNECTION_SENDING,
	CONNECTION_TRANSFERRED, /* every message went both ways; a client waits here for the server to disconnect */
	CONNECTION_DISCONNECTING,
	CONNECTION_CLOSED, /* in order: without the endpoint */
	CONNECTION_FAILED, /* as well */
	CONNECTION_STATES,
};

/* A piece of registered memory, shared by several connections of one device. */
struct ucmatose_memory {
	struct ucmatose_memory *next;
	struct region *region;
	uint32_t used; /* connections that live in it */
	uint32_t capacity;
	uint32_t slots; /* messages of a connection under way at once, in each direction */
	uint32_t depth; /* receives that it keeps posted: as many as slots, or more that share them */
	size_t stride;	/* bytes of each connection */
};

struct ucmatose_connection {
	struct ucmatose *run;
	struct endpoint *endpoint;
	struct ucmatose_memory *memory;
	int64_t step_began; /* the step with the connection manager that is under way */
	size_t receive_offset;
	size_t send_offset;
	uint32_t index;
	enum connection_state state;
	bool peer_is_ours;	/* it said hello, so its payload is known */
	bool peer_disconnected; /* and the endpoint waits to be moved to another channel first */
	bool grant_in_flight;
	uint32_t send_seed;
	uint32_t receive_seed;
	uint32_t peer_window; /* messages that one half of stays granted at a time; 0 if it grants nothing */
	uint64_t posted;      /* receives, of messages and of grants */
	uint64_t consumed;    /* of these */
	uint64_t received;    /* messages */
	uint64_t granted;     /* messages that the peer may send */
	uint64_t sent;
	uint64_t acknowledged; /* sends that are complete */
	uint64_t allowed;      /* messages that we may send */
};

enum run_phase {
	RUN_RESOLVING = 0,
	RUN_CONNECTING,
	RUN_PAUSING,
	RUN_TRANSFERRING,
	RUN_SETTLING,
	RUN_CLOSING,
	RUN_INTERRUPTED,
	RUN_ENDED,
};

struct ucmatose {
	struct environment *environment;
	const struct ucmatose_options *options;
	struct channel *channel;
	struct endpoint *listener;
	struct ucmatose_connection *connections;
	struct ucmatose_memory *memory; /* newest first */
	const char *device;		/* for the verdict */
	char *refusal;			/* why it was not made, until it is known whether that is all; or NULL */
	int64_t progress;		/* when something last happened */
	uint64_t messages;		/* to each direction of each connection; 0 with -C 0 or -S 0 */
	uint32_t wanted;		/* connections */
	uint32_t begun;			/* places used so far, maybe free again; none beyond it is in use */
	uint32_t in_state[CONNECTION_STATES];
	uint16_t client_id; /* the number of the client's run; 0 at a server that does not know it */
	enum run_phase phase;
	enum outcome outcome; /* the first failure */
	bool is_server;
	bool mismatched;		/* a peer with other options was met: that decides the outcome */
	bool no_more_connections;	/* no more connections are waited for, even if some are missing */
	bool half_printed;		/* the line in the middle of the transfer was printed */
	enum interruption interruption; /* 0: not at all */
	struct address source;		/* ADDRESS_NONE without -b */
	struct address addresses[ADDRESS_RESOLVE_MOST]; /* of a client's server */
	size_t address_count;
	size_t address_next;		/* to be tried; behind the last one once a connection stands */
	struct address destination;	/* the one that is tried, or was taken */
	char target[ADDRESS_TEXT_SIZE]; /* the same as messages call it */
	struct endpoint_options endpoint_options;
	struct path path;	       /* of the connection that was established first */
	struct patience patience;      /* of a client's first connection */
	struct loop_timer phase_timer; /* puts the next thing to do off to a later turn */
	struct loop_timer watchdog;    /* nothing happened for too long */
	struct resolver bind_resolver;
	struct resolver server_resolver;
	struct ucmatose_figures figures;
};

/* run.c */
void ucmatose_print(const struct ucmatose *run, const char *line); /* one line of progress */
void ucmatose_note(struct ucmatose *run, enum outcome outcome);
void ucmatose_progressed(struct ucmatose *run);
uint32_t ucmatose_connection_count(const struct ucmatose *run); /* places in use */
bool ucmatose_wants_more(const struct ucmatose *run);
void ucmatose_start_watchdog(struct ucmatose *run); /* starts to mind the time since the last progress */
void ucmatose_begin_connecting(struct ucmatose *run);
void ucmatose_advance(struct ucmatose *run);
/* The run ends before it connects or listens; the cause is already logged. */
void ucmatose_fail_start(struct ucmatose *run, enum outcome outcome);
void ucmatose_interrupt(void *state, enum interruption reason);

/* client.c */
void ucmatose_client_start(struct ucmatose *run);
/* Begins as many connections as may be under way at once. */
void ucmatose_client_connect_more(struct ucmatose *run);
/* True if the connection, which did not come about, is tried at another address, or again with --wait-server. */
bool ucmatose_client_retry(struct ucmatose_connection *connection);
/* Tells what is held back, unless a mismatch is what it was about. */
void ucmatose_client_release(struct ucmatose *run);

/* server.c */
void ucmatose_server_start(struct ucmatose *run);
/* The client never confirmed that it is connected. If it was nobody, another one may come. */
void ucmatose_server_drop_request(struct ucmatose_connection *connection);

/* connection.c */
extern const struct endpoint_handlers ucmatose_connection_handlers;
struct ucmatose_connection *ucmatose_connection_new(struct ucmatose *run);
/* It did not come about, and may be tried again. */
void ucmatose_connection_reset(struct ucmatose_connection *connection);
void ucmatose_connection_enter(struct ucmatose_connection *connection, enum connection_state state);
/* The cause has been told. */
void ucmatose_connection_fail(struct ucmatose_connection *connection, enum outcome outcome);
void ucmatose_connection_disconnect(struct ucmatose_connection *connection);
void ucmatose_connection_close(struct ucmatose_connection *connection);
/* A step with the connection manager begins. */
void ucmatose_connection_begin_step(struct ucmatose_connection *connection);
/* The peer's hello; called with the one that came, or not at all. */
void ucmatose_hello_apply(struct ucmatose_connection *connection, const struct hello *hello);
void ucmatose_hello_write(const struct ucmatose *run, const struct ucmatose_connection *connection,
			  uint8_t bytes[HELLO_SIZE]);
/* Tells the difference if the peer has other options than we. */
bool ucmatose_hello_agrees(struct ucmatose *run, const char *object, const struct hello *hello);

/* figures.c */
void ucmatose_report(const struct ucmatose *run, struct report *report, enum report_span span);

/* transfer.c */
/* Makes the queue with its memory and posts the first receives. The domain must be known. */
enum outcome ucmatose_transfer_prepare(struct ucmatose_connection *connection);
/* The connection is established, and on a server all the others are. */
void ucmatose_transfer_begin(struct ucmatose_connection *connection);
void ucmatose_transfer_completion(void *owner, struct endpoint *endpoint, const struct completion *completion);

#endif
