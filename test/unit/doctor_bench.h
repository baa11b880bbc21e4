/* SPDX-License-Identifier: BSD-2-Clause */
/* Doctor for tests of a part of it: without a device, a loop or a transport, and with its lines in memory. */
#pragma once

#include "cmd/doctor/doctor.h"
#include "test/unit/unit.h"

struct doctor_bench {
	struct run run;
	struct output printed;
	struct doctor_options options;
	struct doctor doctor;
	char *output; /* after fflush(printed.stream) */
	size_t length;
};

static inline void doctor_bench_begin(struct doctor_bench *bench)
{
	memset(bench, 0, sizeof(*bench));
	bench->run.command = &doctor_command;
	bench->run.log.name = "doctor";
	bench->run.output = &bench->printed;
	bench->printed.stream = open_memstream(&bench->output, &bench->length);
	bench->options.common.path = (struct path_options)PATH_OPEN;
	bench->doctor.run = &bench->run;
	bench->doctor.options = &bench->options;
	bench->doctor.host.found = finding_found;
}

static inline void doctor_bench_end(struct doctor_bench *bench)
{
	findings_free(&bench->doctor.findings);
	free(bench->doctor.paths);
	fclose(bench->printed.stream);
	free(bench->output);
}
