/* SPDX-License-Identifier: BSD-2-Clause */
/* The options that choose a path, the same in every command, and the report of the one that was taken. */
#ifndef CMD_PATH_H
#define CMD_PATH_H

#include "core/options.h"
#include "core/report.h"
#include "transport/transport.h"

/* Of names that have several addresses, which ones count. */
struct family_options {
	bool ip4;
	bool ip6;
};

/* What --mtu takes. */
extern const struct option_word path_mtus[];

/* Refuses the options that the transport cannot honour: OUTCOME_USAGE after a line that says why. */
enum outcome path_check(const struct transport *transport, const struct log *log, const struct option *table,
			uint64_t given);

/* True if an address of that family may be used. */
bool path_allows_family(const struct family_options *options, enum address_family family);

/* Name of the option that asks for one family: the source option where a source was given, else --ipv4 or --ipv6. */
const char *path_family_option(const struct family_options *options, const char *source_option);

/* Adds the path of an endpoint, as endpoint_path() tells it; a zeroed one has no values. */
void path_report(struct report *report, const struct path *path);

/* clang-format off */
#define PATH_NUMBER(type, letter, long_name, member, least, most, name, ...) \
	OPTION_ROW(OPTION_INTEGER, letter, long_name, type, common.path.member, .minimum = least, .maximum = most, \
		   .initial = PATH_UNSET, .argument = name, __VA_ARGS__)
#define PATH_OPTIONS(type, type_of_service_letter, ack_timeout_letter) \
	OPTION_ROW(OPTION_TEXT, 0, "device", type, common.path.device, .argument = "NAME", \
		   .help = "Use this RDMA device"), \
	PATH_NUMBER(type, 0, "port-num", port, 1, 255, "N", .initial_text = "any", .help = "Use this port of the device"), \
	PATH_NUMBER(type, 0, "gid-index", gid_index, 0, 1023, "N", .initial_text = "any", \
		    .help = "Use this entry of the port's GID table"), \
	OPTION_ROW(OPTION_TEXT, 0, "interface", type, common.path.interface, .argument = "NAME", \
		   .help = "Use an address of this network interface"), \
	OPTION_ROW(OPTION_FLAG, 0, "ipv4", type, common.family.ip4, .help = "Use IPv4 only"), \
	OPTION_ROW(OPTION_FLAG, 0, "ipv6", type, common.family.ip6, .help = "Use IPv6 only"), \
	PATH_NUMBER(type, type_of_service_letter, "tos", type_of_service, 0, 255, "N", .initial_text = "not set", \
		    .help = "Type of service of the packets (IPv6: traffic class)"), \
	PATH_NUMBER(type, 0, "dscp", dscp, 0, 63, "N", .initial_text = "not set", \
		    .help = "DSCP of the packets: the upper six bits of --tos"), \
	PATH_NUMBER(type, 0, "service-level", service_level, 0, 15, "N", .initial_text = "not set", \
		    .help = "Service level of the packets that this end sends, on Ethernet the VLAN priority"), \
	PATH_NUMBER(type, ack_timeout_letter, "ack-timeout", ack_timeout, 0, 31, "N", .initial_text = "not set", \
		    .help = "Send again after 4.096 us x 2^N without an acknowledgement; 0 never"), \
	PATH_NUMBER(type, 0, "retry", retry, 0, 7, "N", .initial_text = "7", \
		    .help = "Client: send again so often"), \
	PATH_NUMBER(type, 0, "rnr-retry", rnr_retry, 0, 7, "N", .initial_text = "7", \
		    .help = "Try again so often while the peer has no receive posted; 7 for ever"), \
	OPTION_ROW(OPTION_WORD, 0, "mtu", type, common.path.mtu, .initial = PATH_UNSET, .argument = "BYTES", \
		   .initial_text = "as the interface", .words = path_mtus, \
		   .help = "Payload of a packet, at most"), \
	PATH_NUMBER(type, 0, "inline", inline_size, 0, 4096, "BYTES", .initial_text = "0", \
		    .help = "Hand messages up to that size to the device within the work request")
#define PATH_RULES \
	{ OPTION_EXCLUDES, "ipv4", "ipv6" }, \
	{ OPTION_EXCLUDES, "tos", "dscp" }, \
	{ OPTION_NEEDS, "port-num", "device" }, \
	{ OPTION_NEEDS, "gid-index", "device" }
/* clang-format on */

#endif
