/* SPDX-License-Identifier: BSD-2-Clause */
/* Figures by their rows: totals, intervals, and differences between formats. */
#include "test/unit/figures.h"

#include "test/unit/fake_clock.h"

struct inner {
	uint64_t arrived;
	uint64_t lost;
};

struct sample {
	const char *role;
	const char *nothing;
	uint64_t sent;
	uint64_t failed;
	uint64_t warmup;
	uint64_t size;
	int64_t time;
	int64_t unknown;
	bool good;
	struct inner inner;
	struct rate rate;
	struct samples samples;
	struct histogram histogram;
};

#define ROW(kind, name, member, ...) FIGURE(kind, name, struct sample, member, __VA_ARGS__)

static const struct figure inner_rows[] = {
	FIGURE(COUNT, "lost", struct inner, lost, .others = FIGURE_OTHERS(struct inner, lost, arrived)),
	FIGURES_END,
};

static const struct figure rate_rows[] = {
	ROW(COUNT, "warmup", warmup, .forms = IN_PROMETHEUS),
	ROW(RATE, "rate", rate),
	ROW(RATE, "whole", rate, .flags = FIGURE_WHOLE),
	ROW(BANDWIDTH, "bytes", rate),
	FIGURES_END,
};

static void add_word(struct report *report, const void *member)
{
	report_text(report, "word", *(const char *const *)member);
}

static void add_entries(struct report *report, const void *member)
{
	for (int i = 0; i < 2; i++) {
		report_object(report, NULL);
		figures_report(report, inner_rows, member, NULL);
		report_end(report);
	}
}

static const struct figure rows[] = {
	ROW(TEXT, "role", role, .flags = FIGURE_LABEL),
	ROW(TEXT, "nothing", nothing),
	ROW(COUNT, "sent", sent),
	ROW(COUNT, "failed", failed, .forms = IN_FULL, .flags = FIGURE_UNLESS_0),
	ROW(GAUGE, "size", size),
	ROW(TIME, "time", time, .forms = IN_FULL),
	ROW(TIME, "unknown", unknown),
	ROW(FLAG, "good", good, .forms = IN_TEXT),
	FIGURES_OF_ROWS("inner", struct sample, inner, inner_rows),
	FIGURES_ROWS(rate_rows),
	ROW(SAMPLES, "samples", samples),
	FIGURES_OF_CODE(OBJECT, "object", struct sample, role, add_word, .forms = IN_PROGRAMS),
	FIGURES_OF_CODE(LIST, "list", struct sample, inner, add_entries),
	FIGURES_END,
};

static const struct figure histogram_rows[] = {
	ROW(HISTOGRAM, "times", histogram),
	FIGURES_END,
};

static const struct sample filled = {
	.role = "client",
	.sent = 7,
	.size = 3,
	.time = 5,
	.good = true,
	.inner = { .arrived = 4, .lost = 4 },
	.rate = { .count = 6, .bytes = 60, .from = CLOCK_NS_PER_S, .to = 3 * CLOCK_NS_PER_S },
};

static void assert_text(const struct report_format *format, const struct figure *table, const void *values,
			const void *before, const char *expected)
{
	struct report report = { .command = "test",
				 .of_steps = format == &report_steps,
				 .interval_began = 2 * CLOCK_NS_PER_S,
				 .interval_ended = clock_now() };
	size_t length;
	char *text;

	report_open(&report, open_memstream(&text, &length), format);
	figures_report(&report, table, values, before);
	report_close(&report);
	fclose(report.stream);
	assert_string_equal(text, expected);
	free(text);
}

TEST(totals)
{
	struct sample sample = filled;

	samples_add(&sample.samples, 2);
	samples_add(&sample.samples, 4);
	assert_text(&report_json, rows, &sample, NULL,
		    "{\"role\":\"client\",\"nothing\":null,\"sent\":7,\"failed\":0,\"size\":3,\"time_ns\":5,"
		    "\"unknown_ns\":null,\"inner\":{\"lost\":4},\"rate_per_second\":3.000,\"whole_per_second\":3.000,"
		    "\"bytes_per_second\":30.000,\"samples\":{\"min_ns\":2,\"avg_ns\":3,\"max_ns\":4},"
		    "\"object\":{\"word\":\"client\"},\"list\":[{\"lost\":4},{\"lost\":4}]}\n");
	assert_text(&report_table, rows, &filled, NULL,
		    "      7      3         -   yes      4    3.00/s    3.00/s   240 bit/s\n");
	assert_text(&report_block, rows, &filled, NULL,
		    "  sent: 7\n  size: 3\n  time: 5 ns\n  good: yes\n  inner: lost 4 (50%)\n  rate: 3.00/s\n"
		    "  whole: 3.00/s\n  bandwidth: 240 bit/s\n  list:\n    lost 4 (50%)\n    lost 4 (50%)\n");
}

