/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/network/network.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/drops.h"
#include "core/loop.h"
#include "core/route.h"
#include "core/route_cause.h"
#include "transport/soft/wire/packet.h"
#include "transport/transport.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define WITH_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(WITH_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size)   ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

enum {
	SOCKETS = 16,
	FIRST_FD = 5000, /* above all real descriptors */
	INBOX_MAX = 4096,
	HEADERS_SIZE = 42, /* bytes of Ethernet, IPv4 and UDP headers */
	POISONED = 8192,   /* bytes after a received packet that AddressSanitizer treats as inaccessible */
	STEPS_MAX = 20000, /* steps without time passing: an endless loop */
};

struct fake_socket {
	bool open, bound, icmp_pending, gro;
	struct address address, icmp_peer;
	uint8_t quoted[NETWORK_QUOTED_MAX];
	size_t quoted_length;
	struct loop_io *io;
	struct frame *first, **last;
	size_t count, bytes;
	int64_t read_at;    /* time of the next read, if a packet is queued */
	int64_t busy_until; /* end of the processing of received packets */
	int64_t line_free;  /* end of the transmission of sent packets */
};

/* A running timer, or a packet in flight. */
struct event {
	int64_t due;
	uint64_t order;
	struct loop_timer *timer;
	struct frame *frame;
};

/* Private state. */
static struct {
	struct network network;
	uint64_t random_state;
	uint64_t order;
	int mtu, buffer;
	bool gro;    /* UDP_GRO is supported (Linux 5.0) */
	bool no_gso; /* UDP_SEGMENT fails on the interface */
	struct fake_socket sockets[SOCKETS];
	struct event *heap; /* a heap ordered by time */
	size_t count, capacity;
	unsigned drop_count;
	struct address spared;
	struct frame outgoing;
	struct frame history[NETWORK_HISTORY];
} *internal;

struct network *network;

