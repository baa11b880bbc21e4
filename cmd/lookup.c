/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/lookup.h"

#include <net/if.h>
#include <string.h>

#include "cmd/signals.h"
#include "core/units.h"

#define DIGITS "0123456789"

/* The digits that make a port: fewer are a count or size of ping, "rping -c 5 HOST" or "-s 100". */
enum {
	PORT_DIGITS = 4
};

/*
 * The number that a text is, or ends with as a port, else NULL: a name has no colon, and an address without a port has
 * at least two.
 */
static const char *number_in(const char *text)
{
	const char *colon = strrchr(text, ':'), *number = colon ? colon + 1 : text;

	if (!*number || number[strspn(number, DIGITS)])
		return NULL;
	return !colon || strchr(text, ':') == colon || colon[-1] == ']' ? number : NULL;
}

enum outcome host_check(const struct log *log, const char *option, const char *text, const struct address *address,
			const char *port_option, bool has_interface)
{
	const char *number = WITH_NAMES && !address->family ? number_in(text) : NULL, *fault = NULL;
	const char *meant = port_option;

	if (WITH_CAUSES && strlen(text) > 253)
		fault = "... is too long for a name";
	else if (number)
		fault = number == text ? "is a number, not an address" : "includes a port";
	else if (!WITH_NAMES && !address->family)
		fault = "is not an address, and this build cannot look up names";
	else if (address_is_link_local(address) && !address->scope && !has_interface)
		fault = "is a link-local address and needs its interface, ADDRESS%INTERFACE";
	else if (address_is_multicast(address))
		fault = "is a multicast group, not a host";
	if (!fault)
		return OUTCOME_OK;
	log_error(log, option, "%.253s %s", text, fault);
	if (number == text && strlen(text) < PORT_DIGITS)
		meant = !strcmp(option, "-s") ? "-S" : !strcmp(option, "ADDRESS") ? "-C" : NULL;
	if (number && meant)
		log_hint(log, "did you mean %s %s?", meant, number);
	return OUTCOME_USAGE;
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
			: "the family of the other address");
	return OUTCOME_NO_CONNECTION;
}

/* Ends a look-up that has taken too long, or a signal interrupts. */
static enum outcome lookup_give_up(struct resolver *resolver, bool at_deadline, int64_t limit)
{
	char text[UNITS_TEXT_SIZE];

	resolver_stop(resolver);
	if (signals_received()) {
		log_cause(resolver->log, resolver->text, "looking up", 0, "interrupted");
		return OUTCOME_FAILED;
	}
	log_cause(resolver->log, resolver->text, "looking up", 0,
		  at_deadline ? "deadline of %s exceeded" : "timed out after %s", units_limit(limit, text));
	return OUTCOME_NO_CONNECTION;
}

enum outcome lookup_finish(struct resolver *resolver, const struct environment *environment,
			   const struct common_options *options, enum address_family source)
{
	int64_t limit = resolver->wait + options->timeout;
	bool at_deadline = options->deadline && options->deadline < limit;

	if (at_deadline)
		limit = options->deadline;
	if (WITH_NAMES && resolver->child > 0 && !signals_wait(resolver->pipe, environment->begun + limit))
		resolver->outcome = lookup_give_up(resolver, at_deadline, limit);
	else
		resolver->outcome = resolver_read(resolver);
	/* As in ping -I eth0. A command that chooses the transport has no such option. */
	if (WITH_NAMES && WITH_HELP && EXTRA(resolver->outcome == OUTCOME_NO_CONNECTION) &&
	    !environment->command->chooses_transport && if_nametoindex(resolver->text))
		log_hint(resolver->log, "did you mean --interface %s?", resolver->text);
	/* Without names the family is the one that was typed: the kernel refuses another source. */
	if ((WITH_NAMES || WITH_EXTRAS) && !resolver->outcome)
		resolver->outcome = filter(resolver, options, source);
	return resolver->outcome;
}

enum outcome lookup(struct resolver *resolver, const struct environment *environment,
		    const struct common_options *options, const char *text, enum address_format format)
{
	resolver_start(resolver, &environment->log, text, format, 0);
	return lookup_finish(resolver, environment, options, ADDRESS_NONE);
}
