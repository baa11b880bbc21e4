/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs of two hosts on the simulated network. The connection manager and the delivery of completions are
 * replaced at link time (qp.wrap). A seed determines which packets are lost, repeated, delayed and damaged: a run can
 * be repeated. */
#pragma once

#include "test/unit/unit.h"

#include "core/clock.h"
#include "core/loop.h"
#include "test/network/network.h"
#include "test/network/rules.h"
#include "test/network/stack.h"
#include "transport/soft/qp/qp_internal.h"

enum {
	HOSTS = 2,
	COMPLETIONS_MAX = 65536,
};

struct reported {
	struct soft_endpoint *endpoint;
	struct completion completion;
	int error;
};

struct host {
	struct soft_transport *transport;
	struct address address;
	struct soft_socket *socket;
	struct reported *reported;
	size_t reported_count, reported_taken;
	struct loop_timer report_timer;
	unsigned failures; /* calls of soft_event_failed() */
	const char *failure;
	unsigned cm_packets;
	bool dead; /* drops all packets in both directions */
};

struct qp_hosts {
	struct host hosts[HOSTS];
	size_t window; /* bytes that soft_socket_window() divides by the payload size */
	/* Called for each packet that a transport sends. false: the packet is dropped. */
	bool (*tap)(struct network *network, const struct host *from, struct packet *packet);
	/* Called for each completion of a host. */
	void (*completed)(void *context, struct host *host, const struct reported *reported);
	void *context;
	bool injecting; /* host_send() is sending */
	/* Checks the packets only if there is exactly one pair. */
	struct rules rules;
	uint32_t mtu;
	unsigned pairs;
};

extern struct qp_hosts testbed;

/* Attributes of a pair. pair_open() replaces 0 by the default. */
struct qp_attr {
	uint32_t mtu;
	uint32_t depth;
	uint32_t receive_depth;
	uint32_t psn[2]; /* of each end's first request */
	unsigned retry_count, rnr_retry_count, ack_timeout;
	unsigned reads;
	bool no_reads;
	bool no_rnr_retry;
};

struct pair {
	struct soft_endpoint ends[2];
};

struct counter {
	size_t good, wanted;
};

/* A pair whose responder, at host 1, gets injected packets. All bytes of its region are 1. */
struct bench {
	struct pair pair;
	struct qp_attr attr;
	struct region *region, *local; /* of host 1, and of host 0 */
	bool destroyed;		       /* the region of host 1 */
	uint32_t psn;
};

extern struct bench bench;

/* Sends the bytes with a valid ICRC. */
void host_send(struct host *from, struct host *to, const uint8_t *bytes, size_t length);
void host_send_packet(struct host *from, struct host *to, const struct packet *packet);
/* Sends the packets in the transports' send batches. */
void hosts_flush(void);
/* Replaces the address of the host. */
void qp_set_address(struct host *host, const struct address *address);
void qp_open(uint64_t seed);
void qp_close(void);
struct soft_qp *qp_of(struct pair *pair, size_t end);
void endpoint_prepare(struct soft_endpoint *endpoint, struct host *host, enum endpoint_kind kind, uint32_t sends,
		      uint32_t receives);
void pair_open(struct pair *pair, struct qp_attr *attr);
void pair_close(struct pair *pair);
struct region *region_of(size_t host, size_t length, unsigned access);
/* Returns a work request between the beginnings of two regions. */
struct work work_to(enum work_kind kind, const struct region *local, const struct region *remote, uint32_t length);
bool is_valgrind(void);
unsigned seeds(unsigned count);
void count_completions(void *context, struct host *host, const struct reported *reported);
enum outcome post_captured(struct soft_qp *qp, const struct work *work);
/* Closes the previous test's hosts. */
void bench_open(unsigned reads);
void bench_destroy_region(void);
/* A test's tear-down. */
int bench_close(void **state);
struct packet bench_packet(uint8_t opcode, uint32_t psn, size_t length);
void bench_run(void);
/* Posts a work request at host 0 for the region of host 1. */
void bench_post(enum work_kind kind, uint32_t length);
/* Sends a response to the requester at host 0. */
void bench_respond(uint8_t opcode, uint32_t psn, uint8_t syndrome, size_t length);
