/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=transport_open,--wrap=transport_close,--wrap=privileges_drop */
/* link: -Wl,--wrap=alarm */
/* command_run() from arguments to exit code: limits, signals, output errors. Each fake command runs in its own process
 * and prints a trace on stdout. */
#include "test/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "cmd/output.h"
#include "cmd/run.h"
#include "core/privileges.h"
#include "test/unit/fake_clock.h"

unsigned __real_alarm(unsigned seconds);

/* Divides the times of kernel timers, for a process that is blocked outside the loop. */
static int64_t timer_speedup = 1;

/* Signals that start_and_raise() sends to its own process. */
static int raised[2];

/* Of the next command: seconds of an alarm(2) that is running when the program begins; 0: none. */
static unsigned alarm_of_caller;
static int ignored; /* a signal, by the caller */

/* RLIMIT_NOFILE of the next command; 0: unchanged. */
static rlim_t descriptors_max;

static int speed_up_timers(void **state)
{
	timer_speedup = 10;
	fake_clock.real = true;
	return 0;
}

static int restore_timers(void **state)
{
	timer_speedup = 1;
	fake_clock.real = false;
	memset(raised, 0, sizeof(raised));
	return 0;
}

/* The options of all fake commands. */
struct settings {
	struct common_options common;
	bool bad;
};

/* clang-format off */
static const struct option table[] = {
	OPTION_FLAG_ROW(0, "bad", struct settings, bad, OPTION_HELP("Bad")),
	TRANSPORT_OPTION(struct settings, TRANSPORT_DEFAULT),
	DEBUG_OPTION(struct settings, 0),
	OPTION_REST(endpoint_option_table),
};
/* clang-format on */

struct state {
	struct environment *environment;
	struct loop_timer timer;
	struct loop_timer work;
	struct figures_of_run {
		struct rate rate;
		uint64_t late;
	} figures, before;
	int64_t beyond; /* the end of the day */
	uint64_t counts_late;
};

static void trace(const char *word)
{
	printf("%s\n", word);
	/* setvbuf(3) has no effect here: cmocka has used stdout before. */
	fflush(stdout);
}

enum outcome __wrap_transport_open(const char *name, struct loop *loop, const struct log *log, struct error *error,
				   struct transport **transport)
{
	*transport = NULL;
	trace("open");
	/* --debug makes the transport fail. */
	if (log->debug) {
		error_set(error, NULL, "no device");
		return OUTCOME_NO_DEVICE;
	}
	return OUTCOME_OK;
}

void __wrap_transport_close(struct transport *transport)
{
	assert_null(transport);
	trace("close");
}

/* Of a run over verbs before the transport is opened, which keeps the ports. */
void __wrap_privileges_drop(const struct log *log, unsigned kept)
{
	if (!(kept & PRIVILEGE_PORTS))
		trace("dropped");
}

/* Returns what is left, and lets the time pass faster. */
unsigned __wrap_alarm(unsigned seconds)
{
	int64_t microseconds = (int64_t)seconds * 1000000 / timer_speedup;
	const struct itimerval limit = { .it_value = { microseconds / 1000000, microseconds % 1000000 } };
	struct itimerval before = { 0 };

	setitimer(ITIMER_REAL, &limit, &before);
	return (unsigned)(before.it_value.tv_sec + (before.it_value.tv_usec > 0));
}

static enum outcome check(struct environment *environment, const void *options)
{
	const struct settings *settings = options;

	if (!settings->bad)
		return OUTCOME_OK;
	log_error(&environment->log, NULL, "bad");
	return OUTCOME_USAGE;
}

static struct state *make_state(struct environment *environment, void **context)
{
	struct state *state = calloc(1, sizeof(*state));

	state->environment = environment;
	*context = state;
	trace("start");
	return state;
}

static const struct figure no_rows[] = { FIGURES_END };

static struct figures report_nothing(void *context)
{
	return (struct figures){ .rows = no_rows, .values = context };
}

