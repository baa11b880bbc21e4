/* SPDX-License-Identifier: BSD-2-Clause */
/* Random numbers, and hashes with a secret. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether this process can get random numbers from the kernel; if not, errno says why. */
bool soft_random_works(void);
/* Buffers some of the kernel's numbers: a connection needs four. */
struct soft_random {
	uint64_t numbers[32];
	unsigned left;
};

/* Unpredictable. Cannot fail: soft_open() has tried it. */
uint64_t soft_random(struct soft_random *random);

/* Permutes 64 bits. Each result bit depends on each bit of the value. */
uint64_t soft_random_mix(uint64_t value);
