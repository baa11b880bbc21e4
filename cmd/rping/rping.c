/* SPDX-License-Identifier: BSD-2-Clause */
/* rping's options and command row. */
#include "cmd/rping/rping.h"

#include <string.h>

#include "cmd/lookup.h"

/* clang-format off */
#define ROW(kind, letter, name, member, ...) OPTION_ROW(kind, letter, name, struct rping_options, member, __VA_ARGS__)
#define FLAG(letter, name, member, ...)      OPTION_FLAG_ROW(letter, name, struct rping_options, member, __VA_ARGS__)

static const struct option rping_option_table[] = {
	FLAG('s', "server", server, OPTION_HELP("Run as server"),
	     .last_counts = true, .needed_by = FOR_SERVER, .excluded_by = FOR_CLIENT, .exclusive = NO_PING_TIMES,
	     .brief = true),
	FLAG('c', "client", client, OPTION_HELP("Run as client, which is the default"), .last_counts = true),
	ROW(OPTION_LIST, 'a', "address", addresses, "ADDRESS", "", "",
	    OPTION_HELP("Client: server to ping, repeatable; server: address to listen on",
			"every local IPv4 address"), .operand = OPERAND_UNLESS_GIVEN),
	ROW(OPTION_TEXT, 'I', "source", source, "ADDRESS", "", "",
	    OPTION_HELP("Client: local address to connect from", "chosen by the route"), .tags = FOR_CLIENT | FOR_PATH,
	    .section = SECTION_PATH),
	ROW(OPTION_INTEGER, 'p', "port", port, "PORT", "0 to 65535", "7174",
	    OPTION_HELP("Port of the server; 0: any free port"), .brief = true),
	FLAG('v', "verbose", verbose, OPTION_HELP("Print the data of every ping"), .section = SECTION_OUTPUT),
	FLAG('V', "validate", validate, OPTION_HELP("Verify every byte of the payload"), .brief = true),
	ROW(OPTION_INTEGER, 'C', "count", count, "N", "0 or more", "",
	    OPTION_HELP("Client: stop after N pings; server: fail a stock client that sends fewer", "0, until Ctrl-C"),
	    .brief = true),
#if WITH_REPORT
	ROW(OPTION_SIZES, 'S', "size", size, "BYTES", "1 to 1M", "", /* PING_SIZE_MAX */
	    OPTION_HELP("Client: bytes per ping; FROM-TO: each power of two, -C or 1000 pings each",
			"100, or 64 with a stock server"), .brief = true),
#else
	ROW(OPTION_SIZE, 'S', "size", size, "BYTES", "1 to 1M", "",
	    OPTION_HELP("Client: bytes per ping", "100, or 64 with a stock server"),
	    .brief = true),
#endif
	FLAG('P', "persistent", persistent, OPTION_HELP("Serve any number of clients, until interrupted"),
	     .tags = FOR_SERVER, .section = SECTION_SERVER, .brief = true),
	FLAG('q', "own-qp", own_qp, OPTION_HELP("Create and modify the queue pair without librdmacm"),
	     .section = SECTION_PATH),
#if WITH_EXTRAS
	ROW(OPTION_TEXT, 0, "targets", targets, "FILE", "", "",
	    OPTION_HELP("Also ping these, an ADDRESS [PORT] per line; - is standard input"),
	    .tags = FOR_CLIENT, .section = SECTION_CLIENT),
	ROW(OPTION_INTEGER, 0, "warmup", warmup, "N", "0 to 2147483647", "0",
	    OPTION_HELP("Number of warm-up pings, not counted"), .tags = FOR_CLIENT,
	    .section = SECTION_CLIENT),
	ROW(OPTION_DURATION, 0, "interval", interval, "TIME", "0 to 24h", "",
	    OPTION_HELP("Client: time from the start of one ping to the next", "0, no pause"),
	    .tags = FOR_CLIENT, .section = SECTION_PACE, .brief = true),
	ROW(OPTION_DURATION, 0, "duration", duration, "TIME", "1ms to 8784h", "",
	    OPTION_HELP("Client: stop this long after the first measured ping", "no end"), .tags = FOR_CLIENT,
	    .section = SECTION_PACE, .brief = true),
#if WITH_REPORT
	ROW(OPTION_INTEGER, 0, "paths", paths, "N", "2 to 64", "", /* UDP_SENDERS_MAX */
	    OPTION_HELP("Ping over N paths at once, each with its own UDP port, and compare them; the server "
			"needs -P", "one path"), .tags = FOR_CLIENT, .section = SECTION_CLIENT),
	FLAG(0, "equal-paths", equal_paths,
	     OPTION_HELP("Fail if a path is worse than the others"),
	     .tags = FOR_CLIENT, .section = SECTION_CLIENT),
#endif
	FLAG(0, "reconnect", reconnect,
	     OPTION_HELP("Reconnect whenever the connection fails; lost pings fail the run"),
	     .tags = FOR_CLIENT, .section = SECTION_CLIENT),
	WAIT_SERVER_OPTION(struct rping_options, wait_server),
	ROW(OPTION_INTEGER, 0, "max-clients", max_clients, "N", "1 or more", "",
	    OPTION_HELP("End after N clients", "none"),
	    .tags = FOR_SERVER, .section = SECTION_SERVER),
#endif
	IDLE_TIMEOUT_OPTION(struct rping_options, idle_timeout, "Server: end after TIME without a client"),
	TYPE_OF_SERVICE_OPTION(struct rping_options, 0),
	ACK_TIMEOUT_OPTION(struct rping_options, 0),
	TRANSPORT_OPTION(struct rping_options, TRANSPORT_DEFAULT),
	DEBUG_OPTION(struct rping_options, 'd'),
	OPTION_REST(connection_option_table),
};
/* clang-format on */

