/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/units.h"

#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"

struct unit {
	double size;
	const char *text;
};

/* Uses the largest unit not above value, or the last one. %.4g prints an exponent from 10,000 on. */
static const char *scaled(double value, const struct unit *unit, char text[UNITS_TEXT_SIZE])
{
	while (value < unit->size && unit[1].text)
		unit++;
	value /= unit->size;
	snprintf(text, UNITS_TEXT_SIZE, value < 9999.5 ? "%.4g%s" : "%.0f%s", value, unit->text);
	return text;
}

const char *units_time(int64_t nanoseconds, char text[UNITS_TEXT_SIZE])
{
	static const struct unit units[] = { { 1e9, " s" }, { 1e6, " ms" }, { 1e3, " us" }, { 1, " ns" }, { 0, NULL } };

	return scaled((double)nanoseconds, units, text);
}

double units_seconds(int64_t nanoseconds)
{
	return (double)nanoseconds / 1e9;
}

const char *units_limit(int64_t nanoseconds, char text[UNITS_TEXT_SIZE])
{
	int seconds = (int)(nanoseconds / CLOCK_NS_PER_S), rest = (int)(nanoseconds % CLOCK_NS_PER_S);
	size_t length = strlen(log_text(text, UNITS_TEXT_SIZE, "%d.%09d", seconds, rest));

	while (text[length - 1] == '0')
		length--;
	strcpy(text + length - (text[length - 1] == '.'), " s");
	return text;
}

const char *units_rate(double per_second, char text[UNITS_TEXT_SIZE])
{
	static const struct unit units[] = { { 1e9, " G/s" }, { 1e6, " M/s" }, { 1, "/s" }, { 0, NULL } };

	return scaled(per_second, units, text);
}

const char *units_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

const char *units_bandwidth(double bytes_per_second, char text[UNITS_TEXT_SIZE])
{
	static const struct unit units[] = {
		{ 1e9, " GB/s" }, { 1e6, " MB/s" }, { 1e3, " kB/s" }, { 1, " B/s" }, { 0, NULL }
	};

	return scaled(bytes_per_second, units, text);
}

const char *units_bits(double bytes_per_second, char text[UNITS_TEXT_SIZE])
{
	units_bandwidth(bytes_per_second * 8, text);
	*strchr(text, 'B') = 'b';
	return text;
}
