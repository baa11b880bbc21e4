/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * udp_echo poll|sleep COUNT SIZE: the minimum cost of a soft rping. Two processes exchange the datagrams of a ping of
 * SIZE bytes over 127.0.0.1, COUNT times, and do nothing else: no headers, no checksum, no other memory. Prints the
 * microseconds per ping.
 *
 *   poll    receives without waiting, again and again
 *   sleep   waits for each datagram in epoll_wait()
 *
 * The rarely requested acknowledgements are left out.
 *
 * The client has processor 0 for itself, the server processor 1, if there are two.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "test/bench/udp_end.h"

enum {
	STEPS = 6,
	DATAGRAMS_MAX = 2, /* per step */
	PAYLOAD_MAX = 4096,
	HEADER = 12,
	ICRC = 4,
	ADVERTISEMENT = HEADER + 16 + ICRC,
	READ_REQUEST = HEADER + 16 + ICRC,
	READ_RESPONSE = HEADER + 4 + ICRC,  /* without the ping */
	WRITE_REQUEST = HEADER + 16 + ICRC, /* as well */
	WARM_UP = 100			    /* pings that are not timed */
};

/* The datagrams of each step, alternately the client's and the server's. */
struct step {
	size_t count;
	size_t sizes[DATAGRAMS_MAX];
};

/* A missing or forbidden processor is not an error. */
static void stay_on(size_t processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void fill(struct step steps[STEPS], size_t size)
{
	size_t padded = (size + 3) & ~(size_t)3;
	const struct step every[STEPS] = {
		{ 1, { ADVERTISEMENT } }, { 1, { READ_REQUEST } },  { 1, { READ_RESPONSE + padded } },
		{ 1, { ADVERTISEMENT } }, { 1, { ADVERTISEMENT } }, { 2, { WRITE_REQUEST + padded, ADVERTISEMENT } },
	};

	memcpy(steps, every, sizeof(every));
}

static void send_step(const struct udp_end *end, const struct step *step)
{
	static uint8_t bytes[PAYLOAD_MAX + WRITE_REQUEST];
	struct sockaddr_in peer = end->peer;
	struct iovec elements[DATAGRAMS_MAX];
	struct mmsghdr headers[DATAGRAMS_MAX];

	if (step->count == 1) {
		if (sendto(end->fd, bytes, step->sizes[0], 0, (struct sockaddr *)&peer, sizeof(peer)) < 0)
			die("udp_echo: sendto");
		return;
	}
	for (size_t index = 0; index < step->count; index++) {
		elements[index] = (struct iovec){ bytes, step->sizes[index] };
		headers[index].msg_hdr = (struct msghdr){
			.msg_name = &peer,
			.msg_namelen = sizeof(peer),
			.msg_iov = &elements[index],
			.msg_iovlen = 1,
		};
	}
	if (sendmmsg(end->fd, headers, (unsigned)step->count, 0) != (int)step->count)
		die("udp_echo: sendmmsg");
}

static void receive_step(const struct udp_end *end, const struct step *step)
{
	uint8_t bytes[PAYLOAD_MAX + WRITE_REQUEST];
	struct sockaddr_in from;

	for (size_t left = step->count; left;) {
		socklen_t length = sizeof(from);

		udp_wait(end);
		while (left &&
		       recvfrom(end->fd, bytes, sizeof(bytes), MSG_DONTWAIT, (struct sockaddr *)&from, &length) >= 0)
			left--;
		if (left && errno != EAGAIN)
			die("udp_echo: recvfrom");
	}
}

static void exchange(const struct udp_end *end, const struct step steps[STEPS], bool server, long count)
{
	for (long ping = 0; ping < count; ping++)
		for (size_t step = 0; step < STEPS; step++)
			(step % 2 == server ? send_step : receive_step)(end, &steps[step]);
}

static void serve(const struct udp_end *end, const struct step steps[STEPS], long count)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	stay_on(1);
	exchange(end, steps, true, WARM_UP + count);
	_exit(0);
}

static int64_t run(bool sleeps, const struct step steps[STEPS], long count)
{
	struct udp_end client, server;
	int64_t start;
	pid_t child;

	udp_open(&client, sleeps);
	udp_open(&server, sleeps);
	udp_introduce(&client, &server);
	child = fork();
	if (child < 0)
		die("udp_echo: fork");
	if (!child)
		serve(&server, steps, count);
	stay_on(0);
	exchange(&client, steps, false, WARM_UP);
	start = clock_now();
	exchange(&client, steps, false, count);
	start = clock_now() - start;
	waitpid(child, NULL, 0);
	return start;
}

int main(int argc, char **argv)
{
	bool sleeps = argc > 1 && !strcmp(argv[1], "sleep");
	long count = argc == 4 ? atol(argv[2]) : 0;
	long size = count ? atol(argv[3]) : 0;
	struct step steps[STEPS];

	if (count < 1 || size < 1 || size > PAYLOAD_MAX || (!sleeps && strcmp(argv[1], "poll"))) {
		fprintf(stderr, "usage: udp_echo poll|sleep COUNT SIZE\n");
		return 2;
	}
	fill(steps, (size_t)size);
	printf("%.3f\n", (double)run(sleeps, steps, count) / (double)count / (double)CLOCK_NS_PER_US);
	return 0;
}
