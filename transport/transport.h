/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA as the commands see it: no verbs, librdmacm or libev type in it, so that a command works on every backend.
 *
 * The nouns. A transport is an opened backend. A channel carries connection events to the loop; endpoints can be moved
 * between channels. An endpoint is one of three things: a listener, a connection (reliable), or a group (a datagram
 * queue that joins a multicast group). A domain is one device, known from the moment an address is resolved or a
 * request arrives; regions and completion queues belong to it, which keeps a thousand connections cheap.
 *
 * Messages. Whoever first knows the cause prints it: a function that returns anything but OUTCOME_OK, and an
 * EVENT_FAILED or a failed completion that is handed to a command, has already been explained on stderr.
 *
 * Order. Every call-back comes from the loop, never out of a function below. The kernel reports connection events and
 * completions through two descriptors without an order between them; the transport restores it: EVENT_ESTABLISHED comes
 * before the endpoint's first completion, and EVENT_DISCONNECTED after its last one. Work that is flushed when a queue
 * goes down is not reported: the event or the completion that brought the queue down is.
 *
 * Lifetimes. endpoint_destroy() may be called from any call-back; nothing is called back for that endpoint after it.
 * Regions are freed after the endpoints whose work uses them were destroyed, with region_destroy(), which waits for
 * them by itself. transport_close() comes last.
 */
#ifndef TRANSPORT_TRANSPORT_H
#define TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/address.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/outcome.h"

struct backend; /* a const table of functions: transport/backend.h */
struct channel;

/* The base of every backend's own struct. */
struct transport {
	const struct backend *backend;
	struct loop *loop;
	const struct log *log;
	int64_t spin;		    /* transport_spin() */
	struct log_limit strangers; /* what was told of peers that never got connected */
};

/*
 * Opens the backend of that name ("verbs", "soft"), or the default one for NULL: the first that is built in. There is
 * no falling back from one to another. Without a device the cause and its cure are told: OUTCOME_NO_DEVICE. A name that
 * is not built in is OUTCOME_USAGE.
 */
enum outcome transport_open(const char *name, struct loop *loop, const struct log *log, struct transport **transport);

/* The name of its backend. */
const char *transport_name(const struct transport *transport);
/*
 * Whether the backend of that name, or the default one for NULL, works by device files: opened also when a listener
 * stands, as a request may come in by any, and of no use to a process whose privileges have changed since.
 */
bool transport_opens_devices(const char *name);

/*
 * The options that the backend of that name cannot honour, or the default one for NULL, whose name *name gets; none of
 * one that is not built in.
 */
const struct path_refusal *transport_refusals(const char **name);

/*
 * Busy polling, for the transport and with it the whole loop: how long to go on looking for work after the last, in
 * nanoseconds, before sleeping until a descriptor is ready; LOOP_SPIN_FOR_EVER never sleeps. 0 sleeps at once and is
 * how a transport begins. To be set before the first channel is made. Nothing else changes but the time it takes.
 */
void transport_spin(struct transport *transport, int64_t nanoseconds);

/* Frees what is left: endpoints, domains and channels; the regions were destroyed by their owners. NULL is fine. */
void transport_close(struct transport *transport);

enum outcome channel_create(struct transport *transport, struct channel **channel);
/* Destroys a channel that no endpoint uses any more. */
void channel_destroy(struct channel *channel);

enum fabric {
	FABRIC_INFINIBAND,
	FABRIC_ROCE,
	FABRIC_IWARP,
};

/* One device, or a port of it. Owned by the transport. */
struct domain {
	struct transport *transport;
	const char *device; /* "rxe0" */
	enum fabric fabric;
	bool multicast;		     /* the device has unreliable datagrams and groups */
	bool removed;		     /* its endpoints have failed or are about to */
	uint32_t longest_message;    /* bytes */
	uint32_t most_queue_entries; /* work requests of one queue, each direction */
};

/* Memory that the device may use. Base of the backend's own struct. */
struct region {
	struct domain *domain;
	uint8_t *memory;
	size_t length;
	uint32_t local_key;
	uint32_t remote_key;
};

