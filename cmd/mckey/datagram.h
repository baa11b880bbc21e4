/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The format of our datagrams, which lets a receiver detect lost, repeated, late and damaged ones: a mark, if the
 * datagram has room for it, and a byte pattern.
 *
 *   0       4         8          12      16         20 bytes
 *   | magic | version | sequence | total | checksum |     network byte order
 *
 * The stock tool sends uninitialized heap memory, which must not look like a mark: a reader checks magic, version and
 * checksum, which covers the mark, the length and the QP number. Datagrams shorter than the mark are not checked.
 */
#pragma once

#include "core/address.h"
#include "core/payload.h"
#include "transport/transport.h"

enum {
	DATAGRAM_MARK_SIZE = 20,
	DATAGRAM_SIZE_MAX = 4096, /* for any MTU */
};

struct datagram_mark {
	uint32_t sequence; /* from 0 */
	uint32_t total;	   /* the sender's -C, above sequence; 0: no mark */
};

/* Writes a datagram of size bytes with the mark, if there is room, and its part of the pattern (core/payload.h). */
void datagram_write(uint8_t *memory, size_t size, const uint8_t *pattern, uint32_t qpn,
		    const struct datagram_mark *mark);

/*
 * Reads the mark of a datagram from QP qpn: one without a mark is a stock sender's, short, or has a damaged mark. If
 * the mark is valid and the pattern is not, fills *difference and returns false.
 */
bool datagram_read(const uint8_t *memory, size_t size, const uint8_t *pattern, uint32_t qpn, struct datagram_mark *mark,
		   struct payload_difference *difference);

/*
 * Sets family and bytes of a zeroed address to the sender's, from the bytes in front of the datagram: a GRH or IPv6
 * header or, if may_be_ip4, an IPv4 header in the last 20 of them. Without one it stays zeroed.
 */
void datagram_source(const uint8_t header[DATAGRAM_HEADER_SIZE], bool may_be_ip4, struct address *source);
