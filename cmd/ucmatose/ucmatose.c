/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ucmatose: makes any number of connections between two hosts, sends messages from the server to the client and then
 * back on each of them, and disconnects.
 *
 *   client                                   server
 *     |  connect, with the hello               |
 *     |--------------------------------------->|  for each connection; no message is
 *     |               accept, with the hello   |  sent before all are established
 *     |<---------------------------------------|
 *     |                    count messages      |
 *     |<=======================================|
 *     |  count messages                        |
 *     |=======================================>|
 *     |                         disconnect     |
 *     |<---------------------------------------|
 *
 * A stock peer sends no hello, and arbitrary bytes: only the number and the lengths of its messages are checked.
 */
#include "cmd/ucmatose/ucmatose.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cmd/host.h"
#include "cmd/table.h"
#include "core/units.h"

static const uint16_t formats[] = {
	ADDRESS_FORMAT_ANY, ADDRESS_FORMAT_IP, ADDRESS_FORMAT_IP, ADDRESS_FORMAT_IP6, ADDRESS_FORMAT_GID,
};

static const uint16_t port_spaces[] = { PORT_SPACE_TCP, PORT_SPACE_IB };

/* clang-format off */
#define ROW(kind, letter, name, member, ...) OPTION_ROW(kind, letter, name, struct ucmatose_options, member, __VA_ARGS__)

static const struct option options_table[] = {
	ROW(OPTION_TEXT, 's', "server", server, "ADDRESS", "", "", OPTION_HELP("Connect to the server at this address"),
	    .operand = OPERAND_UNLESS_GIVEN, .needed_by = FOR_CLIENT, .excluded_by = FOR_SERVER, .brief = true),
	ROW(OPTION_TEXT, 'b', "bind", bind, "ADDRESS", "", "",
	    OPTION_HELP("Local address to connect from or to listen on; ::0 is any", "a server listens on any IPv4 one"),
	    .brief = true),
	OPTION_ALIAS_ROW("source", "bind", "ADDRESS", OPTION_HELP("Same as --bind, as in rping")),
	ROW(OPTION_WORD, 'f', "format", format, "FORMAT", "one of name, ip, ipv4, ipv6, gid", "name",
	    OPTION_HELP("Address format"), .section = SECTION_PATH),
	OPTION_VALUES_ROW(formats),
	ROW(OPTION_WORD, 'P', "port-space", port_space, "SPACE", "one of tcp, ib", "tcp", OPTION_HELP("RDMA port space"),
	    .section = SECTION_PATH),
	OPTION_VALUES_ROW(port_spaces),
	ROW(OPTION_INTEGER, 'c', "connections", connections, "N", "1 to 65535", "1", OPTION_HELP("Number of connections"),
	    .brief = true),
	ROW(OPTION_INTEGER, 'C', "count", count, "N", "0 to 2147483648", "10",
	    OPTION_HELP("Messages each way on each connection; 0 only connects"), .brief = true),
	ROW(OPTION_SIZE, 'S', "size", size, "BYTES", "0 to 1G", "100", OPTION_HELP("Bytes of each message; 0 only connects"),
	    .brief = true),
	ROW(OPTION_INTEGER, 'p', "port", port, "PORT", "0 to 65535", "7471",
	    OPTION_HELP("Port of the server; 0: any free port"), .brief = true),
	OPTION_FLAG_ROW('m', "migrate", struct ucmatose_options, migrate,
			OPTION_HELP("Migrate all connections to a new event channel after the last message"),
			.section = SECTION_PATH),
#if WITH_EXTRAS
	WAIT_SERVER_OPTION(struct ucmatose_options, wait_server),
#endif
	IDLE_TIMEOUT_OPTION(struct ucmatose_options, idle_timeout, "Server: exit if no client connects in this time"),
	TYPE_OF_SERVICE_OPTION(struct ucmatose_options, 't'),
	ACK_TIMEOUT_OPTION(struct ucmatose_options, 'a'),
	TRANSPORT_OPTION(struct ucmatose_options, TRANSPORT_DEFAULT),
	DEBUG_OPTION(struct ucmatose_options, 0),
	OPTION_REST(connection_option_table),
};
/* clang-format on */

/* False after an error. The family of *address is ADDRESS_NONE if text is NULL or a name to be resolved later. */
static bool check_address(const struct environment *environment, int64_t format, const char *letter, const char *text,
			  bool has_interface, struct address *address)
{
	static const char *const kinds[] = {
		[ADDRESS_FORMAT_IP] = "an IPv4 or IPv6 address in numbers (-f ip)",
		[ADDRESS_FORMAT_IP6] = "an IPv6 address in numbers (-f ipv6)",
		[ADDRESS_FORMAT_GID] = "a GID, written like an IPv6 address (-f gid)",
	};
	bool named = format == ADDRESS_FORMAT_ANY;

	address->family = ADDRESS_NONE;
	if (!text)
		return true;
	if (!address_parse(text, named ? ADDRESS_FORMAT_IP : (enum address_format)format, address) && !named) {
		log_error(&environment->log, letter, "'%s' is not %s", text, kinds[format]);
		return false;
	}
	return !host_check(&environment->log, letter, text, address, "-p", has_interface);
}

/* Rejects numeric addresses that cannot work before a device is opened. */
static enum outcome ucmatose_check(struct environment *environment, const void *all_options)
{
	const struct ucmatose_options *options = all_options;
	bool has_interface = EXTRA(options->common.path.interface);
	struct address server, source;

