/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The format of our datagrams, by which a receiver detects lost, repeated, late and damaged ones: a mark, if the
 * datagram has room for it, and a byte pattern.
 *
 *   0       4         8          12      16         20 bytes
 *   | magic | version | sequence | total | checksum |     network byte order
 *
 * The stock tool sends uninitialized heap memory, which must not look like a mark: a reader checks magic, version and
 * checksum, which covers the mark, the length and the QP number. Datagrams shorter than the mark are not checked.
 */
#ifndef CMD_MCKEY_DATAGRAM_H
#define CMD_MCKEY_DATAGRAM_H

#include "core/address.h"
#include "core/payload.h"
#include "transport/transport.h"

enum {
	DATAGRAM_MARK_SIZE = 20,
	DATAGRAM_SIZE_MAX = 4096, /* of any MTU */
};

struct datagram_mark {
	uint32_t sequence; /* from 0 */
	uint32_t total;	   /* -C of the sender, above sequence */
};

enum datagram_content {
	DATAGRAM_UNMARKED = 1, /* a stock sender, a short datagram, or a damaged mark */
	DATAGRAM_INTACT,
	DATAGRAM_DAMAGED, /* the mark is valid, the pattern is not */
};

/* Writes a datagram of size bytes with the mark, if there is room, and its part of the pattern (core/payload.h). */
void datagram_write(uint8_t *memory, size_t size, const uint8_t *pattern, uint32_t qpn,
		    const struct datagram_mark *mark);

/* Checks a datagram of QP qpn. *mark is valid unless it returns DATAGRAM_UNMARKED, *difference for DATAGRAM_DAMAGED. */
enum datagram_content datagram_read(const uint8_t *memory, size_t size, const uint8_t *pattern, uint32_t qpn,
				    struct datagram_mark *mark, struct payload_difference *difference);

/*
 * The sender's address in the bytes in front of the datagram: a GRH or IPv6 header or, if may_be_ip4, an IPv4 header in
 * the last 20 of them. ADDRESS_NONE without one.
 */
struct address datagram_source(const uint8_t header[DATAGRAM_HEADER_SIZE], bool may_be_ip4);

#endif
