/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=fopen */
/* The same report in every format. */
#include "test/unit/unit.h"

#include "cmd/reporting/reporting.h"
#include "transport/backend.h"

/* A report into memory, from begin() to assert_written() or assert_found(), and samples for it. */
static struct report storage, *const report = &storage;
static char *written;
static size_t written_length;
static struct histogram histogram;

static void begin(const struct report_format *format)
{
	*report = (struct report){ .command = "test" };
	memset(&histogram, 0, sizeof(histogram));
	report_open(report, open_memstream(&written, &written_length), format);
}

static void assert_written(const char *expected)
{
	report_close(report);
	fclose(report->stream);
	assert_string_equal(written, expected);
	free(written);
}

/* The report, which needs no end, contains that. */
static void assert_found(const char *part)
{
	fclose(report->stream);
	if (!strstr(written, part))
		fail_msg("%s is not in: %s", part, written);
	free(written);
}

static void add_samples(int64_t sample, unsigned count)
{
	while (count--)
		histogram_add(&histogram, sample);
}

/* Values of every kind. */
static void fill(const struct report_format *format, bool header)
{
	begin(format);
	report->header = header;
	report_text(report, "role", "client");
	report_text(report, "device", NULL);
	report_count(report, "clients", 2);
	report_object(report, "pings");
	report_count(report, "sent", UINT64_MAX);
	report_time(report, "wait", 1500);
	report_rate(report, "rate", REPORT_RATE, 3, 2000000000);
	report_rate(report, "speed", REPORT_RATE, 3, 0);
	report_rate(report, "payload", REPORT_BANDWIDTH, 3000, 2000000);
	report_flag(report, "good", true);
	report_text(report, "word", "yes");
	report_object(report, "inside");
	report_count(report, "deep", 1);
	report_end(report);
	report_end(report);
	report_list(report, "senders");
	for (unsigned sender = 1; sender <= 2; sender++) {
		report_object(report, NULL);
		report_text(report, "address", sender == 1 ? "10.0.0.1" : "10.0.0.2");
		report_count(report, "received", 6 + sender);
		report_end(report);
	}
	report_end(report);
	report_list(report, "nobody");
	report_end(report);
	add_samples(1000, 1);
	add_samples(3000, 1);
	report_histogram(report, "round_trip", &histogram);
	memset(&histogram, 0, sizeof(histogram));
	report_histogram(report, "reply", &histogram);
	report_count(report, "late", 0);
}

TEST(as_json)
{
	fill(&report_json, false);
	assert_written("{\"role\":\"client\",\"device\":null,\"clients\":2,\"pings\":{\"sent\":18446744073709551615,"
		       "\"wait_ns\":1500,\"rate_per_second\":1.500,\"speed_per_second\":null,"
		       "\"payload_per_second\":1500000.000,\"good\":true,\"word\":\"yes\",\"inside\":{\"deep\":1}},"
		       "\"senders\":[{\"address\":\"10.0.0.1\",\"received\":7},"
		       "{\"address\":\"10.0.0.2\",\"received\":8}],\"nobody\":[],"
		       "\"round_trip\":{\"count\":2,\"min_ns\":1000,\"avg_ns\":2000,\"max_ns\":3000,\"mdev_ns\":1000,"
		       "\"p50_ns\":1000,\"p90_ns\":2975,\"p99_ns\":2975,\"p99_9_ns\":2975},"
		       "\"reply\":{\"count\":0,\"min_ns\":null,\"avg_ns\":null,\"max_ns\":null,\"mdev_ns\":null,"
		       "\"p50_ns\":null,\"p90_ns\":null,\"p99_ns\":null,\"p99_9_ns\":null},\"late\":0}\n");
}

