/* SPDX-License-Identifier: BSD-2-Clause */
/* Selects the form of standard output. */
#include <string.h>

#include "cmd/reporting/reporting.h"

const struct reporting_form *reporting_form_of_arguments(int argc, char *const *argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (!strcmp(argv[i], "--json"))
			return &reporting_json;
		if (!strcmp(argv[i], "--json-stream"))
			return &reporting_json_stream;
	}
	return &reporting_text;
}

const struct reporting_form *reporting_form_of_options(const struct reporting_options *options)
{
	if (options->json)
		return &reporting_json;
	return options->json_stream ? &reporting_json_stream : &reporting_text;
}
