/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/network/qp.h"

struct network *network;

uint32_t network_roll(uint32_t sides)
{
	network->die ^= network->die >> 12;
	network->die ^= network->die << 25;
	network->die ^= network->die >> 27;
	return (uint32_t)((network->die * UINT64_C(0x2545f4914f6cdd1d)) >> 32) % sides;
}

/* ---- frames under way: a heap by time of arrival ---- */

static bool frame_before(const struct frame *one, const struct frame *other)
{
	return one->time != other->time ? one->time < other->time : one->order < other->order;
}

static void heap_push(struct frame *frame)
{
	size_t at = network->heap_count++;

	assert_true(at < FRAMES_MOST);
	for (; at && frame_before(frame, network->heap[(at - 1) / 2]); at = (at - 1) / 2)
		network->heap[at] = network->heap[(at - 1) / 2];
	network->heap[at] = frame;
}

static struct frame *heap_pop(void)
{
	struct frame *first = network->heap[0], *last = network->heap[--network->heap_count];
	size_t at = 0;

	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < network->heap_count && frame_before(network->heap[child + 1], network->heap[child]))
			child++;
		if (child >= network->heap_count || !frame_before(network->heap[child], last))
			break;
		network->heap[at] = network->heap[child];
		at = child;
	}
	network->heap[at] = last;
	return first;
}

static struct frame *frame_take(void)
{
	struct frame *frame;

	if (network->spare_count)
		return network->spare[--network->spare_count];
	frame = malloc(sizeof(*frame));
	assert_non_null(frame);
	return frame;
}

static void frame_free(struct frame *frame)
{
	if (network->spare_count < FRAMES_MOST)
		network->spare[network->spare_count++] = frame;
	else
		free(frame);
}

static struct host *host_of(const struct soft_transport *transport)
{
	return &network->hosts[transport == &network->hosts[1].transport];
}

struct soft_socket *socket_of(struct host *host)
{
	return (struct soft_socket *)(void *)&host->address;
}

void network_send(struct host *from, struct host *to, const uint8_t *bytes, size_t length)
{
	unsigned copies = 1 + (network_roll(1000) < network->repeat);
	int64_t start = from->line_free > network->now ? from->line_free : network->now;

	from->line_free = start + (int64_t)(length + 46) * network->byte_time / 1000;
	network->sent++;
	while (copies--) {
		struct frame *frame;

		if (network_roll(1000) < network->loss || from->dead || to->dead) {
			network->lost++;
			continue;
		}
		frame = frame_take();
		frame->time = from->line_free + network->delay;
		if (copies || network_roll(1000) < network->reorder)
			frame->time += network_roll((uint32_t)network->jitter + 1);
		frame->order = network->order++;
		frame->from = (uint8_t)(from - network->hosts);
		frame->to = (uint8_t)(to - network->hosts);
		frame->length = (uint16_t)length;
		memcpy(frame->bytes, bytes, length);
		frame->damaged = network_roll(1000) < network->damage;
		if (frame->damaged)
			frame->length = (uint16_t)network_roll((uint32_t)length + 1);
		heap_push(frame);
	}
}

void network_send_packet(struct host *from, struct host *to, const struct packet *packet)
{
	uint8_t bytes[FRAME_MOST] = { 0 };
	size_t header = packet_write(packet, bytes);

	assert_true(header > 0);
	if (packet->length)
		memcpy(bytes + header, packet->payload, packet->length);
	network_send(from, to, bytes, header + packet->length + packet_pad(packet->length));
}

/* ---- a host's turn ---- */

const struct icrc_case sound = { .verdict = ICRC_GOOD };

static void host_take(struct host *host, const struct frame *frame)
{
	/* The format wants the four bytes of the ICRC, which was checked before. */
	uint8_t *bytes = malloc(frame->length + PACKET_ICRC_SIZE);
	struct packet packet;

	assert_non_null(bytes);
	memcpy(bytes, frame->bytes, frame->length);
	memset(bytes + frame->length, 0, PACKET_ICRC_SIZE);
	/* The ICRC finds damage; the format must bear it all the same. */
	if (!packet_parse(bytes, frame->length + PACKET_ICRC_SIZE, &packet) || frame->damaged)
		;
	else if (packet.destination == PSN_MASK)
		soft_queue_receive_group(&host->transport, &network->hosts[frame->from].address, &network->group,
					 &packet, &sound);
	else
		soft_queue_receive(&host->transport, socket_of(host), &network->hosts[frame->from].address, &packet,
				   &sound);
	free(bytes);
}

