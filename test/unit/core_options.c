/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/unit/unit.h"

#include "core/clock.h"
#include "core/options.h"

struct settings {
	int64_t port;
	int64_t size;
	int64_t wait;
	int64_t format;
	int64_t offset;
	int64_t first, last;
	const char *address;
	struct option_list targets;
	bool verbose;
	bool server;
	bool client;
	bool help;
	bool version;
};

static const uint16_t formats[] = { 1, 2, 0x111 };

/* clang-format off */
static const struct option behind[] = {
	OPTION_FLAG_ROW('c', "client", struct settings, client, OPTION_HELP("Ask")),
	OPTION_FLAG_ROW('h', "help", struct settings, help, OPTION_HELP("Print this help"), .stops = true, .brief = true),
	OPTION_FLAG_ROW(0, "version", struct settings, version, OPTION_HELP("Print the version"), .stops = true),
	OPTION_END,
};

/* A table without rows of its own. */
static const struct option between[] = {
	OPTION_REST(behind),
};

static const struct option table[] = {
	OPTION_ROW(OPTION_INTEGER, 'p', "port", struct settings, port, "PORT", "1 to 65535", "7174", OPTION_HELP("Port"),
		   .brief = true),
	OPTION_ROW(OPTION_SIZE, 'S', "size", struct settings, size, "BYTES", "0 to 1G", "64K", OPTION_HELP("Size"),
		   .section = SECTION_SERVICE),
	OPTION_ROW(OPTION_DURATION, 0, "wait", struct settings, wait, "TIME", "1us to 24h", "",
		   OPTION_HELP("A wait that is described at such length that its help does not fit into one line, nor even two",
			       "none"), .section = SECTION_LIMITS, .brief = true),
	OPTION_ROW(OPTION_WORD, 'f', "format", struct settings, format, "FORMAT", "one of name, ip, gid", "ip",
		   OPTION_HELP("Format")),
	OPTION_VALUES_ROW(formats),
	OPTION_ROW(OPTION_INTEGER, 0, "offset", struct settings, offset, "N", "5 or more", "7", OPTION_HELP("Offset")),
	OPTION_ROW(OPTION_TEXT, 'a', "address", struct settings, address, "ADDRESS", "", "", OPTION_HELP("Address")),
	OPTION_ROW(OPTION_LIST, 't', "target", struct settings, targets, "HOST", "", "", OPTION_HELP("Hosts")),
	OPTION_FLAG_ROW('v', "verbose", struct settings, verbose, OPTION_HELP("Say more")),
	OPTION_FLAG_ROW('s', "server", struct settings, server, OPTION_HELP("Serve")),
	OPTION_REST(between),
};

enum {
	WITH_CLIENT = 1,
	ONE_ROLE = 1,
	ONE_FORM = 2,
};

static const struct option more_related[] = {
	OPTION_FLAG_ROW('c', "client", struct settings, client, OPTION_HELP("Ask"),
			.needed_by = WITH_CLIENT, .exclusive = ONE_ROLE),
	OPTION_END,
};

static const struct option related[] = {
	OPTION_ROW(OPTION_INTEGER, 'p', "port", struct settings, port, "PORT", "0 to 9", "1", OPTION_HELP("Port"),
		   .exclusive = ONE_FORM),
	OPTION_ROW(OPTION_TEXT, 'a', "address", struct settings, address, "ADDRESS", "", "", OPTION_HELP("Address"),
		   .tags = WITH_CLIENT, .exclusive = ONE_FORM),
	OPTION_FLAG_ROW('v', "verbose", struct settings, verbose, OPTION_HELP("Say more"), .excluded_by = WITH_CLIENT),
	OPTION_FLAG_ROW('s', "server", struct settings, server, OPTION_HELP("Serve"), .exclusive = ONE_ROLE),
	OPTION_REST(more_related),
};
/* clang-format on */

static const struct log tool_log = { .name = "tool" };

/* The last parse's results. */
static struct settings settings;
static uint64_t given;
static struct capture capture;

/* Parses words; "capture" gets the text on stderr. */
static enum outcome parse_words(const struct option *rows, int argc, char **argv)
{
	enum outcome outcome;

	memset(&settings, 0, sizeof(settings));
	settings.wait = 77;
	capture_begin(&capture);
	outcome = options_parse(rows, &tool_log, argc, argv, &settings, &given);
	capture_end(&capture);
	return outcome;
}

