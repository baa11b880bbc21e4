/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks up a name in a child process:
 *
 *   parent                                   child
 *   fork, watch the pipe, start the timer    getaddrinfo
 *   read the struct                      <-- write one struct, _exit
 *   timeout, or resolver_stop(): SIGKILL
 *   waitpid
 */
#include "core/resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"

/* Between two look-ups of an unknown name. */
#define RESOLVER_PAUSE (100 * CLOCK_NS_PER_MS)

_Static_assert(sizeof(((struct resolver *)0)->result) <= 512,
	       "POSIX guarantees atomic writes to a pipe up to 512 bytes");

static bool resolver_has_address(const struct resolver *resolver, const struct address *address)
{
	for (uint32_t i = 0; i < resolver->result.count; i++)
		if (address_same_host(&resolver->result.addresses[i], address))
			return true;
	return false;
}

static void store_addresses(struct resolver *resolver, const struct addrinfo *list)
{
	for (; list && resolver->result.count < RESOLVER_ADDRESSES_MAX; list = list->ai_next) {
		struct address address;

		if (address_from_socket(list->ai_addr, &address) && !resolver_has_address(resolver, &address))
			resolver->result.addresses[resolver->result.count++] = address;
	}
}

/* Uses the system call because some C libraries have no close_range(); kernels before 5.9 have no close_range(2). */
static void close_files(unsigned first, unsigned last)
{
	enum {
		DESCRIPTORS_MAX = 1024 /* the usual RLIMIT_NOFILE */
	};

	if (first > last || !syscall(SYS_close_range, first, last, 0))
		return;
	for (unsigned fd = first; fd <= last && fd < DESCRIPTORS_MAX; fd++)
		close((int)fd);
}

/*
 * Drops what the child must not keep: the loop's signal handlers, which would wake the parent's loop; devices and
 * sockets; and standard output, whose reader waits for end of file.
 */
static void drop_inherited(int pipe_end)
{
	sigset_t none;
	int null;

	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	/* The terminal sends Ctrl-C to the child, too, but the parent decides when the child ends. */
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

/* A name server that cannot be reached is no different: its answer is that of the next moment. */
static bool is_unknown(int error)
{
	return error == EAI_NONAME || error == EAI_NODATA || error == EAI_AGAIN;
}

static void __attribute__((noreturn)) run_child(struct resolver *resolver, int pipe_end, pid_t parent)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	const struct timespec pause = clock_timespec(RESOLVER_PAUSE);
	int64_t until = clock_now() + resolver->wait;
	struct addrinfo *list;
	ssize_t written;

	drop_inherited(pipe_end);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	/* In this child, not in another: a fork(2) later may come after memory is registered (resolver.h). */
	do
		resolver->result.error = getaddrinfo(resolver->text, NULL, &hints, &list);
	while (is_unknown(resolver->result.error) && clock_now() < until && !nanosleep(&pause, NULL));
	/* EAI_* codes are negative and errno values positive. */
	if (resolver->result.error == EAI_SYSTEM)
		resolver->result.error = errno;
	else if (!resolver->result.error)
		store_addresses(resolver, list);
	written = write(pipe_end, &resolver->result, sizeof(resolver->result));
	_exit(written != sizeof(resolver->result));
}

/* Returns the child's wait status. */
static int reap_child(struct resolver *resolver)
{
	int status = 0;

	while (waitpid(resolver->child, &status, 0) < 0 && errno == EINTR)
		continue;
	resolver->child = 0;
	return status;
}

void resolver_stop(struct resolver *resolver)
{
	loop_timer_stop(&resolver->timer);
	if (!WITH_NAMES || resolver->child <= 0)
		return;
	loop_io_stop(&resolver->readable);
	close(resolver->pipe);
	kill(resolver->child, SIGKILL);
	reap_child(resolver);
}

static void resolver_finish(struct resolver *resolver, enum outcome outcome)
{
	resolver_stop(resolver);
	if (outcome)
		resolver->result.count = 0;
	resolver->callback(resolver->context, outcome, resolver->result.addresses, resolver->result.count);
}

static enum outcome report_error_code(const struct resolver *resolver, int32_t error)
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