	if (has_interface && options->format == ADDRESS_FORMAT_GID) {
		log_error(&environment->log, "--interface", "not with -f gid: a GID belongs to a device");
		return OUTCOME_USAGE;
	}
	if (options->server && !options->port) {
		log_error(&environment->log, NULL, "-s, --server needs the server's own -p, --port, not 0");
		return OUTCOME_USAGE;
	}
	if (!check_address(environment, options->format, "-s", options->server, has_interface || options->bind,
			   &server) ||
	    !check_address(environment, options->format, "-b", options->bind, has_interface, &source))
		return OUTCOME_USAGE;
	if (server.family && source.family && server.family != source.family) {
		log_error(&environment->log, "-b", "%s is not of the same family as -s %s", options->bind,
			  options->server);
		return OUTCOME_USAGE;
	}
	return OUTCOME_OK;
}

/* Family of the any address, without -b. The IPv6 one also accepts IPv4 connections, but not on iWARP. */
static enum address_family any_family(const struct ucmatose_options *options)
{
	switch (options->format) {
	case ADDRESS_FORMAT_GID:
		return ADDRESS_GID;
	case ADDRESS_FORMAT_IP6:
		return ADDRESS_IP6;
	default:
		return EXTRA(options->common.family.ip6) ? ADDRESS_IP6 : ADDRESS_IP4;
	}
}

/* Looks the names up, and starts to listen or to connect. */
static void start_run(void *context)
{
	struct ucmatose *run = context;
	const struct ucmatose_options *options = run->options;
	enum outcome outcome = OUTCOME_OK;
	struct resolver local;

	if (options->bind) {
		outcome = lookup(&local, run->environment, &options->common, options->bind,
				 (enum address_format)options->format);
		run->source = local.addresses[0];
	} else if (run->is_server) {
		run->source.family = any_family(options);
	}
	if (!outcome)
		outcome = run->is_server ? ucmatose_server_start(run) : ucmatose_client_start(run);
	if (outcome)
		ucmatose_fail_start(run, outcome);
}

static void print_ack_timeout(const struct ucmatose *run)
{
	int64_t exponent = run->options->common.path.ack_timeout;
	char text[UNITS_TEXT_SIZE];

	if (exponent)
		environment_print(run->environment, "cmatose: ack timeout %" PRId64 ": 4.096 us x 2^%" PRId64 " = %s",
				  exponent, exponent, units_time(INT64_C(4096) << exponent, text));
	else
		environment_print(run->environment, "cmatose: ack timeout 0: no limit");
}

static enum outcome ucmatose_start(struct environment *environment, const void *all_options, void **state)
{
	const struct ucmatose_options *options = all_options;
	struct ucmatose *run = *state = environment_allocate(environment, 1, sizeof(*run));
	enum outcome outcome;

	if (!run)
		return OUTCOME_INTERNAL;
	run->environment = environment;
	run->options = options;
	run->is_server = !options->server;
	run->client_id = run->is_server ? 0 : (uint16_t)clock_now() | 1;
	run->wanted = (uint32_t)options->connections;
	run->messages = options->size ? (uint64_t)options->count : 0;
	run->connections = environment_allocate(environment, run->wanted, sizeof(*run->connections));
	if (!run->connections)
		return OUTCOME_INTERNAL;
	repeats_initialise(&run->repeats, &environment->log);
	run->endpoint_options = (struct endpoint_options){
		.log = &run->repeats.log,
		.port_space = (enum port_space)options->port_space,
		.timeout = options->common.timeout,
		.send_depth = 1,
		.receive_depth = 1,
		.path = &options->common.path,
	};
	outcome = channel_create(environment->transport, &run->channel);
	if (outcome)
		return outcome;
	environment_print(run->environment, run->is_server ? "cmatose: starting server" : "cmatose: starting client");
	if (options->common.path.ack_timeout != PATH_UNSET)
		print_ack_timeout(run);
	loop_timer_start(environment->loop, &run->phase_timer, 0, start_run, run);
	return OUTCOME_OK;
}

static void ucmatose_stop(void *state)
{
	struct ucmatose *run = state;

	loop_timer_stop(&run->phase_timer);
	loop_timer_stop(&run->progress_timer);
	dial_stop(&run->dial);
	for (uint32_t i = 0; i < run->begun; i++)
		endpoint_destroy(run->connections[i].endpoint);
	endpoint_destroy(run->listener);
	while (run->memory) {
		struct ucmatose_memory *memory = run->memory;

		run->memory = memory->next;
		region_destroy(memory->region);
		free(memory);
	}
	if (run->channel)
		channel_destroy(run->channel);
	free(run->connections);
	free(run);
}

const struct command ucmatose_command = {
	.name = "ucmatose",
	.summary = "make many connections, send messages both ways on each, and end them",
	.synopsis = "[-b ADDRESS] [-c N] [-C N] [-S BYTES] [OPTION...]\n"
		    "[-s] SERVER [-c N] [-C N] [-S BYTES] [OPTION...]\n",
	.examples = OPTION_EXAMPLES("-C 1000 -S 64K              # serve 1,000 messages each way\n"
				    "192.0.2.7 -C 1000 -S 64K    # its client: same -c, -C, -S\n"
				    "192.0.2.7 -c 100 -C 0       # only connect: same -c, -C\n"),
	.options = options_table,
	.options_size = sizeof(struct ucmatose_options),
	.linked = true,
	.prints_status = true,
	.check = ucmatose_check,
	.start = ucmatose_start,
	.interrupt = ucmatose_interrupt,
	.figures = WITH_REPORT ? ucmatose_figures_update : NULL,
	.stop = ucmatose_stop,
};