/* Parses a line, split at spaces; "''" is an empty argument. */
static enum outcome parse_in(const struct option *rows, const char *line)
{
	static char words[256];
	char name[] = "tool";
	char empty[] = "";
	char *argv[32] = { name };
	char *rest = NULL;
	int argc = 1;

	snprintf(words, sizeof(words), "%s", line);
	for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		argv[argc++] = strcmp(word, "''") ? word : empty;
	return parse_words(rows, argc, argv);
}

static enum outcome parse(const char *line)
{
	return parse_in(table, line);
}

static struct settings parse_fine(const char *line)
{
	assert_int_equal(parse(line), OUTCOME_OK);
	assert_string_equal(capture.text, "");
	return settings;
}

static void assert_rejected(const char *line, const char *message)
{
	assert_int_equal(parse(line), OUTCOME_USAGE);
	assert_string_equal(capture.text, message);
}

TEST(initial_values)
{
	parse_fine("");
	assert_int_equal(settings.port, 7174);
	assert_int_equal(settings.size, 65536);
	assert_int_equal(settings.wait, 77); /* unchanged: it has no default */
	assert_int_equal(settings.format, 2);
	assert_int_equal(settings.offset, 7);
	assert_null(settings.address);
	assert_false(settings.verbose);
	assert_false(settings.help);
}

#define NUMBER(member) offsetof(struct settings, member)

TEST(values)
{
	static const struct {
		const char *line;
		size_t member;
		int64_t value;
	} cases[] = {
		{ "-p5", NUMBER(port), 5 },
		{ "-p 5", NUMBER(port), 5 },
		{ "-vp5", NUMBER(port), 5 },
		{ "--port=5", NUMBER(port), 5 },
		{ "--port 5", NUMBER(port), 5 },
		{ "-p 5 -p 6", NUMBER(port), 6 },
		{ "-p 65535", NUMBER(port), 65535 },
		{ "-p 0x10", NUMBER(port), 16 },
		{ "-p 0XfF", NUMBER(port), 255 },
		{ "-p 010", NUMBER(port), 10 },
		{ "-p 5.0", NUMBER(port), 5 },
		{ "--offset 5", NUMBER(offset), 5 },
		{ "--offset=5000000000000000000", NUMBER(offset), 5000000000000000000 },
		{ "-S 0", NUMBER(size), 0 },
		{ "-S 3", NUMBER(size), 3 },
		{ "-S 3K", NUMBER(size), 3072 },
		{ "-S 3k", NUMBER(size), 3072 },
		{ "-S 2M", NUMBER(size), 2 << 20 },
		{ "-S 1G", NUMBER(size), 1 << 30 },
		{ "-S 1.5K", NUMBER(size), 1536 },
		{ "--wait 5", NUMBER(wait), 5 * CLOCK_NS_PER_S },
		{ "--wait 5s", NUMBER(wait), 5 * CLOCK_NS_PER_S },
		{ "--wait 1500ns", NUMBER(wait), 1500 },
		{ "--wait 7us", NUMBER(wait), 7 * CLOCK_NS_PER_US },
		{ "--wait 7ms", NUMBER(wait), 7 * CLOCK_NS_PER_MS },
		{ "--wait 2m", NUMBER(wait), 120 * CLOCK_NS_PER_S },
		{ "--wait 2h", NUMBER(wait), 7200 * CLOCK_NS_PER_S },
		{ "--wait .25s", NUMBER(wait), CLOCK_NS_PER_S / 4 },
		{ "--wait 1.000000001s", NUMBER(wait), CLOCK_NS_PER_S + 1 },
		{ "--wait 1.001", NUMBER(wait), 1001 * CLOCK_NS_PER_MS },
		{ "--wait 1.0000000001s", NUMBER(wait), CLOCK_NS_PER_S },
		{ "--wait 1.5h", NUMBER(wait), 5400 * CLOCK_NS_PER_S },
		{ "--wait 23.123456789123456789h", NUMBER(wait), INT64_C(83244420000000) },
		{ "--wait 0.1234567899999999999999999999999999s", NUMBER(wait), 123456790 },
		{ "-f name", NUMBER(format), 1 },
		{ "-f gid", NUMBER(format), 0x111 },
		{ "-f 0x0111", NUMBER(format), 0x111 },
		{ "-f 273", NUMBER(format), 0x111 },
	};

	for (size_t i = 0; i < LENGTH(cases); i++) {
		int64_t value;

		parse_fine(cases[i].line);
		memcpy(&value, (char *)&settings + cases[i].member, sizeof(value));
		assert_int_equal(value, cases[i].value);
	}
}

