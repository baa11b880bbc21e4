/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/payload.h"

#include <string.h>
#include <sys/param.h>

#include "core/log.h"

/* ---- the ping ---- */

enum {
	RAMP_FIRST = 'A',
	RAMP_LAST = RAMP_FIRST + PAYLOAD_RAMP - 1,
	PING_TEXT_SIZE = sizeof("rdma-ping-4294967295: "),
};

/* Writes a ping's text and returns its length. */
static size_t ping_text(char text[PING_TEXT_SIZE], uint32_t number)
{
	return strlen(log_text(text, PING_TEXT_SIZE, "rdma-ping-%u: ", number));
}

static uint8_t ramp_letter(size_t position)
{
	return (uint8_t)(RAMP_FIRST + position % PAYLOAD_RAMP);
}

static uint8_t ramp_next(uint8_t letter)
{
	return letter < RAMP_LAST ? (uint8_t)(letter + 1) : RAMP_FIRST;
}

/* Repeats memory's first bytes to its end. */
static void repeat(uint8_t *memory, size_t period, size_t size)
{
	for (size_t done = period, length; done < size; done += length) {
		length = MIN(done, size - done);
		memcpy(memory + done, memory, length);
	}
}

static void ramp_write(uint8_t *memory, size_t from, size_t to)
{
	for (uint8_t letter = ramp_letter(from); from < to; letter = ramp_next(letter))
		memory[from++] = letter;
}

void payload_ramp_write(uint8_t *memory, size_t size)
{
	ramp_write(memory, 0, PAYLOAD_RAMP);
	repeat(memory, PAYLOAD_RAMP, size + PAYLOAD_RAMP);
}

size_t payload_ping_write(uint8_t *memory, size_t size, uint32_t number, size_t previous)
{
	char text[PING_TEXT_SIZE];
	size_t length = ping_text(text, number);
	size_t start = (number % PAYLOAD_RAMP + PAYLOAD_RAMP - length) % PAYLOAD_RAMP;

	ramp_write(memory, previous, MIN(previous + PING_TEXT_SIZE, size + PAYLOAD_RAMP));
	ramp_write(memory, previous + size - 1, previous + size);
	memcpy(memory + start, text, MIN(length, size));
	memory[start + size - 1] = 0;
	return start;
}

bool payload_ping_check(const uint8_t *memory, size_t size, uint32_t number, struct payload_difference *difference)
{
	char text[PING_TEXT_SIZE];
	size_t length = ping_text(text, number);
	uint8_t letter = ramp_letter(number);

	for (size_t i = 0; i < size; i++) {
		uint8_t expected = 0;

		/* One period is as expected. So are the others if each byte equals the byte one period earlier. */
		if (i == length + PAYLOAD_RAMP && !memcmp(memory + length, memory + i, size - 1 - i))
			i = size - 1;
		if (i < size - 1) {
			expected = i < length ? (uint8_t)text[i] : letter;
			letter = i < length ? letter : ramp_next(letter);
		}
		if (memory[i] == expected)
			continue;
		*difference = (struct payload_difference){ .position = i, .expected = expected, .found = memory[i] };
		return false;
	}
	return true;
}

/* ---- the pattern ---- */

/*
 * A linear recurrence over GF(256) with a primitive polynomial. The difference between the sequence and a shifted one
 * is the sequence again, in another phase: so 255 of the 65,535 bytes are equal, but never two neighbours, because no
 * two neighbours are 0.
 */
void payload_pattern_write(uint8_t *pattern, size_t size)
{
	uint8_t byte = 1, next = 0;

	for (size_t i = 0; i < MIN(payload_pattern_size(size), PAYLOAD_PATTERN); i++) {
		uint8_t after = (uint8_t)(next ^ byte << 1 ^ (byte >> 7) * 0x87);

		pattern[i] = byte;
		byte = next;
		next = after;
	}
	repeat(pattern, PAYLOAD_PATTERN, payload_pattern_size(size));
}

/*
 * Coprime with the period, and found by a search: messages with numbers up to 64 and seeds up to 8 apart have equal
 * parts only 21 KiB or more apart, counting multiples of 256 bytes; short messages have none.
 */
enum {
	SEED_STEP = 27949,
	NUMBER_STEP = 10937,
};

size_t payload_pattern_offset(size_t size, uint32_t seed, uint32_t number)
{
	uint64_t place = (uint64_t)seed * SEED_STEP + (uint64_t)number * NUMBER_STEP;

	return (size_t)(size <= PAYLOAD_SHORT ? place % PAYLOAD_SHORT_PATTERN : place % PAYLOAD_PATTERN);
}

bool payload_equal(const uint8_t *expected, const uint8_t *found, size_t size, struct payload_difference *difference)
{
	size_t period = MIN(size, PAYLOAD_PATTERN), i = 0;

	/* After the first period each byte must equal the byte one period earlier, which is still in the cache. */
	if (!memcmp(expected, found, period) && !memcmp(found, found + period, size - period))
		return true;
	while (expected[i] == found[i])
		i++;
	*difference = (struct payload_difference){ .position = i, .expected = expected[i], .found = found[i] };
	return false;
}
