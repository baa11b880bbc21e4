/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RDMA interface of the commands. It has no verbs, librdmacm or libev types, so a command works on every backend.
 *
 * Objects. A transport is an opened backend. A channel delivers connection events to the loop; endpoints can move
 * between channels. An endpoint is a listener, a reliable connection, or a group (a datagram QP that joins a multicast
 * group). A domain is a port of a device; it is known once an address is resolved or a request arrives. Its endpoints
 * share regions and completion queues, so connections need little memory.
 *
 * Errors. transport->error has the cause when a function has returned anything but OUTCOME_OK, and while EVENT_FAILED,
 * EVENT_REQUEST_FAILED or a failed completion is handled; its kind says whether another try may succeed. It is valid
 * until the next of these, as errno is. It is not set if there is nothing to report: a peer has withdrawn its request,
 * or too many strangers' errors were reported recently. The transport itself only logs errors without a call or event.
 *
 * Order. Callbacks come from the loop, never from a function below. EVENT_ESTABLISHED comes before the endpoint's first
 * completion, EVENT_DISCONNECTED after the last; they come by two descriptors, which the kernel does not order. Flushed
 * work is not reported; the event or completion that stopped the QP is.
 *
 * Requests. A reported request no longer needs its listener; endpoint_destroy() of a listener rejects the others. If
 * the peer withdraws a request, EVENT_FAILED reports it, or the calls that accept it fail with OUTCOME_NO_CONNECTION:
 * the kernel reports nothing before.
 *
 * Lifetimes. Any callback may call endpoint_destroy(); no callback for that endpoint follows. region_destroy() delays
 * the free until the destroyed endpoints that use the region are gone. transport_close() comes last.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/address.h"
#include "core/drops.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/outcome.h"
#include "core/route_cause.h"

/*
 * Over verbs the kernel frees everything at the end of the process, and disconnects. That suffices for the smallest
 * program.
 */
#define TRANSPORT_CLEANS_UP (WITH_DIAGNOSTICS || WITH_SOFT)

struct backend; /* a const table of functions: transport/backend.h */
struct channel;
struct network_counter;
struct path_options;

/* The base of every backend's own struct. */
struct transport {
	const struct backend *backend;
	struct loop *loop;
	const struct log *log;
	int64_t spin;			    /* transport_spin() */
	struct log_limit request_log_limit; /* for lines about peers that are not connected */
	struct error error;		    /* see above */
	bool tells;			    /* prints once, at a terminal, the reason of a wait */
	bool explained;			    /* the last endpoint_timeout_cause() found a cause */
	struct drops drops;		    /* read when it was opened */
	int64_t asked_at; /* clock: when endpoint_timeout_cause() last looked, for a request; 0: never */
	struct network_counter *counters; /* transport_counters() */
	unsigned untried;		  /* enum untried: of the last connection made */
};

/*
 * Opens a backend by name ("verbs", "soft"); NULL is the first that is built in. There is no fallback. Fills *error if
 * there is no device (OUTCOME_NO_DEVICE) or no such backend (OUTCOME_USAGE). log must outlive the transport.
 */
enum outcome transport_open(const char *name, struct loop *loop, const struct log *log, struct error *error,
			    struct transport **transport);

const char *transport_name(const struct transport *transport);
/*
 * Whether the backend (NULL: the default) needs RDMA devices. It may open their files even after a listener was
 * created, because a request may arrive on any device. They are unusable after a change of privileges. name may be
 * unknown.
 */
bool transport_opens_devices(const char *name);

/* Features that some backends lack: path options, and InfiniBand addresses. */
enum transport_feature {
	FEATURE_DEVICE,
	FEATURE_PORT,
	FEATURE_GID_INDEX,
	FEATURE_SERVICE_LEVEL,
	FEATURE_MTU,
	FEATURE_INLINE,
	FEATURE_NATIVE_GID,
	FEATURE_IPOIB, /* PORT_SPACE_IPOIB */
	FEATURE_COUNT
};

/* Why a backend (NULL: the default) lacks a feature. NULL: it has it, or is not built in. */
struct unsupported {
	const char *backend;
	const char *reason;
};
struct unsupported transport_unsupported(const char *name, enum transport_feature feature);

/*
 * Looks up the interface, device, port and GID index in the path options, whatever their addresses. If one does not
 * exist, sets transport->error, with the existing ones, and returns OUTCOME_USAGE. Without a device, or if it cannot be
 * opened, later calls report that.
 */
enum outcome transport_check_path(struct transport *transport, const struct path_options *options);