TEST(texts_and_flags)
{
	assert_true(parse_fine("-vp5").verbose);
	assert_true(parse_fine("-vs").server);
	assert_string_equal(parse_fine("--address=a=b").address, "a=b");
	assert_string_equal(parse_fine("-a -v").address, "-v");
	assert_string_equal(parse_fine("-a --").address, "--");
	assert_true(parse_fine("-v --").verbose);
}

/* "FROM-TO"; of a single size the second member is 0. */
TEST(size_ranges)
{
	static const struct option with_sizes[] = {
		OPTION_ROW(OPTION_SIZES, 'S', "size", struct settings, first, "BYTES", "1 to 1M", "",
			   OPTION_HELP("Sizes")),
		OPTION_END,
	};
	static const struct {
		const char *line;
		int64_t first, last;
	} cases[] = {
		{ "-S 64", 64, 0 },  { "-S 64-1M", 64, 1 << 20 },    { "-S 1K-100k", 1024, 102400 },
		{ "-S 7-7", 7, 7 },  { "-S 4-8 -S 5", 5, 0 },	     { "-S 0-4", 0, 4 },
		{ "-S 64B", 64, 0 }, { "-S 1KB-64kb", 1024, 65536 }, { "-S 8KiB", 8192, 0 },
	};
	static const char *const refused[] = { "8-4",  "-4",  "4-2M", "4-99999999999G", "4-", "4-8-16", "4-8.5", "4-8x",
					       "4KBB", "4iB", "B" };

	for (size_t i = 0; i < LENGTH(cases); i++) {
		assert_int_equal(parse_in(with_sizes, cases[i].line), OUTCOME_OK);
		assert_string_equal(capture.text, "");
		assert_int_equal(settings.first, cases[i].first);
		assert_int_equal(settings.last, cases[i].last);
	}
	for (size_t i = 0; i < LENGTH(refused); i++) {
		char line[64], message[128];

		snprintf(line, sizeof(line), "-S %s", refused[i]);
		snprintf(message, sizeof(message), "tool: -S, --size: invalid value '%s' (1 to 1M%s)\n", refused[i],
			 strchr(refused[i], '-') ? ", FROM-TO rising" : "");
		assert_int_equal(parse_in(with_sizes, line), OUTCOME_USAGE);
		assert_string_equal(capture.text, message);
	}
	assert_rejected("-S 4-8", "tool: -S, --size: invalid value '4-8' (0 to 1G)\n");
	assert_rejected("-p 4-8", "tool: -p, --port: invalid value '4-8' (1 to 65535)\n");
}

TEST(lists)
{
	assert_int_equal(parse("-v"), OUTCOME_OK);
	assert_int_equal(settings.targets.count, 0);
	assert_int_equal(parse("-t one -v --target=two -tthree"), OUTCOME_OK);
	assert_int_equal(settings.targets.count, 3);
	assert_string_equal(settings.targets.texts[0], "one");
	assert_string_equal(settings.targets.texts[1], "two");
	assert_string_equal(settings.targets.texts[2], "three");
	assert_true(settings.verbose);
	assert_rejected("-t ''", "tool: -t, --target: invalid value '' (not empty)\n");
	assert_rejected("-t", "tool: -t, --target: HOST is missing\n");
}

TEST(list_is_limited)
{
	char *argv[2 * OPTION_LIST_MAX + 4] = { NULL };
	char name[] = "tool", option[] = "-t", value[] = "host";
	int argc = 0;

	argv[argc++] = name;
	for (int i = 0; i <= OPTION_LIST_MAX; i++) {
		argv[argc++] = option;
		argv[argc++] = value;
	}
	assert_int_equal(parse_words(table, argc - 2, argv), OUTCOME_OK);
	assert_int_equal(settings.targets.count, OPTION_LIST_MAX);
	assert_int_equal(parse_words(table, argc, argv), OUTCOME_USAGE);
	assert_string_equal(capture.text, "tool: -t, --target: invalid value 'host' (too many of them)\n");
}

