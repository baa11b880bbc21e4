/* SPDX-License-Identifier: BSD-2-Clause */
/* mckey's receiver, with the datagrams that our sender, a stock, a broken or a hostile one could send to the group. */
/* link: -Wl,--wrap=endpoint_post -Wl,--wrap=transport_name */
#include "unit.h"

#include <sys/resource.h>

#include "cmd/mckey/mckey.h"
#include "cmd/table.h"
#include "test/unit/fake_clock.h"
#include "test/unit/figures.h"
#include "test/unit/pattern.h"

enum {
	SIZE = 100,
	MTU = 1024,
	MEMBERS_MAX = 2,
	IDLE_MS = 20,
};

struct bench {
	struct environment environment;
	struct mckey_options options;
	struct mckey_run run;
	struct member members[MEMBERS_MAX];
	struct transport transport;
	struct domain domain;
	struct endpoint endpoints[MEMBERS_MAX];
	struct region regions[MEMBERS_MAX];
	uint8_t memory[MEMBERS_MAX][DATAGRAM_HEADER_SIZE + MTU];
	size_t reposted;
	struct capture capture;
};

enum outcome __wrap_endpoint_post(struct endpoint *endpoint, const struct work *work, size_t count);
const char *__wrap_transport_name(const struct transport *transport);

enum outcome __wrap_endpoint_post(struct endpoint *endpoint, const struct work *work, size_t count)
{
	struct bench *bench = endpoint->context;

	assert_int_equal(work->kind, WORK_RECEIVE);
	bench->reposted += count;
	return OUTCOME_OK;
}

const char *__wrap_transport_name(const struct transport *transport)
{
	(void)transport;
	return "fake";
}

/* A run whose members have joined. */
static struct bench *bench_create(size_t members, uint64_t count)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	struct mckey_run *run = &bench->run;

	assert_non_null(bench);
	bench->environment.command = &mckey_command;
	bench->environment.loop = loop_create();
	assert_non_null(bench->environment.loop);
	bench->environment.log.name = "mckey";
	bench->environment.output = stdout;
	bench->options.idle_timeout = IDLE_MS * CLOCK_NS_PER_MS;
	bench->domain.device = "test0";
	bench->environment.transport = &bench->transport;
	run->environment = &bench->environment;
	run->options = &bench->options;
	run->log = &bench->environment.log;
	run->group_text = "239.1.1.1";
	run->members = bench->members;
	run->member_count = run->joined = run->sources.windows = members;
	run->count = count;
	run->size = SIZE;
	payload_pattern_write(run->pattern, DATAGRAM_SIZE_MAX);
	for (size_t i = 0; i < members; i++) {
		bench->endpoints[i].domain = &bench->domain;
		bench->endpoints[i].state = ENDPOINT_JOINED;
		bench->endpoints[i].context = bench;
		bench->regions[i].memory = bench->memory[i];
		bench->members[i] = (struct member){
			.run = run,
			.endpoint = &bench->endpoints[i],
			.region = &bench->regions[i],
			.state = MEMBER_JOINED,
			.ever_joined = true,
			.slots = 1,
			.slot_size = sizeof(bench->memory[i]),
		};
	}
	capture_begin(&bench->capture);
	receiver_start(run);
	return bench;
}

/* Runs until the receiver ends; returns its standard error. */
static const char *bench_end(struct bench *bench, enum outcome outcome)
{
	loop_run(bench->environment.loop);
	capture_end(&bench->capture);
	assert_int_equal(bench->environment.outcome, outcome);
	return bench->capture.text;
}

static void bench_destroy(struct bench *bench)
{
	source_table_clear(&bench->run.sources);
	loop_destroy(bench->environment.loop);
	free(bench);
}

struct datagram {
	size_t member;
	uint32_t queue;
	uint8_t host; /* 10.0.0.HOST */
	uint32_t length;
	uint32_t sequence;
	uint32_t total; /* 0: without a mark */
	size_t damage;	/* the byte of the datagram that is changed, 0 for none */
	bool foreign;	/* without the immediate that every mckey sends */
};

