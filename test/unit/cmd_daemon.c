/* SPDX-License-Identifier: BSD-2-Clause */
/* --daemon. */
#include "test/unit/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "cmd/daemon.h"

static const struct log tool_log = { .name = "tool" };

static int exit_status(pid_t process)
{
	int status;

	assert_int_equal(waitpid(process, &status, 0), process);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/*
 * Runs a daemon that ends with code: at once if told is 0, else when it is ready, has written its process ID to told
 * and hold reads end of file. Returns the exit status of the parent.
 */
static int daemon_status(int told, int hold, int code)
{
	pid_t caller = fork();

	if (!caller) {
		int parent;
		pid_t own;
		char byte;

		if (daemon_begin(&tool_log, &parent))
			_exit(99);
		own = getpid();
		if (told &&
		    (write(told, &own, sizeof(own)) < 0 || daemon_ready(&tool_log, parent) || read(hold, &byte, 1)))
			_exit(98);
		_exit(code);
	}
	return exit_status(caller);
}

TEST(parent_exits_when_daemon_is_ready)
{
	int hold[2], told[2];
	pid_t process, own;

	/* The daemon runs until hold[1] is closed. told reads end of file when it has exited. */
	assert_int_equal(pipe(told), 0);
	assert_int_equal(pipe(hold), 0);
	process = fork();
	if (!process) {
		close(hold[1]);
		_exit(daemon_status(told[1], hold[0], 7));
	}
	close(told[1]);
	assert_int_equal(exit_status(process), 0);
	assert_int_equal(read(told[0], &own, sizeof(own)), sizeof(own));
	assert_int_not_equal(own, process);
	assert_int_equal(getsid(own), own);
	close(hold[1]);
	assert_int_equal(read(told[0], &own, sizeof(own)), 0);
	close(hold[0]);
	close(told[0]);
}

TEST(parent_returns_exit_code_of_failed_daemon)
{
	assert_int_equal(daemon_status(0, 0, 3), 3);
	assert_int_equal(daemon_status(0, 0, 4), 4);
}

/* A killed process prints nothing: its parent reports the signal. */
TEST(parent_reports_killed_daemon)
{
	struct capture errors;
	pid_t caller;

	capture_begin(&errors);
	caller = fork();
	if (!caller) {
		int parent;

		daemon_begin(&tool_log, &parent);
		raise(SIGKILL);
	}
	assert_int_equal(exit_status(caller), OUTCOME_INTERNAL);
	assert_string_equal(capture_end(&errors), "tool: --daemon: killed before it was ready: Killed (signal 9)\n");
}

/* Else the daemon would keep the terminal of its caller. */
TEST(daemon_without_dev_null_fails)
{
	struct rlimit limit;
	struct capture errors;
	pid_t caller;

	capture_begin(&errors);
	caller = fork();
	if (!caller) {
		int parent;

		daemon_begin(&tool_log, &parent);
		getrlimit(RLIMIT_NOFILE, &limit);
		limit.rlim_cur = STDERR_FILENO + 1;
		setrlimit(RLIMIT_NOFILE, &limit);
		_exit((int)daemon_ready(&tool_log, parent));
	}
	assert_int_equal(exit_status(caller), OUTCOME_INTERNAL);
	assert_string_equal(capture_end(&errors), "tool: --daemon: opening /dev/null: Too many open files (24)\n");
}
