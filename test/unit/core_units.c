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
		{ 7, "7 ns" },
		{ 1000, "1.00 us" },
		{ 9994, "9.99 us" },
		{ 9996, "10.0 us" },
		{ 38213, "38.2 us" },
		{ 99940, "99.9 us" },
		{ 99960, "100 us" },
		{ 271000, "271 us" },
		{ 999490, "999 us" },
		{ 999500, "1.00 ms" },
		{ 1500000, "1.50 ms" },
		{ INT64_C(12000000000), "12.0 s" },
		{ INT64_C(9999400000000), "9999 s" },
		{ INT64_C(9999700000000), "10000 s" },
		{ INT64_C(86400000000000), "86400 s" },
		{ INT64_MAX, "9223372037 s" },
	};
	char text[UNITS_TEXT_SIZE];

	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_string_equal(units_time(rows[i].nanoseconds, text), rows[i].text);
}

TEST(exact_times)
{
	char text[UNITS_TEXT_SIZE];

	assert_string_equal(units_exact_time(999, text), "999 ns");
	assert_string_equal(units_exact_time(200400, text), "200.4 us");
	assert_string_equal(units_exact_time(6225919, text), "6.225919 ms");
	assert_string_equal(units_exact_time(INT64_C(3600000000000), text), "3600 s");
}

TEST(rates)
{
	static const struct {
		double rate;
		const char *text;
	} rows[] = {
		{ 0, "0/s" },		{ 0.5, "0.5/s" },	 { 0.001234, "0.00123/s" }, { 5, "5.00/s" },
		{ 1234.4, "1234/s" },	{ 9999.7, "10000/s" },	 { 24310, "24310/s" },	    { 999499, "999499/s" },
		{ 999999, "1.00 M/s" }, { 1204000, "1.20 M/s" }, { 2.5e9, "2.50 G/s" },	    { 2.5e13, "25000 G/s" },
	};
	char text[UNITS_TEXT_SIZE];

	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_string_equal(units_rate(rows[i].rate, text), rows[i].text);
}

TEST(bandwidths)
{
	char text[UNITS_TEXT_SIZE];

	assert_string_equal(units_bandwidth(0, text), "0 bit/s");
	assert_string_equal(units_bandwidth(100, text), "800 bit/s");
	assert_string_equal(units_bandwidth(125, text), "1.00 kbit/s");
	assert_string_equal(units_bandwidth(1.5e6, text), "12.0 Mbit/s");
	assert_string_equal(units_bandwidth(12.345e9, text), "98.8 Gbit/s");
	/* The largest value. */
	assert_true(strlen(units_bandwidth(1e24, text)) < UNITS_TEXT_SIZE);
}
