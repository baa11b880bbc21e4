/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is inside a datagram of ours, so that a receiver can tell a lost, repeated, late or damaged one. In front of the
 * pattern stands a mark, if the datagram has room for it:
 *
 *   0       4         5        8          12      16         20 bytes
 *   | magic | version | high   | sequence | total | checksum |     numbers in network order
 *
 * high are 24 bits more of the sequence number. Of the total, which follows the sequence number by INT32_MAX at most,
 * the lower 32 bits say enough.
 *
 * The stock tool sends whatever its heap held, so the mark must not be mistaken: magic, version and a checksum over the
 * mark, the length and the sending queue have to fit. Datagrams too short for the mark carry nothing that is checked.
 */
#ifndef CMD_MCKEY_DATAGRAM_H
#define CMD_MCKEY_DATAGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/address.h"
#include "core/payload.h"
#include "transport/transport.h"

enum {
	DATAGRAM_MARK_SIZE = 20,
	DATAGRAM_TOTAL_MOST = INT32_MAX, /* datagrams of one sender with -C, which is the stock tool's limit too */
};

/* A total that the sender knows, and so says, with its last datagram only. Any other one is -C from the first on. */
#define DATAGRAM_OPEN UINT64_MAX

struct datagram_mark {
	uint64_t sequence; /* from 0; 56 bits */
	uint64_t total;	   /* datagrams that the sender sends in all, or DATAGRAM_OPEN; above sequence */
};

enum datagram_content {
	DATAGRAM_PLAIN = 1, /* no mark: a stock sender, a short datagram, or a damaged mark */
	DATAGRAM_INTACT,
	DATAGRAM_DAMAGED, /* the mark is right, the pattern behind it is not */
};

/* Fills size bytes with what the queue sends as that datagram. */
void datagram_write(uint8_t *memory, size_t size, uint32_t qpn, const struct datagram_mark *mark);

/* Reads what came from that queue. *mark is set unless the answer is DATAGRAM_PLAIN; *difference if it is damaged. */
enum datagram_content datagram_read(const uint8_t *memory, size_t size, uint32_t qpn, struct datagram_mark *mark,
				    struct payload_difference *difference);

/*
 * The sender's address, out of the bytes in front of the datagram: a global route header or IPv6 header, or an IPv4
 * header in the last 20 of them. Returns false if there is none, and sets *source to ADDRESS_NONE.
 */
bool datagram_source(const uint8_t header[DATAGRAM_HEADER_SIZE], struct address *source);

#endif
