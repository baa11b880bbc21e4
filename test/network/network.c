/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/fuzz/network.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/errqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"

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
	FIRST_FD = 5000, /* far above the real ones */
	TIMERS = 256,
	INBOX_MOST = 4096,
	STORM = 20000, /* calls without time passing: something answers itself for ever */
};

struct fake_socket {
	bool open, bound, refused, coalesces;
	struct address address, connected, refuser;
	uint8_t quoted[NETWORK_QUOTED_MOST];
	size_t quoted_length;
	struct loop_io *io;
	struct frame *first, **last;
	size_t count;
};

struct fake_timer {
	struct loop_timer *timer;
	int64_t due;
	uint64_t order;
};

struct network {
	int64_t now;
	uint64_t die;
	uint64_t order;
	int mtu, buffer;
	bool coalesces; /* as kernels since release 5.0 do on request */
	bool whole;	/* the interface takes no messages of several packets */
	struct fake_socket sockets[SOCKETS];
	struct fake_timer timers[TIMERS];
	size_t timer_count;
	unsigned lose;
	bool (*hold)(void *owner, const struct frame *frame);
	void *hold_owner;
	struct address spared;
	uint64_t sent;
	struct frame trail[NETWORK_TRAIL];
};

static struct network *network; /* NULL: the functions below are those of the system */
static unsigned complaints;	/* told so far */
static unsigned strangers;	/* of them about peers that never got connected */

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

/* ---- opening, closing ---- */

void network_open(uint64_t seed, int mtu, int buffer)
{
	network = calloc(1, sizeof(*network));
	if (!network)
		abort();
	network->now = 1000 * CLOCK_NS_PER_S;
	network->die = seed * 2 + 1;
	network->coalesces = seed & 1;
	network->whole = seed & 2;
	network->mtu = mtu;
	network->buffer = buffer;
}

static void empty(struct fake_socket *fake)
{
	while (fake->first) {
		struct frame *frame = fake->first;

		fake->first = frame->next;
		free(frame);
	}
	fake->last = &fake->first;
	fake->count = 0;
}

void network_close(void)
{
	for (size_t index = 0; index < SOCKETS; index++)
		if (network->sockets[index].open)
			violation("a socket is left open");
	if (network->timer_count)
		violation("a timer is left running");
	free(network);
	network = NULL;
}

/* ---- packets ---- */

static void trace(const struct frame *frame)
{
	char from[ADDRESS_TEXT_SIZE], to[ADDRESS_TEXT_SIZE];

	if (!getenv("FUZZ_TRACE"))
		return;
	fprintf(stderr, "%12.6f %s > %s, %zu:", (double)network->now / 1e9 - 1000, address_host(&frame->from, from),
		address_host(&frame->to, to), frame->length);
	for (size_t index = 0; index < frame->length && index < 48; index++)
		fprintf(stderr, "%s%02x", index % 4 ? "" : " ", frame->bytes[index]);
	fputc('\n', stderr);
}

void network_deliver(const struct frame *frame)
{
	trace(frame);
	for (size_t index = 0; index < SOCKETS; index++) {
		struct fake_socket *fake = &network->sockets[index];
		struct frame *copy;

		if (!fake->open || !fake->bound || !fake->io || fake->count == INBOX_MOST ||
		    !address_same_host(&fake->address, &frame->to))
			continue;
		copy = malloc(sizeof(*copy));
		if (!copy)
			abort();
		copy->next = NULL;
		copy->from = frame->from;
		copy->to = frame->to;
		copy->length = frame->length;
		memcpy(copy->bytes, frame->bytes, frame->length);
		*fake->last = copy;
		fake->last = &copy->next;
		fake->count++;
	}
}

static void transmit(const struct frame *frame)
{
	struct frame *kept = &network->trail[network->sent++ % NETWORK_TRAIL];

	memcpy(kept, frame, offsetof(struct frame, bytes) + frame->length);
	if (network->hold && network->hold(network->hold_owner, frame))
		return;
	if (network->lose && !address_same_host(&network->spared, &frame->from) &&
	    !address_same_host(&network->spared, &frame->to)) {
		network->lose--;
		return;
	}
	network_deliver(frame);
}

void network_lose(unsigned packets, const struct address *spared)
{
	network->lose = packets;
	network->spared = *spared;
}

void network_refuse(const struct address *peer, const uint8_t *quoted, size_t length)
{
	for (size_t index = 0; index < SOCKETS; index++) {
		network->sockets[index].refused = network->sockets[index].open;
		network->sockets[index].refuser = *peer;
		network->sockets[index].quoted_length = length;
		memcpy(network->sockets[index].quoted, quoted, length);
	}
}

