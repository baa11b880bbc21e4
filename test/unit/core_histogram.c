/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares the histogram with statistics of the complete list of samples. */
#include "test/unit/unit.h"

#include "core/histogram.h"

enum {
	SAMPLES = 20000,
};

static struct histogram histogram;

static int clear(void **state)
{
	memset(&histogram, 0, sizeof(histogram));
	return 0;
}

/* A generator with reproducible numbers. */
static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static int64_t in_a_narrow_band(uint64_t *seed)
{
	return 9000 + (int64_t)(next_random(seed) % 2000);
}

/* Uniform over octaves: as many samples between 1 and 2 as between 2^42 and 2^43. */
static int64_t in_any_octave(uint64_t *seed)
{
	unsigned bits = (unsigned)(next_random(seed) % HISTOGRAM_BITS);

	return (int64_t)(next_random(seed) & ((UINT64_C(1) << bits) - 1));
}

static int64_t small(uint64_t *seed)
{
	return (int64_t)(next_random(seed) % 40);
}

static int64_t with_a_tail(uint64_t *seed)
{
	return next_random(seed) % 100 ? 20000 + (int64_t)(next_random(seed) % 300) : in_any_octave(seed);
}

static int64_t (*const distributions[])(uint64_t *seed) = { in_a_narrow_band, in_any_octave, small, with_a_tail };

static int by_size(const void *one, const void *other)
{
	int64_t first = *(const int64_t *)one, second = *(const int64_t *)other;

	return (first > second) - (first < second);
}

static double square_root(double number)
{
	double root = number > 1 ? number : 1;

	for (int i = 0; i < 200; i++)
		root = (root + number / root) / 2;
	return root;
}

/* Computes the statistics by their definitions, from the sorted list. */
static void assert_describes(int64_t *samples, size_t count)
{
	static const unsigned per_mille[] = { 1, 500, 900, 990, 999, 1000 };
	double sum = 0, squares = 0, deviation;

	qsort(samples, count, sizeof(*samples), by_size);
	for (size_t i = 0; i < count; i++)
		sum += (double)samples[i];
	for (size_t i = 0; i < count; i++)
		squares += ((double)samples[i] - sum / (double)count) * ((double)samples[i] - sum / (double)count);
	deviation = square_root(squares / (double)count);
	assert_int_equal(histogram.all.count, count);
	assert_int_equal(histogram.all.minimum, samples[0]);
	assert_int_equal(histogram.all.maximum, samples[count - 1]);
	assert_true((double)samples_average(&histogram.all) <= sum / (double)count + 1e-3);
	assert_true((double)samples_average(&histogram.all) > sum / (double)count - 1.001);
	assert_true((double)histogram_deviation(&histogram) <= deviation * 1.000001 + 1);
	assert_true((double)histogram_deviation(&histogram) >= deviation * 0.999999 - 1);
	for (size_t i = 0; i < LENGTH(per_mille); i++) {
		size_t rank = (count * per_mille[i] + 999) / 1000;
		int64_t exact = samples[rank - 1];
		int64_t found = histogram_percentile(&histogram, per_mille[i]);
		int64_t distance = found > exact ? found - exact : exact - found;

		/* The documented error of a percentile. */
		assert_true(distance * 64 <= exact);
	}
}

TEST(percentiles_match_sorted_list, clear)
{
	static const size_t counts[] = { 1, 2, 3, 10, 999, 1000, 1001, SAMPLES };
	int64_t *samples = calloc(SAMPLES, sizeof(*samples));
	uint64_t seed = 0x9e3779b97f4a7c15;

	for (size_t c = 0; c < LENGTH(counts); c++)
		for (size_t d = 0; d < LENGTH(distributions); d++) {
			clear(NULL);
			for (size_t i = 0; i < counts[c]; i++) {
				samples[i] = distributions[d](&seed);
				histogram_add(&histogram, samples[i]);
			}
			assert_describes(samples, counts[c]);
		}
	free(samples);
}

TEST(empty_histogram_is_zero, clear)
{
	assert_int_equal(samples_average(&histogram.all), 0);
	assert_int_equal(histogram_deviation(&histogram), 0);
	assert_int_equal(histogram_percentile(&histogram, 500), 0);
}

