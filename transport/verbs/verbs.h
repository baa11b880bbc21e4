/* SPDX-License-Identifier: BSD-2-Clause */
/* The rdma-core backend, as its own files and the registry see it. */
#ifndef TRANSPORT_VERBS_VERBS_H
#define TRANSPORT_VERBS_VERBS_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "transport/backend.h"

extern const struct backend verbs_backend;

struct verbs_endpoint;

/*
 * Who a completion belongs to. A work request carries a number, never a pointer, because a device may leave the
 * completions of a destroyed queue pair in a shared completion queue: an index into this table, with a generation that
 * tells a slot's earlier users apart.
 */
struct verbs_slot {
	struct verbs_endpoint *endpoint; /* NULL if free */
	uint32_t next_free;
	uint16_t generation;
};

/* The name of a device outlives the device: commands print it at their end. */
struct verbs_name {
	struct verbs_name *next;
	char text[IBV_SYSFS_NAME_MAX];
};

struct verbs_transport {
	struct transport base;
	struct verbs_channel *channels;
	struct verbs_domain *domains;
	struct verbs_name *names;
	struct verbs_slot *slots;
	uint32_t slot_count;
	uint32_t first_free;		  /* slot_count if none */
	struct verbs_endpoint *destroyed; /* wait for the reaper */
	struct verbs_region *unwanted;	  /* wait for it too, behind the endpoints */
	struct verbs_channel *left;	  /* as well: endpoints that wait may still be on them */
	struct loop_timer reaper;
	bool reaping;
};

/* An rdma_cm event channel on the loop. */
struct verbs_channel {
	struct channel base;
	struct rdma_event_channel *events;
	struct loop_io readable;
	struct verbs_channel *next;
};

/*
 * A completion queue shared by many queue pairs. Each reserves as many entries as it can have work requests, so that
 * the queue never overflows.
 */
struct verbs_completion_queue {
	struct verbs_domain *domain;
	struct ibv_cq *queue;
	uint32_t capacity;
	uint32_t reserved;
	unsigned unacknowledged; /* completion events to pay back with ibv_ack_cq_events() */
	bool armed;		 /* the next completion raises an event */
	struct loop_timer again; /* the rest of a batch that was larger than its budget */
	struct verbs_completion_queue *next;
};

/*
 * One port of a device: what librdmacm opened, with our protection domain and completion queues on it. The ports of a
 * device may be of different fabrics.
 */
struct verbs_domain {
	struct domain base;
	struct ibv_context *context; /* librdmacm's, which closes a removed device that no identifier is bound to */
	struct rdma_cm_id *holder;   /* so this one is, and is told of the removal; NULL if it could not be bound */
	struct loop_io holder_readable;
	uint8_t port;
	const char *change; /* what was told of the port last; NULL: nothing */
	unsigned users;	    /* endpoints and regions */
	bool unplugged;	    /* the kernel has removed the device */
	struct ibv_pd *protection;
	struct ibv_comp_channel *completions;
	struct loop_io completion_readable;
	struct loop_poller completion_poller;
	struct loop_io asynchronous_readable; /* errors of the device and of queue pairs */
	struct verbs_completion_queue *queues;
	struct ibv_device_attr limits;
	struct verbs_domain *next;
};

struct verbs_region {
	struct region base;
	struct ibv_mr *registration;
	struct verbs_region *next; /* among the unwanted */
};

/* The news that a connection is established, kept back for a moment: verbs_endpoint_settle(). */
struct verbs_news {
	size_t length;
	uint8_t data[]; /* what the peer said */
};

struct verbs_endpoint {
	struct endpoint base;
	struct rdma_cm_id *id;
	uint32_t slot;
	struct ibv_qp *queue; /* the id's, or our own with options.own_queue */
	struct verbs_completion_queue *completions;
	uint32_t reserved;		/* of their entries */
	struct rdma_conn_param request; /* what the peer asked for, when accepting */
	uint32_t unfinished;		/* sends that are to be reported */
	bool leaving;			/* the peer has disconnected, and some are unfinished */
	struct loop_timer later;	/* an event of ours that the kernel does not send */
	struct verbs_news *news;	/* NULL if none is kept back */
	bool member;			/* librdmacm keeps a membership that has to be left */
	bool attached;			/* our own queue is attached to the group */
	struct group_address group;
	struct sockaddr_storage group_socket_address; /* as joined: the key for leaving */
	struct ibv_ah *group_handle;
	int64_t group_gid_index;     /* of what is sent to the group; PATH_UNSET until it has joined */
	struct verbs_endpoint *next; /* among the destroyed */
};