void violation(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("violation: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	abort();
}

struct log network_log(struct errors *errors)
{
	return (struct log){
		.name = "simulated",
		.debug = true,
		.silent = !getenv("FUZZ_TRACE"),
		.errors = errors,
		.reported = network_reported,
	};
}

void network_reported(void *context, const struct error *error)
{
	if (strstr(error->cause, "defect"))
		violation("%s: %s", error->object, error->cause);
}

/* ---- opening, closing, chance ---- */

void network_open(uint64_t seed, int mtu, int buffer)
{
	internal = calloc(1, sizeof(*internal));
	if (!internal)
		abort();
	network = &internal->network;
	network->now = NETWORK_BEGIN;
	internal->random_state = seed * 2 + 1;
	internal->gro = seed & 1;
	internal->no_gso = seed & 2;
	internal->mtu = mtu;
	internal->buffer = buffer;
}

static struct frame *dequeue(struct fake_socket *fake)
{
	struct frame *frame = fake->first;

	fake->first = frame->next;
	if (!fake->first)
		fake->last = &fake->first;
	fake->count--;
	fake->bytes -= frame->length;
	fake->busy_until += network->packet_time;
	return frame;
}

void network_close(void)
{
	for (size_t index = 0; index < SOCKETS; index++)
		if (internal->sockets[index].open)
			violation("a socket is left open");
	for (size_t index = 0; index < internal->count; index++) {
		if (internal->heap[index].timer)
			violation("a timer is left running");
		free(internal->heap[index].frame);
	}
	free(internal->heap);
	free(internal);
	internal = NULL;
	network = NULL;
}

static uint64_t network_random(void)
{
	internal->random_state ^= internal->random_state >> 12;
	internal->random_state ^= internal->random_state << 25;
	internal->random_state ^= internal->random_state >> 27;
	return internal->random_state * UINT64_C(0x2545f4914f6cdd1d);
}

uint32_t network_below(uint32_t limit)
{
	return (uint32_t)(network_random() >> 32) % limit;
}

static bool chance(unsigned thousandths)
{
	return thousandths && network_below(1000) < thousandths;
}

/* ---- events: timers, and packets in flight ---- */

static bool is_earlier(const struct event *one, const struct event *other)
{
	return one->due < other->due || (one->due == other->due && one->order < other->order);
}

/* The timer's number is its index in the heap, plus 1. */
static uint64_t *heap_index(struct loop_timer *timer)
{
	return &timer->timer.number;
}

static void heap_set(size_t index, struct event event)
{
	internal->heap[index] = event;
	if (event.timer)
		*heap_index(event.timer) = index + 1;
}

static void heap_sift(size_t index)
{
	const struct event *heap = internal->heap;
	struct event event = heap[index];

	for (; index && is_earlier(&event, &heap[(index - 1) / 2]); index = (index - 1) / 2)
		heap_set(index, heap[(index - 1) / 2]);
	for (;;) {
		size_t child = 2 * index + 1;

		if (child + 1 < internal->count && is_earlier(&heap[child + 1], &heap[child]))
			child++;
		if (child >= internal->count || !is_earlier(&heap[child], &event))
			break;
		heap_set(index, heap[child]);
		index = child;
	}
	heap_set(index, event);
}

static void heap_add(struct event event)
{
	if (internal->count == internal->capacity) {
		internal->capacity = internal->capacity ? 2 * internal->capacity : 64;
		internal->heap = realloc(internal->heap, internal->capacity * sizeof(*internal->heap));
		if (!internal->heap)
			abort();
	}
	event.order = internal->order++;
	internal->heap[internal->count++] = event;
	heap_sift(internal->count - 1);
}

static struct event heap_remove(size_t index)
{
	struct event event = internal->heap[index];

	if (event.timer)
		*heap_index(event.timer) = 0;
	if (index < --internal->count) {
		internal->heap[index] = internal->heap[internal->count];
		heap_sift(index);
	}
	return event;
}

/* ---- packets ---- */

static void trace_frame(const struct frame *frame)
{
	char from[ADDRESS_TEXT_SIZE], to[ADDRESS_TEXT_SIZE];

	if (!getenv("FUZZ_TRACE"))
		return;
	fprintf(stderr, "%12.6f %s > %s, %zu:", (double)(network->now - NETWORK_BEGIN) / 1e9,
		address_host(&frame->from, from), address_host(&frame->to, to), frame->length);
	for (size_t index = 0; index < frame->length && index < 48; index++)
		fprintf(stderr, "%s%02x", index % 4 ? "" : " ", frame->bytes[index]);
	fputc('\n', stderr);
}

/* The allocation has exactly the length of the packet: a read beyond it is detected. */
static struct frame *frame_copy(const struct frame *frame)
{
	size_t size = offsetof(struct frame, bytes) + frame->length;
	struct frame *copy = malloc(size);

	if (!copy)
		abort();
	memcpy(copy, frame, size);
	copy->next = NULL;
	return copy;
}

static int64_t next_read(const struct fake_socket *fake)
{
	int64_t soon = network->now + network->read_delay;

	return soon > fake->busy_until ? soon : fake->busy_until;
}

void network_deliver(const struct frame *frame)
{
	trace_frame(frame);
	for (size_t index = 0; index < SOCKETS; index++) {
		struct fake_socket *fake = &internal->sockets[index];

		if (!fake->open || !fake->bound || !fake->io || !address_same_host(&fake->address, &frame->to))
			continue;
		if (network->receive_buffer ? fake->bytes + frame->length > network->receive_buffer
					    : fake->count == INBOX_MAX) {
			network->overflowed++;
			continue;
		}
		if (!fake->count)
			fake->read_at = next_read(fake);
		*fake->last = frame_copy(frame);
		fake->last = &(*fake->last)->next;
		fake->count++;
		fake->bytes += frame->length;
	}
}

static struct fake_socket *socket_at(const struct address *address)
{
	for (size_t index = 0; index < SOCKETS; index++)
		if (internal->sockets[index].bound && address_same_host(&internal->sockets[index].address, address))
			return &internal->sockets[index];
	return NULL;
}

/* Damage truncates a packet and inverts a bit. */
static void damage(struct frame *frame)
{
	if (!chance(network->damage))
		return;
	frame->length = network_below((uint32_t)frame->length + 1);
	if (frame->length)
		frame->bytes[network_below((uint32_t)frame->length)] ^= 0x10;
}

/* Returns when the sender has transmitted the packet. */
static int64_t transmit_end(const struct frame *frame)
{
	struct fake_socket *from = network->byte_time ? socket_at(&frame->from) : NULL;
	int64_t start = network->now;

	if (!from)
		return start;
	if (from->line_free > start)
		start = from->line_free;
	from->line_free = start + (int64_t)(frame->length + HEADERS_SIZE) * network->byte_time / 1000;
	return from->line_free;
}

static void transmit(const struct frame *frame)
{
	unsigned copies = 1 + chance(network->repeat);
	int64_t due = transmit_end(frame) + network->delay;

	while (copies--) {
		struct frame *copy;
		int64_t extra = 0;

		if (chance(network->loss)) {
			network->lost++;
			continue;
		}
		if (copies || chance(network->reorder))
			extra = network_below((uint32_t)network->jitter + 1);
		if (due + extra == network->now && !network->damage) {
			network_deliver(frame);
			continue;
		}
		copy = frame_copy(frame);
		damage(copy);
		heap_add((struct event){ .due = due + extra, .frame = copy });
	}
}

void network_send(const struct frame *frame)
{
	struct frame *slot = &internal->history[network->sent++ % NETWORK_HISTORY];

	memcpy(slot, frame, offsetof(struct frame, bytes) + frame->length);
	if (network->intercept && network->intercept(network->intercept_owner, frame))
		return;
	if (internal->drop_count && !address_same_host(&internal->spared, &frame->from) &&
	    !address_same_host(&internal->spared, &frame->to)) {
		internal->drop_count--;
		return;
	}
	transmit(frame);
}

void network_append_icrc(struct frame *frame, const struct icrc_table *table)
{
	struct icrc_flow flow;

	icrc_flow_prepare(&flow, frame->from.family == ADDRESS_IP4 ? ICRC_IP4 : ICRC_IP6, frame->from.bytes,
			  frame->to.bytes, frame->from.port, UDP_PORT_ROCE);
	icrc_store(frame->bytes + frame->length,
		   icrc_compute(table, &flow, frame->identification, frame->bytes, frame->length, NULL, 0, 0));
	frame->length += ICRC_SIZE;
}

void network_drop_next(unsigned packets, const struct address *spared)
{
	internal->drop_count = packets;
	internal->spared = *spared;
}

void network_port_unreachable(const struct address *peer, const uint8_t *quoted, size_t length)
{
	for (size_t index = 0; index < SOCKETS; index++) {
		internal->sockets[index].icmp_pending = internal->sockets[index].open;
		internal->sockets[index].icmp_peer = *peer;
		internal->sockets[index].quoted_length = length;
		memcpy(internal->sockets[index].quoted, quoted, length);
	}
}

const struct frame *network_sent_frame(unsigned back)
{
	return back < NETWORK_HISTORY && back < network->sent
		       ? &internal->history[(network->sent - 1 - back) % NETWORK_HISTORY]
		       : NULL;
}

/* ---- time ---- */

static bool read_sockets_once(void)
{
	bool any = false;

	for (size_t index = 0; index < SOCKETS; index++) {
		struct fake_socket *fake = &internal->sockets[index];

		if (!fake->open || !fake->io || !((fake->count && fake->read_at <= network->now) || fake->icmp_pending))
			continue;
		fake->busy_until = network->now;
		fake->io->callback(fake->io->context);
		fake->read_at = next_read(fake);
		any = true;
	}
	return any;
}

void network_read_sockets(void)
{
	while (read_sockets_once())
		;
}

static bool run_next_due(void)
{
	struct event event;

	if (!internal->count || internal->heap[0].due > network->now)
		return false;
	event = heap_remove(0);
	if (event.timer) {
		event.timer->callback(event.timer->context);
	} else {
		network_deliver(event.frame);
		free(event.frame);
	}
	return true;
}

/* Returns INT64_MAX if no event is left. */
static int64_t next_due(void)
{
	int64_t next = internal->count ? internal->heap[0].due : INT64_MAX;

	for (size_t index = 0; index < SOCKETS; index++) {
		const struct fake_socket *fake = &internal->sockets[index];

		if (fake->open && fake->io && fake->count && fake->read_at < next)
			next = fake->read_at;
	}
	return next;
}

void network_run_due(void)
{
	for (unsigned steps = 0; read_sockets_once() || run_next_due(); steps++)
		if (steps == STEPS_MAX)
			violation("no end of packets and timers while no time passes");
}

static void set_time(int64_t time)
{
	if (time > network->now)
		network->now = time;
}

bool network_tick(void)
{
	int64_t next = next_due();

	if (next == INT64_MAX)
		return false;
	set_time(next);
	network_run_due();
	return true;
}

void network_advance(int64_t nanoseconds, unsigned timers)
{
	int64_t end = network->now + nanoseconds;

	network_run_due();
	while (timers-- && !network->done && next_due() <= end)
		network_tick();
	if (!network->done && next_due() > end)
		network->now = end;
}

bool network_run(int64_t nanoseconds)
{
	network->done = false;
	network_advance(nanoseconds, UINT32_MAX);
	return network->done;
}

void network_drain(void)
{
	network_run_due();
	while (network_tick())
		;
}

/* ---- the loop ---- */

void __wrap_loop_timer_stop(struct loop_timer *timer)
{
	if (*heap_index(timer))
		heap_remove(*heap_index(timer) - 1);
}

void __wrap_loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t nanoseconds, loop_callback *callback,
			     void *context)
{
	__wrap_loop_timer_stop(timer);
	if (nanoseconds < 0)
		violation("a timer of negative time");
	timer->callback = callback;
	timer->context = context;
	heap_add((struct event){ .due = network->now + nanoseconds, .timer = timer });
}

