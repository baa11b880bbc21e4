/* SPDX-License-Identifier: BSD-2-Clause */
/* --pidfile, --ready-fd and --daemon. */
#include "test/unit/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "cmd/daemon.h"

static const struct log tool_log = { .name = "tool" };
static const struct address somewhere = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 1 }, .port = 7174 };
static char folder[] = "/tmp/daemon.XXXXXX";
static char pidfile[sizeof(folder) + 4];

static enum outcome register_and_ready(struct daemon *daemon)
{
	enum outcome outcome = daemon_register(daemon);

	return outcome ? outcome : daemon_ready(daemon, &somewhere);
}

static void write_bytes(const char *bytes, size_t size)
{
	FILE *stream = fopen(pidfile, "w");

	assert_non_null(stream);
	assert_int_equal(fwrite(bytes, 1, size, stream), size);
	fclose(stream);
}

static void write_file(const char *text)
{
	write_bytes(text, strlen(text));
}

static long pid_in_file(void)
{
	FILE *stream = fopen(pidfile, "r");
	long number = 0;

	assert_non_null(stream);
	assert_int_equal(fscanf(stream, "%ld", &number), 1);
	fclose(stream);
	return number;
}

static int remove_file(void **state)
{
	(void)state;
	unlink(pidfile);
	return 0;
}

static void assert_begin_rejected(const struct daemon_options *options, enum outcome outcome, const char *words)
{
	struct daemon daemon = { 0 };
	struct capture errors;

	capture_begin(&errors);
	assert_int_equal(daemon_begin(&daemon, options, &tool_log), outcome);
	if (!strstr(capture_end(&errors), words))
		fail_msg("\"%s\" is not in: %s", words, errors.text);
	daemon_end(&daemon);
}

