/* SPDX-License-Identifier: BSD-2-Clause */
/* Payload; and numbers in network order at any address, whatever the machine's own order and alignment. */
#ifndef TRANSPORT_SOFT_BYTES_H
#define TRANSPORT_SOFT_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A number of size bytes, at most 8. */
static inline uint64_t bytes_read(const uint8_t *bytes, size_t size)
{
	uint64_t value = 0;

	for (size_t i = 0; i < size; i++)
		value = value << 8 | bytes[i];
	return value;
}

/* Its lower size bytes; what is above them is dropped. */
static inline void bytes_write(uint8_t *bytes, size_t size, uint64_t value)
{
	for (size_t i = size; i--; value >>= 8)
		bytes[i] = (uint8_t)value;
}

/*
 * Copies much. Compiled for size, memcpy() becomes an instruction that many machines carry out byte by byte; memmove()
 * is the library's.
 */
static inline void bytes_copy(uint8_t *to, const uint8_t *from, size_t length)
{
	memmove(to, from, length);
}

#endif
