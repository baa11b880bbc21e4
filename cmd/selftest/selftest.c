/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * selftest: runs server and client of every command in this process, one command after the other, and prints a verdict
 * for each.
 *
 * It is the only command that selects a transport by itself. Its first line names that transport.
 */
#include "cmd/selftest/selftest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/units.h"

/* clang-format off */
static const struct option options_table[] = {
	OPTION_ROW(OPTION_TEXT, 'a', "address", struct selftest_options, address, "ADDRESS", "", "",
		   OPTION_HELP("Local address to test", "one of a device; with soft 127.0.0.1"), .brief = true),
	OPTION_FLAG_ROW('v', "verbose", struct selftest_options, verbose,
			OPTION_HELP("Also print the output of the commands"), .brief = true),
	TRANSPORT_OPTION(struct selftest_options, TRANSPORT_AUTOMATIC),
	DEBUG_OPTION(struct selftest_options, 'd'),
	OPTION_REST(spin_option_table),
};

/* Datagrams fit the smallest IB MTU, 256 bytes. */
static const struct part_row parts[] = {
#if COMMAND_rping
	{
		.command = &rping_command,
		.server = "-s -V -a @ -p #",
		.client = "-c -V -C 10 -S 1000 -a @ -p #",
	},
#endif
#if COMMAND_ucmatose
	{
		.command = &ucmatose_command,
		.server = "-c 4 -C 10 -S 1000 -b @ -p #",
		.client = "-c 4 -C 10 -S 1000 -s @ -p #",
	},
#endif
#if COMMAND_mckey
	{
		.command = &mckey_command,
		.server = "-S 200 -C 10 -m # -b @",
		.client = "-s -S 200 -C 10 -m # -b @",
		.multicast = true,
		.server_verdict = true,
	},
#endif
};
/* clang-format on */

enum {
	PARTS = sizeof(parts) / sizeof(parts[0])
};

struct result {
	const char *command;
	const char *verdict; /* NULL until the part has ended */
	const char *reason;  /* of a skipped part */
	int64_t started;
	int64_t duration; /* 0 until the part has ended */
};

static const struct figure result_figures[] = {
	FIGURE(TEXT, "command", struct result, command, .flags = FIGURE_LABEL),
	FIGURE(TEXT, "verdict", struct result, verdict, .flags = FIGURE_LABEL),
	FIGURE(TEXT, "reason", struct result, reason, .flags = FIGURE_LABEL),
	FIGURE(TIME, "duration", struct result, duration),
	FIGURES_END,
};

struct selftest {
	struct environment *environment;
	const struct selftest_options *options;
	const char *target;
	const char *name; /* the log's name, without that of a part */
	char part_name[CHILD_RUN_NAME_SIZE];
	struct testbed testbed;
	struct endpoint *probe; /* resolves the address to its device */
	struct part part;
	struct result results[PARTS];
	unsigned next;
	uint64_t passed, failed, skipped;
	bool interrupted;
};

static void selftest_finish(struct selftest *selftest)
{
	struct environment *environment = selftest->environment;
	const char *device = selftest->testbed.domain.device;
	uint64_t done = selftest->passed + selftest->failed + selftest->skipped;
	char skipped[32] = "";

	if (selftest->interrupted && done < PARTS) {
		log_error(&environment->log, NULL, "ended early, after %" PRIu64 " of %u parts", done, (unsigned)PARTS);
		environment_record_outcome(environment, OUTCOME_FAILED);
	}
	if (selftest->skipped)
		snprintf(skipped, sizeof(skipped), ", %" PRIu64 " skipped", selftest->skipped);
	if (environment->outcome)
		environment_finish(environment, OUTCOME_OK, device, "%" PRIu64 " of %u parts passed%s",
				   selftest->passed, (unsigned)PARTS, skipped);
	else
		environment_finish(environment, OUTCOME_OK, device, "ok: %" PRIu64 " part%s passed%s", selftest->passed,
				   units_plural(selftest->passed), skipped);
}

/* --verbose: the output of a child run, each line after its role. */
static void print_output(const struct selftest *selftest, const struct child_run *run, const char *role)
{
	const char *line = run->text ? run->text : "";

	while (selftest->options->verbose && *line) {
		size_t length = strcspn(line, "\n");

		environment_print(selftest->environment, "  %s| %.*s", role, (int)length, line);
		line += length + (line[length] == '\n');
	}
}

static void record_verdict(struct selftest *selftest, const char *verdict, const char *reason)
{
	struct result *result = &selftest->results[selftest->next - 1];
	struct report *record;

	result->verdict = verdict;
	result->reason = reason;
	if (result->started)
		result->duration = clock_now() - result->started;
	record = environment_begin_record(selftest->environment, "part");
	if (!record)
		return;
	figures_report(record, result_figures, result, NULL);
	report_close(record);
}

