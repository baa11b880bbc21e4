/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The distribution of many samples in fixed memory. Every octave (from one power of two to the next) is cut into
 * HISTOGRAM_PARTS buckets of equal width, so that a percentile is known to within 1/64 of its value (1.6 %); count,
 * minimum, maximum and average are exact.
 */
#ifndef CORE_HISTOGRAM_H
#define CORE_HISTOGRAM_H

#include <stdint.h>
#include <stdio.h>

enum {
	HISTOGRAM_PARTS_BITS = 5,
	HISTOGRAM_PARTS = 1 << HISTOGRAM_PARTS_BITS,
	HISTOGRAM_BITS = 44, /* longer samples count in the last bucket; in nanoseconds 2^44 is almost five hours */
	HISTOGRAM_BUCKETS = (HISTOGRAM_BITS - HISTOGRAM_PARTS_BITS + 1) * HISTOGRAM_PARTS,
};

/* Zeroed memory is an empty one. */
struct histogram {
	uint64_t count;
	int64_t minimum;
	int64_t maximum;
	int64_t sum;
	double mean;	/* of the samples so far, and */
	double squares; /* the sum of their squared distances from it: Welford's method */
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

/* A negative sample counts as 0. */
void histogram_add(struct histogram *histogram, int64_t sample);

/* 0 without a sample. */
int64_t histogram_average(const struct histogram *histogram);

/* The standard deviation over all samples, which ping(8) calls mdev; 0 without a sample. */
int64_t histogram_deviation(const struct histogram *histogram);

/*
 * The sample that at least per_mille thousandths of all samples do not exceed (nearest rank), as the middle of its
 * bucket but never beyond minimum and maximum; 0 without a sample.
 */
int64_t histogram_percentile(const struct histogram *histogram, unsigned per_mille);

/* The lowest sample that the bucket counts. */
int64_t histogram_bucket_start(unsigned bucket);

/*
 * Draws it as lines of bars behind prefix, a line for every eighth of an octave that is between the first and the last
 * sample, or for fewer where that would be too many lines. Samples are nanoseconds.
 */
void histogram_draw(const struct histogram *histogram, const char *prefix, FILE *stream);

#endif