static void receive(struct bench *bench, const struct datagram *datagram)
{
	struct member *member = &bench->members[datagram->member];
	uint8_t *memory = bench->memory[datagram->member];
	uint32_t length = datagram->length ? datagram->length : SIZE;
	struct datagram_mark mark = { .sequence = datagram->sequence, .total = datagram->total };
	size_t before = bench->reposted;

	memset(memory, 0, sizeof(bench->memory[0]));
	memory[20] = 0x45;
	memory[32] = 10;
	memory[35] = datagram->host;
	if (datagram->total)
		datagram_write(memory + DATAGRAM_HEADER_SIZE, length, pattern(), datagram->queue, &mark);
	if (datagram->damage)
		memory[DATAGRAM_HEADER_SIZE + datagram->damage] ^= 1;
	receiver_completion(member, &(struct completion){
					    .kind = WORK_RECEIVE,
					    .length = length,
					    .has_immediate = !datagram->foreign,
					    .immediate = datagram->queue,
					    .source_qpn = datagram->queue,
				    });
	/* Whatever it was, its receive is used up and must be replaced. */
	assert_int_equal(bench->reposted, before + 1);
}

static void receive_all(struct bench *bench, size_t member, uint32_t queue, uint8_t host, uint32_t from, uint32_t to,
			uint32_t total)
{
	for (uint32_t i = from; i < to; i++)
		receive(bench, &(struct datagram){
				       .member = member, .queue = queue, .host = host, .sequence = i, .total = total });
}

static void complete_reception_succeeds(void **state)
{
	struct bench *bench = bench_create(1, 10);

	(void)state;
	receive_all(bench, 0, 17, 1, 0, 10, 10);
	assert_string_equal(bench_end(bench, OUTCOME_OK), "");
	bench_destroy(bench);
}

static void every_member_expects_every_sender(void **state)
{
	struct bench *bench = bench_create(2, 3);

	(void)state;
	receive_all(bench, 0, 17, 1, 0, 3, 3);
	receive_all(bench, 1, 17, 1, 0, 3, 3);
	/* The same queue number on another host is another sender, and one of our queues misses it. */
	receive_all(bench, 0, 17, 2, 0, 3, 3);
	assert_non_null(strstr(bench_end(bench, OUTCOME_FAILED), "QP 17 at 10.0.0.2: 3 of 6 datagrams did not arrive"));
	assert_null(strstr(bench->capture.text, "10.0.0.1"));
	bench_destroy(bench);
}

static void loss_ends_by_idle_timeout(void **state)
{
	struct bench *bench = bench_create(1, 10);

	(void)state;
	receive_all(bench, 0, 17, 1, 0, 9, 10);
	assert_non_null(strstr(bench_end(bench, OUTCOME_FAILED),
			       "1 of 10 datagrams did not arrive: no datagram for 0.02 s (--idle-timeout)"));
	bench_destroy(bench);
}

/* A sender that sends more than -C must not hide that another has stopped. */
static void datagrams_beyond_count_do_not_restart_idle_timeout(void **state)
{
	struct bench *bench = bench_create(1, 4);
	int64_t before;

	(void)state;
	receive_all(bench, 0, 17, 1, 0, 3, 4);
	receive_all(bench, 0, 18, 1, 0, 4, 1000000);
	for (int passed = 0; passed < 2 * IDLE_MS; passed++) {
		fake_clock_pass(CLOCK_NS_PER_MS);
		receive(bench, &(struct datagram){
				       .queue = 18, .host = 1, .sequence = 4 + (uint32_t)passed, .total = 1000000 });
	}
	before = clock_now();
	bench_end(bench, OUTCOME_FAILED);
	assert_true(clock_now() - before < IDLE_MS * CLOCK_NS_PER_MS / 2);
	bench_destroy(bench);
}

