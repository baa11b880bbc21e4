/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=fopen */
/* The kernel's counters, in files like /proc/net's that a test writes. */
#include "test/unit/unit.h"

#include <stdio.h>

#include "core/drops.h"

static struct {
	const char *snmp, *snmp6, *netstat, *xfrm, *tracked, *limit; /* NULL: no such file */
} files;

FILE *__wrap_fopen(const char *name, const char *mode)
{
	const char *text = !strcmp(name, "/proc/self/net/snmp")	     ? files.snmp
			   : !strcmp(name, "/proc/self/net/snmp6")   ? files.snmp6
			   : !strcmp(name, "/proc/self/net/netstat") ? files.netstat
			   : strstr(name, "/nf_conntrack_count")     ? files.tracked
			   : strstr(name, "/nf_conntrack_max")	     ? files.limit
								     : files.xfrm;
	FILE *file = text ? tmpfile() : NULL;

	if (!file)
		return NULL;
	assert_true(fputs(text, file) >= 0);
	rewind(file);
	return file;
}

#define UDP(count)                                                                                                     \
	"Icmp: InMsgs InCsumErrors\nIcmp: 1 77\n"                                                                      \
	"Udp: InDatagrams InCsumErrors IgnoredMulti\nUdp: 9 " count                                                    \
	" 2\nUdpLite: InDatagrams InCsumErrors\nUdpLite: 0 55\n"

/* Each row has the files' contents at first, and later. */
TEST(growth_is_named)
{
	static const struct {
		const char *first[4], *later[4], *text;
	} rows[] = {
		{ { UDP("3") }, { UDP("3") }, "" },
		{ { UDP("3") },
		  { UDP("4") },
		  "this host dropped 1 packet meanwhile with a wrong UDP checksum: ethtool -K INTERFACE tx off at "
		  "their "
		  "sender (InCsumErrors)" },
		{ { UDP("3") }, { NULL }, "" },
		{ { NULL }, { UDP("4") }, "" },
		{ { "Udp: InDatagrams\nUdp: 9\n" }, { "Udp: InDatagrams\nUdp: 9\n" }, "" },
		{ { "Udp: InCsumErrors" }, { "Udp: InCsumErrors\nUdp: 5\n" }, "" },
		{ { NULL, "Udp6InErrors \t8\nUdp6InCsumErrors    \t0\n" },
		  { NULL, "Udp6InErrors \t8\nUdp6InCsumErrors    \t2\n" },
		  "this host dropped 2 packets meanwhile with a wrong UDP checksum: ethtool -K INTERFACE tx off at "
		  "their "
		  "sender (Udp6InCsumErrors)" },
		{ { NULL, NULL, NULL, "XfrmInError 0\nXfrmOutPolBlock 1\n" },
		  { NULL, NULL, NULL, "XfrmInError 9\nXfrmOutPolBlock 4\n" },
		  "this host dropped 3 packets meanwhile by IPsec: ip xfrm policy (XfrmOutPolBlock)" },
		{ { NULL, NULL, "TcpExt: A IPReversePathFilter B\nTcpExt: 1 2 3\nIpExt: A\nIpExt: 8\n" },
		  { NULL, NULL, "TcpExt: A IPReversePathFilter B\nTcpExt: 1 5 3\nIpExt: A\nIpExt: 8\n" },
		  "this host dropped 3 packets meanwhile by rp_filter: the route to their sender uses another "
		  "interface "
		  "(IPReversePathFilter)" },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct drops drops;
		char text[DROPS_SIZE];

		memcpy(&files, rows[i].first, sizeof(rows[i].first));
		drops_read(&drops);
		memcpy(&files, rows[i].later, sizeof(rows[i].later));
		assert_int_equal(drops_since(&drops, text), *rows[i].text != '\0');
		assert_string_equal(text, rows[i].text);
	}
}

TEST(table_of_connections)
{
	static const struct {
		const char *tracked, *limit;
		bool full;
	} rows[] = {
		{ "65535\n", "65536\n", false }, { "65536\n", "65536\n", true }, { "7\n", "6\n", true },
		{ NULL, "65536\n", false },	 { "65536\n", NULL, false },	 { "0\n", "0\n", false },
	};
	char text[DROPS_SIZE];

	memset(&files, 0, sizeof(files));
	for (size_t i = 0; i < LENGTH(rows); i++) {
		files.tracked = rows[i].tracked;
		files.limit = rows[i].limit;
		assert_int_equal(drops_since(&(struct drops){ { 0 } }, text), rows[i].full);
		assert_int_equal(!!strstr(text, "its table is full, see sysctl net.netfilter.nf_conntrack_max"),
				 rows[i].full);
	}
	memset(&files, 0, sizeof(files));
}

/* The threshold for a receiver. */
TEST(packets_of_groups)
{
	struct drops drops;
	char text[DROPS_SIZE];

	files.netstat = "TcpExt: InMcastOctets\nTcpExt: 50\nIpExt: A InMcastOctets\nIpExt: 7 2\n";
	files.snmp6 = "Ip6InMcastOctets 5\nIp6OutMcastOctets 5\n";
	drops_read(&drops);
	files.netstat = "TcpExt: InMcastOctets\nTcpExt: 99\nIpExt: A InMcastOctets\nIpExt: 9 12\n";
	files.snmp6 = "Ip6InMcastOctets 8\nIp6OutMcastOctets 99\n";
	assert_false(drops_since(&drops, text));
	assert_false(drops_of_groups(&drops, false, 11, text));
	assert_true(drops_of_groups(&drops, false, 10, text));
	assert_string_equal(
		text, "10 bytes of multicast packets reached this host (InMcastOctets): if they are of this group, its "
		      "firewall drops them: nft list ruleset");
	assert_true(drops_of_groups(&drops, true, 3, text));
	files.netstat = files.snmp6 = NULL;
	assert_false(drops_of_groups(&drops, false, 1, text));
	assert_false(drops_of_groups(&(struct drops){ { 0 } }, true, 1, text));
}

/* A counter never read has not grown. */
TEST(no_reading)
{
	char text[DROPS_SIZE];

	files.snmp = UDP("4");
	assert_false(drops_since(&(struct drops){ { 0 } }, text));
}
