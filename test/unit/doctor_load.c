/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=probe_ping -Wl,--wrap=reporting_processor -Wl,--wrap=route_look_up */
/* What doctor says of pings with and without --load, by what rping found. */
#include "test/unit/doctor_bench.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "core/clock.h"
#include "core/route.h"

enum {
	MIB = 1048576
};

static struct doctor_bench bench;

static struct {
	char root[64];
	uint64_t few; /* answered pings before the load; 0: they fail */
	uint32_t mtu; /* of the path */
	uint32_t route_mtu;
	/* Of the pings with load: */
	unsigned loads; /* how often there were any */
	char options_of_load[128];
	enum outcome outcome;
	struct ping_facts facts;
	int64_t ran, waited; /* of their second */

	int64_t now;
	struct reporting_processor processor;
} test;

int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = clock_timespec(CLOCK_NS_PER_S + test.now);
	return 0;
}

struct reporting_processor __wrap_reporting_processor(void);

struct reporting_processor __wrap_reporting_processor(void)
{
	return test.processor;
}

void __wrap_probe_ping(struct doctor *doctor, const char *host, int64_t timeout, const char *options,
		       struct child_run *ping, struct ping_facts *facts);

void __wrap_probe_ping(struct doctor *doctor, const char *host, int64_t timeout, const char *options,
		       struct child_run *ping, struct ping_facts *facts)
{
	bool load = strstr(options, "-S 1M --duration 1s");

	assert_string_equal(host, "10.0.0.2");
	assert_int_equal(timeout, 3 * CLOCK_NS_PER_S);
	if (!load) {
		facts->answered = test.few;
		facts->mtu = test.mtu;
		log_text(ping->run.verdict, sizeof(ping->run.verdict), "%u pings", (unsigned)test.few);
		ping->run.outcome = test.few ? OUTCOME_OK : OUTCOME_FAILED;
		if (!test.few)
			error_set(&doctor->probe.errors.first, NULL, "none");
		return;
	}
	test.loads++;
	log_text(test.options_of_load, sizeof(test.options_of_load), "%s", options);
	test.now += CLOCK_NS_PER_S;
	test.processor.ran += test.ran;
	test.processor.waited += test.waited;
	*facts = test.facts;
	ping->run.outcome = test.outcome;
	if (test.outcome)
		error_set(&doctor->probe.errors.first, NULL, "gone");
}

bool __wrap_route_look_up(const struct address *peer, const struct address *source, struct route *route);

bool __wrap_route_look_up(const struct address *peer, const struct address *source, struct route *route)
{
	route->mtu = test.route_mtu;
	return true;
}

static int set_up(void **state)
{
	memset(&test, 0, sizeof(test));
	snprintf(test.root, sizeof(test.root), "/tmp/doctor.XXXXXX");
	assert_non_null(mkdtemp(test.root));
	doctor_bench_begin(&bench);
	bench.doctor.fabric = FABRIC_IWARP; /* there is nothing to say about its MTU */
	bench.doctor.host.root = test.root;
	strcpy(bench.doctor.netdev, "d0");
	test.few = 90;
	test.ran = CLOCK_NS_PER_S / 2;
	test.waited = CLOCK_NS_PER_S / 10;
	test.facts = (struct ping_facts){
		.answered = 250,
		.size = MIB,
		.there = CLOCK_NS_PER_S / 2,
		.both = CLOCK_NS_PER_S * 3 / 4,
	};
	return 0;
}

static int tear_down(void **state)
{
	char command[96];

	doctor_bench_end(&bench);
	snprintf(command, sizeof(command), "rm -rf %s", test.root);
	return system(command);
}

/* The interface's speed, Mbit/s. */
static void link_has(const char *speed)
{
	static const char *const folders[] = { "sys", "sys/class", "sys/class/net", "sys/class/net/d0" };
	char path[128];
	FILE *file;

	for (size_t i = 0; i < LENGTH(folders); i++) {
		snprintf(path, sizeof(path), "%s/%s", test.root, folders[i]);
		mkdir(path, 0755);
	}
	snprintf(path, sizeof(path), "%s/sys/class/net/d0/speed", test.root);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "%s\n", speed);
	fclose(file);
}

/* Runs doctor's pings with these options, and compares its lines. */
static void prints(const char *options, const char *lines)
{
	const struct address address = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 2 } };
	char line[128], *words[16], *rest = line;
	int count = 0;

	snprintf(line, sizeof(line), "doctor 10.0.0.2 --timeout 3s%s", options);
	while (rest)
		words[count++] = strsep(&rest, " ");
	assert_int_equal(options_parse(doctor_command.options, &bench.run.log, count, words, &bench.options,
				       &bench.doctor.given),
			 OUTCOME_OK);
	ping_check(&bench.doctor, &address);
	fflush(bench.printed.stream);
	assert_string_equal(bench.output, lines);
}

TEST(pings_say_that_they_were_without_load, set_up, tear_down)
{
	prints("", "OK    ping      90 pings; not under load (--load)\n");
	assert_int_equal(test.loads, 0);
}

#define PINGED	"OK    ping      90 pings\n"
#define RATES	"4.19 Gbit/s there, 8.39 Gbit/s back"
#define BUSY	"; this program ran or waited for a processor "
#define OF_TIME "of the time\n"

