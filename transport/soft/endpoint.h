/* SPDX-License-Identifier: BSD-2-Clause */
/* The endpoints of transport.h over this backend; and the functions of its table in endpoint.c and group.c. */
#ifndef TRANSPORT_SOFT_ENDPOINT_H
#define TRANSPORT_SOFT_ENDPOINT_H

#include "transport/soft/net/socket.h"

struct soft_endpoint {
	struct endpoint base;
	struct soft_qp *qp;
	struct soft_cm_id *cm_id;
	struct loop_timer later;	     /* an event of ours that is due in the next turn */
	struct soft_endpoint *listener;	     /* that the request came to, while both live */
	unsigned pending_requests;	     /* of a listener: requests that no command has answered yet */
	bool no_memory;			     /* some news of it found no memory: it fails */
	int icmp_errno;			     /* errno: what ICMP has said since the peer was last heard; 0 */
	struct soft_socket *group_socket;    /* bound to the group, of a full member */
	struct soft_endpoint *next, **pprev; /* among the listeners, or the others */
	struct soft_endpoint *next_destroyed;
	struct soft_path path; /* known from EVENT_ADDRESS_RESOLVED on */
	struct group_address group;
};

static inline struct soft_endpoint *soft_endpoint_of(struct endpoint *endpoint)
{
	return (struct soft_endpoint *)endpoint;
}

/* What an endpoint's options say of each packet. */
void soft_apply_options(const struct endpoint *endpoint, struct soft_path *path);

/* The listener of a service id, for a request that came in at that local address; NULL: nobody listens. */
struct soft_endpoint *soft_listener_find(struct soft_transport *transport, enum port_space port_space, uint16_t port,
					 const struct address *local);
/* A new connection in ENDPOINT_REQUESTED for a listener; NULL without memory. Its link is the manager's to set. */
struct soft_endpoint *soft_requested_create(struct soft_endpoint *listener, const struct soft_path *path,
					    const struct address *peer);
/* Delivers SOFT_EVENT_REQUESTED: tells the listener of its new connection. */
void soft_requested(struct soft_endpoint *endpoint, const uint8_t *data, size_t length);

enum outcome soft_channel_create(struct transport *transport, struct channel **channel);
void soft_channel_destroy(struct channel *channel);

enum outcome soft_endpoint_create(struct channel *channel, enum endpoint_kind kind,
				  const struct endpoint_options *options, struct endpoint **endpoint);
void soft_endpoint_destroy(struct endpoint *endpoint);
void soft_endpoint_free(struct soft_endpoint *endpoint);
enum outcome soft_listen(struct endpoint *endpoint, const struct address *address);
enum outcome soft_resolve(struct endpoint *endpoint, const struct address *source, const struct address *destination);
enum outcome soft_open_queue(struct endpoint *endpoint);
enum outcome soft_connect(struct endpoint *endpoint, const void *data, size_t length);
enum outcome soft_accept(struct endpoint *endpoint, const void *data, size_t length);
enum outcome soft_reject(struct endpoint *endpoint, const void *data, size_t length);
enum outcome soft_disconnect(struct endpoint *endpoint);
enum outcome soft_post(struct endpoint *endpoint, const struct work *work, size_t count);
enum outcome soft_migrate(struct endpoint *endpoint, struct channel *channel);
void soft_path(const struct endpoint *endpoint, struct path *path);
void soft_silence(const struct endpoint *endpoint, char text[ENDPOINT_SILENCE_SIZE]);
extern const struct path_refusal soft_refusals[];

/* group.c */
enum outcome soft_join(struct endpoint *endpoint, void *context);
enum outcome soft_leave_group(struct endpoint *endpoint);

#endif
