/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/lookup.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "cmd/signals.h"
#include "core/name_cause.h"
#include "core/nameservers.h"
#include "core/units.h"

#define DIGITS	   "0123456789"
#define NAME_BYTES DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-._%"
/* The characters of names and addresses, including an interface, brackets and a port. */
#define HOST_BYTES NAME_BYTES ":[]"

enum {
	NAME_MAX_BYTES = 253,
	/* Digits of a likely port: fewer are ping's count or size, "rping -c 5 HOST" or "-s 100". */
	PORT_DIGITS = 4,
	FAULT_SIZE = 72,
};

#define SERVERS_TICK (20 * CLOCK_NS_PER_MS) /* between two looks at name servers that have not answered */

/*
 * The text's number, or the port at its end, else NULL: a name has no colon, and an address without a port has at least
 * two.
 */
static const char *number_in(const char *text)
{
	const char *colon = strrchr(text, ':'), *number = colon ? colon + 1 : text;

	if (!*number || number[strspn(number, DIGITS)])
		return NULL;
	return !colon || strchr(text, ':') == colon || colon[-1] == ']' ? number : NULL;
}

bool host_is_device(const char *text)
{
	char file[128];

	log_text(file, sizeof(file), "/sys/class/infiniband/%.64s", text);
	return !access(file, F_OK);
}

/* Names a UTF-8 character: a typographic quotation mark, or an invisible blank. */
static const char *character_fault(const char *text, char fault[FAULT_SIZE])
{
	unsigned first = (uint8_t)*text, code = first & (first < 0xe0 ? 0x1f : 0x0f);

	if (first < 0x80)
		return log_text(fault, FAULT_SIZE, "has '%c', which no host name or address has", *text);
	while ((*++text & 0xc0) == 0x80)
		code = code << 6 | (*text & 0x3f);
	return log_text(fault, FAULT_SIZE, "has the character U+%04X, which no host name or address has", code);
}

/* A host list, as from Slurm, "node[01-04]", and MPI, "node1,node2". */
static bool is_list(const char *text)
{
	const char *bracket = strchr(text, '[');

	return text[strspn(text, HOST_BYTES)] == ',' || (bracket && !strchr(text, ':') && strspn(bracket + 1, DIGITS));
}

/*
 * Whether a number of an IPv4 address has a leading zero, which makes the C library read another value, in octal. Then
 * writes the decimal address.
 */
static bool is_octal(const char *text, char meant[ADDRESS_TEXT_SIZE])
{
	bool octal = false;

	*meant = '\0';
	for (unsigned i = 0; i < 4; i++) {
		size_t digits = strspn(text, DIGITS);
		unsigned long number = strtoul(text, NULL, 10);

		if (!digits || number > UINT8_MAX || text[digits] != (i < 3 ? '.' : '\0'))
			return false;
		octal |= *text == '0' && number > 7;
		log_add(meant, ADDRESS_TEXT_SIZE, ".", "%lu", number);
		text += digits + 1;
	}
	return octal;
}

/* Why a text that is not a numeric address cannot be a name, or NULL. */
static const char *name_fault(const char *text, char fault[FAULT_SIZE])
{
	const char *number = number_in(text);
	char meant[ADDRESS_TEXT_SIZE];
	struct in_addr ignored;
	const char *other = text + strspn(text, strchr(text, ':') ? HOST_BYTES : NAME_BYTES);

	if (!WITH_NAMES)
		return "is not an address, and this build cannot look up names";
	if (WITH_DIAGNOSTICS && strlen(text) > NAME_MAX_BYTES)
		return "... is too long for a name";
	if (WITH_DIAGNOSTICS && is_list(text))
		return "is a list of hosts, not a host";
	if (WITH_DIAGNOSTICS && *other)
		return character_fault(other, fault);
	if (WITH_DIAGNOSTICS && is_octal(text, meant))
		return "has a leading zero, which makes a number octal";
	/* The C library also takes 10.1 for 10.0.0.1. */
	if (WITH_DIAGNOSTICS && !text[strspn(text, DIGITS ".")] && !inet_aton(text, &ignored))
		return "is not an IPv4 address";
	if (number)
		return number == text ? "is a number, not an address" : "includes a port";
	return EXTRA(host_is_device(text)) ? "is an RDMA device, not a host" : NULL;
}

static const char *address_fault(const struct address *address, bool has_interface)
{
	if (address_is_link_local(address) && !address->scope && !has_interface)
		return "is a link-local address and needs its interface, ADDRESS%INTERFACE";
	if (address_is_multicast(address))
		return "is a multicast group, not a host";
	return WITH_DIAGNOSTICS && address_is_broadcast(address) ? "is the broadcast address, not a host" : NULL;
}

/* Extracts the host from a URL, after a user, before a prefix length, or from quotation marks. */
static void hint_host(const struct log *log, const char *text)
{
	const char *scheme = strstr(text, "://"), *start = scheme ? scheme + strlen("://") : text;
	const char *user = strchr(start, '@'), *rest;

	start = user ? user + 1 : start;
	start += strcspn(start, HOST_BYTES);
	rest = start + strspn(start, HOST_BYTES);
	/* Else there are several hosts, or an invalid letter. */
	if (rest != start && strchr("/", rest[strcspn(rest, "/" HOST_BYTES)]))
		log_hint(log, "did you mean %.*s?", (int)(rest - start), start);
}