void network_hold(bool (*hold)(void *owner, const struct frame *frame), void *owner)
{
	network->hold = hold;
	network->hold_owner = owner;
}

uint64_t network_sent(void)
{
	return network->sent;
}

const struct frame *network_trail(unsigned back)
{
	return back < NETWORK_TRAIL && back < network->sent
		       ? &network->trail[(network->sent - 1 - back) % NETWORK_TRAIL]
		       : NULL;
}

/* ---- time ---- */

int64_t network_now(void)
{
	return network->now;
}

static size_t first_timer(void)
{
	size_t first = 0;

	for (size_t index = 1; index < network->timer_count; index++) {
		const struct fake_timer *one = &network->timers[index], *other = &network->timers[first];

		if (one->due < other->due || (one->due == other->due && one->order < other->order))
			first = index;
	}
	return first;
}

static bool read_sockets(void)
{
	bool any = false;

	for (size_t index = 0; index < SOCKETS; index++) {
		struct fake_socket *fake = &network->sockets[index];

		if (!fake->open || !fake->io || !(fake->count || fake->refused))
			continue;
		fake->io->callback(fake->io->owner);
		any = true;
	}
	return any;
}

static bool run_timer(void)
{
	size_t first = first_timer();
	struct loop_timer *timer;

	if (!network->timer_count || network->timers[first].due > network->now)
		return false;
	timer = network->timers[first].timer;
	network->timers[first] = network->timers[--network->timer_count];
	timer->callback(timer->owner);
	return true;
}

void network_settle(void)
{
	for (unsigned steps = 0; read_sockets() || run_timer(); steps++)
		if (steps == STORM)
			violation("no end of packets and timers while no time passes");
}

bool network_tick(void)
{
	if (!network->timer_count)
		return false;
	if (network->timers[first_timer()].due > network->now)
		network->now = network->timers[first_timer()].due;
	network_settle();
	return true;
}

void network_pass(int64_t nanoseconds, unsigned timers)
{
	int64_t end = network->now + nanoseconds;

	network_settle();
	while (timers-- && network->timer_count && network->timers[first_timer()].due <= end) {
		network->now = network->timers[first_timer()].due;
		network_settle();
	}
	if (!network->timer_count || network->timers[first_timer()].due > end)
		network->now = end;
}

/* ---- the loop ---- */

void __wrap_loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t nanoseconds, loop_callback *callback,
			     void *owner);
void __wrap_loop_timer_stop(struct loop_timer *timer);
void __wrap_loop_io_start(struct loop *loop, struct loop_io *io, int fd, loop_callback *callback, void *owner);
void __wrap_loop_io_stop(struct loop_io *io);

void __wrap_loop_timer_stop(struct loop_timer *timer)
{
	for (size_t index = 0; index < network->timer_count; index++)
		if (network->timers[index].timer == timer) {
			network->timers[index] = network->timers[--network->timer_count];
			return;
		}
}

void __wrap_loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t nanoseconds, loop_callback *callback,
			     void *owner)
{
	(void)loop;
	__wrap_loop_timer_stop(timer);
	if (network->timer_count == TIMERS)
		violation("more than %d timers", TIMERS);
	if (nanoseconds < 0)
		violation("a timer of negative time");
	timer->callback = callback;
	timer->owner = owner;
	network->timers[network->timer_count++] = (struct fake_timer){
		.timer = timer,
		.due = network->now + nanoseconds,
		.order = network->order++,
	};
}

void __wrap_loop_io_start(struct loop *loop, struct loop_io *io, int fd, loop_callback *callback, void *owner)
{
	(void)loop;
	io->callback = callback;
	io->owner = owner;
	network->sockets[fd - FIRST_FD].io = io;
}

void __wrap_loop_io_stop(struct loop_io *io)
{
	for (size_t index = 0; index < SOCKETS; index++)
		if (network->sockets[index].io == io)
			network->sockets[index].io = NULL;
}

/* Nothing is asked whether there is something: what comes is told of. */
void __wrap_loop_poller_start(struct loop *loop, struct loop_poller *poller, loop_poll *poll, loop_poll *rest,
			      void *owner);
void __wrap_loop_poller_stop(struct loop *loop, struct loop_poller *poller);

void __wrap_loop_poller_start(struct loop *loop, struct loop_poller *poller, loop_poll *poll, loop_poll *rest,
			      void *owner)
{
	(void)loop;
	(void)poller;
	(void)poll;
	(void)rest;
	(void)owner;
}

