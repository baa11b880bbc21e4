/* SPDX-License-Identifier: BSD-2-Clause */
/* Time as integer nanoseconds of CLOCK_MONOTONIC. */
#pragma once

#include <stdint.h>
#include <time.h>

#define CLOCK_NS_PER_US INT64_C(1000)
#define CLOCK_NS_PER_MS INT64_C(1000000)
#define CLOCK_NS_PER_S	INT64_C(1000000000)

static inline int64_t clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

/* Converts a time or a duration. */
static inline struct timespec clock_timespec(int64_t nanoseconds)
{
	return (struct timespec){
		.tv_sec = (time_t)(nanoseconds / CLOCK_NS_PER_S),
		.tv_nsec = (long)(nanoseconds % CLOCK_NS_PER_S),
	};
}
