/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that the filter of --sandbox refuses and allows, each in its own process. */
#include "test/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmd/confinement.h"
#include "core/privileges.h"
#include "core/sandbox.h"

#ifdef __SANITIZE_ADDRESS__
/* LeakSanitizer starts another process at exit, which the sandbox forbids. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

enum {
	REFUSED = 77,
	NO_FILTER = 78,
};

static const struct log log_ = { .name = "test" };
static char file[] = "/tmp/sandbox.XXXXXX";
static char other[sizeof(file) + 4];
static pid_t parent; /* the sandbox forbids getppid(2) */

static void refused(int number, siginfo_t *information, void *context)
{
	(void)number;
	(void)context;
	_exit(information->si_syscall > 0 ? REFUSED : 1);
}

/* Calls act in a sandboxed process. Returns its exit code: 0, or REFUSED. */
static int run_in_sandbox(unsigned grants, void (*act)(void))
{
	pid_t child;
	int status;

	if (!sandbox_is_possible(&log_))
		skip();
	parent = getpid();
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (sandbox_enter(&log_, grants, refused))
			_exit(NO_FILTER);
		act();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void execute(void)
{
	execl("/bin/true", "true", (char *)NULL);
}

static void clone_process(void)
{
	syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static void local_socket(void)
{
	socket(AF_UNIX, SOCK_STREAM, 0);
}

static void packet_socket(void)
{
	socket(AF_PACKET, SOCK_RAW, 0);
}

static void listen_tcp(void)
{
	listen(socket(AF_INET, SOCK_STREAM, 0), 1);
}

static void trace(void)
{
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static void kill_another(void)
{
	kill(parent, 0);
}

static void signal_another(void)
{
	syscall(SYS_tgkill, parent, parent, 0);
}

static void signal_another_thread(void)
{
	syscall(SYS_tkill, parent, 0);
}

static void map_executable(void)
{
	mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void make_executable(void)
{
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(memory, 4096, PROT_READ | PROT_EXEC);
}

static void type_into_terminal(void)
{
	ioctl(STDIN_FILENO, TIOCSTI, "x");
}

static void change_process(void)
{
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

static void change_mode(void)
{
	chmod(file, 0777);
}

static void overwrite(void)
{
	if (open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600) < 0)
		_exit(1);
}

static void append(void)
{
	open(file, O_WRONLY | O_APPEND);
}

static void open_device(void)
{
	if (open("/dev/null", O_RDWR) < 0)
		_exit(1);
}

static void rename_it(void)
{
	rename(file, other);
	rename(other, file);
}

static void remove_it(void)
{
	unlink(other);
}

static const struct {
	const char *name;
	void (*act)(void);
	unsigned grants; /* any of these allows it; 0: always refused */
} forbidden[] = {
	{ "execve", execute, 0 },
	{ "clone", clone_process, 0 },
	{ "a local socket", local_socket, 0 },
	{ "a packet socket", packet_socket, 0 },
	{ "listen", listen_tcp, 0 },
	{ "ptrace", trace, 0 },
	{ "kill", kill_another, 0 },
	{ "tgkill", signal_another, 0 },
	{ "tkill", signal_another_thread, 0 },
	{ "memory to execute", map_executable, 0 },
	{ "to make memory executable", make_executable, 0 },
	{ "to type into the terminal", type_into_terminal, 0 },
	{ "prctl", change_process, 0 },
	{ "chmod", change_mode, 0 },
	{ "to append to a file", append, 0 },
	{ "to overwrite a file", overwrite, SANDBOX_FILES },
	{ "rename", rename_it, SANDBOX_FILES },
	{ "unlink", remove_it, SANDBOX_FILES },
	{ "to open a device", open_device, SANDBOX_DEVICES },
};

static void forbidden_calls_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(forbidden); i++)
		for (unsigned grants = 0; grants <= (SANDBOX_FILES | SANDBOX_DEVICES); grants++) {
			bool granted = forbidden[i].grants && (forbidden[i].grants & grants);
			int status = run_in_sandbox(grants, forbidden[i].act);

			if (status != (granted ? 0 : REFUSED))
				fail_msg("%s, with the grants %u: status %d", forbidden[i].name, grants, status);
		}
}

static void calls_of_a_run(void)
{
	struct timespec moment = { .tv_nsec = 1 };
	void *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int packets = socket(AF_INET, SOCK_DGRAM, 0), null = open("/dev/null", O_RDONLY);
	sigset_t none;

	sigemptyset(&none);
	if (memory == MAP_FAILED || packets < 0 || null < 0 || mprotect(memory, 4096, PROT_READ) ||
	    munmap(memory, 8192) || nanosleep(&moment, NULL) || close(packets) || close(null) ||
	    sigprocmask(SIG_SETMASK, &none, NULL) || signal(SIGUSR1, SIG_IGN) == SIG_ERR || raise(SIGUSR1) ||
	    fprintf(stderr, "%s", "") < 0)
		_exit(1);
	/* The kernel rejects this call, not the filter: EBADF. */
	if (!ioctl(-1, 0x1b01, NULL) || errno != EBADF)
		_exit(2);
	/* isatty(3): TCGETS, and TCGETS2 with newer libraries. */
	if (!ioctl(-1, TCGETS, NULL) || errno != EBADF || !ioctl(-1, 0x802c542a, NULL) || errno != EBADF)
		_exit(3);
}

static void allowed_calls_succeed(void **state)
{
	(void)state;
	assert_int_equal(run_in_sandbox(0, calls_of_a_run), 0);
}

static void exit_with_no_new_privs(void)
{
	char line[256];
	FILE *status = fopen("/proc/self/status", "r");
	bool found = false;

	while (status && fgets(line, sizeof(line), status))
		found |= !strcmp(line, "NoNewPrivs:\t1\n");
	_exit(found ? 0 : 1);
}

#if defined(__x86_64__)
/* System call 20 is getpid on i386 and writev on x86-64. */
static void call_of_another_architecture_is_killed(void **state)
{
	pid_t child;
	int status;

	(void)state;
	if (!sandbox_is_possible(&log_))
		skip();
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		long number = 20;

		if (sandbox_enter(&log_, 0, refused))
			_exit(NO_FILTER);
		__asm__ volatile("int $0x80" : "+a"(number) : : "memory", "r8", "r9", "r10", "r11");
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
}
#endif

static void no_new_privs_is_set(void **state)
{
	(void)state;
	assert_int_equal(run_in_sandbox(0, exit_with_no_new_privs), 0);
}

static uint64_t capabilities(void)
{
	char line[256];
	FILE *status = fopen("/proc/self/status", "r");
	unsigned long long effective = UINT64_MAX, permitted = UINT64_MAX;

	assert_non_null(status);
	while (fgets(line, sizeof(line), status)) {
		sscanf(line, "CapEff: %llx", &effective);
		sscanf(line, "CapPrm: %llx", &permitted);
	}
	fclose(status);
	assert_true(effective == permitted);
	return effective;
}

static bool has_inheritable(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return syscall(SYS_capget, &header, data) || data[0].inheritable || data[1].inheritable;
}

/* Makes all capabilities inheritable, as some container runtimes do. */
static void make_inheritable(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data))
		_exit(2);
	for (size_t i = 0; i < LENGTH(data); i++)
		data[i].inheritable = data[i].permitted;
	if (syscall(SYS_capset, &header, data))
		_exit(3);
}