TEST(help_ends_the_parse)
{
	assert_int_equal(parse("-h -p banana --nonsense operand"), OUTCOME_OK);
	assert_true(settings.help);
	assert_int_equal(parse("-vhx"), OUTCOME_OK);
	assert_true(settings.help);
	assert_int_equal(parse("--version -s -c"), OUTCOME_OK);
	assert_true(settings.version);
	assert_int_equal(parse("-p banana -h"), OUTCOME_USAGE);
}

TEST(invalid_values)
{
	static const struct {
		const char *option, *row, *range, *values;
	} cases[] = {
		{ "-p", "-p, --port", "1 to 65535",
		  "0 99999 -1 99999999999999999999 0x1ffffffffffffffff -9223372036854775808 banana 23x inf -nan 1.5 0x "
		  "5K +5 '' - @ 5` 0x@" },
		{ "-S", "-S, --size", "0 to 1G", "2G 99999999999G -9223372036854775808 5KX 1.5 K" },
		{ "--wait", "--wait", "1us to 24h",
		  "0 -1s 0.1ns 25h 9999999999h 2562047.9h 99999999999999999999.5 soon 5d . 1.5.5s s '' "
		  "0.0000000000000000000000005h 1e3" },
		{ "-f", "-f, --format", "one of name, ip, gid", "ipx 3 ''" },
		{ "--offset", "--offset", "5 or more", "4 -6 0.9 5.1 50000000000000000000" },
		{ "-a", "-a, --address", "not empty", "''" },
	};

	for (size_t i = 0; i < LENGTH(cases); i++) {
		char values[192], line[64], message[128], *rest = NULL;

		snprintf(values, sizeof(values), "%s", cases[i].values);
		for (char *value = strtok_r(values, " ", &rest); value; value = strtok_r(NULL, " ", &rest)) {
			snprintf(line, sizeof(line), "%s %s", cases[i].option, value);
			snprintf(message, sizeof(message), "tool: %s: invalid value '%s' (%s)\n", cases[i].row,
				 strcmp(value, "''") ? value : "", cases[i].range);
			assert_rejected(line, message);
		}
	}
}

#define LISTED "tool: hint: tool --help lists the options\n"

/* Errors other than an invalid value. */
TEST(rejected_words)
{
	static const struct {
		const char *line;
		const char *message;
	} cases[] = {
		{ "-p 0 -S banana --nonsense", "tool: -p, --port: invalid value '0' (1 to 65535)\n" }, /* the first */
		{ "--port=", "tool: -p, --port: invalid value '' (1 to 65535)\n" },
		{ "-p", "tool: -p, --port: PORT is missing\n" },
		{ "-vp", "tool: -p, --port: PORT is missing\n" },
		{ "--port", "tool: -p, --port: PORT is missing\n" },
		{ "-f", "tool: -f, --format: FORMAT is missing\n" },
		{ "-a", "tool: -a, --address: ADDRESS is missing\n" },
		{ "--verbose=yes", "tool: -v, --verbose: takes no value\n" },
		{ "--verbose=", "tool: -v, --verbose: takes no value\n" },
		{ "-v4", "tool: -v, --verbose: takes no value\n" },
		{ "-x", "tool: -x: unknown option\n" LISTED },
		{ "-vx5", "tool: -x: unknown option\n" LISTED },
		{ "--prot 5", "tool: --prot: unknown option\ntool: hint: did you mean --port?\n" },
		{ "--prot=5", "tool: --prot: unknown option\ntool: hint: did you mean --port?\n" },
		{ "--frobnicate", "tool: --frobnicate: unknown option\n" LISTED },
		{ "--=5", "tool: --: unknown option\n" LISTED },
		{ "-v there", "tool: unexpected argument 'there'\n" LISTED },
		{ "-- -v", "tool: unexpected argument '-v'\n" LISTED },
		{ "-", "tool: unexpected argument '-'\n" LISTED },
		{ "''", "tool: unexpected argument ''\n" LISTED },
	};

	for (size_t i = 0; i < LENGTH(cases); i++)
		assert_rejected(cases[i].line, cases[i].message);
}