/* There is no loop to stop here, so there is no --deadline. */

void __wrap_loop_stop(struct loop *loop)
{
}

void __wrap_loop_phase_start(struct loop *loop, struct loop_timer *timer, int64_t limit, loop_callback *callback,
			     void *context)
{
	__wrap_loop_timer_start(loop, timer, limit, callback, context);
}

const char *__wrap_loop_phase_text(const struct loop *loop, int64_t limit, char text[LOOP_PHASE_TEXT_SIZE])
{
	snprintf(text, LOOP_PHASE_TEXT_SIZE, "timed out after %" PRId64 " ns", limit);
	return text;
}

int64_t __wrap_loop_stood_still(const struct loop *loop)
{
	return 0;
}

bool __wrap_loop_deadline_passed(const struct loop *loop)
{
	return false;
}

void __wrap_loop_io_start(struct loop *loop, struct loop_io *io, int fd, loop_callback *callback, void *context)
{
	io->callback = callback;
	io->context = context;
	internal->sockets[fd - FIRST_FD].io = io;
}

void __wrap_loop_io_stop(struct loop_io *io)
{
	for (size_t index = 0; index < SOCKETS; index++)
		if (internal->sockets[index].io == io)
			internal->sockets[index].io = NULL;
}

/* Pollers are not needed: sockets report events. */