static void host_deliver(struct host *host)
{
	while (host->told_taken < host->told_count) {
		struct told told = host->told[host->told_taken++];

		if (network->completed)
			network->completed(network->owner, host, &told);
	}
	host->told_taken = host->told_count = 0;
}

static int64_t wake_of(const struct host *host)
{
	int64_t soon = network->now + network->wake_time;

	return soon > host->busy ? soon : host->busy;
}

static void host_turn(struct host *host)
{
	host->busy = network->now;
	for (size_t count = 0; host->inbox_count && count < BATCH_MOST; count++) {
		host->busy += network->packet_time;
		struct frame *frame = host->inbox[host->inbox_head];

		host->inbox_head = (host->inbox_head + 1) % FRAMES_MOST;
		host->inbox_count--;
		host->inbox_bytes -= frame->length;
		host_take(host, frame);
		frame_free(frame);
	}
	host->wakes = host->inbox_count ? wake_of(host) : 0;
	soft_leave(&host->transport);
}

static void frame_arrive(struct frame *frame)
{
	struct host *host = &network->hosts[frame->to];

	if (host->dead || host->inbox_count == FRAMES_MOST || host->inbox_bytes + frame->length > network->inbox_most) {
		network->overflowed++;
		frame_free(frame);
		return;
	}
	host->inbox[(host->inbox_head + host->inbox_count++) % FRAMES_MOST] = frame;
	host->inbox_bytes += frame->length;
	if (!host->wakes)
		host->wakes = wake_of(host);
}

/* The index of the timer that is due first, or TIMERS_MOST. */
static size_t first_timer(void)
{
	size_t first = TIMERS_MOST;

	for (size_t index = 0; index < network->timer_count; index++)
		if (first == TIMERS_MOST || network->timer_times[index] < network->timer_times[first])
			first = index;
	return first;
}

/* Lets one thing happen; false if nothing will ever. */
static bool network_step(int64_t limit)
{
	int64_t next = INT64_MAX;
	size_t timer = first_timer();
	struct host *waking = NULL;

	if (network->heap_count)
		next = network->heap[0]->time;
	for (size_t index = 0; index < HOSTS; index++)
		if (network->hosts[index].wakes && network->hosts[index].wakes <= next) {
			next = network->hosts[index].wakes;
			waking = &network->hosts[index];
		}
	if (timer != TIMERS_MOST && network->timer_times[timer] < next) {
		struct loop_timer *due = network->timers[timer];

		if (network->timer_times[timer] > limit)
			return false;
		if (network->timer_times[timer] > network->now)
			network->now = network->timer_times[timer];
		network->timer_count--;
		network->timers[timer] = network->timers[network->timer_count];
		network->timer_times[timer] = network->timer_times[network->timer_count];
		due->callback(due->owner);
		return true;
	}
	if (next > limit)
		return false;
	network->now = next > network->now ? next : network->now;
	if (waking)
		host_turn(waking);
	else
		frame_arrive(heap_pop());
	return true;
}

bool network_run(int64_t nanoseconds)
{
	int64_t limit = network->now + nanoseconds;

	network->done = false;
	while (!network->done && network_step(limit))
		;
	if (!network->done)
		network->now = limit;
	return network->done;
}

/* ---- opening, closing ---- */

