/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/common.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/command.h"

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
	FLAG(0, "json", reporting.json, OPTION_HELP("Print one JSON object at the end instead of text"),
	     .exclusive = ONE_OUTPUT, .section = SECTION_OUTPUT, .brief = true),
	FLAG(0, "json-stream", reporting.json_stream, OPTION_HELP("Print JSON objects, one per line, as events occur"),
	     .exclusive = ONE_OUTPUT, .section = SECTION_OUTPUT),
	ROW(OPTION_TEXT, "prometheus", reporting.prometheus, "FILE", "", "",
	    OPTION_HELP("Write metrics to FILE for node_exporter, every 15 s; -: print them at the end"),
	    .section = SECTION_OUTPUT),
#endif
	FLAG(0, "quiet", reporting.quiet, OPTION_HELP("Print errors only"), .exclusive = ONE_OUTPUT | NO_HISTOGRAM,
	     .section = SECTION_OUTPUT),
	FLAG('h', "usage", usage, OPTION_HELP("Print the common options, and examples"), .stops = true),
	FLAG(0, "help", help, OPTION_HELP("Print all options"), .stops = true, .brief = true),
	FLAG(0, "version", version, OPTION_HELP("Print the version"), .stops = true),
	OPTION_END,
};

const struct option connection_option_table[] = {
#if WITH_EXTRAS
	PATH("retry", retry, "0 to 7", OPTION_HELP("Client: resends before the connection fails; soft: timeouts in a row", "7"), .tags = FOR_CLIENT,
	     .section = SECTION_PATH),
	PATH("rnr-retry", rnr_retry, "0 to 7", OPTION_HELP("Receiver-not-ready retries of the peer; 7: no limit", "7"),
	     .section = SECTION_PATH),
	PATH("backlog", backlog, "1 to 32768",
	     OPTION_HELP("Maximum pending connection requests", "1024"),
	     .tags = FOR_SERVER, .section = SECTION_SERVER),
#endif
	OPTION_REST(endpoint_option_table),
};

const struct option endpoint_option_table[] = {
#if WITH_EXTRAS
	FLAG(0, "daemon", daemon,
	     OPTION_HELP("Run in the background; print the process ID once peers can connect"),
	     .tags = FOR_SERVER, .section = SECTION_SERVICE),
#endif
#if WITH_REPORT
	FLAG(0, "histogram", reporting.histogram,
	     OPTION_HELP("Print the distribution of times, also in JSON"),
	     .exclusive = NO_HISTOGRAM | NO_PING_TIMES, .section = SECTION_OUTPUT),
	ROW(OPTION_DURATION, "interval-report", reporting.interval, "TIME", "10ms to 24h", "",
	    OPTION_HELP("Report figures, and write --prometheus FILE, every TIME", "none"), .section = SECTION_OUTPUT),
#if WITH_EXTRAS
	ROW(OPTION_LIST, "expect", reporting.expect, "FIGURE", "", "",
	    OPTION_HELP("Fail unless a figure of the run matches: 'p99<=200us', 'lost=0', 'rate>=1000'; repeatable"),
	    .section = SECTION_OUTPUT),
#endif
#endif
#if WITH_EXTRAS
	SPIN_OPTIONS(struct common_options, ),
#endif
	OPTION_REST(path_option_table),
};

