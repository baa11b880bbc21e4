/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tests' simulated network. Sockets, interfaces, random numbers, time and the loop are replaced at link time
 * (network.wrap). The code above them is the program's: packets enter through recvmmsg(2) and leave through
 * sendmmsg(2). A run depends only on its seed.
 */
#pragma once

#include <stddef.h>

#include "core/address.h"
#include "core/clock.h"
#include "core/log.h"
#include "transport/soft/wire/icrc.h"

enum {
	NETWORK_FRAME_MAX = 4400,
	NETWORK_HISTORY = 64, /* sent packets kept */
	NETWORK_QUOTED_MAX = 128,
};

#define NETWORK_BEGIN (1000 * CLOCK_NS_PER_S) /* virtual time of network_open() */

struct frame {
	struct frame *next;
	struct address from, to;
	uint16_t identification; /* the IP header's, for the ICRC */
	size_t length;
	uint8_t bytes[NETWORK_FRAME_MAX];
};

/* After network_open() packets arrive at once, and sockets are read without delay. */
struct network {
	int64_t now;
	/* Probabilities in thousandths. */
	unsigned loss, repeat, reorder, damage;
	int64_t delay;		 /* one way */
	int64_t jitter;		 /* the maximum, for reordered and repeated packets */
	int64_t byte_time;	 /* picoseconds per byte on the line of the sender */
	int64_t read_delay;	 /* from arrival to reading the socket */
	int64_t packet_time;	 /* to receive one packet */
	int route_error;	 /* errno of each route look-up; 0: there is a route */
	const char *route_cause; /* the kernel's tables' explanation; NULL: none */
	unsigned route_causes;	 /* requested */
	size_t receive_buffer;	 /* bytes in the receive buffer of a socket; 0: no limit */
	uint64_t sent, lost, overflowed;
	/* Called for each packet that a transport sends. true: the network drops it. */
	bool (*intercept)(void *context, const struct frame *frame);
	void *intercept_owner;
	bool done; /* ends network_run() */
};

extern struct network *network; /* NULL: time, random numbers and close(2) are the system's */

/* mtu: all interfaces'. buffer: the value of SO_RCVBUF. */
void network_open(uint64_t seed, int mtu, int buffer);
void network_close(void);

/* Returns a random number below limit, which is not 0. */
uint32_t network_below(uint32_t limit);

/* Appends the ICRC to the frame. */
void network_append_icrc(struct frame *frame, const struct icrc_table *table);
/* Copies the packet into the receive buffers of the sockets bound to frame->to. */
void network_deliver(const struct frame *frame);
/* Sends a packet as a transport does: counted, delayed, possibly lost. */
void network_send(const struct frame *frame);
/* Drops the next packets that transports send, except those from and to the spared address. */
void network_drop_next(unsigned packets, const struct address *spared);
/* Delivers ICMP port unreachable to all sockets. It quotes at most NETWORK_QUOTED_MAX bytes, which need not have been
 * sent. */
void network_port_unreachable(const struct address *peer, const uint8_t *quoted, size_t length);

/* Returns the packet sent back packets before the last one, or NULL if it is not kept. */
const struct frame *network_sent_frame(unsigned back);

/* Calls the loop callbacks of all readable sockets. */
void network_read_sockets(void);
/* Runs all timers and packets that are due. */
void network_run_due(void);
/* Advances time by nanoseconds, or until that many timers or packets have run. */
void network_advance(int64_t nanoseconds, unsigned timers);
/* Advances time to the next timer or packet. Returns false if there is none. */
bool network_tick(void);
/* Advances time by nanoseconds, or until network->done is set. Returns network->done. */
bool network_run(int64_t nanoseconds);
/* Advances time until no timer and no packet is left. */
void network_drain(void);

/*
 * A run's log: it keeps the errors, and prints them and its trace only if FUZZ_TRACE is in the environment. An error
 * that reports a defect of the program is a violation.
 */
struct log network_log(struct errors *errors);
/* That check, for a log with its own function. */
void network_reported(void *context, const struct error *error);

/* Prints a violated invariant and aborts. */
_Noreturn void violation(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same if the call's outcome is not OUTCOME_OK. */
#define MUST(call) ((call) ? violation("%s fails", #call) : (void)0)
