/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/network/qp.h"
#include "transport/soft/net/packet_io.h"

struct qp_hosts testbed;

static struct host *host_of(const struct soft_transport *transport)
{
	return &testbed.hosts[transport == testbed.hosts[1].transport];
}

/* ---- packets ---- */

void host_send(struct host *from, struct host *to, const uint8_t *bytes, size_t length)
{
	struct frame frame = { .from = from->address, .to = to->address, .length = length };

	memcpy(frame.bytes, bytes, length);
	network_seal(&frame, &from->transport->icrc);
	testbed.by_hand = true;
	network_send(&frame);
	testbed.by_hand = false;
}

void host_send_packet(struct host *from, struct host *to, const struct packet *packet)
{
	uint8_t bytes[NETWORK_FRAME_MOST] = { 0 };
	size_t header = packet_write(packet, bytes);

	assert_true(header > 0);
	if (packet->length)
		memcpy(bytes + header, packet->payload, packet->length);
	host_send(from, to, bytes, header + packet->length + packet_pad(packet->length));
}

void hosts_flush(void)
{
	for (size_t index = 0; index < HOSTS; index++)
		soft_flush(testbed.hosts[index].transport);
}

/* Every packet that leaves a host. */
static bool departs(void *owner, const struct frame *frame)
{
	unsigned end = address_same_host(&frame->from, &testbed.hosts[1].address);
	struct packet packet;
	bool parsed = packet_parse(frame->bytes, frame->length, &packet);
	bool goes = true;

	(void)owner;
	/* What is made by hand may ask for anything, and answers as the test wants. */
	if (parsed && testbed.pairs == 1 && !(testbed.by_hand && packet.opcode == OPCODE_ACKNOWLEDGE))
		rules_see(&testbed.rules, end, &packet, testbed.mtu);
	if (testbed.tap && !testbed.by_hand) {
		assert_true(parsed);
		goes = testbed.tap(network, &testbed.hosts[end], &packet);
	}
	if (goes && (testbed.hosts[0].dead || testbed.hosts[1].dead)) {
		network->lost++;
		goes = false;
	}
	return !goes;
}

/* ---- opening, closing ---- */

void qp_move(struct host *host, const struct address *address)
{
	host->address = *address;
	host->socket = stack_socket(host->transport, address);
}

void qp_open(uint64_t seed)
{
	memset(&testbed, 0, sizeof(testbed));
	network_open(seed, PACKET_PAYLOAD_MOST + PACKET_OVERHEAD_MOST, 1 << 20);
	for (unsigned warm = 0; warm < 8; warm++)
		network_roll(2);
	network->delay = 10 * CLOCK_NS_PER_US;
	network->jitter = 200 * CLOCK_NS_PER_US;
	network->byte_time = 800; /* 10 Gbit/s */
	network->wake_time = 5 * CLOCK_NS_PER_US;
	network->room = 1 << 20;
	network->hold = departs;
	testbed.window = 1 << 19;
	for (size_t index = 0; index < HOSTS; index++) {
		struct host *host = &testbed.hosts[index];
		struct address address = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, (uint8_t)(index + 1) } };

		host->transport = stack_open();
		qp_move(host, &address);
		host->told = malloc(COMPLETIONS_MOST * sizeof(*host->told));
		assert_non_null(host->told);
	}
}

void qp_close(void)
{
	testbed.completed = NULL;
	for (size_t index = 0; index < HOSTS; index++) {
		stack_close(testbed.hosts[index].transport);
		loop_timer_stop(&testbed.hosts[index].telling);
		free(testbed.hosts[index].told);
	}
	network_close();
}

/* ---- what the queue pairs ask of the rest of the backend ---- */

static void host_deliver(void *owner)
{
	struct host *host = owner;

	while (host->told_taken < host->told_count) {
		struct told told = host->told[host->told_taken++];

		if (testbed.completed)
			testbed.completed(testbed.owner, host, &told);
	}
	host->told_taken = host->told_count = 0;
}

void __real_soft_leave(struct soft_transport *transport);
void __wrap_soft_complete(struct soft_endpoint *endpoint, const struct completion *completion, unsigned raw);
void __wrap_soft_event_failed(struct soft_endpoint *endpoint, const char *cause, const char *code_name, int code);
void __wrap_soft_cm_packet_received(struct soft_endpoint *endpoint);
size_t __wrap_soft_socket_window(const struct soft_socket *socket, size_t payload);
void __wrap_soft_reap_later(struct soft_transport *transport);
void __wrap_soft_leave(struct soft_transport *transport);

