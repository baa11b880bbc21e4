/* SPDX-License-Identifier: BSD-2-Clause */
/* Error handling of the bench programs: print the failed call, and exit with status 1. */
#pragma once

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