static struct figures summarise_nothing(void *context)
{
	return (struct figures){ .rows = no_rows, .values = context, .summarised = true };
}

static void stop(void *context)
{
	struct state *state = context;

	loop_timer_stop(&state->timer);
	free(state);
	trace("stop");
}

/* Receives a signal during the clean-up. */
static void stop_and_be_interrupted(void *context)
{
	trace("stopping");
	raise(SIGINT);
	stop(context);
}

static void stop_never(void *context)
{
	trace("stopping");
	for (;;)
		pause();
}

/* Options that the program lacks must be PATH_UNSET: zeros would forbid every retry. */
static enum outcome start_and_finish(struct environment *environment, const void *options, void **context)
{
	const struct settings *settings = options;

	make_state(environment, context);
	if (settings->common.path.retry != PATH_UNSET || settings->common.path.rnr_retry != PATH_UNSET)
		trace("the path is not open");
	environment_finish(environment, OUTCOME_OK, NULL, "done");
	return OUTCOME_OK;
}

static enum outcome start_and_fail(struct environment *environment, const void *options, void **context)
{
	*context = NULL;
	environment_record_outcome(environment, OUTCOME_NO_CONNECTION);
	return OUTCOME_INTERNAL;
}

static enum outcome start_and_wait(struct environment *environment, const void *options, void **context)
{
	make_state(environment, context);
	return OUTCOME_OK;
}

static enum outcome start_and_raise(struct environment *environment, const void *options, void **context)
{
	make_state(environment, context);
	for (size_t i = 0; i < LENGTH(raised) && raised[i]; i++)
		raise(raised[i]);
	return OUTCOME_OK;
}

static enum outcome start_and_be_ready(struct environment *environment, const void *options, void **context)
{
	const struct address nowhere = { .family = ADDRESS_NONE };

	make_state(environment, context);
	assert_true(environment_ready(environment, &nowhere, "ready"));
	/* The second call has no effect. */
	assert_true(environment_ready(environment, NULL, NULL));
	environment_finish(environment, OUTCOME_OK, NULL, "done");
	/* And so has this one. */
	environment_finish(environment, OUTCOME_FAILED, NULL, "done");
	return OUTCOME_OK;
}

static void finish_now(void *context)
{
	struct state *state = context;

	environment_finish(state->environment, OUTCOME_OK, NULL, "done");
}

static void finish_with_message(void *context)
{
	fprintf(stderr, "finished\n");
	finish_now(context);
}

/* Finishes after the reader of standard output has closed the pipe. */
static enum outcome start_and_finish_later(struct environment *environment, const void *options, void **context)
{
	struct state *state = make_state(environment, context);
	struct pollfd reader = { .fd = STDOUT_FILENO };

	poll(&reader, 1, -1);
	loop_timer_start(environment->loop, &state->timer, 2 * CLOCK_NS_PER_S, finish_with_message, state);
	return OUTCOME_OK;
}

static void let_60_ms_pass(void *context)
{
	fake_clock_pass(60 * CLOCK_NS_PER_MS);
}

static enum outcome start_and_finish_with_the_deadline(struct environment *environment, const void *options,
						       void **context)
{
	static struct loop_timer busy;
	struct state *state = make_state(environment, context);

	loop_timer_start(environment->loop, &busy, 0, let_60_ms_pass, NULL);
	loop_timer_start(environment->loop, &state->timer, 10 * CLOCK_NS_PER_MS, finish_now, state);
	return OUTCOME_OK;
}

static void print_line(void *context)
{
	struct state *state = context;

	trace("again");
	loop_timer_start(state->environment->loop, &state->timer, 10 * CLOCK_NS_PER_MS, print_line, state);
}

static enum outcome start_and_print_lines(struct environment *environment, const void *options, void **context)
{
	print_line(make_state(environment, context));
	return OUTCOME_OK;
}