static void repeated_and_out_of_order_are_no_failure(void **state)
{
	static const uint32_t sequences[] = { 2, 0, 1, 1, 3, 2 };
	struct bench *bench = bench_create(1, 4);

	(void)state;
	for (size_t i = 0; i < LENGTH(sequences); i++)
		receive(bench, &(struct datagram){ .queue = 17, .host = 1, .sequence = sequences[i], .total = 4 });
	assert_string_equal(bench_end(bench, OUTCOME_OK), "");
	assert_int_equal(bench->run.sources.entries[0]->windows[0].repeated, 2);
	assert_int_equal(bench->run.sources.entries[0]->windows[0].out_of_order, 2);
	bench_destroy(bench);
}

static void damage_is_logged_and_fails(void **state)
{
	struct bench *bench = bench_create(1, 3);

	(void)state;
	receive_all(bench, 0, 17, 1, 0, 1, 3);
	receive(bench, &(struct datagram){ .queue = 17, .host = 1, .sequence = 1, .total = 3, .damage = 50 });
	receive(bench, &(struct datagram){ .queue = 17, .host = 1, .sequence = 2, .total = 3, .damage = 9 });
	bench_end(bench, OUTCOME_FAILED);
	assert_non_null(strstr(bench->capture.text, "a datagram is damaged: byte 50 is 0x"));
	assert_non_null(strstr(bench->capture.text, "2 damaged datagrams"));
	assert_null(strstr(bench->capture.text, "did not arrive"));
	bench_destroy(bench);
}

static void wrong_length_is_logged_once_and_fails(void **state)
{
	static const uint32_t lengths[] = { 99, 101, MTU };
	struct bench *bench = bench_create(1, 3);
	const char *text;

	(void)state;
	for (uint32_t i = 0; i < LENGTH(lengths); i++)
		receive(bench,
			&(struct datagram){ .queue = 17, .host = 1, .sequence = i, .total = 3, .length = lengths[i] });
	text = strstr(bench_end(bench, OUTCOME_FAILED), "sends datagrams of 99 bytes: expected 100 (-S)");
	assert_non_null(text);
	assert_null(strstr(text + 1, "sends datagrams of"));
	assert_non_null(strstr(text, "3 datagrams of a wrong length"));
	bench_destroy(bench);
}

static void foreign_datagrams_are_ignored(void **state)
{
	struct bench *bench = bench_create(1, 2);

	(void)state;
	receive(bench, &(struct datagram){ .queue = 99, .host = 9, .foreign = true });
	/* A length no buffer of ours has. */
	receive(bench, &(struct datagram){ .queue = 99, .host = 9, .length = MTU, .foreign = true });
	receiver_completion(&bench->members[0], &(struct completion){
							.kind = WORK_RECEIVE,
							.length = UINT32_MAX - 39,
							.has_immediate = true,
							.immediate = 99,
							.source_qpn = 99,
						});
	assert_int_equal(bench->run.sources.count, 0);
	receive_all(bench, 0, 17, 1, 0, 2, 2);
	assert_string_equal(bench_end(bench, OUTCOME_OK), "");
	assert_int_equal(bench->run.figures.foreign, 3);
	bench_destroy(bench);
}

static void unfollowed_senders_fail(void **state)
{
	struct bench *bench = bench_create(1, 1);

	(void)state;
	for (uint32_t queue = 1; queue <= SOURCES_MAX + 5; queue++)
		receive_all(bench, 0, queue, 1, 0, 1, 1);
	assert_non_null(strstr(bench_end(bench, OUTCOME_FAILED),
			       "5 datagrams of further senders not checked: 1024 are followed"));
	bench_destroy(bench);
}

/* A sender that is unfollowed for lack of memory is an internal error. */
static void receiver_without_memory_fails(void **state)
{
	struct bench *bench = bench_create(1, 2);

	(void)state;
	receive_all(bench, 0, 17, 1, 0, 2, 2);
	bench->run.sources.unfollowed = 3;
	bench->run.sources.no_memory = true;
	assert_non_null(strstr(bench_end(bench, OUTCOME_INTERNAL),
			       "3 datagrams of further senders not checked: 1 are followed: out of memory"));
	bench_destroy(bench);
}