void __wrap_loop_poller_start(struct loop *loop, struct loop_poller *poller, loop_poll *poll, loop_poll *rest,
			      void *context)
{
}

void __wrap_loop_poller_stop(struct loop *loop, struct loop_poller *poller)
{
}

/* ---- the system ---- */

static struct fake_socket *fake_of(int fd)
{
	return network && fd >= FIRST_FD && fd < FIRST_FD + SOCKETS ? &internal->sockets[fd - FIRST_FD] : NULL;
}

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	if (!network)
		return __real_clock_gettime(clock, time);
	time->tv_sec = network->now / CLOCK_NS_PER_S;
	time->tv_nsec = network->now % CLOCK_NS_PER_S;
	return 0;
}

ssize_t __real_getrandom(void *buffer, size_t length, unsigned flags);
ssize_t __wrap_getrandom(void *buffer, size_t length, unsigned flags)
{
	uint8_t *bytes = buffer;

	if (!network)
		return __real_getrandom(buffer, length, flags);
	for (size_t index = 0; index < length; index++)
		bytes[index] = (uint8_t)(network_random() >> 56);
	return (ssize_t)length;
}

int __wrap_socket(int domain, int type, int protocol)
{
	for (int index = 0; index < SOCKETS; index++)
		if (!internal->sockets[index].open) {
			internal->sockets[index] = (struct fake_socket){ .open = true };
			internal->sockets[index].last = &internal->sockets[index].first;
			return FIRST_FD + index;
		}
	errno = EMFILE;
	return -1;
}

