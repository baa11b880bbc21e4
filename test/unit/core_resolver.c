/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=getaddrinfo */
/* The resolver with a fake getaddrinfo(3), which runs in the child and returns a result by name. */
#include "test/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "core/resolver.h"

enum {
	PARENT_DESCRIPTOR = 77 /* a descriptor of the parent that the child must not keep */
};

int __real_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **list);
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **list);

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

static bool child_dropped_inherited(void)
{
	struct sigaction interrupt;
	struct sigaction user;

	sigaction(SIGINT, NULL, &interrupt);
	sigaction(SIGUSR1, NULL, &user);
	return fcntl(PARENT_DESCRIPTOR, F_GETFD) < 0 && interrupt.sa_handler == SIG_IGN && user.sa_handler == SIG_DFL;
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
	if (!strcmp(name, "inherited.test")) {
		*list = prepend(NULL, child_dropped_inherited());
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
	if (!strcmp(name, "slow.test"))
		pause();
	if (!strcmp(name, "killed.test"))
		raise(SIGKILL);
	if (!strcmp(name, "exits.test"))
		_exit(3);
	return __real_getaddrinfo(name, service, hints, list);
}

struct lookup {
	struct loop *loop;
	struct log log;
	struct resolver resolver;
	struct loop_timer timer;
	unsigned results;
	enum outcome outcome;
	size_t count;
	struct address addresses[RESOLVER_ADDRESSES_MAX];
	struct capture capture;
};

static int create(void **state)
{
	struct lookup *lookup = calloc(1, sizeof(*lookup));

	lookup->loop = loop_create();
	lookup->log.name = "tool";
	*state = lookup;
	return lookup->loop ? 0 : -1;
}

/* Fails if a child is left. */
static int destroy(void **state)
{
	struct lookup *lookup = *state;

	resolver_stop(&lookup->resolver);
	loop_destroy(lookup->loop);
	free(lookup);
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD ? 0 : -1;
}

static void result_received(void *context, enum outcome outcome, const struct address *addresses, size_t count)
{
	struct lookup *lookup = context;

	lookup->results++;
	lookup->outcome = outcome;
	lookup->count = count;
	memcpy(lookup->addresses, addresses, count * sizeof(*addresses));
	loop_stop(lookup->loop);
}

static enum outcome look_up(struct lookup *lookup, const char *text, enum address_format format, int64_t timeout)
{
	lookup->results = 0;
	capture_begin(&lookup->capture);
	resolver_start(&lookup->resolver, lookup->loop, &lookup->log, text, format, timeout, result_received, lookup);
	if (!lookup->results)
		loop_run(lookup->loop);
	capture_end(&lookup->capture);
	assert_int_equal(lookup->results, 1);
	return lookup->outcome;
}

static void numeric_address_is_returned_from_the_loop(void **state)
{
	struct lookup *lookup = *state;

	resolver_start(&lookup->resolver, lookup->loop, &lookup->log, "fd00::1", ADDRESS_FORMAT_ANY, 0, result_received,
		       lookup);
	assert_int_equal(lookup->results, 0);
	loop_run(lookup->loop);
	assert_int_equal(lookup->results, 1);
	assert_int_equal(lookup->outcome, OUTCOME_OK);
	assert_int_equal(lookup->count, 1);
	assert_int_equal(lookup->addresses[0].family, ADDRESS_IP6);
}

static void localhost_resolves(void **state)
{
	struct lookup *lookup = *state;

	assert_int_equal(look_up(lookup, "localhost", ADDRESS_FORMAT_ANY, 10 * CLOCK_NS_PER_S), OUTCOME_OK);
	assert_true(lookup->count >= 1);
	assert_string_equal(lookup->capture.text, "");
}

static void addresses_keep_order_without_duplicates(void **state)
{
	struct lookup *lookup = *state;
	char text[ADDRESS_TEXT_SIZE];

	assert_int_equal(look_up(lookup, "two.test", ADDRESS_FORMAT_ANY, CLOCK_NS_PER_S), OUTCOME_OK);
	assert_int_equal(lookup->count, 2);
	assert_string_equal(address_text(&lookup->addresses[0], text), "10.0.0.1");
	assert_string_equal(address_text(&lookup->addresses[1], text), "10.0.0.2");
}

static void too_many_addresses(void **state)
{
	struct lookup *lookup = *state;

	assert_int_equal(look_up(lookup, "many.test", ADDRESS_FORMAT_ANY, CLOCK_NS_PER_S), OUTCOME_OK);
	assert_int_equal(lookup->count, RESOLVER_ADDRESSES_MAX);
	assert_int_equal(lookup->addresses[0].bytes[3], 99);
}

static void child_drops_descriptors_and_handlers(void **state)
{
	struct lookup *lookup = *state;

	dup2(STDERR_FILENO, PARENT_DESCRIPTOR);
	assert_int_equal(look_up(lookup, "inherited.test", ADDRESS_FORMAT_ANY, CLOCK_NS_PER_S), OUTCOME_OK);
	assert_int_equal(lookup->addresses[0].bytes[3], 1);
	close(PARENT_DESCRIPTOR);
}

static void errors_are_reported(void **state)
{
	static const struct {
		const char *text;
		enum address_format format;
		enum outcome outcome;
		const char *message;
	} cases[] = {
		{ "unknown.test", ADDRESS_FORMAT_ANY, OUTCOME_NO_CONNECTION,
		  "tool: unknown.test: look-up failed: no address is known for this name (-2)\n" },
		{ "again.test", ADDRESS_FORMAT_ANY, OUTCOME_NO_CONNECTION,
		  "tool: again.test: look-up failed: temporary failure in name resolution (-3)\n" },
		{ "system.test", ADDRESS_FORMAT_ANY, OUTCOME_INTERNAL,
		  "tool: system.test: look-up failed: Too many open files (24)\n" },
		{ "killed.test", ADDRESS_FORMAT_ANY, OUTCOME_INTERNAL,
		  "tool: killed.test: look-up failed: the look-up process was killed: Killed (signal 9)\n" },
		{ "exits.test", ADDRESS_FORMAT_ANY, OUTCOME_INTERNAL,
		  "tool: exits.test: look-up failed: the look-up process returned no result (status 3)\n" },
		{ "two.test", ADDRESS_FORMAT_IP4, OUTCOME_USAGE, "tool: two.test: is not an IPv4 address\n" },
		{ "10.0.0.1", ADDRESS_FORMAT_IP6, OUTCOME_USAGE, "tool: 10.0.0.1: is not an IPv6 address\n" },
		{ "two.test", ADDRESS_FORMAT_IP, OUTCOME_USAGE, "tool: two.test: is not an IPv4 or IPv6 address\n" },
		{ "10.0.0.1", ADDRESS_FORMAT_GID, OUTCOME_USAGE, "tool: 10.0.0.1: is not a GID\n" },
		{ "fe80::1%nosuch", ADDRESS_FORMAT_ANY, OUTCOME_USAGE,
		  "tool: fe80::1%nosuch: is not an IPv6 address, or interface nosuch does not exist\n" },
	};
	struct lookup *lookup = *state;

	for (size_t i = 0; i < LENGTH(cases); i++) {
		assert_int_equal(look_up(lookup, cases[i].text, cases[i].format, 10 * CLOCK_NS_PER_S),
				 cases[i].outcome);
		assert_string_equal(lookup->capture.text, cases[i].message);
		assert_int_equal(lookup->count, 0);
	}
}

static void timeout_kills_child(void **state)
{
	struct lookup *lookup = *state;
	int64_t start = clock_now();

	assert_int_equal(look_up(lookup, "slow.test", ADDRESS_FORMAT_ANY, 30 * CLOCK_NS_PER_MS), OUTCOME_NO_CONNECTION);
	assert_true(clock_now() - start >= 30 * CLOCK_NS_PER_MS);
	assert_string_equal(lookup->capture.text, "tool: slow.test: looking up: timed out after 0.03 s\n");
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void stop_loop(void *context)
{
	struct lookup *lookup = context;

	resolver_stop(&lookup->resolver);
	loop_stop(lookup->loop);
}

static void stop_kills_child_without_callback(void **state)
{
	struct lookup *lookup = *state;

	capture_begin(&lookup->capture);
	resolver_start(&lookup->resolver, lookup->loop, &lookup->log, "slow.test", ADDRESS_FORMAT_ANY, 0,
		       result_received, lookup);
	loop_timer_start(lookup->loop, &lookup->timer, 20 * CLOCK_NS_PER_MS, stop_loop, lookup);
	loop_run(lookup->loop);
	assert_string_equal(capture_end(&lookup->capture), "");
	assert_int_equal(lookup->results, 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	resolver_stop(&lookup->resolver);
}

static void restart_lookup(void *context, enum outcome outcome, const struct address *addresses, size_t count)
{
	struct lookup *lookup = context;

	(void)addresses;
	(void)count;
	assert_int_equal(outcome, OUTCOME_OK);
	resolver_start(&lookup->resolver, lookup->loop, &lookup->log, "localhost", ADDRESS_FORMAT_ANY,
		       10 * CLOCK_NS_PER_S, result_received, lookup);
}

static void callback_may_restart_resolver(void **state)
{
	struct lookup *lookup = *state;

	resolver_start(&lookup->resolver, lookup->loop, &lookup->log, "two.test", ADDRESS_FORMAT_ANY, 0, restart_lookup,
		       lookup);
	loop_run(lookup->loop);
	assert_int_equal(lookup->results, 1);
	assert_int_equal(lookup->outcome, OUTCOME_OK);
}

static void restart_drops_first_lookup(void **state)
{
	struct lookup *lookup = *state;

	resolver_start(&lookup->resolver, lookup->loop, &lookup->log, "slow.test", ADDRESS_FORMAT_ANY, 0,
		       result_received, lookup);
	assert_int_equal(look_up(lookup, "10.0.0.1", ADDRESS_FORMAT_ANY, 0), OUTCOME_OK);
}

#define RESOLVER_TEST(name) cmocka_unit_test_setup_teardown(name, create, destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RESOLVER_TEST(numeric_address_is_returned_from_the_loop),
		RESOLVER_TEST(localhost_resolves),
		RESOLVER_TEST(addresses_keep_order_without_duplicates),
		RESOLVER_TEST(too_many_addresses),
		RESOLVER_TEST(child_drops_descriptors_and_handlers),
		RESOLVER_TEST(errors_are_reported),
		RESOLVER_TEST(timeout_kills_child),
		RESOLVER_TEST(stop_kills_child_without_callback),
		RESOLVER_TEST(callback_may_restart_resolver),
		RESOLVER_TEST(restart_drops_first_lookup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
