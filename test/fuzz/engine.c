/* SPDX-License-Identifier: BSD-2-Clause */
/* The entry of libFuzzer: FUZZ_TARGET in the environment names the target. */
#include <stdio.h>
#include <stdlib.h>

#include "test/fuzz/target.h"

static const struct target *chosen;

int LLVMFuzzerInitialize(int *count, char ***words)
{
	const char *name = getenv("FUZZ_TARGET");

	chosen = target_find(name ? name : "packets");
	if (!chosen) {
		fprintf(stderr, "FUZZ_TARGET: there is no target %s\n", name);
		exit(2);
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	chosen->function(bytes, length);
	return 0;
}