/* The QPs of a stock sender send one after another: the receiver waits 200 ms for the second. */
static void grace_time_for_a_second_sender(void **state)
{
	struct bench *bench = bench_create(1, 2);
	int64_t before;

	(void)state;
	bench->options.idle_timeout = 60 * CLOCK_NS_PER_S;
	receive_all(bench, 0, 17, 1, 0, 2, 2);
	before = clock_now();
	bench_end(bench, OUTCOME_OK);
	assert_in_range((clock_now() - before) / CLOCK_NS_PER_MS, 200, 210);
	bench_destroy(bench);
}

/* Four times -C, from 512 to 2048, limited by half of RLIMIT_MEMLOCK and by the device. */
static void number_of_receives(void **state)
{
	static const struct {
		size_t members;
		uint64_t count;
		uint32_t device;
		rlim_t locked; /* KiB */
		uint32_t depth;
	} rows[] = {
		{ 1, 10, 5000, 6144, 512 },    { 1, 200, 5000, 6144, 800 },	   { 1, 100000, 5000, 6144, 2048 },
		{ 1, 100000, 100, 6144, 100 }, { 1, 100000, 5000, 1024, 492 },	   { 2, 100000, 5000, 1024, 246 },
		{ 2, 100000, 5000, 8, 16 },    { 1, INT32_MAX, 5000, 6144, 2048 }, { 1, 0, 5000, 6144, 1 },
	};
	struct rlimit kept;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &kept), 0);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct bench *bench = bench_create(rows[i].members, rows[i].count);
		struct rlimit few = { .rlim_cur = rows[i].locked << 10, .rlim_max = kept.rlim_max };

		bench->domain.max_qp_wr = rows[i].device;
		bench->endpoints[0].max_datagram = MTU;
		/* An ordinary user may have no more than little: then those rows are left out. */
		if (!setrlimit(RLIMIT_MEMLOCK, &few))
			assert_int_equal(receiver_depth(&bench->members[0]), rows[i].depth);
		assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &kept), 0);
		capture_end(&bench->capture);
		bench_destroy(bench);
	}
}

/* A late sender sends at once what was due in the last ten milliseconds. */
static void late_sender_catches_up_within_limits(void **state)
{
	const int64_t second = CLOCK_NS_PER_S, millisecond = CLOCK_NS_PER_MS;
	struct mckey_options options = { .rate = 1000 };
	struct mckey_run run = { .options = &options, .traffic_began = second };
	struct member member = { .run = &run, .due = second };

	(void)state;
	assert_int_equal(sender_pace_allows(&member, 100, second), 1);
	assert_int_equal(sender_pace_allows(&member, 100, second), 0);
	assert_int_equal(sender_pace_allows(&member, 100, second + 3 * millisecond), 3);
	assert_int_equal(sender_pace_allows(&member, 100, 2 * second), 11);
	assert_int_equal(sender_pace_allows(&member, 100, 2 * second), 0);
	assert_int_equal(sender_pace_allows(&member, 2, 3 * second), 2);
	options.rate = 100;
	assert_int_equal(sender_pace_allows(&member, 100, 5 * second), 2);
	options.rate = 0;
	assert_int_equal(sender_pace_allows(&member, 7, 5 * second), 7);
}

static void stock_sender_is_counted(void **state)
{
	struct bench *bench = bench_create(1, 10);

	(void)state;
	for (int i = 0; i < 10; i++)
		receive(bench, &(struct datagram){ .queue = 17, .host = 1 });
	assert_string_equal(bench_end(bench, OUTCOME_OK), "");
	bench_destroy(bench);
}

static void smaller_count_of_sender_is_logged_at_once(void **state)
{
	struct bench *bench = bench_create(1, 10);

	(void)state;
	bench->options.idle_timeout = 60 * CLOCK_NS_PER_S;
	receive_all(bench, 0, 17, 1, 0, 9, 9);
	assert_string_equal(bench_end(bench, OUTCOME_FAILED),
			    "mckey: QP 17 at 10.0.0.1: sends only 9 datagrams: expected 10 (-C)\n");
	bench_destroy(bench);
}