/* A disk that is full for a while. */
static enum outcome start_and_lose_a_line(struct environment *environment, const void *options, void **context)
{
	int kept = dup(STDOUT_FILENO), full = open("/dev/full", O_WRONLY);
	struct state *state = make_state(environment, context);

	fflush(stdout);
	dup2(full, STDOUT_FILENO);
	puts("lost");
	fflush(stdout);
	dup2(kept, STDOUT_FILENO);
	close(kept);
	close(full);
	loop_timer_start(environment->loop, &state->timer, 0, finish_now, state);
	return OUTCOME_OK;
}

/* A library call that never returns. */
static void hang(void *context)
{
	trace("hang");
	for (;;)
		pause();
}

static enum outcome start_and_hang(struct environment *environment, const void *options, void **context)
{
	struct state *state = make_state(environment, context);

	loop_timer_start(environment->loop, &state->timer, 0, hang, state);
	return OUTCOME_OK;
}

static void shut_down(void *context, enum interruption reason)
{
	struct state *state = context;

	trace(reason == INTERRUPTION_SIGNAL ? "signal" : "deadline");
	loop_timer_start(state->environment->loop, &state->timer, 50 * CLOCK_NS_PER_MS, finish_now, state);
}

static void never_shut_down(void *context, enum interruption reason)
{
	trace(reason == INTERRUPTION_SIGNAL ? "signal" : "deadline");
}

static void step_timed_out(void *context)
{
	struct state *state = context;

	trace("limit");
	environment_finish(state->environment, OUTCOME_FAILED, NULL, "done");
}

static void shutdown_step_times_out(void *context, enum interruption reason)
{
	struct state *state = context;

	never_shut_down(context, reason);
	loop_timer_start(state->environment->loop, &state->timer, 30 * CLOCK_NS_PER_MS, step_timed_out, state);
}

static void block_in_shutdown(void *context, enum interruption reason)
{
	never_shut_down(context, reason);
	hang(context);
}

struct result {
	int status; /* exit code, or the signal as a negative number */
	char out[4096];
	char err[4096];
};

struct child {
	pid_t pid;
	int out;
	int err;
};

static struct child spawn(const struct command *row, const char *arguments)
{
	struct child child;
	int out[2], err[2];

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(err, O_CLOEXEC), 0);
	fflush(NULL);
	child.pid = fork();
	if (!child.pid) {
		struct command command = *row;
		struct log log = { .name = "tool" };
		char name[] = "tool";
		struct rlimit limit;
		char words[128];
		char *argv[16] = { name };
		char *rest = NULL;
		int argc = 1;

		command.name = "tool";
		command.options = table;
		command.options_size = sizeof(struct settings);
		command.check = check;
		if (!command.stop)
			command.stop = stop;
		snprintf(words, sizeof(words), "%s", arguments);
		for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
			argv[argc++] = word;
		signal(SIGPIPE, SIG_IGN); /* as main() does */
		if (ignored)
			signal(ignored, SIG_IGN);
		__real_alarm(alarm_of_caller);
		dup2(out[1], STDOUT_FILENO);
		dup2(err[1], STDERR_FILENO);
		close(out[0]);
		getrlimit(RLIMIT_NOFILE, &limit);
		if (descriptors_max)
			limit.rlim_cur = descriptors_max;
		setrlimit(RLIMIT_NOFILE, &limit);
		_exit((int)output_finish(&log, command_run(&command, "tool", argc, argv)));
	}
	alarm_of_caller = 0;
	ignored = 0;
	descriptors_max = 0;
	close(out[1]);
	close(err[1]);
	child.out = out[0];
	child.err = err[0];
	return child;
}

/* Reads until the text contains word, or to the end if word is NULL. */
static void read_until(int fd, char *text, size_t size, const char *word)
{
	size_t length = strlen(text);
	ssize_t got;

	while (!(word && strstr(text, word)) && (got = read(fd, text + length, size - 1 - length)) > 0) {
		length += (size_t)got;
		text[length] = 0;
	}
	if (word)
		assert_non_null(strstr(text, word));
}