int __real_close(int fd);
int __wrap_close(int fd)
{
	struct fake_socket *fake = fake_of(fd);

	if (!fake)
		return __real_close(fd);
	if (fake->io)
		violation("a socket is closed while the loop watches it");
	while (fake->count)
		free(dequeue(fake));
	fake->open = false;
	return 0;
}

static void address_of(const struct sockaddr *name, socklen_t length, struct address *address)
{
	struct sockaddr_storage storage = { 0 };

	memcpy(&storage, name, length);
	if (!address_from_socket(&storage, address))
		abort();
}

int __wrap_bind(int fd, const struct sockaddr *name, socklen_t length)
{
	struct fake_socket *fake = fake_of(fd);

	address_of(name, length, &fake->address);
	fake->bound = true;
	return 0;
}

int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t length)
{
	struct fake_socket *fake = fake_of(fd);

	if (level == IPPROTO_UDP && option == UDP_GRO) {
		/* Kernels before 5.0 do not support it. */
		if (!internal->gro) {
			errno = ENOPROTOOPT;
			return -1;
		}
		fake->gro = true;
	}
	return 0;
}

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *length)
{
	memcpy(value, &internal->buffer, sizeof(internal->buffer));
	return 0;
}

/* Interface 1 has 127.0.0.0/8, interface 3 10.0.1.0/24, interface 2 all others. */
struct route_link __wrap_route_link(int fd, unsigned interface)
{
	return (struct route_link){ .losses = 0 };
}

int __wrap_route_find(int fd, unsigned vrf, const struct address *peer, const struct address *source,
		      struct route *route)
{
	*route = (struct route){
		.source = *source,
		.interface = address_is_loopback(source)			      ? ROUTE_LOOPBACK
			     : source->family == ADDRESS_IP4 && source->bytes[2] == 1 ? 3
										      : 2,
		.mtu = (uint32_t)internal->mtu,
	};
	return network->route_error;
}

/* The kernel's tables do not have this network. */
bool __wrap_route_cause(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	network->route_causes++;
	log_text(text, ROUTE_CAUSE_SIZE, "%s", network->route_cause ? network->route_cause : "");
	return *text;
}

/* Nor do its counters, which take half of the walk's time. */
void __wrap_drops_read(struct drops *drops)
{
	(void)drops;
}

bool __wrap_drops_since(const struct drops *first, char text[DROPS_SIZE])
{
	(void)first;
	*text = '\0';
	return false;
}

static uint16_t segment_of(struct msghdr *header)
{
	uint16_t segment = 0;

	for (struct cmsghdr *row = CMSG_FIRSTHDR(header); row; row = CMSG_NXTHDR(header, row))
		if (row->cmsg_level == IPPROTO_UDP && row->cmsg_type == UDP_SEGMENT)
			memcpy(&segment, CMSG_DATA(row), sizeof(segment));
	return segment;
}

/* Splits a message at the segment size, as the kernel does. */
static void send_message(const struct fake_socket *fake, struct msghdr *header)
{
	struct frame *frame = &internal->outgoing;
	uint16_t segment = segment_of(header);

	frame->from = fake->address;
	frame->length = 0;
	address_of(header->msg_name, header->msg_namelen, &frame->to);
	frame->to.port = 0;
	for (size_t element = 0; element < header->msg_iovlen; element++) {
		const uint8_t *bytes = header->msg_iov[element].iov_base;
		size_t left = header->msg_iov[element].iov_len;

		while (left) {
			size_t share = segment ? segment - frame->length : left;

			share = share < left ? share : left;
			if (frame->length + share > NETWORK_FRAME_MAX)
				violation("a packet of more than %d bytes is sent", NETWORK_FRAME_MAX);
			memcpy(frame->bytes + frame->length, bytes, share);
			frame->length += share;
			bytes += share;
			left -= share;
			if (segment && frame->length == segment) {
				network_send(frame);
				frame->length = 0;
			}
		}
	}
	if (frame->length)
		network_send(frame);
}

int __wrap_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	const struct fake_socket *fake = fake_of(fd);

	for (unsigned index = 0; index < count; index++) {
		if (internal->no_gso && segment_of(&messages[index].msg_hdr)) {
			errno = EIO;
			return index ? (int)index : -1;
		}
		send_message(fake, &messages[index].msg_hdr);
	}
	return (int)count;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
	const struct fake_socket *fake = fake_of(fd);
	struct msghdr header = *message;

	send_message(fake, &header);
	return 0;
}

