/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks up a name in a child process:
 *
 *   parent                                   child
 *   fork                                     getaddrinfo
 *   read the struct                      <-- write one struct, _exit
 *   resolver_stop(): SIGKILL
 *   waitpid
 *
 * With a struct resolver_process that process forks, and gets the name and an end of the pipe through a socket. Then
 * resolver_stop() only closes the pipe, and SIGIO ends the child.
 */
#include "core/resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/privileges.h"

enum {
	RESOLVER_PAUSE_MS = 100, /* between two look-ups of an unknown name */
	ANOTHERS = -2,		 /* a child that resolver_process has forked */
};

/* What resolver_process reads, with the end of a pipe. */
struct request {
	int64_t wait;
	char text[256];
};

/* What the child writes. */
struct result {
	int32_t error; /* EAI_* (negative), errno of EAI_SYSTEM (positive), or 0 */
	uint32_t count;
	struct address addresses[RESOLVER_ADDRESSES_MAX];
};

_Static_assert(sizeof(struct result) <= 512, "POSIX guarantees atomic writes to a pipe up to 512 bytes");

static bool result_has(const struct result *result, const struct address *address)
{
	for (uint32_t i = 0; i < result->count; i++)
		if (address_same_host(&result->addresses[i], address))
			return true;
	return false;
}

static void store_addresses(struct result *result, const struct addrinfo *list)
{
	for (; list && result->count < RESOLVER_ADDRESSES_MAX; list = list->ai_next) {
		struct address address;

		if (address_from_socket(list->ai_addr, &address) && !result_has(result, &address))
			result->addresses[result->count++] = address;
	}
}

/* An unreachable name server is no different: it may answer the next query. */
static bool is_unknown(int error)
{
	return error == EAI_NONAME || error == EAI_NODATA || error == EAI_AGAIN;
}

/* A child never outlives the parent, which decides when it ends: Ctrl-C is for the parent. */
static void follow_parent(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (getppid() != parent)
		_exit(1);
}

static bool write_result(int pipe_end, const struct result *result)
{
	return write(pipe_end, result, sizeof(*result)) == sizeof(*result);
}

static void __attribute__((noreturn)) run_child(const struct resolver *resolver, int pipe_end, pid_t parent)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	int64_t until = clock_now() + resolver->wait;
	struct pollfd end = { .fd = pipe_end };
	struct result result = { 0 };
	struct addrinfo *list;

	follow_parent(parent);
	/* It parses the replies of name servers. */
	privileges_drop(resolver->log, 0);
	/* Without a descriptor for /etc/hosts the C library reports an unknown name. */
	privileges_close((unsigned)pipe_end - 1);
	/* SIGIO, once the parent closes its end. */
	fcntl(pipe_end, F_SETOWN, getpid());
	fcntl(pipe_end, F_SETFL, O_ASYNC);
	if (poll(&end, 1, 0)) /* closed before that */
		_exit(1);
	/* Tries again in this child: by the time of another fork(2) memory may be registered (resolver.h). */
	do
		result.error = getaddrinfo(resolver->text, NULL, &hints, &list);
	while (is_unknown(result.error) && clock_now() < until && !poll(NULL, 0, RESOLVER_PAUSE_MS));
	/* EAI_* codes are negative and errno values positive. */
	if (result.error == EAI_SYSTEM)
		result.error = errno;
	else if (!result.error)
		store_addresses(&result, list);
	_exit(!write_result(pipe_end, &result));
}

static int resolver_reap(pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	return status;
}

/* Returns the child's wait status, 0 of another's. */
static int reap_child(struct resolver *resolver)
{
	int status = resolver->child == ANOTHERS ? 0 : resolver_reap(resolver->child);

	close(resolver->pipe);
	resolver->child = 0;
	return status;
}

void resolver_stop(struct resolver *resolver)
{
	if (!WITH_NAMES || !resolver->child)
		return;
	if (resolver->child != ANOTHERS)
		kill(resolver->child, SIGKILL);
	reap_child(resolver);
}

/* An error of the child: EAI_* are negative, errno values positive. */
static enum outcome report_error(struct resolver *resolver, int error)
{
	resolver->temporary = error == EAI_AGAIN;
	log_cause(resolver->log, resolver->text, "looking up", error, "%s",
		  error > 0 ? strerror(error) : gai_strerror(error));
	return error > 0 || error == EAI_MEMORY ? OUTCOME_INTERNAL : OUTCOME_NO_CONNECTION;
}

enum outcome resolver_read(struct resolver *resolver)
{
	struct result result;
	ssize_t length;
	char ended[32];
	int status;

	if (!WITH_NAMES || !resolver->child)
		return resolver->outcome;
	do
		length = read(resolver->pipe, &result, sizeof(result));
	while (length < 0 && errno == EINTR);
	/* No kill(2): the child has written, or closed the pipe, and exits. */
	status = reap_child(resolver);
	if (length != sizeof(result)) {
		log_error(resolver->log, resolver->text, "looking up: the look-up process ended%s",
			  status ? log_text(ended, sizeof(ended), " (wait status %d)", status) : "");
		return OUTCOME_INTERNAL;
	}
	if (result.error || !result.count || result.count > RESOLVER_ADDRESSES_MAX)
		return report_error(resolver, result.error ? result.error : EAI_NONAME);
	resolver->count = result.count;
	memcpy(resolver->addresses, result.addresses, sizeof(result.addresses));
	return OUTCOME_OK;
}