/* Root keeps only a few capabilities, none of them inheritable. Other users have none before and after. */
static void privileges_are_dropped(void **state)
{
	enum {
		IPC_LOCK = 1 << 14,
		DAC_OVERRIDE = 1 << 1,
		NET_BIND_SERVICE = 1 << 10,
	};

	(void)state;
	for (unsigned kept = 0; kept <= (PRIVILEGE_FILES | PRIVILEGE_PORTS); kept++) {
		uint64_t before = capabilities(), allowed = IPC_LOCK;
		pid_t child = fork();
		int status;

		assert_true(child >= 0);
		if (!child) {
			allowed |= kept & PRIVILEGE_FILES ? DAC_OVERRIDE : 0;
			allowed |= kept & PRIVILEGE_PORTS ? NET_BIND_SERVICE : 0;
			make_inheritable();
			privileges_drop(&log_, kept);
			_exit(capabilities() == (before & allowed) && !has_inheritable() ? 0 : 1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

/* A refused call prints a line on stderr and ends the process with OUTCOME_INTERNAL. */
static void refused_call_is_reported(void **state)
{
	const struct common_options options = { .transport = "soft", .sandbox = true };
	struct capture capture;
	char expected[160];
	pid_t child;
	int status;

	(void)state;
	if (!sandbox_is_possible(&log_))
		skip();
	capture_begin(&capture);
	child = fork();
	if (!child) {
		if (!confinement_enter(&options, &log_))
			socket(AF_UNIX, SOCK_STREAM, 0);
		_exit(1);
	}
	waitpid(child, &status, 0);
	snprintf(expected, sizeof(expected), "rdmatest: --sandbox: system call %d was refused: terminated\n",
		 (int)SYS_socket);
	assert_string_equal(capture_end(&capture), expected);
	assert_int_equal(WEXITSTATUS(status), OUTCOME_INTERNAL);
}

static int begin(void **state)
{
	int fd = mkstemp(file);

	(void)state;
	snprintf(other, sizeof(other), "%s.new", file);
	return fd < 0 ? -1 : close(fd);
}

static int end(void **state)
{
	(void)state;
	return unlink(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forbidden_calls_are_refused),
		cmocka_unit_test(allowed_calls_succeed),
		cmocka_unit_test(no_new_privs_is_set),
		cmocka_unit_test(privileges_are_dropped),
		cmocka_unit_test(refused_call_is_reported),
#if defined(__x86_64__)
		cmocka_unit_test(call_of_another_architecture_is_killed),
#endif
	};

	return cmocka_run_group_tests(tests, begin, end);
}