/* A header and a row with the same columns, also for unknown values, and after a value wider than its column. */
TEST(as_tables)
{
	static const struct {
		const struct report_format *format;
		const char *header, *row;
	} rows[] = {
		{ &report_table,
		  "  clients   sent      wait      rate     speed     payload  good  word   deep       min       avg"
		  "       max       p99       min       avg       max       p99   late\n",
		  "        2 18446744073709551615 1.50 us 1.50/s - 12.0 Mbit/s  yes   yes      1"
		  "   1.00 us   2.00 us   3.00 us         -         -         -         -         -      0\n" },
		{ &report_steps,
		  "  clients   sent      wait      rate     speed     payload  good  word   deep       avg       p50"
		  "       p99       avg       p50       p99   late\n",
		  "        2 18446744073709551615 1.50 us 1.50/s - 12.0 Mbit/s  yes   yes      1"
		  "   2.00 us   1.00 us         -         -         -         -      0\n" },
	};
	for (size_t i = 0; i < LENGTH(rows); i++) {
		fill(rows[i].format, true);
		assert_written(rows[i].header);
		fill(rows[i].format, false);
		assert_written(rows[i].row);
	}
}

/* Columns that do not fit into the terminal are left out, of the header and of rows. */
TEST(columns_that_fit)
{
	static const int columns[] = { 0, 26, 17, 16 };
	static const char *const texts[] = { "   sent       min       avg       max       p99\n", "   sent       min\n",
					     "   sent       min\n", "   sent\n" };
	for (size_t i = 0; i < LENGTH(columns); i++) {
		begin(&report_table);
		report->header = true;
		report->columns = columns[i];
		report_count(report, "sent", 1);
		report_histogram(report, "round_trip", &histogram);
		assert_written(texts[i]);
	}
}

TEST(as_a_block)
{
	fill(&report_block, false);
	assert_written("  clients: 2\n"
		       "  pings: sent 18446744073709551615, wait 1.50 us, rate 1.50/s, payload 12.0 Mbit/s, good "
		       "yes, word yes, inside (deep 1)\n"
		       "  senders:\n"
		       "    address 10.0.0.1, received 7\n"
		       "    address 10.0.0.2, received 8\n"
		       "  round trip: count 2, min 1.00 us, avg 2.00 us, max 3.00 us, mdev 1.00 us, p50 "
		       "1.00 us\n"
		       "  late: 0\n");
}

TEST(as_prometheus)
{
	fill(&report_prometheus, false);
	assert_written("rdmatest_test_clients{role=\"client\"} 2\n"
		       "rdmatest_test_pings_sent{role=\"client\"} 18446744073709551615\n"
		       "rdmatest_test_pings_wait_seconds{role=\"client\"} 0.000001500\n"
		       "rdmatest_test_pings_rate_per_second{role=\"client\"} 1.500\n"
		       "rdmatest_test_pings_payload_per_second{role=\"client\"} 1500000.000\n"
		       "rdmatest_test_pings_good{role=\"client\"} 1\n"
		       "rdmatest_test_pings_inside_deep{role=\"client\"} 1\n"
		       "rdmatest_test_senders_received{role=\"client\",address=\"10.0.0.1\"} 7\n"
		       "rdmatest_test_senders_received{role=\"client\",address=\"10.0.0.2\"} 8\n"
		       "rdmatest_test_round_trip_count{role=\"client\"} 2\n"
		       "rdmatest_test_round_trip_min_seconds{role=\"client\"} 0.000001000\n"
		       "rdmatest_test_round_trip_avg_seconds{role=\"client\"} 0.000002000\n"
		       "rdmatest_test_round_trip_max_seconds{role=\"client\"} 0.000003000\n"
		       "rdmatest_test_round_trip_mdev_seconds{role=\"client\"} 0.000001000\n"
		       "rdmatest_test_round_trip_p50_seconds{role=\"client\"} 0.000001000\n"
		       "rdmatest_test_round_trip_p90_seconds{role=\"client\"} 0.000002975\n"
		       "rdmatest_test_round_trip_p99_seconds{role=\"client\"} 0.000002975\n"
		       "rdmatest_test_round_trip_p99_9_seconds{role=\"client\"} 0.000002975\n"
		       "rdmatest_test_reply_count{role=\"client\"} 0\n"
		       "rdmatest_test_late{role=\"client\"} 0\n");
}

/* A counter for each of some words such as "rxe0/1 rcvd_pkts 9, udp ack_timeout 2", which it keeps. */
static void make_counters(char *words, struct network_counter *counters)
{
	char *rest = words, *word, *device, *end;

	for (const char *last = ""; (word = strsep(&rest, ",")); last = counters++->device) {
		word += *word == ' ';
		end = strrchr(word, ' ');
		*end = 0;
		counters->increase = strtoull(end + 1, NULL, 10);
		counters->device = device = strsep(&word, " ");
		counters->name = word;
		if ((end = strchr(device, '/'))) {
			*end = 0;
			counters->port = (uint8_t)atoi(end + 1);
		}
		/* A port's counters share its device's name. */
		if (!strcmp(counters->device, last))
			counters->device = last;
		counters->next = rest ? counters + 1 : NULL;
	}
}

