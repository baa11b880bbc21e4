/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * udp_limit bare|checked MEGABYTES: the maximum that soft can transfer over loopback. One process sends packets as long
 * as those of a long message to another, with UDP_SEGMENT, UDP_GRO, batches and a window, and does nothing else. Prints
 * millions of bytes of payload a second.
 *
 *   bare      the bytes are not read
 *   checked   as in ucmatose: each end computes each packet's ICRC, and the receiver copies the payload to its
 *             destination and compares it
 *
 * The window is smaller than the receive buffer, so that no packet is lost: there are no retransmissions.
 */
#include <netinet/udp.h>
#include <signal.h>
#include <string.h>
#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "test/bench/udp_end.h"
#include "transport/soft/wire/icrc.h"

enum {
	HEADER = 12,
	PAYLOAD = 4096,
	PACKET = HEADER + PAYLOAD + ICRC_SIZE,
	SEGMENTS = 15, /* packets of a datagram, which is shorter than 64 KiB */
	DATAGRAMS = 4, /* per call */
	BATCH = SEGMENTS * DATAGRAMS,
	ACKNOWLEDGED = 128, /* packets, or a quarter of the window: the sender waits for half of it */
	BUFFER = 8 << 20,   /* SO_RCVBUF and SO_SNDBUF, bytes; the kernel counts the memory of a packet */
	WINDOW_MAX = 1000,
	PATTERN = 1 << 20, /* a message, and its reference */
	TARGET = 4 << 20,  /* destination of received messages */
};

struct plan {
	bool checks;
	uint64_t packets;
	uint64_t window; /* packets */
	struct icrc_table icrc;
	uint8_t pattern[PATTERN];
	uint8_t target[TARGET];
};

/* Arguments for sendmmsg() or recvmmsg(). control has the size of a datagram's packets. */
struct batch {
	struct mmsghdr datagrams[DATAGRAMS];
	struct iovec elements[3 * BATCH];
	_Alignas(struct cmsghdr) uint8_t control[DATAGRAMS][CMSG_SPACE(sizeof(int))];
	struct sockaddr_in peer;
	uint8_t headers[BATCH][HEADER];
	uint8_t trailers[BATCH][ICRC_SIZE];
	uint8_t buffers[DATAGRAMS][1 << 16];
};

