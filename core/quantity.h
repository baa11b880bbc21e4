/* SPDX-License-Identifier: BSD-2-Clause */
/* Measured quantities as a person reads them: four digits and a unit. */
#ifndef CORE_QUANTITY_H
#define CORE_QUANTITY_H

#include <stdint.h>

enum {
	QUANTITY_TEXT_SIZE = 32
};

/* "512 ns", "38.21 us", "1.5 ms", "12 s". Returns text. */
const char *quantity_time(int64_t nanoseconds, char text[QUANTITY_TEXT_SIZE]);

/* For "%g s". */
double quantity_seconds(int64_t nanoseconds);

/* A count each second: "24310/s", "1.204 M/s", "0.5/s". Returns text. */
const char *quantity_rate(double each_second, char text[QUANTITY_TEXT_SIZE]);

/* What makes a word for one a word for so many: "s", or "" for one. */
const char *quantity_plural(uint64_t count);

/* A rate in bytes: "1.204 GB/s", in powers of ten. Returns text. */
const char *quantity_bandwidth(double bytes_each_second, char text[QUANTITY_TEXT_SIZE]);

#endif