static void next_part(struct selftest *selftest);

static void part_ended(void *context)
{
	struct selftest *selftest = context;
	struct part *part = &selftest->part;
	const struct child_run *run = part->row->server_verdict ? &part->server : &part->client;
	const struct environment *environment = selftest->environment;

	print_output(selftest, &part->server, "server");
	print_output(selftest, &part->client, "client");
	environment_record_outcome(selftest->environment, part->outcome);
	if (part->outcome && selftest->interrupted) {
		environment_print(environment, "%s: ended early", selftest->part_name);
	} else if (part->outcome) {
		selftest->failed++;
		record_verdict(selftest, "fail", NULL);
		environment_print(environment, "%s: FAILED", selftest->part_name);
	} else {
		selftest->passed++;
		record_verdict(selftest, "pass", NULL);
		environment_print(environment, "%s: ok: %s", selftest->part_name, run->environment.verdict);
	}
	part_free(part);
	selftest->environment->log.name = selftest->name;
	selftest->environment->log.part = NULL;
	next_part(selftest);
}

/* Why the device or the kernel cannot do a part; NULL if both can. */
static const char *reason_to_skip(const struct selftest *selftest, const struct part_row *row)
{
	const struct domain *domain = &selftest->testbed.domain;
	const struct address *address = &selftest->testbed.address;
	struct address loopback = { .family = ADDRESS_IP6, .bytes[15] = 1 };

	if (!row->multicast)
		return NULL;
	if (!domain->multicast)
		return domain->fabric == FABRIC_IWARP ? "no multicast on iWARP"
						      : "the device does not support multicast";
	if (!domain->ip6_multicast && address->family == ADDRESS_IP6)
		return "Linux's RDMA CM does not support IPv6 groups on RoCE v2";
	if (address_same_host(address, &loopback))
		return "Linux does not support IPv6 multicast on the loopback interface";
	return NULL;
}

/* The group's address contains the port: concurrent runs on one network rarely use the same group. */
static enum outcome choose_values(const struct selftest *selftest, struct part *part)
{
	const struct testbed *testbed = &selftest->testbed;
	uint16_t port;
	enum outcome outcome = testbed_find_port(testbed, &port);

	if (outcome)
		return outcome;
	address_host(&testbed->address, part->address);
	if (!part->row->multicast)
		snprintf(part->number, sizeof(part->number), "%u", port);
	else if (testbed->address.family == ADDRESS_IP4)
		snprintf(part->number, sizeof(part->number), "239.255.%u.%u", port >> 8, port & 0xff);
	else
		snprintf(part->number, sizeof(part->number), "ff15::%x", port);
	return OUTCOME_OK;
}

static void start_part(struct selftest *selftest, const struct part_row *row)
{
	struct part *part = &selftest->part;
	enum outcome outcome;

	selftest->environment->log.name = selftest->part_name;
	selftest->environment->log.part = row->command->name;
	selftest->results[row - parts].started = clock_now();
	part->row = row;
	part->environment = selftest->environment;
	part->timeout = selftest->options->common.timeout;
	part->ended = part_ended;
	part->context = selftest;
	outcome = choose_values(selftest, part);
	if (!outcome) {
		part_start(part);
		return;
	}
	part->outcome = outcome;
	part_ended(selftest);
}

static void next_part(struct selftest *selftest)
{
	while (selftest->next < PARTS && !selftest->interrupted) {
		const struct part_row *row = &parts[selftest->next++];
		const char *reason = reason_to_skip(selftest, row);

		snprintf(selftest->part_name, sizeof(selftest->part_name), "%s: %s", selftest->name,
			 row->command->name);
		if (!reason) {
			start_part(selftest, row);
			return;
		}
		selftest->skipped++;
		record_verdict(selftest, "skip", reason);
		environment_print(selftest->environment, "%s: skipped: %s (%s, %s)", selftest->part_name, reason,
				  transport_name(selftest->environment->transport), selftest->testbed.domain.device);
	}
	selftest_finish(selftest);
}

static void probe_event(void *context, struct endpoint *probe, const struct endpoint_event *event)
{
	struct selftest *selftest = context;

	selftest->probe = NULL;
	if (probe->domain)
		selftest->testbed.domain = *probe->domain;
	endpoint_destroy(probe);
	if (event->kind == EVENT_ADDRESS_RESOLVED) {
		next_part(selftest);
	} else {
		environment_record_outcome(selftest->environment, event->outcome);
		selftest_finish(selftest);
	}
}

