/* SPDX-License-Identifier: BSD-2-Clause */
/* Random numbers, and hashes with a secret. */
#ifndef TRANSPORT_SOFT_BASE_NUMBER_H
#define TRANSPORT_SOFT_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the kernel has random numbers for this process; if not, errno says why. */
bool soft_random_works(void);
/* Some numbers of the kernel's, as a connection needs four. */
struct soft_random {
	uint64_t numbers[32];
	unsigned left;
};

/* Unpredictable. soft_open() has found that it works. */
uint64_t soft_random(struct soft_random *random);

/* Permutes 64 bits. Each result bit depends on each bit of the value. */
uint64_t soft_number_mix(uint64_t value);

#endif
