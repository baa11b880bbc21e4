/* SPDX-License-Identifier: BSD-2-Clause */
/* --daemon. */
#include "test/unit/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/select.h>

#include "cmd/daemon.h"

static const struct log tool_log = { .name = "tool" };

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
		_exit((int)daemon_ready(&tool_log, parent, "/"));
	}
	assert_int_equal(exit_status(caller), OUTCOME_INTERNAL);
	assert_string_equal(capture_end(&errors), "tool: --daemon: opening /dev/null: Too many open files (24)\n");
}

/* The caller's descriptors, whose readers would wait for the daemon's end; processes may have more than 1,024. */
TEST(daemon_closes_descriptors_of_any_number)
{
	const int high = FD_SETSIZE;
	struct rlimit limit;
	pid_t caller = fork();

	if (!caller) {
		int parent;

		getrlimit(RLIMIT_NOFILE, &limit);
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
		if (dup2(STDERR_FILENO, high) != high)
			_exit(OUTCOME_USAGE);
		daemon_begin(&tool_log, &parent);
		_exit(fcntl(high, F_GETFD) < 0 ? OUTCOME_OK : OUTCOME_FAILED);
	}
	assert_int_equal(exit_status(caller), OUTCOME_OK);
}

/* Else it would end with "write failed: Input/output error": a later write, to /dev/null, finds no error. */
TEST(daemon_forgets_a_reader_that_has_left)
{
	bool failed[2] = { false, true };
	int output[2], result[2];
	char kept[64]; /* the descriptor that the daemon closes, by name */
	pid_t caller;

	assert_int_equal(pipe(result), 0);
	snprintf(kept, sizeof(kept), "/proc/%d/fd/%d", (int)getpid(), result[1]);
	caller = fork();
	if (!caller) {
		int parent;

		daemon_begin(&tool_log, &parent);
		result[1] = open(kept, O_WRONLY);
		signal(SIGPIPE, SIG_IGN);
		if (!pipe(output))
			close(output[0]);
		dup2(output[1], STDOUT_FILENO);
		puts("ready");
		fflush(stdout);
		failed[0] = ferror(stdout);
		daemon_ready(&tool_log, parent, "/");
		failed[1] = ferror(stdout);
		_exit(write(result[1], failed, sizeof(failed)) != sizeof(failed));
	}
	assert_int_equal(exit_status(caller), OUTCOME_OK);
	assert_int_equal(read(result[0], failed, sizeof(failed)), sizeof(failed));
	assert_true(failed[0] && !failed[1]);
	close(result[0]);
	close(result[1]);
}