/* Drivers' counters in words: sums of equivalent ones, a line per port, and none about traffic. */
TEST(network_in_words)
{
	static const struct {
		const char *counters, *text;
	} rows[] = {
		{ "rxe0/1 rcvd_pkts 9, rxe0/1 out_of_seq_request 0, rxe0/1 duplicate_request 3", "" },
		{ "rxe0/1 duplicate_request 3, rxe0/1 rcvd_seq_err 1, rxe0/1 out_of_seq_request 2",
		  "rxe0/1: 2 packets out of sequence, 1 sequence NAK received, 3 duplicate requests: packets were "
		  "lost or late both ways" },
		/*
		 * Each direction alone, with its number of packets. An unanswered packet may be lost in either
		 * direction.
		 */
		{ "udp out_of_sequence 2, udp ack_timeout 3, udp sent_packets 70, udp received_packets 80",
		  "udp: 2 packets out of sequence, 3 ACK timeouts: packets were lost or late on the way here (of 80 "
		  "received)" },
		{ "udp packet_seq_err 2, udp sent_packets 70, udp received_packets 80",
		  "udp: 2 sequence NAKs received: packets were lost or late on the way there (of 70 sent)" },
		{ "udp packet_seq_err 2, udp implied_nak_seq_err 1, udp sent_packets 70, udp received_packets 80",
		  "udp: 2 sequence NAKs received, 1 response missing: packets were lost or late both ways (of 70 sent, "
		  "80 received)" },
		{ "udp duplicate_request 9, udp resumed_reads 3, udp sent_packets 70, udp received_packets 80",
		  "udp: 3 READs resumed, 9 duplicate requests: packets were lost or late on "
		  "the way there (of 70 sent)" },
		/* Known to be on this host. */
		{ "udp ack_timeout 2, udp send_drops 4, udp link_downed 2",
		  "udp: 4 packets dropped by this host's own queue (tc -s qdisc), 2 ACK timeouts: packets were lost or "
		  "late on the way there; 2 link failures: check the cable" },
		{ "udp repeated_requests 5", "udp: 5 connection requests sent again: packets were lost or late" },
		/* Cards' counters only. */
		{ "mlx5_0/1 packet_seq_err 0, mlx5_0/1 duplicate_request 2, bnxt_re0/1 dup_req 1, udp "
		  "duplicate_request 1",
		  "mlx5_0/1: 2 duplicate requests: packets were lost or late on the way there\n"
		  "bnxt_re0/1: 1 duplicate request: packets were lost or late on the way there" },
		{ "udp packet_seq_err 0, udp duplicate_request 9", "" },
		{ "mlx5_0/1 local_ack_timeout_err 2, mlx5_1/1 port_xmit_discards 1, irdma0/1 rx_roce_discards 1, "
		  "irdma0/1 cnpSent 1",
		  "mlx5_0/1: 2 ACK timeouts: packets were lost or late\n"
		  "mlx5_1/1: 1 discarded packet: packets were lost or late on the way there\n"
		  "irdma0/1: 1 discarded packet: packets were lost or late on the way here; 1 CNP sent: congestion" },
		{ "mlx5_0/1 link_downed 1, mlx5_0/1 np_cnp_sent 4, mlx5_0/1 symbol_error 2, mlx5_0/2 out_of_buffer 1",
		  "mlx5_0/1: 4 CNPs sent: congestion; 2 symbol errors, 1 link failure: check the cable\n"
		  "mlx5_0/2: 1 message without a receive: a receiver was not ready" },
		{ "mlx5_0/1 rx_pause_ctrl_phy 5, mlx5_0/1 rx_global_pause 5, mlx5_0/1 tx_prio3_pause 1, mlx5_0/1 "
		  "rx_prio3_pause_duration 70, irdma0/1 rx_priority_0_xoff.nic 1, irdma0/1 rx_priority_x_xoff.nic 1",
		  "mlx5_0/1: 5 pause frames received: the switch or peer slows this host; 1 PFC pause sent: this host "
		  "slows the switch or peer\n"
		  "irdma0/1: 1 PFC pause received: the switch or peer slows this host" },
		{ "udp duplicate_request 9, udp duplicate_response 2",
		  "udp: 2 responses received twice: the network duplicates packets" },
		/* Any number of late or repeated ones, and one with a loss. */
		{ "udp duplicate_request 900, udp late_responses 900, udp ack_timeout 900, udp sent_packets 1000", "" },
		{ "udp packet_seq_err 1, udp late_responses 19, udp ack_timeout 20, udp sent_packets 1000",
		  "udp: 1 sequence NAK received, 20 ACK timeouts, 19 late responses: packets were lost or late on the "
		  "way there (of 1000 sent)" },
		{ "udp ack_timeout 2, udp icrc_error 18446744073709551615, rocep1/1 Nak Sequence Error Implied 1, "
		  "rocep1/1 Nak Sequence 1",
		  "udp: 18446744073709551615 damaged packets, 2 ACK timeouts: packets were lost or late on the way "
		  "here\n"
		  "rocep1/1: 1 response missing: packets were lost or late on the way here" },
	};
	static const struct backend backend = { .name = "fake" };

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct network_counter counters[6] = { 0 };
		struct transport transport = { .backend = &backend, .counters = counters };
		char *words = strdup(rows[i].counters), *note;

		make_counters(words, counters);
		note = reporting_network_note(&transport);
		assert_string_equal(note, rows[i].text);
		free(note);
		free(words);
	}
}

