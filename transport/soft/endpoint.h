/* SPDX-License-Identifier: BSD-2-Clause */
/* What is above the connection manager: the functions of struct backend and of struct soft_handlers. */
#ifndef TRANSPORT_SOFT_ENDPOINT_H
#define TRANSPORT_SOFT_ENDPOINT_H

#include "transport/soft/base/state.h"

struct soft_endpoint *soft_requested_create(struct soft_endpoint *listener, const struct soft_path *path,
					    const struct address *peer);
/* Delivers SOFT_EVENT_REQUESTED to the listener. */
void soft_requested(struct soft_endpoint *endpoint, const uint8_t *data, size_t length);

enum outcome soft_channel_create(struct transport *transport, struct channel **channel);

enum outcome soft_endpoint_create(struct channel *channel, enum endpoint_kind kind,
				  const struct endpoint_options *options, struct endpoint **endpoint);
void soft_endpoint_destroy(struct endpoint *endpoint);
void soft_endpoint_free(struct soft_endpoint *endpoint);
enum outcome soft_listen(struct endpoint *endpoint, const struct address *address);
enum outcome soft_resolve(struct endpoint *endpoint, const struct address *source, const struct address *destination);
enum outcome soft_create_qp(struct endpoint *endpoint);
enum outcome soft_post(struct endpoint *endpoint, const struct work *work, size_t count);
void soft_path(const struct endpoint *endpoint, struct path *path);
void soft_timeout_cause(const struct endpoint *endpoint, char text[ENDPOINT_TIMEOUT_CAUSE_SIZE]);

/* group.c */
enum outcome soft_join(struct endpoint *endpoint, void *context);
void soft_leave_group(struct endpoint *endpoint);

/* delivery.c */
bool soft_deliver(struct soft_transport *transport);

#endif
