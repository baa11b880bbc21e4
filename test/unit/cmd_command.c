/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=transport_open,--wrap=transport_close,--wrap=privileges_drop */
/* link: -Wl,--wrap=transport_spin,--wrap=alarm */
/* command_run() from arguments to exit code: limits, signals, output errors. Each fake command runs in its own process
 * and prints a trace on stdout. */
#include "test/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "cmd/command.h"
#include "core/privileges.h"
#include "test/unit/fake_clock.h"

unsigned __real_alarm(unsigned seconds);

/* Divides kernel timers' times, for a process blocked outside the loop. */
static int64_t timer_speedup = 1;

/* The next command's run, and signals that start_and_raise() sends to its own process. */
static struct caller {
	unsigned alarm; /* seconds of a running alarm(2); 0: none */
	int ignored;	/* a signal */
	rlim_t descriptors_max;
	int raised[2];
} caller;

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
	return 0;
}

/* The options of all fake commands. */
struct settings {
	struct common_options common;
};

/* clang-format off */
static const struct option table[] = {
	TRANSPORT_OPTION(struct settings, TRANSPORT_DEFAULT),
	DEBUG_OPTION(struct settings, 0),
	OPTION_REST(endpoint_option_table),
};
/* clang-format on */

struct state {
	struct run *run;
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
	return OUTCOME_OK;
}

void __wrap_transport_close(struct transport *transport)
{
	assert_null(transport);
	trace("close");
}

void __wrap_transport_spin(struct transport *transport, int64_t nanoseconds)
{
	trace(nanoseconds == LOOP_SPIN_ALWAYS ? "polls" : nanoseconds == 5 * CLOCK_NS_PER_US ? "spins" : "?");
}

/* For a run over verbs before the transport is opened, which keeps the ports. */
void __wrap_privileges_drop(const struct log *log, unsigned kept)
{
	if (kept & PRIVILEGE_BUFFERS)
		trace("keeps buffers");
	else if (!(kept & PRIVILEGE_PORTS))
		trace("dropped");
	if (kept & PRIVILEGE_FILES)
		trace("writes files");
}

/* Returns the remaining seconds, and lets time pass faster. */
unsigned __wrap_alarm(unsigned seconds)
{
	int64_t microseconds = (int64_t)seconds * 1000000 / timer_speedup;
	const struct itimerval limit = { .it_value = { microseconds / 1000000, microseconds % 1000000 } };
	struct itimerval before = { 0 };

	setitimer(ITIMER_REAL, &limit, &before);
	return (unsigned)(before.it_value.tv_sec + (before.it_value.tv_usec > 0));
}

static struct state *make_state(struct run *run, void **context)
{
	struct state *state = calloc(1, sizeof(*state));

	state->run = run;
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
static enum outcome start_and_finish(struct run *run, const void *options, void **context)
{
	const struct settings *settings = options;

	make_state(run, context);
	if (settings->common.path.retry != PATH_UNSET || settings->common.path.rnr_retry != PATH_UNSET)
		trace("the path is not open");
	run_finish(run, OUTCOME_OK, NULL, "done");
	return OUTCOME_OK;
}

static enum outcome start_and_set_clock(struct run *run, const void *options, void **context)
{
	fake_clock.set = 3600 * CLOCK_NS_PER_S;
	return start_and_finish(run, options, context);
}

static enum outcome start_and_fail(struct run *run, const void *options, void **context)
{
	*context = NULL;
	run_record_outcome(run, OUTCOME_NO_CONNECTION);
	return OUTCOME_INTERNAL;
}

static enum outcome start_and_wait(struct run *run, const void *options, void **context)
{
	make_state(run, context);
	return OUTCOME_OK;
}

static enum outcome start_and_raise(struct run *run, const void *options, void **context)
{
	make_state(run, context);
	for (size_t i = 0; i < LENGTH(caller.raised) && caller.raised[i]; i++)
		raise(caller.raised[i]);
	return OUTCOME_OK;
}

static enum outcome start_and_be_ready(struct run *run, const void *options, void **context)
{
	const struct address nowhere = { .family = ADDRESS_NONE };