/* Untried remedies, once, and only after a loss. */
TEST(network_hints)
{
	static const struct {
		unsigned untried;
		bool paths;
		const char *note, *text;
	} rows[] = {
		{ UNTRIED_CLASS, true, "mlx5_0/1: 2 ACK timeouts: packets were lost or late",
		  "try a traffic class with PFC or ECN: --dscp; link errors: ethtool -S" },
		{ UNTRIED_CLASS | UNTRIED_PATH, true,
		  "udp: 1 CNP sent: congestion\nudp: 2 : packets were lost or late both ways",
		  "try a traffic class with PFC or ECN: --dscp; rdmatest doctor HOST --paths 8; link errors: ethtool "
		  "-S" },
		{ UNTRIED_PATH, true, "udp: 2 ACK timeouts: packets were lost or late",
		  "try rdmatest doctor HOST --paths 8" },
		{ UNTRIED_PATH, false, "udp: 2 ACK timeouts: packets were lost or late", "" },
		{ 0, true, "udp: 2 ACK timeouts: packets were lost or late", "" },
		{ UNTRIED_CLASS | UNTRIED_PATH, true,
		  "udp: 4 packets dropped by this host's own queue (tc -s qdisc): packets were lost or late on the way "
		  "there",
		  "" },
		{ UNTRIED_CLASS | UNTRIED_PATH, true,
		  "udp: 2 packets out of sequence: packets were lost or late on the way here; 2 link failures: check "
		  "the cable",
		  "" },
		{ UNTRIED_CLASS | UNTRIED_PATH, true, "udp: 2 CNPs sent: congestion", "" },
		{ UNTRIED_CLASS | UNTRIED_PATH, true, NULL, "" },
	};
	char text[REPORTING_HINT_SIZE];

	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_string_equal(reporting_network_hint(&(struct transport){ .untried = rows[i].untried },
							   rows[i].note, rows[i].paths, text),
				    rows[i].text);
}

static const char *schedstat; /* NULL: there is no such file */

FILE *__wrap_fopen(const char *path, const char *mode)
{
	assert_string_equal(path, "/proc/self/schedstat");
	return schedstat ? fmemopen((void *)(uintptr_t)schedstat, strlen(schedstat), "r") : NULL;
}

