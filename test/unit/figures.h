/* SPDX-License-Identifier: BSD-2-Clause */
/* A command's figures, as in a report. */
#pragma once

#include "test/unit/unit.h"

#include "cmd/reporting/reporting.h"
#include "core/clock.h"
#include "core/figures.h"

/* The figures as JSON: the increase since before, or the totals if that is NULL. */
static inline char *report_text_since(struct figures figures, const void *before, int64_t began)
{
	struct report report = { .interval_began = began, .interval_ended = clock_now() };
	char *text;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	report_open(&report, stream, &report_json);
	figures_report(&report, figures.rows, figures.values, before);
	report_close(&report);
	fclose(stream);
	return text;
}

static inline void assert_reports_since(struct figures figures, const void *before, int64_t began, const char *words)
{
	char *text = report_text_since(figures, before, began);

	if (!strstr(text, words))
		fail_saying("%s is not in: %s", words, text);
	free(text);
}