void __wrap_soft_complete(struct soft_endpoint *endpoint, const struct completion *completion, unsigned raw)
{
	struct host *host = host_of(soft_of(endpoint->base.transport));

	assert_true(host->told_count < COMPLETIONS_MOST);
	host->told[host->told_count++] = (struct told){ .endpoint = endpoint, .completion = *completion, .raw = raw };
	loop_timer_start(NULL, &host->telling, 0, host_deliver, host);
}

void __wrap_soft_event_failed(struct soft_endpoint *endpoint, const char *cause, const char *code_name, int code)
{
	struct host *host = host_of(soft_of(endpoint->base.transport));

	(void)code_name;
	(void)code;
	host->failures++;
	host->failure = cause;
}

void __wrap_soft_cm_packet_received(struct soft_endpoint *endpoint)
{
	host_of(soft_of(endpoint->base.transport))->heard++;
}

size_t __wrap_soft_socket_window(const struct soft_socket *socket, size_t payload)
{
	assert_non_null(socket);
	return testbed.window / (payload ? payload : 1);
}

/* Tests look at what waits for the reaper; closing the transport frees it. */
void __wrap_soft_reap_later(struct soft_transport *transport)
{
	(void)transport;
}

void __wrap_soft_leave(struct soft_transport *transport)
{
	/* Whoever hears of a completion may use its memory again. */
	soft_flush(transport);
	host_deliver(host_of(transport));
	__real_soft_leave(transport);
	/* As if a turn of the loop followed at once. */
	host_deliver(host_of(transport));
}

/* ---- two queue pairs that are connected ---- */

struct soft_qp *qp_of(struct pair *pair, size_t end)
{
	return pair->ends[end].qp;
}

static void pair_agree(struct pair *pair, const struct terms *terms, size_t end, struct soft_agreement *agreement)
{
	struct host *host = &testbed.hosts[end];

	*agreement = (struct soft_agreement){
		.path = { .socket = host->socket,
			  .local = host->address,
			  .peer = testbed.hosts[!end].address,
			  .mtu = terms->mtu },
		.peer_qpn = soft_qp_qpn(qp_of(pair, !end)),
		.sq_psn = terms->psn[end],
		.rq_psn = terms->psn[!end],
		.retry_count = terms->retry_count,
		.rnr_retry_count = terms->rnr_retry_count,
		.ack_timeout = terms->ack_timeout,
		.reads_out = terms->reads,
		.reads_in = terms->reads,
	};
}

void endpoint_prepare(struct soft_endpoint *endpoint, struct host *host, enum endpoint_kind kind, uint32_t sends,
		      uint32_t receives)
{
	memset(endpoint, 0, sizeof(*endpoint));
	endpoint->base.transport = &host->transport->base;
	endpoint->base.log = host->transport->base.log;
	endpoint->base.kind = kind;
	endpoint->base.options.send_depth = sends;
	endpoint->base.options.receive_depth = receives;
	strcpy(endpoint->base.name, "peer");
	assert_int_equal(soft_qp_create(endpoint), OUTCOME_OK);
	assert_int_equal(endpoint->base.qpn, soft_qp_qpn(endpoint->qp));
}

void pair_open(struct pair *pair, struct terms *terms)
{
	struct soft_agreement agreement;

	terms->mtu = terms->mtu ? terms->mtu : 1024;
	terms->depth = terms->depth ? terms->depth : 16;
	terms->receive_depth = terms->receive_depth ? terms->receive_depth : terms->depth;
	terms->retry_count = terms->retry_count ? terms->retry_count : 7;
	terms->rnr_retry_count = terms->no_rnr_retry ? 0 : terms->rnr_retry_count ? terms->rnr_retry_count : 7;
	terms->ack_timeout = terms->ack_timeout ? terms->ack_timeout : 14;
	terms->reads = terms->no_reads ? 0 : terms->reads ? terms->reads : 16;
	testbed.rules = (struct rules){ 0 };
	testbed.mtu = terms->mtu;
	testbed.pairs++;
	for (size_t end = 0; end < 2; end++)
		endpoint_prepare(&pair->ends[end], &testbed.hosts[end], ENDPOINT_CONNECTION, terms->depth,
				 terms->receive_depth);
	for (size_t end = 0; end < 2; end++) {
		pair_agree(pair, terms, end, &agreement);
		soft_qp_connect(qp_of(pair, end), &agreement);
		soft_qp_start(qp_of(pair, end));
	}
}