#define PASS "packets of up to that size pass both ways, and "

/* A larger one than this host's route allows is not the other end's fault; on InfiniBand it may be a switch's. */
TEST(path_mtu, set_up, tear_down)
{
	static const struct {
		uint32_t own, agreed, route;
		enum fabric fabric;
		const char *line;
	} rows[] = {
		{ 4096, 4096, 9000, FABRIC_ROCE, "OK    mtu       path MTU 4096: " PASS "4 in a row\n" },
		{ 4096, 1024, 9000, FABRIC_ROCE,
		  "WARN  mtu       path MTU 1024 (of this host 4096, so the ends differ): " PASS "16 in a row\n"
		  "                hint: compare both ends: ip link show d0\n" },
		{ 4096, 1024, 1500, FABRIC_ROCE,
		  "OK    mtu       path MTU 1024: " PASS
		  "16 in a row; path MTU 4096 needs MTU 4200 at both ends: on d0 it is 1500\n" },
		{ 4096, 1024, 9000, FABRIC_INFINIBAND,
		  "OK    mtu       path MTU 1024 (of this host 4096): " PASS "16 in a row\n" },
	};
	char lines[1024] = "";

	for (size_t i = 0; i < LENGTH(rows); i++) {
		bench.doctor.mtu = rows[i].own;
		bench.doctor.fabric = rows[i].fabric;
		test.mtu = rows[i].agreed;
		test.route_mtu = rows[i].route;
		strcat(strcat(lines, "OK    ping      90 pings; not under load (--load)\n"), rows[i].line);
		prints("", lines);
	}
}

/* ---- over soft ---- */

TEST(rates_of_each_direction, set_up, tear_down)
{
	prints(" --load", PINGED "OK    load      " RATES BUSY "60% " OF_TIME);
}

TEST(load_takes_the_path_of_the_pings, set_up, tear_down)
{
	prints(" --load --dscp 26 -p 7175", PINGED "OK    load      " RATES BUSY "60% " OF_TIME);
	assert_string_equal(test.options_of_load, "-p 7175 --dscp 26 -S 1M --duration 1s");
}

TEST(link_of_which_a_tenth_is_reached, set_up, tear_down)
{
	link_has("41900");
	prints(" --load", PINGED "OK    load      " RATES ", link 41.9 Gbit/s" BUSY "60% " OF_TIME);
}

TEST(link_of_which_a_tenth_is_not_reached, set_up, tear_down)
{
	link_has("42000");
	prints(" --load", PINGED "WARN  load      " RATES ", link 42.0 Gbit/s" BUSY "60% " OF_TIME);
}

TEST(one_slow_direction_is_enough, set_up, tear_down)
{
	test.facts.both = 200 * CLOCK_NS_PER_S;
	link_has("10000");
	prints(" --load",
	       PINGED "WARN  load      4.19 Gbit/s there, 10.5 Mbit/s back, link 10.0 Gbit/s" BUSY "60% " OF_TIME);
}

/* Whether it runs, or others do. */
TEST(busy_processor_is_not_the_networks_fault, set_up, tear_down)
{
	link_has("400000");
	test.waited = CLOCK_NS_PER_S * 4 / 10;
	prints(" --load", PINGED "OK    load      " RATES ", link 400 Gbit/s" BUSY "90% " OF_TIME);
}

TEST(kernel_without_processor_times, set_up, tear_down)
{
	link_has("400000");
	test.ran = test.waited = 0;
	prints(" --load", PINGED "OK    load      " RATES ", link 400 Gbit/s\n");
}

TEST(unknown_speed_of_a_link, set_up, tear_down)
{
	link_has("-1");
	prints(" --load", PINGED "OK    load      " RATES BUSY "60% " OF_TIME);
}

/* ---- on a device ---- */

TEST(device_works_without_this_program, set_up, tear_down)
{
	bench.doctor.verbs_selected = true;
	link_has("100000");
	test.waited = CLOCK_NS_PER_S;
	prints(" --load", PINGED "WARN  load      " RATES ", link 100 Gbit/s\n");
}

/* ---- not tried, or failed ---- */

/* Of all sizes, it got one. */
TEST(stock_server_gets_no_long_pings, set_up, tear_down)
{
	test.few = 10;
	prints(" --load", "OK    ping      10 pings; a stock server does not take longer ones\n"
			  "WARN  load      not tried: a stock server does not take long pings\n");
	assert_int_equal(test.loads, 0);
}

TEST(server_for_one_client_has_ended, set_up, tear_down)
{
	test.outcome = OUTCOME_NO_CONNECTION;
	prints(" --load", PINGED "WARN  load      not tried: gone\n"
				 "                hint: if the server has ended after one client, start it with -P\n");
}

TEST(server_that_goes_away_is_a_failure, set_up, tear_down)
{
	test.outcome = OUTCOME_FAILED;
	prints(" --load", PINGED "FAIL  load      gone\n");
}

TEST(pings_that_fail_are_not_followed_by_load, set_up, tear_down)
{
	test.few = 0;
	prints(" --load", "FAIL  ping      none\n");
	assert_int_equal(test.loads, 0);
}
