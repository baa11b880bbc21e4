/* SPDX-License-Identifier: BSD-2-Clause */
/* Two queue pairs that are connected over the simulated network, and packets made by hand for one of them. */
#ifndef TEST_UNIT_SOFT_PAIR_H
#define TEST_UNIT_SOFT_PAIR_H

#include "test/unit/soft_network.h"

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

static inline struct soft_queue *queue_of(struct pair *pair, size_t end)
{
	return pair->ends[end].queue;
}

static inline void pair_agree(struct pair *pair, const struct terms *terms, size_t end,
			      struct soft_agreement *agreement)
{
	struct host *host = &network->hosts[end];

	*agreement = (struct soft_agreement){
		.path = { .socket = socket_of(host),
			  .local = host->address,
			  .peer = network->hosts[!end].address,
			  .mtu = terms->mtu },
		.peer_queue = soft_queue_number(queue_of(pair, !end)),
		.first_psn_sent = terms->psn[end],
		.first_psn_expected = terms->psn[!end],
		.retry_count = terms->retry_count,
		.rnr_retry_count = terms->rnr_retry_count,
		.ack_timeout = terms->ack_timeout,
		.reads_out = terms->reads,
		.reads_in = terms->reads,
	};
}

static inline void endpoint_prepare(struct soft_endpoint *endpoint, struct host *host, enum endpoint_kind kind,
				    uint32_t sends, uint32_t receives)
{
	memset(endpoint, 0, sizeof(*endpoint));
	endpoint->base.transport = &host->transport.base;
	endpoint->base.kind = kind;
	endpoint->base.options.send_depth = sends;
	endpoint->base.options.receive_depth = receives;
	strcpy(endpoint->base.name, "peer");
	assert_int_equal(soft_queue_create(endpoint), OUTCOME_OK);
	assert_int_equal(endpoint->base.queue_number, soft_queue_number(endpoint->queue));
}

static inline void pair_open(struct pair *pair, struct terms *terms)
{
	struct soft_agreement agreement;

	terms->mtu = terms->mtu ? terms->mtu : 1024;
	terms->depth = terms->depth ? terms->depth : 16;
	terms->receive_depth = terms->receive_depth ? terms->receive_depth : terms->depth;
	terms->retry_count = terms->retry_count ? terms->retry_count : 7;
	terms->rnr_retry_count = terms->no_rnr_retry ? 0 : terms->rnr_retry_count ? terms->rnr_retry_count : 7;
	terms->ack_timeout = terms->ack_timeout ? terms->ack_timeout : 14;
	terms->reads = terms->no_reads ? 0 : terms->reads ? terms->reads : 16;
	for (size_t end = 0; end < 2; end++)
		endpoint_prepare(&pair->ends[end], &network->hosts[end], ENDPOINT_CONNECTION, terms->depth,
				 terms->receive_depth);
	for (size_t end = 0; end < 2; end++) {
		pair_agree(pair, terms, end, &agreement);
		soft_queue_connect(queue_of(pair, end), &agreement);
		soft_queue_start(queue_of(pair, end));
	}
}

static inline void pair_close(struct pair *pair)
{
	for (size_t end = 0; end < 2; end++) {
		soft_queue_destroy(queue_of(pair, end));
		assert_null(pair->ends[end].queue);
	}
}

static inline struct region *region_of(size_t host, size_t length, unsigned access)
{
	struct region *region;

	assert_int_equal(soft_region_create(&network->hosts[host].transport.domain, length, access, &region),
			 OUTCOME_OK);
	return region;
}

static inline bool is_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "vgpreload");
}

static inline unsigned seeds(unsigned count)
{
	const char *text = getenv("SOFT_QUEUE_SEEDS");

	if (text)
		return (unsigned)strtoul(text, NULL, 10);
#ifdef __SANITIZE_ADDRESS__
	count /= 4;
#endif
	return is_valgrind() ? count / 100 + 1 : count;
}

struct counted {
	size_t good, wanted;
};

static inline void count_completions(void *owner, struct host *host, const struct told *told)
{
	struct counted *counted = owner;

	(void)host;
	assert_int_equal(told->completion.status, COMPLETION_OK);
	network->done = ++counted->good == counted->wanted;
}

static inline enum outcome post_silently(struct soft_queue *queue, const struct work *work)
{
	struct capture capture;
	enum outcome outcome;

	capture_begin(&capture);
	outcome = soft_queue_post(queue, work, 1);
	assert_int_equal(outcome == OUTCOME_OK, !*capture_end(&capture));
	return outcome;
}

/* A responder at host 1 for packets made by hand; its memory is all ones. */
struct bench {
	struct pair pair;
	struct terms terms;
	struct region *region;
	uint32_t psn;
};

static const uint8_t zeros[PACKET_PAYLOAD_MOST];

static inline void bench_open(struct bench *bench, unsigned reads)
{
	*bench = (struct bench){ .terms = { .psn = { 100, 200 }, .reads = reads, .no_reads = !reads }, .psn = 100 };
	network_open(1);
	pair_open(&bench->pair, &bench->terms);
	bench->region = region_of(1, 65536, REGION_REMOTE_READ | REGION_REMOTE_WRITE);
	memset(bench->region->memory, 1, 65536);
}

static inline void bench_close(struct bench *bench)
{
	soft_region_destroy(bench->region);
	pair_close(&bench->pair);
	network_close();
}

static inline struct packet bench_packet(const struct bench *bench, uint8_t opcode, uint32_t psn, size_t length)
{
	return (struct packet){
		.opcode = opcode,
		.ack_request = true,
		.pkey = PACKET_PKEY,
		.destination = soft_queue_number(bench->pair.ends[1].queue),
		.psn = psn,
		.remote = { .address = (uintptr_t)bench->region->memory,
			    .key = bench->region->remote_key,
			    .length = (uint32_t)length },
		.pad = packet_pad(length),
		.payload = zeros,
		.length = opcode == OPCODE_READ_REQUEST ? 0 : length,
	};
}

static inline void bench_say(struct bench *bench, uint8_t opcode, uint32_t psn, size_t length)
{
	struct packet packet = bench_packet(bench, opcode, psn, length);

	packet.pad = packet_pad(packet.length);
	network_send_packet(&network->hosts[0], &network->hosts[1], &packet);
}

static inline void bench_run(void)
{
	network_run(100 * CLOCK_NS_PER_MS);
}

#endif