	make_state(run, context);
	assert_true(run_setup_done(run, &nowhere, "ready"));
	/* The second call has no effect. */
	assert_true(run_setup_done(run, NULL, NULL));
	run_finish(run, OUTCOME_OK, NULL, "done");
	/* Nor has this one. */
	run_finish(run, OUTCOME_FAILED, NULL, "done");
	return OUTCOME_OK;
}

static void finish_now(void *context)
{
	struct state *state = context;

	run_finish(state->run, OUTCOME_OK, NULL, "done");
}

static void let_60_ms_pass(void *context)
{
	fake_clock_pass(60 * CLOCK_NS_PER_MS);
}

static enum outcome start_and_finish_with_the_deadline(struct run *run, const void *options, void **context)
{
	static struct loop_timer busy;
	struct state *state = make_state(run, context);

	loop_timer_start(run->loop, &busy, 0, let_60_ms_pass, NULL);
	loop_timer_start(run->loop, &state->timer, 10 * CLOCK_NS_PER_MS, finish_now, state);
	return OUTCOME_OK;
}

/* A disk that is full for a while. */
static enum outcome start_and_lose_a_line(struct run *run, const void *options, void **context)
{
	int kept = dup(STDOUT_FILENO), full = open("/dev/full", O_WRONLY);
	struct state *state = make_state(run, context);

	fflush(stdout);
	dup2(full, STDOUT_FILENO);
	puts("lost");
	fflush(stdout);
	dup2(kept, STDOUT_FILENO);
	close(kept);
	close(full);
	loop_timer_start(run->loop, &state->timer, 0, finish_now, state);
	return OUTCOME_OK;
}

/* A library call that does not return within the watchdog's limit. */
static void hang(void *context)
{
	trace("hang");
	if (caller.raised[0])
		raise(caller.raised[0]);
	while (poll(NULL, 0, 20000) < 0)
		continue;
	_exit(OUTCOME_INTERNAL);
}

static enum outcome start_and_hang(struct run *run, const void *options, void **context)
{
	struct state *state = make_state(run, context);

	loop_timer_start(run->loop, &state->timer, 0, hang, state);
	return OUTCOME_OK;
}

static void shut_down(void *context, enum interruption reason)
{
	struct state *state = context;

	trace(reason == INTERRUPTION_SIGNAL ? "signal" : "deadline");
	loop_timer_start(state->run->loop, &state->timer, 50 * CLOCK_NS_PER_MS, finish_now, state);
}

static void never_shut_down(void *context, enum interruption reason)
{
	trace(reason == INTERRUPTION_SIGNAL ? "signal" : "deadline");
}

static void step_timed_out(void *context)
{
	struct state *state = context;

	trace("limit");
	run_finish(state->run, OUTCOME_FAILED, NULL, "done");
}

static void shutdown_step_times_out(void *context, enum interruption reason)
{
	struct state *state = context;

	never_shut_down(context, reason);
	loop_timer_start(state->run->loop, &state->timer, 30 * CLOCK_NS_PER_MS, step_timed_out, state);
}

static void block_in_shutdown(void *context, enum interruption reason)
{
	never_shut_down(context, reason);
	hang(context);
}

/* The outcome is the verdict's, whatever the clean-up reports. */
static void stop_and_fail(void *context)
{
	struct state *state = context;

	log_cause(&state->run->log, NULL, "leaving", 5, "refused");
	run_record_outcome(state->run, OUTCOME_NO_CONNECTION);
	stop(context);
}

static void work(void *context)
{
	fake_clock_pass(50 * CLOCK_NS_PER_MS);
}

static void finish_soon(void *context)
{
	struct state *state = context;

	fake_clock_pass(70 * CLOCK_NS_PER_MS);
	loop_timer_start(state->run->loop, &state->timer, 80 * CLOCK_NS_PER_MS, finish_now, state);
}

/*
 * 80 ms of sleep, 70 ms of work in which the first interval of 100 ms ends, and 80 ms of sleep in which the second one
 * ends.
 */
static enum outcome start_and_delay_interval(struct run *run, const void *options, void **context)
{
	struct state *state = make_state(run, context);