/*
 * Sets how long the loop polls after the last work before it sleeps, in nanoseconds. 0, the default, sleeps at once;
 * LOOP_SPIN_ALWAYS never sleeps. Call it before the first channel_create().
 */
void transport_spin(struct transport *transport, int64_t nanoseconds);

/* Untried ways around packet losses of RoCE to another host. */
enum untried {
	UNTRIED_CLASS = 1, /* a traffic class */
	UNTRIED_PATH = 2,  /* another UDP port: a device chooses its own */
};

/* A port's counter since this transport's first queue pair on it, including other users of the port. */
struct network_counter {
	struct network_counter *next; /* a port's counters are adjacent */
	const char *device;	      /* "rxe0", "udp" */
	const char *name;	      /* the driver's; for soft mlx5's equivalent, if any */
	uint64_t increase;	      /* at the last read; final if the counter was reset or its device removed */
	uint8_t port;		      /* from 1; 0: soft has none */
};

/* Looks at the counters again. Returns the first, until the transport is closed; NULL: none. transport may be NULL. */
const struct network_counter *transport_counters(struct transport *transport);

/* Frees the endpoints, domains and channels that are left; destroy regions first. NULL is allowed. */
void transport_close(struct transport *transport);

enum outcome channel_create(struct transport *transport, struct channel **channel);

enum fabric {
	FABRIC_INFINIBAND,
	FABRIC_ROCE,
	FABRIC_IWARP,
};

/* A port of a device. Owned by the transport; commands only read it. */
struct domain {
	struct transport *transport;
	const char *device; /* "rxe0" */
	enum fabric fabric;
	bool multicast;	      /* supports unreliable datagrams and groups */
	bool ip6_multicast;   /* supports groups of IPv6 addresses */
	bool removed;	      /* the device was removed: its endpoints fail */
	uint32_t max_message; /* bytes */
	uint32_t max_qp_wr;   /* work requests of a send or receive queue */
};

/* Registered memory. Base of the backend's struct. Of the members, commands write only what memory points to. */
struct region {
	struct domain *domain;
	uint8_t *memory;
	size_t length;
	uint64_t remote_address; /* names the memory in a peer's READ and WRITE */
	uint32_t local_key;
	uint32_t remote_key;
};

enum region_access {
	REGION_LOCAL = 0,	 /* source of sends and writes, target of receives */
	REGION_REMOTE_READ = 1,	 /* the peer may read it */
	REGION_REMOTE_WRITE = 2, /* the peer may write it */
	REGION_READ_SINK = 4,	 /* target of our READs (iWARP needs remote write access) */
};

/* Allocates length zeroed bytes (1 or more) and registers them with the device. */
enum outcome region_create(struct domain *domain, size_t length, unsigned access, struct region **region);
/* Frees a region once no endpoint being destroyed uses it. NULL is allowed. */
void region_destroy(struct region *region);

enum endpoint_kind {
	ENDPOINT_LISTENER = 1,
	ENDPOINT_CONNECTION,
	ENDPOINT_GROUP,
};

enum port_space {
	PORT_SPACE_TCP = 0x0106,
	PORT_SPACE_UDP = 0x0111,
	PORT_SPACE_IB = 0x013f,
	PORT_SPACE_IPOIB = 0x0002,
};

/* options.timeout limits each state that waits. */
enum endpoint_state {
	ENDPOINT_IDLE = 0,
	ENDPOINT_RESOLVING_ADDRESS, /* waits for EVENT_ADDRESS_RESOLVED */
	ENDPOINT_ADDRESS_RESOLVED,
	ENDPOINT_RESOLVING_ROUTE, /* waits for EVENT_ROUTE_RESOLVED */
	ENDPOINT_ROUTE_RESOLVED,
	ENDPOINT_CONNECTING, /* waits for EVENT_ESTABLISHED */
	ENDPOINT_LISTENING,
	ENDPOINT_REQUESTED, /* by a peer: accept, reject or destroy it */
	ENDPOINT_ACCEPTING, /* waits for EVENT_ESTABLISHED */
	ENDPOINT_ESTABLISHED,
	ENDPOINT_DISCONNECTING, /* waits for EVENT_DISCONNECTED */
	ENDPOINT_DISCONNECTED,
	ENDPOINT_JOINING, /* waits for EVENT_JOINED */
	ENDPOINT_JOINED,
	ENDPOINT_FAILED,
	ENDPOINT_DESTROYED,
};