void pair_close(struct pair *pair)
{
	testbed.pairs--;
	for (size_t end = 0; end < 2; end++) {
		soft_qp_destroy(qp_of(pair, end));
		assert_null(pair->ends[end].qp);
	}
}

struct region *region_of(size_t host, size_t length, unsigned access)
{
	struct region *region;

	assert_int_equal(soft_region_create(&testbed.hosts[host].transport->domain, length, access, &region),
			 OUTCOME_OK);
	return region;
}

bool is_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "vgpreload");
}

unsigned seeds(unsigned count)
{
	const char *text = getenv("SOFT_QUEUE_SEEDS");

	if (text)
		return (unsigned)strtoul(text, NULL, 10);
#ifdef __SANITIZE_ADDRESS__
	count /= 4;
#endif
	return is_valgrind() ? count / 100 + 1 : count;
}

void count_completions(void *owner, struct host *host, const struct told *told)
{
	struct counted *counted = owner;

	(void)host;
	assert_int_equal(told->completion.status, COMPLETION_OK);
	network->done = ++counted->good == counted->wanted;
}

enum outcome post_silently(struct soft_qp *qp, const struct work *work)
{
	struct capture capture;
	enum outcome outcome;

	capture_begin(&capture);
	outcome = soft_qp_post(qp, work, 1);
	assert_int_equal(outcome == OUTCOME_OK, !*capture_end(&capture));
	return outcome;
}

static const uint8_t zeros[PACKET_PAYLOAD_MOST];

void bench_open(struct bench *bench, unsigned reads)
{
	*bench = (struct bench){ .terms = { .psn = { 100, 200 }, .reads = reads, .no_reads = !reads }, .psn = 100 };
	qp_open(1);
	pair_open(&bench->pair, &bench->terms);
	bench->region = region_of(1, 65536, REGION_REMOTE_READ | REGION_REMOTE_WRITE);
	memset(bench->region->memory, 1, 65536);
}

void bench_close(struct bench *bench)
{
	soft_region_destroy(bench->region);
	pair_close(&bench->pair);
	qp_close();
}

struct packet bench_packet(const struct bench *bench, uint8_t opcode, uint32_t psn, size_t length)
{
	return (struct packet){
		.opcode = opcode,
		.ack_request = true,
		.pkey = PACKET_PKEY,
		.destination = soft_qp_qpn(bench->pair.ends[1].qp),
		.psn = psn,
		.remote = { .address = (uintptr_t)bench->region->memory,
			    .key = bench->region->remote_key,
			    .length = (uint32_t)length },
		.pad = packet_pad(length),
		.payload = zeros,
		.length = opcode == OPCODE_READ_REQUEST ? 0 : length,
	};
}

void bench_say(struct bench *bench, uint8_t opcode, uint32_t psn, size_t length)
{
	struct packet packet = bench_packet(bench, opcode, psn, length);

	packet.pad = packet_pad(packet.length);
	host_send_packet(&testbed.hosts[0], &testbed.hosts[1], &packet);
}

void bench_post(struct bench *bench, enum work_kind kind, struct region *local, uint32_t length)
{
	struct work work = {
		.kind = kind,
		.tag = 77,
		.region = local,
		.length = length,
		.remote_address = (uintptr_t)bench->region->memory,
		.remote_key = bench->region->remote_key,
	};

	assert_int_equal(soft_qp_post(qp_of(&bench->pair, 0), &work, 1), OUTCOME_OK);
	network_run(10 * CLOCK_NS_PER_US);
}

void bench_answer(struct bench *bench, uint8_t opcode, uint32_t psn, uint8_t syndrome, size_t length)
{
	struct packet packet = bench_packet(bench, opcode, psn, length);

	packet.destination = soft_qp_qpn(qp_of(&bench->pair, 0));
	packet.acknowledgement.syndrome = syndrome;
	host_send_packet(&testbed.hosts[1], &testbed.hosts[0], &packet);
	network_run(100 * CLOCK_NS_PER_US);
}

void bench_run(void)
{
	network_run(100 * CLOCK_NS_PER_MS);
}
