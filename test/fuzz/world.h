/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two real soft transports with their commands' objects, and the invariants that no input may break:
 *
 *   here                                          there
 *   10.0.0.1, fd00::1                             10.0.0.2, 10.0.0.3, fd00::2
 *   a listener, members of two groups             connections from each of its addresses, a member of a group
 *   one connection to 10.0.0.9, where no host is
 *
 * The connection from 10.0.0.3 is the control: it must work at the end, with every message once and in order, whatever
 * arrives from elsewhere. Every end has memory that a peer may write, memory that it may only read, and memory that it
 * must not access.
 */
#pragma once

#include "test/network/network.h"
#include "transport/soft/base/shared.h"
#include "transport/soft/qp/qp_internal.h"

enum {
	WORLD_HOSTS = 2,
	WORLD_ENDS = 24,
	WORLD_PORT = 7174,
	REGION_LENGTH = 6000,
	SLOTS = 8, /* receives per end */
	SLOT_LENGTH = 1200,
	SLOT_GAP = 40, /* between slots */
	SENDS = 16,
	PRIVATE_MAX = 56,
};

enum world_region {
	REGION_RECEIVES, /* not accessible to peers, except through posted receives */
	REGION_SOURCE,	 /* never changes */
	REGION_SINK,	 /* for our READs */
	REGION_WRITABLE,
	REGION_READABLE, /* never changes */
	REGIONS
};

struct sent {
	uint32_t tag;
	enum work_kind kind;
	bool unsignalled;
};

struct end {
	struct world *world;
	struct endpoint *endpoint; /* NULL: free, or destroyed */
	unsigned host;
	struct region *regions[REGIONS];
	bool busy[SLOTS]; /* posted */
	struct sent sent[SENDS];
	unsigned sent_count;
	uint32_t next_tag;
	bool established, joined;
	bool failed; /* the last completion failed */
	bool control;
	/* of the control: messages sent and received */
	uint32_t said, heard, done;
};

struct host {
	struct transport *transport;
	struct channel *channel;
	struct endpoint *listener;
};

struct world {
	struct host hosts[WORLD_HOSTS];
	struct end ends[WORLD_ENDS];
	uint64_t policy; /* actions for requests, two bits each */
	bool tainted;	 /* the control's packets were forged completely */
	bool ending;
	struct errors errors;
	struct log log;
};

/* A world's settings. */
struct world_terms {
	uint64_t seed;
	uint64_t policy;
	int mtu;
	int buffer;
	bool limited;	  /* phases have a time limit */
	uint8_t scramble; /* 0: events and completions in their order */
};

struct world *world_open(const struct world_terms *terms);
/* Checks that the control works, then closes everything. */
void world_close(struct world *world);

/* The address of that number: a few dozen combinations of ours, and of strangers. */
struct address world_address(unsigned number);

/* A packet from anywhere, with its ICRC appended. Records packets that the control need not survive. */
void world_inject(struct world *world, struct frame *frame);
/* The same without an ICRC. */
void world_inject_bare(struct world *world, const struct frame *frame);

/* Commands' calls. All are harmless on an end in another state. */
void world_connect(struct world *world, unsigned host, const struct address *source, const struct address *destination);
void world_join(struct world *world, unsigned host, const struct address *source, const struct address *group,
		bool send_only, bool no_loopback);
void world_post_receives(struct end *end, unsigned count);
void world_post(struct end *end, const struct work *work);
void world_accept(struct end *end);
void world_reject(struct end *end, const void *data, size_t length);
void world_disconnect(struct end *end);
void world_destroy(struct end *end);
/* Frees one of the regions that a peer may reach. */
void world_drop_region(struct end *end, enum world_region region);
/* Sends a message of the control each way. */
void world_talk(struct world *world);

static inline struct soft_qp *end_queue(const struct end *end)
{
	return end->endpoint ? soft_endpoint_of(end->endpoint)->qp : NULL;
}
