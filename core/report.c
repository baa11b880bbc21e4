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
	report_top(report)->items++;
	report->depth++;
	*report_top(report) = (struct report_frame){ .name = name, .nesting = nesting };
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
	report->depth--;
}

static void add_value(struct report *report, const char *name, const struct report_value *value)
{
	report->format->value(report, name, value);
	report_top(report)->items++;
}

static void add_number(struct report *report, const char *name, enum report_kind kind, uint64_t number)
{
	add_value(report, name, &(struct report_value){ .kind = kind, .number = number });
}

void report_count(struct report *report, const char *name, uint64_t count)
{
	add_number(report, name, REPORT_COUNT, count);
}

void report_count_known(struct report *report, const char *name, uint64_t count, bool known)
{
	if (known)
		report_count(report, name, count);
	else
		add_number(report, name, REPORT_NONE, REPORT_COUNT);
}

void report_time(struct report *report, const char *name, int64_t nanoseconds)
{
	add_number(report, name, REPORT_TIME, nanoseconds > 0 ? (uint64_t)nanoseconds : 0);
}

void report_time_known(struct report *report, const char *name, int64_t nanoseconds)
{
	if (nanoseconds)
		report_time(report, name, nanoseconds);
	else
		add_number(report, name, REPORT_NONE, REPORT_TIME);
}

void report_rate(struct report *report, const char *name, enum report_kind kind, uint64_t count, int64_t nanoseconds)
{
	if (nanoseconds > 0 && !report->without_rates)
		add_value(report, name,
			  &(struct report_value){ .kind = kind, .rate = (double)count * 1e9 / (double)nanoseconds });
	else
		add_number(report, name, REPORT_NONE, kind);
}

void report_text(struct report *report, const char *name, const char *text)
{
	if (text)
		add_value(report, name, &(struct report_value){ .kind = REPORT_TEXT, .text = text });
	else
		add_number(report, name, REPORT_NONE, REPORT_TEXT);
}

void report_flag(struct report *report, const char *name, bool flag)
{
	add_number(report, name, REPORT_FLAG, flag);
}

static void add_sample(struct report *report, const struct samples *samples, const char *name, int64_t time)
{
	if (samples->count)
		report_time(report, name, time);
	else
		add_number(report, name, REPORT_NONE, REPORT_TIME);
}

static void add_samples(struct report *report, const struct samples *samples)
{
	add_sample(report, samples, "min", samples->minimum);
	add_sample(report, samples, "avg", samples_average(samples));
	add_sample(report, samples, "max", samples->maximum);
}

void report_samples(struct report *report, const char *name, const struct samples *samples)
{
	if (!samples->count)
		return;
	report_object(report, name);
	add_samples(report, samples);
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

void report_histogram(struct report *report, const char *name, const struct histogram *histogram)
{
	const struct samples *samples = &histogram->all;

	if (report->format->omits_empty && !samples->count)
		return;
	report_object(report, name);
	if (!report->format->brief)
		report_count(report, "count", samples->count);
	if (report->format->omits_empty && samples->count == 1) {
		report_time(report, "time", samples->minimum);
		report_end(report);
		return;
	}
	add_samples(report, samples);
	if (report->format->brief) {
		add_sample(report, samples, "p99", histogram_percentile(histogram, 990));
		report_end(report);
		return;
	}
	add_sample(report, samples, "mdev", histogram_deviation(histogram));
	add_sample(report, samples, "p50", histogram_percentile(histogram, 500));
	add_sample(report, samples, "p90", histogram_percentile(histogram, 900));
	add_sample(report, samples, "p99", histogram_percentile(histogram, 990));
	add_sample(report, samples, "p99.9", histogram_percentile(histogram, 999));
	if (report->buckets && report->format->lists)
		add_buckets(report, histogram);
	report_end(report);
	if (report->buckets && report->format->draws_buckets && !report_in_list(report))
		histogram_draw(histogram, "    ", report->stream);
}

void report_print_key(FILE *stream, const char *name, const struct report_value *value)
{
	static const char *const units[REPORT_NONE] = {
		[REPORT_TIME] = "_ns",
		[REPORT_RATE] = "_per_second",
		[REPORT_BANDWIDTH] = "_per_second",
	};
	uint64_t kind = value->kind == REPORT_NONE ? value->number : value->kind;

	for (; *name; name++)
		fputc(*name == '.' ? '_' : *name, stream);
	fputs(units[kind] ? units[kind] : "", stream);
}

void report_print_number(FILE *stream, const struct report_value *value)
{
	switch (value->kind) {
	case REPORT_COUNT:
	case REPORT_TIME:
		fprintf(stream, "%" PRIu64, value->number);
		break;
	case REPORT_RATE:
	case REPORT_BANDWIDTH:
		fprintf(stream, "%.3f", value->rate);
		break;
	case REPORT_FLAG:
		fputs(value->number ? "true" : "false", stream);
		break;
	case REPORT_TEXT:
	case REPORT_NONE:
		break;
	}
}
