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
 * The pattern is a sequence of 64-bit words in little-endian order: word N is mix(key + N x STRIDE), with the key mixed
 * from seed and number. mix() is the finisher of splitmix64: neighbours in any input have nothing in common. Both ends
 * of a connection may run different versions of this program, so that the pattern must not change.
 */
#define STRIDE UINT64_C(0x9e3779b97f4a7c15)

static uint64_t mix(uint64_t word)
{
	word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
	return word ^ (word >> 31);
}

static uint64_t pattern_key(uint32_t seed, uint32_t number)
{
	return mix(((uint64_t)seed << 32 | number) + STRIDE);
}

static uint64_t pattern_word(uint64_t key, size_t index)
{
	return htole64(mix(key + index * STRIDE));
}

void payload_pattern_fill(uint8_t *memory, size_t size, uint32_t seed, uint32_t number)
{
	uint64_t key = pattern_key(seed, number);

	for (size_t done = 0; done < size; done += sizeof(uint64_t)) {
		uint64_t word = pattern_word(key, done / sizeof(word));
		size_t rest = size - done;

		memcpy(memory + done, &word, rest < sizeof(word) ? rest : sizeof(word));
	}
}

bool payload_pattern_check(const uint8_t *memory, size_t size, uint32_t seed, uint32_t number,
			   struct payload_difference *difference)
{
	uint64_t key = pattern_key(seed, number);

	for (size_t done = 0; done < size; done += sizeof(uint64_t)) {
		uint64_t word = pattern_word(key, done / sizeof(word));
		size_t rest = size - done;
		size_t length = rest < sizeof(word) ? rest : sizeof(word);

		if (payload_equal((const uint8_t *)&word, memory + done, length, difference))
			continue;
		difference->position += done;
		return false;
	}
	return true;
}
