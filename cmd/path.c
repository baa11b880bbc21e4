/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/path.h"

#include <stdio.h>
#include <string.h>

/* The options that need a feature of the transport, whatever their value or for one word. */
static const struct feature_option {
	char option[14]; /* long name */
	char word[6];
	uint16_t value;	 /* of the word */
	uint8_t feature; /* enum transport_feature */
} feature_options[] = {
#if WITH_EXTRAS
	{ "device", .feature = FEATURE_DEVICE },
	{ "port-num", .feature = FEATURE_PORT },
	{ "gid-index", .feature = FEATURE_GID_INDEX },
	{ "service-level", .feature = FEATURE_SERVICE_LEVEL },
	{ "mtu", .feature = FEATURE_MTU },
	{ "inline", .feature = FEATURE_INLINE },
#endif
	{ "mgid", .feature = FEATURE_NATIVE_GID },
	{ "format", "gid", ADDRESS_FORMAT_GID, FEATURE_NATIVE_GID },
	{ "port-space", "ipoib", PORT_SPACE_IPOIB, FEATURE_IPOIB },
};

static int64_t number_at(const void *options, const struct option *row)
{
	int64_t value;

	memcpy(&value, (const char *)options + row->offset, sizeof(value));
	return value;
}

enum outcome path_check(const char *transport, const struct log *log, const struct option *table, const void *options,
			uint64_t given)
{
	char option[64];

	for (size_t i = 0; i < sizeof(feature_options) / sizeof(feature_options[0]); i++) {
		const struct feature_option *needs = &feature_options[i];
		const struct option *row = options_given(table, given, needs->option);
		const struct unsupported unsupported = transport_unsupported(transport, needs->feature);

		if (!row || !unsupported.reason || (*needs->word && number_at(options, row) != needs->value))
			continue;
		snprintf(option, sizeof(option), "--%.13s%s%.5s", needs->option, *needs->word ? " " : "", needs->word);
		log_error(log, option, "not with --transport %s: %s", unsupported.backend, unsupported.reason);
		return OUTCOME_USAGE;
	}
	if (WITH_EXTRAS && options_given(table, given, "port-num") && !options_given(table, given, "device")) {
		log_error(log, NULL, "--port-num needs --device");
		return OUTCOME_USAGE;
	}
	return OUTCOME_OK;
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
	bool has_gid = path->gid_type;

	memcpy(gid.bytes, path->gid, sizeof(gid.bytes));
	report_text(report, "device", path->device);
	report_count_known(report, "port", (uint64_t)path->port, path->port);
	report_count_known(report, "gid_index", (uint64_t)path->gid_index, has_gid && path->gid_index >= 0);
	report_text(report, "gid", has_gid ? address_host(&gid, text) : NULL);
	report_text(report, "gid_type", path->gid_type);
	report_text(report, "interface", path->interface);
	report_count_known(report, "mtu", (uint64_t)path->mtu, path->mtu);
	report_qpn(report, "qpn", path->qpn);
	report_qpn(report, "peer_qpn", path->peer_qpn);
}
