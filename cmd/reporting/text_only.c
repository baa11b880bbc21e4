/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of what `make WITH_JSON=0` leaves out: everything that only programs read. */
#include <stddef.h>

#include "cmd/reporting/reporting.h"

const struct reporting_form *reporting_asked_form(int argc, char *const *argv)
{
	(void)argc;
	(void)argv;
	return &reporting_text;
}

const struct reporting_form *reporting_chosen_form(const struct reporting_options *options)
{
	(void)options;
	return &reporting_text;
}

void reporting_write_prometheus(struct reporting *reporting)
{
	(void)reporting;
}