static void finish(struct child *child, struct result *result)
{
	int status;

	if (child->out >= 0) {
		read_until(child->out, result->out, sizeof(result->out), NULL);
		close(child->out);
	}
	read_until(child->err, result->err, sizeof(result->err), NULL);
	close(child->err);
	assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
	result->status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void expect(const struct command *row, const char *arguments, int status, const char *out, const char *err)
{
	struct child child = spawn(row, arguments);
	struct result result = { 0 };

	finish(&child, &result);
	assert_string_equal(result.err, err);
	assert_string_equal(result.out, out);
	assert_int_equal(result.status, status);
}

TEST(command_finishes)
{
	const struct command at_once = { .start = start_and_finish };

	expect(&at_once, "", 0, "open\nstart\ntool: done\nstop\nclose\n", "");
}

/* Else lines that the user does not want, or that spoil the JSON, would go to standard output. */
TEST(quiet_run_without_dev_null_fails)
{
	const struct command row = { .start = start_and_finish };

	descriptors_max = STDERR_FILENO + 1;
	expect(&row, "--quiet", OUTCOME_INTERNAL, "", "tool: /dev/null: opening: Too many open files (24)\n");
}

TEST(start_fails)
{
	const struct command fails = { .start = start_and_fail };

	expect(&fails, "", OUTCOME_NO_CONNECTION, "open\nclose\n", "");
}

TEST(privileges_are_dropped_before_ready)
{
	const struct command serves = { .start = start_and_be_ready };

	expect(&serves, "--transport soft", 0, "open\nstart\ndropped\nready\ntool: done\nstop\nclose\n", "");
}

TEST(options_are_checked_before_a_device_is_touched)
{
	const struct command waits = { .start = start_and_wait };

	expect(&waits, "--bad", OUTCOME_USAGE, "", "tool: bad\n");
	expect(&waits, "--nonsense", OUTCOME_USAGE, "",
	       "tool: --nonsense: unknown option\ntool: hint: tool --help lists the options\n");
}

TEST(no_device)
{
	const struct command waits = { .start = start_and_wait };

	expect(&waits, "--debug", OUTCOME_NO_DEVICE, "open\nclose\n", "tool: no device\n");
}

TEST(deadline_ends_the_run)
{
	const struct command waits = { .start = start_and_wait, .interrupt = shut_down };

	expect(&waits, "--deadline 20ms", OUTCOME_FAILED, "open\nstart\ndeadline\ntool: FAILED: done\nstop\nclose\n",
	       "tool: deadline of 0.02 s exceeded\n");
}

/* The shutdown gets 250 ms after a deadline, whatever --timeout is, or no time if a signal has started it before. */
TEST(shutdown_timeout_aborts_run, NULL, restore_timers)
{
	const struct command raises = { .start = start_and_raise, .interrupt = never_shut_down };
	static const struct {
		const char *arguments, *err;
		const char *out;
		int number;
	} rows[] = {
		{ "--deadline 20ms", "tool: deadline of 0.02 s exceeded\n",
		  "open\nstart\ndeadline\ntool: FAILED: shutdown did not complete\nstop\nclose\n", 0 },
		{ "--timeout 30ms", "tool: shutdown exceeded --timeout (0.03 s)\n",
		  "open\nstart\nsignal\ntool: FAILED: shutdown did not complete\nstop\nclose\n", SIGINT },
		{ "--deadline 1s", "tool: deadline of 1 s exceeded\n",
		  "open\nstart\nsignal\ntool: FAILED: shutdown did not complete\nstop\nclose\n", SIGTERM },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		raised[0] = rows[i].number;
		expect(&raises, rows[i].arguments, OUTCOME_FAILED, rows[i].out, rows[i].err);
	}
}

/* A step of the shutdown with the same timeout reports its own error first. */
TEST(steps_of_shutdown_time_out_first, NULL, restore_timers)
{
	const struct command raises = { .start = start_and_raise, .interrupt = shutdown_step_times_out };

	raised[0] = SIGINT;
	expect(&raises, "--timeout 30ms", OUTCOME_FAILED,
	       "open\nstart\nsignal\nlimit\ntool: FAILED: done\nstop\nclose\n", "");
}

/* The deadline and the end are due in the same iteration. */
TEST(run_that_ends_at_its_deadline_passes)
{
	const struct command ends = { .start = start_and_finish_with_the_deadline, .interrupt = never_shut_down };

	expect(&ends, "--deadline 30ms", 0, "open\nstart\ntool: done\nstop\nclose\n", "");
}

/* The verdict, also that of JSON, is that of the exit code. */
TEST(lost_output_fails_the_run)
{
	const struct command loses = { .start = start_and_lose_a_line };
	struct child child = spawn(&loses, "--json");
	struct result result = { 0 };

	finish(&child, &result);
	assert_int_equal(result.status, OUTCOME_INTERNAL);
	assert_non_null(strstr(result.out, "\"verdict\":\"fail\",\"exit_code\":5,\"error_count\":1"));
	child = spawn(&loses, "");
	memset(&result, 0, sizeof(result));
	finish(&child, &result);
	assert_int_equal(result.status, OUTCOME_INTERNAL);
	assert_non_null(strstr(result.out, "tool: FAILED: done\n"));
	assert_string_equal(result.err, "tool: standard output: write failed: Input/output error (5)\n");
}

TEST(signal_starts_orderly_shutdown)
{
	const struct command waits = { .start = start_and_wait, .interrupt = shut_down };
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };

	for (size_t i = 0; i < LENGTH(numbers); i++) {
		struct child child = spawn(&waits, "");
		struct result result = { 0 };

		read_until(child.out, result.out, sizeof(result.out), "start\n");
		kill(child.pid, numbers[i]);
		finish(&child, &result);
		assert_string_equal(result.out, "open\nstart\nsignal\ntool: done\nstop\nclose\n");
		assert_string_equal(result.err, "");
		assert_int_equal(result.status, OUTCOME_OK);
	}
}

