/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pings of ADDRESS on one connection: of 100 bytes, then of each power of two. Up to the path MTU a ping is one packet
 * each way, of the length that a path MTU of that size allows; then it is 2 and 4 in a row. If one is lost, its size
 * and the previous one are tried again: a different result shows that the size was not the cause. With --load then the
 * longest ones for a second, one at a time: a few pings pass a network that is slow, or loses packets under load.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "cmd/doctor/doctor.h"
#include "core/clock.h"
#include "core/route.h"
#include "core/units.h"

enum {
	FIRST_SIZE = 100,      /* rping's default */
	PACKETS = 4,	       /* of path MTU size, in the longest ping */
	MTU_UNKNOWN = 1024,    /* the assumed path MTU then */
	MTU_LEAST = 256,       /* InfiniBand's */
	MTU_MOST = 4096,       /* RoCE's */
	ETHERNET_MOST = 4200,  /* an interface's MTU for it, rounded up */
	HEADERS = 84,	       /* minimum difference between an interface's MTU and the path MTU, bytes */
	AGAIN = 3,	       /* pings of each of the two sizes */
	SLOW = 10,	       /* part of the link's speed, below which a warning follows */
	BUSY = 90,	       /* percent of the time: then the processor limits the rate over soft */
	ETHERNET_PERCENT = 146 /* an interface's MTU for a path MTU: 1500 bytes for 1024 */
};

#define HAS_LOAD (WITH_EXTRAS && WITH_REPORT)

/*
 * Pings per size. Over soft they are enough packets for its counters to show a loss. A device waits two seconds for a
 * lost answer.
 */
static unsigned pings_of(const struct doctor *doctor)
{
	return doctor->verbs_selected ? 1 : 10;
}

/*
 * A firewall must accept UDP port 4791 for RoCE, the server's own TCP port for iWARP. The ping may know more; then
 * nothing else is offered.
 */
static void hint_at_firewall(struct doctor *doctor, const struct address *address, struct error *error)
{
	bool tcp = doctor->fabric == FABRIC_IWARP;
	char text[ERROR_HINT_SIZE];

	if (!doctor->silent && doctor->run->transport->explained)
		return;
	if (WITH_EXTRAS && !doctor->silent && doctor->fabric == FABRIC_ROCE && !*error->hint &&
	    !route_leads_here(address, false) && trace_refusal(doctor, address, text))
		error_hint(error, "%s", text);
	if (doctor->silent)
		log_text(error->hint, sizeof(error->hint), "this host's device first, see address above");
	else if (doctor->fabric == FABRIC_INFINIBAND)
		error_hint(error, "check that the host is up, then run there: rdmatest doctor");
	else
		error_hint(
			error,
			"check that the host is up, that it also uses %s, and that firewalls accept %s port %" PRId64,
			tcp ? "iWARP" : "RoCE v2", tcp ? "TCP" : "UDP", tcp ? doctor->options->port : 4791);
}

static const char *path_words(const struct doctor *doctor, uint64_t given, char words[PATH_WORDS_SIZE])
{
	return common_path_words(doctor->run->command->options, given, &doctor->options->common, words);
}

/* Begins a probe: pings with the given path options, and these. */
static void send_pings(struct doctor *doctor, const char *host, uint64_t given, const char *options, int64_t timeout,
		       struct child_run *ping, struct ping_facts *facts)
{
	char all[CHILD_RUN_ARGUMENTS_SIZE], words[PATH_WORDS_SIZE];

	probe_begin(doctor);
	doctor->probe.transport = doctor->run->transport;
	log_text(all, sizeof(all), "-p %" PRId64 "%s %s", doctor->options->port, path_words(doctor, given, words),
		 options);
	probe_ping(doctor, host, timeout, all, ping, facts);
}

void ping_send(struct doctor *doctor, const char *host, const char *options, struct child_run *ping,
	       struct ping_facts *facts)
{
	send_pings(doctor, host, doctor->given, options, doctor->options->common.timeout, ping, facts);
}

/*
 * True if pings of the lost size are lost again, and those of the previous size are not. If the server refuses or is
 * gone, like a one-client server, the first result stands: no ping of that size has passed.
 */