static inline struct verbs_transport *verbs_of(struct transport *transport)
{
	return (struct verbs_transport *)transport;
}

static inline struct verbs_domain *verbs_domain_of(const struct verbs_endpoint *endpoint)
{
	return (struct verbs_domain *)endpoint->base.domain;
}

/* verbs.c: the table of endpoints. verbs_slot_take() returns false when memory is short. */
bool verbs_slot_take(struct verbs_transport *transport, struct verbs_endpoint *endpoint);
void verbs_slot_release(struct verbs_transport *transport, struct verbs_endpoint *endpoint);
/* Schedules the clean-up of what was destroyed for the next turn of the loop. */
void verbs_reap_later(struct verbs_transport *transport);

/* diagnosis.c: says why there is no event channel, or no memory, with the command that mends it. */
enum outcome verbs_explain_no_channel(const struct log *log, int error);
enum outcome verbs_explain_resources(const struct log *log, const char *object, const char *what, int error);
/* Says what is short, or that a device cannot be opened, if that is what stands behind the error of a call or an event
 * of librdmacm's; else OUTCOME_OK, and nothing is said. */
enum outcome verbs_explain_shortage(const struct log *log, const char *object, const char *what, int error);
/* The same, and says what there is to say of any other error of an address. */
enum outcome verbs_explain_address(const struct log *log, const char *object, const char *what, int error);
/* Says why there is no usable device, before librdmacm prints words of its own; OUTCOME_OK if there is one. */
enum outcome verbs_explain_devices(const struct log *log);
/* "nobody listens there" and the like, for a connection event that failed. */
const char *verbs_event_cause(const struct rdma_cm_event *event);
/* True if the cause is that nobody is there, which may change: no listener, no answer. */
bool verbs_event_absent(const struct rdma_cm_event *event);
bool verbs_error_absent(int error);
/* The same for an errno value of a resolve or join. */
const char *verbs_error_cause(int error);

/* address.c: to and from what librdmacm takes; of the options, a GID has the port space and the P_Key. */
struct sockaddr *verbs_socket_address(const struct address *address, const struct endpoint_options *options,
				      struct sockaddr_storage *socket_address);
void verbs_address(const struct sockaddr *socket_address, struct address *address);

/* channel.c */
enum outcome verbs_channel_create(struct transport *transport, struct channel **channel);
void verbs_channel_destroy(struct channel *channel);
void verbs_channel_free(struct verbs_channel *channel);

/* device.c: finds or makes the domain of the device an id is bound to, and sets it in the endpoint. */
enum outcome verbs_domain_attach(struct verbs_endpoint *endpoint);
/* An endpoint or region that used it goes. */
void verbs_domain_leave(struct verbs_domain *domain);
void verbs_domain_destroy(struct verbs_domain *domain);
/* Destroys those that nothing uses and that are of no more use. */
void verbs_domains_reap(struct verbs_transport *transport);
/* The device is gone, or of no more use: fails all its endpoints, and says so once. */
void verbs_domain_removed(struct verbs_domain *domain);
void verbs_domain_unplugged(struct verbs_domain *domain);
/* Why the peer may be silent: the port is down, or has changed. */
void verbs_timeout_cause(const struct endpoint *endpoint, char text[ENDPOINT_TIMEOUT_CAUSE_SIZE]);
/* The same for a device whose completions can no longer be had: what failed with which errno value. */
void verbs_domain_failed(struct verbs_domain *domain, int error, const char *what);

/* completion.c */
enum outcome verbs_completion_reserve(struct verbs_endpoint *endpoint, uint32_t entries);
/* Gives the entries back; what the device left in the queue is drained first. */
void verbs_completion_release(struct verbs_endpoint *endpoint);
/* Polls every completion queue of the domain to empty. */
void verbs_completion_drain(struct verbs_domain *domain);
void verbs_completion_queue_destroy(struct verbs_completion_queue *completions);
void verbs_completion_readable(void *domain);
/* Spinning: polls without an event, and arms the queues before the loop sleeps. */
void verbs_completion_poller_start(struct verbs_domain *domain);