static int exit_status(pid_t process)
{
	int status;

	assert_int_equal(waitpid(process, &status, 0), process);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Returns the ID of a child that has exited. */
static pid_t exited_process(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	return child;
}

static void pidfile_exists_from_ready_to_end(void **state)
{
	const struct daemon_options options = { .pidfile = pidfile };
	struct daemon daemon = { 0 };

	(void)state;
	assert_int_equal(daemon_begin(&daemon, &options, &tool_log), OUTCOME_OK);
	assert_int_equal(access(pidfile, F_OK), -1);
	assert_int_equal(register_and_ready(&daemon), OUTCOME_OK);
	assert_int_equal(pid_in_file(), getpid());
	daemon_end(&daemon);
	assert_int_equal(access(pidfile, F_OK), -1);
}

static void pidfile_of_running_process_is_rejected(void **state)
{
	const struct daemon_options options = { .pidfile = pidfile };
	char text[32], words[64];

	(void)state;
	snprintf(text, sizeof(text), "%ld\n", (long)getppid());
	snprintf(words, sizeof(words), "belongs to running process %ld", (long)getppid());
	write_file(text);
	assert_begin_rejected(&options, OUTCOME_INTERNAL, words);
	assert_int_equal(pid_in_file(), getppid());
	/* kill(2) fails with EPERM: the process exists. */
	write_file("1\n");
	assert_begin_rejected(&options, OUTCOME_INTERNAL, "belongs to running process 1");
}

static void pidfile_of_exited_process_is_replaced(void **state)
{
	const struct daemon_options options = { .pidfile = pidfile };
	struct daemon daemon = { 0 };
	char text[32];

	(void)state;
	snprintf(text, sizeof(text), "%ld\n", (long)exited_process());
	write_file(text);
	assert_int_equal(daemon_begin(&daemon, &options, &tool_log), OUTCOME_OK);
	assert_int_equal(register_and_ready(&daemon), OUTCOME_OK);
	assert_int_equal(pid_in_file(), getpid());
	daemon_end(&daemon);
}

static void file_without_process_id_is_rejected(void **state)
{
	const struct daemon_options options = { .pidfile = pidfile };

	(void)state;
	write_file("root:x:0:0\n");
	assert_begin_rejected(&options, OUTCOME_INTERNAL, "contains no process ID");
	write_file("-1\n");
	assert_begin_rejected(&options, OUTCOME_INTERNAL, "contains no process ID");
	write_file("99999999 bottles of beer\n");
	assert_begin_rejected(&options, OUTCOME_INTERNAL, "contains no process ID");
	write_file("4294967297\n");
	assert_begin_rejected(&options, OUTCOME_INTERNAL, "contains no process ID");
	write_file("                                        important");
	assert_begin_rejected(&options, OUTCOME_INTERNAL, "contains no process ID");
	write_file("999999999                      \nimportant");
	assert_begin_rejected(&options, OUTCOME_INTERNAL, "contains no process ID");
	write_bytes("\0\0important", 11);
	assert_begin_rejected(&options, OUTCOME_INTERNAL, "contains no process ID");
	assert_int_equal(access(pidfile, F_OK), 0);
}

static void pidfile_write_error_is_reported(void **state)
{
	const struct daemon_options options = { .pidfile = "/nowhere/pid" };
	struct daemon daemon = { 0 };
	struct capture errors;

	(void)state;
	assert_int_equal(daemon_begin(&daemon, &options, &tool_log), OUTCOME_OK);
	capture_begin(&errors);
	assert_int_equal(register_and_ready(&daemon), OUTCOME_INTERNAL);
	assert_string_equal(capture_end(&errors), "tool: --pidfile: /nowhere/pid: No such file or directory (2)\n");
	daemon_end(&daemon);
}

static void assert_register_fails(struct daemon *daemon, const char *words)
{
	struct capture errors;

	capture_begin(&errors);
	alarm(10);
	assert_int_equal(daemon_register(daemon), OUTCOME_INTERNAL);
	alarm(0);
	if (!strstr(capture_end(&errors), words))
		fail_msg("\"%s\" is not in: %s", words, errors.text);
	daemon_end(daemon);
}

/* Whoever may write to the folder may put a link there, before the start or until the server is ready. */
static void file_behind_a_link_is_not_written(void **state)
{
	const struct daemon_options options = { .pidfile = pidfile };
	struct daemon daemon = { 0 };
	struct stat status;
	char other[sizeof(pidfile) + 8];

	(void)state;
	snprintf(other, sizeof(other), "%s.other", pidfile);
	write_file("");
	assert_int_equal(rename(pidfile, other), 0);
	assert_int_equal(symlink(other, pidfile), 0);
	assert_begin_rejected(&options, OUTCOME_INTERNAL, "is not a regular file");

	unlink(pidfile);
	assert_int_equal(daemon_begin(&daemon, &options, &tool_log), OUTCOME_OK);
	assert_int_equal(symlink(other, pidfile), 0);
	assert_register_fails(&daemon, "Too many levels of symbolic links");
	assert_int_equal(stat(other, &status), 0);
	assert_int_equal(status.st_size, 0);
	unlink(other);

	unlink(pidfile);
	assert_int_equal(daemon_begin(&daemon, &options, &tool_log), OUTCOME_OK);
	assert_int_equal(mkfifo(pidfile, 0600), 0);
	assert_register_fails(&daemon, "No such device or address");
}

/* Another process may have replaced the file, also by text that begins like what we wrote. */
static void pidfile_of_other_process_is_kept(void **state)
{
	const struct daemon_options options = { .pidfile = pidfile };
	static const char *const ends[] = { "x\n", "0\n", "\n1\n", "" };

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct daemon daemon = { 0 };
		char text[32];

		assert_int_equal(daemon_begin(&daemon, &options, &tool_log), OUTCOME_OK);
		assert_int_equal(register_and_ready(&daemon), OUTCOME_OK);
		snprintf(text, sizeof(text), "%ld%s", (long)getpid(), ends[i]);
		write_file(text);
		daemon_end(&daemon);
		assert_int_equal(access(pidfile, F_OK), 0);
		unlink(pidfile);
	}
}