/* Only the sender with another -C is logged; the run ends as usual. */
static void larger_count_of_sender_is_logged(void **state)
{
	struct bench *bench = bench_create(1, 10);

	(void)state;
	bench->options.idle_timeout = 60 * CLOCK_NS_PER_S;
	receive_all(bench, 0, 17, 1, 0, 10, 10);
	receive_all(bench, 0, 18, 1, 0, 12, 20);
	assert_string_equal(bench_end(bench, OUTCOME_FAILED),
			    "mckey: QP 18 at 10.0.0.1: sends 20 datagrams: expected 10 (-C)\n");
	bench_destroy(bench);
}

/* Losses in the report: during the run only gaps in the sequence. */
static void figures_are_those_of_the_windows(void **state)
{
	struct bench *bench = bench_create(1, 10);

	(void)state;
	receive_all(bench, 0, 17, 1, 0, 3, 10);
	figures_copy(mckey_figures_update(&bench->run));
	receive_all(bench, 0, 17, 1, 5, 7, 10);
	receive_all(bench, 0, 17, 1, 2, 3, 10);
	receive_all(bench, 0, 17, 1, 4, 5, 10);
	for (int i = 0; i < 3; i++) {
		static const char *const figures[] = {
			"\"received\":6,\"lost\":1,\"duplicated\":1,\"out_of_order\":1,\"damaged\":0,",
			"\"received\":3,\"lost\":1,\"duplicated\":1,\"out_of_order\":1,\"damaged\":0,",
			"\"received\":6,\"lost\":4,\"duplicated\":1,\"out_of_order\":1,\"damaged\":0,",
		};

		bench->run.ended = i == 2;
		assert_reports_since(mckey_figures_update(&bench->run), i == 1 ? &bench->run.before : NULL, clock_now(),
				     figures[i]);
	}
	bench_end(bench, OUTCOME_FAILED);
	bench_destroy(bench);
}

/* The rate in the report after traffic of this time. */
static bool reports(struct bench *bench, int64_t lasted, const char *figures)
{
	bool found;
	char *text;

	bench->run.traffic_began = bench->run.traffic_ended - lasted;
	text = report_text_since(mckey_figures_update(&bench->run), NULL, 0);
	found = strstr(text, figures);
	free(text);
	return found;
}

/* Datagrams of less than a millisecond may have been queued: their time is the receiver's own. Bytes are those
 * received. */
static void rate_needs_time_and_datagrams(void **state)
{
	struct bench *bench = bench_create(1, 5);

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		receive(bench, &(struct datagram){ .queue = 17, .host = 1, .sequence = i, .total = 5, .length = 200 });
	bench->run.ended = true;
	bench->run.phase = MCKEY_ENDING;
	assert_true(reports(bench, CLOCK_NS_PER_MS / 2, "\"rate_per_second\":null,\"bytes_per_second\":null"));
	assert_true(reports(bench, CLOCK_NS_PER_S, "\"rate_per_second\":4.000,\"bytes_per_second\":800.000"));
	bench->run.phase = MCKEY_RECEIVING;
	bench_end(bench, OUTCOME_FAILED);
	bench_destroy(bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(complete_reception_succeeds),
		cmocka_unit_test(every_member_expects_every_sender),
		cmocka_unit_test(loss_ends_by_idle_timeout),
		cmocka_unit_test(datagrams_beyond_count_do_not_restart_idle_timeout),
		cmocka_unit_test(repeated_and_out_of_order_are_no_failure),
		cmocka_unit_test(damage_is_logged_and_fails),
		cmocka_unit_test(wrong_length_is_logged_once_and_fails),
		cmocka_unit_test(foreign_datagrams_are_ignored),
		cmocka_unit_test(unfollowed_senders_fail),
		cmocka_unit_test(receiver_without_memory_fails),
		cmocka_unit_test(grace_time_for_a_second_sender),
		cmocka_unit_test(number_of_receives),
		cmocka_unit_test(late_sender_catches_up_within_limits),
		cmocka_unit_test(stock_sender_is_counted),
		cmocka_unit_test(smaller_count_of_sender_is_logged_at_once),
		cmocka_unit_test(larger_count_of_sender_is_logged),
		cmocka_unit_test(figures_are_those_of_the_windows),
		cmocka_unit_test(rate_needs_time_and_datagrams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