	loop_timer_start(run->loop, &state->timer, 80 * CLOCK_NS_PER_MS, finish_soon, state);
	return OUTCOME_OK;
}

/* The end is due before the interval, in the same iteration. */
static enum outcome start_and_finish_with_the_interval(struct run *run, const void *options, void **context)
{
	struct state *state = make_state(run, context);

	loop_timer_start(run->loop, &state->timer, 30 * CLOCK_NS_PER_MS, finish_now, state);
	loop_timer_start(run->loop, &state->work, 0, work, state);
	return OUTCOME_OK;
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

/* Removes the --prometheus file after it was first written. */
static enum outcome start_and_remove_folder(struct run *run, const void *options, void **context)
{
	if (unlink("figures/file") || rmdir("figures"))
		trace("there was no file");
	return start_and_wait(run, options, context);
}

static void finish_on_interrupt(void *context, enum interruption reason)
{
	never_shut_down(context, reason);
	finish_now(context);
}

static struct figures make_folder_again(void *context)
{
	mkdir("figures", 0700);
	return report_nothing(context);
}

static void stop_and_remove_file(void *context)
{
	trace(unlink("figures/file") ? "there is no file" : "the file is back");
	rmdir("figures");
	stop(context);
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
	loop_timer_start(state->run->loop, &state->timer, CLOCK_NS_PER_MS, count_and_finish, state);
}

/* A day that is one interval, and a rest after it that may count. */
static enum outcome start_a_day(struct run *run, void **context, int64_t beyond, uint64_t counts_late)
{
	struct state *state = make_state(run, context);