void __wrap_loop_poller_stop(struct loop *loop, struct loop_poller *poller)
{
	(void)loop;
	(void)poller;
}

/* No timer is late here. */
void __wrap_loop_wake(struct loop *loop, int64_t nanoseconds);
void __wrap_loop_wake(struct loop *loop, int64_t nanoseconds)
{
	(void)loop;
	(void)nanoseconds;
}

/* ---- the system ---- */

static struct fake_socket *fake_of(int fd)
{
	return network && fd >= FIRST_FD && fd < FIRST_FD + SOCKETS ? &network->sockets[fd - FIRST_FD] : NULL;
}

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	if (!network)
		return __real_clock_gettime(clock, time);
	time->tv_sec = network->now / CLOCK_NS_PER_S;
	time->tv_nsec = network->now % CLOCK_NS_PER_S;
	return 0;
}

ssize_t __real_getrandom(void *buffer, size_t length, unsigned flags);
ssize_t __wrap_getrandom(void *buffer, size_t length, unsigned flags);
ssize_t __wrap_getrandom(void *buffer, size_t length, unsigned flags)
{
	uint8_t *bytes = buffer;

	if (!network)
		return __real_getrandom(buffer, length, flags);
	for (size_t index = 0; index < length; index++) {
		network->die ^= network->die >> 12;
		network->die ^= network->die << 25;
		network->die ^= network->die >> 27;
		bytes[index] = (uint8_t)((network->die * UINT64_C(0x2545f4914f6cdd1d)) >> 56);
	}
	return (ssize_t)length;
}

int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol)
{
	if (!network)
		return __real_socket(domain, type, protocol);
	for (int index = 0; index < SOCKETS; index++)
		if (!network->sockets[index].open) {
			network->sockets[index] = (struct fake_socket){ .open = true };
			network->sockets[index].last = &network->sockets[index].first;
			return FIRST_FD + index;
		}
	errno = EMFILE;
	return -1;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	struct fake_socket *fake = fake_of(fd);

	if (!fake)
		return __real_close(fd);
	if (fake->io)
		violation("a socket is closed while the loop watches it");
	empty(fake);
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

int __real_bind(int fd, const struct sockaddr *name, socklen_t length);
int __wrap_bind(int fd, const struct sockaddr *name, socklen_t length);
int __wrap_bind(int fd, const struct sockaddr *name, socklen_t length)
{
	struct fake_socket *fake = fake_of(fd);

	if (!fake)
		return __real_bind(fd, name, length);
	address_of(name, length, &fake->address);
	fake->bound = true;
	return 0;
}

int __real_connect(int fd, const struct sockaddr *name, socklen_t length);
int __wrap_connect(int fd, const struct sockaddr *name, socklen_t length);
int __wrap_connect(int fd, const struct sockaddr *name, socklen_t length)
{
	struct fake_socket *fake = fake_of(fd);

	if (!fake)
		return __real_connect(fd, name, length);
	address_of(name, length, &fake->connected);
	return 0;
}

int __real_getsockname(int fd, struct sockaddr *name, socklen_t *length);
int __wrap_getsockname(int fd, struct sockaddr *name, socklen_t *length);
int __wrap_getsockname(int fd, struct sockaddr *name, socklen_t *length)
{
	struct fake_socket *fake = fake_of(fd);
	struct sockaddr_storage storage;

	if (!fake)
		return __real_getsockname(fd, name, length);
	*length = (socklen_t)address_to_socket(&fake->address, &storage);
	memcpy(name, &storage, *length);
	return 0;
}

int __real_setsockopt(int fd, int level, int option, const void *value, socklen_t length);
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t length);
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t length)
{
	struct fake_socket *fake = fake_of(fd);

	if (!fake)
		return __real_setsockopt(fd, level, option, value, length);
	if (level == IPPROTO_UDP && option == UDP_GRO) {
		/* An old kernel refuses it. */
		if (!network->coalesces) {
			errno = ENOPROTOOPT;
			return -1;
		}
		fake->coalesces = true;
	}
	return 0;
}

int __real_getsockopt(int fd, int level, int option, void *value, socklen_t *length);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *length);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *length)
{
	if (!fake_of(fd))
		return __real_getsockopt(fd, level, option, value, length);
	memcpy(value, &network->buffer, sizeof(network->buffer));
	return 0;
}

int __real_ioctl(int fd, unsigned long request, void *argument);
int __wrap_ioctl(int fd, unsigned long request, void *argument);
int __wrap_ioctl(int fd, unsigned long request, void *argument)
{
	struct ifreq *interface = argument;

	if (!fake_of(fd))
		return __real_ioctl(fd, request, argument);
	interface->ifr_mtu = network->mtu;
	return 0;
}

