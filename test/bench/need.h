/* SPDX-License-Identifier: BSD-2-Clause */
/* What the programs of the benches do when something fails: say what, and end with status 1. */
#ifndef RDMATEST_TEST_BENCH_NEED_H
#define RDMATEST_TEST_BENCH_NEED_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static inline void die(const char *what)
{
	perror(what);
	exit(1);
}

static inline void need(bool good, const char *what)
{
	if (!good)
		die(what);
}

#endif