enum region_access {
	REGION_LOCAL = 0,	 /* source of sends and writes, target of receives */
	REGION_REMOTE_READ = 1,	 /* the peer may read it */
	REGION_REMOTE_WRITE = 2, /* the peer may write it */
	REGION_READ_SINK = 4,	 /* target of our own reads (iWARP wants more rights for that) */
};

/* Allocates length zeroed bytes (1 or more) and registers them with the device. */
enum outcome region_create(struct domain *domain, size_t length, unsigned access, struct region **region);
/* Frees a region, as soon as endpoints being destroyed no longer use it. NULL is fine. */
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

/* The life of an endpoint. Each waiting state is limited by options.timeout. */
enum endpoint_state {
	ENDPOINT_IDLE = 0,
	ENDPOINT_RESOLVING_ADDRESS, /* waits for EVENT_ADDRESS_RESOLVED */
	ENDPOINT_ADDRESS_RESOLVED,
	ENDPOINT_RESOLVING_ROUTE, /* waits for EVENT_ROUTE_RESOLVED */
	ENDPOINT_ROUTE_RESOLVED,
	ENDPOINT_CONNECTING, /* waits for EVENT_ESTABLISHED */
	ENDPOINT_LISTENING,
	ENDPOINT_REQUESTED, /* a peer asks; accept, reject or destroy it */
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
	EVENT_ADDRESS_RESOLVED = 1, /* endpoint->domain is known: regions and the queue can be made */
	EVENT_ROUTE_RESOLVED,
	EVENT_REQUEST, /* on a listener: event->request is a new connection */
	EVENT_REFUSED, /* on a listener: a request could not even be told of; event->outcome: for which exit code */
	EVENT_ESTABLISHED,
	EVENT_DISCONNECTED, /* the peer went in order, or our own disconnect is done */
	EVENT_JOINED,
	EVENT_FAILED, /* the endpoint is of no more use but for endpoint_destroy(); event->outcome: for which exit code
		       */
};

/* What a join brought: where the group's datagrams go. */
struct group_address {
	uint8_t gid[16];
	uint16_t lid; /* 0 on RoCE */
	uint8_t service_level;
	uint32_t qpn;
	uint32_t qkey;
	void *context; /* as given to endpoint_join(), and carried through the kernel and back */
};

