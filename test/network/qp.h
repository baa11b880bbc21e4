/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The real queue pairs of two hosts over the simulated network. What they ask of the connection manager and of the
 * delivery of completions is replaced at link time (qp.wrap). A seed decides what is lost, repeated, delayed and
 * damaged, so that a run can be had again.
 */
#ifndef TEST_NETWORK_QP_H
#define TEST_NETWORK_QP_H

#include "test/unit/unit.h"

#include "core/clock.h"
#include "core/loop.h"
#include "test/network/network.h"
#include "test/network/rules.h"
#include "test/network/stack.h"
#include "transport/soft/endpoint.h"
#include "transport/soft/qp/qp_internal.h"
#include "transport/soft/region.h"

enum {
	HOSTS = 2,
	COMPLETIONS_MOST = 65536,
};

struct told {
	struct soft_endpoint *endpoint;
	struct completion completion;
	unsigned raw;
};

struct host {
	struct soft_transport *transport;
	struct address address;
	struct soft_socket *socket;
	struct told *told;
	size_t told_count, told_taken;
	struct loop_timer telling;
	unsigned failures; /* told through soft_event_failed() */
	const char *failure;
	unsigned heard;
	bool dead; /* nothing leaves or enters it */
};

struct qp_hosts {
	struct host hosts[HOSTS];
	size_t window; /* bytes that the sockets are said to hold */
	/* Sees every packet of a transport on its way out, and may drop it (returns false). */
	bool (*tap)(struct network *network, const struct host *from, struct packet *packet);
	/* A host's completions since the last time. */
	void (*completed)(void *owner, struct host *host, const struct told *told);
	void *owner;
	bool by_hand; /* what is sent just now */
	/* Of the packets of the only pair; with several they are not told apart. */
	struct rules rules;
	uint32_t mtu;
	unsigned pairs;
};

extern struct qp_hosts testbed; /* of the test at hand */

/* What two ends agree on; what is left out of a test is filled in by pair_open(). */
struct terms {
	uint32_t mtu;
	uint32_t depth;
	uint32_t receive_depth;
	uint32_t psn[2]; /* first of each end's requests */
	unsigned retry_count, rnr_retry_count, ack_timeout;
	unsigned reads;
	bool no_reads;
	bool no_rnr_retry;
};

struct pair {
	struct soft_endpoint ends[2];
};

struct counted {
	size_t good, wanted;
};

/* A responder at host 1 for packets made by hand; its memory is all ones. */
struct bench {
	struct pair pair;
	struct terms terms;
	struct region *region;
	uint32_t psn;
};

/* Puts any bytes on the wire to a host, from another's address; their ICRC is appended. */
void host_send(struct host *from, struct host *to, const uint8_t *bytes, size_t length);
void host_send_packet(struct host *from, struct host *to, const struct packet *packet);
/* What was queued for sending leaves. */
void hosts_flush(void);
/* An address of its own instead of the one it had. */
void qp_move(struct host *host, const struct address *address);
void qp_open(uint64_t seed);
void qp_close(void);
struct soft_qp *qp_of(struct pair *pair, size_t end);
void endpoint_prepare(struct soft_endpoint *endpoint, struct host *host, enum endpoint_kind kind, uint32_t sends,
		      uint32_t receives);
void pair_open(struct pair *pair, struct terms *terms);
void pair_close(struct pair *pair);
struct region *region_of(size_t host, size_t length, unsigned access);
bool is_valgrind(void);
unsigned seeds(unsigned count);
void count_completions(void *owner, struct host *host, const struct told *told);
enum outcome post_silently(struct soft_qp *qp, const struct work *work);
void bench_open(struct bench *bench, unsigned reads);
void bench_close(struct bench *bench);
struct packet bench_packet(const struct bench *bench, uint8_t opcode, uint32_t psn, size_t length);
void bench_say(struct bench *bench, uint8_t opcode, uint32_t psn, size_t length);
void bench_run(void);
/* Work of host 0, for the region of host 1. */
void bench_post(struct bench *bench, enum work_kind kind, struct region *local, uint32_t length);
/* A packet made by hand to the requester at host 0. */
void bench_answer(struct bench *bench, uint8_t opcode, uint32_t psn, uint8_t syndrome, size_t length);

#endif
