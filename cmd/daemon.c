/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char pidfile_label[] = "--pidfile";
static const char blank[] = " \t\r\n";

/* All descriptors that this program opens have FD_CLOEXEC; an inherited one cannot have it. */
static bool is_inherited(int descriptor)
{
	int flags = fcntl(descriptor, F_GETFD);

	if (flags >= 0 && flags & FD_CLOEXEC)
		errno = EBADF;
	return flags >= 0 && !(flags & FD_CLOEXEC);
}

static enum outcome check_descriptor(const struct daemon *daemon)
{
	char text[24];

	if (!daemon->options->ready_fd || is_inherited((int)daemon->options->ready_fd))
		return OUTCOME_OK;
	snprintf(text, sizeof(text), "%" PRId64, daemon->options->ready_fd);
	log_errno(daemon->log, "--ready-fd", errno, "descriptor %s", text);
	return OUTCOME_USAGE;
}

/* Accepts a file with the ID of a process that no longer exists. A file with any other content is not a pidfile. */
static enum outcome check_pidfile(const struct daemon *daemon)
{
	const char *name = daemon->options->pidfile;
	struct stat status;
	bool exists = name && !lstat(name, &status), is_short_text;
	char text[32], *end;
	unsigned long long process;
	ssize_t length = -1;
	int file;

	if (!name || (!exists && errno == ENOENT))
		return OUTCOME_OK;
	/* daemon_end() would remove a device (root: /dev/null), and open(2) of a FIFO blocks. */
	if (exists && !S_ISREG(status.st_mode)) {
		log_error(daemon->log, pidfile_label, "%s is not a regular file", name);
		return OUTCOME_INTERNAL;
	}
	file = open(name, O_RDONLY | O_CLOEXEC);
	if (file >= 0)
		length = read(file, text, sizeof(text) - 1);
	if (length < 0) {
		log_errno(daemon->log, pidfile_label, errno, "%s", name);
		if (file >= 0)
			close(file);
		return OUTCOME_INTERNAL;
	}
	close(file);
	text[length] = 0;
	is_short_text = length < (ssize_t)sizeof(text) - 1 && strlen(text) == (size_t)length;
	if (is_short_text && !text[strspn(text, blank)])
		return OUTCOME_OK;
	process = strtoull(text, &end, 10);
	if (!is_short_text || end[strspn(end, blank)] || !process || process > INT32_MAX) {
		log_error(daemon->log, pidfile_label, "%s exists and contains no process ID", name);
		return OUTCOME_INTERNAL;
	}
	/* In a restarted container this process may have the same ID as the one that wrote the file. */
	if ((pid_t)process == getpid() || (kill((pid_t)process, 0) && errno == ESRCH))
		return OUTCOME_OK;
	log_error(daemon->log, pidfile_label, "%s belongs to running process %llu", name, process);
	return OUTCOME_INTERNAL;
}

/* Exits when the child is ready or has ended, with the child's exit code. */
static void __attribute__((noreturn)) wait_for_child(const struct daemon *daemon, pid_t child, int end)
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
	log_failure(daemon->log,
		    &(struct failure){ .object = "--daemon", .code_name = "signal", .code = WTERMSIG(status) },
		    "killed before it was ready: %s", strsignal(WTERMSIG(status)));
	_exit(OUTCOME_INTERNAL);
}

static enum outcome fork_daemon(struct daemon *daemon)
{
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC)) {
		log_errno(daemon->log, "--daemon", errno, "creating a pipe");
		return OUTCOME_INTERNAL;
	}
	child = fork();
	if (child < 0) {
		log_errno(daemon->log, "--daemon", errno, "starting a process");
		close(ends[0]);
		close(ends[1]);
		return OUTCOME_INTERNAL;
	}
	if (child) {
		close(ends[1]);
		wait_for_child(daemon, child, ends[0]);
	}
	close(ends[0]);
	daemon->parent = ends[1];
	return OUTCOME_OK;
}