static void take_buffers(const struct udp_end *end, struct plan *plan)
{
	const int size = BUFFER, one = 1;
	int received;
	socklen_t length = sizeof(received);

	/* Beyond net.core.rmem_max: needs a privilege. */
	if (setsockopt(end->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(end->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	setsockopt(end->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	need(!setsockopt(end->fd, IPPROTO_UDP, UDP_GRO, &one, sizeof(one)), "udp_limit: UDP_GRO");
	need(!getsockopt(end->fd, SOL_SOCKET, SO_RCVBUF, &received, &length), "udp_limit: SO_RCVBUF");
	plan->window = MAX(SEGMENTS, MIN(WINDOW_MAX, (unsigned)received / 2 / PACKET));
}

/* ---- the sender ---- */

static void add_packet(const struct plan *plan, struct batch *batch, unsigned index, uint64_t number)
{
	const uint8_t *payload = plan->pattern + number * PAYLOAD % PATTERN;
	uint8_t *header = batch->headers[index], *trailer = batch->trailers[index];

	if (plan->checks) {
		uint32_t crc = icrc_update(&plan->icrc, plan->icrc.initial, header, HEADER);

		icrc_store(trailer, ~icrc_update(&plan->icrc, crc, payload, PAYLOAD));
	}
	batch->elements[3 * index] = (struct iovec){ header, HEADER };
	batch->elements[3 * index + 1] = (struct iovec){ (void *)(uintptr_t)payload, PAYLOAD };
	batch->elements[3 * index + 2] = (struct iovec){ trailer, ICRC_SIZE };
}

static void send_batch(const struct udp_end *end, const struct plan *plan, struct batch *batch, uint64_t first,
		       unsigned packets)
{
	const uint16_t segment = PACKET;
	unsigned datagrams = 0;

	for (unsigned at = 0; at < packets; at += SEGMENTS, datagrams++) {
		unsigned count = MIN(SEGMENTS, packets - at);
		struct cmsghdr *row = (struct cmsghdr *)batch->control[datagrams];

		for (unsigned i = at; i < at + count; i++)
			add_packet(plan, batch, i, first + i);
		*row = (struct cmsghdr){ CMSG_LEN(sizeof(segment)), IPPROTO_UDP, UDP_SEGMENT };
		memcpy(CMSG_DATA(row), &segment, sizeof(segment));
		batch->datagrams[datagrams].msg_hdr = (struct msghdr){
			.msg_name = &batch->peer,
			.msg_namelen = sizeof(batch->peer),
			.msg_iov = batch->elements + 3 * at,
			.msg_iovlen = 3 * count,
			.msg_control = row,
			.msg_controllen = CMSG_SPACE(sizeof(segment)),
		};
	}
	for (unsigned done = 0; done < datagrams;) {
		int count = sendmmsg(end->fd, batch->datagrams + done, datagrams - done, 0);

		need(count > 0, "udp_limit: sendmmsg");
		done += (unsigned)count;
	}
}

static void send_all(const struct udp_end *end, const struct plan *plan, struct batch *batch)
{
	const uint64_t most = MIN(BATCH, plan->window / 2);
	uint64_t sent = 0, acknowledged = 0;

	batch->peer = end->peer;
	while (acknowledged < plan->packets) {
		uint64_t count = MIN(plan->packets - sent, plan->window - (sent - acknowledged));

		/* Full batches, except the last. */
		count = MIN(count, most);
		if (count && count == MIN(most, plan->packets - sent)) {
			send_batch(end, plan, batch, sent, (unsigned)count);
			sent += count;
		} else {
			udp_wait(end);
		}
		while (recv(end->fd, &acknowledged, sizeof(acknowledged), MSG_DONTWAIT) > 0)
			;
	}
}

/* ---- the receiver ---- */

static size_t segment_of(struct msghdr *header, size_t length)
{
	struct cmsghdr *row = CMSG_FIRSTHDR(header);
	int segment = 0;

	if (row && row->cmsg_level == IPPROTO_UDP && row->cmsg_type == UDP_GRO)
		memcpy(&segment, CMSG_DATA(row), sizeof(segment));
	return segment ? (size_t)segment : length;
}

static void take_packet(struct plan *plan, uint64_t number, const uint8_t *packet)
{
	uint8_t *target = plan->target + number * PAYLOAD % TARGET, icrc[ICRC_SIZE];

	if (!plan->checks)
		return;
	icrc_store(icrc, ~icrc_update(&plan->icrc, plan->icrc.initial, packet, HEADER + PAYLOAD));
	memcpy(target, packet + HEADER, PAYLOAD);
	if (memcmp(icrc, packet + HEADER + PAYLOAD, ICRC_SIZE) ||
	    memcmp(target, plan->pattern + number * PAYLOAD % PATTERN, PAYLOAD) != 0) {
		fprintf(stderr, "udp_limit: a packet is not what was sent\n");
		_exit(1);
	}
}

/* Returns the packets. */
static uint64_t take_datagram(struct plan *plan, uint64_t number, struct msghdr *header, size_t length)
{
	const uint8_t *bytes = header->msg_iov->iov_base;
	uint64_t count = 0;

	need(segment_of(header, length) == PACKET && length % PACKET == 0, "udp_limit: UDP_GRO");
	for (; length; length -= PACKET, bytes += PACKET)
		take_packet(plan, number + count++, bytes);
	return count;
}

static unsigned receive_batch(const struct udp_end *end, struct batch *batch)
{
	int count;

	for (unsigned i = 0; i < DATAGRAMS; i++) {
		batch->elements[i] = (struct iovec){ batch->buffers[i], sizeof(batch->buffers[i]) };
		batch->datagrams[i].msg_hdr = (struct msghdr){
			.msg_iov = &batch->elements[i],
			.msg_iovlen = 1,
			.msg_control = batch->control[i],
			.msg_controllen = sizeof(batch->control[i]),
		};
	}
	udp_wait(end);
	count = recvmmsg(end->fd, batch->datagrams, DATAGRAMS, MSG_DONTWAIT, NULL);
	need(count > 0, "udp_limit: recvmmsg");
	return (unsigned)count;
}

static void receive_all(const struct udp_end *end, struct plan *plan, struct batch *batch)
{
	uint64_t received = 0, acknowledged = 0;

	while (received < plan->packets) {
		unsigned count = receive_batch(end, batch);

		for (unsigned i = 0; i < count; i++)
			received += take_datagram(plan, received, &batch->datagrams[i].msg_hdr,
						  batch->datagrams[i].msg_len);
		if (received - acknowledged < MIN(ACKNOWLEDGED, plan->window / 4) && received < plan->packets)
			continue;
		acknowledged = received;
		need(sendto(end->fd, &acknowledged, sizeof(acknowledged), 0, (const struct sockaddr *)&end->peer,
			    sizeof(end->peer)) > 0,
		     "udp_limit: sendto");
	}
}

/* Returns the nanoseconds. */
static int64_t run(struct plan *plan, struct batch *batch)
{
	struct udp_end sender, receiver;
	int64_t start;
	int status;
	pid_t child;

	udp_open(&sender, true);
	udp_open(&receiver, true);
	udp_introduce(&sender, &receiver);
	take_buffers(&receiver, plan);
	take_buffers(&sender, plan);
	child = fork();
	need(child >= 0, "udp_limit: fork");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		receive_all(&receiver, plan, batch);
		_exit(0);
	}
	start = clock_now();
	send_all(&sender, plan, batch);
	start = clock_now() - start;
	need(waitpid(child, &status, 0) == child && status == 0, "udp_limit: receiver");
	return start;
}

int main(int argc, char **argv)
{
	static struct plan plan;
	static struct batch batch;
	long megabytes = argc == 3 ? atol(argv[2]) : 0;

	plan.checks = argc > 1 && !strcmp(argv[1], "checked");
	if (megabytes < 1 || (!plan.checks && strcmp(argv[1], "bare") != 0)) {
		fprintf(stderr, "usage: udp_limit bare|checked MEGABYTES\n");
		return 2;
	}
	plan.packets = (uint64_t)megabytes * 1000000 / PAYLOAD + 1;
	icrc_prepare(&plan.icrc);
	for (size_t i = 0; i < PATTERN; i++)
		plan.pattern[i] = (uint8_t)(i * 31 + i / PAYLOAD);
	printf("%.1f\n", (double)(plan.packets * PAYLOAD) * 1000 / (double)run(&plan, &batch));
	return 0;
}
