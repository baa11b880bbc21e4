/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/privileges.h"

/* Exits when the child is ready or has ended, with the child's exit code. */
static void __attribute__((noreturn)) wait_for_child(const struct log *log, pid_t child, int end)
{
	int status;
	char byte;
	ssize_t length;

	do {
		length = read(end, &byte, sizeof(byte));
	} while (length < 0 && errno == EINTR);
	if (length == 1)
		_exit(OUTCOME_OK);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	if (WIFEXITED(status))
		_exit(WEXITSTATUS(status));
	log_error(log, "--daemon", "killed before it was ready: %s (signal %d)", strsignal(WTERMSIG(status)),
		  WTERMSIG(status));
	_exit(OUTCOME_INTERNAL);
}

enum outcome daemon_begin(const struct log *log, int *parent)
{
	int ends[2];
	pid_t child;

	if (getpid() == 1) {
		log_error(log, "--daemon", "this is process 1, and the container would end with it: omit this option");
		return OUTCOME_USAGE;
	}
	/* Closes the caller's pipes, whose readers would wait for this process. */
	privileges_close(~0u);
	if (pipe2(ends, O_CLOEXEC)) {
		log_errno(log, "--daemon", errno, "creating a pipe");
		return OUTCOME_INTERNAL;
	}
	child = fork();
	if (child < 0) {
		privileges_no_process(log, "--daemon");
		close(ends[0]);
		close(ends[1]);
		return OUTCOME_INTERNAL;
	}
	if (child) {
		close(ends[1]);
		wait_for_child(log, child, ends[0]);
	}
	close(ends[0]);
	*parent = ends[1];
	return OUTCOME_OK;
}

/* Releases terminals and pipes, whose readers wait for end of file. Standard descriptors of regular files stay open. */
static void detach_terminal(int null)
{
	struct stat status;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fstat(fd, &status) || !S_ISREG(status.st_mode))
			dup3(null, fd, 0);
	/* The reader left before the ready line: no later output is lost. */
	clearerr(stdout);
}

enum outcome daemon_ready(const struct log *log, int parent, const char *folder)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	ssize_t length;

	if (null < 0 || chdir(folder)) {
		log_errno(log, "--daemon", errno, "opening %s", null < 0 ? "/dev/null" : folder);
		return OUTCOME_INTERNAL;
	}
	setsid();
	length = write(parent, "", 1);
	close(parent);
	if (length == 1)
		detach_terminal(null);
	else
		log_error(log, "--daemon", "the parent process has exited");
	close(null);
	return length == 1 ? OUTCOME_OK : OUTCOME_INTERNAL;
}