/* Negative samples, and samples beyond the last bucket. */
TEST(samples_out_of_range_use_outer_buckets, clear)
{
	histogram_add(&histogram, -5);
	assert_int_equal(histogram.all.minimum, 0);
	assert_int_equal(histogram.buckets[0], 1);
	histogram_add(&histogram, INT64_C(1) << 50);
	histogram_add(&histogram, INT64_C(1) << HISTOGRAM_BITS);
	assert_int_equal(histogram.buckets[HISTOGRAM_BUCKETS - 1], 2);
	assert_int_equal(histogram.all.maximum, INT64_C(1) << 50);
	assert_int_equal(histogram_percentile(&histogram, 999), INT64_C(1) << 50);
}

/* Adds the lowest and the highest sample of each bucket. */
TEST(samples_at_bucket_borders, clear)
{
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		assert_true(histogram_bucket_start(i) < histogram_bucket_start(i + 1));
		histogram_add(&histogram, histogram_bucket_start(i));
		histogram_add(&histogram, histogram_bucket_start(i + 1) - 1);
		assert_int_equal(histogram.buckets[i], 2);
	}
	assert_int_equal(histogram_bucket_start(0), 0);
	assert_int_equal(histogram_bucket_start(HISTOGRAM_BUCKETS), INT64_C(1) << HISTOGRAM_BITS);
}

/* The middle of a bucket may lie outside minimum and maximum: a single sample is every percentile. */
TEST(percentiles_are_within_samples, clear)
{
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i += 7)
		for (int at = 0; at < 2; at++) {
			int64_t sample = at ? histogram_bucket_start(i + 1) - 1 : histogram_bucket_start(i);

			clear(NULL);
			histogram_add(&histogram, sample);
			assert_int_equal(histogram_percentile(&histogram, 1), sample);
			assert_int_equal(histogram_percentile(&histogram, 500), sample);
			assert_int_equal(histogram_percentile(&histogram, 1000), sample);
		}
}

/* Rounds to the nearest nanosecond: the deviation of 0 and 3 is 1.5, that of 0, 0 and 3 is 1.414. */
TEST(deviation_is_rounded, clear)
{
	histogram_add(&histogram, 0);
	histogram_add(&histogram, 3);
	assert_int_equal(histogram_deviation(&histogram), 2);
	histogram_add(&histogram, 0);
	assert_int_equal(histogram_deviation(&histogram), 1);
}

static char *drawing(int columns)
{
	char *text;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	histogram_draw(&histogram, columns, stream);
	fclose(stream);
	return text;
}

/* On a terminal of 40 and 60 columns each line fits, and the longest bar reaches the edge. */
TEST(drawing_fits_a_terminal, clear)
{
	for (int i = 0; i < 1000; i++)
		histogram_add(&histogram, 100000 + i % 7 * 20000);
	for (size_t columns = 40; columns <= 60; columns += 20) {
		char *text = drawing((int)columns);
		size_t longest = 0;

		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
			longest = strlen(line) > longest ? strlen(line) : longest;
		assert_int_equal(longest, columns);
		free(text);
	}
}

/* The lines add up to all samples, and their number is limited. */
TEST(drawing_has_all_samples, clear)
{
	uint64_t seed = 7;

	for (size_t d = 0; d < LENGTH(distributions); d++) {
		unsigned long long drawn = 0, lines = 0;
		char *text;

		clear(NULL);
		for (int i = 0; i < 1000; i++)
			histogram_add(&histogram, distributions[d](&seed));
		text = drawing(0);
		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
			char *bar = strchr(line, '|');
			unsigned long long count;

			assert_memory_equal(line, "    ", 4);
			assert_non_null(bar);
			bar[-1] = 0;
			count = strtoull(strrchr(line, ' ') + 1, NULL, 10);
			/* A line with any sample has a bar. */
			assert_int_equal(bar[1] == '#', count > 0);
			assert_true(strlen(bar + 1) <= 50);
			drawn += count;
			lines++;
		}
		assert_int_equal(drawn, 1000);
		assert_in_range(lines, 1, 25);
		free(text);
	}
}
