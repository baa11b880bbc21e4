/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network of two hosts in one process, on a clock of its own, around the real queue pairs of transport/soft. What
 * queue pairs ask of the rest of the backend is replaced at link time (qp.wrap); every packet goes through its wire
 * format. A seed decides what is lost, repeated, delayed and damaged, so that a run can be had again.
 */
#ifndef TEST_NETWORK_QP_H
#define TEST_NETWORK_QP_H

#include "test/unit/unit.h"

#include "core/clock.h"
#include "transport/soft/delivery.h"
#include "transport/soft/queue.h"
#include "transport/soft/region.h"

enum {
	HOSTS = 2,
	FRAME_MOST = PACKET_HEADER_MOST + PACKET_PAYLOAD_MOST + 3,
	FRAMES_MOST = 32768, /* under way at once */
	TIMERS_MOST = 4096,
	COMPLETIONS_MOST = 65536,
	BATCH_MOST = 256,
};

struct frame {
	int64_t time; /* of arrival */
	uint64_t order;
	uint8_t from, to;
	uint16_t length;
	bool damaged;
	uint8_t bytes[FRAME_MOST];
};

struct told {
	struct soft_endpoint *endpoint;
	struct completion completion;
	unsigned raw;
};

struct host {
	struct network *network;
	struct soft_transport transport;
	struct address address;
	struct frame *inbox[FRAMES_MOST]; /* a ring of what waits in the socket */
	size_t inbox_head, inbox_count, inbox_bytes;
	int64_t busy;	   /* until then with what it took */
	int64_t wakes;	   /* when it looks at the inbox; 0 if it is empty */
	int64_t line_free; /* when its line is done with what was sent so far */
	struct told *told;
	size_t told_count, told_taken;
	unsigned failures; /* told through soft_tell_failure() */
	const char *failure;
	unsigned heard;
	bool dead; /* nothing leaves or enters it */
};

struct network {
	int64_t now;
	uint64_t die;
	uint64_t order;
	struct host hosts[HOSTS];
	struct address group;
	struct frame *heap[FRAMES_MOST];
	size_t heap_count;
	struct frame *spare[FRAMES_MOST];
	size_t spare_count;
	struct loop_timer *timers[TIMERS_MOST];
	int64_t timer_times[TIMERS_MOST];
	size_t timer_count;

	/* Thousandths of all packets. */
	unsigned loss, repeat, reorder, damage;
	int64_t delay;	     /* one way */
	int64_t jitter;	     /* of a reordered or repeated packet */
	int64_t byte_time;   /* picoseconds on the line */
	int64_t wake_time;   /* from a packet's arrival to the host's look at its inbox */
	int64_t packet_time; /* that it costs a host to take one */
	size_t inbox_most;   /* bytes in a socket's buffer */
	size_t window;	     /* what the sockets say of it */

	uint64_t sent, lost, overflowed;
	/* Sees every packet on its way out, and may drop it (returns false) or send others. */
	bool (*tap)(struct network *network, const struct host *from, struct packet *packet);
	/* A host's completions since the last time. */
	void (*completed)(void *owner, struct host *host, const struct told *told);
	void *owner;
	bool done;
};

extern struct network *network; /* the one of the test at hand */

extern const struct icrc_case sound;

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

uint32_t network_roll(uint32_t sides);
struct soft_socket *socket_of(struct host *host);
/* Puts any bytes on the wire to a host, from another's address. */
void network_send(struct host *from, struct host *to, const uint8_t *bytes, size_t length);
void network_send_packet(struct host *from, struct host *to, const struct packet *packet);
/* Runs until somebody sets network->done, or for that long. Returns whether it was done. */
bool network_run(int64_t nanoseconds);
void network_open(uint64_t seed);
void network_close(void);
struct soft_queue *queue_of(struct pair *pair, size_t end);
void endpoint_prepare(struct soft_endpoint *endpoint, struct host *host, enum endpoint_kind kind, uint32_t sends,
		      uint32_t receives);
void pair_open(struct pair *pair, struct terms *terms);
void pair_close(struct pair *pair);
struct region *region_of(size_t host, size_t length, unsigned access);
bool is_valgrind(void);
unsigned seeds(unsigned count);
void count_completions(void *owner, struct host *host, const struct told *told);
enum outcome post_silently(struct soft_queue *queue, const struct work *work);
void bench_open(struct bench *bench, unsigned reads);
void bench_close(struct bench *bench);
struct packet bench_packet(const struct bench *bench, uint8_t opcode, uint32_t psn, size_t length);
void bench_say(struct bench *bench, uint8_t opcode, uint32_t psn, size_t length);
void bench_run(void);

#endif
