/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks -m, -M and -b up. Numeric addresses are checked before a device is opened, names once they are known. */
#include <string.h>

#include "cmd/lookup.h"
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

static enum outcome wrong_family(const struct mckey_options *options, const struct log *log)
{
	log_error(log, "-b, --bind", "%s and -m %s are not of the same address family", options->bind, options->group);
	return OUTCOME_USAGE;
}

static enum outcome check_group(const struct mckey_options *options, const struct log *log, struct address *group)
{
	const char *option = options->gid ? "-M, --mgid" : "-m, --group";

	if (!parse_group(options, group)) {
		if (!options->gid)
			return host_check(log, option, options->group, group, NULL, true);
		log_error(log, option, "'%s' is not a GID: those are written as IPv6 addresses, or 0", options->gid);
		return OUTCOME_USAGE;
	}
	if (is_group(group))
		return OUTCOME_OK;
	log_error(log, option, "%s is not a multicast %s begin with ff", options->gid ? options->gid : options->group,
		  options->gid ? "GID: those" : "address: those are 224.0.0.0 to 239.255.255.255, or");
	return OUTCOME_USAGE;
}

enum outcome addresses_check(const struct mckey_options *options, const struct log *log)
{
	struct address group = { 0 }, source = { 0 };

	if (!options->gid && !options->group) {
		log_error(log, NULL, "-m, --group or -M, --mgid is needed");
		log_hint(log, "%s --help lists the options", log->name);
		return OUTCOME_USAGE;
	}
	if (check_group(options, log, &group))
		return OUTCOME_USAGE;
	if (!options->bind)
		return OUTCOME_OK;
	address_parse(options->bind, ADDRESS_FORMAT_IP, &source);
	if (host_check(log, "-b, --bind", options->bind, &source, NULL, options->common.path.interface))
		return OUTCOME_USAGE;
	if (options->gid && address_is_any(&source)) {
		log_error(log, "-b, --bind", "%s is not the address of a local device", options->bind);
		return OUTCOME_USAGE;
	}
	if (!options->gid && group.family && source.family && source.family != group.family)
		return wrong_family(options, log);
	return OUTCOME_OK;
}

/* The first multicast address of the group, and with -b a local address of the same family. */
enum outcome addresses_look_up(struct mckey_run *run)
{
	const struct mckey_options *options = run->options;
	const char *any = options->gid ? "::" : "0.0.0.0";
	struct resolver resolver;
	size_t i = 0;
	enum outcome outcome = lookup(&resolver, run->environment, &options->common,
				      strcmp(run->figures.target, "0") ? run->figures.target : any,
				      options->gid ? ADDRESS_FORMAT_GID : ADDRESS_FORMAT_ANY);

	if (outcome)
		return outcome;
	while (i < resolver.count && !is_group(&resolver.addresses[i]))
		i++;
	if (i == resolver.count) {
		log_error(run->log, "-m, --group", "%s has no multicast address that may be used", run->figures.target);
		return OUTCOME_USAGE;
	}
	run->group = resolver.addresses[i];
	if (!options->bind)
		return OUTCOME_OK;
	outcome = lookup(&resolver, run->environment, &options->common, options->bind, ADDRESS_FORMAT_ANY);
	for (i = 0; !outcome && i < resolver.count; i++) {
		run->source = resolver.addresses[i];
		if (run->source.family == run->group.family || options->gid)
			return OUTCOME_OK;
	}
	return outcome ? outcome : wrong_family(options, run->log);
}
