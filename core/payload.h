/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What travels in a test: bytes that both ends can make, so that every one of them can be checked.
 */
#ifndef CORE_PAYLOAD_H
#define CORE_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The position of the first difference, and both bytes there. */
struct payload_difference {
	size_t position;
	uint8_t expected;
	uint8_t found;
};

/*
 * The ping text of rping, as the stock tool makes it: "rdma-ping-<number>: ", then a ramp over 'A'..'z' that starts one
 * letter later with every ping, and a final 0. Fills exactly size bytes, also sizes shorter than the text.
 */
void payload_ping_fill(uint8_t *memory, size_t size, uint32_t number);

/* Compares what came with what was sent. Returns true if they are equal, else fills *difference. */
bool payload_equal(const uint8_t *expected, const uint8_t *found, size_t size, struct payload_difference *difference);

/*
 * A pattern that depends on seed (say, the connection), number (the message) and the position, so that a byte of
 * another message, connection or place shows as a difference.
 */
void payload_pattern_fill(uint8_t *memory, size_t size, uint32_t seed, uint32_t number);
bool payload_pattern_check(const uint8_t *memory, size_t size, uint32_t seed, uint32_t number,
			   struct payload_difference *difference);

#endif
