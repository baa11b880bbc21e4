/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=getaddrinfo -Wl,--wrap=fork */
/* The resolver with a fake getaddrinfo(3), which runs in the child and returns a result by name. */
#include "test/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "core/privileges.h"
#include "core/resolver.h"

int __real_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **list);

static struct addrinfo *prepend(struct addrinfo *next, uint32_t ip4)
{
	struct sockaddr_in *socket_address = calloc(1, sizeof(*socket_address));
	struct addrinfo *info = calloc(1, sizeof(*info));

	socket_address->sin_family = AF_INET;
	socket_address->sin_addr.s_addr = htonl(ip4);
	info->ai_addr = (struct sockaddr *)socket_address;
	info->ai_addrlen = sizeof(*socket_address);
	info->ai_next = next;
	return info;
}

static struct capture capture;

static volatile pid_t *slow_child; /* shared with the children */

static int forks = -1; /* that succeed, in this process and its children; -1: all */

pid_t __real_fork(void);
pid_t __wrap_fork(void);

pid_t __wrap_fork(void)
{
	if (!forks) {
		errno = EAGAIN;
		return -1;
	}
	forks -= forks > 0;
	return __real_fork();
}

/* A bit for each required action of the child. */
static uint32_t child_bits(void)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action;
	int at_death = 0;
	bool kept = false;
	uint32_t bits;

	prctl(PR_GET_PDEATHSIG, &at_death);
	/* All but CAP_IPC_LOCK, in a process that has any. */
	for (unsigned capability = 0; capability <= CAP_LAST_CAP; capability++)
		kept |= capability != CAP_IPC_LOCK && privileges_have(capability);
	bits = (at_death == SIGKILL) | (uint32_t)(fcntl(capture.kept, F_GETFD) < 0) << 1;
	for (size_t i = 0; i < LENGTH(ignored); i++)
		if (!sigaction(ignored[i], NULL, &action) && action.sa_handler == SIG_IGN)
			bits |= 4u << i;
	return bits | (uint32_t)!kept << 5;
}

int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **list)
{
	struct addrinfo *made = NULL;

	if (!strcmp(name, "two.test")) {
		*list = prepend(prepend(prepend(NULL, 0x0a000002), 0x0a000001), 0x0a000001);
		return 0;
	}
	if (!strcmp(name, "many.test")) {
		for (uint32_t i = 0; i < 100; i++)
			made = prepend(made, i);
		*list = made;
		return 0;
	}
	if (!strcmp(name, "child.test")) {
		*list = prepend(NULL, child_bits());
		return 0;
	}
	if (!strcmp(name, "unknown.test"))
		return EAI_NONAME;
	if (!strcmp(name, "again.test"))
		return EAI_AGAIN;
	if (!strcmp(name, "system.test")) {
		errno = EMFILE;
		return EAI_SYSTEM;
	}
	if (!strcmp(name, "slow.test")) {
		if (slow_child)
			*slow_child = getpid();
		pause();
	}
	if (!strcmp(name, "killed.test"))
		raise(SIGKILL);
	if (!strcmp(name, "exits.test"))
		_exit(3);
	return __real_getaddrinfo(name, service, hints, list);
}

static const struct log tool = { .name = "tool" };
static struct resolver resolver;

/* Fails if a child remains. */
static int no_child(void **state)
{
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD ? 0 : -1;
}

static enum outcome look_up(const char *text, enum address_format format)
{
	enum outcome outcome;

	capture_begin(&capture);
	resolver_start(&resolver, &tool, text, format, 0);
	outcome = resolver_read(&resolver);
	capture_end(&capture);
	return outcome;
}

TEST(numeric_address_needs_no_child, NULL, no_child)
{
	resolver_start(&resolver, &tool, "fd00::1", ADDRESS_FORMAT_ANY, 0);
	assert_int_equal(resolver.child, 0);
	assert_int_equal(resolver_read(&resolver), OUTCOME_OK);
	assert_int_equal(resolver.count, 1);
	assert_int_equal(resolver.addresses[0].family, ADDRESS_IP6);
}

TEST(addresses_keep_order_without_duplicates, NULL, no_child)
{
	char text[ADDRESS_TEXT_SIZE];

	assert_int_equal(look_up("two.test", ADDRESS_FORMAT_ANY), OUTCOME_OK);
	assert_int_equal(resolver.count, 2);
	assert_string_equal(address_text(&resolver.addresses[0], text), "10.0.0.1");
	assert_string_equal(address_text(&resolver.addresses[1], text), "10.0.0.2");
}

TEST(too_many_addresses, NULL, no_child)
{
	assert_int_equal(look_up("many.test", ADDRESS_FORMAT_ANY), OUTCOME_OK);
	assert_int_equal(resolver.count, RESOLVER_ADDRESSES_MAX);
	assert_int_equal(resolver.addresses[0].bytes[3], 99);
}

/*
 * Signals from the terminal or to the group are for the parent. The child keeps no descriptor and no privilege, and
 * dies with its parent.
 */
TEST(child_leaves_signals_to_its_parent, NULL, no_child)
{
	assert_int_equal(look_up("child.test", ADDRESS_FORMAT_ANY), OUTCOME_OK);
	assert_int_equal(resolver.addresses[0].bytes[3], 63);
}

