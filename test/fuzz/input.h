/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a fuzzer input from its front: bytes beyond its end are 0. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct world;

struct input {
	const uint8_t *bytes;
	size_t length;
	struct world *world; /* for packets: their world */
};

/* The lowest byte first. */
static inline uint64_t take(struct input *input, unsigned size)
{
	uint64_t value = 0;

	for (unsigned index = 0; index < size && input->length; index++, input->bytes++, input->length--)
		value |= (uint64_t)*input->bytes << (8 * index);
	return value;
}

static inline uint8_t take8(struct input *input)
{
	return (uint8_t)take(input, 1);
}

static inline uint16_t take16(struct input *input)
{
	return (uint16_t)take(input, 2);
}

static inline size_t take_bytes(struct input *input, uint8_t *bytes, size_t max)
{
	size_t length = max < input->length ? max : input->length;

	if (length)
		memcpy(bytes, input->bytes, length);
	input->bytes += length;
	input->length -= length;
	return length;
}
