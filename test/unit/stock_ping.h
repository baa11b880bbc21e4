/* SPDX-License-Identifier: BSD-2-Clause */
/* The payload of a ping as stock rping writes it, byte by byte. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static inline void stock_ping(uint8_t *memory, size_t size, uint32_t number)
{
	char text[32];
	size_t length = (size_t)snprintf(text, sizeof(text), "rdma-ping-%u: ", number);

	for (size_t i = 0; i < size; i++)
		memory[i] = i < length ? (uint8_t)text[i] : (uint8_t)((number % 58 + i - length) % 58 + 'A');
	memory[size - 1] = 0;
}
