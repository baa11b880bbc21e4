/* SPDX-License-Identifier: BSD-2-Clause */
/* The tiny twin of cmd/signals.c, compiled as without WITH_DIAGNOSTICS. */
#undef WITH_DIAGNOSTICS
#define WITH_DIAGNOSTICS 0
#include "cmd/signals_tiny.c"

#include "test/unit/unit.h"

#include <sys/wait.h>

static int calls;

static void received(void *loop)
{
	calls++;
	loop_stop(loop);
}

/* A second signal has the default action. */
TEST(first_signal)
{
	struct loop *loop = loop_create();
	struct loop_signal watchers[SIGNALS] = { 0 };

	calls = 0;
	signal(SIGHUP, SIG_IGN);
	signals_catch(loop, watchers, 0, received, loop);
	raise(SIGHUP);
	raise(SIGTERM);
	loop_run(loop);
	assert_int_equal(calls, 1);
	signals_release(watchers);
	assert_ptr_equal(signal(SIGTERM, SIG_DFL), SIG_DFL);
	loop_destroy(loop);
}

/* A look-up: the loop, which would receive the signal, does not run. Ignored signals stay ignored. */
TEST(a_signal_ends_a_wait)
{
	struct loop *loop = loop_create();
	struct loop_signal watchers[SIGNALS] = { 0 };
	int status, ends[2];
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	signal(SIGHUP, SIG_IGN);
	signals_catch(loop, watchers, 0, received, loop);
	child = fork();
	if (!child)
		_exit(signals_wait(ends[0], clock_now() + 2 * CLOCK_NS_PER_S));
	/* The first one may come before the wait. */
	while (!waitpid(child, &status, WNOHANG)) {
		kill(child, SIGHUP);
		kill(child, SIGTERM);
		poll(NULL, 0, 1);
	}
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
	assert_int_equal(write(ends[1], "", 1), 1);
	assert_true(signals_wait(ends[0], clock_now()));
	calls = 0;
	raise(SIGHUP);
	raise(SIGTERM);
	loop_run(loop);
	assert_int_equal(calls, 1);
	signals_release(watchers);
	loop_destroy(loop);
	close(ends[0]);
	close(ends[1]);
}

TEST(limits)
{
	int ends[2];

	watchdog_start(2 * CLOCK_NS_PER_S);
	assert_in_range(alarm(0), 4, 5);
	assert_int_equal(pipe(ends), 0);
	assert_false(signals_wait(ends[0], clock_now() - CLOCK_NS_PER_S));
	assert_int_equal(write(ends[1], "", 1), 1);
	assert_true(signals_wait(ends[0], clock_now()));
	close(ends[0]);
	close(ends[1]);
}
