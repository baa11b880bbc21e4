/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/common.h"

#include <stdlib.h>

#include "cmd/run.h"
#include "core/privileges.h"

#if WITH_EXTRAS
static const uint16_t mtus[] = { 256, 512, 1024, 2048, 4096 };
#endif

/* clang-format off */
#define ROW(kind, name, member, ...)  OPTION_ROW(kind, 0, name, struct common_options, member, __VA_ARGS__)
#define PATH(name, member, range, ...) ROW(OPTION_INTEGER, name, path.member, "N", range, "", __VA_ARGS__)
#define FLAG(letter, name, member, ...) OPTION_FLAG_ROW(letter, name, struct common_options, member, __VA_ARGS__)

const struct option common_option_table[] = {
	/* Long enough for a busy subnet manager; the kernel's own timeouts are 75 to 100 s. */
	ROW(OPTION_DURATION, "timeout", timeout, "TIME", "1ms to 24h", "10s",
	    OPTION_HELP("Maximum time of each phase, such as connecting"),
	    .section = SECTION_LIMITS),
	ROW(OPTION_DURATION, "deadline", deadline, "TIME", "1ms to 8784h", "",
	    OPTION_HELP("Maximum time of the run; the shutdown may take 250 ms more", "none"),
	    .section = SECTION_LIMITS, .brief = true),
#if WITH_REPORT
	FLAG(0, "json", reporting.json, OPTION_HELP("Print one JSON object at the end and nothing else"),
	     .exclusive = ONE_OUTPUT, .section = SECTION_OUTPUT, .brief = true),
	FLAG(0, "json-stream", reporting.json_stream, OPTION_HELP("Print JSON objects, one per line, as events occur"),
	     .exclusive = ONE_OUTPUT, .section = SECTION_OUTPUT),
	ROW(OPTION_TEXT, "prometheus", reporting.prometheus, "FILE", "", "",
	    OPTION_HELP("Write metrics to FILE for node_exporter, every 15 s or interval"),
	    .section = SECTION_OUTPUT),
#endif
	FLAG(0, "quiet", reporting.quiet, OPTION_HELP("Print errors only"), .exclusive = ONE_OUTPUT | NO_HISTOGRAM,
	     .section = SECTION_OUTPUT),
	FLAG('h', "usage", usage, OPTION_HELP("Print the common options, and examples"), .stops = true),
	FLAG(0, "help", help, OPTION_HELP("Print all options"), .stops = true, .brief = true),
	FLAG(0, "version", version, OPTION_HELP("Print the version"), .stops = true),
	OPTION_END,
};

const struct option spin_option_table[] = {
#if WITH_EXTRAS
	FLAG(0, "poll", poll, OPTION_HELP("Poll without sleeping, which uses a whole processor"),
	     .exclusive = ONE_SPIN, .section = SECTION_PACE),
	ROW(OPTION_INTEGER, "spin", spin, "USEC", "0 to 1000000", "0",
	    OPTION_HELP("Poll for this many microseconds before sleeping"), .exclusive = ONE_SPIN,
	    .section = SECTION_PACE),
#endif
	OPTION_REST(common_option_table),
};

const struct option connection_option_table[] = {
#if WITH_EXTRAS
	PATH("retry", retry, "0 to 7", OPTION_HELP("Client: number of retransmissions", "7"), .tags = FOR_CLIENT,
	     .section = SECTION_PATH),
	PATH("rnr-retry", rnr_retry, "0 to 7", OPTION_HELP("Number of receiver-not-ready retries; 7: no limit", "7"),
	     .section = SECTION_PATH),
	PATH("backlog", backlog, "1 to 32768",
	     OPTION_HELP("Server: maximum pending connection requests", "1024"),
	     .tags = FOR_SERVER, .section = SECTION_SERVER),
#endif
	OPTION_REST(endpoint_option_table),
};

