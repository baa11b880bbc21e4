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
 * with every ping, and a final 0. Fills exactly size bytes, even if the text is longer.
 */
void payload_ping_fill(uint8_t *memory, size_t size, uint32_t number);

/* Returns true if the bytes are equal, else fills *difference. */
bool payload_equal(const uint8_t *expected, const uint8_t *found, size_t size, struct payload_difference *difference);

/*
 * A pattern that depends on seed (for example the connection), number (the message) and the position: a byte of another
 * connection, message or position shows as a difference.
 */
void payload_pattern_fill(uint8_t *memory, size_t size, uint32_t seed, uint32_t number);
bool payload_pattern_check(const uint8_t *memory, size_t size, uint32_t seed, uint32_t number,
			   struct payload_difference *difference);

#endif