/* Returns why the options conflict, or NULL. */
static const char *options_fault(const struct rping_options *options)
{
	size_t addresses = options->addresses.count;
	bool client = !options->server, file = EXTRA(options->targets);

	if (WITH_DIAGNOSTICS && options->client && !addresses && !file)
		return "-c, --client needs an ADDRESS to ping; of -s and -c the last one counts";
	if (client && !addresses && !file)
		return "an ADDRESS to ping, or -s, --server is needed";
	if (client && !options->port)
		return "a client needs the server's own -p, --port, not 0";
	if (OPTION_LIST_MAX > 1 && !client && addresses > 1)
		return "-s, --server listens on one -a, --address only";
	if (rping_sweep(options) && (!client || addresses != 1 || file || options->common.reporting.interval))
		return "-S, --size: FROM-TO is for a client with one ADDRESS, without --interval-report";
	if (rping_sweep(options) && EXTRA(options->reconnect))
		return "--reconnect: pings of one size only, not -S FROM-TO";
	if (rping_sweep(options) && EXTRA(options->paths))
		return "--paths: pings of one size only, not -S FROM-TO";
	if (EXTRA(options->equal_paths) && !options->paths)
		return "--equal-paths needs --paths";
	return NULL;
}

/* Checks addresses that need no look-up before a device is opened. */
static enum outcome rping_check(struct run *run, const void *command_options)
{
	const struct rping_options *options = command_options;
	const struct log *log = &run->log;
	bool server = options->server;
	enum outcome outcome = OUTCOME_OK;
	const char *option, *fault;

	for (size_t i = 0; i < options->addresses.count && !outcome; i++) {
		const char *given = options->addresses.texts[i];
		const char *text = server && !i ? rping_listen_address(options) : given;

		if (text != given)
			log_hint(log, "'%s' is a device, not an address: ignored (use --device)", given);
		/* As in ping -s 100. */
		option = WITH_HELP && server && !text[strspn(text, "0123456789")] ? "-s" : "ADDRESS";
		outcome = rping_client_check(options, option, text, log);
		if (outcome && EXTRA(host_is_device(text)))
			log_hint(log, "did you mean --device %s? -d, --debug takes no value", text);
	}
	if (outcome)
		return outcome;
	fault = options_fault(options);
	if (!fault)
		return OUTCOME_OK;
	log_error(log, NULL, "%s", fault);
	log_hint(log, "%s --help lists the options", log->name);
	return OUTCOME_USAGE;
}

static enum live rping_live(const void *command_options)
{
	const struct rping_options *options = command_options;

	if (rping_sweep(options))
		return LIVE_STEPS;
	return options->verbose ? LIVE_NO : options->interval ? LIVE_EVENTS : LIVE_ROWS;
}

static enum outcome rping_start(struct run *run, const void *command_options, void **state)
{
	const struct rping_options *options = command_options;

	return (options->server ? rping_server_start : rping_client_start)(run, options, state);
}

static bool is_server(const void *state)
{
	return (*(const struct rping_options *const *)state)->server;
}

static bool rping_is_open_ended(const void *command_options)
{
	const struct rping_options *options = command_options;

	return !options->server && !options->count && !EXTRA(options->duration) && !rping_sweep(options);
}

static void rping_interrupt(void *state, enum interruption reason)
{
	(is_server(state) ? rping_server_interrupt : rping_client_interrupt)(state, reason);
}

static struct figures rping_figures(void *state)
{
	return (is_server(state) ? rping_server_figures : rping_client_figures)(state);
}

static void rping_stop(void *state)
{
	(is_server(state) ? rping_server_stop : rping_client_stop)(state);
}

const struct command rping_command = {
	.name = "rping",
	.summary = COMMAND_TEXT("ping over a reliable connection, with RDMA READ and WRITE"),
	.synopsis = "-s [-vVdPq] [-a ADDRESS] [-p PORT]\n"
		    "-c [-vVdq] [-C N] [-S BYTES] [-p PORT] -a ADDRESS...\n"
		    "ADDRESS... [OPTION...]\n",
	.examples = COMMAND_TEXT("-s                          # serve one client; -P: many\n"
				 "192.0.2.7 -C 10 -V          # ten pings, verify every byte\n"
				 "192.0.2.7 --duration 1m     # as many pings as a minute allows\n"),
	.options = rping_option_table,
	.options_size = sizeof(struct rping_options),
	.linked = true,
	.check = rping_check,
	.read = EXTRA(rping_client_read),
	.is_open_ended = rping_is_open_ended,
	.start = rping_start,
	.interrupt = rping_interrupt,
	.live = WITH_REPORT ? rping_live : NULL,
	.figures = WITH_REPORT ? rping_figures : NULL,
	.stop = CLEAN_UP(rping_stop),
};
