/* SPDX-License-Identifier: BSD-2-Clause */
/* How long the process ran, and how long it was runnable without a processor (CONFIG_SCHED_INFO; else both are 0). */
#include <inttypes.h>

#include "cmd/reporting/reporting.h"
#include "core/clock.h"
#include "core/units.h"

#define WAIT_LEAST (100 * CLOCK_NS_PER_MS)

enum {
	RAN_PER_WAIT = 4 /* a limit of 80 % of a processor */
};

struct reporting_processor reporting_processor(void)
{
	struct reporting_processor times = { 0 };
	FILE *file = fopen("/proc/self/schedstat", "re");

	if (file && fscanf(file, "%" SCNd64 " %" SCNd64, &times.ran, &times.waited) != 2)
		times = (struct reporting_processor){ 0 };
	if (file)
		fclose(file);
	return times;
}

void reporting_print_processor(FILE *stream)
{
	struct reporting_processor times = reporting_processor();
	char ran[UNITS_TEXT_SIZE], waited[UNITS_TEXT_SIZE];

	if (times.waited >= WAIT_LEAST && times.waited >= times.ran / RAN_PER_WAIT)
		fprintf(stream, "  processor: ran %s, waited %s: others had it, or a CPU limit stopped this process\n",
			units_time(times.ran, ran), units_time(times.waited, waited));
}
