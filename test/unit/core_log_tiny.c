/* SPDX-License-Identifier: BSD-2-Clause */
/* The tiny twin of core/log.c, compiled as without WITH_DIAGNOSTICS. */
#undef WITH_DIAGNOSTICS
#define WITH_DIAGNOSTICS 0
#include "core/log_tiny.c"
#include "core/output_tiny.c"

#include "test/unit/unit.h"

#include "test/unit/fake_clock.h"

TEST(one_line_a_second)
{
	struct log_limit limit = { .since = 0 };

	for (int second = 0; second < 2; second++) {
		assert_true(log_allows(&limit));
		fake_clock_pass(CLOCK_NS_PER_S - 1);
		assert_false(log_allows(&limit));
		fake_clock_pass(1);
	}
}

TEST(an_error_is_a_line)
{
	const struct error error = { .cause = "refused" };
	struct log log = { .name = "tool" };
	struct capture capture;

	capture_begin(&capture);
	errno = EINTR;
	log_report(&log, &error);
	assert_int_equal(errno, EINTR);
	log.silent = true;
	log_report(&log, &error);
	assert_string_equal(capture_end(&capture), "tool: refused\n");
}