static enum outcome find_device(struct selftest *selftest)
{
	static const struct endpoint_handlers handlers = { .event = probe_event };
	const struct testbed *testbed = &selftest->testbed;
	const struct endpoint_options options = {
		.port_space = PORT_SPACE_TCP,
		.timeout = selftest->options->common.timeout,
	};
	enum outcome outcome =
		endpoint_create(ENDPOINT_CONNECTION, testbed->channel, &options, &handlers, selftest, &selftest->probe);

	if (outcome)
		return outcome;
	return endpoint_resolve(selftest->probe, NULL, &testbed->address);
}

static enum outcome selftest_check(struct environment *environment, const void *all_options)
{
	const struct selftest_options *options = all_options;
	struct address address;

	if (!options->address)
		return OUTCOME_OK;
	if (address_parse(options->address, ADDRESS_FORMAT_IP, &address) && !address_is_any(&address) &&
	    !address_is_multicast(&address))
		return OUTCOME_OK;
	log_error(&environment->log, "-a, --address", "'%s' is not the IPv4 or IPv6 address of a local interface",
		  options->address);
	return OUTCOME_USAGE;
}

static void print_testbed(const struct environment *environment, const struct testbed *testbed)
{
	const char *transport = transport_name(environment->transport);
	const char *reason = "";
	char host[ADDRESS_TEXT_SIZE];

	if (testbed->automatic && transport_opens_devices(transport))
		reason = ": usable RDMA device found";
	else if (WITH_VERBS && testbed->automatic)
		reason = ": no usable RDMA device found (--transport verbs shows why)";
	environment_print(environment, "%s: testing transport %s at %s%s", environment->log.name, transport,
			  address_host(&testbed->address, host), reason);
}

static enum outcome selftest_start(struct environment *environment, const void *options, void **state)
{
	struct selftest *selftest = environment_allocate(environment, 1, sizeof(*selftest));
	enum outcome outcome;

	*state = NULL;
	if (!selftest)
		return OUTCOME_INTERNAL;
	selftest->environment = environment;
	selftest->options = options;
	selftest->target = selftest->options->address;
	for (unsigned i = 0; i < PARTS; i++)
		selftest->results[i].command = parts[i].command->name;
	selftest->name = environment->log.name;
	outcome = testbed_open(environment, options, &selftest->testbed);
	if (!outcome) {
		print_testbed(environment, &selftest->testbed);
		outcome = find_device(selftest);
		environment_record_outcome(environment, outcome);
		if (outcome)
			selftest_finish(selftest);
	}
	if (outcome)
		free(selftest);
	else
		*state = selftest;
	return outcome;
}

static void selftest_interrupt(void *state, enum interruption reason)
{
	struct selftest *selftest = state;

	selftest->interrupted = true;
	if (selftest->part.row) {
		part_interrupt(&selftest->part, reason);
		return;
	}
	endpoint_destroy(selftest->probe);
	selftest->probe = NULL;
	selftest_finish(selftest);
}

static void report_parts(struct report *report, const void *member)
{
	for (unsigned i = 0; i < PARTS; i++) {
		report_object(report, NULL);
		figures_report(report, result_figures, (const struct result *)member + i, NULL);
		report_end(report);
	}
}

static const struct figure selftest_figures[] = {
	FIGURE(TEXT, "target", struct selftest, target, .flags = FIGURE_LABEL),
	FIGURE(COUNT, "passes", struct selftest, passed),
	FIGURE(COUNT, "failures", struct selftest, failed),
	FIGURE(COUNT, "skips", struct selftest, skipped),
	FIGURES_OF_CODE(LIST, "parts", struct selftest, results, report_parts),
	FIGURES_END,
};

static struct figures selftest_figures_update(void *state)
{
	return (struct figures){ .rows = selftest_figures, .values = state };
}

static void selftest_stop(void *state)
{
	struct selftest *selftest = state;

	selftest->environment->log.name = selftest->name;
	selftest->environment->log.part = NULL;
	part_free(&selftest->part);
	endpoint_destroy(selftest->probe);
	free(selftest);
}

const struct command selftest_command = {
	.name = "selftest",
	.summary = "run each test with server and client in one process",
	.synopsis = "[-a ADDRESS] [-vd] [--transport " TRANSPORT_NAMES "]\n",
	.examples = OPTION_EXAMPLES("                            # over a device, else soft\n"
				    "--transport soft            # needs no device\n"
				    "-a 192.0.2.7                # over the device of that one\n"),
	.options = options_table,
	.options_size = sizeof(struct selftest_options),
	.chooses_transport = true,
	.check = selftest_check,
	.start = selftest_start,
	.interrupt = selftest_interrupt,
	.figures = WITH_REPORT ? selftest_figures_update : NULL,
	.stop = selftest_stop,
};
