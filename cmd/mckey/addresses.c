/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks -m, -M and -b up. Numeric addresses are checked before a device is opened, names once they are known. */
#include "cmd/lookup.h"
#include "cmd/mckey/mckey.h"

/* The unspecified address requests a group. */
static enum outcome check_group(const struct mckey_options *options, const struct log *log, const struct address *group)
{
	if (address_is_multicast(group) || (group->family && address_is_any(group)))
		return OUTCOME_OK;
	if (options->gid)
		log_error(log, "-M, --mgid", "%s is not a multicast GID: those begin with ff", options->gid);
	else
		log_error(log, "-m, --group",
			  "%s is not a multicast address: those are 224.0.0.0 to 239.255.255.255, or begin with ff",
			  options->group);
	return OUTCOME_USAGE;
}

enum outcome addresses_check(const struct mckey_options *options, const struct log *log)
{
	const char *target = options->gid ? options->gid : options->group;
	struct address group = { 0 }, source = { 0 };
	enum outcome outcome;

	if (!target) {
		log_error(log, NULL, "-m, --group or -M, --mgid is needed");
		log_hint(log, "%s --help lists the options", log->name);
		return OUTCOME_USAGE;
	}
	address_parse(target, options->gid ? ADDRESS_FORMAT_GID : ADDRESS_FORMAT_IP, &group);
	outcome = options->gid || group.family ? check_group(options, log, &group)
					       : host_check(log, "-m, --group", target, &group, NULL, true);
	if (outcome || !options->bind)
		return outcome;
	address_parse(options->bind, ADDRESS_FORMAT_IP, &source);
	outcome = host_check(log, "-b, --bind", options->bind, &source, NULL, options->common.path.interface);
	if (outcome || options->gid || !group.family || !source.family || source.family == group.family)
		return outcome;
	log_error(log, "-b, --bind", "%s and -m %s are not of the same address family", options->bind, options->group);
	return OUTCOME_USAGE;
}

enum outcome addresses_look_up(struct mckey *mckey)
{
	const struct mckey_options *options = mckey->options;
	struct resolver resolver;
	enum outcome outcome = lookup(&resolver, mckey->run, &options->common, mckey->figures.target,
				      options->gid ? ADDRESS_FORMAT_GID : ADDRESS_FORMAT_ANY);

	mckey->group = resolver.addresses[0];
	if (!outcome)
		outcome = check_group(options, mckey->log, &mckey->group);
	if (outcome || !options->bind)
		return outcome;
	resolver_start(&resolver, mckey->log, options->bind, ADDRESS_FORMAT_ANY, 0);
	outcome = lookup_finish(&resolver, mckey->run, &options->common,
				options->gid ? ADDRESS_NONE : mckey->group.family);
	mckey->source = resolver.addresses[0];
	return outcome;
}
