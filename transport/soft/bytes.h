/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers in network order at any address, whatever the machine's own order and alignment. */
#ifndef TRANSPORT_SOFT_BYTES_H
#define TRANSPORT_SOFT_BYTES_H

#include <stddef.h>
#include <stdint.h>

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

#endif
