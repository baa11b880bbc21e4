/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The 16-byte control messages of one connection, in registered memory. Receives are posted before the connection is
 * established and reposted as soon as a message was read, so that the peer never meets receiver-not-ready.
 */
#ifndef CMD_RPING_CONTROL_H
#define CMD_RPING_CONTROL_H

#include <stdint.h>

#include "cmd/rping/protocol.h"
#include "transport/transport.h"

enum {
	CONTROL_SENDS = 2,    /* different messages: a client's two advertisements */
	CONTROL_RECEIVES = 4, /* two would do for a peer that keeps to the protocol */
};

struct control {
	struct region *region; /* NULL before control_create() */
};

enum outcome control_create(struct control *control, struct domain *domain);
/* Harmless on a mailbox that was not created. */
void control_destroy(struct control *control);

/* Posts all the receives. */
enum outcome control_open(struct control *control, struct endpoint *endpoint);

/* Takes the message of a completed receive, and posts the receive again. Any length but the right one is a failure. */
enum outcome control_take(struct control *control, struct endpoint *endpoint, const struct completion *completion,
			  struct advertisement *advertisement);

/* Sets what a later send of that index sends. It may not be under way. Until then it is all zeros. */
void control_write(struct control *control, uint32_t index, const struct advertisement *advertisement);

/* The send of that message, for endpoint_post(). */
struct work control_send(const struct control *control, uint32_t index);

#endif
