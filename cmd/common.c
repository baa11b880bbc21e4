/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/common.h"

#include <stdlib.h>

#include "cmd/command.h"

/* Long enough for a busy subnet manager; the kernel's own timeouts are 75 to 100 s. */
#define TIMEOUT_DEFAULT (10 * CLOCK_NS_PER_S)

/* clang-format off */
#define ROW(kind, long_name, member, ...) OPTION_ROW(kind, 0, long_name, struct common_options, member, __VA_ARGS__)

const struct option common_option_table[] = {
	ROW(OPTION_DURATION, "timeout", timeout, .minimum = CLOCK_NS_PER_MS, .maximum = 86400 * CLOCK_NS_PER_S,
	    .initial = TIMEOUT_DEFAULT, .argument = "TIME",
	    OPTION_HELP("Maximum time of each phase: lookup, resolve, connect, reply, disconnect")),
	ROW(OPTION_DURATION, "deadline", deadline, .minimum = CLOCK_NS_PER_MS, .maximum = 366 * 86400 * CLOCK_NS_PER_S,
	    .initial = 0, .argument = "TIME",
	    OPTION_HELP("Maximum time of the whole run; an orderly shutdown may take 250 ms more", "none")),
#if WITH_REPORT
	ROW(OPTION_FLAG, "json", reporting.json, OPTION_HELP("Print one JSON object at the end and nothing else")),
	ROW(OPTION_FLAG, "json-stream", reporting.json_stream, OPTION_HELP("Print JSON objects, one per line, as events occur")),
	ROW(OPTION_FLAG, "csv", reporting.csv,
	    OPTION_HELP("Print CSV: a header, a row per interval and a row for the whole run")),
	ROW(OPTION_TEXT, "prometheus", reporting.prometheus, .argument = "FILE",
	    OPTION_HELP("Write metrics to FILE for node_exporter, every 15 s or every reported interval")),
#endif
	ROW(OPTION_FLAG, "quiet", reporting.quiet, OPTION_HELP("Print errors only")),
	OPTION_ROW(OPTION_FLAG, 'h', "help", struct common_options, help, OPTION_HELP("Print this help")),
	ROW(OPTION_FLAG, "version", version, OPTION_HELP("Print the version")),
	OPTION_END,
};

const struct option spin_option_table[] = {
#if WITH_EXTRAS
	ROW(OPTION_FLAG, "poll", poll,
	    OPTION_HELP("Poll without sleeping: lower latency, but uses a whole processor")),
	ROW(OPTION_INTEGER, "spin", spin, .minimum = 0, .maximum = 1000000, .initial = 0, .argument = "USEC",
	    OPTION_HELP("Poll for this many microseconds after the last event before sleeping")),
#endif
	OPTION_REST(common_option_table),
};

#define PATH_NUMBER(long_name, member, least, max, name, ...) \
	ROW(OPTION_INTEGER, long_name, path.member, .minimum = least, .maximum = max, .initial = PATH_UNSET, \
	    .argument = name, __VA_ARGS__)

const struct option connection_option_table[] = {
#if WITH_EXTRAS
	PATH_NUMBER("retry", retry, 0, 7, "N", OPTION_HELP("Client: number of retransmissions", "7")),
	PATH_NUMBER("rnr-retry", rnr_retry, 0, 7, "N",
		    OPTION_HELP("Number of receiver-not-ready retries; 7: no limit", "7")),
	PATH_NUMBER("backlog", backlog, 1, 32768, "N",
		    OPTION_HELP("Server: maximum pending connection requests; with soft, twice as many half-open ones", "1024")),
#endif
	OPTION_REST(endpoint_option_table),
};

