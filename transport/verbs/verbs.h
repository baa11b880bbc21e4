/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rdma-core backend's internal interface (librdmacm and libibverbs). Each file calls only those below it:
 *
 *   verbs.c       open and close, the reaper
 *   channel.c     events of the connection manager: copied, acknowledged, then handled
 *   endpoint.c    an endpoint and its id: resolves, listens, handles the events
 *   connection.c  connects, accepts, disconnects
 *   group.c       joins and leaves
 *   qp.c          queue pairs
 *   completion.c  completion queues
 *   delay.c       what an endpoint reports later than its event
 *   modify.c      modifies queue pairs
 *   work.c        posts work requests
 *   region.c      memory regions
 *   path.c        device, port and GID of an id, and the options that name them
 *   domain.c      domains: a port of a device with what its endpoints share
 *   counters.c    what a port has counted
 *   device.c      asynchronous events, failure and removal of a device
 *   diagnosis.c   causes of errors in words
 *   address.c     addresses of librdmacm
 */
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "transport/backend.h"

struct verbs_endpoint;

/*
 * The endpoint of a completion. A wr_id has the index of a slot and its generation instead of a pointer: a device may
 * leave a destroyed QP's completions in a shared CQ, and the generation tells them from those of the slot's present
 * endpoint.
 */
struct verbs_slot {
	struct verbs_endpoint *endpoint; /* NULL if free */
	uint32_t next_free;
	uint16_t generation;
};

/* A device's name. It outlives the domain: commands print it at their end. */
struct verbs_name {
	struct verbs_name *next;
	char text[IBV_SYSFS_NAME_MAX];
};

/* Most-used members come before the large base: their offsets encode in fewer bytes. */
struct verbs_transport {
	struct verbs_channel *channels;
	struct verbs_domain *domains;
	struct verbs_name *names;
	struct verbs_slot *slots; /* VERBS_SLOTS_MAX: the kernel only allocates pages of used ones */
	uint32_t slot_count;	  /* used so far */
	uint32_t first_free;	  /* slot_count if none of these */
	/* To be freed by the reaper, in this order. */
	struct verbs_endpoint *destroyed_endpoints;
	struct verbs_region *destroyed_regions;
	loop_callback *reap; /* verbs.c's, for the reaper */
	struct transport base;
	struct loop_timer reaper;
};

/* An rdma_cm event channel, watched by the loop. */
struct verbs_channel {
	struct channel base;
	struct rdma_event_channel *events;
	struct verbs_channel *next;
	struct loop_io readable;
};

/* A CQ shared by many QPs. Each QP reserves an entry for every work request it may post, so the CQ cannot overflow. */
struct verbs_completion_queue {
	struct verbs_domain *domain;
	struct ibv_cq *cq;
	uint32_t capacity;
	uint32_t reserved;
	unsigned unacknowledged; /* completion events not yet acknowledged with ibv_ack_cq_events() */
	bool armed;		 /* the next completion raises an event */
	struct verbs_completion_queue *next;
	struct loop_timer again; /* polls again after the budget of a turn was used up */
};

/* A port of a device: librdmacm's context, with our PD and CQs. The ports of a device may be of different fabrics. */
struct verbs_domain {
	struct domain base;
	struct ibv_context *context; /* librdmacm's; it closes a removed device when no id is bound to it */
	struct rdma_cm_id *bound_id; /* keeps the context open, reports DEVICE_REMOVAL; NULL if it could not be bound */
	uint8_t port;
	uint32_t mtu;		/* payload bytes: the port's active MTU */
	const char *port_event; /* the last asynchronous event of the port, or NULL */
	unsigned users;		/* endpoints and regions */
	bool unplugged;		/* the kernel has removed the device */
	struct ibv_pd *pd;
	struct ibv_comp_channel *completion_channel;
	struct verbs_completion_queue *completion_queues;
	struct verbs_domain *next;
	struct loop_io completion_readable;
	struct loop_poller completion_poller;
	struct loop_io async_readable; /* asynchronous events of the device, its ports, QPs and CQs */
	struct loop_io bound_id_readable;
	struct ibv_device_attr limits;
	char name[IBV_SYSFS_NAME_MAX]; /* without WITH_DIAGNOSTICS: a used domain lasts as long as the transport */
};