/* region.c */
enum outcome verbs_region_create(struct domain *domain, size_t length, unsigned access, struct region **region);
void verbs_region_destroy(struct region *region);
void verbs_region_free(struct verbs_region *region);

/* endpoint.c */
enum outcome verbs_endpoint_create(struct channel *channel, enum endpoint_kind kind,
				   const struct endpoint_options *options, struct endpoint **endpoint);
void verbs_endpoint_destroy(struct endpoint *endpoint);
/* Frees everything of an endpoint in one order; only the reaper and verbs_close() call it. */
void verbs_endpoint_free(struct verbs_endpoint *endpoint);
/* Handles one event of the rdma_cm, which is already acknowledged. */
void verbs_endpoint_event(struct verbs_endpoint *endpoint, const struct rdma_cm_event *event,
			  struct verbs_endpoint *listener);
/* Its queue pair is in error: the reason is reported by itself, or there is none. */
void verbs_flushed(struct verbs_endpoint *endpoint);
/* Tells that the peer has disconnected. */
void verbs_disconnected(void *endpoint);
/* Tells at once what was kept back, because something else has to be told after it. */
void verbs_endpoint_settle(struct verbs_endpoint *endpoint);
enum outcome verbs_listen(struct endpoint *endpoint, const struct address *address);
enum outcome verbs_resolve(struct endpoint *endpoint, const struct address *source, const struct address *destination);
enum outcome verbs_migrate(struct endpoint *endpoint, struct channel *channel);

/* connection.c */
enum outcome verbs_connect(struct endpoint *endpoint, const void *data, size_t length);
enum outcome verbs_accept(struct endpoint *endpoint, const void *data, size_t length);
enum outcome verbs_reject(struct endpoint *endpoint, const void *data, size_t length);
enum outcome verbs_disconnect(struct endpoint *endpoint);
/* The connecting side with its own queue: the peer has answered, move the queue and say so. */
enum outcome verbs_establish(struct verbs_endpoint *endpoint);
/* The peer went: answer, so that it need not wait for its time-out. */
void verbs_acknowledge_disconnect(struct verbs_endpoint *endpoint);

/* queue.c */
enum outcome verbs_open_queue(struct endpoint *endpoint);
void verbs_queue_destroy(struct verbs_endpoint *endpoint);
/* Moves our own queue pair to a state, with the attributes the connection manager knows. */
enum outcome verbs_queue_move(struct verbs_endpoint *endpoint, enum ibv_qp_state state);
/* Makes the peer's sender retry soon when no receive is posted; the default is its slowest. */
void verbs_queue_hasten(struct verbs_endpoint *endpoint);

/* group.c */
enum outcome verbs_join(struct endpoint *endpoint, void *context);
enum outcome verbs_leave(struct endpoint *endpoint);
/* Gives up a membership in whatever state it is, without a word. */
void verbs_abandon(struct verbs_endpoint *endpoint);
void verbs_joined(struct verbs_endpoint *endpoint, const struct rdma_ud_param *parameters);

/* path.c */
bool verbs_source_fits(struct transport *transport, const struct path_options *options, const struct address *source);
void verbs_path(const struct endpoint *endpoint, struct path *path);
extern const struct unsupported_option verbs_unsupported_options[];
/* The id has found a device: is it the one that was asked for? Tells the difference. */
enum outcome verbs_path_check(struct verbs_endpoint *endpoint);
/* It is connected, or has joined: with the GID that was asked for? Tells the difference. */
enum outcome verbs_gid_check(struct verbs_endpoint *endpoint);

/* work.c */
enum outcome verbs_post(struct endpoint *endpoint, const struct work *work, size_t count);

/*
 * A work request's number, high bits first: generation 16, slot 20, kind 4, tag 24. The kind is in it because a failed
 * completion says nothing else of use.
 */
enum {
	VERBS_TAG_BITS = 24,
	VERBS_KIND_BITS = 4,
	VERBS_SLOT_BITS = 20
};

static inline uint64_t verbs_number(uint16_t generation, uint32_t slot, enum work_kind kind, uint32_t tag)
{
	return ((uint64_t)generation << (VERBS_TAG_BITS + VERBS_KIND_BITS + VERBS_SLOT_BITS)) |
	       ((uint64_t)slot << (VERBS_TAG_BITS + VERBS_KIND_BITS)) | ((uint64_t)kind << VERBS_TAG_BITS) |
	       (tag & WORK_TAG_MOST);
}

#endif
