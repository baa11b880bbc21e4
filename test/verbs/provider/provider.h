/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A verbs provider in memory: the part of librdmacm and libibverbs that transport/verbs uses, linked in their place.
 * One process is both hosts. A call returns before its effects: the remaining work of hardware and connection manager
 * is a list of actions, executed by every call that takes an event or a completion, in order or scrambled. Misuse that
 * would make the real libraries wait forever, or corrupt memory, ends the test with a line on stderr.
 *
 *   provider.c  begin and end, actions, descriptors, faults, the trace
 *   device.c    devices, ports, GIDs, asynchronous events, removal
 *   cm.c        connection identifiers, their events, the connection manager
 *   group.c     multicast
 *   qp.c        queue pairs and what travels between them
 *   cq.c        completion queues and channels; protection domains, regions, address handles
 */
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum provider_fabric {
	PROVIDER_ROCE,
	PROVIDER_INFINIBAND,
	PROVIDER_IWARP,
};

enum {
	DEVICES_MAX = 4,
	PORTS = 2,
	GIDS_MAX = 4,
	SGES_MAX = 4,
	TRACE_SIZE = 8192,
	UDP_QKEY = 0x01234567,
	GROUP_QPN = 0xffffff,
};

/* A descriptor that is readable while an event is pending. */
struct doorbell {
	int fd;
	bool raised;
};

struct port {
	uint16_t lid;
	struct ibv_gid_entry gids[GIDS_MAX];
	int gid_count;
	int gid_index; /* that the connection manager uses for IP */
	enum ibv_mtu mtu;
	enum ibv_port_state state;
	enum provider_fabric fabric;
	uint32_t max_message;
	struct sockaddr_in address;
	struct sockaddr_in6 address6;
};

struct async_event {
	struct ibv_async_event base;
	struct async_event *next;
};

struct device {
	struct ibv_device base;
	struct verbs_context verbs;
	enum provider_fabric fabric;
	struct ibv_device_attr limits;
	uint32_t inline_max;
	bool inline_is_refused_silently;	      /* without an errno value */
	int (*refuses)(const struct ibv_qp_cap *cap); /* the errno value, or -1; NULL: accepts all */
	bool refuses_no_loopback;
	bool has_no_provider; /* library */
	struct port ports[PORTS];
	bool removed;
	bool listed; /* librdmacm has seen it */
	struct async_event *events;
	struct doorbell bell;
	unsigned opened; /* by ibv_open_device() */
};

struct cm_channel;
struct cm_id;

struct cm_event {
	struct rdma_cm_event base;
	struct cm_id *counted; /* the identifier whose destruction waits for the acknowledgement */
	uint8_t data[UINT8_MAX];
	bool acknowledged;
	struct cm_event *next;
};

struct cm_channel {
	struct rdma_event_channel base;
	struct doorbell bell;
	struct cm_event *waiting;
	struct cm_event *taken; /* kept until the channel is destroyed, to detect a second acknowledgement */
	struct cm_channel *next;
};

enum cm_state {
	CM_IDLE,
	CM_LISTENING,
	CM_ADDRESS,
	CM_ROUTE,
	CM_REQ_SENT,
	CM_REQ_RECEIVED,
	CM_REP_SENT,
	CM_REP_RECEIVED,
	CM_ESTABLISHED,
	CM_DREQ_SENT,
	CM_DREQ_RECEIVED,
	CM_CLOSED,
};

struct membership {
	struct sockaddr_storage address;
	union ibv_gid gid;
	uint16_t lid;
	bool send_only, attached;
	struct membership *next;
};

struct cm_id {
	struct rdma_cm_id base;
	unsigned number;
	enum cm_state state;
	struct device *device; /* base.verbs is set when the event is taken */
	unsigned connection;   /* the same at both ends */
	bool passive;
	bool synchronous; /* with its own channel */
	struct cm_id *listener;
	struct rdma_conn_param local, remote; /* requested by this end and the other */
	unsigned taken, acknowledged;
	int backlog;
	int type_of_service, ack_timeout; /* -1: not set */
	struct membership *groups;
	struct cm_id *next;
};

struct send_work {
	struct ibv_send_wr request;
	struct ibv_sge sges[SGES_MAX];
	uint8_t *inlined;
	uint32_t length;
	unsigned not_ready; /* RNR NAKs */
	struct send_work *next;
};

struct receive_work {
	struct ibv_recv_wr request;
	struct ibv_sge sges[SGES_MAX];
	struct receive_work *next;
};

struct queue_pair {
	struct ibv_qp base;
	struct device *device;
	struct ibv_qp_attr attributes;
	struct ibv_qp_cap capabilities;
	bool signals_all;
	bool no_loopback;
	struct send_work *sends;
	struct receive_work *receives, *last_receive; /* a pointer to the last: there are thousands */
	unsigned sends_used, receives_used;	      /* until a completion that covers them is polled */
	unsigned silent;			      /* completed sends waiting for such a completion */
	bool scheduled;
	unsigned attached;     /* number of groups */
	unsigned asynchronous; /* events taken, not acknowledged */
	struct queue_pair *next;
};

