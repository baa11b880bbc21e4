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
