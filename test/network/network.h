/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine under the soft transport as the fuzzer plays it: sockets, interfaces, random numbers, time and the loop,
 * all replaced at link time (world.wrap). Everything above them is the real thing, so a packet enters through
 * recvmmsg(2) as in life. Nothing here depends on the day or the machine: the same input does the same again.
 */
#ifndef TEST_FUZZ_NETWORK_H
#define TEST_FUZZ_NETWORK_H

#include "core/address.h"

enum {
	NETWORK_FRAME_MOST = 4400,
	NETWORK_TRAIL = 64, /* packets remembered */
	NETWORK_QUOTED_MOST = 128,
};

struct frame {
	struct frame *next;
	struct address from, to;
	uint16_t identification; /* of the IP header, as its ICRC says */
	size_t length;
	uint8_t bytes[NETWORK_FRAME_MOST];
};

/* mtu: of all interfaces. buffer: bytes that a socket's buffer is said to hold. */
void network_open(uint64_t seed, int mtu, int buffer);
void network_close(void);

/* Puts a packet into the sockets bound to frame->to; it is copied. */
void network_deliver(const struct frame *frame);
/* The next packets that a transport sends are lost, but for those from and to the spared address. */
void network_lose(unsigned packets, const struct address *spared);
/* Shows each packet that a transport sends to hold(): if that returns true, it is not delivered. */
void network_hold(bool (*hold)(void *owner, const struct frame *frame), void *owner);
/*
 * An ICMP error comes back to every socket: nothing holds the port at that address. It quotes at most
 * NETWORK_QUOTED_MOST bytes of what was sent there, true or not.
 */
void network_refuse(const struct address *peer, const uint8_t *quoted, size_t length);

/* How many packets the transports have sent, and the one that was sent that many before the last; NULL: too old. */
uint64_t network_sent(void);
const struct frame *network_trail(unsigned back);

/* Lets everything happen that is due now. */
void network_settle(void);
/* Lets nanoseconds pass, but no more than so many timers. */
void network_pass(int64_t nanoseconds, unsigned timers);
/* Lets time pass up to the next timer; false if there is none. */
bool network_tick(void);
int64_t network_now(void);

/* Errors that were told in all, but for those of a quiet log. */
unsigned network_complaints(void);

/* Those of them that are about who asked for a connection and never had it, which are no failure of a server that
 * stays. */
unsigned network_strangers(void);

/* What must never happen: says so and aborts. */
_Noreturn void violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
