/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The look-up of a name in a child process:
 *
 *   parent                                   child
 *   fork, watch the pipe and the clock       getaddrinfo
 *   end of the pipe: the answer is whole <-- write one struct, _exit
 *   time is up, or stop: SIGKILL
 *   waitpid
 */
#include "core/address.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"

/* The answer goes through the pipe in one piece. */
_Static_assert(sizeof(((struct resolver *)0)->answer) <= 512, "a pipe writes 512 bytes at once on every system");

static bool is_known(const struct resolver *resolver, const struct address *address)
{
	for (uint32_t i = 0; i < resolver->answer.count; i++)
		if (address_same_host(&resolver->answer.addresses[i], address))
			return true;
	return false;
}

static void keep_addresses(struct resolver *resolver, const struct addrinfo *list)
{
	for (; list && resolver->answer.count < ADDRESS_RESOLVE_MOST; list = list->ai_next) {
		struct sockaddr_storage socket_address;
		struct address address;

		if (list->ai_addrlen > sizeof(socket_address))
			continue;
		memset(&socket_address, 0, sizeof(socket_address));
		memcpy(&socket_address, list->ai_addr, list->ai_addrlen);
		if (address_from_socket(&socket_address, &address) && !is_known(resolver, &address))
			resolver->answer.addresses[resolver->answer.count++] = address;
	}
}

/* Not every C library has close_range(2), nor has every kernel. */
static void close_files(unsigned first, unsigned last)
{
	enum {
		USUAL_LIMIT = 1024
	};

	if (first > last || !syscall(SYS_close_range, first, last, 0))
		return;
	for (unsigned fd = first; fd <= last && fd < USUAL_LIMIT; fd++)
		close((int)fd);
}

/*
 * Everything the child must not hold on to: the loop's signal handlers, which would wake the parent's loop; devices and
 * sockets; and the standard output, whose reader waits for its end.
 */
static void shed_parent(int pipe_end)
{
	sigset_t none;
	int null;

	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	/* Ctrl-C reaches the child too, but the parent decides what ends. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	null = open("/dev/null", O_RDWR);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			close(fd);
	close_files(STDERR_FILENO + 1, (unsigned)pipe_end - 1);
	close_files((unsigned)pipe_end + 1, ~0U);
}

static void __attribute__((noreturn)) run_child(struct resolver *resolver, int pipe_end, pid_t parent)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	ssize_t written;

	shed_parent(pipe_end);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	resolver->answer.error = getaddrinfo(resolver->text, NULL, &hints, &list);
	/* Its numbers are negative; the errno of a system error is told from them by its sign. */
	if (resolver->answer.error == EAI_SYSTEM)
		resolver->answer.error = errno;
	else if (!resolver->answer.error)
		keep_addresses(resolver, list);
	written = write(pipe_end, &resolver->answer, sizeof(resolver->answer));
	_exit(written != sizeof(resolver->answer));
}

/* Ends the child, if there is one, and returns its wait status. */
static int reap_child(struct resolver *resolver)
{
	int status = 0;

	if (resolver->child <= 0)
		return 0;
	kill(resolver->child, SIGKILL);
	while (waitpid(resolver->child, &status, 0) < 0 && errno == EINTR)
		continue;
	resolver->child = 0;
	return status;
}

void resolver_stop(struct resolver *resolver)
{
	loop_timer_stop(&resolver->deadline);
	if (!WITH_NAMES || resolver->child <= 0)
		return;
	loop_io_stop(&resolver->readable);
	close(resolver->pipe);
	reap_child(resolver);
}

static void finish(struct resolver *resolver, enum outcome outcome)
{
	resolver_stop(resolver);
	if (outcome)
		resolver->answer.count = 0;
	resolver->callback(resolver->owner, outcome, resolver->answer.addresses, resolver->answer.count);
}

static enum outcome explain(const struct resolver *resolver, int32_t error)
{
	const struct log *log = resolver->log;
	const struct failure failure = { .object = resolver->text, .code = error };

	if (error > 0) {
		log_failure(log, &failure, "look-up failed: %s", strerror(error));
		return OUTCOME_INTERNAL;
	}
	switch (error) {
	case EAI_NONAME:
	case EAI_NODATA:
		log_failure(log, &failure, "look-up failed: no address is known for this name");
		return OUTCOME_NO_CONNECTION;
	case EAI_AGAIN:
		log_failure(log, &failure, "look-up failed: temporary failure in name resolution");
		return OUTCOME_NO_CONNECTION;
	case EAI_MEMORY:
		log_failure(log, &failure, "look-up failed: out of memory");
		return OUTCOME_INTERNAL;
	default:
		log_failure(log, &failure, "look-up failed: %s", gai_strerror(error));
		return OUTCOME_NO_CONNECTION;
	}
}

static void answer_is_whole(struct resolver *resolver)
{
	if (resolver->answer.error)
		finish(resolver, explain(resolver, resolver->answer.error));
	else if (resolver->answer.count && resolver->answer.count <= ADDRESS_RESOLVE_MOST)
		finish(resolver, OUTCOME_OK);
	else
		finish(resolver, explain(resolver, EAI_NONAME));
}

