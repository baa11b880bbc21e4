/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A report in Prometheus' text format, for node_exporter's textfile collector: "prefix_objects_name{labels} value", in
 * Prometheus' base units. Top-level texts (the target) are labels of all samples that follow, so that two runs on one
 * host differ. Texts in a list entry are labels of its samples, unless there is a top-level label of that name: the
 * format allows no duplicates. Texts in other objects (the path) are omitted, and of rows those without FIGURE_LABEL.
 */
#include <inttypes.h>
#include <string.h>

#include "core/figures.h"

enum {
	LABELS_SIZE = sizeof(((struct report *)0)->labels)
};

/* Appends name="text" to labels, or nothing if it may not fit. */
static void add_label(char labels[LABELS_SIZE], const char *name, const char *text)
{
	size_t length = strlen(labels);
	size_t room = LABELS_SIZE - length;
	char *end = labels + length;
	int written = snprintf(end, room, "%s%s=\"", length ? "," : "", name);

	if (written < 0 || (size_t)written + 2 * strlen(text) + 2 > room) {
		*end = 0;
		return;
	}
	end += written;
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			*end++ = '\\';
		*end++ = *text >= ' ' && *text <= '~' ? *text : '?';
	}
	strcpy(end, "\"");
}

static bool has_label(const char *labels, const char *name)
{
	size_t length = strlen(name);

	/* Every quote within a value follows a backslash, so =" does not occur there. */
	for (const char *at = labels; (at = strstr(at, name)); at++)
		if ((at == labels || at[-1] == ',') && at[length] == '=' && at[length + 1] == '"')
			return true;
	return false;
}

static void prometheus_begin(struct report *report, const char *name, enum report_nesting nesting)
{
	(void)nesting;
	if (!name)
		report->entry[0] = 0;
}

static void prometheus_end(struct report *report)
{
	if (report_top(report)->nesting == REPORT_LIST)
		report->entry[0] = 0;
}

static void prometheus_name(struct report *report, const char *name, struct report_value value)
{
	static const char *const units[REPORT_NONE] = {
		[REPORT_COUNT] = "",
		[REPORT_TIME] = "_seconds",
		[REPORT_RATE] = "_per_second",
		[REPORT_BANDWIDTH] = "_per_second",
	};
	const char *unit = units[value.kind];
	const char *comma = report->labels[0] && report->entry[0] ? "," : "";

	fputs(report->prefix, report->stream);
	for (unsigned i = 1; i <= report->depth; i++)
		if (report->frames[i].name)
			fprintf(report->stream, "_%s", report->frames[i].name);
	fputc('_', report->stream);
	for (; *name; name++)
		fputc(*name == '.' ? '_' : *name, report->stream);
	fprintf(report->stream, "%s{%s%s%s} ", unit ? unit : "", report->labels, comma, report->entry);
}

static void prometheus_value(struct report *report, const char *name, struct report_value value)
{
	if (value.kind == REPORT_TEXT && report_in_list(report) && !has_label(report->labels, name))
		add_label(report->entry, name, value.text);
	else if (value.kind == REPORT_TEXT && !report->depth)
		add_label(report->labels, name, value.text);
	if (value.kind == REPORT_TEXT || value.kind == REPORT_NONE)
		return;
	prometheus_name(report, name, value);
	if (value.kind == REPORT_TIME)
		fprintf(report->stream, "%" PRIu64 ".%09" PRIu64 "\n", value.number / 1000000000,
			value.number % 1000000000);
	else if (value.kind == REPORT_FLAG)
		fprintf(report->stream, "%" PRIu64 "\n", value.number);
	else {
		report_print_number(report->stream, value);
		fputc('\n', report->stream);
	}
}

const struct report_format report_prometheus = {
	.begin = prometheus_begin,
	.end = prometheus_end,
	.value = prometheus_value,
	.labels = true,
	.without = FIGURE_ONLY_TEXT | FIGURE_NOT_PROMETHEUS,
};
