/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/figures.h"

#include <string.h>

static void add_count(struct report *report, const struct figure *row, const uint64_t *count, const uint64_t *before)
{
	uint64_t old = before ? *before : 0;

	report_add(report, row->name,
		   (struct report_value){ .kind = REPORT_COUNT,
					  .counts = !(row->flags & FIGURE_MAY_DECREASE),
					  .whole = row->others && !before ? *count + count[row->others] : 0,
					  .number = *count > old ? *count - old : 0 });
}

static void add_rate(struct report *report, const struct figure *row, const struct rate *rate,
		     const struct rate *before)
{
	bool whole = before && row->flags & FIGURE_WHOLE && !report->of_steps, of_bytes = row->kind == FIGURE_BANDWIDTH;
	uint64_t count = of_bytes ? rate->bytes : rate->count;
	int64_t from = rate->from, to = before && (whole || rate->goes_on) ? report->interval_ended : rate->to;

	if (whole || (before && from && from < report->interval_began))
		from = report->interval_began;
	if (before)
		count -= of_bytes ? before->bytes : before->count;
	report_rate(report, row->name, of_bytes ? REPORT_BANDWIDTH : REPORT_RATE, count, from ? to - from : 0);
}

static void add_histogram(struct report *report, const char *name, const struct histogram *histogram,
			  const struct histogram *before)
{
	struct histogram difference = { 0 };

	if (before)
		histogram_difference(histogram, before, &difference);
	report_histogram(report, name, before || report->of_steps ? &difference : histogram);
}

static void add_figure(struct report *report, const struct figure *row, const void *member, const void *before)
{
	bool known = before || !report->of_steps;

	switch ((enum figure_kind)row->kind) {
	case FIGURE_COUNT:
		add_count(report, row, member, before);
		break;
	case FIGURE_GAUGE:
		report_count_known(report, row->name, *(const uint64_t *)member, known);
		break;
	case FIGURE_TIME:
		report_time_known(report, row->name, *(const int64_t *)member);
		break;
	case FIGURE_RATE:
	case FIGURE_BANDWIDTH:
		add_rate(report, row, member, before);
		break;
	case FIGURE_TEXT:
		report_text(report, row->name, *(const char *const *)member);
		break;
	case FIGURE_FLAG:
		report_flag(report, row->name, *(const bool *)member);
		break;
	case FIGURE_SAMPLES:
		if (known)
			report_samples(report, row->name, member);
		break;
	case FIGURE_HISTOGRAM:
		add_histogram(report, row->name, member, before);
		break;
	case FIGURE_OBJECT:
		report_object(report, row->name);
		break;
	case FIGURE_LIST:
		report_list(report, row->name);
		break;
	case FIGURE_CLOSE:
		report_end(report);
		break;
	case FIGURE_ROWS:
		figures_report(report, row->rows, member, before);
		break;
	case FIGURE_CODE:
		if (!before || !report_in_list(report))
			row->add(report, member);
		report_end(report);
		break;
	}
}

void figures_report(struct report *report, const struct figure *rows, const void *values, const void *before)
{
	const char *old = before;
	enum report_form form = report->format->form;

	for (const struct figure *row = rows; row->kind; row++) {
		const void *member = (const char *)values + row->offset;

		if (form == IN_PROMETHEUS && row->kind == FIGURE_TEXT && !(row->flags & FIGURE_LABEL))
			continue;
		if (form == IN_BLOCK && row->flags & FIGURE_UNLESS_0 && !*(const uint64_t *)member)
			continue;
		if (!row->forms || row->forms & form)
			add_figure(report, row, member, old ? old + row->offset : NULL);
		else if (row->kind == FIGURE_OBJECT || row->kind == FIGURE_LIST)
			while (row->kind != FIGURE_CLOSE && row->kind != FIGURE_CODE)
				row++;
	}
}

bool figures_increased(const struct figure *rows, const void *values, const void *before)
{
	for (const struct figure *row = rows; row->kind; row++) {
		const void *now = (const char *)values + row->offset, *old = (const char *)before + row->offset;

		if (row->kind == FIGURE_COUNT  ? *(const uint64_t *)now > *(const uint64_t *)old
		    : row->kind == FIGURE_ROWS ? figures_increased(row->rows, now, old)
					       : false)
			return true;
	}
	return false;
}

static void clear_recent(const struct figure *rows, char *values)
{
	for (const struct figure *row = rows; row->kind; row++) {
		if (row->kind == FIGURE_HISTOGRAM)
			((struct histogram *)(values + row->offset))->recent = (struct samples){ 0 };
		else if (row->kind == FIGURE_ROWS)
			clear_recent(row->rows, values + row->offset);
	}
}

void figures_copy(struct figures figures)
{
	if (!figures.before)
		return;
	memcpy(figures.before, figures.values, figures.size);
	clear_recent(figures.rows, figures.values);
}