struct completion_entry {
	struct ibv_wc base;
	unsigned sends, receives; /* that it releases */
};

struct completion_queue {
	struct ibv_cq base;
	struct completion_entry *entries; /* a ring */
	unsigned first, count, capacity;
	bool armed, armed_solicited;
	unsigned raised, taken, acknowledged; /* events */
	unsigned users;
	unsigned asynchronous;
	struct completion_queue *next;
};

struct completion_channel {
	struct ibv_comp_channel base;
	struct doorbell bell;
	unsigned users;
	struct completion_channel *next;
};

struct region_entry {
	struct ibv_mr base;
	unsigned access;
	struct region_entry *next;
};

struct address_handle {
	struct ibv_ah base;
	struct ibv_ah_attr attributes;
};

struct attachment {
	union ibv_gid gid;
	struct queue_pair *qp;
	struct attachment *next;
};

struct action;
typedef void action_run(struct action *action);

struct action {
	action_run *run;
	unsigned lane;	     /* the actions of a lane keep their order */
	const void *subject; /* removed with it: provider_forget() */
	unsigned id;	     /* a connection identifier's number */
	unsigned connection;
	bool passive; /* for the passive end */
	int status;
	int64_t until; /* not before this time of clock_now() */
	struct rdma_conn_param parameters;
	uint8_t data[UINT8_MAX];
	struct action *next;
};

/* The whole state, accessible to tests. provider_begin() clears it. */
struct provider {
	enum provider_fabric fabric;
	unsigned seed; /* 0: everything in order and at once */
	uint32_t random;
	struct device *devices[DEVICES_MAX];
	struct cm_channel *channels;
	struct cm_id *ids;
	struct queue_pair *qps;
	struct completion_queue *cqs;
	struct completion_channel *completion_channels;
	struct region_entry *regions;
	struct attachment *attachments;
	struct ibv_ah_attr last_handle; /* the last created */
	struct action *actions;
	unsigned protection_domains, handles;
	unsigned last_number;			  /* the last number given to any object */
	unsigned signalled, unsignalled, inlined; /* sends posted */
	char trace[TRACE_SIZE];
	char root[64];		   /* a folder in place of / for /sys and /dev/infiniband */
	size_t crowd;		   /* addresses of this host without a device, before those with one */
	uint8_t looked_up_from[4]; /* the source of the last look-up of a route */

	/* Misbehaviour. */
	unsigned tries_unanswered; /* that many resolution attempts end at their limit with -ETIMEDOUT */
	bool answer_missed;	   /* a neighbour's: the kernel finds it at the attempt's limit */
	bool route_held;	   /* no attempt to resolve a route ends by itself */
	int address_status;	   /* the status of an address resolution, if not 0 */
	const char *route_cause;   /* the kernel's tables' explanation; NULL: none */
	const char *elsewhere;	   /* the same, for a local address whose interface has no route */
	const char *refusal;	   /* what becomes of ordinary packets to RoCE's port; NULL: unknown */
	const char *fails;	   /* the call of that name ... */
	int fails_with;		   /* ... with this errno value ... */
	unsigned fails_after;	   /* ... after this many calls, ... */
	bool fails_once;	   /* ... and then works again */
	unsigned calls;		   /* of that name */
	bool rtu_lost;
	bool unheard;				    /* a request without a listener is not refused */
	bool events_without_end;		    /* instead of any other event */
	bool silent_flush;			    /* flushed work raises no event */
	bool refuses_in_silence;		    /* a responder raises no device event, like rxe */
	bool binds_no_holder;			    /* an identifier without an event channel */
	bool retries_end;			    /* at once, if the other queue pair does not answer */
	bool keeps_completions;			    /* of a destroyed queue pair, like rxe */
	enum ibv_wc_status breaks_with;		    /* the next send */
	void (*listening)(struct cm_id *id);	    /* called in rdma_listen() */
	void (*destroying)(struct queue_pair *qp);  /* and in ibv_destroy_qp() */
	void (*moved)(const struct queue_pair *qp); /* to another state */
};

extern struct provider provider;

void provider_begin(enum provider_fabric fabric, unsigned seed);
/* Fails unless everything was released. */
void provider_end(void);
/* Ends the test. */
void provider_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void provider_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* True, with errno, if the test wants this call to fail. */
bool provider_fails(const char *call);
void provider_fail(const char *call, int error, unsigned after);

