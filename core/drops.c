/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/drops.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/units.h"

#define WRONG_CHECKSUM "with a wrong UDP checksum: ethtool -K INTERFACE tx off at their sender"
#define IPSEC	       "by IPsec: ip xfrm policy"

/* On some networks the last drop counter also grows for other reasons. */
static const struct {
	const char *file; /* in /proc/self/net */
	const char *line; /* the first word of a line of names and of its line of values, or NULL */
	const char *name, *words;
} rows[DROPS_COUNT] = {
	{ "snmp", "Udp:", "InCsumErrors", WRONG_CHECKSUM },
	{ "snmp6", NULL, "Udp6InCsumErrors", WRONG_CHECKSUM },
	{ "xfrm_stat", NULL, "XfrmOutPolBlock", IPSEC },
	{ "xfrm_stat", NULL, "XfrmOutNoStates", IPSEC },
	{ "xfrm_stat", NULL, "XfrmInPolBlock", IPSEC },
	{ "xfrm_stat", NULL, "XfrmInTmplMismatch", IPSEC },
	{ "netstat", "TcpExt:", "IPReversePathFilter",
	  "by rp_filter: the route to their sender uses another interface" },
	/* Not drops: the kernel counts these before its firewall. Merged packets count as one. */
	[DROPS_MULTICAST] = { "netstat", "IpExt:", "InMcastOctets", NULL },
	[DROPS_MULTICAST6] = { "snmp6", NULL, "Ip6InMcastOctets", NULL },
};

enum {
	WORD_SIZE = 64
};

static bool next_word(FILE *file, char word[WORD_SIZE])
{
	*word = '\0';
	return fscanf(file, "%63s", word) == 1;
}

/* Returns the number of words up to the named one. */
static unsigned find_word(FILE *file, const char *name, char word[WORD_SIZE])
{
	unsigned count = 1;

	while (next_word(file, word) && strcmp(word, name) != 0)
		count++;
	return count;
}

/* The counter plus 1; 0: unknown. */
static uint64_t read_counter(FILE *file, const char *line, const char *name)
{
	char word[WORD_SIZE];
	unsigned place;

	if (line)
		find_word(file, line, word);
	place = find_word(file, name, word);
	if (line)
		find_word(file, line, word);
	else
		place = 1;
	while (place-- && next_word(file, word))
		;
	return isdigit((unsigned char)*word) ? strtoull(word, NULL, 10) + 1 : 0;
}

void drops_read(struct drops *drops)
{
	char path[32];

	*drops = (struct drops){ { 0 } };
	for (unsigned i = 0; i < DROPS_COUNT; i++) {
		FILE *file = fopen(log_text(path, sizeof(path), "/proc/self/net/%s", rows[i].file), "re");

		if (!file)
			continue;
		drops->counts[i] = read_counter(file, rows[i].line, rows[i].name);
		fclose(file);
	}
}

/* 0: unknown, for example without connection tracking. */
static uint64_t read_limit(const char *name)
{
	char path[64], word[WORD_SIZE] = "";
	FILE *file = fopen(log_text(path, sizeof(path), "/proc/sys/net/netfilter/nf_conntrack_%s", name), "re");

	if (!file)
		return 0;
	next_word(file, word);
	fclose(file);
	return strtoull(word, NULL, 10);
}

/* A level, not a counter: many kernels lack the counter of the resulting drops. */
static void check_connections(char text[DROPS_SIZE])
{
	uint64_t count = read_limit("count"), max = read_limit("max");

	if (max && count >= max)
		log_text(text, DROPS_SIZE,
			 "this host tracks %" PRIu64
			 " connections and may drop packets of new ones: its table is full, "
			 "see sysctl net.netfilter.nf_conntrack_max",
			 count);
}

bool drops_since(const struct drops *first, char text[DROPS_SIZE])
{
	struct drops now;

	*text = '\0';
	drops_read(&now);
	for (unsigned i = 0; i < DROPS_MULTICAST && !*text; i++) {
		uint64_t count = now.counts[i] - first->counts[i];

		if (first->counts[i] && now.counts[i] > first->counts[i])
			log_text(text, DROPS_SIZE, "this host dropped %" PRIu64 " packet%s meanwhile %s (%s)", count,
				 units_plural(count), rows[i].words, rows[i].name);
	}
	if (WITH_EXTRAS && !*text)
		check_connections(text);
	return *text;
}

bool drops_of_groups(const struct drops *first, bool is_ip6, uint64_t least, char text[DROPS_SIZE])
{
	unsigned row = is_ip6 ? DROPS_MULTICAST6 : DROPS_MULTICAST;
	struct drops now;

	*text = '\0';
	drops_read(&now);
	if (first->counts[row] && now.counts[row] >= first->counts[row] + least)
		log_text(text, DROPS_SIZE,
			 "%" PRIu64
			 " bytes of multicast packets reached this host (%s): if they are of this group, its "
			 "firewall drops them: nft list ruleset",
			 now.counts[row] - first->counts[row], rows[row].name);
	return *text;
}