struct verbs_region {
	struct region base;
	struct ibv_mr *registration;
	struct verbs_region *next; /* in destroyed_regions */
};

struct verbs_endpoint {
	struct endpoint base;
	struct rdma_cm_id *id;
	uint32_t slot;
	int last_try;	   /* the kernel's last resolution limit in milliseconds; 0: none yet */
	struct ibv_qp *qp; /* the id's, or our own with options.own_qp */
	struct verbs_completion_queue *completions;
	uint32_t reserved;		/* entries of the CQ */
	struct rdma_conn_param request; /* of the peer's REQ; when accepting, ours */
	uint32_t outstanding;		/* signalled sends without a completion */
	bool disconnect_pending;	/* the peer has disconnected; EVENT_DISCONNECTED waits for outstanding sends */
	bool delayed;			/* EVENT_ESTABLISHED, with private_data */
	bool failed;			/* a completion has reported why the QP is in the error state */
	uint8_t private_length;
	struct loop_timer timer; /* of a delayed event, or of its cause */
	bool is_member;		 /* joined or joining: the id has to leave */
	struct group_address group;
	struct sockaddr_storage group_socket_address; /* as joined: rdma_leave_multicast() compares it */
	struct ibv_ah *group_handle;
	int64_t group_gid_index;		/* source GID of datagrams to the group; PATH_UNSET before the join */
	uint8_t private_data[PRIVATE_DATA_MAX]; /* our peers send no more */
	struct verbs_endpoint *next;		/* in destroyed_endpoints */
};

static inline struct verbs_transport *verbs_of(struct transport *transport)
{
	return (struct verbs_transport *)((char *)transport - offsetof(struct verbs_transport, base));
}

/*
 * Frees destroyed objects in the next turn of the loop. Starts the timer once: a timer restarted in every turn of a
 * busy loop never expires.
 */
static inline void verbs_reap_later(struct verbs_transport *transport)
{
	if (!transport->reaper.timer.link)
		loop_timer_start(transport->base.loop, &transport->reaper, 0, transport->reap, transport);
}

static inline struct verbs_domain *verbs_domain_of(const struct verbs_endpoint *endpoint)
{
	return (struct verbs_domain *)endpoint->base.domain;
}

#define VERBS_MANAGER_FILE "/dev/infiniband/rdma_cm"

/* Whether a smaller queue may be created after that errno value. */
static inline bool verbs_is_limit(int error)
{
	return error == EINVAL || error == ENOMEM;
}

/* diagnosis.c: why there is no event channel, or no memory, with a hint at the remedy. */
enum outcome verbs_error_no_channel(struct error *reason, int error);
enum outcome verbs_error_resources(struct error *reason, const char *object, const char *what, int error);
/*
 * If a librdmacm error means a lack of resources or a device that cannot be opened, sets the cause and returns its
 * outcome. Else sets nothing and returns OUTCOME_OK.
 */
enum outcome verbs_error_shortage(const struct endpoint *endpoint, const char *what, int error);
/* Sets the cause: a librdmacm error, in errno. Returns OUTCOME_NO_CONNECTION. */
enum outcome verbs_error_call(const struct endpoint *endpoint, const char *what);
/* Either, with errno. */
enum outcome verbs_error_address(const struct endpoint *endpoint, const char *what);
/* Sets the cause: a CM event that means a failure. */
void verbs_error_event(const struct endpoint *endpoint, const struct rdma_cm_event *event);

/* address.c: conversion to and from librdmacm's addresses. A GID takes port space and P_Key from the options. */
struct sockaddr *verbs_socket_address(const struct address *address, const struct endpoint_options *options,
				      struct sockaddr_storage *socket_address);
void verbs_address(const struct sockaddr *socket_address, struct address *address);

/* channel.c */
enum outcome verbs_channel_create(struct transport *transport, struct channel **channel);
void verbs_channel_free(struct verbs_channel *channel);

/* domain.c */
/* Finds or creates the domain of the id's port, and sets endpoint->domain and max_datagram. */
enum outcome verbs_domain_attach(struct verbs_endpoint *endpoint);
/*
 * Creates the domain of the id's port, if there is none, to notice the device's removal. Returns the device's name,
 * which lasts as long as the transport, or NULL.
 */