/* A shell starts background processes of a script so, and nohup(1) any. */
TEST(ignored_signals_stay_ignored)
{
	const struct command raises = { .start = start_and_raise, .interrupt = shut_down };
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };

	for (size_t i = 0; i < LENGTH(numbers); i++) {
		raised[0] = ignored = numbers[i];
		expect(&raises, "--deadline 20ms", OUTCOME_FAILED,
		       "open\nstart\ndeadline\ntool: FAILED: done\nstop\nclose\n",
		       "tool: deadline of 0.02 s exceeded\n");
	}
}

/* timeout(1) signals its child and then the process group. */
TEST(two_signals_of_timeout_are_one_request, NULL, restore_timers)
{
	const struct command raises = { .start = start_and_raise, .interrupt = shut_down };

	raised[0] = raised[1] = SIGINT;
	expect(&raises, "", OUTCOME_OK, "open\nstart\nsignal\ntool: done\nstop\nclose\n", "");
}

static void second_signal_ends_at_once(const struct command *row, const char *arguments, const char *before,
				       const char *after)
{
	struct child child = spawn(row, arguments);
	struct result result = { 0 };
	siginfo_t end = { 0 };

	read_until(child.out, result.out, sizeof(result.out), before);
	kill(child.pid, SIGINT);
	/* The first ones may come within GRACE_MS. */
	do {
		poll(NULL, 0, 10);
		kill(child.pid, SIGTERM);
	} while (!waitid(P_PID, (id_t)child.pid, &end, WEXITED | WNOHANG | WNOWAIT) && !end.si_pid);
	finish(&child, &result);
	assert_string_equal(result.err, "tool: second signal: terminated\n");
	if (after)
		assert_string_equal(strstr(result.out, before) + strlen(before), after);
	assert_int_equal(result.status, OUTCOME_INTERRUPTED);
}

