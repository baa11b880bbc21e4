/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/histogram.h"

#include <inttypes.h>
#include <sys/param.h>

#include "core/units.h"

enum {
	LINES_MAX = 24,
	BAR_MAX = 40,
	BAR_INDENT = 38, /* columns before a bar */
};

/*
 * Each value below HISTOGRAM_SUBBUCKETS has a bucket. Above, the octave and the bits b after the leading 1 are the
 * index:
 *
 *   1 b b b b b x x x ... x      octave = number of x, plus one
 */
static unsigned bucket_of(uint64_t sample)
{
	unsigned octave;

	if (sample < HISTOGRAM_SUBBUCKETS)
		return (unsigned)sample;
	if (sample >> HISTOGRAM_BITS)
		return HISTOGRAM_BUCKETS - 1;
	octave = 63 - (unsigned)__builtin_clzll(sample) - HISTOGRAM_SUBBUCKETS_BITS;
	return ((octave + 1) << HISTOGRAM_SUBBUCKETS_BITS) + (unsigned)(sample >> octave) - HISTOGRAM_SUBBUCKETS;
}

int64_t histogram_bucket_start(unsigned bucket)
{
	unsigned octave = bucket >> HISTOGRAM_SUBBUCKETS_BITS;

	if (!octave)
		return bucket;
	return (int64_t)(bucket % HISTOGRAM_SUBBUCKETS + HISTOGRAM_SUBBUCKETS) << (octave - 1);
}

void samples_add(struct samples *samples, int64_t sample)
{
	if (!WITH_REPORT)
		return;
	if (!samples->count || sample < samples->minimum)
		samples->minimum = sample;
	if (!samples->count || sample > samples->maximum)
		samples->maximum = sample;
	samples->count++;
	samples->sum += sample;
}

int64_t samples_average(const struct samples *samples)
{
	return samples->count ? samples->sum / (int64_t)samples->count : 0;
}

void histogram_add(struct histogram *histogram, int64_t sample)
{
	if (!WITH_REPORT)
		return;
	double distance;

	if (sample < 0)
		sample = 0;
	if (!histogram->all.count)
		histogram->first = sample;
	samples_add(&histogram->all, sample);
	samples_add(&histogram->recent, sample);
	distance = (double)(sample - histogram->first);
	histogram->squares += distance * distance;
	histogram->buckets[bucket_of((uint64_t)sample)]++;
}

void histogram_difference(const struct histogram *histogram, const struct histogram *before,
			  struct histogram *difference)
{
	*difference = *histogram;
	difference->all = histogram->recent;
	difference->squares -= before->squares;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		difference->buckets[i] -= before->buckets[i];
}

/* Newton's method. sqrt(3) would need libm. */
static double square_root(double number)
{
	double root = number > 1 ? number : 1;

	for (double next = (root + number / root) / 2; next < root; next = (root + number / root) / 2)
		root = next;
	return root;
}

int64_t histogram_deviation(const struct histogram *histogram)
{
	double count = (double)histogram->all.count;
	double mean, variance;

	if (!histogram->all.count)
		return 0;
	mean = (double)histogram->all.sum / count - (double)histogram->first;
	variance = histogram->squares / count - mean * mean;
	return variance > 0 ? (int64_t)(square_root(variance) + 0.5) : 0;
}

bool histogram_has(const struct histogram *histogram, unsigned per_mille)
{
	return histogram->all.count >= 1000 / (1000 - per_mille);
}

int64_t histogram_percentile(const struct histogram *histogram, unsigned per_mille)
{
	/* count * per_mille / 1000, rounded up, without overflow. */
	uint64_t rank =
		histogram->all.count / 1000 * per_mille + (histogram->all.count % 1000 * per_mille + 999) / 1000;
	uint64_t seen = 0;
	unsigned bucket = 0;
	int64_t middle;

	if (!histogram->all.count)
		return 0;
	while (bucket < HISTOGRAM_BUCKETS - 1 && (seen += histogram->buckets[bucket]) < rank)
		bucket++;
	middle = (histogram_bucket_start(bucket) + histogram_bucket_start(bucket + 1) - 1) / 2;
	if (bucket == HISTOGRAM_BUCKETS - 1 || middle > histogram->all.maximum)
		return histogram->all.maximum;
	return middle < histogram->all.minimum ? histogram->all.minimum : middle;
}

static uint64_t samples_between(const struct histogram *histogram, unsigned first, unsigned end)
{
	uint64_t count = 0;

	for (unsigned i = first; i < end && i < HISTOGRAM_BUCKETS; i++)
		count += histogram->buckets[i];
	return count;
}

static void draw_line(const struct histogram *histogram, unsigned first, unsigned end, uint64_t max, uint64_t longest,
		      FILE *stream)
{
	uint64_t count = samples_between(histogram, first, end);
	uint64_t length = (count * longest + max / 2) / max;
	char low[UNITS_TEXT_SIZE], high[UNITS_TEXT_SIZE];

	fprintf(stream, "    %9s - %-9s %10" PRIu64 " |", units_time(histogram_bucket_start(first), low),
		units_time(histogram_bucket_start(end), high), count);
	for (uint64_t i = 0; i < length || (!i && count); i++)
		fputc('#', stream);
	fputc('\n', stream);
}

void histogram_draw(const struct histogram *histogram, int columns, FILE *stream)
{
	const unsigned last = bucket_of((uint64_t)histogram->all.maximum);
	unsigned first = bucket_of((uint64_t)histogram->all.minimum), width = HISTOGRAM_SUBBUCKETS / 8;
	uint64_t longest = columns ? (uint64_t)MIN(columns - BAR_INDENT, BAR_MAX) : BAR_MAX;
	uint64_t max = 1;

	while ((last - first) / width >= LINES_MAX)
		width *= 2;
	first = first / width * width;
	for (unsigned i = first; i <= last; i += width)
		if (samples_between(histogram, i, i + width) > max)
			max = samples_between(histogram, i, i + width);
	for (unsigned i = first; i <= last; i += width)
		draw_line(histogram, i, i + width, max, longest, stream);
}