enum event_kind {
	EVENT_ADDRESS_RESOLVED = 1, /* endpoint->domain is known: create regions and QP */
	EVENT_ROUTE_RESOLVED,
	EVENT_REQUEST,	      /* on a listener: event->request is a new connection */
	EVENT_REQUEST_FAILED, /* on a listener: no endpoint for a request; event->outcome is set */
	EVENT_ESTABLISHED,
	EVENT_DISCONNECTED, /* by the peer, or our disconnect is complete */
	EVENT_JOINED,
	EVENT_FAILED, /* only endpoint_destroy() is left; event->outcome is set */
};

/* Result of a join: the destination of the group's datagrams. */
struct group_address {
	uint8_t gid[16];
	uint16_t lid; /* 0 on RoCE */
	uint8_t service_level;
	uint32_t qpn;
	uint32_t qkey;
};

/* Valid during the callback only. */
struct endpoint_event {
	enum event_kind kind;
	enum outcome outcome; /* of EVENT_FAILED and EVENT_REQUEST_FAILED */
	/*
	 * Nanoseconds, for an event that ends a waiting state; for a listener's first event since endpoint_listen().
	 * Else, and without WITH_REPORT, 0.
	 */
	int64_t took;
	struct endpoint *request; /* of EVENT_REQUEST: the callee owns it and sets its handlers before it returns */
	/*
	 * From the peer's connect (EVENT_REQUEST), accept (EVENT_ESTABLISHED of the client) or reject (EVENT_FAILED);
	 * may be padded with zeros. NULL if there is none.
	 */
	const uint8_t *private_data;
	size_t private_length;
	const struct group_address *group; /* of EVENT_JOINED */
};

enum work_kind {
	WORK_SEND = 1,
	WORK_RECEIVE,
	WORK_READ,  /* RDMA READ from the peer's memory into the region */
	WORK_WRITE, /* RDMA WRITE from the region into the peer's memory */
};

/* As in ibv_poll_cq(3): a subset of enum ibv_wc_status, with its numbers. */
enum completion_status {
	COMPLETION_OK = 0,
	COMPLETION_LENGTH = 1,	   /* the message did not fit into the receive */
	COMPLETION_OTHER = 2,	   /* the queue pair failed */
	COMPLETION_PROTECTION = 4, /* wrong local key or bounds */
	COMPLETION_REMOTE_REQUEST = 9,
	COMPLETION_REMOTE_ACCESS = 10, /* wrong remote key or bounds */
	COMPLETION_REMOTE_OPERATION = 11,
	COMPLETION_RETRY_EXCEEDED = 12, /* the peer does not answer */
	COMPLETION_RNR_EXCEEDED = 13,	/* the peer has no receive posted */
};

struct completion {
	enum work_kind kind; /* of failed work only kind, tag and status are valid */
	uint32_t tag;
	enum completion_status status;
	uint32_t length; /* bytes received, without DATAGRAM_HEADER_SIZE; 0 if a WRITE consumed the receive */
	bool has_immediate;
	uint32_t immediate;  /* host order */
	uint32_t source_qpn; /* of a datagram */
};

/* The global route header precedes every datagram in its receive buffer, valid or not. */
enum {
	DATAGRAM_HEADER_SIZE = 40
};

enum {
	WORK_TAG_MAX = (1 << 24) - 1
};

/* A work request. endpoint_post() copies it; its memory is in use until the completion. */
struct work {
	enum work_kind kind;
	uint32_t tag; /* returned in the completion; at most WORK_TAG_MAX */
	const struct region *region;
	size_t offset;
	uint32_t length;
	uint64_t remote_address; /* of WORK_READ and WORK_WRITE */
	uint32_t remote_key;
	bool unsignalled;   /* not of a receive: no completion unless it fails; the next signalled one covers it */
	bool has_immediate; /* WORK_SEND only */
	uint32_t immediate; /* host order */
};

struct endpoint_handlers {
	void (*event)(void *context, struct endpoint *endpoint, const struct endpoint_event *event);
	void (*completion)(void *context, struct endpoint *endpoint, const struct completion *completion);
};

/*
 * The path of an endpoint's packets. PATH_UNSET leaves a number to the routing table, device or backend. Backends do
 * not support all: transport_unsupported().
 */
