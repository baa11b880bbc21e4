/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=ping_send -Wl,--wrap=trace_routers -Wl,--wrap=route_look_up -Wl,--wrap=path_find_source */
/* Which paths doctor calls bad, by what rping found in each attempt. */
#include "test/unit/doctor_bench.h"

#include "core/route.h"

enum {
	PATHS = 4
};

static struct doctor_bench bench;

static struct {
	const char *
		attempts[3]; /* a letter for each path: good, slow, lossy, died, failed; Good and Slow with few pings */
	unsigned count;	     /* of attempts */
	char limits[64];     /* on the time of each */
	bool explained;	     /* each has an error, which has its number */
	bool interface;	     /* the path options name one */
} test;

bool __wrap_route_look_up(const struct address *peer, const struct address *source, struct route *route);

bool __wrap_route_look_up(const struct address *peer, const struct address *source, struct route *route)
{
	*route = (struct route){ .source = address_is_any(source) ? *peer : *source, .gateway = *peer };
	return true;
}

enum outcome __wrap_path_find_source(const struct endpoint *endpoint, enum address_family family,
				     struct address *source);

enum outcome __wrap_path_find_source(const struct endpoint *endpoint, enum address_family family,
				     struct address *source)
{
	if (test.interface && !source->family)
		*source = (struct address){ family, .bytes = { 10, 0, 1, 1 } };
	return OUTCOME_OK;
}

/* Each path has its own router. */
void __wrap_trace_routers(struct doctor *doctor, const struct address *peer, size_t size, struct trace *traces,
			  size_t count);

void __wrap_trace_routers(struct doctor *doctor, const struct address *peer, size_t size, struct trace *traces,
			  size_t count)
{
	(void)doctor;
	(void)size;
	for (size_t i = 0; i < count; i++) {
		traces[i].asked = true;
		traces[i].hops = 1;
		traces[i].routers[0] = *peer;
		traces[i].routers[0].bytes[3] = (uint8_t)(traces[i].port - UDP_PORT_FIRST + 1);
	}
}

void __wrap_ping_send(struct doctor *doctor, const char *host, const char *options, struct child_run *ping,
		      struct ping_facts *facts);

void __wrap_ping_send(struct doctor *doctor, const char *host, const char *options, struct child_run *ping,
		      struct ping_facts *facts)
{
	const char *letters = test.attempts[test.count++];

	(void)host;
	(void)ping;
	assert_non_null(letters);
	error_clear(&doctor->probe.errors.first);
	if (test.explained)
		error_set(&doctor->probe.errors.first, NULL, "error of attempt %u", test.count);
	log_add(test.limits, sizeof(test.limits), " ", "%.*s", (int)strcspn(strstr(options, "--duration ") + 11, " "),
		strstr(options, "--duration ") + 11);
	for (size_t i = 0; i < facts->path_count; i++)
		facts->paths[i] = (struct path_facts){
			.port = (uint16_t)(UDP_PORT_FIRST + i),
			.worse = strchr("sS", letters[i])   ? "slow"
				 : letters[i] == 'l'	    ? "lost packets"
				 : strchr("df", letters[i]) ? "failed"
							    : NULL,
			.good = strchr("gG", letters[i]),
			.answered = letters[i] == 'f'	       ? 0
				    : strchr("GS", letters[i]) ? 80
							       : 800,
			.failed = strchr("df", letters[i]),
			.lost_out = letters[i] == 'l',
		};
}

static int set_up(void **state)
{
	memset(&test, 0, sizeof(test));
	doctor_bench_begin(&bench);
	bench.options.paths = PATHS;
	return 0;
}

static int tear_down(void **state)
{
	doctor_bench_end(&bench);
	return 0;
}

/* After these attempts, and no more, these paths are bad. */
static void finds(const char *attempts[3], const char *bad)
{
	const struct address address = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 9 } };
	char found[512] = "";

	memcpy(test.attempts, attempts, sizeof(test.attempts));
	paths_trace(&bench.doctor, NULL, &address);
	paths_check(&bench.doctor);
	fflush(bench.printed.stream);
	for (char *line = strtok(bench.output, "\n"); line; line = strtok(NULL, "\n"))
		if (strstr(line, "  path "))
			log_add(found, sizeof(found), "; ", "%.*s", (int)strcspn(line, ":"), line);
	assert_string_equal(found, bad);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(i < test.count, attempts[i] != NULL);
}

TEST(good_paths_are_pinged_once, set_up, tear_down)
{
	finds((const char *[3]){ "gggg" }, "");
}

TEST(a_path_that_was_slow_once_is_good, set_up, tear_down)
{
	finds((const char *[3]){ "gsgg", "gggg" }, "");
}

TEST(a_path_that_is_slow_twice_is_slow, set_up, tear_down)
{
	finds((const char *[3]){ "gsgg", "gsgg" }, "WARN  path      1 of 4 slow (UDP port 49153)");
}

TEST(a_second_attempt_is_as_long_as_the_first, set_up, tear_down)
{
	finds((const char *[3]){ "GSGG", "GSGG", "GSGG" }, "WARN  path      1 of 4 slow (UDP port 49153)");
	assert_string_equal(test.limits, "3s 10s 10s");
}

TEST(a_path_that_died_once_is_good, set_up, tear_down)
{
	finds((const char *[3]){ "gdgg", "gggg" }, "");
}

TEST(a_path_that_died_and_then_was_slow_has_failed, set_up, tear_down)
{
	finds((const char *[3]){ "gdgg", "gsgg" }, "FAIL  path      1 of 4 failed (UDP port 49153)");
}

TEST(what_was_certain_keeps_its_verdict, set_up, tear_down)
{
	finds((const char *[3]){ "lsfg", "ggls" }, "WARN  path      1 of 4 lost packets (UDP port 49152); "
						   "FAIL  path      1 of 4 failed (UDP port 49154)");
}

/* Also if a later attempt has another one, or none. */
TEST(paths_that_all_fail_have_the_error_of_the_attempt_that_counts, set_up, tear_down)
{
	test.explained = true;
	finds((const char *[3]){ "ffdf", "ffdf" }, "FAIL  path      none of 4 passes");
	assert_string_equal(bench.doctor.findings.first->error.cause, "none of 4 passes: error of attempt 1");
}

/* The pings leave from there, too. */
TEST(routers_are_asked_from_the_named_interface, set_up, tear_down)
{
	const struct address peer = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 9 } };

	test.interface = true;
	paths_trace(&bench.doctor, NULL, &peer);
	assert_int_equal(bench.doctor.local.bytes[2], 1);
	bench.doctor.source.addresses[0] = (struct address){ ADDRESS_IP4, .bytes = { 10, 0, 2, 1 } };
	paths_trace(&bench.doctor, NULL, &peer);
	assert_int_equal(bench.doctor.local.bytes[2], 2);
}
