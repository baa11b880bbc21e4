/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/unit/unit.h"

#include "core/units.h"

TEST(times)
{
	static const struct {
		int64_t nanoseconds;
		const char *text;
	} rows[] = {
		{ 0, "0 ns" },
		{ 999, "999 ns" },
		{ 1000, "1 us" },
		{ 38213, "38.21 us" },
		{ 999960, "1000 us" },
		{ 1500000, "1.5 ms" },
		{ INT64_C(12000000000), "12 s" },
		{ INT64_C(9999400000000), "9999 s" },
		{ INT64_C(9999700000000), "10000 s" },
		{ INT64_C(86400000000000), "86400 s" },
		{ INT64_MAX, "9223372037 s" },
	};
	char text[UNITS_TEXT_SIZE];

	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_string_equal(units_time(rows[i].nanoseconds, text), rows[i].text);
}

TEST(rates)
{
	static const struct {
		double rate;
		const char *text;
	} rows[] = {
		{ 0, "0/s" },
		{ 0.5, "0.5/s" },
		{ 1234.5, "1234/s" },
		{ 9999.7, "10000/s" },
		{ 24310, "24310/s" },
		{ 999999, "999999/s" },
		{ 1204000, "1.204 M/s" },
		{ 2.5e9, "2.5 G/s" },
		{ 2.5e13, "25000 G/s" },
	};
	char text[UNITS_TEXT_SIZE];

	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_string_equal(units_rate(rows[i].rate, text), rows[i].text);
}

TEST(bandwidths)
{
	char text[UNITS_TEXT_SIZE];

	assert_string_equal(units_bandwidth(0, text), "0 B/s");
	assert_string_equal(units_bandwidth(999, text), "999 B/s");
	assert_string_equal(units_bandwidth(1000, text), "1 kB/s");
	assert_string_equal(units_bandwidth(1.5e6, text), "1.5 MB/s");
	assert_string_equal(units_bandwidth(12.345e9, text), "12.35 GB/s");
	assert_string_equal(units_bits(0, text), "0 b/s");
	assert_string_equal(units_bits(1.5e6, text), "12 Mb/s");
	assert_string_equal(units_bits(12.345e9, text), "98.76 Gb/s");
	/* The largest value. */
	assert_true(strlen(units_bandwidth(1e24, text)) < UNITS_TEXT_SIZE);
}