struct path_options {
	const char *device; /* "rxe0"; NULL for any */
	int64_t port;	    /* of the device, from 1 */
	int64_t gid_index;
	const char *interface;	 /* network interface of the local address; NULL for any */
	int64_t type_of_service; /* 0-255 */
	int64_t dscp;		 /* 0-63: upper six bits of the type of service */
	int64_t service_level;	 /* 0-15 */
	int64_t ack_timeout;	 /* 0-31: 4.096 us x 2^n; 0: infinite */
	int64_t retry;		 /* 0-7 retransmissions; soft: see soft/qp/recovery.c */
	int64_t rnr_retry;	 /* 0-7 retransmissions after RNR NAKs; 7: infinite */
	int64_t mtu;		 /* payload bytes, at most: 256, 512, 1024, 2048, 4096 */
	int64_t backlog;	 /* of a listener: pending requests; soft: also half of the half-open connections */
	int64_t inline_size;	 /* bytes: up to this size a message is posted inline */
};

enum {
	PATH_UNSET = -1,
};

/* Every option unset. */
#define PATH_OPEN                                                                                                      \
	{                                                                                                              \
		.port = PATH_UNSET,                                                                                    \
		.gid_index = PATH_UNSET,                                                                               \
		.type_of_service = PATH_UNSET,                                                                         \
		.dscp = PATH_UNSET,                                                                                    \
		.service_level = PATH_UNSET,                                                                           \
		.ack_timeout = PATH_UNSET,                                                                             \
		.retry = PATH_UNSET,                                                                                   \
		.rnr_retry = PATH_UNSET,                                                                               \
		.mtu = PATH_UNSET,                                                                                     \
		.backlog = PATH_UNSET,                                                                                 \
		.inline_size = PATH_UNSET,                                                                             \
	}

/* For endpoints without path options. */
extern const struct path_options path_unset;
/* From dscp or type_of_service, or PATH_UNSET. */
int path_type_of_service(const struct path_options *options);

/* The path in use. Unknown: 0, NULL or "". */
struct path {
	const char *device;  /* until the transport is closed */
	struct address peer; /* or the group */
	unsigned port;
	int gid_index; /* PATH_UNSET: unknown */
	uint8_t gid[16];
	const char *gid_type; /* "RoCE v2", "IB" */
	char interface[16];
	uint32_t mtu; /* bytes */
	uint32_t qpn;
	uint32_t peer_qpn;
};

enum {
	PRIVATE_DATA_MAX = 56, /* bytes of a REQ after the address header (IBTA annex A11) */
};

enum {
	UDP_PORT_ROCE = 4791,	 /* UDP destination port of RoCE v2; any source port is accepted, soft has the same */
	UDP_PORT_FIRST = 0xc000, /* from here on, as with cards (Linux's rdma_flow_label_to_udp_sport()) */
	UDP_SENDERS_MAX = 64,	 /* ports per process; further peers get 4791 */
};

struct endpoint_options {
	enum port_space port_space;
	int64_t timeout; /* nanoseconds per state; 0: infinite */
	uint32_t send_depth;
	uint32_t receive_depth;
	const struct path_options *path; /* NULL: every option unset; must outlive the endpoint */
	/*
	 * Soft, of a connection: its packets leave from this UDP port, so that routers which hash ports take another
	 * path. If another process has it, the port is raised by udp_step until one is free: endpoint_create_qp() sets
	 * it. Without a step, or with udp_port 0: from 4791.
	 */
	uint16_t udp_port, udp_step;
	bool own_qp;	  /* of a connection: create and modify the QP with verbs instead of librdmacm */
	bool send_only;	  /* join as send-only full member */
	bool no_loopback; /* datagrams to the group do not loop back to this host */
};

/* How often packets were lost, as far as known: over soft. A timeout does not count, its packet may be late. */
struct losses {
	uint32_t out, back; /* this end's packets, the peer's */
};

/* Base of the backend's struct. */
struct endpoint {
	/* Commands only read these ... */
	struct transport *transport;
	struct channel *channel;
	struct domain *domain; /* NULL before EVENT_ADDRESS_RESOLVED */
	enum endpoint_kind kind;
	enum endpoint_state state;
	uint32_t qpn;	       /* 0: no QP */
	uint32_t max_datagram; /* payload bytes: the port's active MTU; known with the domain */
	bool no_reads;	       /* the peer accepts no RDMA READ (responder resources 0) */
	struct losses losses;  /* of a connection */

	/* ... write these, options before endpoint_create_qp() ... */
	bool done; /* the command expects nothing more: do not log that the device failed */
	const struct endpoint_handlers *handlers;
	void *context;
	struct endpoint_options options;

	/* ... and only read these. */
	char name[ADDRESS_TEXT_SIZE]; /* in messages: the peer's address, or a listener's own */
	struct address local;
	struct address peer;
	struct loop_timer timer; /* of the current state */
	struct loop_timer slow;	 /* for its first seconds */
	int64_t began;		 /* clock time of the call that the next event answers; 0: none */
	int64_t took;		 /* from the call to EVENT_ESTABLISHED: at least a round trip; 0: unknown */
};

