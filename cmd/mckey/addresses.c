/* SPDX-License-Identifier: BSD-2-Clause */
/* Resolves -m, -M and -b. Numeric addresses are checked before a device is opened, names once they are resolved. */
#include <string.h>

#include "cmd/host.h"
#include "cmd/mckey/mckey.h"

/* Parses a numeric group address. "0" is the unspecified address, as in the stock tool's manual. */
static bool parse_group(const struct mckey_options *options, struct address *group)
{
	const char *text = options->gid ? options->gid : options->group;

	if (!strcmp(text, "0")) {
		*group = (struct address){ .family = options->gid ? ADDRESS_GID : ADDRESS_IP4 };
		return true;
	}
	return address_parse(text, options->gid ? ADDRESS_FORMAT_GID : ADDRESS_FORMAT_IP, group);
}

static bool is_group(const struct address *address)
{
	return address_is_multicast(address) || address_is_any(address);
}

static enum outcome check_group(const struct mckey_options *options, const struct log *log, const struct address *group)
{
	if (is_group(group))
		return OUTCOME_OK;
	if (options->gid)
		log_error(log, "-M, --mgid", "%s is not a multicast GID: those begin with ff", options->gid);
	else if (group->family == ADDRESS_IP4)
		log_error(log, "-m, --group", "%s is not a multicast address: those are 224.0.0.0 to 239.255.255.255",
			  options->group);
	else
		log_error(log, "-m, --group", "%s is not a multicast address: those begin with ff", options->group);
	return OUTCOME_USAGE;
}

static enum outcome wrong_family(const struct mckey_options *options, const struct log *log)
{
	log_error(log, "-b, --bind", "%s and -m %s are not of the same address family", options->bind, options->group);
	return OUTCOME_USAGE;
}

enum outcome addresses_check(const struct mckey_options *options, const struct log *log)
{
	struct address group = { 0 }, source = { 0 };
	bool numeric;

	if (!options->gid && !options->group) {
		log_error(log, NULL, "-m, --group or -M, --mgid is needed");
		log_hint(log, "%s --help lists the options", log->name);
		return OUTCOME_USAGE;
	}
	numeric = parse_group(options, &group);
	if (options->gid && !numeric) {
		log_error(log, "-M, --mgid", "'%s' is not a GID: those are written as IPv6 addresses, or 0",
			  options->gid);
		return OUTCOME_USAGE;
	}
	if (numeric ? check_group(options, log, &group)
		    : host_check(log, "-m, --group", options->group, &group, NULL, true))
		return OUTCOME_USAGE;
	if (!options->bind)
		return OUTCOME_OK;
	address_parse(options->bind, ADDRESS_FORMAT_IP, &source);
	if (host_check(log, "-b, --bind", options->bind, &source, NULL, EXTRA(options->common.path.interface)))
		return OUTCOME_USAGE;
	if (options->gid && address_is_any(&source)) {
		log_error(log, "-b, --bind", "%s is not the address of a local device", options->bind);
		return OUTCOME_USAGE;
	}
	if (numeric && !options->gid && source.family && source.family != group.family)
		return wrong_family(options, log);
	return OUTCOME_OK;
}

/* Chooses the first multicast address of the group, and with -b a local address of the same family; then joins. */
static void choose_addresses(struct mckey_run *run)
{
	bool any_group = false;

	for (size_t i = 0; i < run->group_addresses.count; i++) {
		run->group = run->group_addresses.addresses[i];
		if (!is_group(&run->group) ||
		    !path_allows(&run->options->common.family, ADDRESS_NONE, run->group.family))
			continue;
		any_group = true;
		if (!run->options->bind) {
			mckey_join(run);
			return;
		}
		for (size_t j = 0; j < run->source_addresses.count; j++) {
			run->source = run->source_addresses.addresses[j];
			if (run->source.family == run->group.family || run->group.family == ADDRESS_GID) {
				mckey_join(run);
				return;
			}
		}
	}
	if (any_group)
		wrong_family(run->options, run->log);
	else
		log_error(run->log, "-m, --group", "%s has no multicast address that may be used", run->group_text);
	mckey_end(run, OUTCOME_USAGE);
}

static void addresses_store(struct mckey_run *run, struct found_addresses *found, enum outcome outcome,
			    const struct address *addresses, size_t count)
{
	if (outcome || !count) {
		mckey_end(run, outcome ? outcome : OUTCOME_NO_CONNECTION);
		return;
	}
	found->count = count < RESOLVER_ADDRESSES_MAX ? count : RESOLVER_ADDRESSES_MAX;
	memcpy(found->addresses, addresses, found->count * sizeof(*addresses));
}

static void addresses_source_found(void *context, enum outcome outcome, const struct address *addresses, size_t count)
{
	struct mckey_run *run = context;

	addresses_store(run, &run->source_addresses, outcome, addresses, count);
	if (run->source_addresses.count)
		choose_addresses(run);
}

static void look_up_source(struct mckey_run *run)
{
	if (run->options->bind)
		resolver_start(&run->resolver, run->environment->loop, run->log, run->options->bind, ADDRESS_FORMAT_ANY,
			       run->options->common.timeout, addresses_source_found, run);
	else
		choose_addresses(run);
}

static void addresses_group_found(void *context, enum outcome outcome, const struct address *addresses, size_t count)
{
	struct mckey_run *run = context;

	addresses_store(run, &run->group_addresses, outcome, addresses, count);
	if (run->group_addresses.count)
		look_up_source(run);
}

void addresses_look_up(struct mckey_run *run)
{
	struct address group;

	if (parse_group(run->options, &group)) {
		addresses_store(run, &run->group_addresses, OUTCOME_OK, &group, 1);
		look_up_source(run);
	} else {
		resolver_start(&run->resolver, run->environment->loop, run->log, run->group_text, ADDRESS_FORMAT_ANY,
			       run->options->common.timeout, addresses_group_found, run);
	}
}