void network_open(uint64_t seed)
{
	network = calloc(1, sizeof(*network));
	assert_non_null(network);
	network->die = seed * 2 + 1;
	for (unsigned warm = 0; warm < 8; warm++)
		network_roll(2);
	network->now = CLOCK_NS_PER_S;
	network->delay = 10 * CLOCK_NS_PER_US;
	network->jitter = 200 * CLOCK_NS_PER_US;
	network->byte_time = 800; /* 10 Gbit/s */
	network->wake_time = 5 * CLOCK_NS_PER_US;
	network->inbox_most = 1 << 20;
	network->window = 1 << 19;
	for (size_t index = 0; index < HOSTS; index++) {
		static const struct log quiet = { .name = "test" };
		struct host *host = &network->hosts[index];

		host->network = network;
		host->address = (struct address){ .family = ADDRESS_IP4, .bytes = { 10, 0, 0, (uint8_t)(index + 1) } };
		host->transport.base.log = &quiet;
		host->transport.domain.transport = &host->transport.base;
		host->transport.domain.device = "soft";
		host->transport.queues = soft_queue_table_open(&host->transport);
		host->transport.regions = soft_region_table_open();
		host->told = malloc(COMPLETIONS_MOST * sizeof(*host->told));
		assert_true(host->transport.queues && host->transport.regions && host->told);
	}
}

void network_close(void)
{
	for (size_t index = 0; index < HOSTS; index++) {
		struct host *host = &network->hosts[index];

		while (host->inbox_count--)
			free(host->inbox[host->inbox_head++ % FRAMES_MOST]);
		while (host->transport.unwanted) {
			struct soft_region *region = host->transport.unwanted;

			host->transport.unwanted = region->next;
			soft_region_free(region);
		}
		soft_queue_table_close(host->transport.queues);
		soft_region_table_close(host->transport.regions);
		free(host->told);
	}
	while (network->heap_count)
		free(network->heap[--network->heap_count]);
	while (network->spare_count)
		free(network->spare[--network->spare_count]);
	free(network);
	network = NULL;
}

/* ---- what the queue pairs ask of the rest of the backend ---- */

void __wrap_soft_transmit(struct soft_transport *transport, const struct soft_path *path, const struct packet *packet);
void __wrap_soft_transmit(struct soft_transport *transport, const struct soft_path *path, const struct packet *packet)
{
	struct host *from = host_of(transport);
	struct host *to = &network->hosts[from == &network->hosts[0]];
	struct packet copy = *packet;

	assert_int_equal(packet->pad, packet_pad(packet->length));
	if (!address_same_host(&path->peer, &to->address) && !address_is_multicast(&path->peer))
		return;
	if (!network->tap || network->tap(network, from, &copy))
		network_send_packet(from, to, &copy);
}

void __wrap_soft_flush(struct soft_transport *transport);
void __wrap_soft_flush(struct soft_transport *transport)
{
	(void)transport;
}

void __wrap_soft_complete(struct soft_endpoint *endpoint, const struct completion *completion, unsigned raw);
void __wrap_soft_complete(struct soft_endpoint *endpoint, const struct completion *completion, unsigned raw)
{
	struct host *host = host_of(soft_of(endpoint->base.transport));

	assert_true(host->told_count < COMPLETIONS_MOST);
	host->told[host->told_count++] = (struct told){ .endpoint = endpoint, .completion = *completion, .raw = raw };
}

void __wrap_soft_tell_failure(struct soft_endpoint *endpoint, const char *cause, const char *code_name, int code);
void __wrap_soft_tell_failure(struct soft_endpoint *endpoint, const char *cause, const char *code_name, int code)
{
	struct host *host = host_of(soft_of(endpoint->base.transport));

	(void)code_name;
	(void)code;
	host->failures++;
	host->failure = cause;
}

void __wrap_soft_manager_heard(struct soft_endpoint *endpoint);
void __wrap_soft_manager_heard(struct soft_endpoint *endpoint)
{
	host_of(soft_of(endpoint->base.transport))->heard++;
}

size_t __wrap_soft_socket_window(const struct soft_socket *socket, size_t payload);
size_t __wrap_soft_socket_window(const struct soft_socket *socket, size_t payload)
{
	assert_non_null(socket);
	return network->window / (payload ? payload : 1);
}

uint64_t __wrap_soft_random(void);
uint64_t __wrap_soft_random(void)
{
	return (uint64_t)network_roll(UINT32_MAX) << 32 | network_roll(UINT32_MAX);
}

void __wrap_soft_reap_later(struct soft_transport *transport);
void __wrap_soft_reap_later(struct soft_transport *transport)
{
	(void)transport;
}

