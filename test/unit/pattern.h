/* SPDX-License-Identifier: BSD-2-Clause */
/* The payload of core/payload.h for tests that write and compare single messages. */
#pragma once

#include <string.h>

#include "core/payload.h"

static inline const uint8_t *pattern(void)
{
	enum {
		LONGEST = 1 << 21
	};
	static uint8_t bytes[LONGEST + PAYLOAD_PATTERN];

	if (!bytes[0])
		payload_pattern_write(bytes, LONGEST);
	return bytes;
}

static inline void pattern_write(uint8_t *memory, size_t size, uint32_t seed, uint32_t number)
{
	memcpy(memory, pattern() + payload_pattern_offset(size, seed, number), size);
}

static inline bool pattern_equal(const uint8_t *memory, size_t size, uint32_t seed, uint32_t number)
{
	return !memcmp(memory, pattern() + payload_pattern_offset(size, seed, number), size);
}
