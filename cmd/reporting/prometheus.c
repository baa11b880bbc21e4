/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/reporting/reporting.h"

/* Returns 0 or an errno value. */
static int write_file(struct reporting *reporting, const char *name)
{
	const struct transport *transport = reporting->environment->transport;
	char prefix[64];
	FILE *stream = fopen(name, "w");

	if (!stream)
		return errno;
	snprintf(prefix, sizeof(prefix), "rdmatest_%s", reporting->command->name);
	reporting->report.prefix = prefix;
	report_open(&reporting->report, stream, &report_prometheus);
	report_text(&reporting->report, "transport", transport ? transport_name(transport) : NULL);
	reporting_add_figures(reporting, REPORT_TOTAL);
	report_time(&reporting->report, "duration", clock_now() - reporting->started);
	report_flag(&reporting->report, "failed", reporting->environment->outcome != OUTCOME_OK);
	report_count(&reporting->report, "errors", reporting->told.count);
	report_close(&reporting->report);
	if (ferror(stream)) {
		fclose(stream);
		return EIO;
	}
	return fclose(stream) ? errno : 0;
}

/* A collector finds the old file or the new one, never a part: it does not read names without ".prom". */
void reporting_write_prometheus(struct reporting *reporting)
{
	const char *file = reporting->prometheus;
	char temporary[PATH_MAX];
	int error;

	if (!file)
		return;
	error = snprintf(temporary, sizeof(temporary), "%s.new", file) < (int)sizeof(temporary) ? 0 : ENAMETOOLONG;
	if (!error)
		error = write_file(reporting, temporary);
	if (!error && !rename(temporary, file))
		return;
	error = error ? error : errno;
	reporting->prometheus = NULL;
	unlink(temporary);
	log_errno(&reporting->environment->log, file, error, "--prometheus: the file cannot be written");
	environment_note(reporting->environment, OUTCOME_INTERNAL);
}