TEST(relations)
{
	static const struct {
		const char *line;
		const char *message; /* NULL: accepted */
	} cases[] = {
		{ "-s -c", "tool: -s, --server and -c, --client are mutually exclusive\n" },
		{ "-c -p 1 -a x", "tool: -p, --port and -a, --address are mutually exclusive\n" },
		{ "-a x", "tool: -a, --address needs -c, --client\n" },
		{ "-s -a x", "tool: -a, --address needs -c, --client\n" },
		{ "-a x -v -c", "tool: -a, --address and -v, --verbose are mutually exclusive\n" },
		{ "-c -a x", NULL },
		{ "-s -v -p 1", NULL },
		{ "-c -v -p 1", NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < LENGTH(cases); i++) {
		assert_int_equal(parse_in(related, cases[i].line), cases[i].message ? OUTCOME_USAGE : OUTCOME_OK);
		assert_string_equal(capture.text, cases[i].message ? cases[i].message : "");
	}
}

static void assert_help(const struct option *rows, bool brief, const char *expected)
{
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	assert_non_null(stream);
	options_help(rows, brief, &(struct output){ .stream = stream });
	fclose(stream);
	assert_string_equal(text, expected);
	free(text);
}

TEST(help_text)
{
	assert_help(table, false,
		    "\nOptions:\n"
		    "  -p, --port PORT        Port [1 to 65535; default 7174]\n"
		    "  -f, --format FORMAT    Format [one of name, ip, gid; default ip]\n"
		    "      --offset N         Offset [5 or more; default 7]\n"
		    "  -a, --address ADDRESS  Address\n"
		    "  -t, --target HOST      Hosts\n"
		    "  -v, --verbose          Say more\n"
		    "  -s, --server           Serve\n"
		    "  -c, --client           Ask\n"
		    "  -h, --help             Print this help\n"
		    "      --version          Print the version\n"
		    "\nLimits:\n"
		    "      --wait TIME        A wait that is described at such length that its help\n"
		    "                         does not fit into one line, nor even two [1us to 24h;\n"
		    "                         default none]\n"
		    "\nService:\n"
		    "  -S, --size BYTES       Size [0 to 1G; default 64K]\n");
}

/* Without ranges and sections. */
TEST(brief_help)
{
	assert_help(table, true,
		    "\nOptions:\n"
		    "  -p, --port PORT  Port [default 7174]\n"
		    "      --wait TIME  A wait that is described at such length that its help does\n"
		    "                   not fit into one line, nor even two [default none]\n"
		    "  -h, --help       Print this help\n");
}

/* Each row of the largest table has its own bit. */
TEST(every_row_has_a_given_bit)
{
	struct option many[OPTION_ROWS_MAX + 1] = { OPTION_END };
	static char names[OPTION_ROWS_MAX][8], word[16], tool[] = "tool";
	bool flags[OPTION_ROWS_MAX];

	for (unsigned i = 0; i < OPTION_ROWS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "row%u", i);
		many[i] = (struct option){ .text = names[i], .type = OPTION_FLAG, .offset = (uint16_t)i };
	}
	for (unsigned i = 0; i < OPTION_ROWS_MAX; i++) {
		char *argv[] = { tool, word, NULL };

		snprintf(word, sizeof(word), "--row%u", i);
		memset(flags, 0, sizeof(flags));
		assert_int_equal(options_parse(many, &tool_log, 2, argv, flags, &given), OUTCOME_OK);
		for (unsigned j = 0; j < OPTION_ROWS_MAX; j++) {
			assert_int_equal(options_given(many, given, names[j]) != NULL, i == j);
			assert_int_equal(flags[j], i == j);
		}
	}
}

/* Help texts and option names that fit with one column to spare, fit exactly, and exceed by one. */
TEST(help_wraps_at_its_width)
{
	static const char blanks[] = "                                ";
	char words[128] = "flag\0", name[40];
	char *help = words + sizeof("flag\0");

	for (int more = -1; more <= 1; more++) {
		const struct option rows[] = {
			{ .text = words, .type = OPTION_FLAG },
			OPTION_END,
		};
		const struct option wide[] = {
			{ .text = name, .type = OPTION_FLAG },
			OPTION_END,
		};
		char expected[160];

		/* "      --flag  " takes 14 columns of the 80. */
		snprintf(help, 100, "%.*s end", 62 + more,
			 "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww");
		snprintf(expected, sizeof(expected), "\nOptions:\n      --flag  %.*s%s%.*send\n", 62 + more, help,
			 more > 0 ? "\n" : " ", more > 0 ? 14 : 0, blanks);
		assert_help(rows, false, expected);
		/* On the line of an option of up to 30 columns, else on the next line. */
		snprintf(name, sizeof(name), "%.*s%c%chelp", 22 + more, "nnnnnnnnnnnnnnnnnnnnnnn", 0, 0);
		snprintf(expected, sizeof(expected), "\nOptions:\n      --%s%s  help\n", name, more > 0 ? "\n" : "");
		assert_help(wide, false, expected);
	}
}

