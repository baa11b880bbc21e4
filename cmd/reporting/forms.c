/* SPDX-License-Identifier: BSD-2-Clause */
/* Which form was asked for, in a program that has all of them (text_only.c stands in for this otherwise). */
#include <string.h>

#include "cmd/reporting/reporting.h"

const struct reporting_form *reporting_asked_form(int argc, char *const *argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			return &reporting_json;
		if (!strcmp(argv[i], "--json-stream"))
			return &reporting_json_stream;
		if (!strcmp(argv[i], "--csv"))
			return &reporting_csv;
	}
	return &reporting_text;
}

const struct reporting_form *reporting_chosen_form(const struct reporting_options *options)
{
	if (options->json)
		return &reporting_json;
	if (options->json_stream)
		return &reporting_json_stream;
	return options->csv ? &reporting_csv : &reporting_text;
}
