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
