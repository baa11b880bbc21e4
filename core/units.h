/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats values with their unit: in three digits, or all that are before the point. */
#pragma once

#include <stdint.h>

enum {
	UNITS_TEXT_SIZE = 32
};

/* "512 ns", "38.2 us", "1.50 ms", "12.0 s". Returns text. */
const char *units_time(int64_t nanoseconds, char text[UNITS_TEXT_SIZE]);

/* The same with all its digits: "38.213 us", "12 s". Returns text. */
const char *units_exact_time(int64_t nanoseconds, char text[UNITS_TEXT_SIZE]);

double units_seconds(int64_t nanoseconds);

/* A time limit as given: "10 s", "0.25 s". Returns text. */
const char *units_duration(int64_t nanoseconds, char text[UNITS_TEXT_SIZE]);

/* A count per second: "24310/s", "1.20 M/s", "0.5/s". Returns text. */
const char *units_rate(double per_second, char text[UNITS_TEXT_SIZE]);

/* Plural suffix: "" for 1, else "s". */
const char *units_plural(uint64_t count);

/* Bytes per second as bits: "9.63 Gbit/s". Returns text. */
const char *units_bandwidth(double bytes_per_second, char text[UNITS_TEXT_SIZE]);