/* As in the stock tools: an operand is ignored beside the option, and the last of two flags counts. */
TEST(stock_tool_behaviour)
{
	static const struct option classic[] = {
		OPTION_ROW(OPTION_LIST, 't', "target", struct settings, targets, "HOST", "", "", OPTION_HELP("Hosts"),
			   .operand = OPERAND_UNLESS_GIVEN),
		OPTION_FLAG_ROW('s', "server", struct settings, server, OPTION_HELP("Serve"), .last_counts = true),
		OPTION_FLAG_ROW('c', "client", struct settings, client, OPTION_HELP("Ask"), .last_counts = true),
		OPTION_END,
	};

	assert_int_equal(parse_in(classic, "-s stray -ta -c other"), OUTCOME_OK);
	assert_string_equal(capture.text,
			    "tool: hint: argument 'stray' ignored beside --target (--device chooses an RDMA device)\n"
			    "tool: hint: argument 'other' ignored beside --target (--device chooses an RDMA device)\n");
	assert_int_equal(settings.targets.count, 1);
	assert_true(settings.client && !settings.server);
	assert_null(options_given(classic, given, "server"));
	/* Without the option, operands are its values. */
	assert_int_equal(parse_in(classic, "-s stray"), OUTCOME_OK);
	assert_string_equal(capture.text, "");
	assert_int_equal(settings.targets.count, 1);
}

/* One row takes one operand, at any position. */
TEST(operand)
{
	static const struct option with_operand[] = {
		OPTION_ROW(OPTION_TEXT, 'a', "address", struct settings, address, "ADDRESS", "", "",
			   OPTION_HELP("Address"), .operand = OPERAND),
		OPTION_FLAG_ROW('v', "verbose", struct settings, verbose, OPTION_HELP("Say more")),
		OPTION_END,
	};
	static const struct {
		const char *line;
		const char *address; /* NULL: rejected */
	} cases[] = {
		{ "host", "host" },	  { "-v host", "host" },	   { "host -v", "host" },
		{ "-- -v", "-v" },	  { "-a host", "host" },	   { "one other", NULL },
		{ "-aone other", NULL },  { "--address=one other", NULL }, { "one -- other", NULL },
		{ "one -a other", NULL }, { "one --address=other", NULL }, { "''", NULL },
	};

	for (size_t i = 0; i < LENGTH(cases); i++) {
		enum outcome outcome = parse_in(with_operand, cases[i].line);

		assert_int_equal(outcome, cases[i].address ? OUTCOME_OK : OUTCOME_USAGE);
		assert_int_equal(strlen(capture.text) == 0, outcome == OUTCOME_OK);
		if (cases[i].address) {
			assert_string_equal(settings.address, cases[i].address);
			assert_non_null(options_given(with_operand, given, "address"));
		}
	}
}

/* An alias sets the same value and the same bit. Errors show the name of the row. */
TEST(aliases)
{
	static const struct option with_alias[] = {
		OPTION_ROW(OPTION_INTEGER, 'p', "port", struct settings, port, "PORT", "1 to 9", "5",
			   OPTION_HELP("Port")),
		OPTION_ALIAS_ROW("door", "port", "PORT", OPTION_HELP("The same as --port")),
		OPTION_END,
	};

	assert_int_equal(parse_in(with_alias, ""), OUTCOME_OK);
	assert_int_equal(settings.port, 5);
	assert_null(options_given(with_alias, given, "port"));
	assert_int_equal(parse_in(with_alias, "--door=7"), OUTCOME_OK);
	assert_int_equal(settings.port, 7);
	assert_non_null(options_given(with_alias, given, "port"));
	assert_int_equal(parse_in(with_alias, "--door=7 --door 10"), OUTCOME_USAGE);
	assert_string_equal(capture.text, "tool: -p, --port: invalid value '10' (1 to 9)\n");
}