TEST(second_signal_during_shutdown, speed_up_timers, restore_timers)
{
	const struct command row = { .start = start_and_wait, .interrupt = never_shut_down };

	second_signal_ends_at_once(&row, "--timeout 1m", "start\n", NULL);
}

TEST(second_signal_while_shutdown_blocks, speed_up_timers, restore_timers)
{
	const struct command row = { .start = start_and_wait, .interrupt = block_in_shutdown };

	second_signal_ends_at_once(&row, "", "start\n", NULL);
}

TEST(second_signal_while_run_blocks, speed_up_timers, restore_timers)
{
	const struct command row = { .start = start_and_hang, .interrupt = shut_down };

	second_signal_ends_at_once(&row, "", "hang\n", "");
}

TEST(signal_during_clean_up, speed_up_timers, restore_timers)
{
	const struct command once = { .start = start_and_finish, .stop = stop_and_be_interrupted };
	const struct command never = { .start = start_and_finish, .stop = stop_never };

	expect(&once, "", OUTCOME_OK, "open\nstart\ntool: done\nstopping\nstop\nclose\n", "");
	second_signal_ends_at_once(&never, "", "stopping\n", "");
}

/* An alarm(2) of the caller outlasts execve(2). */
TEST(watchdog_keeps_the_alarm_of_the_caller, speed_up_timers, restore_timers)
{
	const struct command raises = { .start = start_and_raise, .interrupt = never_shut_down };

	alarm_of_caller = 3; /* it must not expire before the run has begun, under valgrind */
	raised[0] = SIGTERM;
	expect(&raises, "--deadline 1h --timeout 20s", -SIGALRM, "open\nstart\nsignal\n", "");
}

TEST(watchdog_ends_run_while_call_blocks, speed_up_timers, restore_timers)
{
	const struct command row = { .start = start_and_hang, .interrupt = shut_down };

	expect(&row, "--deadline 1s --timeout 1ms", OUTCOME_FAILED, "open\nstart\nhang\n",
	       "tool: watchdog: a system or library call does not return: terminated\n");
}

/* ucmatose and mckey have it as their last line. */
TEST(status_follows_the_verdict)
{
	const struct command finishes = { .start = start_and_finish, .prints_status = true };
	const struct command waits = { .start = start_and_wait, .interrupt = never_shut_down, .prints_status = true };

	expect(&finishes, "", 0, "open\nstart\ntool: done\nreturn status 0\nstop\nclose\n", "");
	expect(&waits, "--deadline 20ms", OUTCOME_FAILED,
	       "open\nstart\ndeadline\ntool: FAILED: shutdown did not complete\nreturn status 1\nstop\nclose\n",
	       "tool: deadline of 0.02 s exceeded\n");
}

/* The outcome is that of the verdict, whatever the clean-up says. */
static void stop_and_fail(void *context)
{
	struct state *state = context;

	log_cause(&state->environment->log, NULL, "leaving", 5, "refused");
	environment_record_outcome(state->environment, OUTCOME_NO_CONNECTION);
	stop(context);
}

TEST(summary_has_exit_code)
{
	const struct command passes = { .start = start_and_finish, .stop = stop_and_fail };
	struct child child = spawn(&passes, "--json");
	struct result result = { 0 };

	finish(&child, &result);
	assert_int_equal(result.status, OUTCOME_OK);
	assert_non_null(strstr(result.out, "stop\nclose\n{"));
	assert_non_null(strstr(result.out, "\"verdict\":\"pass\",\"exit_code\":0,\"error_count\":0,\"errors\":[]}\n"));
	assert_string_equal(result.err, "tool: leaving: refused (5)\n");
}

static bool always(const void *options)
{
	return true;
}

TEST(open_ended_run_ends_without_reader)
{
	const struct command row = {
		.start = start_and_print_lines,
		.is_open_ended = always,
	};
	struct child child = spawn(&row, "");
	struct result result = { 0 };

	read_until(child.out, result.out, sizeof(result.out), "again\n");
	close(child.out);
	child.out = -1;
	finish(&child, &result);
	assert_string_equal(result.err, "");
	assert_int_equal(result.status, -SIGPIPE);
}