static bool is_size(struct doctor *doctor, const char *host, uint32_t passed, uint32_t lost, bool none_passed)
{
	struct child_run ping = { .running = false };
	struct ping_facts facts = { .answered = 0 };
	char options[64];
	bool is;

	if (loop_deadline_passed(doctor->run->loop))
		return none_passed;
	log_text(options, sizeof(options), "-C %d -S %" PRIu32 "-%" PRIu32, AGAIN, passed, lost);
	send_pings(doctor, host, doctor->given, options, doctor->options->common.timeout, &ping, &facts);
	is = facts.answered == AGAIN || (none_passed && ping.run.outcome == OUTCOME_NO_CONNECTION &&
					 doctor->probe.errors.first.kind != ERROR_NO_REPLY);
	child_run_free(&ping);
	return is;
}

/* How to find a hop with a smaller MTU, and a workaround. */
static void hint_at_mtu(const struct doctor *doctor, const char *host, uint32_t passed, struct error *error)
{
	char meanwhile[ADDRESS_TEXT_SIZE + PATH_WORDS_SIZE + 64], words[PATH_WORDS_SIZE];

	if (doctor->verbs_selected)
		log_text(meanwhile, sizeof(meanwhile), "ip link set %s mtu %" PRIu32 ", on both hosts", doctor->netdev,
			 passed * ETHERNET_PERCENT / 100);
	else
		log_text(meanwhile, sizeof(meanwhile), "rping %s -p %" PRId64 "%s --transport soft --mtu %" PRIu32,
			 host, doctor->options->port, path_words(doctor, doctor->given, words), passed);
	if (doctor->fabric == FABRIC_INFINIBAND)
		error_hint(error, "compare the active_mtu of both ports: ibv_devinfo");
	error_hint(error,
		   "compare the MTU of both ends (ip link show %s), switch ports and routers (tracepath %s); "
		   "meanwhile: %s",
		   doctor->netdev, host, meanwhile);
}

/* Some pings were answered, then one was lost. */
static void add_lost_size(struct doctor *doctor, const char *host, uint32_t mtu, const struct ping_facts *facts)
{
	const struct error lost = doctor->probe.errors.first;
	const char *way = facts->not_read ? "do not arrive there" : "do not come back";
	uint32_t size = facts->size, passed = size <= 128 ? FIRST_SIZE : size / 2;
	struct error error = { .object = "" };

	if (!is_size(doctor, host, passed, size, facts->answered % pings_of(doctor) == 0)) {
		error_set(&error, NULL, "a ping of %" PRIu32 " bytes failed, but not because of its size: %s", size,
			  lost.cause);
	} else {
		bool one = doctor->fabric != FABRIC_IWARP && size <= mtu && passed >= MTU_LEAST;

		error_set(&error, NULL,
			  "%s of up to %" PRIu32 " bytes pass, those of %" PRIu32 " %s (path MTU %" PRIu32 "): %s",
			  one ? "packets" : "pings", passed, size, way, mtu, lost.cause);
		if (one)
			hint_at_mtu(doctor, host, passed, &error);
	}
	error_hint(&error, "if the server still runs, look for dropped packets: ip -s link show %s, and the switch",
		   doctor->netdev);
	finding_add_error(doctor, FINDING_FAIL, "ping", &error);
}

/* Its pings have one size. */
static bool is_stock(const struct doctor *doctor, const struct ping_facts *facts)
{
	return WITH_REPORT && facts->answered == pings_of(doctor);
}

static void add_passed(struct doctor *doctor, const char *verdict, const struct ping_facts *facts)
{
	char time[UNITS_TEXT_SIZE], slow[48] = "";
	const char *more = is_stock(doctor, facts)		? "; a stock server does not take longer ones"
			   : HAS_LOAD && !doctor->options->load ? "; not under load (--load)"
								: "";

	if (facts->connecting >= CLOCK_NS_PER_S)
		log_text(slow, sizeof(slow), "; connecting took %s", units_time(facts->connecting, time));
	finding_add(doctor, FINDING_OK, "ping", "%s%s%s", verdict, more, slow);
}