int __real_getifaddrs(struct ifaddrs **list);
int __wrap_getifaddrs(struct ifaddrs **list);
int __wrap_getifaddrs(struct ifaddrs **list)
{
	static char name[] = "eth0";
	struct entry {
		struct ifaddrs base;
		struct sockaddr_storage address;
	} * entries;
	size_t count = 0;

	if (!network)
		return __real_getifaddrs(list);
	entries = calloc(SOCKETS + 1, sizeof(*entries));
	if (!entries)
		abort();
	for (size_t index = 0; index < SOCKETS; index++) {
		const struct fake_socket *fake = &network->sockets[index];

		if (!fake->open || !fake->bound)
			continue;
		address_to_socket(&fake->address, &entries[count].address);
		entries[count].base.ifa_name = name;
		entries[count].base.ifa_addr = (struct sockaddr *)&entries[count].address;
		if (count)
			entries[count - 1].base.ifa_next = &entries[count].base;
		count++;
	}
	*list = &entries[0].base;
	return 0;
}

void __real_freeifaddrs(struct ifaddrs *list);
void __wrap_freeifaddrs(struct ifaddrs *list);
void __wrap_freeifaddrs(struct ifaddrs *list)
{
	if (network)
		free(list);
	else
		__real_freeifaddrs(list);
}

unsigned __real_if_nametoindex(const char *name);
unsigned __wrap_if_nametoindex(const char *name);
unsigned __wrap_if_nametoindex(const char *name)
{
	return network ? 1 : __real_if_nametoindex(name);
}

static uint16_t segment_of(struct msghdr *header)
{
	uint16_t segment = 0;

	for (struct cmsghdr *row = CMSG_FIRSTHDR(header); row; row = CMSG_NXTHDR(header, row))
		if (row->cmsg_level == IPPROTO_UDP && row->cmsg_type == UDP_SEGMENT)
			memcpy(&segment, CMSG_DATA(row), sizeof(segment));
	return segment;
}

/* Each packet of a message, which the kernel would cut at the segment's size. */
static void send_message(const struct fake_socket *fake, struct msghdr *header)
{
	struct frame frame = { .from = fake->address };
	uint16_t segment = segment_of(header);

	address_of(header->msg_name, header->msg_namelen, &frame.to);
	frame.to.port = 0;
	for (size_t element = 0; element < header->msg_iovlen; element++) {
		const uint8_t *bytes = header->msg_iov[element].iov_base;
		size_t left = header->msg_iov[element].iov_len;

		while (left) {
			size_t share = segment ? segment - frame.length : left;

			share = share < left ? share : left;
			if (frame.length + share > NETWORK_FRAME_MOST)
				violation("a packet of more than %d bytes is sent", NETWORK_FRAME_MOST);
			memcpy(frame.bytes + frame.length, bytes, share);
			frame.length += share;
			bytes += share;
			left -= share;
			if (segment && frame.length == segment) {
				transmit(&frame);
				frame.length = 0;
			}
		}
	}
	if (frame.length)
		transmit(&frame);
}

int __real_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	const struct fake_socket *fake = fake_of(fd);

	if (!fake)
		return __real_sendmmsg(fd, messages, count, flags);
	for (unsigned index = 0; index < count; index++) {
		if (network->whole && segment_of(&messages[index].msg_hdr)) {
			errno = EIO;
			return index ? (int)index : -1;
		}
		send_message(fake, &messages[index].msg_hdr);
	}
	return (int)count;
}

ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
	const struct fake_socket *fake = fake_of(fd);
	struct msghdr header = *message;

	if (!fake)
		return __real_sendmsg(fd, message, flags);
	send_message(fake, &header);
	return 0;
}

static struct frame *take_first(struct fake_socket *fake)
{
	struct frame *frame = fake->first;

	fake->first = frame->next;
	if (!fake->first)
		fake->last = &fake->first;
	fake->count--;
	return frame;
}

/* Whether the kernel may put a frame behind others that it coalesced, whose last one had that length. */
static bool may_join(const struct frame *frame, const struct frame *first, size_t last, size_t used, size_t room)
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

/*
 * One packet, or several that came in a row from one sender. The rest of the buffer is out of bounds while they are
 * looked at.
 */