TEST(errors_are_reported, NULL, no_child)
{
	static const struct {
		const char *text;
		enum address_format format;
		enum outcome outcome;
		const char *message;
	} cases[] = {
		{ "unknown.test", ADDRESS_FORMAT_ANY, OUTCOME_NO_CONNECTION,
		  "looking up: Name or service not known (-2)" },
		{ "again.test", ADDRESS_FORMAT_ANY, OUTCOME_NO_CONNECTION,
		  "looking up: Temporary failure in name resolution (-3)" },
		{ "system.test", ADDRESS_FORMAT_ANY, OUTCOME_INTERNAL, "looking up: Too many open files (24)" },
		{ "killed.test", ADDRESS_FORMAT_ANY, OUTCOME_INTERNAL,
		  "looking up: the look-up process ended (wait status 9)" },
		{ "exits.test", ADDRESS_FORMAT_ANY, OUTCOME_INTERNAL,
		  "looking up: the look-up process ended (wait status 768)" },
		{ "two.test", ADDRESS_FORMAT_IP4, OUTCOME_USAGE, "is not a numeric address of that format" },
		{ "10.0.0.1", ADDRESS_FORMAT_IP6, OUTCOME_USAGE, "is not a numeric address of that format" },
		{ "two.test", ADDRESS_FORMAT_IP, OUTCOME_USAGE, "is not a numeric address of that format" },
		{ "10.0.0.1", ADDRESS_FORMAT_GID, OUTCOME_USAGE, "is not a numeric address of that format" },
		{ "fe80::1%nosuch", ADDRESS_FORMAT_ANY, OUTCOME_USAGE,
		  "is not an IPv6 address, or interface nosuch does not exist" },
	};

	for (size_t i = 0; i < LENGTH(cases); i++) {
		char expected[160];

		assert_int_equal(look_up(cases[i].text, cases[i].format), cases[i].outcome);
		snprintf(expected, sizeof(expected), "tool: %s: %s\n", cases[i].text, cases[i].message);
		assert_string_equal(capture.text, expected);
		assert_int_equal(resolver.count, 0);
	}
}

TEST(stop_kills_child, NULL, no_child)
{
	resolver_start(&resolver, &tool, "slow.test", ADDRESS_FORMAT_ANY, 0);
	assert_true(resolver.child > 0);
	resolver_stop(&resolver);
	resolver_stop(&resolver);
}

static struct resolver_process process;

static enum outcome look_up_by_process(const char *text)
{
	enum outcome outcome;

	capture_begin(&capture);
	resolver_start_by(&process, &resolver, &tool, text, ADDRESS_FORMAT_ANY, 0);
	assert_true(resolver.child < 0);
	outcome = resolver_read(&resolver);
	capture_end(&capture);
	return outcome;
}

/* What memory the process has registered in between is not the business of these children. */
TEST(another_process_forks, NULL, no_child)
{
	struct resolver slow;

	assert_int_equal(resolver_process_start(&process, &tool), OUTCOME_OK);
	resolver_start_by(&process, &slow, &tool, "slow.test", ADDRESS_FORMAT_ANY, 0);
	assert_int_equal(look_up_by_process("two.test"), OUTCOME_OK);
	assert_int_equal(resolver.count, 2);
	assert_int_equal(look_up_by_process("child.test"), OUTCOME_OK);
	assert_int_equal(resolver.addresses[0].bytes[3], 63);
	assert_int_equal(look_up_by_process("unknown.test"), OUTCOME_NO_CONNECTION);
	assert_string_equal(capture.text, "tool: unknown.test: looking up: Name or service not known (-2)\n");
	assert_int_equal(look_up_by_process("killed.test"), OUTCOME_INTERNAL);
	assert_string_equal(capture.text, "tool: killed.test: looking up: the look-up process ended\n");
	resolver_process_stop(&process);
	/* With it ends what it has forked. */
	capture_begin(&capture);
	assert_int_equal(resolver_read(&slow), OUTCOME_INTERNAL);
	capture_end(&capture);
	resolver_process_stop(&process);
}

/* Look-ups that are given up would otherwise add up. */
TEST(another_process_loses_a_child_that_is_stopped, NULL, no_child)
{
	slow_child = mmap(NULL, sizeof(*slow_child), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(resolver_process_start(&process, &tool), OUTCOME_OK);
	resolver_start_by(&process, &resolver, &tool, "slow.test", ADDRESS_FORMAT_ANY, 0);
	while (!*slow_child)
		poll(NULL, 0, 1);
	resolver_stop(&resolver);
	while (!kill(*slow_child, 0))
		poll(NULL, 0, 1);
	resolver_process_stop(&process);
	slow_child = NULL;
}

TEST(another_process_that_cannot_fork, NULL, no_child)
{
	forks = 1;
	assert_int_equal(resolver_process_start(&process, &tool), OUTCOME_OK);
	forks = -1;
	assert_int_equal(look_up_by_process("two.test"), OUTCOME_INTERNAL);
	assert_string_equal(capture.text, "tool: two.test: looking up: Resource temporarily unavailable (11)\n");
	resolver_process_stop(&process);
}

TEST(a_process_that_has_ended, NULL, no_child)
{
	assert_int_equal(resolver_process_start(&process, &tool), OUTCOME_OK);
	kill(process.child, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)process.child, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	capture_begin(&capture);
	resolver_start_by(&process, &resolver, &tool, "two.test", ADDRESS_FORMAT_ANY, 0);
	assert_int_equal(resolver_read(&resolver), OUTCOME_INTERNAL);
	assert_string_equal(capture_end(&capture), "tool: two.test: starting a process: Broken pipe (32)\n");
	resolver_process_stop(&process);
}
