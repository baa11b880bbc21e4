/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=getaddrinfo */
/* The resolver with a getaddrinfo(3) of our own: its stand-in runs in the child, and answers by the name. */
#include "test/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/wait.h>

#include "core/address.h"
#include "core/clock.h"

enum {
	PARENTS_FILE = 77 /* a descriptor of the parent that the child must not keep */
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

static bool child_has_shed_its_parent(void)
{
	struct sigaction interrupt;
	struct sigaction user;

	sigaction(SIGINT, NULL, &interrupt);
	sigaction(SIGUSR1, NULL, &user);
	return fcntl(PARENTS_FILE, F_GETFD) < 0 && interrupt.sa_handler == SIG_IGN && user.sa_handler == SIG_DFL;
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
	if (!strcmp(name, "shed.test")) {
		*list = prepend(NULL, child_has_shed_its_parent());
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

struct question {
	struct loop *loop;
	struct log log;
	struct resolver resolver;
	struct loop_timer timer;
	unsigned answers;
	enum outcome outcome;
	size_t count;
	struct address addresses[ADDRESS_RESOLVE_MOST];
	struct capture capture;
};

static int create(void **state)
{
	struct question *question = calloc(1, sizeof(*question));

	question->loop = loop_create();
	question->log.name = "tool";
	*state = question;
	return question->loop ? 0 : -1;
}

/* No test may leave a child behind. */
static int destroy(void **state)
{
	struct question *question = *state;

	resolver_stop(&question->resolver);
	loop_destroy(question->loop);
	free(question);
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD ? 0 : -1;
}

static void answered(void *owner, enum outcome outcome, const struct address *addresses, size_t count)
{
	struct question *question = owner;

	question->answers++;
	question->outcome = outcome;
	question->count = count;
	memcpy(question->addresses, addresses, count * sizeof(*addresses));
	loop_stop(question->loop);
}

static enum outcome ask(struct question *question, const char *text, enum address_format format, int64_t timeout)
{
	question->answers = 0;
	capture_begin(&question->capture);
	resolver_start(&question->resolver, question->loop, &question->log, text, format, timeout, answered, question);
	if (!question->answers)
		loop_run(question->loop);
	capture_end(&question->capture);
	assert_int_equal(question->answers, 1);
	return question->outcome;
}

static void numeric_address_comes_later_too(void **state)
{
	struct question *question = *state;

	resolver_start(&question->resolver, question->loop, &question->log, "fd00::1", ADDRESS_FORMAT_ANY, 0, answered,
		       question);
	assert_int_equal(question->answers, 0);
	loop_run(question->loop);
	assert_int_equal(question->answers, 1);
	assert_int_equal(question->outcome, OUTCOME_OK);
	assert_int_equal(question->count, 1);
	assert_int_equal(question->addresses[0].family, ADDRESS_IP6);
}

static void name_of_this_host(void **state)
{
	struct question *question = *state;

	assert_int_equal(ask(question, "localhost", ADDRESS_FORMAT_ANY, 10 * CLOCK_NS_PER_S), OUTCOME_OK);
	assert_true(question->count >= 1);
	assert_string_equal(question->capture.text, "");
}

static void addresses_in_order_and_once(void **state)
{
	struct question *question = *state;
	char text[ADDRESS_TEXT_SIZE];

	assert_int_equal(ask(question, "two.test", ADDRESS_FORMAT_ANY, CLOCK_NS_PER_S), OUTCOME_OK);
	assert_int_equal(question->count, 2);
	assert_string_equal(address_text(&question->addresses[0], text), "10.0.0.1");
	assert_string_equal(address_text(&question->addresses[1], text), "10.0.0.2");
}

static void too_many_addresses(void **state)
{
	struct question *question = *state;

	assert_int_equal(ask(question, "many.test", ADDRESS_FORMAT_ANY, CLOCK_NS_PER_S), OUTCOME_OK);
	assert_int_equal(question->count, ADDRESS_RESOLVE_MOST);
	assert_int_equal(question->addresses[0].bytes[3], 99);
}

static void child_keeps_nothing_of_its_parent(void **state)
{
	struct question *question = *state;

	dup2(STDERR_FILENO, PARENTS_FILE);
	assert_int_equal(ask(question, "shed.test", ADDRESS_FORMAT_ANY, CLOCK_NS_PER_S), OUTCOME_OK);
	assert_int_equal(question->addresses[0].bytes[3], 1);
	close(PARENTS_FILE);
}

static void failures_in_words(void **state)
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
	struct question *question = *state;

	for (size_t i = 0; i < LENGTH(cases); i++) {
		assert_int_equal(ask(question, cases[i].text, cases[i].format, 10 * CLOCK_NS_PER_S), cases[i].outcome);
		assert_string_equal(question->capture.text, cases[i].message);
		assert_int_equal(question->count, 0);
	}
}

static void time_limit_ends_the_child(void **state)
{
	struct question *question = *state;
	int64_t start = clock_now();

	assert_int_equal(ask(question, "slow.test", ADDRESS_FORMAT_ANY, 30 * CLOCK_NS_PER_MS), OUTCOME_NO_CONNECTION);
	assert_true(clock_now() - start >= 30 * CLOCK_NS_PER_MS);
	assert_string_equal(question->capture.text, "tool: slow.test: look-up failed: no answer in time (110)\n");
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void stop_loop(void *owner)
{
	struct question *question = owner;

	resolver_stop(&question->resolver);
	loop_stop(question->loop);
}

static void stop_ends_the_child_silently(void **state)
{
	struct question *question = *state;

	capture_begin(&question->capture);
	resolver_start(&question->resolver, question->loop, &question->log, "slow.test", ADDRESS_FORMAT_ANY, 0,
		       answered, question);
	loop_timer_start(question->loop, &question->timer, 20 * CLOCK_NS_PER_MS, stop_loop, question);
	loop_run(question->loop);
	assert_string_equal(capture_end(&question->capture), "");
	assert_int_equal(question->answers, 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	resolver_stop(&question->resolver);
}

static void ask_again(void *owner, enum outcome outcome, const struct address *addresses, size_t count)
{
	struct question *question = owner;

	(void)addresses;
	(void)count;
	assert_int_equal(outcome, OUTCOME_OK);
	resolver_start(&question->resolver, question->loop, &question->log, "localhost", ADDRESS_FORMAT_ANY,
		       10 * CLOCK_NS_PER_S, answered, question);
}

static void callback_may_start_anew(void **state)
{
	struct question *question = *state;

	resolver_start(&question->resolver, question->loop, &question->log, "two.test", ADDRESS_FORMAT_ANY, 0,
		       ask_again, question);
	loop_run(question->loop);
	assert_int_equal(question->answers, 1);
	assert_int_equal(question->outcome, OUTCOME_OK);
}

static void restart_drops_the_first_question(void **state)
{
	struct question *question = *state;

	resolver_start(&question->resolver, question->loop, &question->log, "slow.test", ADDRESS_FORMAT_ANY, 0,
		       answered, question);
	assert_int_equal(ask(question, "10.0.0.1", ADDRESS_FORMAT_ANY, 0), OUTCOME_OK);
}

#define RESOLVER_TEST(name) cmocka_unit_test_setup_teardown(name, create, destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RESOLVER_TEST(numeric_address_comes_later_too),	  RESOLVER_TEST(name_of_this_host),
		RESOLVER_TEST(addresses_in_order_and_once),	  RESOLVER_TEST(too_many_addresses),
		RESOLVER_TEST(child_keeps_nothing_of_its_parent), RESOLVER_TEST(failures_in_words),
		RESOLVER_TEST(time_limit_ends_the_child),	  RESOLVER_TEST(stop_ends_the_child_silently),
		RESOLVER_TEST(callback_may_start_anew),		  RESOLVER_TEST(restart_drops_the_first_question),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
