/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks up a name in a child process:
 *
 *   parent                                   child
 *   fork                                     getaddrinfo
 *   read the struct                      <-- write one struct, _exit
 *   resolver_stop(): SIGKILL
 *   waitpid
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
	RESOLVER_PAUSE_MS = 100 /* between two look-ups of an unknown name */
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

static void __attribute__((noreturn)) run_child(const struct resolver *resolver, int pipe_end, pid_t parent)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	int64_t until = clock_now() + resolver->wait;
	struct result result = { 0 };
	struct addrinfo *list;

	/* It never outlives the parent, which decides when it ends: Ctrl-C is for the parent. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (getppid() != parent)
		_exit(1);
	/* It parses the replies of name servers. */
	privileges_drop(resolver->log, 0);
	/* Without a descriptor for /etc/hosts the C library reports an unknown name. */
	privileges_close((unsigned)pipe_end - 1);
	/* In this child, not in another: a fork(2) later may come after memory is registered (resolver.h). */
	do
		result.error = getaddrinfo(resolver->text, NULL, &hints, &list);
	while (is_unknown(result.error) && clock_now() < until && !poll(NULL, 0, RESOLVER_PAUSE_MS));
	/* EAI_* codes are negative and errno values positive. */
	if (result.error == EAI_SYSTEM)
		result.error = errno;
	else if (!result.error)
		store_addresses(&result, list);
	_exit(write(pipe_end, &result, sizeof(result)) != sizeof(result));
}

/* Returns the child's wait status. */
static int reap_child(struct resolver *resolver)
{
	int status = 0;

	close(resolver->pipe);
	while (waitpid(resolver->child, &status, 0) < 0 && errno == EINTR)
		continue;
	resolver->child = 0;
	return status;
}

void resolver_stop(struct resolver *resolver)
{
	if (!WITH_NAMES || resolver->child <= 0)
		return;
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
	int status;

	if (!WITH_NAMES || resolver->child <= 0)
		return resolver->outcome;
	do
		length = read(resolver->pipe, &result, sizeof(result));
	while (length < 0 && errno == EINTR);
	/* No kill(2): the child has written, or closed the pipe, and exits. */
	status = reap_child(resolver);
	if (length != sizeof(result)) {
		log_error(resolver->log, resolver->text, "looking up: the look-up process ended (wait status %d)",
			  status);
		return OUTCOME_INTERNAL;
	}
	if (result.error || !result.count || result.count > RESOLVER_ADDRESSES_MAX)
		return report_error(resolver, result.error ? result.error : EAI_NONAME);
	resolver->count = result.count;
	memcpy(resolver->addresses, result.addresses, sizeof(result.addresses));
	return OUTCOME_OK;
}

static enum outcome start_child(struct resolver *resolver)
{
	pid_t parent = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC)) {
		log_errno(resolver->log, resolver->text, errno, "creating a pipe");
		return OUTCOME_INTERNAL;
	}
	resolver->child = fork();
	if (!resolver->child)
		run_child(resolver, ends[1], parent);
	close(ends[1]);
	if (resolver->child < 0) {
		privileges_no_process(resolver->log, resolver->text);
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

void resolver_start(struct resolver *resolver, const struct log *log, const char *text, enum address_format format,
		    int64_t wait)
{
	*resolver = (struct resolver){ .log = log, .text = text, .wait = wait };
	if (address_parse(text, format, &resolver->addresses[0]) || !WITH_NAMES)
		resolver->count = 1;
	else if (reject_text(resolver, format))
		resolver->outcome = OUTCOME_USAGE;
	else
		resolver->outcome = start_child(resolver);
}
