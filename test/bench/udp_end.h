/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A UDP socket on 127.0.0.1, for programs that measure the machine's limits. It is not connected, like the socket of a
 * server with many peers.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "test/bench/need.h"

enum {
	LONGEST_MS = 10000, /* of a wait, in case of a loss */
};

struct udp_end {
	int fd;
	int epoll; /* -1: polls */
	struct sockaddr_in peer;
};

static inline void udp_open(struct udp_end *end, bool sleeps)
{
	struct sockaddr_in local = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct epoll_event event = { .events = EPOLLIN };

	end->fd = socket(AF_INET, SOCK_DGRAM, 0);
	need(end->fd >= 0 && !bind(end->fd, (struct sockaddr *)&local, sizeof(local)), "socket");
	end->epoll = -1;
	if (!sleeps)
		return;
	end->epoll = epoll_create1(0);
	need(end->epoll >= 0 && !epoll_ctl(end->epoll, EPOLL_CTL_ADD, end->fd, &event), "epoll");
}

/* Each learns the other's address. */
static inline void udp_introduce(struct udp_end *one, struct udp_end *other)
{
	socklen_t length = sizeof(one->peer);

	need(!getsockname(one->fd, (struct sockaddr *)&other->peer, &length), "getsockname");
	need(!getsockname(other->fd, (struct sockaddr *)&one->peer, &length), "getsockname");
}

static inline void udp_wait(const struct udp_end *end)
{
	struct epoll_event event;

	need(end->epoll < 0 || epoll_wait(end->epoll, &event, 1, LONGEST_MS) == 1, "epoll_wait");
}
