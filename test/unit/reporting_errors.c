/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of errors in the report of a run. */
#include "test/unit/unit.h"

#include "cmd/reporting/errors.h"

static void assert_report(const struct errors *errors, const char *expected)
{
	struct report report = { 0 };
	size_t length;
	char *text;

	report_open(&report, open_memstream(&text, &length), &report_json);
	errors_report(&report, errors);
	report_close(&report);
	fclose(report.stream);
	assert_string_equal(text, expected);
	free(text);
}

static void add(struct errors *errors, const char *part, const char *cause)
{
	struct error error = { .phase = "" };

	snprintf(error.cause, sizeof(error.cause), "%s", cause);
	errors_add(errors, part, &error);
}

static void every_member_is_a_field(void **state)
{
	const struct error error = {
		.object = "10.0.0.1:9",
		.phase = "connecting",
		.cause = "nobody listens there",
		.code = "RDMA_CM_EVENT_REJECTED, status 8",
	};
	struct errors errors = { 0 };

	(void)state;
	errors_add(&errors, NULL, &error);
	assert_report(&errors, "{\"error_count\":1,\"errors\":[{\"object\":\"10.0.0.1:9\",\"phase\":\"connecting\","
			       "\"cause\":\"nobody listens there\",\"code\":\"RDMA_CM_EVENT_REJECTED, status 8\","
			       "\"text\":\"connecting: nobody listens there (RDMA_CM_EVENT_REJECTED, status 8)\","
			       "\"hint\":null,\"part\":null}]}\n");
	errors_free(&errors);
}

static void hint_belongs_to_last_error(void **state)
{
	struct errors errors = { 0 };

	(void)state;
	errors_add_hint(&errors, "before any error");
	add(&errors, NULL, "one");
	errors_add_hint(&errors, "of one");
	errors_add_hint(&errors, "a second one");
	add(&errors, "ucmatose", "two");
	add(&errors, "mckey", "three");
	assert_report(&errors, "{\"error_count\":3,\"errors\":["
			       "{\"object\":null,\"phase\":null,\"cause\":\"one\",\"code\":null,"
			       "\"text\":\"one\",\"hint\":\"of one\",\"part\":null},"
			       "{\"object\":null,\"phase\":null,\"cause\":\"two\",\"code\":null,"
			       "\"text\":\"two\",\"hint\":null,\"part\":\"ucmatose\"},"
			       "{\"object\":null,\"phase\":null,\"cause\":\"three\",\"code\":null,"
			       "\"text\":\"three\",\"hint\":null,\"part\":\"mckey\"}]}\n");
	errors_free(&errors);
	assert_report(&errors, "{\"error_count\":0,\"errors\":[]}\n");
}

/* The list keeps the first 64 errors and counts all. */
static void memory_is_bounded(void **state)
{
	struct errors errors = { 0 };
	unsigned kept = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		add(&errors, NULL, i ? "later" : "first");
		errors_add_hint(&errors, i ? "later" : "of the first");
	}
	assert_int_equal(errors.count, 1000);
	for (const struct kept_error *error = errors.first; error; error = error->next)
		kept++;
	assert_int_equal(kept, errors.kept);
	assert_int_equal(kept, 64);
	assert_string_equal(errors.first->error.cause, "first");
	assert_string_equal(errors.first->hint, "of the first");
	/* The last error in the list keeps its own hint. */
	assert_string_equal(errors.last->hint, "later");
	errors_free(&errors);
	for (int i = 0; i < 65; i++)
		add(&errors, NULL, "an error");
	errors_add_hint(&errors, "of the one that was not kept");
	assert_null(errors.last->hint);
	errors_free(&errors);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_member_is_a_field),
		cmocka_unit_test(hint_belongs_to_last_error),
		cmocka_unit_test(memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