/* Copies options. Sends nothing. */
enum outcome endpoint_create(enum endpoint_kind kind, struct channel *channel, const struct endpoint_options *options,
			     const struct endpoint_handlers *handlers, void *context, struct endpoint **endpoint);

/* In any state: leaves, disconnects, drops its work and frees it. NULL is allowed. */
void endpoint_destroy(struct endpoint *endpoint);

/* Binds to address and listens. Sets endpoint->local to the port taken for port 0. EVENT_REQUEST reports requests. */
enum outcome endpoint_listen(struct endpoint *endpoint, const struct address *address);

/*
 * Connection, group: finds the device for destination and source (NULL: any). EVENT_ADDRESS_RESOLVED follows, then for
 * a connection EVENT_ROUTE_RESOLVED. A native GID as a group's destination needs a source and is not resolved.
 */
enum outcome endpoint_resolve(struct endpoint *endpoint, const struct address *source,
			      const struct address *destination);

/*
 * The first step of that. If the endpoint's options name an interface or device: sets *source, if it has no family or
 * is the any address, to a local address of family that belongs to it; keeps the port. Sets the error and returns
 * OUTCOME_NO_CONNECTION if there is none, OUTCOME_USAGE if the given source does not belong to it.
 */
enum outcome path_find_source(const struct endpoint *endpoint, enum address_family family, struct address *source);

/*
 * Creates the QP, ready for receives. Reduces options.receive_depth to what the device supports. The domain must be
 * known.
 */
enum outcome endpoint_create_qp(struct endpoint *endpoint);

/* data: at most PRIVATE_DATA_MAX bytes, copied. EVENT_ESTABLISHED or EVENT_FAILED follows. */
enum outcome endpoint_connect(struct endpoint *endpoint, const void *data, size_t length);
enum outcome endpoint_accept(struct endpoint *endpoint, const void *data, size_t length);
/* Rejects a request with private data, and destroys the endpoint. */
void endpoint_reject(struct endpoint *endpoint, const void *data, size_t length);

/* Drops unfinished work. EVENT_DISCONNECTED follows. */
enum outcome endpoint_disconnect(struct endpoint *endpoint);

/* Joins the resolved group and attaches the QP. EVENT_JOINED follows. */
enum outcome endpoint_join(struct endpoint *endpoint);

/*
 * Posts count works (at least 1) in order. All are receives, or none is: only receives are allowed before
 * EVENT_ESTABLISHED or EVENT_JOINED. Only the first may be a READ, which fails with no_reads. A failed one ends the
 * posting, with OUTCOME_INTERNAL if the queue is full. After failed work of the queue pair, works are dropped without a
 * completion.
 */
enum outcome endpoint_post(struct endpoint *endpoint, const struct work *work, size_t count);

/* The connection must be established, the group joined. */
void endpoint_path(const struct endpoint *endpoint, struct path *path);

enum {
	ENDPOINT_TIMEOUT_CAUSE_SIZE = 64 + ROUTE_CAUSE_SIZE
};

/*
 * Returns text: why the peer may not respond, or may have received nothing before it disconnected, as far as this host
 * knows: "; ..." for the end of a message, or "", always without WITH_DIAGNOSTICS.
 */
const char *endpoint_timeout_cause(const struct endpoint *endpoint, char text[ENDPOINT_TIMEOUT_CAUSE_SIZE]);

enum {
	ENDPOINT_ADDRESSES_SIZE = 160
};

/* Returns text: a listener's addresses if it is on the any address, " (127.0.0.1, 10.0.0.1)", or "". */
const char *endpoint_local_addresses(const struct endpoint *listener, char text[ENDPOINT_ADDRESSES_SIZE]);

/* Returns false, and the reason, for a listener on the any address if no address here belongs to its path options. */
bool endpoint_is_reachable(const struct endpoint *listener, struct error *reason);

/* Moves the endpoint and its pending events to another channel. Not allowed in its event callbacks. */
enum outcome endpoint_migrate(struct endpoint *endpoint, struct channel *channel);

/* Such as "resolving the address" or "connecting". NULL without WITH_DIAGNOSTICS for a state that no error names. */
const char *endpoint_state_text(enum endpoint_state state);
/* NULL: the backend has its own text. */
const char *completion_status_text(enum completion_status status);
const char *work_kind_text(enum work_kind kind);
