/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes unaligned numbers in network byte order, and copies payload. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* size: at most 8 bytes. */
static inline uint64_t bytes_read(const uint8_t *bytes, size_t size)
{
	uint64_t value = 0;

	for (size_t i = 0; i < size; i++)
		value = value << 8 | bytes[i];
	return value;
}

/* Writes the lower size bytes of value. */
static inline void bytes_write(uint8_t *bytes, size_t size, uint64_t value)
{
	for (size_t i = size; i--; value >>= 8)
		bytes[i] = (uint8_t)value;
}

/* For long copies: with -Os gcc makes memcpy() a "rep movsb", slow on many machines, but calls memmove(). */
static inline void bytes_copy(uint8_t *to, const uint8_t *from, size_t length)
{
	memmove(to, from, length);
}