static void add_passed_sizes(struct doctor *doctor, const struct address *address, uint32_t mtu, uint32_t longest)
{
	char own[48] = "", more[96] = "";
	bool roce = WITH_EXTRAS && doctor->fabric == FABRIC_ROCE, differ = false; /* the ends */
	struct route route;

	/* The path MTU is a power of two. */
	if (roce && mtu < MTU_MOST && route_look_up(address, &doctor->local, &route) && route.mtu < 2 * mtu + HEADERS) {
		log_text(more, sizeof(more), "; path MTU %d needs MTU %d at both ends: on %s it is %" PRIu32, MTU_MOST,
			 ETHERNET_MOST, doctor->netdev, route.mtu);
	} else if (doctor->mtu > mtu) {
		differ = roce;
		log_text(own, sizeof(own), " (of this host %" PRIu32 "%s)", doctor->mtu,
			 differ ? ", so the ends differ" : "");
	}
	finding_add(doctor, differ ? FINDING_WARN : FINDING_OK, "mtu",
		    "path MTU %" PRIu32 "%s: packets of up to that size pass both ways, and %" PRIu32
		    " in a row%s\n%s%s",
		    mtu, own, longest / mtu, more, differ ? "compare both ends: ip link show " : "",
		    differ ? doctor->netdev : "");
}

/* Bytes per second; not above 0: unknown, as of a loopback interface. */
static double link_speed(const struct doctor *doctor)
{
	char megabits[SYSFS_TEXT_SIZE];

	sysfs_line(megabits, "%s/sys/class/net/%s/speed", doctor->host.root, doctor->netdev);
	return (double)strtol(megabits, NULL, 10) * (1000000 / 8);
}

/* busy: how much of the time, in percent, the program ran or waited for a processor; 0: unknown. */
static void add_load(struct doctor *doctor, const struct ping_facts *facts, int busy)
{
	const double bytes = (double)(facts->answered * facts->size) * CLOCK_NS_PER_S;
	double there = bytes / (double)facts->there, back = bytes / (double)(facts->both - facts->there);
	double speed = link_speed(doctor);
	bool soft = !doctor->verbs_selected;
	bool slow = MIN(there, back) < speed / (double)SLOW && !(soft && (!busy || busy >= BUSY));
	char texts[3][UNITS_TEXT_SIZE], link[48] = "", time[80] = "";

	if (speed > 0)
		log_text(link, sizeof(link), ", link %s", units_bandwidth(speed, texts[2]));
	if (soft && busy)
		log_text(time, sizeof(time), "; this program ran or waited for a processor %d%% of the time", busy);
	finding_add(doctor, slow ? FINDING_WARN : FINDING_OK, "load", "%s there, %s back%s%s",
		    units_bandwidth(there, texts[0]), units_bandwidth(back, texts[1]), link, time);
}

static void check_load(struct doctor *doctor, const char *host)
{
	const struct error *error = &doctor->probe.errors.first;
	const struct reporting_processor before = reporting_processor();
	struct reporting_processor after;
	int64_t begun = clock_now();
	struct child_run ping = { .running = false };
	struct ping_facts facts = { .answered = 0 };

	ping_send(doctor, host, "-S 1M --duration 1s", &ping, &facts);
	after = reporting_processor();
	if (!ping.run.outcome && facts.answered)
		add_load(doctor, &facts,
			 (int)((after.ran - before.ran + after.waited - before.waited) * 100 / (clock_now() - begun)));
	else if (ping.run.outcome == OUTCOME_NO_CONNECTION)
		finding_add(doctor, FINDING_WARN, "load",
			    "not tried: %s\nif the server has ended after one client, start it with -P", error->cause);
	else
		finding_add_error(doctor, FINDING_FAIL, "load", error);
	child_run_free(&ping);
}

/* On a device the pings have the first queue pair; soft has already connected to itself, without losses. */
static void report_network(struct doctor *doctor)
{
	struct transport *transport = doctor->run->transport;
	char *note = reporting_network_note(transport), *rest = note, *line;
	char hint[REPORTING_HINT_SIZE];

	reporting_network_hint(transport, note, !doctor->options->paths, hint);
	while ((line = strsep(&rest, "\n")) && *line)
		finding_add(doctor, FINDING_WARN, "network", "%s\n%s", line, rest ? "" : hint);
	free(note);
}

