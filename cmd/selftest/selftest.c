/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * selftest: runs server and client of every command in this process, one command after the other, as child runs
 * (cmd/child_run.h), and prints a verdict for each.
 *
 * It is the only command that selects a transport by itself. Its first line names that transport.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/child_run.h"
#include "core/host.h"
#include "core/interface.h"
#include "core/units.h"

enum {
	LOOPBACK_TRIED = 16, /* 127.0.0.1 and following: a soft process needs its own address */
};

/* Added to --timeout, within which a command ends by itself; a receiver waits a little longer for late datagrams. */
#define MARGIN CLOCK_NS_PER_S

struct selftest_options {
	struct common_options common;
	const char *address;
	bool verbose;
};

/* clang-format off */
static const struct option options_table[] = {
	OPTION_ROW(OPTION_TEXT, 'a', "address", struct selftest_options, address, "ADDRESS", "", "",
		   OPTION_HELP("Local address to test", "a device's; with soft 127.0.0.1"), .brief = true),
	OPTION_FLAG_ROW('v', "verbose", struct selftest_options, verbose,
			OPTION_HELP("Also print the output of the commands"), .brief = true),
	TRANSPORT_OPTION(struct selftest_options, TRANSPORT_AUTOMATIC),
	DEBUG_OPTION(struct selftest_options, 'd'),
#if WITH_EXTRAS
	SPIN_OPTIONS(struct selftest_options, common.),
#endif
	OPTION_REST(common_option_table),
};

/* Datagrams fit the smallest IB MTU, 256 bytes. */
static const struct part {
	const struct command *command;
	const char *server, *client; /* arguments: '@' is the address, '#' the port or multicast group */
	bool multicast;		     /* the verdict is the server's, else the client's */
} parts[] = {
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
	const char *reason;  /* why a part was skipped */
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
	struct run *run;
	const struct selftest_options *options;
	const char *target;
	const char *name; /* the log's name, without a part's */
	char part_name[CHILD_RUN_NAME_SIZE];
	struct address address;
	struct channel *channel;
	struct domain domain; /* a copy, as the domain may be freed; .device is NULL until the address is resolved */
	struct child_run server, client; /* the running part's */
	struct loop_timer limit;	 /* for the end whose peer has ended, then for its shutdown */
	struct result results[PARTS];
	uint64_t passed, failed, skipped;
	bool probed; /* the address is resolved to its device, or has none */
	bool limit_passed;
	bool interrupted;
};

/* ---- transport, address and ports ---- */

/* Finds a free port of the address, released in the loop's next turn. */
static enum outcome find_port(const struct selftest *selftest, uint16_t *port)
{
	static const struct endpoint_handlers handlers = { 0 };
	const struct endpoint_options options = { .port_space = PORT_SPACE_TCP };
	struct endpoint *listener;
	enum outcome outcome =
		endpoint_create(ENDPOINT_LISTENER, selftest->channel, &options, &handlers, NULL, &listener);

	if (outcome)
		return outcome;
	outcome = endpoint_listen(listener, &selftest->address);
	*port = listener->local.port;
	endpoint_destroy(listener);
	return outcome;
}

static bool needs_no_device(const struct selftest *selftest)
{
	return !transport_opens_devices(transport_name(selftest->run->transport));
}

/*
 * The requested address, else the first one of a device; or without devices a free one of the loopback interface. On
 * failure sets *error to the requested or first address's, which is the cause.
 */
static enum outcome find_address(struct selftest *selftest, struct error *error)
{
	bool named = selftest->target, listed = !named && !needs_no_device(selftest);
	struct interface_address *list = NULL;
	size_t count = listed ? interface_list(NULL, &list) : named ? 1 : LOOPBACK_TRIED;
	enum outcome outcome = OUTCOME_NO_DEVICE;
	char host[ADDRESS_TEXT_SIZE];
	uint16_t port;

	error_clear(error);
	for (size_t i = 0; outcome && i < count; i++) {
		selftest->address = (struct address){ ADDRESS_IP4, .bytes = { 127, 0, 0, (uint8_t)(i + 1) } };
		if (named)
			address_parse(selftest->target, ADDRESS_FORMAT_IP, &selftest->address);
		else if (listed)
			selftest->address = list[i].address;
		if (!listed || !list[i].loopback)
			outcome = find_port(selftest, &port);
		if (outcome && !error_is_set(error))
			*error = selftest->run->transport->error;
	}
	free(list);
	if (outcome && listed)
		host_no_address(error);
	if (outcome)
		return listed ? OUTCOME_NO_DEVICE : outcome;
	/* Packets to its own addresses pass the loopback interface. */
	if (!needs_no_device(selftest) || !interface_is_down("lo"))
		return OUTCOME_OK;
	error_set(error, address_host(&selftest->address, host),
		  "this host cannot send to itself: the interface lo is down");
	error_hint(error, "ip link set lo up");
	return OUTCOME_NO_DEVICE;
}

