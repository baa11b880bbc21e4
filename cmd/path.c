/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/path.h"

#include <stdio.h>
#include <string.h>

#include "core/resolver.h"

const struct option_word path_mtus[] = {
	{ "256", 256 }, { "512", 512 }, { "1024", 1024 }, { "2048", 2048 }, { "4096", 4096 }, { NULL, 0 },
};

/* The options that need a feature of the transport, whatever their value or for one word. */
static const struct feature_option {
	enum transport_feature feature;
	const char *option; /* long name */
	const char *word;
} feature_options[] = {
	{ FEATURE_DEVICE, "device", NULL },
	{ FEATURE_PORT, "port-num", NULL },
	{ FEATURE_GID_INDEX, "gid-index", NULL },
	{ FEATURE_SERVICE_LEVEL, "service-level", NULL },
	{ FEATURE_MTU, "mtu", NULL },
	{ FEATURE_INLINE, "inline", NULL },
	{ FEATURE_NATIVE_GID, "mgid", NULL },
	{ FEATURE_NATIVE_GID, "format", "gid" },
	{ FEATURE_IPOIB, "port-space", "ipoib" },
};

static bool is_given(const struct option *table, uint64_t given, const char *name)
{
	return options_has(table, name) && options_given(table, given, name);
}

static bool matches_word(const struct option *table, const void *options, const struct feature_option *needs)
{
	int64_t value;

	for (const struct option *row = option_first(table); row && needs->word; row = option_next(row)) {
		if (strcmp(row->name, needs->option) != 0 || row->type != OPTION_WORD)
			continue;
		memcpy(&value, (const char *)options + row->offset, sizeof(value));
		for (const struct option_word *word = row->words; word->word; word++)
			if (word->value == value && !strcmp(word->word, needs->word))
				return true;
	}
	return !needs->word;
}

enum outcome path_check(const char *transport, const struct log *log, const struct option *table, const void *options,
			uint64_t given)
{
	static const char *const device_options[] = { "port-num", "gid-index" };
	char option[64];

	for (size_t i = 0; i < sizeof(feature_options) / sizeof(feature_options[0]); i++) {
		const struct feature_option *needs = &feature_options[i];
		const char *reason = transport_unsupported(&transport, needs->feature);

		if (!reason || !is_given(table, given, needs->option) || !matches_word(table, options, needs))
			continue;
		snprintf(option, sizeof(option), "--%s%s%s", needs->option, needs->word ? " " : "",
			 needs->word ? needs->word : "");
		log_error(log, option, "not with --transport %s: %s", transport, reason);
		return OUTCOME_USAGE;
	}
	for (size_t i = 0; i < sizeof(device_options) / sizeof(device_options[0]); i++) {
		if (!is_given(table, given, device_options[i]) || is_given(table, given, "device"))
			continue;
		log_error(log, NULL, "--%s needs --device", device_options[i]);
		return OUTCOME_USAGE;
	}
	return OUTCOME_OK;
}

bool path_allows(const struct family_options *options, enum address_family source, enum address_family family)
{
	if (source && source != family)
		return false;
	return !(options->ip4 && family == ADDRESS_IP6) && !(options->ip6 && family == ADDRESS_IP4);
}

enum outcome path_no_address(const struct family_options *options, enum address_family source, const struct log *log,
			     const char *text)
{
	log_error(log, text, "no address matches %s", source ? "--source" : options->ip4 ? "--ipv4" : "--ipv6");
	return OUTCOME_NO_CONNECTION;
}

enum outcome path_filter(const struct family_options *options, enum address_family source, const struct log *log,
			 const char *text, const struct address *addresses, size_t count, struct address *kept,
			 size_t *kept_count)
{
	*kept_count = 0;
	for (size_t i = 0; i < count; i++)
		if (path_allows(options, source, addresses[i].family))
			kept[(*kept_count)++] = addresses[i];
	return *kept_count ? OUTCOME_OK : path_no_address(options, source, log, text);
}

enum outcome path_choose(const struct family_options *options, enum address_family source, const struct log *log,
			 const char *text, const struct address *addresses, size_t count, struct address *chosen)
{
	struct address kept[RESOLVER_ADDRESSES_MAX];
	enum outcome outcome = path_filter(options, source, log, text, addresses, count, kept, &count);

	if (!outcome)
		*chosen = kept[0];
	return outcome;
}

/* A QPN is a text in the report: it is an identifier, and Prometheus would treat a number as a sample. */
static void report_qpn(struct report *report, const char *name, uint32_t number)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", number);
	report_text(report, name, number ? text : NULL);
}

void path_report(struct report *report, const void *member)
{
	const struct path *path = member;
	struct address gid = { .family = ADDRESS_GID };
	char text[ADDRESS_TEXT_SIZE];
	bool has_gid = path->gid_type[0];

	memcpy(gid.bytes, path->gid, sizeof(gid.bytes));
	report_text(report, "device", path->device[0] ? path->device : NULL);
	report_count_known(report, "port", (uint64_t)path->port, path->port);
	report_count_known(report, "gid_index", (uint64_t)path->gid_index, has_gid && path->gid_index >= 0);
	report_text(report, "gid", has_gid ? address_host(&gid, text) : NULL);
	report_text(report, "gid_type", has_gid ? path->gid_type : NULL);
	report_text(report, "interface", path->interface[0] ? path->interface : NULL);
	report_count_known(report, "mtu", (uint64_t)path->mtu, path->mtu);
	report_qpn(report, "qpn", path->qpn);
	report_qpn(report, "peer_qpn", path->peer_qpn);
}