/* As with a limit of 3 ms in 100 ms, of 80 ms in 100 ms, and with other busy processes. */
TEST(waits_for_a_processor)
{
	static const struct {
		const char *schedstat, *text;
	} rows[] = {
		{ "61845297 1938099829 36\n",
		  "  processor: ran 61.8 ms, waited 1.94 s: others had it, or a CPU limit stopped this process\n" },
		{ "400000000 100000000 1\n",
		  "  processor: ran 400 ms, waited 100 ms: others had it, or a CPU limit stopped this process\n" },
		{ "400000000 99999999 1\n", "" },
		{ "1000000000 240000000 1\n", "" },
		{ "0 0 0\n", "" },
		{ "1", "" },
		{ NULL, "" },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		char *text = NULL;
		size_t size;
		FILE *stream = open_memstream(&text, &size);

		schedstat = rows[i].schedstat;
		reporting_print_processor(stream);
		fclose(stream);
		assert_string_equal(text, rows[i].text);
		free(text);
	}
}

/* A thousand different times. */
TEST(percentiles_by_name)
{
	char expected[128];

	begin(&report_json);
	for (int i = 1; i <= 1000; i++)
		add_samples(INT64_C(1000) * i * i * i, 1);
	report_histogram(report, "time", &histogram);
	snprintf(expected, sizeof(expected), "\"p50_ns\":%lld,\"p90_ns\":%lld,\"p99_ns\":%lld,\"p99_9_ns\":%lld",
		 (long long)histogram_percentile(&histogram, 500), (long long)histogram_percentile(&histogram, 900),
		 (long long)histogram_percentile(&histogram, 990), (long long)histogram_percentile(&histogram, 999));
	assert_found(expected);
}

/* A person gets a percentile if a sample above it is one of as many: p90 of ten, p99 of a hundred. */
TEST(percentiles_of_few)
{
	static const struct {
		unsigned count;
		const char *text;
	} rows[] = {
		{ 1, "  time: count 1, time 7 ns\n" },
		{ 2, " mdev 0 ns, p50 7 ns\n" },
		{ 9, ", p50 7 ns\n" },
		{ 10, ", p50 7 ns, p90 7 ns\n" },
		{ 99, ", p90 7 ns\n" },
		{ 100, ", p90 7 ns, p99 7 ns\n" },
		{ 999, ", p99 7 ns\n" },
		{ 1000, ", p99 7 ns, p99.9 7 ns\n" },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		begin(&report_block);
		add_samples(7, rows[i].count);
		report_histogram(report, "time", &histogram);
		assert_found(rows[i].text);
	}
}

/* A negative time must not be printed as an unsigned number. */
TEST(negative_time_is_zero)
{
	begin(&report_json);
	report_time(report, "wait", -1);
	report_rate(report, "rate", REPORT_RATE, 3, -1);
	assert_written("{\"wait_ns\":0,\"rate_per_second\":null}\n");
}

TEST(empty_report)
{
	begin(&report_json);
	assert_written("{}\n");
	begin(&report_table);
	assert_written("\n");
	begin(&report_block);
	assert_written("");
	begin(&report_prometheus);
	assert_written("");
}

/* Text omits unknown values, and the names of objects and lists that have no others. */
TEST(unknown_values_in_text)
{
	begin(&report_block);
	report_object(report, "path");
	report_text(report, "device", NULL);
	report_end(report);
	report_object(report, "pings");
	report_object(report, "inside");
	report_time_known(report, "time", 0);
	report_end(report);
	report_text(report, "nobody", NULL);
	report_count(report, "sent", 1);
	report_end(report);
	report_list(report, "empty");
	report_object(report, NULL);
	report_end(report);
	report_end(report);
	report_list(report, "targets");
	report_object(report, NULL);
	report_text(report, "device", NULL);
	report_object(report, "path");
	report_text(report, "device", NULL);
	report_end(report);
	report_count(report, "answered", 2);
	report_end(report);
	report_end(report);
	assert_written("  pings: sent 1\n"
		       "  targets:\n"
		       "    answered 2\n");
}

