/* SPDX-License-Identifier: BSD-2-Clause */
/* Common part of the unit tests: cmocka with the headers it needs first, children, and capturing of stderr. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/log.h"

/* cmocka 2 names the sign of a range, and has a macro stop() of its own. */
#ifdef assert_int_in_range
#undef assert_in_range
#define assert_in_range assert_int_in_range
#undef stop
#endif

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Without gaps between them, in the section that main() of test/main.c reads. */
#define TEST_ENTRY __attribute__((used, section("tests"), aligned(__alignof__(struct CMUnitTest))))

/* Begins a test's function; with set-up and tear-down: TEST(name, set_up, tear_down). */
#define TEST(name, ...)                                                                                                \
	static void name(void **state);                                                                                \
	static const struct CMUnitTest name##_test TEST_ENTRY = { #name, name, __VA_ARGS__ };                          \
	static void name(void **state)

/* As fail_msg(), whose text is lost while stderr is captured. */
#define fail_saying(...) (print_message("# " __VA_ARGS__), print_message("\n"), fail())

/* Waits for the child's end: its exit status, or minus a signal. */
static inline int exit_status(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

struct capture {
	int file;
	int kept;
	char text[4096];
};

/* From here to capture_end() stderr goes into a file in memory. */
static inline void capture_begin(struct capture *capture)
{
	capture->file = memfd_create("stderr", 0);
	capture->kept = dup(STDERR_FILENO);
	assert_true(capture->file >= 0 && capture->kept >= 0);
	dup2(capture->file, STDERR_FILENO);
}

/* Returns the captured text. */
static inline const char *capture_end(struct capture *capture)
{
	ssize_t length;

	dup2(capture->kept, STDERR_FILENO);
	close(capture->kept);
	length = pread(capture->file, capture->text, sizeof(capture->text) - 1, 0);
	close(capture->file);
	assert_true(length >= 0);
	capture->text[length] = 0;
	return capture->text;
}
