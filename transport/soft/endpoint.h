/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of the backend's table that endpoint.c and group.c provide, for soft.c. */
#ifndef TRANSPORT_SOFT_ENDPOINT_H
#define TRANSPORT_SOFT_ENDPOINT_H

#include "transport/soft/soft.h"

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

/* soft.c: schedules the clean-up of what was destroyed for the next turn of the loop. */
void soft_reap_later(struct soft_transport *transport);

#endif
