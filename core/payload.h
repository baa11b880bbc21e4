/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The payload of a test. Both ends can generate it, so the receiver can check every byte.
 */
#ifndef CORE_PAYLOAD_H
#define CORE_PAYLOAD_H

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
 * The bytes of two pings differ in the text and in the phase of the ramp only. So memory of size + PAYLOAD_RAMP bytes
 * holds a ramp, and a ping is a part of it that starts where the phase is right: writing one takes the same time for
 * any size.
 */
enum {
	PAYLOAD_RAMP = 'z' - 'A' + 1
};

/* Writes the ramp. */
void payload_ramp_write(uint8_t *memory, size_t size);
/* Writes a ping in place of the previous one and returns its offset. previous: that one's offset, initially 0. */
size_t payload_ping_write(uint8_t *memory, size_t size, uint32_t number, size_t previous);
/* Returns true if memory holds that ping, else fills *difference. */
bool payload_ping_check(const uint8_t *memory, size_t size, uint32_t number, struct payload_difference *difference);

/*
 * The payload of a message: a part of a sequence of 65,535 bytes that is repeated, from an offset that depends on seed
 * (the connection) and number (the message). Both ends write the sequence once. A message is sent from where it is in
 * it, and compared with that place, so neither costs more than memcmp.
 *
 * If a byte is of a message with another offset, or from another place in the message, it differs in 256 of 257 cases,
 * and of two neighbours one always does. The same offset have 1 in 65,535 messages; none of them are of one connection
 * and less than 65,535 apart, or have one number and seeds less than 65,535 apart.
 *
 * Short messages begin in the first 8,191 bytes, which takes the place of 65,535 in the above: a user may often lock
 * only 64 KiB of memory.
 */
enum {
	PAYLOAD_PATTERN = 65535,
	PAYLOAD_SHORT_PATTERN = 8191,
	PAYLOAD_SHORT = 2048, /* the longest short message */
};

/* Returns how long the pattern is for messages of size bytes. */
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

#endif
