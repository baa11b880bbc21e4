/* SPDX-License-Identifier: BSD-2-Clause */
/* The options that commands share, and the path that they select. */
#pragma once

#include "cmd/reporting/reporting.h"
#include "core/clock.h"
#include "core/options.h"
#include "core/report.h"
#include "transport/transport.h"

struct run;

/* The first member of every command's options struct, filled by the rows of the tables below. */
struct common_options {
	int64_t timeout;       /* of each waiting phase, nanoseconds */
	int64_t deadline;      /* of the whole run, nanoseconds; 0: none */
	const char *transport; /* NULL: RDMATEST_TRANSPORT, or the default transport */
	struct reporting_options reporting;
	/* Set by path_option_table; else PATH_OPEN and zeros. */
	struct path_options path;
	struct {
		bool ip4;
		bool ip6;
	} family; /* use only these of a name's addresses */
	/* Set by endpoint_option_table. */
	bool daemon;
	bool poll;
	int64_t spin; /* microseconds */
	bool debug;
	bool usage;
	bool help;
	bool version;
};

/*
 * The end of a command's table, with OPTION_REST(). Each table includes those before it. Offsets are into struct
 * common_options.
 */
extern const struct option common_option_table[];     /* for every command */
extern const struct option path_option_table[];	      /* also for doctor */
extern const struct option endpoint_option_table[];   /* for rping, ucmatose and mckey */
extern const struct option connection_option_table[]; /* for rping and ucmatose */

/*
 * The rows' .tags. A command's role option (-s) has them in its .needed_by or .excluded_by; an mckey sender counts as
 * client.
 */
enum {
	FOR_CLIENT = 1,
	FOR_SERVER = 2,
	FOR_SENDER = 4,
	FOR_ANOTHER = 8, /* needs another option of its command: doctor's -p needs an ADDRESS */
	FOR_PATH = 16,	 /* path to a peer: also in doctor, where it needs an ADDRESS */
};

/* The rows' .exclusive: settings for which only one option may be given. */
enum {
	ONE_OUTPUT = 1,
	NO_HISTOGRAM = 2,
	ONE_SPIN = 4,
	ONE_FAMILY = 8,
	ONE_SERVICE = 16,
	NO_PING_TIMES = 32, /* rping server: no histogram */
	ONE_GROUP = 128,
};

/* The built-in transports, for a synopsis and --transport's help; the defaults of selftest and of the others. */
#define TRANSPORT_VERBS "verbs (an RDMA device)"
#define TRANSPORT_SOFT	"soft (RoCE v2 over a UDP socket)"
#if WITH_VERBS && WITH_SOFT
#define TRANSPORT_NAMES	    "verbs|soft"
#define TRANSPORT_WORDS	    TRANSPORT_VERBS ", or " TRANSPORT_SOFT
#define TRANSPORT_AUTOMATIC "RDMATEST_TRANSPORT, or verbs if a device is usable, or soft"
#define TRANSPORT_DEFAULT   "RDMATEST_TRANSPORT, or verbs"
#elif WITH_VERBS
#define TRANSPORT_NAMES	    "verbs"
#define TRANSPORT_WORDS	    TRANSPORT_VERBS
#define TRANSPORT_AUTOMATIC TRANSPORT_NAMES
#define TRANSPORT_DEFAULT   TRANSPORT_NAMES
#else
#define TRANSPORT_NAMES	    "soft"
#define TRANSPORT_WORDS	    TRANSPORT_SOFT
#define TRANSPORT_AUTOMATIC TRANSPORT_NAMES
#define TRANSPORT_DEFAULT   TRANSPORT_NAMES
#endif

/* Rows with letters or texts that differ between commands. */
/* clang-format off */
#define TRANSPORT_OPTION(type, default_text) \
	OPTION_ROW(OPTION_TEXT, 0, "transport", type, common.transport, "NAME", "", "", \
		   OPTION_HELP("How to reach the peer: " TRANSPORT_WORDS, default_text), \
		   .brief = true)
#define SPIN_OPTIONS(type, common) \
	OPTION_FLAG_ROW(0, "poll", type, common poll, OPTION_HELP("Poll without sleeping, which uses a whole processor"), \
		   .exclusive = ONE_SPIN, .section = SECTION_PACE), \
	OPTION_ROW(OPTION_INTEGER, 0, "spin", type, common spin, "USEC", "0 to 1000000", "0", \
		   OPTION_HELP("Poll for this many microseconds before sleeping"), .exclusive = ONE_SPIN, \
		   .section = SECTION_PACE)
#define DEBUG_OPTION(type, letter) \
	OPTION_FLAG_ROW(letter, "debug", type, common.debug, OPTION_HELP("Trace connection events and states on stderr"), \
		   .section = SECTION_OUTPUT)
#define TYPE_OF_SERVICE_OPTION(type, letter) \
	OPTION_ROW(OPTION_INTEGER, letter, "tos", type, common.path.type_of_service, "N", "0 to 255", "", \
		   OPTION_HELP("Type of service (IPv6: traffic class)", "not set"), \
		   .tags = FOR_SENDER | FOR_PATH, .exclusive = ONE_SERVICE, \
		   .section = SECTION_PATH)
#define ACK_TIMEOUT_OPTION(type, letter) \
	OPTION_ROW(OPTION_INTEGER, letter, "ack-timeout", type, common.path.ack_timeout, "N", "0 to 31", "", \
		   OPTION_HELP("Acknowledgement timeout, 4.096 us x 2^N; 0: none", "not set"), \
		   .section = SECTION_PATH)
#define WAIT_SERVER_OPTION(type, member) \
	OPTION_ROW(OPTION_DURATION, 0, "wait-server", type, member, "TIME", "0 to 24h", "0", \
		   OPTION_HELP("Retry for this long until a server accepts"), .tags = FOR_CLIENT, \
		   .section = SECTION_CLIENT, .brief = true)
#define IDLE_TIMEOUT_OPTION(type, member, help_text) \
	OPTION_ROW(OPTION_DURATION, 0, "idle-timeout", type, member, "TIME", "1ms to 8784h", "", \
		   OPTION_HELP(help_text, "none"), .tags = FOR_SERVER, \
		   .section = SECTION_LIMITS)
/* clang-format on */

/* The transport from --transport or else RDMATEST_TRANSPORT, NULL: the default. */
const char *common_transport(const struct common_options *common);

/*
 * Allocates a command's options struct for options_parse(). The path is PATH_OPEN, because the program may lack the
 * options that set it. Returns NULL without memory. Free with free().
 */
void *common_options_create(size_t size);

/* Adds a hint to the error if the transport's name is not from an option. */
void common_hint_transport(const struct common_options *common, enum outcome outcome, struct error *error);

/* Opens the transport as run->transport and applies --poll and --spin. */
enum outcome common_open(const struct common_options *common, const char *name, struct run *run, struct error *error);

/* Returns OUTCOME_USAGE after it has reported an option that the transport does not support, or that needs --device. */
enum outcome common_check_path(const struct run *run, const struct common_options *options);

enum {
	PATH_WORDS_SIZE = 384
};

/*
 * Returns text: the path options in given, as on the command line, each after a blank: " --dscp 26 --source 10.0.0.1";
 * "" for none. table is the command's.
 */
char *common_path_words(const struct option *table, uint64_t given, const struct common_options *options,
			char text[PATH_WORDS_SIZE]);

/* Adds the values of a struct path from endpoint_path(). A zeroed path has no values. */
void common_report_path(struct report *report, const void *member);