static bool passes_with(struct doctor *doctor, const char *host, uint64_t given, int64_t timeout)
{
	struct child_run ping = { .running = false };
	struct ping_facts facts = { .answered = 0 };

	send_pings(doctor, host, given, "-C 1", timeout, &ping, &facts);
	child_run_free(&ping);
	return facts.answered;
}

/* Returns the bits of the options that block pings, 0 for none: of one, or of all if none blocks alone. */
static uint64_t find_culprit(struct doctor *doctor, const char *host)
{
	uint64_t path = 0, bit = 1;
	int64_t timeout;

	for (const struct option *row = option_first(doctor->run->command->options); row;
	     row = option_next(row), bit <<= 1)
		if (row->tags & FOR_PATH)
			path |= doctor->given & bit;
	timeout = doctor->options->common.timeout / (1 + __builtin_popcountll(path));
	if (!path || !passes_with(doctor, host, doctor->given & ~path, timeout))
		return 0;
	for (uint64_t left = path; left; left &= left - 1) {
		uint64_t one = left & -left;

		if (path == one || passes_with(doctor, host, doctor->given & ~one, timeout))
			return one;
	}
	return path;
}

void ping_blame(struct doctor *doctor, const struct address *address, const char *check, const struct error *failure)
{
	struct error error = *failure;
	char host[ADDRESS_TEXT_SIZE], words[PATH_WORDS_SIZE];
	size_t used;
	uint64_t culprit = COMMAND_rping ? find_culprit(doctor, address_host(address, host)) : 0;

	if (culprit) {
		used = error.kind == ERROR_NO_REPLY ? 0 : strlen(error.cause);
		log_text(error.cause + used, sizeof(error.cause) - used, "%s; without%s pings pass",
			 used ? "" : "no answer", path_words(doctor, culprit, words));
		*error.hint = '\0';
	}
	finding_add_error(doctor, FINDING_FAIL, check, &error);
}

void ping_check(struct doctor *doctor, const struct address *address)
{
	const uint32_t longest = PACKETS * (doctor->mtu ? doctor->mtu : MTU_UNKNOWN);
	struct error *error = &doctor->probe.errors.first;
	struct child_run ping = { .running = false };
	char options[48], host[ADDRESS_TEXT_SIZE];
	struct ping_facts facts = { .answered = 0 };

	if (WITH_REPORT)
		log_text(options, sizeof(options), "-C %u -S 0-%" PRIu32, pings_of(doctor), longest);
	else
		log_text(options, sizeof(options), "-C %u", pings_of(doctor));
	send_pings(doctor, address_host(address, host), doctor->given, options, doctor->options->common.timeout, &ping,
		   &facts);
	doctor->unanswered = error->kind == ERROR_NO_REPLY && !facts.answered;
	doctor->unexplained = doctor->unanswered && !doctor->run->transport->explained;
	/* soft has its own hints. */
	if (error->kind == ERROR_NO_REPLY && doctor->verbs_selected)
		hint_at_firewall(doctor, address, error);
	if (!ping.run.outcome) {
		add_passed(doctor, ping.run.verdict, &facts);
		if (facts.answered > pings_of(doctor) && facts.mtu && doctor->fabric != FABRIC_IWARP)
			add_passed_sizes(doctor, address, facts.mtu, longest);
	} else if (facts.answered && (facts.not_read || facts.not_written_back)) {
		add_lost_size(doctor, host, facts.mtu ? facts.mtu : longest / PACKETS, &facts);
	} else {
		ping_blame(doctor, address, "ping", error);
	}
	if (HAS_LOAD && doctor->options->load && !ping.run.outcome) {
		if (is_stock(doctor, &facts))
			finding_add(doctor, FINDING_WARN, "load", "not tried: a stock server does not take long pings");
		else
			check_load(doctor, host);
	}
	child_run_free(&ping);
	if (WITH_REPORT)
		report_network(doctor);
}
