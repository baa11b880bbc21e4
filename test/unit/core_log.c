/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/unit/unit.h"

#include <errno.h>
#include <fcntl.h>

static void error_line(void **state)
{
	const struct log log = { .name = "rdmatest rping" };
	struct capture capture;

	(void)state;
	capture_begin(&capture);
	log_error(&log, "10.0.0.1:7174", "connect: %s (%d)", "refused", 8);
	log_error(&log, NULL, "no object");
	assert_string_equal(capture_end(&capture), "rdmatest rping: 10.0.0.1:7174: connect: refused (8)\n"
						   "rdmatest rping: no object\n");
}

static void errno_in_words(void **state)
{
	const struct log log = { .name = "rping" };
	struct capture capture;

	(void)state;
	capture_begin(&capture);
	log_errno(&log, "rxe0", ECONNREFUSED, "open %s", "device");
	assert_string_equal(capture_end(&capture), "rping: rxe0: open device: Connection refused (111)\n");
}

static void quiet(void **state)
{
	const struct log log = { .name = "rping", .debug = true, .quiet = true };
	struct capture capture;

	(void)state;
	capture_begin(&capture);
	log_error(&log, "rxe0", "open");
	log_errno(&log, "rxe0", ECONNREFUSED, "open");
	log_hint(&log, "try");
	log_debug(&log, "trace");
	assert_string_equal(capture_end(&capture), "");
}

static void hint_line(void **state)
{
	const struct log log = { .name = "rping" };
	struct capture capture;

	(void)state;
	capture_begin(&capture);
	log_hint(&log, "try %s", "modprobe rdma_ucm");
	assert_string_equal(capture_end(&capture), "rping: hint: try modprobe rdma_ucm\n");
}

static void debug_only_when_asked_for(void **state)
{
	struct log log = { .name = "rping" };
	struct capture capture;

	(void)state;
	capture_begin(&capture);
	log_debug(&log, "unseen");
	log.debug = true;
	log_debug(&log, "seen %d", 1);
	assert_string_equal(capture_end(&capture), "rping: debug: seen 1\n");
}

struct listener {
	char held[64];
	unsigned offered, heard;
};

static bool hold(void *holder, const char *object, const char *text)
{
	struct listener *listener = holder;

	listener->offered++;
	if (!object || strcmp(object, "10.0.0.1"))
		return false;
	snprintf(listener->held, sizeof(listener->held), "%s", text);
	return true;
}

static void hear(const struct log *log, const char *object, const char *text)
{
	struct listener *listener = log->listener;

	(void)object;
	(void)text;
	listener->heard++;
}

static void line_may_be_held_back(void **state)
{
	struct listener listener = { .heard = 0 };
	struct log log = {
		.name = "rping", .heard = hear, .listener = &listener, .hold = hold, .holder = &listener, .debug = true
	};
	struct capture capture;

	(void)state;
	capture_begin(&capture);
	log_error(&log, "10.0.0.1", "not there: %d", 7);
	log_error(&log, "10.0.0.2", "not there");
	assert_string_equal(capture_end(&capture), "rping: 10.0.0.2: not there\n");
	assert_string_equal(listener.held, "not there: 7");
	assert_int_equal(listener.heard, 1);
	/* What is for developers is no error, and nobody's to hold. */
	capture_begin(&capture);
	log_debug(&log, "10.0.0.1 resolved");
	assert_string_equal(capture_end(&capture), "rping: debug: 10.0.0.1 resolved\n");
	assert_int_equal(listener.offered, 2);
	assert_int_equal(listener.heard, 1);
}

static void errno_is_kept(void **state)
{
	const struct log log = { .name = "rping", .debug = true };
	int full = open("/dev/full", O_WRONLY);
	struct capture capture;

	(void)state;
	assert_true(full >= 0);
	capture_begin(&capture);
	/* Where the line cannot be written either. */
	dup2(full, STDERR_FILENO);
	close(full);
	errno = EXDEV;
	log_error(&log, NULL, "one");
	log_errno(&log, NULL, ENOENT, "two");
	log_hint(&log, "three");
	log_debug(&log, "four");
	assert_int_equal(errno, EXDEV);
	capture_end(&capture);
}

static void control_characters_are_harmless(void **state)
{
	const struct log log = { .name = "rping" };
	struct capture capture;

	(void)state;
	capture_begin(&capture);
	log_error(&log, "a\nrping: all is well\033[2J", "caf\xc3\xa9 \x7f~\x1f ");
	assert_string_equal(capture_end(&capture), "rping: a?rping: all is well?[2J: caf\xc3\xa9 ?~? \n");
}

static void long_line_is_cut(void **state)
{
	const struct log log = { .name = "rping" };
	struct capture capture;
	char object[3000];
	const char *text;

	(void)state;
	memset(object, 'x', sizeof(object) - 1);
	object[sizeof(object) - 1] = 0;
	capture_begin(&capture);
	log_errno(&log, object, ENOENT, "%s", object);
	text = capture_end(&capture);
	assert_true(strlen(text) <= 1024);
	assert_string_equal(text + strlen(text) - 5, "x...\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(error_line),
		cmocka_unit_test(errno_in_words),
		cmocka_unit_test(hint_line),
		cmocka_unit_test(quiet),
		cmocka_unit_test(debug_only_when_asked_for),
		cmocka_unit_test(line_may_be_held_back),
		cmocka_unit_test(errno_is_kept),
		cmocka_unit_test(control_characters_are_harmless),
		cmocka_unit_test(long_line_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
