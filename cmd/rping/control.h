/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The 16-byte control messages of one connection, in registered memory. The receives are posted before the connection
 * is established, and each is reposted when its message has been read: the peer gets no receiver-not-ready NAK.
 */
#ifndef CMD_RPING_CONTROL_H
#define CMD_RPING_CONTROL_H

#include <stdint.h>

#include "cmd/rping/protocol.h"
#include "transport/transport.h"

enum {
	CONTROL_SENDS = 2,    /* send buffers: the client has two advertisements */
	CONTROL_RECEIVES = 4, /* the protocol needs two */
};

struct control {
	struct region *region; /* NULL before control_create() */
};

enum outcome control_create(struct control *control, struct domain *domain);
/* Does nothing if control_create() was not called. */
void control_destroy(struct control *control);

/* Posts all receives. */
enum outcome control_post_receives(struct control *control, struct endpoint *endpoint);

/* Reads the message of a completed receive and reposts the receive. Fails if the length is not ADVERTISEMENT_SIZE. */
enum outcome control_receive(struct control *control, struct endpoint *endpoint, const struct completion *completion,
			     struct advertisement *advertisement);

/* Sets the contents of send buffer index, initially all zeros. No send of it may be outstanding. */
void control_write(struct control *control, uint32_t index, const struct advertisement *advertisement);

/* Returns the work request that sends buffer index. */
struct work control_send(const struct control *control, uint32_t index);

#endif