const char *verbs_domain_watch(struct verbs_transport *transport, struct rdma_cm_id *id,
			       const struct endpoint_options *options);
/* An endpoint or region no longer uses the domain. */
void verbs_domain_release(struct verbs_domain *domain);
void verbs_domain_destroy(struct verbs_domain *domain);
void verbs_completion_queue_destroy(struct verbs_completion_queue *completions);
/* Destroys failed and removed domains without users. */
void verbs_domains_reap(struct verbs_transport *transport);

/* counters.c */
/* Adds the counters of the domain's port to transport->counters, unless that has them. Call it before data moves. */
void verbs_counters_begin(struct verbs_domain *domain);
/* Reads the counters again. */
void verbs_counters_update(struct transport *transport);
void verbs_counters_free(struct verbs_transport *transport);

/* device.c */
/* Calls back while fd, a descriptor of the libraries, is readable. Sets its O_NONBLOCK and FD_CLOEXEC. */
void verbs_watch(struct transport *transport, struct loop_io *io, int fd, loop_callback *callback, void *context);
/* Handles the device's asynchronous events. */
void verbs_device_watch(struct verbs_domain *domain);
/* Binds bound_id to the device, by the local address of id, to notice its removal. The kernel may refuse that. */
void verbs_device_bind(struct verbs_domain *domain, struct rdma_cm_id *id, const struct endpoint_options *options);
/* Ends both, when the domain's other objects are freed. */
void verbs_device_release(struct verbs_domain *domain);
/* The device was removed or has failed: logs that once and fails the endpoints of all its ports. */
void verbs_domain_removed(struct verbs_domain *domain);
/* The same, and closes the device once it is unused. */
void verbs_domain_unplugged(struct verbs_domain *domain);
/* As endpoint_timeout_cause(): the port is down, or had an asynchronous event. */
void verbs_timeout_cause(const struct endpoint *endpoint, char text[ENDPOINT_TIMEOUT_CAUSE_SIZE]);
/* Completions can no longer be read: logs the errno value and what failed, and fails the domain's endpoints. */
void verbs_domain_failed(struct verbs_domain *domain, int error, const char *what);

/* completion.c */
enum outcome verbs_completion_reserve(struct verbs_endpoint *endpoint, uint32_t entries);
/* Gives the entries back. No completion of the QP is left in the CQ. */
void verbs_completion_release(struct verbs_endpoint *endpoint);
/* Polls it until it is empty. */
void verbs_completion_queue_drain(struct verbs_completion_queue *completions);
/* Drains every CQ of the domain. */
void verbs_completion_drain(struct verbs_domain *domain);

/* delay.c */
/* Starts the endpoint's timer. It is the callback's argument. */
void verbs_timer_start(struct verbs_endpoint *endpoint, int64_t nanoseconds, loop_callback *callback);
/* A flushed completion: the QP is in the error state. Fails the endpoint if no cause is reported within a while. */
void verbs_flushed(struct verbs_endpoint *endpoint);
/* True if EVENT_ESTABLISHED must wait; data is copied. */
bool verbs_delay_established(struct verbs_endpoint *endpoint, const void *data, size_t length);
/* Reports a delayed EVENT_ESTABLISHED now, as another event or completion follows. A timer callback, too. */
void verbs_deliver_established(void *endpoint);
/* Reports EVENT_DISCONNECTED. A timer callback, too. */
void verbs_deliver_disconnected(void *endpoint);
/* Stops the QP and sends a DREQ, or the DREP that the peer waits for. Returns 0, or -1 with errno. */
int verbs_send_disconnect(struct verbs_endpoint *endpoint);

/* modify.c */
/*
 * Modifies the QP by the mask; 0: all attributes that librdmacm sets for that state. The path options, and the shortest
 * RNR timer, take precedence. Returns 0 or an errno value, without a QP librdmacm's.
 */
int verbs_qp_modify(struct verbs_endpoint *endpoint, enum ibv_qp_state state, int mask);

