/* SPDX-License-Identifier: BSD-2-Clause */
/* The options that commands share, and what is done with them. */
#ifndef CMD_COMMON_H
#define CMD_COMMON_H

#include "cmd/daemon.h"
#include "cmd/path.h"
#include "cmd/reporting/reporting.h"
#include "core/clock.h"
#include "core/options.h"
#include "transport/transport.h"

struct environment;

/* What every command has: the first member of its options struct, filled by the rows of the tables below. */
struct common_options {
	int64_t timeout;       /* nanoseconds for each phase that waits */
	int64_t deadline;      /* nanoseconds for the whole run, 0 for none */
	const char *transport; /* NULL: RDMATEST_TRANSPORT, or the default one */
	struct reporting_options reporting;
	struct daemon_options daemon; /* of a server; else zeros */
	struct path_options path;     /* of an end; else open */
	struct family_options family; /* of an end; else zeros */
	bool sandbox;
	bool poll;
	int64_t spin; /* microseconds */
	bool debug;
	bool help;
	bool version;
};

/*
 * Rows that a command's table ends with, as OPTION_REST(). Each table has those before it too. Their offsets count from
 * struct common_options.
 */
extern const struct option common_option_table[];     /* of every command */
extern const struct option spin_option_table[];	      /* of those that open their transport with common_open() */
extern const struct option end_option_table[];	      /* of those that are one end of a test, and measure it */
extern const struct option connection_option_table[]; /* of those that connect: what is sent again, and these */

/* The rules between those rows: a command's rules end with one of these, as OPTION_MORE_RULES. */
extern const struct option_rule common_rules[];
extern const struct option_rule spin_rules[];
extern const struct option_rule end_rules[];

/* Rows that a command words by itself. */
/* clang-format off */
#define TRANSPORT_OPTION(type, unless_told) \
	OPTION_ROW(OPTION_TEXT, 0, "transport", type, common.transport, .argument = "NAME", \
		   OPTION_HELP("How to reach the peer: verbs (an RDMA device), or soft (RoCE v2 in this program)", unless_told))
#define DEBUG_OPTION(type, letter) \
	OPTION_ROW(OPTION_FLAG, letter, "debug", type, common.debug, \
		   OPTION_HELP("Trace connection events and states on stderr"))
#define TYPE_OF_SERVICE_OPTION(type, letter) \
	OPTION_ROW(OPTION_INTEGER, letter, "tos", type, common.path.type_of_service, .minimum = 0, .maximum = 255, \
		   .initial = PATH_UNSET, .argument = "N", \
		   OPTION_HELP("Type of service of the packets (IPv6: traffic class)", "not set"))
#define ACK_TIMEOUT_OPTION(type, letter) \
	OPTION_ROW(OPTION_INTEGER, letter, "ack-timeout", type, common.path.ack_timeout, .minimum = 0, .maximum = 31, \
		   .initial = PATH_UNSET, .argument = "N", \
		   OPTION_HELP("Acknowledgement timeout, 4.096 us x 2^N; 0: none", "not set"))
#define WAIT_SERVER_OPTION(type, member) \
	OPTION_ROW(OPTION_DURATION, 0, "wait-server", type, member, .argument = "TIME", .minimum = 0, \
		   .maximum = 86400 * CLOCK_NS_PER_S, .initial = 0, \
		   OPTION_HELP("Client: keep trying this long while no server answers"))
#define IDLE_TIMEOUT_OPTION(type, member, text) \
	OPTION_ROW(OPTION_DURATION, 0, "idle-timeout", type, member, .argument = "TIME", .minimum = CLOCK_NS_PER_MS, \
		   .maximum = 366 * 86400 * CLOCK_NS_PER_S, .initial = 0, OPTION_HELP(text, "none"))
/* What excludes the life of a server, or what it needs: rows with their commas. */
#if WITH_SERVICE
#define SERVER_RULES(relation, role) \
	{ relation, "ready-fd", role }, \
	{ relation, "pidfile", role }, \
	{ relation, "daemon", role },
#else
#define SERVER_RULES(relation, role)
#endif
/* clang-format on */

/* What the usual initial text of --transport says. */
#define TRANSPORT_DEFAULT "RDMATEST_TRANSPORT, or verbs"

/* The transport that the user chose, on the command line or else in RDMATEST_TRANSPORT; NULL if none. */
const char *common_transport(const struct common_options *common);

/* A command's options struct, for options_parse(); to be freed. Open is also what no option is there for. Or NULL. */
void *common_options_create(size_t size);

/* transport_open() of the transport of that name into environment->transport, which spins as the options say. */
enum outcome common_open(const struct common_options *common, const char *name, struct environment *environment);

#endif
