/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/soft/base/random.h"

#include <errno.h>
#include <sys/random.h>

bool soft_random_works(void)
{
	uint64_t value;

	return getrandom(&value, sizeof(value), 0) >= 0 || errno == EINTR || errno == EAGAIN;
}

uint64_t soft_random(struct soft_random *random)
{
	uint64_t value;

	/* Blocks only early at boot, before the kernel's generator is ready. Up to 256 bytes come whole. */
	while (!random->left)
		if (getrandom(random->numbers, sizeof(random->numbers), 0) == (ssize_t)sizeof(random->numbers))
			random->left = sizeof(random->numbers) / sizeof(*random->numbers);
	value = random->numbers[--random->left];
	random->numbers[random->left] = 0;
	return value;
}

/* The finalizer of splitmix64. */
uint64_t soft_random_mix(uint64_t value)
{
	value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
	return value ^ (value >> 31);
}
