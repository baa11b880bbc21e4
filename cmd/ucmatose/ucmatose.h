/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One run, and its connections:
 *
 *   ucmatose.c    options, checks, start and stop
 *   phases.c      the phases of the run, and the verdict
 *   client.c      resolves the server and connects
 *   server.c      listens and accepts
 *   connection.c  the states of one connection
 *   transfer.c    its messages
 *   figures.c     counts and times
 *
 * Each callback of the loop (event, completion, timer) ends with ucmatose_advance(), which starts the next phase when
 * the last connection is ready for it. The functions that callbacks call change only the state of a connection.
 */
#ifndef CMD_UCMATOSE_UCMATOSE_H
#define CMD_UCMATOSE_UCMATOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/command.h"
#include "cmd/dial.h"
#include "cmd/hello.h"
#include "cmd/repeats.h"
#include "cmd/ucmatose/figures.h"

enum {
	/*
	 * Connections that are being made, or ended, at once. A listener drops requests beyond its backlog, and a
	 * client resends a dropped request after five seconds; the smallest backlog in use is 128. Of thousands that
	 * end at once the last would wait for the others for longer than --timeout.
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

enum connection_state {
	CONNECTION_NEW = 0, /* also after a request that was never established: the entry is free */
	CONNECTION_CONNECTING,
	CONNECTION_ESTABLISHED, /* a server waits for the other connections */
	CONNECTION_RECEIVING,
	CONNECTION_SENDING,
	CONNECTION_TRANSFERRED, /* all messages done; a client waits for the server to disconnect */
	CONNECTION_DISCONNECTING,
	CONNECTION_CLOSED, /* without failure; the endpoint is destroyed */
	CONNECTION_FAILED, /* the endpoint is destroyed */
	CONNECTION_STATES,
};

/* A region shared by several connections of one device. */
struct ucmatose_memory {
	struct ucmatose_memory *next;
	struct region *region;
	uint32_t used; /* connections that use it */
	uint32_t capacity;
	uint32_t slots; /* messages of a connection in flight, per direction */
	uint32_t depth; /* receives that a connection asks for; several may share a slot */
	size_t stride;	/* bytes per connection */
	size_t pattern; /* where the pattern begins in the region, behind the slots */
};

struct ucmatose_connection {
	struct ucmatose *run;
	struct endpoint *endpoint;
	struct ucmatose_memory *memory;
	size_t slots; /* where its slots begin in the region */
	uint32_t index;
	enum connection_state state;
	bool peer_is_ours;	  /* rdmatest: it sent a hello, so its payload is known */
	bool peer_disconnected;	  /* early, with -m: the endpoint is migrated before it is closed */
	uint8_t grants_in_flight; /* at most GRANTS_MAX */
	uint32_t send_seed;
	uint32_t receive_seed;
	uint32_t peer_window; /* the first grant; each further one is half of it. 0: the peer sends no grants */
	uint64_t posted;      /* receives, for messages and grants */
	uint64_t consumed;    /* receives completed */
	uint64_t received;    /* messages */
	uint64_t granted;     /* messages that the peer may send */
	uint64_t sent;
	uint64_t acknowledged; /* sends that are complete */
	uint64_t allowed;      /* messages that we may send */
};

enum ucmatose_phase {
	UCMATOSE_STARTING = 0,
	UCMATOSE_CONNECTING,
	UCMATOSE_PAUSING,
	UCMATOSE_TRANSFERRING,
	UCMATOSE_SETTLING,
	UCMATOSE_CLOSING,
	UCMATOSE_INTERRUPTED,
	UCMATOSE_ENDED,
};

