/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

TEST(lines)
{
	struct log log = { .name = "rping" };
	struct capture capture;

	capture_begin(&capture);
	log_error(&log, "10.0.0.1:7174", "connect: %s (%d)", "refused", 8);
	log_error(&log, NULL, "no object");
	log_errno(&log, "rxe0", ECONNREFUSED, "open %s", "device");
	log_hint(&log, "try %s", "modprobe rdma_ucm");
	log_debug(&log, "unseen");
	log.debug = true;
	log_debug(&log, "seen %d", 1);
	log.silent = true;
	log_error(&log, "rxe0", "open");
	log_errno(&log, "rxe0", ECONNREFUSED, "open");
	log_hint(&log, "try");
	log_debug(&log, "trace");
	assert_string_equal(capture_end(&capture), "rping: 10.0.0.1:7174: connect: refused (8)\n"
						   "rping: no object\n"
						   "rping: rxe0: open device: Connection refused (111)\n"
						   "rping: hint: try modprobe rdma_ucm\n"
						   "rping: debug: seen 1\n");
}

/* ---- errors as values ---- */

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

TEST(an_error_has_parts)
{
	struct failure failure = { .object = "10.0.0.1:9", .phase = "connecting", .code = -5 };
	struct error error = { .kind = ERROR_NO_REPLY };

	error_set(&error, "10.0.0.1", "not there: %d", 7);
	assert_error(&error, "10.0.0.1", "", "not there: 7", "", "not there: 7");
	assert_int_equal(error.kind, ERROR_OTHER);
	error_set(&error, NULL, "out of memory (%d)", 1);
	assert_error(&error, "", "", "out of memory (1)", "", "out of memory (1)");
	error_errno(&error, "rxe0", ECONNREFUSED, "opening %s", "it");
	assert_error(&error, "rxe0", "opening it", "Connection refused", "111", "opening it: Connection refused (111)");
	error_hint(&error, "try %d", 3);
	error_hint(&error, "try no more");
	assert_string_equal(error.hint, "try 3");
	error_failure(&error, &failure, "refused by %s", "it");
	assert_error(&error, "10.0.0.1:9", "connecting", "refused by it", "-5", "connecting: refused by it (-5)");
	assert_string_equal(error.hint, "");
	failure.code_name = "status";
	failure.code = 0;
	failure.phase = NULL;
	error_failure(&error, &failure, "refused");
	assert_error(&error, "10.0.0.1:9", "", "refused", "status 0", "refused (status 0)");
	failure.code_name = NULL;
	failure.kind = ERROR_NO_LISTENER;
	error_failure(&error, &failure, "refused");
	assert_error(&error, "10.0.0.1:9", "", "refused", "", "refused");
	assert_int_equal(error.kind, ERROR_NO_LISTENER);
	assert_true(error_is_set(&error));
	error_clear(&error);
	assert_false(error_is_set(&error));
}

/* As a fact: it may not be the cause. */
TEST(limit_of_address_space)
{
	struct rlimit kept, limit;
	struct error error;
	char text[96];

	assert_int_equal(getrlimit(RLIMIT_AS, &kept), 0);
	limit = (struct rlimit){ .rlim_cur = RLIM_INFINITY - 1, .rlim_max = kept.rlim_max };
	snprintf(text, sizeof(text), "Cannot allocate memory: ulimit -v allows %llu KiB of address space",
		 (unsigned long long)limit.rlim_cur / 1024);
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	error_errno(&error, "rxe0", ENOMEM, "registering memory");
	assert_string_equal(error.cause, text);
	error_errno(&error, "rxe0", EMFILE, "opening");
	assert_string_equal(error.cause, "Too many open files");
	assert_int_equal(setrlimit(RLIMIT_AS, &kept), 0);
	error_errno(&error, "rxe0", ENOMEM, "registering memory");
	assert_string_equal(error.cause, "Cannot allocate memory");
}

static void count_report(void *context, const struct error *error)
{
	unsigned *count = context;

	assert_string_equal(error->part, "mckey");
	++*count;
}