/* A run that is not open-ended. */
TEST(other_run_continues_without_reader)
{
	const struct command row = { .start = start_and_finish_later, .interrupt = shut_down };
	struct child child = spawn(&row, "");
	struct result result = { 0 };

	read_until(child.out, result.out, sizeof(result.out), "start\n");
	close(child.out);
	child.out = -1;
	finish(&child, &result);
	assert_string_equal(result.err, "finished\n");
	assert_int_equal(result.status, OUTCOME_OK);
}

static void work(void *context)
{
	fake_clock_pass(50 * CLOCK_NS_PER_MS);
}

/* The end is due before the interval, in the same iteration. */
static enum outcome start_and_finish_with_the_interval(struct environment *environment, const void *options,
						       void **context)
{
	struct state *state = make_state(environment, context);

	loop_timer_start(environment->loop, &state->timer, 30 * CLOCK_NS_PER_MS, finish_now, state);
	loop_timer_start(environment->loop, &state->work, 0, work, state);
	return OUTCOME_OK;
}

TEST(verdict_is_last_line)
{
	const struct command row = { .start = start_and_finish_with_the_interval, .figures = summarise_nothing };
	struct child child = spawn(&row, "--interval-report 40ms");
	struct result result = { 0 };

	finish(&child, &result);
	assert_non_null(strstr(result.out, "\ntool: summary of "));
	assert_non_null(strstr(result.out, "\ntool: done\nstop\nclose\n"));
}

TEST(verdict_without_figures_is_last_line)
{
	const struct command row = { .start = start_and_finish_with_the_interval, .figures = report_nothing };

	/* The interval is due in the same iteration, then later. */
	expect(&row, "--interval-report 40ms", 0, "open\nstart\ntool: done\nstop\nclose\n", "");
	expect(&row, "--interval-report 1s", 0, "open\nstart\ntool: done\nstop\nclose\n", "");
}

static void finish_soon(void *context)
{
	struct state *state = context;

	fake_clock_pass(70 * CLOCK_NS_PER_MS);
	loop_timer_start(state->environment->loop, &state->timer, 80 * CLOCK_NS_PER_MS, finish_now, state);
}

/*
 * 80 ms of sleep, 70 ms of work in which the first interval of 100 ms ends, and 80 ms of sleep in which the second one
 * ends.
 */
static enum outcome start_and_delay_interval(struct environment *environment, const void *options, void **context)
{
	struct state *state = make_state(environment, context);

	loop_timer_start(environment->loop, &state->timer, 80 * CLOCK_NS_PER_MS, finish_soon, state);
	return OUTCOME_OK;
}

TEST(intervals_do_not_overlap)
{
	const struct command row = { .start = start_and_delay_interval, .figures = summarise_nothing };
	struct child child = spawn(&row, "--interval-report 100ms");
	struct result result = { 0 };
	double from, to, before = 0;
	unsigned count = 0;

	finish(&child, &result);
	assert_non_null(strstr(result.out, "\n    seconds"));
	for (const char *line = strstr(result.out, "\n 0."); line; line = strstr(line + 1, "\n 0.")) {
		assert_int_equal(sscanf(line, " %lf-%lf ", &from, &to), 2);
		assert_true(from >= before);
		before = to;
		count++;
	}
	assert_true(count >= 2);
}

static const struct figure rate_figures[] = {
	FIGURE(COUNT, "late", struct figures_of_run, late),
	FIGURE(RATE, "rate", struct figures_of_run, rate),
	FIGURES_END,
};

static struct figures report_rate_only(void *context)
{
	struct state *state = context;

	state->figures.rate = (struct rate){ .count = 5, .from = clock_now(), .to = clock_now() + CLOCK_NS_PER_S };
	return (struct figures){ rate_figures, &state->figures, &state->before, sizeof(state->before),
				 .summarised = true };
}