/* A FIFO in place of the file does not block the end. */
static void pidfile_replaced_by_fifo_is_kept(void **state)
{
	const struct daemon_options options = { .pidfile = pidfile };
	struct daemon daemon = { 0 };

	(void)state;
	assert_int_equal(daemon_begin(&daemon, &options, &tool_log), OUTCOME_OK);
	assert_int_equal(register_and_ready(&daemon), OUTCOME_OK);
	unlink(pidfile);
	assert_int_equal(mkfifo(pidfile, 0600), 0);
	alarm(10);
	daemon_end(&daemon);
	alarm(0);
	assert_int_equal(access(pidfile, F_OK), 0);
}

/* Part of a pidfile, of a full disk, does not stay. */
static void pidfile_that_cannot_be_written_is_removed(void **state)
{
	static const struct daemon_options options = { .pidfile = pidfile };
	const struct rlimit no_space = { .rlim_cur = 0, .rlim_max = 0 };
	pid_t caller = fork();

	(void)state;
	if (!caller) {
		struct daemon daemon = { 0 };

		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &no_space);
		close(STDERR_FILENO);
		daemon_begin(&daemon, &options, &tool_log);
		daemon_register(&daemon);
		daemon_end(&daemon);
		_exit(0);
	}
	assert_int_equal(exit_status(caller), 0);
	assert_int_equal(access(pidfile, F_OK), -1);
}

static void ready_fd_gets_one_line_and_is_closed(void **state)
{
	struct daemon_options options = { 0 };
	struct daemon daemon = { 0 };
	char text[64];
	ssize_t length;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	options.ready_fd = ends[1];
	assert_int_equal(daemon_begin(&daemon, &options, &tool_log), OUTCOME_OK);
	assert_int_equal(register_and_ready(&daemon), OUTCOME_OK);
	length = read(ends[0], text, sizeof(text) - 1);
	assert_true(length > 0);
	text[length] = 0;
	assert_string_equal(text, "ready 10.0.0.1 7174\n");
	assert_int_equal(read(ends[0], text, sizeof(text)), 0);
	close(ends[0]);
}

static void closed_ready_fd_is_rejected(void **state)
{
	const struct daemon_options options = { .ready_fd = 999 };

	(void)state;
	assert_begin_rejected(&options, OUTCOME_USAGE, "tool: --ready-fd: descriptor 999: Bad file descriptor (9)");
}

/* A descriptor with FD_CLOEXEC is not inherited. */
static void ready_fd_with_cloexec_is_rejected(void **state)
{
	int own = open("/dev/null", O_WRONLY | O_CLOEXEC);
	const struct daemon_options options = { .ready_fd = own };
	char words[64];

	(void)state;
	assert_true(own >= 0);
	snprintf(words, sizeof(words), "tool: --ready-fd: descriptor %d: Bad file descriptor (9)", own);
	assert_begin_rejected(&options, OUTCOME_USAGE, words);
	close(own);
}

static void ready_fd_write_error_is_reported(void **state)
{
	struct daemon_options options = { 0 };
	struct daemon daemon = { 0 };
	struct capture errors;
	int ends[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(ends), 0);
	options.ready_fd = ends[1];
	assert_int_equal(daemon_begin(&daemon, &options, &tool_log), OUTCOME_OK);
	close(ends[0]);
	capture_begin(&errors);
	assert_int_equal(register_and_ready(&daemon), OUTCOME_INTERNAL);
	assert_non_null(strstr(capture_end(&errors), "--ready-fd: writing: Broken pipe"));
	close(ends[1]);
}

/* Runs a daemon that ends with code: at once if hold is 0, else when it is ready and hold reads end of file. Returns
 * the exit status of the parent. */
static int daemon_status(int hold, int code)
{
	static const struct daemon_options options = { .daemon = true, .pidfile = pidfile };
	pid_t caller = fork();

	if (!caller) {
		struct daemon daemon = { 0 };
		char byte;

		if (daemon_begin(&daemon, &options, &tool_log))
			_exit(99);
		if (hold && (register_and_ready(&daemon) || read(hold, &byte, sizeof(byte))))
			_exit(98);
		daemon_end(&daemon);
		_exit(code);
	}
	return exit_status(caller);
}

