/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arrivals from each sender. A sender is a sending QP, identified by its number and its host's address, because
 * soft-RoCE assigns the same numbers on every host. A flow is a sender's datagrams at one member. Its memory does not
 * depend on their number.
 */
#pragma once

#include "cmd/mckey/datagram.h"

enum {
	SENDERS_MAX = 1024, /* any host may send to a group */
	FLOWS_MAX = 32768,  /* from all senders: 34 MB */
	FLOW_WINDOW = 256,  /* how late a datagram may be, to be distinguished from a repeated one */
	SENDER_NAME_SIZE = ADDRESS_TEXT_SIZE + 32,
};

struct counts {
	uint64_t received;
	uint64_t lost;
	uint64_t duplicated; /* or too late to be distinguished */
	uint64_t out_of_order;
	uint64_t damaged;
	uint64_t unnumbered; /* senders */
};

struct flow {
	uint64_t arrived;	    /* different datagrams */
	uint32_t next;		    /* above the highest number */
	uint32_t seen[FLOW_WINDOW]; /* the highest with the same remainder, plus 1 */
};

struct sender {
	struct sender *next; /* the last leads to the first */
	uint32_t qpn;
	bool numbered;		/* a datagram had a mark */
	struct address address; /* ADDRESS_NONE: unknown */
	uint64_t unmarked;
	struct counts counts; /* at arrival: see sender_counts() */
	struct flow flows[];  /* one for each member */
};

struct senders {
	uint32_t members;
	uint32_t count;
	struct sender *found; /* the last one */
};

/* Returns NULL for a new sender. */
struct sender *sender_find(struct senders *senders, uint32_t qpn, const struct address *address);
/* A new sender, zeroed, with its number and address. */
void sender_add(struct senders *senders, struct sender *sender);
/* "QP 17 at 10.0.0.1". Returns text. */
const char *sender_name(const struct sender *sender, char text[SENDER_NAME_SIZE]);

/* Counts a datagram. Returns false for a repeated or late one. */
bool flow_count(struct flow *flow, struct sender *sender, const struct datagram_mark *mark, bool damaged);

/* Lost: missing numbers below expected, or below the highest. */
struct counts sender_counts(const struct senders *senders, const struct sender *sender, uint64_t expected);
struct counts senders_counts(const struct senders *senders, uint64_t expected);