TEST(texts_in_json)
{
	static const struct {
		const char *text;
		const char *json;
	} rows[] = {
		{ "a \"word\"", "a \\\"word\\\"" },
		{ "back\\slash", "back\\\\slash" },
		{ "line\nand\ttab\x01\x1f", "line\\u000aand\\u0009tab\\u0001\\u001f" },
		{ "\x7f", "\x7f" },
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
		{ "\xe2\x82\xac \xf0\x9f\x98\x80", "\xe2\x82\xac \xf0\x9f\x98\x80" },
		{ "\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf", "\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf" },
		/* Not UTF-8: a single byte, a truncated sequence, overlong, a surrogate, beyond the last character. */
		{ "\x80|\xff", "\\ufffd|\\ufffd" },
		{ "\xc3", "\\ufffd" },
		{ "\xe2\x82", "\\ufffd\\ufffd" },
		{ "\xf0\x9f\x98", "\\ufffd\\ufffd\\ufffd" },
		{ "\xc0\xaf", "\\ufffd\\ufffd" },
		{ "\xe0\x80\xaf", "\\ufffd\\ufffd\\ufffd" },
		{ "\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd" },
		{ "\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd" },
		{ "\xc3(", "\\ufffd(" },
	};
	char expected[128];

	for (size_t i = 0; i < LENGTH(rows); i++) {
		begin(&report_json);
		report_text(report, "text", rows[i].text);
		snprintf(expected, sizeof(expected), "{\"text\":\"%s\"}\n", rows[i].json);
		assert_written(expected);
	}
}

/* A label that does not fit is omitted. Special characters are escaped or replaced. */
TEST(labels_in_prometheus)
{
	char longest[300];

	begin(&report_prometheus);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	report_text(report, "transport", "soft");
	report_text(report, "nothing", NULL);
	report_object(report, "path");
	report_text(report, "device", "udp");
	report_end(report);
	report_list(report, "list");
	report_object(report, NULL);
	report_text(report, "transport", "of the entry");
	report_text(report, "port", "1");
	report_text(report, "name", "a \"b\" \\ c\nd\xff");
	report_text(report, "longest", longest);
	report_text(report, "last", "z");
	report_count(report, "count", 1);
	report_end(report);
	report_end(report);
	report_count(report, "count", 2);
	assert_written("rdmatest_test_list_count{transport=\"soft\",port=\"1\",name=\"a \\\"b\\\" \\\\ "
		       "c?d?\",last=\"z\"} 1\nrdmatest_test_count{transport=\"soft\"} 2\n");
}

/* Each letter is escaped and takes two bytes. Texts around the longest that fits. */
TEST(labels_at_size_limit)
{
	char text[400], escaped[800], expected[1000];
	size_t longest = 0, shown = 0;

	for (size_t length = 1; length < sizeof(text); length++) {
		size_t max = sizeof(report->labels);

		memset(text, '"', length);
		text[length] = 0;
		for (size_t i = 0; i < length; i++)
			memcpy(escaped + 2 * i, "\\\"", 3);
		begin(&report_prometheus);
		report_text(report, "t", text);
		report_count(report, "n", 1);
		/* t="..." and the final 0 */
		if (2 * length + 5 <= max)
			snprintf(expected, sizeof(expected), "rdmatest_test_n{t=\"%s\"} 1\n", escaped);
		else
			snprintf(expected, sizeof(expected), "rdmatest_test_n{} 1\n");
		assert_written(expected);
		longest = length;
		shown += 2 * length + 5 <= max;
	}
	assert_true(shown > 0 && shown < longest);
}

static void report_buckets(const struct report_format *format)
{
	begin(format);
	report->buckets = true;
	add_samples(5, 2);
	add_samples(70, 1);
	report_histogram(report, "times", &histogram);
}

/* JSON lists the buckets, a block draws them, and the other formats omit them. */
TEST(buckets)
{
	static const struct report_format *const others[] = { &report_table, &report_prometheus };

	report_buckets(&report_json);
	assert_written("{\"times\":{\"count\":3,\"min_ns\":5,\"avg_ns\":26,\"max_ns\":70,\"mdev_ns\":31,"
		       "\"p50_ns\":5,\"p90_ns\":70,\"p99_ns\":70,\"p99_9_ns\":70,\"buckets\":["
		       "{\"from_ns\":5,\"below_ns\":6,\"count\":2},{\"from_ns\":70,\"below_ns\":72,\"count\":1}]"
		       "}}\n");
	report_buckets(&report_block);
	assert_found("p50 5 ns\n    ");
	report_buckets(&report_block);
	assert_found(" 2 |####");
	for (size_t i = 0; i < LENGTH(others); i++) {
		report_buckets(others[i]);
		fclose(report->stream);
		assert_null(strstr(written, "bucket"));
		assert_null(strchr(written, '#'));
		free(written);
	}
}