struct ucmatose {
	struct environment *environment;
	const struct ucmatose_options *options;
	struct channel *channel;
	struct endpoint *listener;
	struct ucmatose_connection *connections;
	struct ucmatose_memory *memory; /* list, newest first */
	const char *device;		/* for the verdict; NULL: none yet */
	int64_t progress;		/* time of the last event or completion */
	uint64_t messages;		/* per direction of each connection; 0 with -C 0 or -S 0 */
	uint32_t wanted;		/* connections: -c */
	uint32_t begun;			/* entries of connections[] used so far; some may be free again */
	uint32_t ended;			/* the first of them: disconnect_more() has ended them, or need not */
	uint32_t in_state[CONNECTION_STATES];
	uint16_t client_id; /* identifies the client's run, in its hellos; 0: unknown to the server */
	enum ucmatose_phase phase;
	bool is_server;
	bool mismatched;		/* a peer has other options; the failure is noted */
	bool no_more_connections;	/* none is begun or awaited, even if some are missing */
	bool half_printed;		/* the line between the two directions was printed */
	enum interruption interruption; /* 0: none */
	struct address source;		/* ADDRESS_NONE without -b */
	struct repeats repeats;		/* of the connections */
	struct endpoint_options endpoint_options;
	struct dial dial;		  /* of a client's first connection */
	struct loop_timer phase_timer;	  /* starts the next phase from the loop */
	struct loop_timer progress_timer; /* no progress, or no client (--idle-timeout) */
	struct ucmatose_figures figures, before;
};

/* phases.c */
void ucmatose_progressed(struct ucmatose *run);
uint32_t ucmatose_connection_count(const struct ucmatose *run); /* begun, without free entries */
bool ucmatose_wants_more(const struct ucmatose *run);
void ucmatose_start_progress_timer(struct ucmatose *run); /* fails what makes no progress */
void ucmatose_begin_connecting(struct ucmatose *run);
void ucmatose_advance(struct ucmatose *run);
/* Ends a run that cannot connect or listen. The cause is already logged. */
void ucmatose_fail_start(struct ucmatose *run, enum outcome outcome);
void ucmatose_interrupt(void *state, enum interruption reason);

/* client.c */
/* Looks the server up and connects. */
enum outcome ucmatose_client_start(struct ucmatose *run);
/* Begins connections, up to the maximum in progress. */
void ucmatose_client_connect_more(struct ucmatose *run);
/* A connection was not established. The first one may be tried again: at the next address, or with --wait-server. */
void ucmatose_client_attempt_failed(struct ucmatose_connection *connection, enum outcome outcome, bool busy);

/* server.c */
enum outcome ucmatose_server_start(struct ucmatose *run);
/* The client withdrew the request or never confirmed the connection: another request may take its place. */
void ucmatose_server_drop_request(struct ucmatose_connection *connection);

/* connection.c */
extern const struct endpoint_handlers ucmatose_connection_handlers;
struct ucmatose_connection *ucmatose_connection_new(struct ucmatose *run);
/* Destroys the endpoint of a connection that was not established, so that it can be retried. */
void ucmatose_connection_reset(struct ucmatose_connection *connection);
void ucmatose_connection_enter(struct ucmatose_connection *connection, enum connection_state state);
/* The cause is already logged. */
void ucmatose_connection_fail(struct ucmatose_connection *connection, enum outcome outcome);
void ucmatose_connection_disconnect(struct ucmatose_connection *connection);
void ucmatose_connection_close(struct ucmatose_connection *connection);
/* Takes seeds and window from the peer's hello; not called for a stock peer. */
void ucmatose_hello_apply(struct ucmatose_connection *connection, const struct hello *hello);
void ucmatose_hello_write(const struct ucmatose *run, const struct ucmatose_connection *connection,
			  uint8_t bytes[HELLO_SIZE]);
/* False if the peer has other options, after an error with the difference. */
bool ucmatose_hello_agrees(struct ucmatose *run, const char *object, const struct hello *hello);

/* figures.c */
struct figures ucmatose_figures_update(void *state);

/* transfer.c */
/* Creates the QP, assigns memory and posts the first receives. The domain must be known. */
enum outcome ucmatose_transfer_prepare(struct ucmatose_connection *connection);
/* The connection is established; on a server, all connections are. */
void ucmatose_transfer_begin(struct ucmatose_connection *connection);
void ucmatose_transfer_completion(void *context, struct endpoint *endpoint, const struct completion *completion);

#endif