/* Returns true if the kernel may coalesce the frame with earlier ones. last is the length of the last one. */
static bool may_coalesce(const struct frame *frame, const struct frame *first, size_t last, size_t used, size_t room)
{
	return frame && last == first->length && frame->length <= last && frame->length &&
	       used + frame->length <= room && frame->from.port == first->from.port &&
	       address_same_host(&frame->from, &first->from);
}

static void describe_segments(struct msghdr *header, int size)
{
	struct cmsghdr *row = header->msg_control;

	if (header->msg_controllen < CMSG_SPACE(sizeof(size)))
		violation("no room for the size of coalesced packets");
	row->cmsg_level = IPPROTO_UDP;
	row->cmsg_type = UDP_GRO;
	row->cmsg_len = CMSG_LEN(sizeof(size));
	memcpy(CMSG_DATA(row), &size, sizeof(size));
	header->msg_controllen = CMSG_SPACE(sizeof(size));
}

/* Receives one packet, or several coalesced ones of a sender. The rest of the buffer is inaccessible until the next
 * call. */
static void receive_message(struct mmsghdr *message, struct fake_socket *fake)
{
	struct msghdr *header = &message->msg_hdr;
	uint8_t *buffer = header->msg_iov[0].iov_base;
	size_t room = header->msg_iov[0].iov_len;
	struct frame *first = dequeue(fake);
	size_t used = first->length < room ? first->length : room;
	size_t last = first->length;

	ASAN_UNPOISON_MEMORY_REGION(buffer, used);
	memcpy(buffer, first->bytes, used);
	while (fake->gro && may_coalesce(fake->first, first, last, used, room)) {
		struct frame *next = dequeue(fake);

		ASAN_UNPOISON_MEMORY_REGION(buffer + used, next->length);
		memcpy(buffer + used, next->bytes, next->length);
		used += next->length;
		last = next->length;
		free(next);
	}
	ASAN_POISON_MEMORY_REGION(buffer + used, room - used < POISONED ? room - used : POISONED);
	header->msg_flags = first->length > room ? MSG_TRUNC : 0;
	if (used > first->length)
		describe_segments(header, (int)first->length);
	else
		header->msg_controllen = 0;
	header->msg_namelen = (socklen_t)address_to_socket(&first->from, header->msg_name);
	message->msg_len = (unsigned)used;
	free(first);
}

int __wrap_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout)
{
	struct fake_socket *fake = fake_of(fd);
	unsigned taken = 0;

	if (fake->icmp_pending) {
		errno = ECONNREFUSED;
		return -1;
	}
	for (; taken < count && fake->first; taken++)
		receive_message(&messages[taken], fake);
	errno = EAGAIN;
	return taken ? (int)taken : -1;
}

/* Reads the error queue. */
ssize_t __wrap_recvmsg(int fd, struct msghdr *header, int flags)
{
	struct sock_extended_err error = { .ee_errno = ECONNREFUSED, .ee_origin = SO_EE_ORIGIN_ICMP };
	struct fake_socket *fake = fake_of(fd);
	struct cmsghdr *row;
	size_t length;

	if (!fake->icmp_pending) {
		errno = EAGAIN;
		return -1;
	}
	fake->icmp_pending = false;
	row = header->msg_control;
	row->cmsg_level = fake->icmp_peer.family == ADDRESS_IP4 ? IPPROTO_IP : IPPROTO_IPV6;
	row->cmsg_type = fake->icmp_peer.family == ADDRESS_IP4 ? IP_RECVERR : IPV6_RECVERR;
	row->cmsg_len = CMSG_LEN(sizeof(error));
	memcpy(CMSG_DATA(row), &error, sizeof(error));
	header->msg_controllen = CMSG_SPACE(sizeof(error));
	address_to_socket(&fake->icmp_peer, header->msg_name);
	length = fake->quoted_length < header->msg_iov[0].iov_len ? fake->quoted_length : header->msg_iov[0].iov_len;
	memcpy(header->msg_iov[0].iov_base, fake->quoted, length);
	return (ssize_t)length;
}