/* A block has a count of losses with its share, and no zeros that say nothing. */
TEST(shares)
{
	static const struct {
		struct inner inner;
		const char *text;
	} cases[] = {
		{ { 0, 0 }, "  lost: 0\n" },
		{ { 3, 0 }, "  lost: 0 (0%)\n" },
		{ { 2, 1 }, "  lost: 1 (33.3%)\n" },
		{ { 0, 1 }, "  lost: 1 (100%)\n" },
		{ { 9999, 1 }, "  lost: 1 (0.01%)\n" },
		{ { 10000, 1 }, "  lost: 1 (<0.01%)\n" },
	};
	static const struct figure zeros[] = {
		ROW(COUNT, "failed", failed, .flags = FIGURE_UNLESS_0),
		ROW(GAUGE, "size", size, .flags = FIGURE_UNLESS_0),
		ROW(COUNT, "sent", sent),
		FIGURES_END,
	};

	for (size_t i = 0; i < LENGTH(cases); i++)
		assert_text(&report_block, inner_rows, &cases[i].inner, NULL, cases[i].text);
	assert_text(&report_block, zeros, &(struct sample){ .sent = 0 }, NULL, "  sent: 0\n");
	assert_text(&report_block, zeros, &(struct sample){ .failed = 1, .size = 2 }, NULL,
		    "  failed: 1\n  size: 2\n  sent: 0\n");
}

/*
 * In Prometheus a label applies to every later sample; other texts are omitted. A figure that may decrease is not a
 * counter.
 */
TEST(labels)
{
	static const struct figure label_rows[] = {
		ROW(TEXT, "nothing", nothing),
		ROW(TEXT, "role", role, .flags = FIGURE_LABEL),
		ROW(COUNT, "sent", sent),
		ROW(COUNT, "lost", inner.lost, .flags = FIGURE_MAY_DECREASE),
		FIGURES_END,
	};
	struct sample sample = filled;

	sample.nothing = "text";
	assert_text(&report_prometheus, label_rows, &sample, NULL,
		    "+rdmatest_test_sent{role=\"client\"} 7\nrdmatest_test_lost{role=\"client\"} 4\n");
}

/* A count that has decreased has no increase. A rate ends with its last count, unless it goes on. */
TEST(intervals)
{
	struct sample before = { .sent = 5, .size = 9, .inner.lost = 6, .rate = { .count = 4, .bytes = 40 } };
	struct sample sample = filled;
	struct figures figures = { .rows = rows, .values = &sample };

	assert_text(&report_json, inner_rows, &filled.inner, &before.inner, "{\"lost\":0}\n");
	assert_reports_since(figures, &before, 2 * CLOCK_NS_PER_S, "\"sent\":2,\"failed\":0,\"size\":3,");
	assert_reports_since(figures, &before, 2 * CLOCK_NS_PER_S, "\"rate_per_second\":2.000,");
	assert_reports_since(figures, &before, 2 * CLOCK_NS_PER_S, "\"bytes_per_second\":20.000,");
	assert_reports_since(figures, &before, 2 * CLOCK_NS_PER_S, "\"list\":[]");
	/* The interval has lasted 10 s, and half of it passes before the first count. */
	fake_clock.passed = 11 * CLOCK_NS_PER_S;
	sample.rate.from = 7 * CLOCK_NS_PER_S;
	sample.rate.goes_on = true;
	assert_reports_since(figures, &before, 2 * CLOCK_NS_PER_S,
			     "\"rate_per_second\":0.400,\"whole_per_second\":0.200,\"bytes_per_second\":4.000,");
}

/* An interval that is a step ends with its last count. Tables of intervals and of steps have their own figures. */
TEST(steps)
{
	static const struct figure step_rows[] = {
		ROW(GAUGE, "step", size, .forms = IN_FULL | IN_STEP), /* and in no table of intervals */
		ROW(COUNT, "sent", sent),
		ROW(COUNT, "lost", inner.lost, .forms = IN_FULL | IN_ROW),
		ROW(TIME, "time", time, .forms = IN_FULL),
		ROW(RATE, "whole", rate, .flags = FIGURE_WHOLE),
		FIGURES_END,
	};
	struct sample before = { .rate.count = 4 };

	fake_clock.passed = 11 * CLOCK_NS_PER_S;
	assert_text(&report_steps, step_rows, &filled, &before, "      3      7    2.00/s\n");
	assert_text(&report_table, step_rows, &filled, NULL, "      7      4    3.00/s\n");
}

/* A gauge counts nothing. */
TEST(counts_that_increase)
{
	struct sample sample = filled, before = filled;

	before.size = 9;
	before.sent = 8;
	assert_false(figures_increased(rows, &sample, &before));
	sample.failed++;
	assert_true(figures_increased(rows, &sample, &before));
	before = sample;
	sample.warmup++;
	assert_true(figures_increased(rows, &sample, &before));
}

/* For a histogram, only the interval's samples. */
TEST(histogram_of_an_interval)
{
	static struct sample sample, before, alone;
	struct figures figures = { histogram_rows, &sample, &before, sizeof(sample) };
	struct histogram *difference = calloc(1, sizeof(*difference));

	for (int round = 0; round < 3; round++) {
		memset(&alone, 0, sizeof(alone));
		for (int i = 0; i < 100 * round; i++) {
			histogram_add(&sample.histogram, 1000000 / (round + 1) + i * i * i);
			histogram_add(&alone.histogram, 1000000 / (round + 1) + i * i * i);
		}
		histogram_difference(&sample.histogram, &before.histogram, difference);
		assert_memory_equal(&difference->all, &alone.histogram.all, sizeof(alone.histogram.all));
		assert_memory_equal(difference->buckets, alone.histogram.buckets, sizeof(difference->buckets));
		assert_int_equal(histogram_deviation(difference), histogram_deviation(&alone.histogram));
		figures_copy(figures);
	}
	free(difference);
}