	state->beyond = beyond;
	state->counts_late = counts_late;
	loop_timer_start(run->loop, &state->timer, 0, pass_a_day, state);
	return OUTCOME_OK;
}

static enum outcome start_and_finish_in_time(struct run *run, const void *options, void **context)
{
	return start_a_day(run, context, 0, 1);
}

static enum outcome start_and_finish_late(struct run *run, const void *options, void **context)
{
	return start_a_day(run, context, 100 * CLOCK_NS_PER_MS, 1);
}

static enum outcome start_and_finish_idle(struct run *run, const void *options, void **context)
{
	return start_a_day(run, context, 100 * CLOCK_NS_PER_MS, 0);
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
	const pid_t parent = getpid();
	struct child child;
	int out[2], err[2];

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(err, O_CLOEXEC), 0);
	fflush(NULL);
	child.pid = fork();
	if (!child.pid) {
		struct command command = *row;
		struct log log = { .name = "tool" };
		struct output output;
		char name[] = "tool";
		struct rlimit limit;
		char words[128];
		char *argv[16] = { name };
		char *rest = NULL;
		int argc = 1;

		command.name = "tool";
		command.options = table;
		command.options_size = sizeof(struct settings);
		if (!command.stop)
			command.stop = stop;
		/* Its clock runs at any speed: without its parent it would never sleep. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		snprintf(words, sizeof(words), "%s", arguments);
		for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
			argv[argc++] = word;
		signal(SIGPIPE, SIG_IGN); /* as main() does */
		if (caller.ignored)
			signal(caller.ignored, SIG_IGN);
		__real_alarm(caller.alarm);
		dup2(out[1], STDOUT_FILENO);
		dup2(err[1], STDERR_FILENO);
		close(out[0]);
		getrlimit(RLIMIT_NOFILE, &limit);
		if (caller.descriptors_max)
			limit.rlim_cur = caller.descriptors_max;
		setrlimit(RLIMIT_NOFILE, &limit);
		output_begin(&output, STDOUT_FILENO);
		_exit((int)command_end(&log, &output, command_run(&command, "tool", argc, argv, &output)));
	}
	caller = (struct caller){ .alarm = 0 };
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
	read_until(child->out, result->out, sizeof(result->out), NULL);
	read_until(child->err, result->err, sizeof(result->err), NULL);
	close(child->out);
	close(child->err);
	result->status = exit_status(child->pid);
}

/* out is a pattern. */
static void expect(const struct command *row, const char *arguments, int status, const char *out, const char *err)
{
	struct child child = spawn(row, arguments);
	struct result result = { 0 };

	finish(&child, &result);
	assert_string_equal(result.err, err);
	if (fnmatch(out, result.out, 0))
		assert_string_equal(result.out, out);
	assert_int_equal(result.status, status);
}

#define NOT_COMPLETE "tool: FAILED: shutdown did not complete\nstop\nclose\n"
#define DAY	     "open\nstart\n    seconds    late      rate\n  0.0-86400."

static const struct {
	const char *what;
	enum outcome (*start)(struct run *run, const void *options, void **context);
	void (*interrupt)(void *context, enum interruption reason);
	const char *arguments;
	int status;
	const char *out, *err;
	int raised, ignored;
	bool twice;
	rlim_t descriptors_max;
	void (*stop)(void *context);
	struct figures (*figures)(void *context);
} runs[] = {
	{ "a run that ends by itself", start_and_finish, NULL, "", OUTCOME_OK, "open\nstart\ntool: done\nstop\nclose\n",
	  "" },
	{ "the start fails", start_and_fail, NULL, "", OUTCOME_NO_CONNECTION, "open\nclose\n", "" },
	{ "privileges are dropped before it is ready", start_and_be_ready, NULL, "--transport soft", OUTCOME_OK,
	  "open\nstart\ndropped\nready\ntool: done\nstop\nclose\n", "" },
	{ "others are dropped before soft reads a packet", start_and_wait, shut_down,
	  "--transport soft --deadline 20ms", OUTCOME_FAILED,
	  "open\nstart\nkeeps buffers\ndeadline\ntool: FAILED: done\nstop\nclose\n",
	  "tool: deadline of 0.02 s exceeded\n" },
	{ "--poll", start_and_finish, NULL, "--poll", OUTCOME_OK, "open\npolls\nstart\ntool: done\nstop\nclose\n", "" },
	{ "--spin is in microseconds", start_and_finish, NULL, "--spin 5", OUTCOME_OK,
	  "open\nspins\nstart\ntool: done\nstop\nclose\n", "" },
	/* Else unwanted lines, or lines that break the JSON, would go to standard output. */
	{ "quiet without /dev/null", start_and_finish, NULL, "--quiet", OUTCOME_INTERNAL, "",
	  "tool: /dev/null: opening: Too many open files (24)\n", .descriptors_max = STDERR_FILENO + 1 },
	{ "the deadline", start_and_wait, shut_down, "--deadline 20ms", OUTCOME_FAILED,
	  "open\nstart\ndeadline\ntool: FAILED: done\nstop\nclose\n", "tool: deadline of 0.02 s exceeded\n" },
	/*
	 * The shutdown gets 250 ms after a deadline, whatever --timeout is, or no time if a signal has already started
	 * it.
	 */
	{ "a shutdown after the deadline that does not end", start_and_wait, never_shut_down, "--deadline 20ms",
	  OUTCOME_FAILED, "open\nstart\ndeadline\n" NOT_COMPLETE, "tool: deadline of 0.02 s exceeded\n" },
	{ "a shutdown after a signal that does not end", start_and_raise, never_shut_down, "--timeout 30ms",
	  OUTCOME_FAILED, "open\nstart\nsignal\n" NOT_COMPLETE, "tool: shutdown exceeded --timeout (0.03 s)\n",
	  .raised = SIGINT },
	{ "a shutdown after a signal that lasts until the deadline", start_and_raise, never_shut_down, "--deadline 1s",
	  OUTCOME_FAILED, "open\nstart\nsignal\n" NOT_COMPLETE, "tool: deadline of 1 s exceeded\n", .raised = SIGTERM },
	{ "a step of the shutdown with the same timeout reports its own error first", start_and_raise,
	  shutdown_step_times_out, "--timeout 30ms", OUTCOME_FAILED,
	  "open\nstart\nsignal\nlimit\ntool: FAILED: done\nstop\nclose\n", "", .raised = SIGINT },
	{ "a run that ends at its deadline, in the same iteration", start_and_finish_with_the_deadline, never_shut_down,
	  "--deadline 30ms", OUTCOME_OK, "open\nstart\ntool: done\nstop\nclose\n", "" },
	{ "a hangup starts a shutdown", start_and_raise, shut_down, "", OUTCOME_OK,
	  "open\nstart\nsignal\ntool: done\nstop\nclose\n", "", .raised = SIGHUP },
	/* timeout(1) signals its child and then the process group. */
	{ "two signals of timeout(1) are one", start_and_raise, shut_down, "", OUTCOME_OK,
	  "open\nstart\nsignal\ntool: done\nstop\nclose\n", "", .raised = SIGINT, .twice = true },
	/* A shell does this to a script's background processes, and nohup(1) to any process. */
	{ "a signal that the caller ignores", start_and_raise, shut_down, "--deadline 20ms", OUTCOME_FAILED,
	  "open\nstart\ndeadline\ntool: FAILED: done\nstop\nclose\n", "tool: deadline of 0.02 s exceeded\n",
	  .raised = SIGHUP, .ignored = SIGHUP },
	{ "a signal during the clean-up", start_and_finish, NULL, "", OUTCOME_OK,
	  "open\nstart\ntool: done\nstopping\nstop\nclose\n", "", .stop = stop_and_be_interrupted },
	/* The verdict, also in JSON, matches the exit code. */
	{ "output that is lost", start_and_lose_a_line, NULL, "", OUTCOME_INTERNAL,
	  "*tool: FAILED: done\nstop\nclose\n*", "tool: standard output: write failed: Input/output error (5)\n" },
	{ "output that is lost, in JSON", start_and_lose_a_line, NULL, "--json", OUTCOME_INTERNAL,
	  "*\"verdict\":\"fail\",\"exit_code\":5,\"error_count\":1*",
	  "tool: standard output: write failed: Input/output error (5)\n" },
	{ "it starts at the time of day before the clock is set", start_and_set_clock, NULL, "--json", OUTCOME_OK,
	  "*\"start\":\"1970-01-01T00:00:01.000Z\"*", "" },
	{ "what the clean-up says counts no more", start_and_finish, NULL, "--json", OUTCOME_OK,
	  "*stop\nclose\n{*\"verdict\":\"pass\",\"exit_code\":0,\"error_count\":0,\"errors\":[[]]}\n",
	  "tool: leaving: refused (5)\n", .stop = stop_and_fail },
	{ "the verdict is the last line: the end is due before the interval, in the same iteration",
	  start_and_finish_with_the_interval, NULL, "--interval-report 40ms", OUTCOME_OK,
	  "*\ntool: summary of *\ntool: done\nstop\nclose\n", "", .figures = summarise_nothing },
	{ "intervals do not overlap", start_and_delay_interval, NULL, "--interval-report 100ms", OUTCOME_OK,
	  "*\n 0.00-0.15  \n 0.15-0.21  \ntool: summary of *", "", .figures = summarise_nothing },
	{ "also without figures", start_and_finish_with_the_interval, NULL, "--interval-report 40ms", OUTCOME_OK,
	  "open\nstart\ntool: done\nstop\nclose\n", "", .figures = report_nothing },
	{ "a very short last interval has no rate, and the summary has one", start_and_finish_late, NULL,
	  "--interval-report 24h", OUTCOME_OK,
	  DAY "1     0    5.00/s\n86400.1-86400.1   1         -\ntool: summary of *  rate: 5.00/s\n*", "",
	  .figures = report_rate_only },
	{ "a moment after the last interval is part of it", start_and_finish_in_time, NULL, "--interval-report 24h",
	  OUTCOME_OK, DAY "0     1    5.00/s\ntool: summary of *", "", .figures = report_rate_only },
	{ "a rest in which nothing counts has no row", start_and_finish_idle, NULL, "--interval-report 24h", OUTCOME_OK,
	  DAY "1     0    5.00/s\ntool: summary of *", "", .figures = report_rate_only },
	{ "an alarm that came while the process was stopped ends no run that goes on", start_and_raise, shut_down,
	  "--deadline 20ms", OUTCOME_FAILED, "open\nstart\ndeadline\ntool: FAILED: done\nstop\nclose\n",
	  "tool: deadline of 0.02 s exceeded\n", .raised = SIGALRM },
	{ "the file of --prometheus is written again when it can be", start_and_remove_folder, finish_on_interrupt,
	  "--deadline 100 --prometheus figures/file", OUTCOME_INTERNAL,
	  "writes files\nopen\nstart\ndeadline\ntool: FAILED: done\nthe file is back\nstop\nclose\n",
	  "tool: figures/file: --prometheus: writing the file: No such file or directory (2)\n"
	  "tool: deadline of 100 s exceeded\n",
	  .figures = make_folder_again, .stop = stop_and_remove_file },
};

TEST(runs_as_expected)
{
	char folder[] = "/tmp/run.XXXXXX";

	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	assert_int_equal(mkdir("figures", 0700), 0);
	for (size_t i = 0; i < LENGTH(runs); i++) {
		const struct command command = { .start = runs[i].start,
						 .interrupt = runs[i].interrupt,
						 .stop = runs[i].stop,
						 .figures = runs[i].figures };

		print_message("# %s\n", runs[i].what);
		caller = (struct caller){ .ignored = runs[i].ignored,
					  .descriptors_max = runs[i].descriptors_max,
					  .raised = { runs[i].raised, runs[i].twice ? runs[i].raised : 0 } };
		expect(&command, runs[i].arguments, runs[i].status, runs[i].out, runs[i].err);
	}
	assert_int_equal(rmdir(folder), 0);
}

TEST(watchdog, speed_up_timers, restore_timers)
{
	const struct command raises = { .start = start_and_raise, .interrupt = never_shut_down };
	const struct command hangs = { .start = start_and_hang, .interrupt = shut_down };

	/* The caller's alarm(2) survives execve(2). It must not expire before the run has begun, under valgrind. */
	caller = (struct caller){ .alarm = 3, .raised = { SIGTERM } };
	expect(&raises, "--deadline 1h --timeout 20s", -SIGALRM, "open\nstart\nsignal\n", "");
	expect(&hangs, "--deadline 1s --timeout 1ms", OUTCOME_FAILED, "open\nstart\nhang\n",
	       "tool: watchdog: a system or library call does not return: terminated\n");
	caller = (struct caller){ .raised = { SIGTERM } };
	expect(&hangs, "--timeout 1ms", OUTCOME_FAILED, "open\nstart\nhang\n",
	       "tool: watchdog: a system or library call does not return: terminated\n");
}

static void second_signal_ends_at_once(const struct command *row, const char *arguments, const char *before,
				       const char *after)
{
	struct child child = spawn(row, arguments);
	struct result result = { 0 };
	siginfo_t end = { 0 };

	read_until(child.out, result.out, sizeof(result.out), before);
	kill(child.pid, SIGINT);
	/* The first signals may come within GRACE_MS. */
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

TEST(second_signal_ends_at_once_whatever_blocks, speed_up_timers, restore_timers)
{
	const struct command waits = { .start = start_and_wait, .interrupt = never_shut_down };
	const struct command shutdown_blocks = { .start = start_and_wait, .interrupt = block_in_shutdown };
	const struct command run_blocks = { .start = start_and_hang, .interrupt = shut_down };
	const struct command clean_up_blocks = { .start = start_and_finish, .stop = stop_never };

	second_signal_ends_at_once(&waits, "--timeout 1m", "start\n", NULL);
	second_signal_ends_at_once(&shutdown_blocks, "", "start\n", NULL);
	second_signal_ends_at_once(&run_blocks, "", "hang\n", "");
	second_signal_ends_at_once(&clean_up_blocks, "", "stopping\n", "");
}
