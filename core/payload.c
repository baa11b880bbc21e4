/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/payload.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

enum {
	RAMP_FIRST = 'A',
	RAMP_LENGTH = 'z' - 'A' + 1,
};

void payload_ping_fill(uint8_t *memory, size_t size, uint32_t number)
{
	char text[32];
	size_t length = (size_t)snprintf(text, sizeof(text), "rdma-ping-%u: ", number);
	uint32_t letter = number % RAMP_LENGTH;

	if (!size)
		return;
	if (length > size)
		length = size;
	memcpy(memory, text, length);
	for (size_t i = length; i < size; i++) {
		memory[i] = (uint8_t)(RAMP_FIRST + letter);
		letter = (letter + 1) % RAMP_LENGTH;
	}
	memory[size - 1] = 0;
}

bool payload_equal(const uint8_t *expected, const uint8_t *found, size_t size, struct payload_difference *difference)
{
	if (!memcmp(expected, found, size))
		return true;
	for (size_t i = 0; i < size; i++) {
		if (expected[i] == found[i])
			continue;
		*difference = (struct payload_difference){ .position = i, .expected = expected[i], .found = found[i] };
		break;
	}
	return false;
}

/*
 * The pattern is a sequence of 64-bit words in little-endian order: word N is mix(key + N x STRIDE), with a key mixed
 * from seed and number. mix() is the finalizer of splitmix64. The pattern must not change, because the two ends of a
 * connection may run different versions of this program.
 */
#define STRIDE UINT64_C(0x9e3779b97f4a7c15)

/* The pattern is generated and compared in blocks of this size. */
enum {
	BLOCK_WORDS = 64,
	BLOCK_SIZE = BLOCK_WORDS * sizeof(uint64_t)
};

/* Always inline: a function call per word would cost more than the word itself. */
static inline __attribute__((always_inline)) uint64_t mix(uint64_t word)
{
	word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
	return word ^ (word >> 31);
}

static uint64_t pattern_start(uint32_t seed, uint32_t number)
{
	return mix(((uint64_t)seed << 32 | number) + STRIDE);
}

static void pattern_next(uint64_t *state, uint8_t block[BLOCK_SIZE])
{
	uint64_t word = *state;

	for (size_t index = 0; index < BLOCK_WORDS; index++, word += STRIDE) {
		uint64_t mixed = htole64(mix(word));

		memcpy(block + index * sizeof(mixed), &mixed, sizeof(mixed));
	}
	*state = word;
}

void payload_pattern_fill(uint8_t *memory, size_t size, uint32_t seed, uint32_t number)
{
	uint64_t state = pattern_start(seed, number);
	uint8_t block[BLOCK_SIZE];

	for (; size >= BLOCK_SIZE; size -= BLOCK_SIZE, memory += BLOCK_SIZE)
		pattern_next(&state, memory);
	pattern_next(&state, block);
	memcpy(memory, block, size);
}

bool payload_pattern_check(const uint8_t *memory, size_t size, uint32_t seed, uint32_t number,
			   struct payload_difference *difference)
{
	uint64_t state = pattern_start(seed, number);
	uint8_t block[BLOCK_SIZE];

	for (size_t done = 0; done < size; done += BLOCK_SIZE) {
		size_t rest = size - done;

		pattern_next(&state, block);
		if (payload_equal(block, memory + done, rest < BLOCK_SIZE ? rest : BLOCK_SIZE, difference))
			continue;
		difference->position += done;
		return false;
	}
	return true;
}