/* ---- a process that forks ---- */

union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static struct msghdr message_of(struct request *request, struct iovec *part, union control *control)
{
	*part = (struct iovec){ request, sizeof(*request) };
	return (struct msghdr){
		.msg_iov = part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(*control)
	};
}

/* Its standard input is the socket. It keeps no privilege, and does not wait for its children. */
static void __attribute__((noreturn)) run_process(const struct log *log, int end, pid_t parent)
{
	struct resolver resolver = { .log = log };
	struct request request;
	union control control;
	struct iovec part;
	int pipe_end;
	pid_t child;

	follow_parent(parent);
	signal(SIGCHLD, SIG_IGN);
	privileges_drop(log, 0);
	if (dup2(end, STDIN_FILENO) < 0)
		_exit(1);
	privileges_close(~0u);
	for (parent = getpid();;) {
		struct msghdr message = message_of(&request, &part, &control);

		if (recvmsg(STDIN_FILENO, &message, 0) != sizeof(request) || !message.msg_controllen)
			_exit(0);
		memcpy(&pipe_end, CMSG_DATA(&control.header), sizeof(pipe_end));
		resolver.text = request.text;
		resolver.wait = request.wait;
		child = fork();
		if (!child)
			run_child(&resolver, pipe_end, parent);
		if (child < 0)
			write_result(pipe_end, &(struct result){ .error = errno });
		close(pipe_end);
	}
}

enum outcome resolver_process_start(struct resolver_process *process, const struct log *log)
{
	pid_t parent = getpid();
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		log_errno(log, NULL, errno, "creating a socket");
		return OUTCOME_INTERNAL;
	}
	process->child = fork();
	if (!process->child)
		run_process(log, ends[1], parent);
	close(ends[1]);
	process->socket = ends[0];
	if (process->child > 0)
		return OUTCOME_OK;
	privileges_no_process(log, "look-ups");
	process->child = 0;
	close(ends[0]);
	return OUTCOME_INTERNAL;
}

void resolver_process_stop(struct resolver_process *process)
{
	if (!WITH_NAMES || !process->child)
		return;
	close(process->socket);
	resolver_reap(process->child);
	process->child = 0;
}

/* Returns the child's number, or -1 with errno. */
static pid_t ask_process(const struct resolver_process *process, const struct resolver *resolver, int pipe_end)
{
	union control control = {
		.header = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS }
	};
	struct request request = { .wait = resolver->wait };
	struct iovec part;
	struct msghdr message = message_of(&request, &part, &control);

	log_text(request.text, sizeof(request.text), "%s", resolver->text);
	memcpy(CMSG_DATA(&control.header), &pipe_end, sizeof(pipe_end));
	return sendmsg(process->socket, &message, MSG_NOSIGNAL) < 0 ? -1 : ANOTHERS;
}

/* ---- the start ---- */

static enum outcome start_child(struct resolver *resolver, const struct resolver_process *process)
{
	pid_t parent = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC)) {
		log_errno(resolver->log, resolver->text, errno, "creating a pipe");
		return OUTCOME_INTERNAL;
	}
	resolver->child =
		WITH_DIAGNOSTICS && process && process->child ? ask_process(process, resolver, ends[1]) : fork();
	if (!resolver->child)
		run_child(resolver, ends[1], parent);
	close(ends[1]);
	if (resolver->child == -1) {
		privileges_no_process(resolver->log, resolver->text);
		resolver->child = 0;
		close(ends[0]);
		return OUTCOME_INTERNAL;
	}
	resolver->pipe = ends[0];
	return OUTCOME_OK;
}

/* Reports an error and returns true if text cannot be a name: the format is numeric, or it has a colon and a scope. */
static bool reject_text(const struct resolver *resolver, enum address_format format)
{
	const char *scope = strchr(resolver->text, '%');

	if (format != ADDRESS_FORMAT_ANY)
		log_error(resolver->log, resolver->text, "is not a numeric address of that format");
	else if (scope && strchr(resolver->text, ':'))
		log_error(resolver->log, resolver->text, "is not an IPv6 address, or interface %s does not exist",
			  scope + 1);
	else
		return false;
	return true;
}

void resolver_start_by(const struct resolver_process *process, struct resolver *resolver, const struct log *log,
		       const char *text, enum address_format format, int64_t wait)
{
	*resolver = (struct resolver){ .log = log, .text = text, .wait = wait };
	if (address_parse(text, format, &resolver->addresses[0]) || !WITH_NAMES)
		resolver->count = 1;
	else if (reject_text(resolver, format))
		resolver->outcome = OUTCOME_USAGE;
	else
		resolver->outcome = start_child(resolver, process);
}

void resolver_start(struct resolver *resolver, const struct log *log, const char *text, enum address_format format,
		    int64_t wait)
{
	resolver_start_by(NULL, resolver, log, text, format, wait);
}