const struct option path_option_table[] = {
#if WITH_EXTRAS
	ROW(OPTION_TEXT, "device", path.device, "NAME", "", "", OPTION_HELP("Use this RDMA device"),
	    .tags = FOR_PATH, .section = SECTION_PATH),
	PATH("port-num", port, "1 to 255", OPTION_HELP("Use this port of the device", "any"),
	     .tags = FOR_PATH, .section = SECTION_PATH),
	PATH("gid-index", gid_index, "0 to 1023", OPTION_HELP("Use this entry of the port's GID table", "any"),
	     .tags = FOR_PATH, .section = SECTION_PATH),
	ROW(OPTION_TEXT, "interface", path.interface, "NAME", "", "",
	    OPTION_HELP("Use an address of this network interface"), .tags = FOR_PATH, .section = SECTION_PATH),
	FLAG(0, "ipv4", family.ip4, OPTION_HELP("Use IPv4 only"), .tags = FOR_PATH, .exclusive = ONE_FAMILY,
	     .section = SECTION_PATH),
	FLAG(0, "ipv6", family.ip6, OPTION_HELP("Use IPv6 only"), .tags = FOR_PATH, .exclusive = ONE_FAMILY,
	     .section = SECTION_PATH),
	PATH("dscp", dscp, "0 to 63", OPTION_HELP("DSCP: the upper six bits of --tos", "not set"),
	     .tags = FOR_SENDER | FOR_PATH, .exclusive = ONE_SERVICE, .section = SECTION_PATH),
	PATH("service-level", service_level, "0 to 15",
	     OPTION_HELP("Service level; on Ethernet the VLAN priority", "not set"), .tags = FOR_SENDER | FOR_PATH,
	     .section = SECTION_PATH),
	ROW(OPTION_WORD, "mtu", path.mtu, "BYTES", "one of 256, 512, 1024, 2048, 4096", "",
	    OPTION_HELP("Maximum packet payload", "the interface's"), .tags = FOR_PATH, .section = SECTION_PATH),
	OPTION_VALUES_ROW(mtus),
	ROW(OPTION_INTEGER, "inline", path.inline_size, "BYTES", "0 to 4096", "",
	    OPTION_HELP("Send messages of up to this size inline", "0"), .tags = FOR_SENDER | FOR_PATH,
	    .section = SECTION_PATH),
#endif
	OPTION_REST(common_option_table),
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

void common_hint_transport(const struct common_options *common, enum outcome outcome, struct error *error)
{
	if (outcome == OUTCOME_USAGE && !common->transport)
		error_hint(error, "RDMATEST_TRANSPORT selects this transport");
}

enum outcome common_open(const struct common_options *common, const char *name, struct run *run, struct error *error)
{
	enum outcome outcome = transport_open(name, run->loop, &run->log, error, &run->transport);

	common_hint_transport(common, outcome, error);
	if (!outcome && EXTRA(common->poll || common->spin))
		transport_spin(run->transport, common->poll ? LOOP_SPIN_ALWAYS : common->spin * CLOCK_NS_PER_US);
	return outcome;
}

/* ---- the path ---- */

/* The options that need a transport feature, for any value or for one word. */
static const struct feature_option {
	char option[14]; /* long name */
	char word[6];
	uint16_t value;	 /* the word's value */
	uint8_t feature; /* enum transport_feature */
} feature_options[] = {
#if WITH_EXTRAS
	{ "device", .feature = FEATURE_DEVICE },
	{ "port-num", .feature = FEATURE_PORT },
	{ "gid-index", .feature = FEATURE_GID_INDEX },
	{ "service-level", .feature = FEATURE_SERVICE_LEVEL },
	{ "mtu", .feature = FEATURE_MTU },
	{ "inline", .feature = FEATURE_INLINE },
#endif
	{ "mgid", .feature = FEATURE_NATIVE_GID },
	{ "format", "gid", ADDRESS_FORMAT_GID, FEATURE_NATIVE_GID },
	{ "port-space", "ipoib", PORT_SPACE_IPOIB, FEATURE_IPOIB },
};

char *common_path_words(const struct option *table, uint64_t given, const struct common_options *options,
			char text[PATH_WORDS_SIZE])
{
	*text = '\0';
	for (const struct option *row = option_first(table); given; row = option_next(row), given >>= 1) {
		const char *value = (const char *)options + row->offset;
		size_t used = strlen(text);

		if (!(given & 1) || !(row->tags & FOR_PATH))
			continue;
		/* In ucmatose "source" is an alias of it. */
		log_text(text + used, PATH_WORDS_SIZE - used, " --%s",
			 strcmp(row->text, "bind") ? row->text : "source");
		used = strlen(text);
		if (row->type == OPTION_TEXT)
			log_text(text + used, PATH_WORDS_SIZE - used, " %s", *(const char *const *)value);
		else if (row->type != OPTION_FLAG)
			log_text(text + used, PATH_WORDS_SIZE - used, " %" PRId64, *(const int64_t *)value);
	}
	return text;
}

static const struct option *given(const struct run *run, const char *name)
{
	return options_given(run->command->options, run->given, name);
}

enum outcome common_check_path(const struct run *run, const struct common_options *options)
{
	const struct log *log = &run->log;
	char option[64];

	for (size_t i = 0; i < sizeof(feature_options) / sizeof(feature_options[0]); i++) {
		const struct feature_option *needs = &feature_options[i];
		const struct option *row = given(run, needs->option);
		const struct unsupported unsupported = transport_unsupported(common_transport(options), needs->feature);

		if (!row || !unsupported.reason ||
		    (*needs->word && *(const int64_t *)((const char *)options + row->offset) != needs->value))
			continue;
		log_text(option, sizeof(option), "--%.13s%s%.5s", needs->option, *needs->word ? " " : "", needs->word);
		log_error(log, option, "not with --transport %s: %s", unsupported.backend, unsupported.reason);
		return OUTCOME_USAGE;
	}
	if (WITH_EXTRAS && given(run, "port-num") && !given(run, "device")) {
		log_error(log, NULL, "--port-num needs --device");
		return OUTCOME_USAGE;
	}
	return OUTCOME_OK;
}

/* The report has a QPN as text: it is an identifier, and Prometheus would treat a number as a sample. */
static void report_qpn(struct report *report, const char *name, uint32_t number)
{
	char text[16];

	log_text(text, sizeof(text), "%u", number);
	report_text(report, name, number ? text : NULL);
}

/* Such a run does not test the network: two hosts may have the same address by mistake. */
static void report_own_host(struct report *report, const char *name, const struct address *peer)
{
	if (!address_is_loopback(peer) && route_leads_here(peer, false))
		report_text(report, name, "is this host: nothing leaves it");
}

void common_report_path(struct report *report, const void *member)
{
	const struct path *path = member;
	struct address gid = { .family = ADDRESS_GID };
	char text[ADDRESS_TEXT_SIZE];
	bool has_gid = path->gid_type;

	memcpy(gid.bytes, path->gid, sizeof(gid.bytes));
	report_text(report, "device", path->device);
	report_count_known(report, "port", (uint64_t)path->port, path->port);
	report_count_known(report, "gid_index", (uint64_t)path->gid_index, has_gid && path->gid_index >= 0);
	report_text(report, "gid", has_gid ? address_host(&gid, text) : NULL);
	report_text(report, "gid_type", path->gid_type);
	report_text(report, "interface", path->interface);
	report_count_known(report, "mtu", (uint64_t)path->mtu, path->mtu);
	if (report->format->form & IN_PROGRAMS) {
		report_qpn(report, "qpn", path->qpn);
		report_qpn(report, "peer_qpn", path->peer_qpn);
	} else if (WITH_EXTRAS) {
		report_own_host(report, "peer", &path->peer);
	}
}
