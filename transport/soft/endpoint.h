/* SPDX-License-Identifier: BSD-2-Clause */
/* The endpoints of this backend, and the functions of its struct backend in endpoint.c and group.c. */
#ifndef TRANSPORT_SOFT_ENDPOINT_H
#define TRANSPORT_SOFT_ENDPOINT_H

#include "transport/soft/net/socket.h"

struct soft_endpoint {
	struct endpoint base;
	struct soft_qp *qp;
	struct soft_cm_id *cm_id;
	struct loop_timer deferred;	     /* an event in the next turn of the loop */
	struct soft_endpoint *listener;	     /* of a request; NULL once destroyed */
	unsigned pending_requests;	     /* of a listener: requests without accept or reject */
	bool no_memory;			     /* it fails in the next soft_leave() */
	int icmp_errno;			     /* of the ICMP error since the last packet of the peer; 0: none */
	struct soft_socket *group_socket;    /* a full member's, bound to the group */
	struct soft_endpoint *next, **pprev; /* in the transport's listeners or endpoints */
	struct soft_endpoint *next_destroyed;
	struct soft_path path; /* known from EVENT_ADDRESS_RESOLVED on */
	struct group_address group;
};

static inline struct soft_endpoint *soft_endpoint_of(struct endpoint *endpoint)
{
	return (struct soft_endpoint *)endpoint;
}

/* Applies --tos, --dscp and --mtu. */
void soft_apply_options(const struct endpoint *endpoint, struct soft_path *path);

/* NULL: no listener. local: the destination address of the request. */
struct soft_endpoint *soft_listener_find(struct soft_transport *transport, enum port_space port_space, uint16_t port,
					 const struct address *local);
/* A new connection in ENDPOINT_REQUESTED; NULL without memory. The caller sets its cm_id. */
struct soft_endpoint *soft_requested_create(struct soft_endpoint *listener, const struct soft_path *path,
					    const struct address *peer);
/* Delivers SOFT_EVENT_REQUESTED to the listener. */
void soft_requested(struct soft_endpoint *endpoint, const uint8_t *data, size_t length);

enum outcome soft_channel_create(struct transport *transport, struct channel **channel);
void soft_channel_destroy(struct channel *channel);

enum outcome soft_endpoint_create(struct channel *channel, enum endpoint_kind kind,
				  const struct endpoint_options *options, struct endpoint **endpoint);
void soft_endpoint_destroy(struct endpoint *endpoint);
void soft_endpoint_free(struct soft_endpoint *endpoint);
enum outcome soft_listen(struct endpoint *endpoint, const struct address *address);
enum outcome soft_resolve(struct endpoint *endpoint, const struct address *source, const struct address *destination);
enum outcome soft_create_qp(struct endpoint *endpoint);
enum outcome soft_connect(struct endpoint *endpoint, const void *data, size_t length);
enum outcome soft_accept(struct endpoint *endpoint, const void *data, size_t length);
enum outcome soft_reject(struct endpoint *endpoint, const void *data, size_t length);
enum outcome soft_disconnect(struct endpoint *endpoint);
enum outcome soft_post(struct endpoint *endpoint, const struct work *work, size_t count);
enum outcome soft_migrate(struct endpoint *endpoint, struct channel *channel);
void soft_path(const struct endpoint *endpoint, struct path *path);
void soft_timeout_cause(const struct endpoint *endpoint, char text[ENDPOINT_TIMEOUT_CAUSE_SIZE]);

/* group.c */
enum outcome soft_join(struct endpoint *endpoint, void *context);
enum outcome soft_leave_group(struct endpoint *endpoint);

#endif