/* Valid during the call-back only. */
struct endpoint_event {
	enum event_kind kind;
	enum outcome outcome;	  /* of EVENT_FAILED and EVENT_REFUSED */
	struct endpoint *request; /* of EVENT_REQUEST: the receiver owns it, and sets its handlers before it returns */
	/*
	 * What the peer said: with EVENT_REQUEST its connect data, with EVENT_ESTABLISHED at the connecting end its
	 * accept data, with EVENT_FAILED what it refused with. May be longer than what was sent, padded with zeros.
	 * NULL if there is none.
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

/* The status of a completion, in the vocabulary of verbs (ibv_poll_cq(3)); raw is the backend's number for it. */
enum completion_status {
	COMPLETION_OK = 0,
	COMPLETION_LENGTH,	  /* the message did not fit into the receive */
	COMPLETION_PROTECTION,	  /* a local key or bound is wrong */
	COMPLETION_REMOTE_ACCESS, /* the peer's memory refused */
	COMPLETION_REMOTE_REQUEST,
	COMPLETION_REMOTE_OPERATION,
	COMPLETION_RETRY_EXCEEDED, /* the peer does not answer */
	COMPLETION_RNR_EXCEEDED,   /* the peer has no receive posted */
	COMPLETION_OTHER,
};

struct completion {
	enum work_kind kind; /* valid also if the work failed, as is tag; nothing else is then */
	uint32_t tag;
	enum completion_status status;
	uint32_t
		length; /* bytes received, without the 40 bytes in front of a datagram; 0 if a WRITE took the receive */
	bool has_immediate;
	uint32_t immediate;	      /* host order */
	uint32_t source_queue_number; /* of a datagram */
};

/* What stands in front of every datagram in its receive buffer: the global route header, used or not. */
enum {
	DATAGRAM_HEADER_SIZE = 40
};

enum {
	WORK_TAG_MOST = (1 << 24) - 1
};

/* One work request. All fields are read during endpoint_post(); the memory is in use until the completion. */
struct work {
	enum work_kind kind;
	uint32_t tag; /* comes back in the completion; at most WORK_TAG_MOST */
	const struct region *region;
	size_t offset;
	uint32_t length;
	uint64_t remote_address; /* of WORK_READ and WORK_WRITE */
	uint32_t remote_key;
	bool silent; /* completes without a report unless it fails; a later reported work of the queue covers it */
	bool has_immediate; /* only of WORK_SEND */
	uint32_t immediate; /* host order */
};

struct endpoint_handlers {
	void (*event)(void *owner, struct endpoint *endpoint, const struct endpoint_event *event);
	void (*completion)(void *owner, struct endpoint *endpoint, const struct completion *completion);
};

/*
 * Which way an endpoint's packets take, and how they are treated there. All numbers are PATH_UNSET where the routing
 * table, the device or the backend decides. What a backend cannot set is refused: transport_refusals().
 */
struct path_options {
	const char *device; /* "rxe0"; NULL for any */
	int64_t port;	    /* of the device, from 1 */
	int64_t gid_index;
	int64_t pkey;		 /* of a native GID: the partition; 0xffff is the default one */
	const char *interface;	 /* the local address is one of this network interface; NULL for any */
	int64_t type_of_service; /* 0-255 */
	int64_t dscp;		 /* 0-63: the upper six bits of the type of service */
	int64_t service_level;	 /* 0-15 of our packets */
	int64_t ack_timeout;	 /* 0-31: 4.096 us x 2^n; 0 waits for ever */
	int64_t retry;		 /* 0-7: how often to send again what is not acknowledged */
	int64_t rnr_retry;	 /* 0-7: how often to a peer without a receive; 7 for ever */
	int64_t mtu;		 /* bytes of a packet, at most: 256, 512, 1024, 2048, 4096 */
	int64_t backlog;	 /* of a listener: requests that wait; soft: and half of the half-open connections */
	int64_t inline_size;	 /* messages up to so many bytes go to the device within the work request */
};

enum {
	PATH_UNSET = -1,
	PATH_TEXT_SIZE = 64,
};

/* Everything left open. */
#define PATH_OPEN                                                                                                      \
	{                                                                                                              \
		.port = PATH_UNSET,                                                                                    \
		.gid_index = PATH_UNSET,                                                                               \
		.pkey = PATH_UNSET,                                                                                    \
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

/* The path that an endpoint has taken. What the backend does not know is 0 or "". */
struct path {
	char device[PATH_TEXT_SIZE];
	unsigned port;
	int gid_index; /* PATH_UNSET if it is not known */
	uint8_t gid[16];
	char gid_type[16]; /* "RoCE v2", "IB" */
	char interface[16];
	uint32_t mtu; /* bytes */
	uint32_t qpn;
	uint32_t peer_queue_number;
};

/* An option of a command, by its long name on the command line, and why a backend does not have it. */
struct path_refusal {
	const char *option; /* NULL ends the list */
	const char *word;   /* only this one of its words; NULL: whatever is asked for */
	const char *reason;
};

enum {
	PRIVATE_DATA_MOST = 56, /* what fits into a connect request behind the address header (wire notes in docs) */
};

struct endpoint_options {
	enum port_space port_space;
	int64_t timeout; /* nanoseconds for each phase; 0 waits for ever */
	uint32_t send_depth;
	uint32_t receive_depth;
	const struct path_options *path; /* NULL leaves everything open; lives as long as the endpoint */
	bool own_queue;	  /* create and move the queue pair with plain verbs instead of the connection manager */
	bool send_only;	  /* join a group as send-only full member */
	bool no_loopback; /* a group's datagrams do not come back to this host */
};

/* Base of the backend's own struct; commands read it, and write only handlers, owner and, before the queue, options. */
struct endpoint {
	struct transport *transport;
	struct channel *channel;
	enum endpoint_kind kind;
	enum endpoint_state state;
	const struct endpoint_handlers *handlers;
	void *owner;
	struct domain *domain;	      /* NULL before EVENT_ADDRESS_RESOLVED */
	char name[ADDRESS_TEXT_SIZE]; /* what messages call it: the peer's address, or the local one of a listener */
	uint32_t qpn;		      /* 0 without a queue */
	uint32_t datagram_most;	      /* payload of one datagram: the port's active MTU; known with the domain */
	bool absent;		      /* it failed to connect because nobody was there, which may change */
	bool no_reads;		      /* the peer of the connection allows none of its memory */
	bool done;		      /* said by its owner, who awaits nothing more: that its device fails is no news */
	struct endpoint_options options;
	struct address local;
	struct address peer;
	struct loop_timer deadline; /* of the phase under way */
};

/* options are copied. Nothing happens on the wire yet. */
enum outcome endpoint_create(enum endpoint_kind kind, struct channel *channel, const struct endpoint_options *options,
			     const struct endpoint_handlers *handlers, void *owner, struct endpoint **endpoint);

/* Ends the endpoint, whatever its state: leaves, disconnects, drops its work and frees it. NULL is fine. */
void endpoint_destroy(struct endpoint *endpoint);

/*
 * Listener: binds to address (port 0 takes a free one; endpoint->local tells which) and listens. Answers at once; the
 * requests come as EVENT_REQUEST.
 */
enum outcome endpoint_listen(struct endpoint *endpoint, const struct address *address);

/*
 * Connection, group: finds the device that leads to destination, from source unless that is NULL. First
 * EVENT_ADDRESS_RESOLVED, for a connection then EVENT_ROUTE_RESOLVED by itself. A native GID as a group's destination
 * needs a source and has nothing to resolve.
 */
enum outcome endpoint_resolve(struct endpoint *endpoint, const struct address *source,
			      const struct address *destination);

/*
 * Makes the queue pair, as deep as the options say, in a state that takes receives; where the device takes fewer of
 * them, options.receive_depth says how many. The domain must be known.
 */
enum outcome endpoint_open_queue(struct endpoint *endpoint);

/* data: at most PRIVATE_DATA_MOST bytes for the peer, copied. Then EVENT_ESTABLISHED or EVENT_FAILED. */
enum outcome endpoint_connect(struct endpoint *endpoint, const void *data, size_t length);
enum outcome endpoint_accept(struct endpoint *endpoint, const void *data, size_t length);
/* Refuses a requested connection, with data for the peer, and destroys the endpoint. */
void endpoint_reject(struct endpoint *endpoint, const void *data, size_t length);

/* Ends an established connection in order: EVENT_DISCONNECTED follows. Unfinished work is dropped. */
enum outcome endpoint_disconnect(struct endpoint *endpoint);

/* Group: joins what was resolved and attaches the queue; context comes back in EVENT_JOINED. */
enum outcome endpoint_join(struct endpoint *endpoint, void *context);
/* Leaves, if it joined. */
enum outcome endpoint_leave(struct endpoint *endpoint);

/*
 * Posts count works in order, either receives or none of them. On failure none of the later ones is posted; of works
 * that make no sense none at all.
 */
enum outcome endpoint_post(struct endpoint *endpoint, const struct work *work, size_t count);

/* The path taken: of a connection once it is established, of a group once it has joined. */
void endpoint_path(const struct endpoint *endpoint, struct path *path);

enum {
	ENDPOINT_SILENCE_SIZE = 128
};

/* What this host knows of why the peer may be silent, for the end of a message: "; ...", or "". Returns text. */
const char *endpoint_silence(const struct endpoint *endpoint, char text[ENDPOINT_SILENCE_SIZE]);

enum {
	ENDPOINT_SERVED_SIZE = 160
};

/* Behind a listener's address, where that does not say it all: " (127.0.0.1, 10.0.0.1)", or "". Returns text. */
const char *endpoint_served(const struct endpoint *listener, char text[ENDPOINT_SERVED_SIZE]);

/* Moves the endpoint and its waiting events to another channel. Not from inside one of its event call-backs. */
enum outcome endpoint_migrate(struct endpoint *endpoint, struct channel *channel);

/* "resolving the address", "connecting": what an endpoint in that state is doing. */
const char *endpoint_state_text(enum endpoint_state state);
const char *completion_status_text(enum completion_status status);
const char *work_kind_text(enum work_kind kind);

#endif