static void hint_meant(const struct log *log, const char *option, const char *text, const char *port_option)
{
	const char *number = number_in(text), *meant = port_option;
	char decimal[ADDRESS_TEXT_SIZE];

	if (is_list(text)) {
		log_hint(log, "name each host separately, as scontrol show hostnames prints them");
		return;
	}
	if (text[strspn(text, HOST_BYTES)]) {
		hint_host(log, text);
		return;
	}
	if (is_octal(text, decimal)) {
		log_hint(log, "did you mean %s?", decimal);
		return;
	}
	/* In a line of a list it is MPI's number of processes. */
	if (number && strlen(number) < PORT_DIGITS && (number == text || strchr(option, ':')))
		meant = !strcmp(option, "-s") ? "-S" : !strcmp(option, "ADDRESS") ? "-C" : NULL;
	if (number && meant)
		log_hint(log, "did you mean %s %s?", meant, number);
}

enum outcome host_check(const struct log *log, const char *option, const char *text, const struct address *address,
			const char *port_option, bool has_interface)
{
	char text_of_fault[FAULT_SIZE];
	const char *fault = address->family ? address_fault(address, has_interface) : name_fault(text, text_of_fault);

	if (!fault)
		return OUTCOME_OK;
	log_error(log, option, "%.253s %s", text, fault);
	if (WITH_NAMES && WITH_DIAGNOSTICS && !address->family && strlen(text) <= NAME_MAX_BYTES)
		hint_meant(log, option, text, port_option);
	return OUTCOME_USAGE;
}

static enum outcome parse_host(const struct log *log, const char *option, const char *text, bool has_interface,
			       struct address *address)
{
	address_parse(text, ADDRESS_FORMAT_IP, address);
	/* In a line of --targets, FILE:LINE, the port follows the address. */
	return host_check(log, option, text, address, strchr(option, ':') ? "ADDRESS" : "-p", has_interface);
}

enum outcome peer_check(const struct log *log, const char *source, const char *interface, const char *option,
			const char *text)
{
	struct address address = { 0 }, local = { 0 };
	enum outcome outcome = OUTCOME_OK;

	if (source)
		outcome = parse_host(log, "-I", source, true, &local);
	if (!outcome)
		outcome = parse_host(log, option, text, source || interface, &address);
	if (!outcome && local.family && address.family && local.family != address.family) {
		log_error(log, option, "%s is not of the same family as -I %s", text, source);
		outcome = OUTCOME_USAGE;
	}
	return outcome;
}

static enum outcome filter(struct resolver *resolver, const struct common_options *options, enum address_family source)
{
	bool ip4 = EXTRA(options->family.ip4), ip6 = EXTRA(options->family.ip6);
	size_t count = resolver->count;

	resolver->count = 0;
	for (size_t i = 0; i < count; i++) {
		enum address_family family = resolver->addresses[i].family;

		if ((!source || source == family) && !(ip4 && family == ADDRESS_IP6) && !(ip6 && family == ADDRESS_IP4))
			resolver->addresses[resolver->count++] = resolver->addresses[i];
	}
	if (resolver->count)
		return OUTCOME_OK;
	log_error(resolver->log, resolver->text, "no address matches %s",
		  ip4	? "--ipv4"
		  : ip6 ? "--ipv6"
			: "the family of the source address");
	return OUTCOME_NO_CONNECTION;
}

/* ---- a look-up ---- */

static bool all_have_answered(const struct nameservers *servers)
{
	for (unsigned i = 0; i < servers->count; i++)
		if (!signals_wait(servers->list[i].socket, 0))
			return false;
	return true;
}

/* Names the servers that have not answered a query of our own. */
static void hint_servers(struct lookup *lookup)
{
	const struct resolver *resolver = lookup->resolver;
	struct nameservers *servers = &lookup->servers;
	char text[NAMESERVERS_MAX * ADDRESS_TEXT_SIZE] = "", host[ADDRESS_TEXT_SIZE];

	for (unsigned i = 0; i < servers->count; i++)
		if (!nameserver_has_answered(&servers->list[i]))
			log_add(text, sizeof(text), ", ", "%s", address_host(&servers->list[i].address, host));
	servers->count = 0;
	/* For an interface lookup_result() has a better hint. */
	if (!*text || !resolver->temporary || signals_received() || if_nametoindex(resolver->text) ||
	    (lookup->hinted && *lookup->hinted & LOOKUP_HINTED))
		return;
	if (lookup->hinted)
		*lookup->hinted |= LOOKUP_HINTED;
	if (servers->none_named)
		log_hint(resolver->log, "/etc/resolv.conf names no name server; an address needs none");
	else
		log_hint(resolver->log, "no answer from name server %s (/etc/resolv.conf); an address needs none",
			 text);
}