enum outcome daemon_begin(struct daemon *daemon, const struct daemon_options *options, const struct log *log)
{
	enum outcome outcome;

	daemon->options = options;
	daemon->log = log;
	outcome = check_descriptor(daemon);
	if (!outcome)
		outcome = check_pidfile(daemon);
	if (!outcome && options->daemon)
		outcome = fork_daemon(daemon);
	return outcome;
}

/* Since check_pidfile() another user of the folder may have put a link or a FIFO there. */
static enum outcome write_pidfile(struct daemon *daemon)
{
	const char *name = daemon->options->pidfile;
	int file = open(name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_TRUNC | O_CLOEXEC, 0644);
	bool exists = file >= 0;

	daemon->has_pidfile = exists && dprintf(file, "%ld\n", (long)getpid()) > 0;
	if (exists && close(file))
		daemon->has_pidfile = false;
	if (daemon->has_pidfile)
		return OUTCOME_OK;
	log_errno(daemon->log, pidfile_label, errno, "%s", name);
	if (exists)
		unlink(name);
	return OUTCOME_INTERNAL;
}

/* False if another process has replaced the pidfile. O_NONBLOCK: open(2) of a FIFO does not block. */
static bool owns_pidfile(const char *name)
{
	char own[24], text[sizeof(own)];
	size_t length = (size_t)snprintf(own, sizeof(own), "%ld\n", (long)getpid());
	int file = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	bool same = file >= 0 && read(file, text, sizeof(text)) == (ssize_t)length && !memcmp(text, own, length);

	if (file >= 0)
		close(file);
	return same;
}

static enum outcome write_ready_fd(const struct daemon *daemon, const struct address *address)
{
	int descriptor = (int)daemon->options->ready_fd;
	char host[ADDRESS_TEXT_SIZE];

	if (dprintf(descriptor, "ready %s %u\n", address_host(address, host), (unsigned)address->port) < 0) {
		log_errno(daemon->log, "--ready-fd", errno, "writing");
		return OUTCOME_INTERNAL;
	}
	close(descriptor);
	return OUTCOME_OK;
}

static enum outcome start_session(struct daemon *daemon)
{
	setsid();
	daemon->null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (daemon->null >= 0)
		return OUTCOME_OK;
	log_errno(daemon->log, "--daemon", errno, "opening /dev/null");
	return OUTCOME_INTERNAL;
}

/* Releases terminals and pipes, whose readers wait for end of file. Standard descriptors of regular files stay open. */
static void detach_terminal(const struct daemon *daemon)
{
	struct stat status;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fstat(fd, &status) || !S_ISREG(status.st_mode))
			dup3(daemon->null, fd, 0);
	close(daemon->null);
}

static enum outcome release_parent(struct daemon *daemon)
{
	ssize_t length = write(daemon->parent, "", 1);

	close(daemon->parent);
	daemon->parent = 0;
	if (length == 1) {
		detach_terminal(daemon);
		return OUTCOME_OK;
	}
	log_error(daemon->log, "--daemon", "the parent process has exited");
	return OUTCOME_INTERNAL;
}

enum outcome daemon_register(struct daemon *daemon)
{
	enum outcome outcome = daemon->parent ? start_session(daemon) : OUTCOME_OK;

	if (!outcome && daemon->options->pidfile)
		outcome = write_pidfile(daemon);
	return outcome;
}

enum outcome daemon_ready(struct daemon *daemon, const struct address *address)
{
	enum outcome outcome = OUTCOME_OK;

	if (daemon->options->ready_fd)
		outcome = write_ready_fd(daemon, address);
	if (!outcome && daemon->parent)
		outcome = release_parent(daemon);
	return outcome;
}

void daemon_end(struct daemon *daemon)
{
	if (daemon->has_pidfile && owns_pidfile(daemon->options->pidfile))
		unlink(daemon->options->pidfile);
	daemon->has_pidfile = false;
}