static void fill(struct mmsghdr *message, struct fake_socket *fake)
{
	struct msghdr *header = &message->msg_hdr;
	uint8_t *buffer = header->msg_iov[0].iov_base;
	size_t room = header->msg_iov[0].iov_len;
	struct frame *first = take_first(fake);
	size_t used = first->length < room ? first->length : room;
	size_t last = first->length;

	ASAN_UNPOISON_MEMORY_REGION(buffer, room);
	memcpy(buffer, first->bytes, used);
	while (fake->coalesces && may_join(fake->first, first, last, used, room)) {
		struct frame *next = take_first(fake);

		memcpy(buffer + used, next->bytes, next->length);
		used += next->length;
		last = next->length;
		free(next);
	}
	ASAN_POISON_MEMORY_REGION(buffer + used, room - used);
	header->msg_flags = first->length > room ? MSG_TRUNC : 0;
	if (used > first->length)
		describe_segments(header, (int)first->length);
	else
		header->msg_controllen = 0;
	header->msg_namelen = (socklen_t)address_to_socket(&first->from, header->msg_name);
	message->msg_len = (unsigned)used;
	free(first);
}

int __real_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout);
int __wrap_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout);
int __wrap_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout)
{
	struct fake_socket *fake = fake_of(fd);
	unsigned taken = 0;

	if (!fake)
		return __real_recvmmsg(fd, messages, count, flags, timeout);
	if (fake->refused) {
		errno = ECONNREFUSED;
		return -1;
	}
	for (; taken < count && fake->first; taken++)
		fill(&messages[taken], fake);
	errno = EAGAIN;
	return taken ? (int)taken : -1;
}

/* The error queue. */
ssize_t __real_recvmsg(int fd, struct msghdr *header, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *header, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *header, int flags)
{
	struct sock_extended_err error = { .ee_errno = ECONNREFUSED, .ee_origin = SO_EE_ORIGIN_ICMP };
	struct fake_socket *fake = fake_of(fd);
	struct cmsghdr *row;
	size_t length;

	if (!fake)
		return __real_recvmsg(fd, header, flags);
	if (!fake->refused) {
		errno = EAGAIN;
		return -1;
	}
	fake->refused = false;
	row = header->msg_control;
	row->cmsg_level = fake->refuser.family == ADDRESS_IP4 ? IPPROTO_IP : IPPROTO_IPV6;
	row->cmsg_type = fake->refuser.family == ADDRESS_IP4 ? IP_RECVERR : IPV6_RECVERR;
	row->cmsg_len = CMSG_LEN(sizeof(error));
	memcpy(CMSG_DATA(row), &error, sizeof(error));
	header->msg_controllen = CMSG_SPACE(sizeof(error));
	address_to_socket(&fake->refuser, header->msg_name);
	length = fake->quoted_length < header->msg_iov[0].iov_len ? fake->quoted_length : header->msg_iov[0].iov_len;
	memcpy(header->msg_iov[0].iov_base, fake->quoted, length);
	return (ssize_t)length;
}

/* ---- messages ---- */

unsigned network_complaints(void)
{
	return complaints;
}

unsigned network_strangers(void)
{
	return strangers;
}

void __wrap_log_error(const struct log *log, const char *object, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void __wrap_log_errno(const struct log *log, const char *object, int error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void __wrap_log_hint(const struct log *log, const char *format, ...);
void __wrap_log_debug(const struct log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

__attribute__((format(printf, 3, 0))) static void show(bool is_complaint, const char *object, const char *format,
						       va_list arguments)
{
	char text[512];

	vsnprintf(text, sizeof(text), format, arguments);
	if (getenv("FUZZ_TRACE"))
		fprintf(stderr, "%12.6f %s%s%s\n", network ? (double)network->now / 1e9 - 1000 : 0,
			object ? object : "", object ? ": " : "", text);
	complaints += is_complaint;
	strangers += is_complaint && !strncmp(text, "accepting: ", strlen("accepting: "));
	/* In our own words, not in what is quoted. */
	if (strstr(format, "defect"))
		violation("%s: %s", object ? object : "", text);
}

void __wrap_log_error(const struct log *log, const char *object, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	show(!log->quiet, object, format, arguments);
	va_end(arguments);
}

void __wrap_log_errno(const struct log *log, const char *object, int error, const char *format, ...)
{
	va_list arguments;

	(void)error;
	va_start(arguments, format);
	show(!log->quiet, object, format, arguments);
	va_end(arguments);
}

void __wrap_log_hint(const struct log *log, const char *format, ...)
{
	(void)log;
	(void)format;
}

/* Formatted even if nobody looks, so that its arguments are checked as well. */
void __wrap_log_debug(const struct log *log, const char *format, ...)
{
	va_list arguments;

	(void)log;
	va_start(arguments, format);
	show(false, NULL, format, arguments);
	va_end(arguments);
}