void __wrap_soft_enter(struct soft_transport *transport);
void __wrap_soft_enter(struct soft_transport *transport)
{
	(void)transport;
}

void __wrap_soft_leave(struct soft_transport *transport);
void __wrap_soft_leave(struct soft_transport *transport)
{
	host_deliver(host_of(transport));
	soft_queue_batch_end(transport);
	/* As if a turn of the loop followed at once. */
	host_deliver(host_of(transport));
}

void __wrap_loop_timer_stop(struct loop_timer *timer);
void __wrap_loop_timer_stop(struct loop_timer *timer)
{
	for (size_t index = 0; index < network->timer_count; index++)
		if (network->timers[index] == timer) {
			network->timer_count--;
			network->timers[index] = network->timers[network->timer_count];
			network->timer_times[index] = network->timer_times[network->timer_count];
			return;
		}
}

void __wrap_loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t nanoseconds, loop_callback *callback,
			     void *owner);
void __wrap_loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t nanoseconds, loop_callback *callback,
			     void *owner)
{
	(void)loop;
	__wrap_loop_timer_stop(timer);
	assert_true(network->timer_count < TIMERS_MOST);
	timer->callback = callback;
	timer->owner = owner;
	network->timers[network->timer_count] = timer;
	network->timer_times[network->timer_count++] = network->now + nanoseconds;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	time->tv_sec = network->now / CLOCK_NS_PER_S;
	time->tv_nsec = network->now % CLOCK_NS_PER_S;
	return 0;
}

struct soft_queue *queue_of(struct pair *pair, size_t end)
{
	return pair->ends[end].queue;
}

static void pair_agree(struct pair *pair, const struct terms *terms, size_t end, struct soft_agreement *agreement)
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

void endpoint_prepare(struct soft_endpoint *endpoint, struct host *host, enum endpoint_kind kind, uint32_t sends,
		      uint32_t receives)
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
	for (size_t end = 0; end < 2; end++)
		endpoint_prepare(&pair->ends[end], &network->hosts[end], ENDPOINT_CONNECTION, terms->depth,
				 terms->receive_depth);
	for (size_t end = 0; end < 2; end++) {
		pair_agree(pair, terms, end, &agreement);
		soft_queue_connect(queue_of(pair, end), &agreement);
		soft_queue_start(queue_of(pair, end));
	}
}

void pair_close(struct pair *pair)
{
	for (size_t end = 0; end < 2; end++) {
		soft_queue_destroy(queue_of(pair, end));
		assert_null(pair->ends[end].queue);
	}
}

struct region *region_of(size_t host, size_t length, unsigned access)
{
	struct region *region;

	assert_int_equal(soft_region_create(&network->hosts[host].transport.domain, length, access, &region),
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

enum outcome post_silently(struct soft_queue *queue, const struct work *work)
{
	struct capture capture;
	enum outcome outcome;

	capture_begin(&capture);
	outcome = soft_queue_post(queue, work, 1);
	assert_int_equal(outcome == OUTCOME_OK, !*capture_end(&capture));
	return outcome;
}

static const uint8_t zeros[PACKET_PAYLOAD_MOST];

void bench_open(struct bench *bench, unsigned reads)
{
	*bench = (struct bench){ .terms = { .psn = { 100, 200 }, .reads = reads, .no_reads = !reads }, .psn = 100 };
	network_open(1);
	pair_open(&bench->pair, &bench->terms);
	bench->region = region_of(1, 65536, REGION_REMOTE_READ | REGION_REMOTE_WRITE);
	memset(bench->region->memory, 1, 65536);
}

void bench_close(struct bench *bench)
{
	soft_region_destroy(bench->region);
	pair_close(&bench->pair);
	network_close();
}

struct packet bench_packet(const struct bench *bench, uint8_t opcode, uint32_t psn, size_t length)
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

void bench_say(struct bench *bench, uint8_t opcode, uint32_t psn, size_t length)
{
	struct packet packet = bench_packet(bench, opcode, psn, length);

	packet.pad = packet_pad(packet.length);
	network_send_packet(&network->hosts[0], &network->hosts[1], &packet);
}

void bench_run(void)
{
	network_run(100 * CLOCK_NS_PER_MS);
}
