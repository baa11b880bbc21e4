/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/soft/base/number.h"

#include <errno.h>
#include <sys/random.h>

bool soft_random_works(void)
{
	uint64_t value;

	return getrandom(&value, sizeof(value), 0) >= 0 || errno == EINTR || errno == EAGAIN;
}

uint64_t soft_random(void)
{
	uint64_t value = 0;

	/* Blocks only early at boot, before the kernel's generator is ready. */
	while (getrandom(&value, sizeof(value), 0) != (ssize_t)sizeof(value))
		;
	return value;
}

/* The finalizer of splitmix64. */
uint64_t soft_number_mix(uint64_t value)
{
	value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
	return value ^ (value >> 31);
}

void soft_number_init_keys(struct soft_number_keys *keys)
{
	for (unsigned round = 0; round < FEISTEL_ROUNDS; round++)
		keys->rounds[round] = soft_random();
}

uint32_t soft_number_permute(const struct soft_number_keys *keys, unsigned half_bits, uint32_t counter)
{
	uint32_t mask = (UINT32_C(1) << half_bits) - 1;
	uint32_t left = counter >> half_bits & mask, right = counter & mask;

	for (unsigned round = 0; round < FEISTEL_ROUNDS; round++) {
		uint64_t key = keys->rounds[round];
		uint32_t next = (left ^ (uint32_t)soft_number_mix(soft_number_mix(key ^ right) + key)) & mask;

		left = right;
		right = next;
	}
	return left << half_bits | right;
}