/* The machine's files, below the root: device files, and their numbers in /sys. */
#define DEVICE_FILE   "/dev/null"
#define DEVICE_NUMBER "1:3\n"
bool provider_has(const char *format, ...) __attribute__((format(printf, 1, 2)));
void provider_write(const char *content, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Also removes a folder with its contents. */
void provider_remove(const char *path);

/* A new action at the end of the list. */
struct action *provider_action(action_run *run, unsigned lane);
void provider_forget(const void *subject);
/* Carries out actions. */
void provider_pump(void);
uint32_t provider_random(uint32_t below);

void doorbell_open(struct doorbell *bell);
void doorbell_set(struct doorbell *bell, bool raised);
/* The next read of the descriptor finds no event: fails with EAGAIN, or aborts if it would block. */
int doorbell_empty(const struct doorbell *bell, const char *call);

/* device.c */
struct device *device_add(enum provider_fabric fabric, unsigned index);
void device_free(struct device *device);
/* With the limits of a driver: a row of its table. */
void device_drive(struct device *device, const char *driver);
/* libibverbs omits a device without a file or a provider library. */
bool device_is_known(const struct device *device);
/* False once every file that blocks the driver's removal of the device was closed. */
bool device_is_held(const struct device *device);
/* librdmacm finds an identifier's device, or releases it. */
void device_get(struct cm_id *id);
void device_put(struct device *device);
static inline struct device *device_of(const struct ibv_context *context)
{
	return (struct device *)(void *)((uint8_t *)(uintptr_t)context - offsetof(struct device, verbs.context));
}
/* The device and port of an address; NULL if there is none. */
struct device *device_at(const struct sockaddr *address, uint8_t *port);
/* The GID that the connection manager uses for that address. */
union ibv_gid device_gid(const struct device *device, uint8_t port, const struct sockaddr *address, uint8_t *index);
void device_event(struct device *device, enum ibv_event_type type, void *element);
void device_port_event(struct device *device, enum ibv_event_type type, uint8_t port);
void device_forget(struct device *device, const void *element);
/* How a removal is reported. */
enum {
	REMOVAL_BY_MANAGER = 1,
	REMOVAL_BY_ASYNC = 2,
};
void device_remove(struct device *device, unsigned ways);

/* cm.c */
struct cm_event *cm_raise(struct cm_id *id, enum rdma_cm_event_type type, int status);
/* A client without an endpoint, which has requested a connection: its identifier, on its own channel. */
struct cm_id *cm_ask(const struct sockaddr *source, const struct sockaddr *destination,
		     const struct rdma_conn_param *parameters);
void cm_ask_end(struct cm_id *id);
struct cm_id *cm_find(unsigned number);
/* TCP has broken that queue pair's connection: iWARP. */
void cm_lost(const struct queue_pair *qp);
const char *cm_text(const struct sockaddr *address);

/* group.c */
void group_join_taken(struct cm_id *id, struct rdma_cm_event *event);
void group_leave_all(struct cm_id *id);
void group_send(struct queue_pair *qp, const struct send_work *work, const uint8_t *data);

/* qp.c */
struct queue_pair *qp_find(uint32_t number);
int qp_post_send(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **bad);
int qp_post_receive(struct ibv_qp *qp, struct ibv_recv_wr *request, struct ibv_recv_wr **bad);
struct ibv_qp *qp_create_extended(struct ibv_context *context, struct ibv_qp_init_attr_ex *attributes);
struct ibv_qp *qp_create_own(struct ibv_context *context, struct ibv_qp_init_attr_ex *attributes);
int qp_modify(struct queue_pair *qp, const struct ibv_qp_attr *attributes, int mask);
void qp_schedule(struct queue_pair *qp);
/* Puts a message into the next receive, which must exist. */
enum ibv_wc_status qp_receive(struct queue_pair *qp, uint8_t *data, uint32_t length, struct ibv_wc *completion,
			      bool solicited);

/* cq.c */
void cq_push(struct completion_queue *cq, const struct completion_entry *entry, bool solicited, bool silent);
int cq_poll(struct ibv_cq *cq, int max, struct ibv_wc *completions);
int cq_notify(struct ibv_cq *cq, int solicited);
/* Removes a destroyed queue pair's completions from its queue, unless the device leaves them. */
void cq_forget(const struct queue_pair *qp);
/* The key's region if it allows that access to that memory, else NULL. */
struct region_entry *region_find(const struct ibv_pd *domain, bool remote, uint32_t key, uint64_t address,
				 uint64_t length, unsigned access);

#define LIST_APPEND(list, item)                                                                                        \
	do {                                                                                                           \
		__typeof__(list) *link_ = &(list);                                                                     \
		while (*link_)                                                                                         \
			link_ = &(*link_)->next;                                                                       \
		(item)->next = NULL;                                                                                   \
		*link_ = (item);                                                                                       \
	} while (0)

#define LIST_REMOVE(list, item)                                                                                        \
	do {                                                                                                           \
		__typeof__(list) *link_ = &(list);                                                                     \
		while (*link_ && *link_ != (item))                                                                     \
			link_ = &(*link_)->next;                                                                       \
		if (*link_)                                                                                            \
			*link_ = (*link_)->next;                                                                       \
	} while (0)

/* Zeroed memory; aborts without. */
void *provider_allocate(size_t size);
