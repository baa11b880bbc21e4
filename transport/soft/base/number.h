/* SPDX-License-Identifier: BSD-2-Clause */
/* Random numbers, and unique ones in an order that nobody can predict without the keys. */
#ifndef TRANSPORT_SOFT_BASE_NUMBER_H
#define TRANSPORT_SOFT_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

enum {
	FEISTEL_ROUNDS = 6
};

/* Whether the kernel has random numbers for this process; if not, errno says why. */
bool soft_random_works(void);
/* Unpredictable: from the kernel. soft_open() has found that it works. */
uint64_t soft_random(void);

/* Secret, from soft_random(). */
struct soft_number_keys {
	uint64_t rounds[FEISTEL_ROUNDS];
};

void soft_number_init_keys(struct soft_number_keys *keys);

/*
 * A Feistel network: permutes the numbers of 2 * half_bits bits (at most 32). Distinct counters give distinct numbers,
 * and a number reveals nothing about the next one.
 */
uint32_t soft_number_permute(const struct soft_number_keys *keys, unsigned half_bits, uint32_t counter);

/* Permutes 64 bits. Each result bit depends on each bit of the value. */
uint64_t soft_number_mix(uint64_t value);

#endif
