/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the two ends of rping say to each other. One ping is this cycle:
 *
 *        client                                     server
 *          |  advertises its source     ---------->   |
 *          |  <== RDMA READ of the source =========   |
 *          |  <----------                  go-ahead   |
 *          |  advertises its sink       ---------->   |
 *          |  === RDMA WRITE of what was read ====>   |
 *          |  <----------                  go-ahead   |
 *
 * Nobody waits for the news that these have arrived (a client asks for it once in sixteen pings, so that its send queue
 * never fills): what the other end does next is the proof. Only the last go-ahead may be followed by nothing for long.
 * After half of --timeout, and before it leaves by itself, a server therefore sends a WRITE of no byte, of which the
 * client learns nothing, and whose acknowledgement tells that all before it is there.
 *
 * An advertisement is a message of 16 bytes, numbers in network order; a go-ahead is one whose bytes mean nothing:
 *
 *   0         8     12     16 bytes
 *   | address | key | size |
 *
 * The ping is text with a final 0. Stock servers write back no more than that text, ours all that was advertised: the
 * same, because a ping has only one 0. What our tools add to the stock protocol is the hello in the private data of the
 * connection (cmd/hello.h), from which a client learns how long a ping may be.
 */
#ifndef CMD_RPING_PROTOCOL_H
#define CMD_RPING_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cmd/hello.h"

enum {
	PING_PORT = 7174,
	PING_SIZE_MOST = 65535,
	PING_SIZE = 100,      /* without -S, as the man page says */
	PING_SIZE_STOCK = 64, /* without -S, as the stock program does: its server fails on more */
};

/* What a server refuses with that serves one client at a time and has one: it may be asked again. */
#define PING_BUSY "busy with another client"

enum {
	ADVERTISEMENT_SIZE = 16
};

struct advertisement {
	uint64_t address;
	uint32_t key;
	uint32_t size;
};

void advertisement_write(const struct advertisement *advertisement, uint8_t bytes[ADVERTISEMENT_SIZE]);
void advertisement_read(const uint8_t bytes[ADVERTISEMENT_SIZE], struct advertisement *advertisement);

/* Says in words why memory so advertised cannot be used for least to most bytes, or returns NULL if it can. */
const char *advertisement_fault(const struct advertisement *advertisement, uint32_t least, uint32_t most);

/*
 * The size of a client's pings: asked for with -S (0 if it was not given), with a server that said that hello, or
 * none (NULL). Returns 0 if the server takes no pings of the size asked for.
 */
uint32_t ping_size(uint32_t asked, const struct hello *server);

/* The number in the text of the ping that follows so many others. The text has a signed number; this one never is. */
uint32_t ping_number(uint64_t answered);

/*
 * Prints "<label>: <text>" as one line: the ping up to its 0, or up to size without one. The memory was written by the
 * peer, so that bytes outside plain ASCII come out as '?'.
 */
void ping_print(FILE *stream, const char *label, const uint8_t *ping, size_t size);

#endif
