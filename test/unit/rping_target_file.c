/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of --targets. */
/* link: -Wl,--wrap=getline -Wl,--wrap=__getdelim */
#include "test/unit/unit.h"

#include <errno.h>

#include "cmd/rping/target_file.h"

static const struct log tool_log = { .name = "rping" };

/* Reads a file with that text. errors has the messages. */
static enum outcome read_text(struct target_file *file, const char *text, struct capture *errors)
{
	char name[] = "/tmp/targets.XXXXXX";
	FILE *stream = fdopen(mkstemp(name), "w");
	enum outcome outcome;

	fputs(text, stream);
	fclose(stream);
	memset(file, 0, sizeof(*file));
	capture_begin(errors);
	outcome = target_file_read(file, name, 7174, &tool_log);
	capture_end(errors);
	unlink(name);
	return outcome;
}

static void port_is_optional(void **state)
{
	struct target_file file;
	struct capture errors;

	(void)state;
	assert_int_equal(read_text(&file, "# nodes\n\n10.0.0.1\n  node2\t9 # spare\r\nfd00::1 65535", &errors),
			 OUTCOME_OK);
	assert_int_equal(file.count, 3);
	assert_string_equal(file.lines[0].address, "10.0.0.1");
	assert_int_equal(file.lines[0].port, 7174);
	assert_string_equal(file.lines[1].address, "node2");
	assert_int_equal(file.lines[1].port, 9);
	assert_string_equal(file.lines[2].address, "fd00::1");
	assert_int_equal(file.lines[2].port, 65535);
	target_file_free(&file);
}

static void assert_rejected(const char *text, const char *words)
{
	struct target_file file;
	struct capture errors;

	assert_int_equal(read_text(&file, text, &errors), OUTCOME_USAGE);
	target_file_free(&file);
	if (!strstr(errors.text, words))
		fail_msg("\"%s\" is not in: %s", words, errors.text);
}

static void invalid_lines_are_rejected_with_their_number(void **state)
{
	(void)state;
	assert_rejected("10.0.0.1\n10.0.0.2 0\n", ":2: '0' is not a port: 1 to 65535");
	assert_rejected("10.0.0.1 65536\n", ":1: '65536' is not a port");
	assert_rejected("10.0.0.1 99999999999999999999\n", "is not a port");
	assert_rejected("10.0.0.1 7174x\n", "'7174x' is not a port");
	assert_rejected("10.0.0.1 -1\n", "'-1' is not a port");
	assert_rejected("10.0.0.1 7174 10.0.0.2\n", ":1: more than an address and a port");
	assert_rejected("# nothing\n\n", "no targets");
	assert_rejected("", "no targets");
	assert_rejected("10.0.0.1\n\x80\xff\n", ":2: not a line of text");
	assert_rejected("10.0.0.1 \x1b[2J\n", ":1: not a line of text");
}

static void missing_file_is_rejected(void **state)
{
	struct target_file file = { 0 };
	struct capture errors;

	(void)state;
	capture_begin(&errors);
	assert_int_equal(target_file_read(&file, "/nowhere/targets", 7174, &tool_log), OUTCOME_USAGE);
	assert_non_null(strstr(capture_end(&errors), "rping: --targets: /nowhere/targets: No such file"));
}

/* The headers of the C library decide which of the two is called. */
static bool no_memory;
ssize_t __real_getline(char **line, size_t *size, FILE *stream);
ssize_t __wrap_getline(char **line, size_t *size, FILE *stream);
ssize_t __real___getdelim(char **line, size_t *size, int end, FILE *stream);
ssize_t __wrap___getdelim(char **line, size_t *size, int end, FILE *stream);

ssize_t __wrap_getline(char **line, size_t *size, FILE *stream)
{
	errno = ENOMEM;
	return no_memory ? -1 : __real_getline(line, size, stream);
}

ssize_t __wrap___getdelim(char **line, size_t *size, int end, FILE *stream)
{
	errno = ENOMEM;
	return no_memory ? -1 : __real___getdelim(line, size, end, stream);
}

static void lack_of_memory_is_reported(void **state)
{
	struct target_file file;
	struct capture errors;

	(void)state;
	no_memory = true;
	assert_int_equal(read_text(&file, "10.0.0.1\n", &errors), OUTCOME_INTERNAL);
	no_memory = false;
	assert_non_null(strstr(errors.text, ": reading: Cannot allocate memory (12)"));
}

static void limit_is_ten_thousand_targets(void **state)
{
	struct target_file file;
	struct capture errors;
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	(void)state;
	for (int i = 0; i < 10000; i++)
		fprintf(stream, "10.0.%d.%d\n", i / 250, i % 250);
	fflush(stream);
	assert_int_equal(read_text(&file, text, &errors), OUTCOME_OK);
	assert_int_equal(file.count, 10000);
	target_file_free(&file);
	fprintf(stream, "10.1.0.1\n");
	fclose(stream);
	assert_rejected(text, ":10001: more than 10000 targets");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(port_is_optional),
		cmocka_unit_test(invalid_lines_are_rejected_with_their_number),
		cmocka_unit_test(missing_file_is_rejected),
		cmocka_unit_test(lack_of_memory_is_reported),
		cmocka_unit_test(limit_is_ten_thousand_targets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
