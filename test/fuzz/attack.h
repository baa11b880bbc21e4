/* SPDX-License-Identifier: BSD-2-Clause */
/* What an input of the fuzzer means: a few terms of the world, then records of what happens in it, one after another.
 */
#ifndef TEST_FUZZ_ATTACK_H
#define TEST_FUZZ_ATTACK_H

#include "test/fuzz/target.h"

enum {
	ATTACK_TERMS = 6,    /* bytes of the terms: seed, policy 2, MTU and buffer, limits, scramble */
	ATTACK_RAW = 0,	     /* the record of any bytes: addresses, flags, length 2 (low first), bytes */
	ATTACK_RAW_ICRC = 1, /* flag: append the right one */
};

#endif
