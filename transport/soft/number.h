/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers that come once each, in an order that nobody can tell who has not got the keys. */
#ifndef TRANSPORT_SOFT_NUMBER_H
#define TRANSPORT_SOFT_NUMBER_H

#include <stdint.h>

enum {
	NUMBER_ROUNDS = 6
};

/* Random by soft_random(), and secret. */
struct soft_number_keys {
	uint64_t rounds[NUMBER_ROUNDS];
};

void soft_number_prepare(struct soft_number_keys *keys);

/*
 * A permutation of the numbers of 2 half_bits bits (at most 32), a Feistel network: a counter goes in, what comes out
 * never repeats before the counter does and tells nothing of its neighbours.
 */
uint32_t soft_number(const struct soft_number_keys *keys, unsigned half_bits, uint32_t count);

/* A permutation of 64 bits in which every bit depends on every other. */
uint64_t soft_number_mix(uint64_t value);

#endif
