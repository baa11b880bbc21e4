/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The 16-byte messages of one connection: memory to send them from and to receive them into. Receives are posted before
 * the connection is made and again as soon as a message was taken, so that the peer never finds none.
 */
#ifndef CMD_RPING_MAILBOX_H
#define CMD_RPING_MAILBOX_H

#include <stdint.h>

#include "cmd/rping/protocol.h"
#include "transport/transport.h"

enum {
	MAILBOX_SENDS = 2,    /* different messages: a client's two advertisements */
	MAILBOX_RECEIVES = 4, /* two would do for a peer that keeps to the protocol */
};

struct mailbox {
	struct region *region; /* NULL before mailbox_create() */
};

enum outcome mailbox_create(struct mailbox *mailbox, struct domain *domain);
/* Harmless on a mailbox that was not created. */
void mailbox_destroy(struct mailbox *mailbox);

/* Posts all the receives. */
enum outcome mailbox_open(struct mailbox *mailbox, struct endpoint *endpoint);

/* Takes the message of a completed receive, and posts the receive again. Any length but the right one is a failure. */
enum outcome mailbox_take(struct mailbox *mailbox, struct endpoint *endpoint, const struct completion *completion,
			  struct advertisement *advertisement);

/* Sets what a later send of that index sends. It may not be under way. Until then it is all zeros. */
void mailbox_write(struct mailbox *mailbox, uint32_t index, const struct advertisement *advertisement);

/* The send of that message, for endpoint_post(). */
struct work mailbox_send(const struct mailbox *mailbox, uint32_t index);

#endif