static void child_is_gone(struct resolver *resolver)
{
	int status;

	/* It has closed the pipe and exits by itself; its exit status says why. */
	loop_io_stop(&resolver->readable);
	close(resolver->pipe);
	while (waitpid(resolver->child, &status, 0) < 0 && errno == EINTR)
		continue;
	resolver->child = 0;
	if (WIFSIGNALED(status))
		log_failure(resolver->log,
			    &(struct failure){
				    .object = resolver->text, .code_name = "signal", .code = WTERMSIG(status) },
			    "look-up failed: its process was killed: %s", strsignal(WTERMSIG(status)));
	else
		log_failure(resolver->log,
			    &(struct failure){
				    .object = resolver->text, .code_name = "status", .code = WEXITSTATUS(status) },
			    "look-up failed: its process gave no answer");
	finish(resolver, OUTCOME_INTERNAL);
}

static void pipe_readable(void *owner)
{
	struct resolver *resolver = owner;
	char *answer = (char *)&resolver->answer;
	ssize_t length;

	length = read(resolver->pipe, answer + resolver->received, sizeof(resolver->answer) - resolver->received);
	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (length <= 0) {
		child_is_gone(resolver);
		return;
	}
	resolver->received += (size_t)length;
	if (resolver->received == sizeof(resolver->answer))
		answer_is_whole(resolver);
}

static void time_is_up(void *owner)
{
	struct resolver *resolver = owner;

	log_failure(resolver->log, &(struct failure){ .object = resolver->text, .code = ETIMEDOUT },
		    "look-up failed: no answer in time");
	finish(resolver, OUTCOME_NO_CONNECTION);
}

/* Forks with all signals blocked: none may meet the loop's handlers in the child. */
static pid_t fork_quietly(void)
{
	sigset_t all;
	sigset_t kept;
	pid_t child;
	int error;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &kept);
	child = fork();
	error = errno;
	if (child)
		sigprocmask(SIG_SETMASK, &kept, NULL);
	errno = error;
	return child;
}

static enum outcome start_child(struct resolver *resolver, int64_t timeout)
{
	pid_t parent = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK)) {
		log_errno(resolver->log, resolver->text, errno, "creating a pipe");
		return OUTCOME_INTERNAL;
	}
	resolver->child = fork_quietly();
	if (!resolver->child)
		run_child(resolver, ends[1], parent);
	close(ends[1]);
	if (resolver->child < 0) {
		log_errno(resolver->log, resolver->text, errno, "starting a process");
		close(ends[0]);
		return OUTCOME_INTERNAL;
	}
	resolver->pipe = ends[0];
	loop_io_start(resolver->loop, &resolver->readable, resolver->pipe, pipe_readable, resolver);
	if (timeout)
		loop_timer_start(resolver->loop, &resolver->deadline, timeout, time_is_up, resolver);
	return OUTCOME_OK;
}

static void answer_early(void *owner)
{
	struct resolver *resolver = owner;

	finish(resolver, resolver->early);
}

static const char *format_text(enum address_format format)
{
	switch (format) {
	case ADDRESS_FORMAT_ANY:
		break;
	case ADDRESS_FORMAT_IP:
		return "an IPv4 or IPv6 address";
	case ADDRESS_FORMAT_IP4:
		return "an IPv4 address";
	case ADDRESS_FORMAT_IP6:
		return "an IPv6 address";
	case ADDRESS_FORMAT_GID:
		return "a GID";
	}
	return "an address";
}

/* Returns true if text can only be meant as a number that is wrong, and says so. */
static bool refuse_number(const struct resolver *resolver, enum address_format format)
{
	const char *scope = strchr(resolver->text, '%');

	if (format != ADDRESS_FORMAT_ANY)
		log_error(resolver->log, resolver->text, "is not %s", format_text(format));
	else if (scope && strchr(resolver->text, ':'))
		log_error(resolver->log, resolver->text, "is no IPv6 address, or there is no interface %s here",
			  scope + 1);
	else
		return false;
	return true;
}

void resolver_start(struct resolver *resolver, struct loop *loop, const struct log *log, const char *text,
		    enum address_format format, int64_t timeout, resolver_callback *callback, void *owner)
{
	resolver_stop(resolver);
	resolver->loop = loop;
	resolver->log = log;
	resolver->text = text;
	resolver->callback = callback;
	resolver->owner = owner;
	resolver->received = 0;
	memset(&resolver->answer, 0, sizeof(resolver->answer));
	if (address_parse(text, format, &resolver->answer.addresses[0])) {
		resolver->answer.count = 1;
		resolver->early = OUTCOME_OK;
	} else if (refuse_number(resolver, format)) {
		resolver->early = OUTCOME_USAGE;
	} else if (!WITH_NAMES) {
		log_error(log, text, "is not an address, and this program has no look-up of names");
		resolver->early = OUTCOME_USAGE;
	} else {
		resolver->early = start_child(resolver, timeout);
		if (!resolver->early)
			return;
	}
	loop_timer_start(loop, &resolver->deadline, 0, answer_early, resolver);
}
