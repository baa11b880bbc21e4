/* SPDX-License-Identifier: BSD-2-Clause */
/* A test's payload. Both ends can generate it, so the receiver can check every byte. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first difference. */
struct payload_difference {
	size_t position;
	uint8_t expected;
	uint8_t found;
};

/*
 * The ping payload of the stock rping: "rdma-ping-<number>: ", then a ramp over 'A'..'z' that starts one letter later
 * with every ping, and a final 0. It has exactly size bytes, at least 1, even if the text is longer.
 *
 * Two pings differ only in the text and the ramp's phase. So size + PAYLOAD_RAMP bytes of memory hold a ramp, and a
 * ping is the part that starts at the right phase: writing a ping takes the same time for any size.
 */
enum {
	PAYLOAD_RAMP = 'z' - 'A' + 1
};

/* Writes the ramp. */
void payload_ramp_write(uint8_t *memory, size_t size);
/* Replaces the previous ping by a new one, and returns its offset. previous: the previous one's offset, initially 0. */
size_t payload_ping_write(uint8_t *memory, size_t size, uint32_t number, size_t previous);
/* Returns true if memory holds that ping, else fills *difference. */
bool payload_ping_check(const uint8_t *memory, size_t size, uint32_t number, struct payload_difference *difference);

/*
 * The payload of a message: a part of a repeated sequence of 65,535 bytes, from an offset that depends on seed (the
 * connection) and number (the message). Both ends write the sequence once. A message is sent from its place in the
 * sequence, and compared with that place, so neither costs more than memcmp.
 *
 * A byte from a message with another offset, or from another place in the message, differs in 256 of 257 cases, and one
 * of two neighbours always does. 1 in 65,535 messages has the same offset, but never on one connection at a distance
 * below 65,535, or with one number and seeds less than 65,535 apart.
 *
 * Short messages begin in the first 8,191 bytes, which replaces 65,535 above: users may often lock only 64 KiB of
 * memory.
 */
enum {
	PAYLOAD_PATTERN = 65535,
	PAYLOAD_SHORT_PATTERN = 8191,
	PAYLOAD_SHORT = 2048, /* the longest short message */
};

/* Returns the pattern's length for messages of size bytes. */
static inline size_t payload_pattern_size(size_t size)
{
	return size + (size <= PAYLOAD_SHORT ? PAYLOAD_SHORT_PATTERN : PAYLOAD_PATTERN);
}

/* Writes payload_pattern_size() bytes. */
void payload_pattern_write(uint8_t *pattern, size_t size);
/* Returns where in the pattern a message of size bytes begins. */
size_t payload_pattern_offset(size_t size, uint32_t seed, uint32_t number);

/* Returns true if the bytes are equal, else fills *difference. expected: a part of the pattern. */
bool payload_equal(const uint8_t *expected, const uint8_t *found, size_t size, struct payload_difference *difference);