const struct option endpoint_option_table[] = {
#if WITH_EXTRAS
	ROW(OPTION_INTEGER, "ready-fd", daemon.ready_fd, .argument = "N", .minimum = 3, .maximum = INT32_MAX, .initial = 0,
	    OPTION_HELP("When peers can connect, write \"ready ADDRESS PORT\" to descriptor N and close it", "none")),
	ROW(OPTION_TEXT, "pidfile", daemon.pidfile, .argument = "FILE",
	    OPTION_HELP("Write the process ID to FILE, and remove it at the end")),
	ROW(OPTION_FLAG, "daemon", daemon.daemon,
	    OPTION_HELP("Run in the background; the command returns when peers can connect, or fails")),
	ROW(OPTION_FLAG, "sandbox", sandbox,
	    OPTION_HELP("Restrict system calls to those of a test, once listening, connected or joined")),
	ROW(OPTION_TEXT, "device", path.device, .argument = "NAME", OPTION_HELP("Use this RDMA device")),
	PATH_NUMBER("port-num", port, 1, 255, "N", OPTION_HELP("Use this port of the device", "any")),
	PATH_NUMBER("gid-index", gid_index, 0, 1023, "N",
		    OPTION_HELP("Use this entry of the port's GID table", "any")),
	ROW(OPTION_TEXT, "interface", path.interface, .argument = "NAME",
	    OPTION_HELP("Use an address of this network interface")),
	ROW(OPTION_FLAG, "ipv4", family.ip4, OPTION_HELP("Use IPv4 only")),
	ROW(OPTION_FLAG, "ipv6", family.ip6, OPTION_HELP("Use IPv6 only")),
	PATH_NUMBER("dscp", dscp, 0, 63, "N",
		    OPTION_HELP("DSCP of the packets: the upper six bits of --tos", "not set")),
	PATH_NUMBER("service-level", service_level, 0, 15, "N",
		    OPTION_HELP("Service level of sent packets; on Ethernet the VLAN priority", "not set")),
	ROW(OPTION_WORD, "mtu", path.mtu, .initial = PATH_UNSET, .argument = "BYTES",
	    .words = path_mtus, OPTION_HELP("Maximum payload of a packet", "by the interface")),
	PATH_NUMBER("inline", inline_size, 0, 4096, "BYTES",
		    OPTION_HELP("Send messages of up to this size inline in the work request", "0")),
#endif
#if WITH_REPORT
	ROW(OPTION_FLAG, "histogram", reporting.histogram,
	    OPTION_HELP("Show the distribution of times in the summary, and in JSON as a list")),
	ROW(OPTION_DURATION, "interval-report", reporting.interval, .minimum = 10 * CLOCK_NS_PER_MS,
	    .maximum = 86400 * CLOCK_NS_PER_S, .initial = 0, .argument = "TIME",
	    OPTION_HELP("Also report each interval", "none")),
#endif
	OPTION_REST(spin_option_table),
};

const struct option_rule common_rules[] = {
#if WITH_REPORT
	{ OPTION_EXCLUDES, "json", "json-stream" },
	{ OPTION_EXCLUDES, "json", "csv" },
	{ OPTION_EXCLUDES, "json-stream", "csv" },
	{ OPTION_EXCLUDES, "quiet", "json" },
	{ OPTION_EXCLUDES, "quiet", "json-stream" },
	{ OPTION_EXCLUDES, "quiet", "csv" },
#endif
	{ 0 },
};

const struct option_rule spin_rules[] = {
#if WITH_EXTRAS
	{ OPTION_EXCLUDES, "poll", "spin" },
#endif
	{ OPTION_MORE_RULES, NULL, common_rules },
};

const struct option_rule endpoint_rules[] = {
#if WITH_EXTRAS
	{ OPTION_EXCLUDES, "ipv4", "ipv6" },
	{ OPTION_EXCLUDES, "tos", "dscp" },
#endif
#if WITH_REPORT
	{ OPTION_EXCLUDES, "quiet", "histogram" },
#endif
	{ OPTION_MORE_RULES, NULL, spin_rules },
};
/* clang-format on */

void *common_options_create(size_t size)
{
	struct common_options *options = calloc(1, size);

	if (options)
		options->path = (struct path_options)PATH_OPEN;
	return options;
}

const char *common_transport(const struct common_options *common)
{
	const char *name = common->transport ? common->transport : getenv("RDMATEST_TRANSPORT");

	return name && *name ? name : NULL;
}

enum outcome common_open(const struct common_options *common, const char *name, struct environment *environment)
{
	enum outcome outcome = transport_open(name, environment->loop, &environment->log, &environment->transport);

	if (outcome == OUTCOME_USAGE && !common->transport)
		log_hint(&environment->log, "RDMATEST_TRANSPORT selects this transport");
	if (WITH_EXTRAS && !outcome && (common->poll || common->spin))
		transport_spin(environment->transport,
			       common->poll ? LOOP_SPIN_ALWAYS : common->spin * CLOCK_NS_PER_US);
	return outcome;
}
