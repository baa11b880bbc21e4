/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A histogram of samples in fixed memory. Every octave (from one power of two to the next) has HISTOGRAM_SUBBUCKETS
 * buckets of equal width, so the error of a percentile is at most 1/64 of its value (1.6 %). Count, minimum, maximum
 * and average are exact.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
	HISTOGRAM_SUBBUCKETS_BITS = 5,
	HISTOGRAM_SUBBUCKETS = 1 << HISTOGRAM_SUBBUCKETS_BITS,
	HISTOGRAM_BITS = 44, /* longer samples count in the last bucket; 2^44 ns is almost five hours */
	HISTOGRAM_BUCKETS = (HISTOGRAM_BITS - HISTOGRAM_SUBBUCKETS_BITS + 1) * HISTOGRAM_SUBBUCKETS,
};

/* Zeroed memory has no samples. */
struct samples {
	uint64_t count;
	int64_t minimum;
	int64_t maximum;
	int64_t sum;
};

/* Zeroed memory is an empty histogram. */
struct histogram {
	struct samples all;
	struct samples recent; /* since it was last cleared, for histogram_difference() */
	int64_t first;	       /* sample */
	double squares;	       /* sum of the squared distances from the first sample */
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

void samples_add(struct samples *samples, int64_t sample);

/* Returns 0 without a sample. */
int64_t samples_average(const struct samples *samples);

/* A negative sample counts as 0. */
void histogram_add(struct histogram *histogram, int64_t sample);

/* The samples added since before was a copy of the histogram, whose recent samples were then cleared. */
void histogram_difference(const struct histogram *histogram, const struct histogram *before,
			  struct histogram *difference);

/* The population standard deviation, ping(8)'s mdev. Returns 0 without a sample. */
int64_t histogram_deviation(const struct histogram *histogram);

/* True if at least one sample lies above the percentile: p99 needs a hundred samples. */
bool histogram_has(const struct histogram *histogram, unsigned per_mille);

/*
 * The sample that at least per_mille thousandths of all samples do not exceed (nearest rank). Returns the middle of its
 * bucket, limited to minimum and maximum, or 0 without a sample.
 */
int64_t histogram_percentile(const struct histogram *histogram, unsigned per_mille);

/* Returns the lowest sample of the bucket. */
int64_t histogram_bucket_start(unsigned bucket);

/*
 * Prints a bar chart of at least one sample. Each line covers an eighth of an octave, or more if that would give too
 * many lines. columns: the terminal's, at least 40; 0: any number.
 */
void histogram_draw(const struct histogram *histogram, int columns, FILE *stream);
