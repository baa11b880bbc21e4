/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/report.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>

void report_open(struct report *report, FILE *stream, const struct report_format *format)
{
	report->stream = stream;
	report->format = format;
	report->depth = 0;
	report->frames[0] = (struct report_frame){ 0 };
	report->separates = false;
	report->labels[0] = 0;
	report->entry[0] = 0;
	if (format->opening)
		fputs(format->opening, stream);
}

void report_close(struct report *report)
{
	assert(!report->depth);
	if (report->format->closing)
		fputs(report->format->closing, report->stream);
}

struct report_frame *report_top(struct report *report)
{
	return &report->frames[report->depth];
}

bool report_in_list(const struct report *report)
{
	for (unsigned i = 1; i <= report->depth; i++)
		if (report->frames[i].nesting == REPORT_LIST)
			return true;
	return false;
}

static void report_begin(struct report *report, const char *name, enum report_nesting nesting)
{
	assert(report->depth + 1 < REPORT_DEPTH_MAX);
	if (report->format->begin)
		report->format->begin(report, name, nesting);
	report->depth++;
	*report_top(report) = (struct report_frame){ .name = name, .nesting = nesting };
	if (!name)
		report->entry[0] = 0;
}

void report_object(struct report *report, const char *name)
{
	report_begin(report, name, REPORT_OBJECT);
}

void report_list(struct report *report, const char *name)
{
	report_begin(report, name, REPORT_LIST);
}

void report_end(struct report *report)
{
	assert(report->depth);
	if (report->format->end)
		report->format->end(report);
	if (report_top(report)->nesting == REPORT_LIST)
		report->entry[0] = 0;
	report->depth--;
}

void report_add(struct report *report, const char *name, struct report_value value)
{
	report->format->value(report, name, value);
}

static void add_number(struct report *report, const char *name, enum report_kind kind, uint64_t number, bool known)
{
	report_add(report, name,
		   (struct report_value){ .kind = known ? kind : REPORT_NONE, .number = known ? number : kind });
}

void report_count(struct report *report, const char *name, uint64_t count)
{
	report_count_known(report, name, count, true);
}

void report_counter(struct report *report, const char *name, uint64_t count)
{
	report_add(report, name, (struct report_value){ .kind = REPORT_COUNT, .counts = true, .number = count });
}

void report_count_known(struct report *report, const char *name, uint64_t count, bool known)
{
	add_number(report, name, REPORT_COUNT, count, known);
}

static void add_time(struct report *report, const char *name, int64_t nanoseconds, bool known)
{
	add_number(report, name, REPORT_TIME, nanoseconds > 0 ? (uint64_t)nanoseconds : 0, known);
}

void report_time(struct report *report, const char *name, int64_t nanoseconds)
{
	add_time(report, name, nanoseconds, true);
}

void report_time_known(struct report *report, const char *name, int64_t nanoseconds)
{
	add_time(report, name, nanoseconds, nanoseconds);
}

void report_rate(struct report *report, const char *name, enum report_kind kind, uint64_t count, int64_t nanoseconds)
{
	struct report_value value = { .kind = kind, .rate = (double)(int64_t)count * 1e9 / (double)nanoseconds };

	if (nanoseconds > 0 && !report->without_rates)
		report_add(report, name, value);
	else
		add_number(report, name, kind, 0, false);
}

void report_text(struct report *report, const char *name, const char *text)
{
	if (text && *text)
		report_add(report, name, (struct report_value){ .kind = REPORT_TEXT, .text = text });
	else
		add_number(report, name, REPORT_TEXT, 0, false);
}

void report_flag(struct report *report, const char *name, bool flag)
{
	add_number(report, name, REPORT_FLAG, flag, true);
}

/* The samples' times, with those that need the buckets if histogram is not NULL. */
static void add_times(struct report *report, const struct samples *samples, const struct histogram *histogram)
{
	static const struct {
		char name[6];
		uint16_t per_mille;
		uint8_t forms;
	} percentiles[] = { { "p50", 500, IN_FULL | IN_STEP },
			    { "p90", 900, IN_FULL },
			    { "p99", 990, IN_FULL | IN_ROW | IN_STEP },
			    { "p99.9", 999, IN_FULL } };
	const enum report_form form = report->format->form;
	uint64_t count = samples->count;

	if (form != IN_STEP)
		add_time(report, "min", samples->minimum, count);
	add_time(report, "avg", samples_average(samples), count);
	if (form != IN_STEP)
		add_time(report, "max", samples->maximum, count);
	if (!histogram)
		return;
	if (form & IN_FULL)
		add_time(report, "mdev", histogram_deviation(histogram), count);
	for (size_t i = 0; i < sizeof(percentiles) / sizeof(percentiles[0]); i++) {
		unsigned per_mille = percentiles[i].per_mille;

		if (form & percentiles[i].forms)
			add_time(report, percentiles[i].name, histogram_percentile(histogram, per_mille),
				 form & IN_TEXT ? histogram_has(histogram, per_mille) : count);
	}
}

void report_samples(struct report *report, const char *name, const struct samples *samples)
{
	if (!samples->count)
		return;
	report_object(report, name);
	add_times(report, samples, NULL);
	report_end(report);
}

static void add_buckets(struct report *report, const struct histogram *histogram)
{
	report_list(report, "buckets");
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (!histogram->buckets[i])
			continue;
		report_object(report, NULL);
		report_time(report, "from", histogram_bucket_start(i));
		report_time(report, "below", histogram_bucket_start(i + 1));
		report_count(report, "count", histogram->buckets[i]);
		report_end(report);
	}
	report_end(report);
}

/* report_block omits empty values, and has one time for one sample. */
void report_histogram(struct report *report, const char *name, const struct histogram *histogram)
{
	const enum report_form form = report->format->form;
	uint64_t count = histogram->all.count;

	if (form == IN_BLOCK && !count)
		return;
	report_object(report, name);
	if (form & IN_FULL)
		report_count(report, "count", count);
	if (form == IN_BLOCK && count == 1)
		report_time(report, "time", histogram->all.minimum);
	else
		add_times(report, &histogram->all, histogram);
	if (form == IN_JSON && report->buckets)
		add_buckets(report, histogram);
	report_end(report);
	if (!report->buckets || !(form & (IN_BLOCK | IN_STEP)) || count < 2 || report_in_list(report) || report->header)
		return;
	if (form == IN_STEP)
		fputc('\n', report->stream); /* the row's */
	histogram_draw(histogram, report->columns, report->stream);
}

void report_print_name(FILE *stream, const char *name, enum report_kind kind, const char *time_unit)
{
	for (; *name; name++)
		fputc(*name == '.' ? '_' : *name, stream);
	fputs(kind == REPORT_TIME				? time_unit
	      : kind == REPORT_RATE || kind == REPORT_BANDWIDTH ? "_per_second"
								: "",
	      stream);
}

void report_print_number(FILE *stream, struct report_value value)
{
	if (value.kind == REPORT_RATE || value.kind == REPORT_BANDWIDTH)
		fprintf(stream, "%.3f", value.rate);
	else
		fprintf(stream, "%" PRIu64, value.number);
}
