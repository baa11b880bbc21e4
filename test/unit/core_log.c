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

static void discarded(void **state)
{
	const struct log log = { .name = "rping", .debug = true, .sink = &log_discard };
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

/* ---- sinks ---- */

struct received {
	struct error error;
	char hint[32];
	unsigned errors, hints;
};

static void receive_error(const struct log *log, const struct error *error)
{
	struct received *received = log->context;

	received->error = *error;
	received->errors++;
	errno = ENOENT; /* which is kept */
}

static void receive_hint(const struct log *log, const char *text)
{
	struct received *received = log->context;

	snprintf(received->hint, sizeof(received->hint), "%s", text);
	received->hints++;
	errno = ENOENT;
}

static const struct log_sink sink = { .error = receive_error, .hint = receive_hint };

static void assert_error(const struct error *error, const char *object, const char *phase, const char *cause,
			 const char *code, const char *expected)
{
	char text[ERROR_TEXT_SIZE];

	assert_string_equal(error->object, object);
	assert_string_equal(error->phase, phase);
	assert_string_equal(error->cause, cause);
	assert_string_equal(error->code, code);
	assert_string_equal(error_text(error, text), expected);
}

static void sink_receives_the_parts(void **state)
{
	struct received received = { .errors = 0 };
	const struct log log = { .name = "rping", .sink = &sink, .context = &received, .debug = true };
	struct failure failure = { .object = "10.0.0.1:9", .phase = "connecting", .code = -5 };
	struct capture capture;

	(void)state;
	capture_begin(&capture);
	errno = EXDEV;
	log_error(&log, "10.0.0.1", "not there: %d", 7);
	assert_error(&received.error, "10.0.0.1", "", "not there: 7", "", "not there: 7");
	log_error(&log, NULL, "out of memory (%d)", 1);
	assert_error(&received.error, "", "", "out of memory (1)", "", "out of memory (1)");
	log_errno(&log, "rxe0", ECONNREFUSED, "opening %s", "it");
	assert_error(&received.error, "rxe0", "opening it", "Connection refused", "111",
		     "opening it: Connection refused (111)");
	log_cause(&log, "rxe0", "binding", -5, "port %d is in use", 7174);
	assert_error(&received.error, "rxe0", "binding", "port 7174 is in use", "-5",
		     "binding: port 7174 is in use (-5)");
	log_cause(&log, "rxe0", NULL, 0, "refused");
	assert_error(&received.error, "rxe0", "", "refused", "", "refused");
	log_failure(&log, &failure, "refused by %s", "it");
	assert_error(&received.error, "10.0.0.1:9", "connecting", "refused by it", "-5",
		     "connecting: refused by it (-5)");
	failure.code_name = "status";
	failure.code = 0;
	failure.phase = NULL;
	log_failure(&log, &failure, "refused");
	assert_error(&received.error, "10.0.0.1:9", "", "refused", "status 0", "refused (status 0)");
	failure.code_name = NULL;
	log_failure(&log, &failure, "refused");
	assert_error(&received.error, "10.0.0.1:9", "", "refused", "", "refused");
	log_hint(&log, "try %d", 3);
	assert_string_equal(received.hint, "try 3");
	assert_int_equal(received.errors, 8);
	assert_int_equal(received.hints, 1);
	assert_int_equal(errno, EXDEV);
	/* Lines for developers are no errors. */
	log_debug(&log, "resolved");
	assert_string_equal(capture_end(&capture), "rping: debug: resolved\n");
	assert_int_equal(received.errors, 8);
}

static void an_error_can_be_reported_again(void **state)
{
	struct received received = { .errors = 0 };
	const struct log inner = { .name = "inner", .sink = &sink, .context = &received };
	const struct log outer = { .name = "outer" };
	struct capture capture;

	(void)state;
	capture_begin(&capture);
	log_failure(&inner, &(struct failure){ .object = "a\nb", .phase = "connecting", .code = 3 }, "%s", "\033[2J");
	log_report(&outer, &received.error);
	assert_string_equal(capture_end(&capture), "outer: a?b: connecting: ?[2J (3)\n");
}

static void long_parts_are_cut(void **state)
{
	struct received received = { .errors = 0 };
	const struct log log = { .name = "rping", .sink = &sink, .context = &received };
	char text[3000];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	log_failure(&log, &(struct failure){ .object = text, .phase = text, .code_name = text }, "%s", text);
	assert_int_equal(strlen(received.error.object), ERROR_OBJECT_SIZE - 1);
	assert_int_equal(strlen(received.error.phase), ERROR_PHASE_SIZE - 1);
	assert_int_equal(strlen(received.error.cause), ERROR_CAUSE_SIZE - 1);
	assert_int_equal(strlen(received.error.code), ERROR_CODE_SIZE - 1);
	assert_string_equal(received.error.cause + ERROR_CAUSE_SIZE - 5, "x...");
	assert_int_equal(strlen(error_text(&received.error, text)),
			 ERROR_PHASE_SIZE + ERROR_CAUSE_SIZE + ERROR_CODE_SIZE - 3 + 5);
	log_hint(&log, "%s", received.error.cause);
	assert_int_equal(received.hints, 1);
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
	char long_text[3000];
	const char *text;

	(void)state;
	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = 0;
	capture_begin(&capture);
	log_failure(&log, &(struct failure){ .object = long_text, .phase = long_text }, "%s", long_text);
	text = capture_end(&capture);
	assert_int_equal(strlen(text), 1023);
	assert_string_equal(text + strlen(text) - 5, "x...\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(error_line),
		cmocka_unit_test(errno_in_words),
		cmocka_unit_test(hint_line),
		cmocka_unit_test(discarded),
		cmocka_unit_test(debug_only_when_asked_for),
		cmocka_unit_test(sink_receives_the_parts),
		cmocka_unit_test(an_error_can_be_reported_again),
		cmocka_unit_test(long_parts_are_cut),
		cmocka_unit_test(errno_is_kept),
		cmocka_unit_test(control_characters_are_harmless),
		cmocka_unit_test(long_line_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
