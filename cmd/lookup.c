/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/lookup.h"

#include "cmd/signals.h"
#include "core/units.h"

static bool is_allowed(const struct family_options *options, enum address_family source, enum address_family family)
{
	if (source && source != family)
		return false;
	return !(options->ip4 && family == ADDRESS_IP6) && !(options->ip6 && family == ADDRESS_IP4);
}

static enum outcome filter(struct resolver *resolver, const struct family_options *options, enum address_family source)
{
	size_t count = resolver->count;

	resolver->count = 0;
	for (size_t i = 0; i < count; i++)
		if (is_allowed(options, source, resolver->addresses[i].family))
			resolver->addresses[resolver->count++] = resolver->addresses[i];
	if (resolver->count)
		return OUTCOME_OK;
	log_error(resolver->log, resolver->text, "no address matches %s",
		  source	 ? "--source"
		  : options->ip4 ? "--ipv4"
				 : "--ipv6");
	return OUTCOME_NO_CONNECTION;
}

/* Ends a look-up that has taken too long, or a signal interrupts. */
static enum outcome lookup_give_up(struct resolver *resolver, bool at_deadline, int64_t limit)
{
	resolver_stop(resolver);
	if (signals_received()) {
		log_cause(resolver->log, resolver->text, "looking up", 0, "interrupted");
		return OUTCOME_FAILED;
	}
	log_cause(resolver->log, resolver->text, "looking up", 0,
		  at_deadline ? "deadline of %.9g s exceeded" : "timed out after %.9g s", units_seconds(limit));
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
	if (!resolver->outcome)
		resolver->outcome = filter(resolver, &options->family, source);
	return resolver->outcome;
}

enum outcome lookup(struct resolver *resolver, const struct environment *environment,
		    const struct common_options *options, const char *text, enum address_format format)
{
	resolver_start(resolver, &environment->log, text, format, 0);
	return lookup_finish(resolver, environment, options, ADDRESS_NONE);
}