TEST(a_run_keeps_its_first_and_last_error)
{
	struct errors errors = { .count = 0 };
	unsigned reports = 0;
	const struct log log = {
		.name = "rping", .part = "mckey", .errors = &errors, .reported = count_report, .context = &reports
	};
	struct error error = { .cause = "" };
	struct capture capture;

	capture_begin(&capture);
	log_report(&log, &error); /* none */
	log_hint(&log, "before any error");
	log_error(&log, "a", "one");
	log_hint(&log, "of one");
	log_hint(&log, "a second one");
	log_cause(&log, "a\nb", "connecting", 3, "%s", "\033[2J");
	error_set(&error, "c", "three");
	error_hint(&error, "of three");
	log_report(&log, &error);
	log_report(&log, &error); /* omitted: the same again */
	assert_string_equal(capture_end(&capture), "rping: hint: before any error\n"
						   "rping: a: one\n"
						   "rping: hint: of one\n"
						   "rping: hint: a second one\n"
						   "rping: a?b: connecting: ?[2J (3)\n"
						   "rping: c: three\n"
						   "rping: hint: of three\n");
	assert_int_equal(errors.count, 3);
	assert_int_equal(reports, 3);
	assert_string_equal(errors.first.cause, "one");
	assert_string_equal(errors.first.hint, "of one");
	assert_string_equal(errors.last.object, "c");
	assert_string_equal(errors.last.hint, "of three");
	capture_begin(&capture);
	assert_false(log_keep(&log, &error));
	error_set(&error, "d", "three");
	assert_true(log_keep(&log, &error));
	assert_string_equal(capture_end(&capture), "");
	assert_int_equal(errors.count, 4);
}

TEST(long_parts_are_cut)
{
	struct error error;
	char text[3000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	error_failure(&error, &(struct failure){ .object = text, .phase = text, .code_name = text }, "%s", text);
	assert_int_equal(strlen(error.object), ERROR_OBJECT_SIZE - 1);
	assert_int_equal(strlen(error.phase), ERROR_PHASE_SIZE - 1);
	assert_int_equal(strlen(error.cause), ERROR_CAUSE_SIZE - 1);
	assert_int_equal(strlen(error.code), ERROR_CODE_SIZE - 1);
	assert_string_equal(error.cause + ERROR_CAUSE_SIZE - 5, "x...");
	assert_int_equal(strlen(error_text(&error, text)),
			 ERROR_PHASE_SIZE + ERROR_CAUSE_SIZE + ERROR_CODE_SIZE - 3 + 5);
	error_hint(&error, "%s", error.cause);
	assert_int_equal(strlen(error.hint), ERROR_HINT_SIZE - 1);
}

TEST(errno_is_kept)
{
	const struct log log = { .name = "rping", .debug = true };
	int full = open("/dev/full", O_WRONLY);
	struct capture capture;

	assert_true(full >= 0);
	capture_begin(&capture);
	/* Even if the line cannot be written. */
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

TEST(control_characters_are_harmless)
{
	const struct log log = { .name = "rping" };
	struct capture capture;

	capture_begin(&capture);
	log_error(&log, "a\nrping: all is well\033[2J", "caf\xc3\xa9 \x7f~\x1f ");
	assert_string_equal(capture_end(&capture), "rping: a?rping: all is well?[2J: caf\xc3\xa9 ?~? \n");
	/* 8-bit control characters, as UTF-8 and alone; the same bytes within a character stay. */
	capture_begin(&capture);
	log_error(&log, NULL, "\x9b[2J \xc2\x9b[2J \xc3\x9f\xe2\x80\x9c\xe2\x82\xac");
	assert_string_equal(capture_end(&capture), "rping: ?[2J \xc2?[2J \xc3\x9f\xe2\x80\x9c\xe2\x82\xac\n");
}

TEST(long_line_is_cut)
{
	const struct log log = { .name = "rping" };
	struct capture capture;
	char long_text[3000];
	const char *text;

	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = 0;
	capture_begin(&capture);
	log_cause(&log, long_text, long_text, 0, "%s", long_text);
	text = capture_end(&capture);
	assert_int_equal(strlen(text), 1023);
	assert_string_equal(text + strlen(text) - 5, "x...\n");
}
