/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulated network of the tests: sockets, interfaces, random numbers, time and the loop, all replaced at link time
 * (network.wrap). What stands above them in the program is the real thing: a packet enters through recvmmsg(2) and
 * leaves through sendmmsg(2). Nothing here depends on the day or the machine: the same seed does the same again.
 *
 * unit tests: around the connection manager (cm.h) and around queue pairs (qp.h); walk and fuzz: two whole transports.
 */
#ifndef TEST_NETWORK_NETWORK_H
#define TEST_NETWORK_NETWORK_H

#include <stddef.h>

#include "core/address.h"
#include "core/clock.h"
#include "transport/soft/wire/icrc.h"

enum {
	NETWORK_FRAME_MOST = 4400,
	NETWORK_TRAIL = 64, /* packets remembered */
	NETWORK_QUOTED_MOST = 128,
};

#define NETWORK_BEGIN (1000 * CLOCK_NS_PER_S) /* the time at first */

struct frame {
	struct frame *next;
	struct address from, to;
	uint16_t identification; /* of the IP header, as its ICRC says */
	size_t length;
	uint8_t bytes[NETWORK_FRAME_MOST];
};

/* After network_open() every packet arrives at once, and is looked at as soon as time may pass. */
struct network {
	int64_t now;
	/* Thousandths of all packets. */
	unsigned loss, repeat, reorder, damage;
	int64_t delay;	     /* one way */
	int64_t jitter;	     /* at most, of a reordered or repeated packet */
	int64_t byte_time;   /* picoseconds on the line of the sender */
	int64_t wake_time;   /* from a packet's arrival to the look at its socket */
	int64_t packet_time; /* that it costs to take one */
	size_t room;	     /* bytes that a socket holds; 0: any */
	uint64_t sent, lost, overflowed;
	/* Sees each packet that a transport sends; if it returns true, the packet goes no further. */
	bool (*hold)(void *owner, const struct frame *frame);
	void *hold_owner;
	bool done; /* ends network_run() */
};

extern struct network *network; /* NULL: the functions of network.wrap are those of the system */

/* mtu: of all interfaces. buffer: bytes that a socket's buffer is said to hold. */
void network_open(uint64_t seed, int mtu, int buffer);
void network_close(void);

/* From here on chance is as after network_open() with that seed. */
void network_seed(uint64_t seed);
uint64_t network_random(void);
/* Less than sides, which is not 0. */
uint32_t network_roll(uint32_t sides);

/* Appends the ICRC of a packet made by hand. */
void network_seal(struct frame *frame, const struct icrc_table *table);
/* Puts a packet into the sockets bound to frame->to; it is copied. */
void network_deliver(const struct frame *frame);
/* As a transport would: counted, lost, late, ... */
void network_send(const struct frame *frame);
/* The next packets that a transport sends are lost, but for those from and to the spared address. */
void network_lose(unsigned packets, const struct address *spared);
/*
 * An ICMP error comes back to every socket: nothing holds the port at that address. It quotes at most
 * NETWORK_QUOTED_MOST bytes of what was sent there, true or not.
 */
void network_refuse(const struct address *peer, const uint8_t *quoted, size_t length);

/* The packet that was sent that many before the last; NULL: too old. */
const struct frame *network_trail(unsigned back);

/* Has every socket read that holds something. */
void network_read(void);
/* Lets everything happen that is due now. */
void network_settle(void);
/* Lets nanoseconds pass, but no more than so many timers. */
void network_pass(int64_t nanoseconds, unsigned timers);
/* Lets time pass up to the next timer; false if there is none. */
bool network_tick(void);
/* Lets nanoseconds pass, or less if somebody sets network->done. Returns that. */
bool network_run(int64_t nanoseconds);
/* Lets time pass until nothing is due any more. */
void network_drain(void);

/* What must never happen: says so and aborts. */
_Noreturn void violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
