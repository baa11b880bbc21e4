/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/network/qp.h"
#include "transport/soft/net/socket.h"

struct qp_hosts testbed;
struct bench bench;

static struct host *qp_host_of(const struct soft_transport *transport)
{
	return &testbed.hosts[transport == testbed.hosts[1].transport];
}

/* ---- packets ---- */

void host_send(struct host *from, struct host *to, const uint8_t *bytes, size_t length)
{
	struct frame frame = { .from = from->address, .to = to->address, .length = length };

	memcpy(frame.bytes, bytes, length);
	network_append_icrc(&frame, &from->transport->icrc);
	testbed.injecting = true;
	network_send(&frame);
	testbed.injecting = false;
}

void host_send_packet(struct host *from, struct host *to, const struct packet *packet)
{
	uint8_t bytes[NETWORK_FRAME_MAX] = { 0 };
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

/* Called for each packet that a host sends. Returns true if the packet is dropped. */
static bool qp_packet_sent(void *context, const struct frame *frame)
{
	unsigned end = address_same_host(&frame->from, &testbed.hosts[1].address);
	struct packet packet;
	bool parsed = packet_parse(frame->bytes, frame->length, &packet);
	bool goes = true;

	/* Injected ACKs may have any PSN. */
	if (parsed && testbed.pairs == 1 && !(testbed.injecting && packet.opcode == OPCODE_ACKNOWLEDGE))
		rules_check(&testbed.rules, end, &packet, testbed.mtu);
	if (testbed.tap && !testbed.injecting) {
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

void qp_set_address(struct host *host, const struct address *address)
{
	host->address = *address;
	host->socket = stack_socket(host->transport, address);
}

void qp_open(uint64_t seed)
{
	memset(&testbed, 0, sizeof(testbed));
	network_open(seed, PACKET_PAYLOAD_MAX + PACKET_OVERHEAD_MAX, 1 << 20);
	for (unsigned warm = 0; warm < 8; warm++)
		network_below(2);
	network->delay = 10 * CLOCK_NS_PER_US;
	network->jitter = 200 * CLOCK_NS_PER_US;
	network->byte_time = 800; /* 10 Gbit/s */
	network->read_delay = 5 * CLOCK_NS_PER_US;
	network->receive_buffer = 1 << 20;
	network->intercept = qp_packet_sent;
	testbed.window = 1 << 19;
	for (size_t index = 0; index < HOSTS; index++) {
		struct host *host = &testbed.hosts[index];
		struct address address = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, (uint8_t)(index + 1) } };

		host->transport = stack_open();
		qp_set_address(host, &address);
		host->reported = malloc(COMPLETIONS_MAX * sizeof(*host->reported));
		assert_non_null(host->reported);
	}
}

void qp_close(void)
{
	testbed.completed = NULL;
	for (size_t index = 0; index < HOSTS; index++) {
		testbed.hosts[index].transport->endpoints = NULL; /* the test's own */
		stack_close(testbed.hosts[index].transport);
		loop_timer_stop(&testbed.hosts[index].report_timer);
		free(testbed.hosts[index].reported);
	}
	network_close();
}

/* ---- replaced functions (qp.wrap) ---- */

static void host_deliver(void *context)
{
	struct host *host = context;

	while (host->reported_taken < host->reported_count) {
		struct reported reported = host->reported[host->reported_taken++];

		assert_int_equal(!reported.error, reported.completion.status != COMPLETION_OTHER);
		if (testbed.completed)
			testbed.completed(testbed.context, host, &reported);
	}
	host->reported_taken = host->reported_count = 0;
}

void __real_soft_callback_end(struct soft_transport *transport);

struct completion *__wrap_soft_complete(struct soft_endpoint *endpoint, enum work_kind kind, uint32_t tag, int error)
{
	struct host *host = qp_host_of(soft_of(endpoint->base.transport));
	struct reported *reported = &host->reported[host->reported_count++];

	assert_true(host->reported_count <= COMPLETIONS_MAX);
	*reported =
		(struct reported){ .endpoint = endpoint, .error = error, .completion = { .kind = kind, .tag = tag } };
	loop_timer_start(NULL, &host->report_timer, 0, host_deliver, host);
	return &reported->completion;
}

void __wrap_soft_event_failed(struct soft_endpoint *endpoint, const char *cause, const char *code_name, int code)
{
	struct host *host = qp_host_of(soft_of(endpoint->base.transport));

	host->failures++;
	host->failure = cause;
}

void __wrap_soft_cm_first_packet(struct soft_endpoint *endpoint)
{
	qp_host_of(soft_of(endpoint->base.transport))->cm_packets++;
}

size_t __wrap_soft_socket_window(const struct soft_socket *socket, size_t payload)
{
	assert_non_null(socket);
	return testbed.window / (payload ? payload : 1);
}

/* The destroyed objects stay in their lists for the tests; closing the transport frees them. */
void __wrap_soft_reap_later(struct soft_transport *transport)
{
}

void __wrap_soft_callback_end(struct soft_transport *transport)
{
	/* A completion handler may reuse the memory: send first. */
	soft_flush(transport);
	host_deliver(qp_host_of(transport));
	__real_soft_callback_end(transport);
	/* Like the next turn of the loop. */
	host_deliver(qp_host_of(transport));
}

/* ---- connected pairs ---- */

struct soft_qp *qp_of(struct pair *pair, size_t end)
{
	return pair->ends[end].qp;
}

static void pair_agreement(struct pair *pair, const struct qp_attr *attr, size_t end, struct soft_agreement *agreement)
{
	*agreement = (struct soft_agreement){
		.peer_qpn = qp_of(pair, !end)->by_qpn.key,
		.sq_psn = attr->psn[end],
		.rq_psn = attr->psn[!end],
		.retry_count = attr->retry_count,
		.rnr_retry_count = attr->rnr_retry_count,
		.ack_timeout = attr->ack_timeout,
		.reads_out = attr->reads,
		.reads_in = attr->reads,
	};
}

void endpoint_prepare(struct soft_endpoint *endpoint, struct host *host, enum endpoint_kind kind, uint32_t sends,
		      uint32_t receives)
{
	memset(endpoint, 0, sizeof(*endpoint));
	endpoint->base.transport = &host->transport->base;
	endpoint->base.kind = kind;
	endpoint->base.options.send_depth = sends;
	endpoint->base.options.receive_depth = receives;
	endpoint->path.socket = host->socket;
	strcpy(endpoint->base.name, "peer");
	if (kind == ENDPOINT_GROUP) {
		endpoint->next = host->transport->endpoints;
		host->transport->endpoints = endpoint;
	}
	assert_int_equal(soft_qp_create(&endpoint->base), OUTCOME_OK);
	assert_int_equal(endpoint->base.qpn, endpoint->qp->by_qpn.key);
}

void pair_open(struct pair *pair, struct qp_attr *attr)
{
	struct soft_agreement agreement;

	attr->mtu = attr->mtu ? attr->mtu : 1024;
	attr->depth = attr->depth ? attr->depth : 16;
	attr->receive_depth = attr->receive_depth ? attr->receive_depth : attr->depth;
	attr->retry_count = attr->retry_count ? attr->retry_count : 7;
	attr->rnr_retry_count = attr->no_rnr_retry ? 0 : attr->rnr_retry_count ? attr->rnr_retry_count : 7;
	attr->ack_timeout = attr->ack_timeout ? attr->ack_timeout : 14;
	attr->reads = attr->no_reads ? 0 : attr->reads ? attr->reads : 16;
	testbed.rules = (struct rules){ 0 };
	testbed.mtu = attr->mtu;
	testbed.pairs++;
	for (size_t end = 0; end < 2; end++)
		endpoint_prepare(&pair->ends[end], &testbed.hosts[end], ENDPOINT_CONNECTION, attr->depth,
				 attr->receive_depth);
	for (size_t end = 0; end < 2; end++) {
		pair_agreement(pair, attr, end, &agreement);
		pair->ends[end].path = (struct soft_path){
			.socket = testbed.hosts[end].socket,
			.local = testbed.hosts[end].address,
			.peer = testbed.hosts[!end].address,
			.mtu = attr->mtu,
		};
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

struct work work_to(enum work_kind kind, const struct region *local, const struct region *remote, uint32_t length)
{
	return (struct work){
		.kind = kind,
		.region = local,
		.length = length,
		.remote_address = remote->remote_address,
		.remote_key = remote->remote_key,
	};
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

void count_completions(void *context, struct host *host, const struct reported *reported)
{
	struct counter *counter = context;

	assert_int_equal(reported->completion.status, COMPLETION_OK);
	network->done = ++counter->good == counter->wanted;
}

enum outcome post_captured(struct soft_qp *qp, const struct work *work)
{
	struct error *error = &qp->transport->base.error;
	enum outcome outcome;

	error_clear(error);
	outcome = soft_qp_post(qp, work, 1);
	assert_int_equal(outcome == OUTCOME_OK, !*error->cause);
	return outcome;
}

static const uint8_t zeros[PACKET_PAYLOAD_MAX];

void bench_open(unsigned reads)
{
	bench_close(NULL);
	bench = (struct bench){ .attr = { .psn = { 100, 200 }, .reads = reads, .no_reads = !reads }, .psn = 100 };
	qp_open(1);
	pair_open(&bench.pair, &bench.attr);
	bench.region = region_of(1, 65536, REGION_REMOTE_READ | REGION_REMOTE_WRITE);
	bench.local = region_of(0, 65536, REGION_LOCAL);
	memset(bench.region->memory, 1, 65536);
}

void bench_destroy_region(void)
{
	if (!bench.destroyed)
		soft_region_destroy(bench.region);
	bench.destroyed = true;
}

int bench_close(void **state)
{
	if (bench.region) {
		bench_destroy_region();
		soft_region_destroy(bench.local);
		bench.region = NULL;
		pair_close(&bench.pair);
		qp_close();
	}
	return 0;
}

struct packet bench_packet(uint8_t opcode, uint32_t psn, size_t length)
{
	return (struct packet){
		.opcode = opcode,
		.ack_request = true,
		.pkey = PACKET_PKEY,
		.destination = qp_of(&bench.pair, 1)->by_qpn.key,
		.psn = psn,
		.remote = { .address = bench.region->remote_address,
			    .key = bench.region->remote_key,
			    .length = (uint32_t)length },
		.pad = opcode == OPCODE_READ_REQUEST ? 0 : packet_pad(length),
		.payload = zeros,
		.length = opcode == OPCODE_READ_REQUEST ? 0 : length,
	};
}

void bench_post(enum work_kind kind, uint32_t length)
{
	struct work work = work_to(kind, bench.local, bench.region, length);

	work.tag = 77;
	assert_int_equal(soft_qp_post(qp_of(&bench.pair, 0), &work, 1), OUTCOME_OK);
	network_run(10 * CLOCK_NS_PER_US);
}

void bench_respond(uint8_t opcode, uint32_t psn, uint8_t syndrome, size_t length)
{
	struct packet packet = bench_packet(opcode, psn, length);

	packet.destination = qp_of(&bench.pair, 0)->by_qpn.key;
	packet.acknowledgement.syndrome = syndrome;
	host_send_packet(&testbed.hosts[1], &testbed.hosts[0], &packet);
	network_run(100 * CLOCK_NS_PER_US);
}

void bench_run(void)
{
	network_run(100 * CLOCK_NS_PER_MS);
}
