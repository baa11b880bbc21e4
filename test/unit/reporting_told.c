/* SPDX-License-Identifier: BSD-2-Clause */
/* The errors of a run: kept, bounded, and taken apart for programs. */
#include "test/unit/unit.h"

#include "cmd/reporting/told.h"

static void assert_report(const struct told *told, const char *expected)
{
	struct report report = { 0 };
	size_t length;
	char *text;

	report_open(&report, open_memstream(&text, &length), &report_json);
	told_report(&report, told);
	report_close(&report);
	fclose(report.stream);
	assert_string_equal(text, expected);
	free(text);
}

static void messages_are_taken_apart(void **state)
{
	static const struct {
		const char *object;
		const char *text;
		const char *parts;
	} rows[] = {
		/* The whole of it. */
		{ "10.0.0.1:9", "connecting: nobody listens there (RDMA_CM_EVENT_REJECTED, status 8)",
		  "\"object\":\"10.0.0.1:9\",\"phase\":\"connecting\",\"cause\":\"nobody listens there\","
		  "\"code\":\"RDMA_CM_EVENT_REJECTED, status 8\"" },
		{ NULL, "out of memory", "\"object\":null,\"phase\":null,\"cause\":\"out of memory\",\"code\":null" },
		{ NULL, "bind failed: in use (98)",
		  "\"object\":null,\"phase\":null,\"cause\":\"bind failed: in use\",\"code\":\"98\"" },
		{ NULL, "resolving the address: no route (101)",
		  "\"object\":null,\"phase\":\"resolving the address\",\"cause\":\"no route\",\"code\":\"101\"" },
		{ NULL, "established: the peer is gone",
		  "\"object\":null,\"phase\":\"established\",\"cause\":\"the peer is gone\",\"code\":null" },
		{ NULL, "joined: the event is not ours",
		  "\"object\":null,\"phase\":\"joined\",\"cause\":\"the event is not ours\",\"code\":null" },
		/* Neither is any word before a colon a phase, nor is what is in brackets always a code. */
		{ NULL, "a table: full", "\"object\":null,\"phase\":null,\"cause\":\"a table: full\",\"code\":null" },
		{ NULL, "no device (the folder is empty)",
		  "\"object\":null,\"phase\":null,\"cause\":\"no device (the folder is empty)\",\"code\":null" },
		/* Brackets within the code are its own; in the middle they belong to the cause. */
		{ NULL, "accepting: b (c (d) 5)",
		  "\"object\":null,\"phase\":\"accepting\",\"cause\":\"b\",\"code\":\"c (d) 5\"" },
		{ NULL, "joining: (again) refused",
		  "\"object\":null,\"phase\":\"joining\",\"cause\":\"(again) refused\","
		  "\"code\":null" },
		{ "--pidfile", "/run/rping: No such file or directory (2)",
		  "\"object\":\"--pidfile\",\"phase\":null,\"cause\":\"/run/rping: No such file or "
		  "directory\",\"code\":\"2\"" },
		{ NULL, "f(x)", "\"object\":null,\"phase\":null,\"cause\":\"f(x)\",\"code\":null" },
		{ NULL, "a) b)", "\"object\":null,\"phase\":null,\"cause\":\"a) b)\",\"code\":null" },
		{ NULL, "(5)", "\"object\":null,\"phase\":null,\"cause\":\"(5)\",\"code\":null" },
		/* Nor is the number of a ping. */
		{ NULL, "ping 35: waiting for it: timed out (5)",
		  "\"object\":null,\"phase\":\"waiting for it\",\"cause\":\"timed out\",\"code\":\"5\"" },
		{ NULL, "ping 3", "\"object\":null,\"phase\":null,\"cause\":\"ping 3\",\"code\":null" },
		/* A colon inside the code begins no phase. */
		{ NULL, "refused (status: 3)",
		  "\"object\":null,\"phase\":null,\"cause\":\"refused\",\"code\":\"status: 3\"" },
		{ NULL, "sending: two: three",
		  "\"object\":null,\"phase\":\"sending\",\"cause\":\"two: three\",\"code\":null" },
		{ NULL, "", "\"object\":null,\"phase\":null,\"cause\":\"\",\"code\":null" },
		{ NULL, "fe80::1 is no group",
		  "\"object\":null,\"phase\":null,\"cause\":\"fe80::1 is no group\",\"code\":null" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct told told = { 0 };
		char expected[1024];

		told_error(&told, "test", rows[i].object, rows[i].text);
		snprintf(expected, sizeof(expected),
			 "{\"error_count\":1,\"errors\":[{%s,\"text\":\"%s\",\"hint\":null,\"part\":null}]}\n",
			 rows[i].parts, rows[i].text);
		assert_report(&told, expected);
		told_free(&told);
	}
}

static void a_hint_stays_with_its_error_and_a_part_with_its_own(void **state)
{
	struct told told = { 0 };

	(void)state;
	told_hint(&told, "before any error");
	told_error(&told, "test", NULL, "one");
	told_hint(&told, "of one");
	told_hint(&told, "a second one");
	told_error(&told, "rdmatest selftest: ucmatose client", NULL, "two");
	told_error(&told, "rdmatest selftest: mckey", NULL, "three");
	assert_report(&told, "{\"error_count\":3,\"errors\":["
			     "{\"object\":null,\"phase\":null,\"cause\":\"one\",\"code\":null,"
			     "\"text\":\"one\",\"hint\":\"of one\",\"part\":null},"
			     "{\"object\":null,\"phase\":null,\"cause\":\"two\",\"code\":null,"
			     "\"text\":\"two\",\"hint\":null,\"part\":\"ucmatose\"},"
			     "{\"object\":null,\"phase\":null,\"cause\":\"three\",\"code\":null,"
			     "\"text\":\"three\",\"hint\":null,\"part\":\"mckey\"}]}\n");
	told_free(&told);
	assert_report(&told, "{\"error_count\":0,\"errors\":[]}\n");
}

/* A run of days with an error a second keeps the first ones, and counts all. */
static void memory_is_bounded(void **state)
{
	struct told told = { 0 };
	unsigned kept = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		told_error(&told, "test", "host", i ? "later" : "first");
		told_hint(&told, i ? "later" : "of the first");
	}
	assert_int_equal(told.count, 1000);
	for (const struct told_error *error = told.first; error; error = error->next)
		kept++;
	assert_int_equal(kept, told.kept);
	assert_int_equal(kept, 64);
	assert_string_equal(told.first->text, "first");
	assert_string_equal(told.first->hint, "of the first");
	/* Not the hint of an error that was not kept. */
	assert_string_equal(told.last->hint, "later");
	told_free(&told);
	for (int i = 0; i < 65; i++)
		told_error(&told, "test", "host", "an error");
	told_hint(&told, "of the one that was not kept");
	assert_null(told.last->hint);
	told_free(&told);
}

/* No line of the log is as long, but a part of it is cut and not written beyond its end. */
static void a_long_message_is_cut(void **state)
{
	struct told told = { 0 };
	struct report report = { 0 };
	char message[4096], *text;
	size_t length;

	(void)state;
	memset(message, 'x', sizeof(message) - 1);
	memcpy(message, "sending: ", 9);
	message[sizeof(message) - 1] = 0;
	told_error(&told, "test", NULL, message);
	report_open(&report, open_memstream(&text, &length), &report_json);
	told_report(&report, &told);
	report_close(&report);
	fclose(report.stream);
	assert_non_null(strstr(text, "\"phase\":\"sending\""));
	assert_non_null(strstr(text, message));
	free(text);
	told_free(&told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_are_taken_apart),
		cmocka_unit_test(a_hint_stays_with_its_error_and_a_part_with_its_own),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(a_long_message_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
