/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces cmd/reporting with WITH_REPORT=0, which leaves only the classic lines and --quiet. */
#include "cmd/command.h"
#include "cmd/output.h"
#include "cmd/reporting/reporting.h"

void reporting_prepare(struct reporting *reporting, struct environment *environment, const struct command *command,
		       int argc, char *const *argv)
{
	(void)command;
	(void)argc;
	(void)argv;
	reporting->environment = environment;
}

enum outcome reporting_choose(struct reporting *reporting, const struct reporting_options *options)
{
	if (!options->quiet)
		return OUTCOME_OK;
	return output_discard(&reporting->environment->output, &reporting->environment->log);
}

enum outcome reporting_open(struct reporting *reporting)
{
	return reporting->environment->outcome;
}

void reporting_start(struct reporting *reporting, void *state)
{
	(void)reporting;
	(void)state;
}

void reporting_summary(struct reporting *reporting)
{
	(void)reporting;
}

void reporting_record_error(struct reporting *reporting, const char *part, const struct error *error)
{
	(void)reporting;
	(void)part;
	(void)error;
}

void reporting_record_hint(struct reporting *reporting, const char *text)
{
	(void)reporting;
	(void)text;
}

void reporting_finish(struct reporting *reporting)
{
	(void)reporting;
}

void reporting_close(struct reporting *reporting)
{
	(void)reporting;
}

void reporting_free(struct reporting *reporting)
{
	(void)reporting;
}