/* region.c */
enum outcome verbs_region_create(struct domain *domain, size_t length, unsigned access, struct region **region);
void verbs_region_destroy(struct region *region);
void verbs_region_free(struct verbs_region *region);

/* endpoint.c */
enum outcome verbs_endpoint_create(struct channel *channel, enum endpoint_kind kind,
				   const struct endpoint_options *options, struct endpoint **endpoint);
void verbs_endpoint_destroy(struct endpoint *endpoint);
/* Frees an endpoint. Only the reaper calls it, or the endpoint's creation if it fails. */
void verbs_endpoint_free(struct verbs_endpoint *endpoint);
/* Handles a CM event, which is already acknowledged. A CONNECT_REQUEST is the listener's. */
void verbs_endpoint_event(struct verbs_endpoint *endpoint, const struct rdma_cm_event *event);
enum outcome verbs_listen(struct endpoint *endpoint);
enum outcome verbs_resolve(struct endpoint *endpoint);
enum outcome verbs_migrate(struct endpoint *endpoint, struct channel *channel);

/* connection.c */
enum outcome verbs_connect(struct endpoint *endpoint, const void *data, size_t length);
enum outcome verbs_accept(struct endpoint *endpoint, const void *data, size_t length);
void verbs_reject(struct endpoint *endpoint, const void *data, size_t length);
enum outcome verbs_disconnect(struct endpoint *endpoint);
/* CONNECT_RESPONSE of a client with its own QP: moves the QP to RTS and sends the RTU. */
enum outcome verbs_establish(struct verbs_endpoint *endpoint);
/* qp.c */
enum outcome verbs_create_qp(struct endpoint *endpoint);
void verbs_qp_destroy(struct verbs_endpoint *endpoint);
/* Moves our own QP to RTS, with the attributes of rdma_init_qp_attr() and our options. */
enum outcome verbs_qp_ready(struct verbs_endpoint *endpoint);
/* Sets the shortest RNR timer: the peer retries soon if no receive is posted. */
void verbs_qp_set_rnr_timer(struct verbs_endpoint *endpoint);

/* group.c */
enum outcome verbs_join(struct endpoint *endpoint);
/* Leaves the group in any state and logs no error. */
void verbs_group_abandon(struct verbs_endpoint *endpoint);
void verbs_joined(struct verbs_endpoint *endpoint, const struct rdma_ud_param *parameters);

/* path.c */
enum outcome verbs_check_path(struct transport *transport, const struct path_options *options);
bool verbs_source_fits(struct transport *transport, const struct path_options *options, const struct address *source);
bool verbs_source_path(struct transport *transport, const struct path_options *options, const struct address *source,
		       struct path *path);
void verbs_path(const struct endpoint *endpoint, struct path *path);
/*
 * After ENODEV for an address, also a group's: names the route's local address, or the listener's own, and the
 * addresses with a device.
 */
void verbs_hint_route(const struct endpoint *endpoint);
/* Logs an error if the id is bound to another device, port or GID than the options name. */
enum outcome verbs_path_check(struct verbs_endpoint *endpoint);
/* The same for the GID index of a connection or membership. */
enum outcome verbs_gid_check(struct verbs_endpoint *endpoint);

/* work.c */
enum outcome verbs_post(struct endpoint *endpoint, const struct work *work, size_t count);

/*
 * The wr_id of a work request, high bits first: generation 16, slot 20, kind 4, tag 24. In a failed completion only
 * wr_id, status, QP number and vendor error are valid, so the kind is in the wr_id.
 */
enum {
	VERBS_TAG_BITS = 24,
	VERBS_KIND_BITS = 4,
	VERBS_SLOT_BITS = 20,
	VERBS_SLOTS_MAX = 1 << 17, /* twice a ucmatose client's connections */
};

static inline uint64_t verbs_wr_id(uint16_t generation, uint32_t slot, enum work_kind kind, uint32_t tag)
{
	return ((uint64_t)generation << (VERBS_TAG_BITS + VERBS_KIND_BITS + VERBS_SLOT_BITS)) |
	       ((uint64_t)slot << (VERBS_TAG_BITS + VERBS_KIND_BITS)) | ((uint64_t)kind << VERBS_TAG_BITS) |
	       (tag & WORK_TAG_MAX);
}
