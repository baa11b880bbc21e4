/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"

struct unit {
	double size;
	const char *text;
};

#define ROUNDED_UP 0.9995 /* from here on three digits are 1.00 */

/* Uses the largest unit that is not above the rounded value, or the last one. exact: with all digits, else with three,
 * even zeros. */
static const char *scaled(double value, const struct unit *unit, bool exact, char text[UNITS_TEXT_SIZE])
{
	while (value < ROUNDED_UP * unit->size && unit[1].text)
		unit++;
	value /= unit->size;
	if (exact || value < ROUNDED_UP)
		snprintf(text, UNITS_TEXT_SIZE, "%.*g%s", exact ? 9 : 3, value, unit->text);
	else
		snprintf(text, UNITS_TEXT_SIZE, "%.*f%s", (value < 9.995) + (value < 99.95), value, unit->text);
	return text;
}

static const char *time_text(int64_t nanoseconds, bool exact, char text[UNITS_TEXT_SIZE])
{
	static const struct unit units[] = { { 1e9, " s" }, { 1e6, " ms" }, { 1e3, " us" }, { 0, NULL } };

	if (nanoseconds < 1000)
		return log_text(text, UNITS_TEXT_SIZE, "%" PRId64 " ns", nanoseconds);
	return scaled((double)nanoseconds, units, exact, text);
}

const char *units_time(int64_t nanoseconds, char text[UNITS_TEXT_SIZE])
{
	return time_text(nanoseconds, false, text);
}

const char *units_exact_time(int64_t nanoseconds, char text[UNITS_TEXT_SIZE])
{
	return time_text(nanoseconds, true, text);
}

double units_seconds(int64_t nanoseconds)
{
	return (double)nanoseconds / 1e9;
}

const char *units_duration(int64_t nanoseconds, char text[UNITS_TEXT_SIZE])
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

	return scaled(per_second, units, false, text);
}

const char *units_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

const char *units_bandwidth(double bytes_per_second, char text[UNITS_TEXT_SIZE])
{
	static const struct unit units[] = {
		{ 1e9, " Gbit/s" }, { 1e6, " Mbit/s" }, { 1e3, " kbit/s" }, { 1, " bit/s" }, { 0, NULL }
	};

	return scaled(bytes_per_second * 8, units, false, text);
}
