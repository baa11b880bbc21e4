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

#include "cmd/lookup.h"

static const uint16_t formats[] = {
	ADDRESS_FORMAT_ANY, ADDRESS_FORMAT_IP, ADDRESS_FORMAT_IP4, ADDRESS_FORMAT_IP6, ADDRESS_FORMAT_GID,
};

static const uint16_t port_spaces[] = { PORT_SPACE_TCP, PORT_SPACE_IB };

/* clang-format off */
#define ROW(kind, letter, name, member, ...) OPTION_ROW(kind, letter, name, struct ucmatose_options, member, __VA_ARGS__)

static const struct option options_table[] = {
	ROW(OPTION_TEXT, 's', "server", server, "ADDRESS", "", "", OPTION_HELP("Connect to the server at this address"),
	    .operand = OPERAND_UNLESS_GIVEN, .needed_by = FOR_CLIENT, .excluded_by = FOR_SERVER, .brief = true),
	ROW(OPTION_TEXT, 'b', "bind", bind, "ADDRESS", "", "",
	    OPTION_HELP("Local address to connect from or listen on; ::0: all", "by the route; server: every local IPv4 address"),
	    .tags = FOR_PATH, .brief = true),
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
	ROW(OPTION_SIZE, 'S', "size", size, "BYTES", "0 to 1G", "100", OPTION_HELP("Bytes per message; 0 only connects"),
	    .brief = true),
	ROW(OPTION_INTEGER, 'p', "port", port, "PORT", "0 to 65535", "7471",
	    OPTION_HELP("Port of the server; 0: any free port"), .brief = true),
	OPTION_FLAG_ROW('m', "migrate", struct ucmatose_options, migrate,
			OPTION_HELP("Migrate all connections to a new event channel"),
			.section = SECTION_PATH),
#if WITH_EXTRAS
	WAIT_SERVER_OPTION(struct ucmatose_options, wait_server),
#endif
	IDLE_TIMEOUT_OPTION(struct ucmatose_options, idle_timeout, "Server: end if no client connects in TIME"),
	TYPE_OF_SERVICE_OPTION(struct ucmatose_options, 't'),
	ACK_TIMEOUT_OPTION(struct ucmatose_options, 'a'),
	TRANSPORT_OPTION(struct ucmatose_options, TRANSPORT_DEFAULT),
	DEBUG_OPTION(struct ucmatose_options, 0),
	OPTION_REST(connection_option_table),
};
/* clang-format on */

/* Rejects numeric addresses that cannot work before a device is opened. A name is looked up later. */
static enum outcome check_address(const struct run *run, const struct ucmatose_options *options, const char *letter,
				  const char *text, bool has_interface)
{
	enum address_format format = (enum address_format)options->format;
	struct address address;

	if (!text)
		return OUTCOME_OK;
	address.family = ADDRESS_NONE;
	if (!address_parse(text, format ? format : ADDRESS_FORMAT_IP, &address) && format) {
		log_error(&run->log, letter, "'%s' is not a numeric address of that -f", text);
		return OUTCOME_USAGE;
	}
	return host_check(&run->log, letter, text, &address, "-p", has_interface);
}

static enum outcome ucmatose_check(struct run *run, const void *all_options)
{
	const struct ucmatose_options *options = all_options;
	bool has_interface = EXTRA(options->common.path.interface != NULL);
	enum outcome outcome;

	if (has_interface && options->format == ADDRESS_FORMAT_GID) {
		log_error(&run->log, "--interface", "not with -f gid: a GID belongs to a device");
		return OUTCOME_USAGE;
	}
	if (options->server && !options->port) {
		log_error(&run->log, NULL, "-s, --server needs the server's own -p, --port, not 0");
		return OUTCOME_USAGE;
	}
	outcome = check_address(run, options, "-s", options->server, has_interface || options->bind);
	return outcome ? outcome : check_address(run, options, "-b", options->bind, has_interface);
}

const struct command ucmatose_command = {
	.name = "ucmatose",
	.summary = COMMAND_TEXT("open many connections, send messages both ways on each, disconnect"),
	.synopsis = "[-b ADDRESS] [-c N] [-C N] [-S BYTES] [OPTION...]\n"
		    "[-s] SERVER [-c N] [-C N] [-S BYTES] [OPTION...]\n",
	.examples = COMMAND_TEXT("-C 1000 -S 64K              # serve 1,000 messages each way\n"
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
	.stop = CLEAN_UP(ucmatose_stop),
};