/* Ends a look-up that has taken too long, or was interrupted by a signal. */
static enum outcome lookup_give_up(const struct lookup *lookup)
{
	struct resolver *resolver = lookup->resolver;
	char text[UNITS_TEXT_SIZE];

	resolver_stop(resolver);
	if (signals_received()) {
		log_cause(resolver->log, resolver->text, "looking up", 0, "interrupted");
		return OUTCOME_FAILED;
	}
	log_cause(resolver->log, resolver->text, "looking up", 0,
		  lookup->at_deadline ? "deadline of %s exceeded" : "timed out after %s",
		  units_duration(lookup->limit, text));
	resolver->temporary = true;
	return OUTCOME_NO_CONNECTION;
}

void lookup_begin(struct lookup *lookup, struct resolver *resolver, const struct run *run,
		  const struct common_options *options, int64_t begun)
{
	int64_t limit = resolver->wait + options->timeout, end = run->begun + options->deadline;
	bool at_deadline = options->deadline && end < begun + limit;

	if (at_deadline)
		limit = options->deadline;
	*lookup = (struct lookup){
		.resolver = resolver,
		.until = at_deadline ? end : begun + limit,
		.limit = limit,
		.quarter = MIN(limit, options->timeout) / 4,
		.at_deadline = at_deadline,
	};
	/* A look-up that waited behind others may have no time left for that. */
	lookup->may_ask = WITH_DIAGNOSTICS && clock_now() < lookup->until - lookup->quarter;
}

/* The look-up has its result, or is given up. Asks the name servers after a failure that may be theirs. */
static void lookup_explain(struct lookup *lookup, int64_t now)
{
	struct resolver *resolver = lookup->resolver;
	char why[NAME_CAUSE_SIZE];

	if (WITH_DIAGNOSTICS && resolver->outcome == OUTCOME_NO_CONNECTION && !lookup->brief && !signals_received() &&
	    name_cause("", resolver->text, why)) {
		log_hint(resolver->log, "%s", why);
		resolver->temporary = false;
	}
	if (resolver->temporary && lookup->may_ask && !lookup->servers.count) {
		nameservers_ask(&lookup->servers);
		lookup->until = MIN(lookup->until, now + lookup->quarter);
	}
}

/* The look-up goes on. In the last quarter of its time asks the name servers beside it. */
static void lookup_wait(struct lookup *lookup, int64_t now)
{
	int64_t last_quarter = lookup->until - lookup->quarter;

	lookup->next = lookup->until;
	if (!lookup->may_ask || lookup->servers.count)
		return;
	if (now < last_quarter)
		lookup->next = last_quarter;
	else
		nameservers_ask(&lookup->servers);
}

/* First the look-up itself, then after a failure the answers of the name servers. */
bool lookup_continue(struct lookup *lookup)
{
	struct resolver *resolver = lookup->resolver;
	int64_t now = clock_now();

	if (resolver->child) {
		bool readable = signals_wait(resolver->pipe, 0);

		if (!readable && now < lookup->until && !signals_received()) {
			lookup_wait(lookup, now);
			return false;
		}
		resolver->outcome = readable ? resolver_read(resolver) : lookup_give_up(lookup);
		lookup_explain(lookup, now);
	}
	if (resolver->temporary && now < lookup->until && !signals_received() && !all_have_answered(&lookup->servers)) {
		lookup->next = MIN(lookup->until, now + SERVERS_TICK);
		return false;
	}
	hint_servers(lookup);
	return true;
}

enum outcome lookup_result(const struct lookup *lookup, const struct common_options *options,
			   enum address_family source)
{
	struct resolver *resolver = lookup->resolver;

	/* As in ping -I eth0. */
	if (WITH_NAMES && WITH_HELP && EXTRA(resolver->outcome == OUTCOME_NO_CONNECTION) &&
	    if_nametoindex(resolver->text))
		log_hint(resolver->log, "did you mean --interface %s?", resolver->text);
	/* Without names the typed family decides: the kernel refuses another source. */
	if ((WITH_NAMES || WITH_EXTRAS) && !resolver->outcome)
		resolver->outcome = filter(resolver, options, source);
	return resolver->outcome;
}

void lookup_stop(struct lookup *lookup)
{
	resolver_stop(lookup->resolver);
	for (unsigned i = 0; i < lookup->servers.count; i++)
		nameserver_has_answered(&lookup->servers.list[i]);
	lookup->servers.count = 0;
}

enum outcome lookup_finish(struct resolver *resolver, const struct run *run, const struct common_options *options,
			   enum address_family source)
{
	struct lookup lookup = { .resolver = resolver };

	if (WITH_NAMES) {
		lookup_begin(&lookup, resolver, run, options, run->begun);
		while (!lookup_continue(&lookup))
			signals_wait(resolver->child ? resolver->pipe : -1, lookup.next);
	}
	return lookup_result(&lookup, options, source);
}

enum outcome lookup(struct resolver *resolver, const struct run *run, const struct common_options *options,
		    const char *text, enum address_format format)
{
	resolver_start(resolver, &run->log, text, format, 0);
	return lookup_finish(resolver, run, options, ADDRESS_NONE);
}