static enum outcome try_transport(struct selftest *selftest, const char *name, struct error *error)
{
	struct run *run = selftest->run;
	enum outcome outcome = common_open(&selftest->options->common, name, run, error);

	if (outcome)
		return outcome;
	outcome = channel_create(run->transport, &selftest->channel);
	if (outcome)
		*error = run->transport->error;
	else
		outcome = find_address(selftest, error);
	if (outcome) {
		transport_close(run->transport);
		run->transport = NULL;
	}
	return outcome;
}

/*
 * Opens run->transport and selects a local address: an address is usable if the backend accepts a listener
 * there, which it reports immediately and without a packet. Without a named transport, verbs if an address is usable,
 * else soft.
 */
static enum outcome select_transport(struct selftest *selftest, const char *name)
{
	struct error verbs, soft, *error = &verbs;
	enum outcome outcome = try_transport(selftest, name ? name : "verbs", error);

	if (outcome && !name) {
		enum outcome other = try_transport(selftest, "soft", &soft);

		/* Neither is usable: the cause is soft's, or verbs' if soft is not built in. */
		if (other != OUTCOME_USAGE) {
			outcome = other;
			error = &soft;
		}
	}
	if (outcome)
		log_report(&selftest->run->log, error);
	return outcome;
}

/* ---- the parts ---- */

static void selftest_finish(struct selftest *selftest)
{
	struct run *run = selftest->run;
	const char *device = selftest->domain.device;
	uint64_t done = selftest->passed + selftest->failed + selftest->skipped;
	char skipped[32] = "";

	if (selftest->interrupted && done < PARTS) {
		log_error(&run->log, NULL, "ended early, after %" PRIu64 " of %u parts", done, (unsigned)PARTS);
		run_record_outcome(run, OUTCOME_FAILED);
	}
	if (selftest->skipped)
		log_text(skipped, sizeof(skipped), ", %" PRIu64 " skipped", selftest->skipped);
	if (run->outcome)
		run_finish(run, OUTCOME_OK, device, "%" PRIu64 " of %u parts passed%s", selftest->passed,
			   (unsigned)PARTS, skipped);
	else
		run_finish(run, OUTCOME_OK, device, "ok: %" PRIu64 " part%s passed%s", selftest->passed,
			   units_plural(selftest->passed), skipped);
}

/* --verbose: the output of a child run, each line after its role. */
static void print_output(const struct selftest *selftest, const struct child_run *child, const char *role)
{
	const char *line = child->text ? child->text : "";

	while (selftest->options->verbose && *line) {
		size_t length = strcspn(line, "\n");

		run_print(selftest->run, "  %s| %.*s", role, (int)length, line);
		line += length + (line[length] == '\n');
	}
}

static void record_verdict(const struct selftest *selftest, struct result *result, const char *verdict,
			   const char *reason)
{
	struct report *record;

	result->verdict = verdict;
	result->reason = reason;
	if (result->started)
		result->duration = clock_now() - result->started;
	record = run_begin_record(selftest->run, "part");
	if (!record)
		return;
	figures_report(record, result_figures, result, NULL);
	report_close(record);
}

