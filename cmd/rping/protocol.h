/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rping protocol. One ping is this cycle:
 *
 *        client                                     server
 *          |  advertises its source     ---------->   |
 *          |  <== RDMA READ of the source =========   |
 *          |  <----------                  go-ahead   |
 *          |  advertises its sink       ---------->   |
 *          |  === RDMA WRITE of the same bytes ===>   |
 *          |  <----------                  go-ahead   |
 *
 * An advertisement has 16 bytes, in network byte order. A go-ahead has the same size, and its contents are ignored:
 *
 *   0         8     12     16 bytes
 *   | address | key | size |
 *
 * The payload is text that ends in its only 0 byte. A stock server writes back the text up to the 0, ours the
 * advertised size: the same bytes. Our tools add a hello to the stock protocol, in the private data of the connection
 * (cmd/hello.h). It has the server's maximum ping size, and the client's number of pings.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/output.h"
#include "transport/transport.h"

enum {
	ADVERTISEMENT_SIZE = 16,
	PING_SIZE_MAX = 1 << 20,
	PING_SIZE_STOCK_MAX = 65535,
	PING_SIZE = 100,      /* without -S, as in the stock manual page */
	PING_SIZE_STOCK = 64, /* without -S, with a stock server: it fails on more */
};

struct advertisement {
	uint64_t address;
	uint32_t key;
	uint32_t size;
};

void advertisement_write(const struct advertisement *advertisement, uint8_t bytes[ADVERTISEMENT_SIZE]);
void advertisement_read(const uint8_t bytes[ADVERTISEMENT_SIZE], struct advertisement *advertisement);

/* Returns a device's maximum ping size, but not more than maximum. */
static inline uint32_t ping_limit(const struct domain *domain, uint32_t maximum)
{
	return domain->max_message < maximum ? domain->max_message : maximum;
}

/* Returns the number in the text of the next ping. Stock tools print an int: after INT32_MAX comes 0. */
static inline uint32_t ping_number(uint64_t answered)
{
	return (uint32_t)(answered & INT32_MAX);
}

/*
 * Prints "<label>: <text>" as one line: the ping up to its 0, or all of size without one. The peer wrote the bytes:
 * unprintable ones are printed as '?'.
 */
void ping_print(struct output *output, const char *label, const uint8_t *ping, size_t size);
