/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What has arrived of each sender. A sender is a sending QP, known by its number and its host's address, as soft-RoCE
 * gives the same numbers on every host. A flow is the datagrams of a sender at one member. Its memory does not depend
 * on their number.
 */
#ifndef CMD_MCKEY_FLOW_H
#define CMD_MCKEY_FLOW_H

#include "cmd/mckey/datagram.h"

enum {
	SENDERS_MAX = 1024, /* any host may send to a group */
	FLOWS_MAX = 32768,  /* of all senders: 34 MB */
	FLOW_WINDOW = 256,  /* how late a datagram may come, and still be known from a repeated one */
	SENDER_NAME_SIZE = ADDRESS_TEXT_SIZE + 32,
};

struct counts {
	uint64_t received;
	uint64_t lost;
	uint64_t duplicated; /* or too late to tell */
	uint64_t out_of_order;
	uint64_t damaged;
	uint64_t unnumbered; /* senders */
};

struct flow {
	uint64_t arrived;	    /* different ones */
	uint32_t next;		    /* above the highest number */
	uint32_t seen[FLOW_WINDOW]; /* above the highest of those with the same remainder */
};

struct sender {
	struct sender *next; /* the last leads to the first */
	uint32_t qpn;
	bool numbered;		/* a datagram had a mark */
	struct address address; /* ADDRESS_NONE: unknown */
	uint64_t unmarked;
	struct counts counts; /* as they come: see sender_counts() */
	struct flow flows[];  /* one for each member */
};

struct senders {
	uint32_t members;
	uint32_t count;
	struct sender *found; /* the last one */
};

/* Returns NULL for a new one. */
struct sender *sender_find(struct senders *senders, uint32_t qpn, const struct address *address);
/* A new one, zeroed, with its number and address. */
void sender_add(struct senders *senders, struct sender *sender);
/* "QP 17 at 10.0.0.1". Returns text. */
const char *sender_name(const struct sender *sender, char text[SENDER_NAME_SIZE]);

/* Counts a datagram. Returns false for a repeated or late one. */
bool flow_count(struct flow *flow, struct sender *sender, const struct datagram_mark *mark, bool damaged);

/* Lost are those of the first expected numbers, and below the highest, that are missing. */
struct counts sender_counts(const struct senders *senders, const struct sender *sender, uint64_t expected);
struct counts senders_counts(const struct senders *senders, uint64_t expected);

#endif