const struct option endpoint_option_table[] = {
#if WITH_EXTRAS
	FLAG(0, "daemon", daemon,
	     OPTION_HELP("Run in the background; print the process ID once peers can connect"),
	     .tags = FOR_SERVER, .section = SECTION_SERVICE),
	ROW(OPTION_TEXT, "device", path.device, "NAME", "", "", OPTION_HELP("Use this RDMA device"),
	    .section = SECTION_PATH),
	PATH("port-num", port, "1 to 255", OPTION_HELP("Use this port of the device", "any"),
	     .section = SECTION_PATH),
	PATH("gid-index", gid_index, "0 to 1023", OPTION_HELP("Use this entry of the port's GID table", "any"),
	     .section = SECTION_PATH),
	ROW(OPTION_TEXT, "interface", path.interface, "NAME", "", "",
	    OPTION_HELP("Use an address of this network interface"), .section = SECTION_PATH),
	FLAG(0, "ipv4", family.ip4, OPTION_HELP("Use IPv4 only"), .exclusive = ONE_FAMILY, .section = SECTION_PATH),
	FLAG(0, "ipv6", family.ip6, OPTION_HELP("Use IPv6 only"), .exclusive = ONE_FAMILY, .section = SECTION_PATH),
	PATH("dscp", dscp, "0 to 63", OPTION_HELP("DSCP of the packets: the upper six bits of --tos", "not set"),
	     .tags = FOR_SENDER, .exclusive = ONE_SERVICE, .section = SECTION_PATH),
	PATH("service-level", service_level, "0 to 15",
	     OPTION_HELP("Service level; on Ethernet the VLAN priority", "not set"), .tags = FOR_SENDER,
	     .section = SECTION_PATH),
	ROW(OPTION_WORD, "mtu", path.mtu, "BYTES", "one of 256, 512, 1024, 2048, 4096", "",
	    OPTION_HELP("Maximum payload of a packet", "by the interface"), .section = SECTION_PATH),
	OPTION_VALUES_ROW(mtus),
	ROW(OPTION_INTEGER, "inline", path.inline_size, "BYTES", "0 to 4096", "",
	    OPTION_HELP("Send messages of up to this size inline", "0"), .tags = FOR_SENDER,
	    .section = SECTION_PATH),
#endif
#if WITH_REPORT
	FLAG(0, "histogram", reporting.histogram,
	     OPTION_HELP("Show the distribution of times, also in JSON"),
	     .exclusive = NO_HISTOGRAM, .section = SECTION_OUTPUT),
	ROW(OPTION_DURATION, "interval-report", reporting.interval, "TIME", "10ms to 24h", "",
	    OPTION_HELP("Also report each interval", "none"), .section = SECTION_OUTPUT),
#endif
	OPTION_REST(spin_option_table),
};
/* clang-format on */

void *common_options_create(size_t size)
{
	struct common_options *options = calloc(1, size);

	if (options)
		options->path = path_unset;
	return options;
}

const char *common_transport(const struct common_options *common)
{
	const char *name = common->transport ? common->transport : getenv("RDMATEST_TRANSPORT");

	return name && *name ? name : NULL;
}

unsigned common_privileges(const struct common_options *common)
{
	return WITH_REPORT && common->reporting.prometheus ? PRIVILEGE_FILES : 0;
}

enum outcome common_open(const struct common_options *common, const char *name, struct environment *environment,
			 struct error *error)
{
	enum outcome outcome =
		transport_open(name, environment->loop, &environment->log, error, &environment->transport);

	if (outcome == OUTCOME_USAGE && !common->transport)
		error_hint(error, "RDMATEST_TRANSPORT selects this transport");
	if (!outcome && EXTRA(common->poll || common->spin))
		transport_spin(environment->transport,
			       common->poll ? LOOP_SPIN_ALWAYS : common->spin * CLOCK_NS_PER_US);
	return outcome;
}