static void result_complete(struct resolver *resolver)
{
	if (resolver->result.error)
		resolver_finish(resolver, report_error_code(resolver, resolver->result.error));
	else if (resolver->result.count && resolver->result.count <= RESOLVER_ADDRESSES_MAX)
		resolver_finish(resolver, OUTCOME_OK);
	else
		resolver_finish(resolver, report_error_code(resolver, EAI_NONAME));
}

static void child_exited(struct resolver *resolver)
{
	int status;

	loop_io_stop(&resolver->readable);
	close(resolver->pipe);
	/* No kill(2): the child has closed the pipe and exits. */
	status = reap_child(resolver);
	if (WIFSIGNALED(status))
		log_failure(
			resolver->log,
			&(struct failure){ .object = resolver->text, .code_name = "signal", .code = WTERMSIG(status) },
			"look-up failed: the look-up process was killed: %s", strsignal(WTERMSIG(status)));
	else
		log_failure(resolver->log,
			    &(struct failure){
				    .object = resolver->text, .code_name = "status", .code = WEXITSTATUS(status) },
			    "look-up failed: the look-up process returned no result");
	resolver_finish(resolver, OUTCOME_INTERNAL);
}

static void pipe_readable(void *context)
{
	struct resolver *resolver = context;
	char *result = (char *)&resolver->result;
	ssize_t length;

	length = read(resolver->pipe, result + resolver->received, sizeof(resolver->result) - resolver->received);
	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (length <= 0) {
		child_exited(resolver);
		return;
	}
	resolver->received += (size_t)length;
	if (resolver->received == sizeof(resolver->result))
		result_complete(resolver);
}

static void resolver_timeout(void *context)
{
	struct resolver *resolver = context;
	char text[LOOP_PHASE_TEXT_SIZE];

	log_cause(resolver->log, resolver->text, "looking up", 0, "%s",
		  loop_phase_text(resolver->loop, resolver->wait + resolver->timeout, text));
	resolver_finish(resolver, OUTCOME_NO_CONNECTION);
}

/* Blocks all signals during fork(2), so that the child runs no handler of the loop. drop_inherited() unblocks them. */
static pid_t fork_with_signals_blocked(void)
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

static enum outcome start_child(struct resolver *resolver)
{
	pid_t parent = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK)) {
		log_errno(resolver->log, resolver->text, errno, "creating a pipe");
		return OUTCOME_INTERNAL;
	}
	resolver->child = fork_with_signals_blocked();
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
	if (resolver->timeout)
		loop_phase_start(resolver->loop, &resolver->timer, resolver->wait + resolver->timeout, resolver_timeout,
				 resolver);
	return OUTCOME_OK;
}

static void finish_immediate(void *context)
{
	struct resolver *resolver = context;

	resolver_finish(resolver, resolver->immediate);
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

/* Reports an error and returns true if text cannot be a name: its format is numeric, or it has colon and scope. */
static bool reject_text(const struct resolver *resolver, enum address_format format)
{
	const char *scope = strchr(resolver->text, '%');

	if (format != ADDRESS_FORMAT_ANY)
		log_error(resolver->log, resolver->text, "is not %s", format_text(format));
	else if (scope && strchr(resolver->text, ':'))
		log_error(resolver->log, resolver->text, "is not an IPv6 address, or interface %s does not exist",
			  scope + 1);
	else
		return false;
	return true;
}

void resolver_start(struct resolver *resolver, struct loop *loop, const struct log *log, const char *text,
		    enum address_format format, int64_t timeout, resolver_callback *callback, void *context)
{
	resolver_stop(resolver);
	resolver->loop = loop;
	resolver->log = log;
	resolver->text = text;
	resolver->timeout = timeout;
	resolver->callback = callback;
	resolver->context = context;
	resolver->received = 0;
	memset(&resolver->result, 0, sizeof(resolver->result));
	if (address_parse(text, format, &resolver->result.addresses[0])) {
		resolver->result.count = 1;
		resolver->immediate = OUTCOME_OK;
	} else if (reject_text(resolver, format)) {
		resolver->immediate = OUTCOME_USAGE;
	} else if (!WITH_NAMES) {
		log_error(log, text, "is not an address, and this build cannot look up names");
		resolver->immediate = OUTCOME_USAGE;
	} else {
		resolver->immediate = start_child(resolver);
		if (!resolver->immediate)
			return;
	}
	loop_timer_start(loop, &resolver->timer, 0, finish_immediate, resolver);
}