static void parent_exits_when_daemon_is_ready(void **state)
{
	int hold[2], end[2];
	pid_t process;
	char byte;

	(void)state;
	/* The daemon runs until hold[1] is closed. end reads end of file when it has exited. */
	assert_int_equal(pipe(end), 0);
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	process = fork();
	if (!process) {
		close(hold[1]);
		_exit(daemon_status(hold[0], 7));
	}
	close(end[1]);
	assert_int_equal(exit_status(process), 0);
	process = (pid_t)pid_in_file();
	assert_int_not_equal(process, getpid());
	assert_int_equal(getsid(process), process);
	close(hold[1]);
	assert_int_equal(read(end[0], &byte, sizeof(byte)), 0);
	assert_int_equal(access(pidfile, F_OK), -1);
	close(hold[0]);
	close(end[0]);
}

static void parent_returns_exit_code_of_failed_daemon(void **state)
{
	(void)state;
	assert_int_equal(daemon_status(0, 3), 3);
	assert_int_equal(daemon_status(0, 4), 4);
}

/* A killed process prints nothing: its parent reports the signal. */
static void parent_reports_killed_daemon(void **state)
{
	static const struct daemon_options options = { .daemon = true };
	struct capture errors;
	int status;
	pid_t caller;

	(void)state;
	capture_begin(&errors);
	caller = fork();
	if (!caller) {
		struct daemon daemon = { 0 };

		daemon_begin(&daemon, &options, &tool_log);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(caller, &status, 0), caller);
	assert_string_equal(capture_end(&errors), "tool: --daemon: killed before it was ready: Killed (signal 9)\n");
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), OUTCOME_INTERNAL);
}

/* Else the daemon would keep the terminal of its caller. */
static void daemon_without_dev_null_fails(void **state)
{
	static const struct daemon_options options = { .daemon = true };
	struct rlimit limit;
	struct capture errors;
	pid_t caller;

	(void)state;
	capture_begin(&errors);
	caller = fork();
	if (!caller) {
		struct daemon daemon = { 0 };

		daemon_begin(&daemon, &options, &tool_log);
		getrlimit(RLIMIT_NOFILE, &limit);
		limit.rlim_cur = STDERR_FILENO + 1;
		setrlimit(RLIMIT_NOFILE, &limit);
		_exit((int)daemon_register(&daemon));
	}
	assert_int_equal(exit_status(caller), OUTCOME_INTERNAL);
	assert_string_equal(capture_end(&errors), "tool: --daemon: opening /dev/null: Too many open files (24)\n");
}

static int begin(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(pidfile, sizeof(pidfile), "%s/pid", folder);
	return 0;
}

static int end(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(pidfile_exists_from_ready_to_end, remove_file),
		cmocka_unit_test_teardown(pidfile_of_running_process_is_rejected, remove_file),
		cmocka_unit_test_teardown(pidfile_of_exited_process_is_replaced, remove_file),
		cmocka_unit_test_teardown(file_without_process_id_is_rejected, remove_file),
		cmocka_unit_test(pidfile_write_error_is_reported),
		cmocka_unit_test_teardown(pidfile_of_other_process_is_kept, remove_file),
		cmocka_unit_test_teardown(pidfile_replaced_by_fifo_is_kept, remove_file),
		cmocka_unit_test_teardown(file_behind_a_link_is_not_written, remove_file),
		cmocka_unit_test_teardown(pidfile_that_cannot_be_written_is_removed, remove_file),
		cmocka_unit_test(ready_fd_gets_one_line_and_is_closed),
		cmocka_unit_test(closed_ready_fd_is_rejected),
		cmocka_unit_test(ready_fd_with_cloexec_is_rejected),
		cmocka_unit_test(ready_fd_write_error_is_reported),
		cmocka_unit_test_teardown(parent_exits_when_daemon_is_ready, remove_file),
		cmocka_unit_test_teardown(parent_returns_exit_code_of_failed_daemon, remove_file),
		cmocka_unit_test(parent_reports_killed_daemon),
		cmocka_unit_test(daemon_without_dev_null_fails),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