/* Why the device or the kernel lacks support for a part; NULL: neither does. */
static const char *reason_to_skip(const struct selftest *selftest, const struct part *part)
{
	const struct domain *domain = &selftest->domain;
	const struct address *address = &selftest->address;
	struct address loopback = { .family = ADDRESS_IP6, .bytes[15] = 1 };

	if (selftest->run->log.errors->first.kind == ERROR_NO_REPLY)
		return "this host does not reach itself";
	if (!part->multicast)
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

/* The port, or the group: its address contains the port, because concurrent runs on one network rarely share it. */
static enum outcome choose_number(const struct selftest *selftest, bool multicast, char number[ADDRESS_TEXT_SIZE])
{
	uint16_t port;
	enum outcome outcome = find_port(selftest, &port);

	if (outcome)
		return outcome;
	if (!multicast)
		log_text(number, ADDRESS_TEXT_SIZE, "%u", port);
	else if (selftest->address.family == ADDRESS_IP4)
		log_text(number, ADDRESS_TEXT_SIZE, "239.255.%u.%u", port >> 8, port & 0xff);
	else
		log_text(number, ADDRESS_TEXT_SIZE, "ff15::%x", port);
	return OUTCOME_OK;
}

static void start(struct selftest *selftest, struct child_run *child, const struct part *part, const char *role,
		  const char *format, const char *number)
{
	char arguments[CHILD_RUN_ARGUMENTS_SIZE], host[ADDRESS_TEXT_SIZE];

	log_fill(arguments, sizeof(arguments), format, address_host(&selftest->address, host), number);
	child_run_start(child, selftest->run, part->command, role, selftest->options->common.timeout, arguments);
}

static void interrupt_part(struct selftest *selftest, enum interruption reason)
{
	child_run_interrupt(&selftest->server, reason);
	child_run_interrupt(&selftest->client, reason);
}

static enum outcome first_failure(const struct selftest *selftest)
{
	enum outcome outcome = selftest->client.run.outcome;

	return outcome ? outcome : selftest->server.run.outcome;
}

static void limit_passed(void *context)
{
	struct selftest *selftest = context;

	selftest->limit_passed = true;
	loop_stop(selftest->run->loop);
}

/* Waits until both have ended. Returns false after a time. */
static bool wait_for_end(struct selftest *selftest)
{
	struct child_run *server = &selftest->server, *client = &selftest->client;

	selftest->limit_passed = false;
	loop_timer_start(selftest->run->loop, &selftest->limit, selftest->options->common.timeout + MARGIN,
			 limit_passed, selftest);
	while ((child_run_goes_on(server) || child_run_goes_on(client)) && !selftest->limit_passed &&
	       run_wait(selftest->run))
		;
	loop_timer_stop(&selftest->limit);
	return !server->running && !client->running;
}

/* Starts the server, and the client when the server is ready. */
static void start_both(struct selftest *selftest, const struct part *part, const char *number)
{
	struct run *run = selftest->run;
	struct child_run *server = &selftest->server;

	loop_timer_start(run->loop, &selftest->limit, 0, limit_passed, selftest);
	run_wait(run); /* one turn of the loop, which releases the port */
	start(selftest, server, part, "server", part->server, number);
	while (child_run_goes_on(server) && !server->run.ready.family && run_wait(run))
		;
	if (server->running && !selftest->interrupted)
		start(selftest, &selftest->client, part, "client", part->client, number);
	else if (!server->run.outcome) /* without a client nothing was tested */
		server->run.outcome = OUTCOME_FAILED;
}

/* Waits for both, and ends the one that goes on long after its peer, which is a failure. */
static enum outcome end_both(struct selftest *selftest, enum outcome outcome)
{
	struct run *run = selftest->run;
	struct child_run *server = &selftest->server, *client = &selftest->client;
	char limit[UNITS_TEXT_SIZE];

	if (!wait_for_end(selftest)) {
		if (!outcome)
			log_error(server->running ? &server->run.log : &client->run.log, NULL,
				  "not finished %s after its peer",
				  units_duration(selftest->options->common.timeout + MARGIN, limit));
		outcome = outcome ? outcome : OUTCOME_FAILED;
		interrupt_part(selftest, INTERRUPTION_SIGNAL);
		wait_for_end(selftest);
	}
	child_run_stop(server);
	child_run_stop(client);
	/* The deadline ends the two first; command.c interrupts in the next turn of the loop. */
	while (loop_deadline_passed(run->loop) && !selftest->interrupted && run_wait(run))
		;
	return outcome ? outcome : first_failure(selftest);
}

/* Runs both ends until one has ended. Returns the first failure; the other end's errors are only its consequences. */
static enum outcome run_part(struct selftest *selftest, const struct part *part)
{
	struct child_run *server = &selftest->server, *client = &selftest->client;
	char number[ADDRESS_TEXT_SIZE];
	enum outcome outcome = choose_number(selftest, part->multicast, number);

	if (outcome)
		return outcome;
	start_both(selftest, part, number);
	while (child_run_goes_on(server) && child_run_goes_on(client) && run_wait(selftest->run))
		;
	outcome = first_failure(selftest);
	if (outcome) {
		server->run.log.silent = client->run.log.silent = true;
		interrupt_part(selftest, INTERRUPTION_SIGNAL);
	}
	return end_both(selftest, outcome);
}

static void test(struct selftest *selftest, const struct part *part, struct result *result)
{
	struct run *run = selftest->run;
	const struct child_run *child = part->multicast ? &selftest->server : &selftest->client;
	const char *name = selftest->part_name, *reason = reason_to_skip(selftest, part);
	enum outcome outcome;

	log_text(selftest->part_name, sizeof(selftest->part_name), "%s: %s", selftest->name, part->command->name);
	if (reason) {
		selftest->skipped++;
		record_verdict(selftest, result, "skip", reason);
		run_print(run, "%s: skipped: %s (%s, %s)", name, reason, transport_name(run->transport),
			  selftest->domain.device);
		return;
	}
	run->log.name = name;
	run->log.part = part->command->name;
	result->started = clock_now();
	outcome = run_part(selftest, part);
	print_output(selftest, &selftest->server, "server");
	print_output(selftest, &selftest->client, "client");
	run_record_outcome(run, outcome);
	if (outcome && selftest->interrupted) {
		run_print(run, "%s: ended early", name);
	} else {
		++*(outcome ? &selftest->failed : &selftest->passed);
		record_verdict(selftest, result, outcome ? "fail" : "pass", NULL);
		run_print(run, "%s: %s%s", name, outcome ? "FAILED" : "ok: ", outcome ? "" : child->run.verdict);
	}
	child_run_free(&selftest->client);
	child_run_free(&selftest->server);
	run->log.name = selftest->name;
	run->log.part = NULL;
}

static void device_resolved(void *context, struct endpoint *probe, const struct endpoint_event *event)
{
	struct selftest *selftest = context;

	if (probe->domain)
		selftest->domain = *probe->domain;
	run_record_outcome(selftest->run, event->outcome);
	selftest->probed = true;
	loop_stop(selftest->run->loop);
}

/* Resolves the address to its device. */
static enum outcome find_device(struct selftest *selftest)
{
	static const struct endpoint_handlers handlers = { .event = device_resolved };
	const struct endpoint_options options = {
		.port_space = PORT_SPACE_TCP,
		.timeout = selftest->options->common.timeout,
	};
	struct endpoint *probe = NULL;
	enum outcome outcome =
		endpoint_create(ENDPOINT_CONNECTION, selftest->channel, &options, &handlers, selftest, &probe);

	if (!outcome)
		outcome = endpoint_resolve(probe, NULL, &selftest->address);
	run_record_outcome(selftest->run, outcome);
	while (!outcome && !selftest->probed && !selftest->interrupted && run_wait(selftest->run))
		;
	endpoint_destroy(probe);
	return selftest->run->outcome;
}

static enum outcome selftest_check(struct run *run, const void *all_options)
{
	const struct selftest_options *options = all_options;
	struct address address;

	if (!options->address)
		return OUTCOME_OK;
	if (address_parse(options->address, ADDRESS_FORMAT_IP, &address) && !address_is_any(&address) &&
	    !address_is_multicast(&address))
		return OUTCOME_OK;
	log_error(&run->log, "-a, --address", "'%s' is not the IPv4 or IPv6 address of a local interface",
		  options->address);
	return OUTCOME_USAGE;
}

static void print_transport(const struct selftest *selftest)
{
	const char *transport = transport_name(selftest->run->transport);
	const char *reason = "";
	char host[ADDRESS_TEXT_SIZE];

	if (!common_transport(&selftest->options->common) && transport_opens_devices(transport))
		reason = ": usable RDMA device found";
	else if (WITH_VERBS && !common_transport(&selftest->options->common))
		reason = ": no usable RDMA device found (--transport verbs shows why)";
	run_print(selftest->run, "%s: testing transport %s at %s%s", selftest->name, transport,
		  address_host(&selftest->address, host), reason);
}

static enum outcome selftest_start(struct run *run, const void *options, void **state)
{
	struct selftest *selftest = *state = run_allocate(run, 1, sizeof(*selftest));

	if (!selftest)
		return OUTCOME_INTERNAL;
	selftest->run = run;
	selftest->options = options;
	selftest->target = selftest->options->address;
	for (unsigned i = 0; i < PARTS; i++)
		selftest->results[i].command = parts[i].command->name;
	selftest->name = run->log.name;
	return select_transport(selftest, common_transport(&selftest->options->common));
}

static void selftest_run(void *state)
{
	struct selftest *selftest = state;
	enum outcome no_device;

	print_transport(selftest);
	no_device = find_device(selftest);
	for (unsigned i = 0; !no_device && i < PARTS && !selftest->interrupted; i++)
		test(selftest, &parts[i], &selftest->results[i]);
	selftest_finish(selftest);
}

static void selftest_interrupt(void *state, enum interruption reason)
{
	struct selftest *selftest = state;

	selftest->interrupted = true;
	interrupt_part(selftest, reason);
	loop_stop(selftest->run->loop);
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

const struct command selftest_command = {
	.name = "selftest",
	.summary = COMMAND_TEXT("run each test with server and client in one process"),
	.synopsis = "[-a ADDRESS] [-vd] [--transport " TRANSPORT_NAMES "]\n",
	.examples = COMMAND_TEXT("                            # over a device, else soft\n"
				 "--transport soft            # needs no device\n"
				 "-a 192.0.2.7                # over that address's device\n"),
	.options = options_table,
	.options_size = sizeof(struct selftest_options),
	.chooses_transport = true,
	.check = selftest_check,
	.start = selftest_start,
	.run = selftest_run,
	.interrupt = selftest_interrupt,
	.figures = WITH_REPORT ? selftest_figures_update : NULL,
	.stop = free,
};
