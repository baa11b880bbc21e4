/* SPDX-License-Identifier: BSD-2-Clause */
/* The entry of libFuzzer. */
#include "test/fuzz/attack.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	attack(bytes, length);
	return 0;
}