static void count_and_finish(void *context)
{
	struct state *state = context;

	state->figures.late = state->counts_late;
	finish_now(state);
}

static void pass_a_day(void *context)
{
	struct state *state = context;

	fake_clock_pass(86400 * CLOCK_NS_PER_S + state->beyond);
	loop_timer_start(state->environment->loop, &state->timer, CLOCK_NS_PER_MS, count_and_finish, state);
}

static enum outcome start_a_day(struct environment *environment, void **context, int64_t beyond, uint64_t counts_late)
{
	struct state *state = make_state(environment, context);

	state->beyond = beyond;
	state->counts_late = counts_late;
	loop_timer_start(environment->loop, &state->timer, 0, pass_a_day, state);
	return OUTCOME_OK;
}

static enum outcome start_and_finish_in_time(struct environment *environment, const void *options, void **context)
{
	return start_a_day(environment, context, 0, 1);
}

static enum outcome start_and_finish_after_interval(struct environment *environment, const void *options,
						    void **context)
{
	return start_a_day(environment, context, 100 * CLOCK_NS_PER_MS, 1);
}

static enum outcome start_and_finish_idle(struct environment *environment, const void *options, void **context)
{
	return start_a_day(environment, context, 100 * CLOCK_NS_PER_MS, 0);
}

/* The rows of a day, with the header. */
static void assert_rows(enum outcome (*start)(struct environment *environment, const void *options, void **context),
			const char *rows)
{
	const struct command row = { .start = start, .figures = report_rate_only };
	struct child child = spawn(&row, "--interval-report 24h");
	struct result result = { 0 };
	char expected[512];

	finish(&child, &result);
	snprintf(expected, sizeof(expected), "start\n    seconds    late      rate\n%stool: summary of ", rows);
	if (!strstr(result.out, expected))
		fail_msg("%s is not in: %s", expected, result.out);
	/* The summary has a rate. */
	assert_non_null(strstr(result.out, "  rate: 5/s\n"));
}

TEST(very_short_last_interval_has_no_rate)
{
	assert_rows(start_and_finish_after_interval, "  0.0-86400.1     0       5/s\n"
						     "86400.1-86400.1   1         -\n");
}

TEST(moment_after_the_last_interval_is_part_of_it)
{
	assert_rows(start_and_finish_in_time, "  0.0-86400.0     1       5/s\n");
}

TEST(rest_in_which_nothing_counts_has_no_row)
{
	assert_rows(start_and_finish_idle, "  0.0-86400.1     0       5/s\n");
}

static char folder[] = "/tmp/run.XXXXXX";
static char figures[sizeof(folder) + 8];

/* Removes the file of --prometheus after it was first written. */
static enum outcome start_and_remove_folder(struct environment *environment, const void *options, void **context)
{
	if (unlink(figures) || rmdir(folder))
		trace("there was no file");
	return start_and_wait(environment, options, context);
}

static void finish_on_interrupt(void *context, enum interruption reason)
{
	never_shut_down(context, reason);
	finish_now(context);
}

static struct figures trace_interval(void *context)
{
	trace("interval");
	return report_nothing(context);
}

TEST(intervals_end_when_prometheus_file_fails)
{
	const struct command row = { .start = start_and_remove_folder,
				     .interrupt = finish_on_interrupt,
				     .figures = trace_interval };

	char arguments[64], err[256];

	assert_non_null(mkdtemp(folder));
	snprintf(figures, sizeof(figures), "%s/figures", folder);
	snprintf(arguments, sizeof(arguments), "--deadline 100 --prometheus %s", figures);
	snprintf(err, sizeof(err),
		 "tool: %s: --prometheus: writing the file: No such file or directory (2)\n"
		 "tool: deadline of 100 s exceeded\n",
		 figures);
	expect(&row, arguments, OUTCOME_INTERNAL, "open\nstart\ndeadline\ninterval\ntool: FAILED: done\nstop\nclose\n",
	       err);
}
