/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces the forms for programs with WITH_JSON=0. */
#include <stddef.h>

#include "cmd/reporting/reporting.h"

const struct reporting_form *reporting_form_of_arguments(int argc, char *const *argv)
{
	(void)argc;
	(void)argv;
	return &reporting_text;
}

const struct reporting_form *reporting_form_of_options(const struct reporting_options *options)
{
	(void)options;
	return &reporting_text;
}

void reporting_write_prometheus(struct reporting *reporting)
{
	(void)reporting;
}
