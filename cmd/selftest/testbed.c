/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Selects transport and address. An address is usable if the backend accepts a listener there, which it reports
 * immediately and without a packet. Failures of the attempts are not logged.
 */
#include <string.h>

#include "cmd/selftest/selftest.h"
#include "core/interface.h"

enum {
	CANDIDATES_MAX = 64,
	LOOPBACK_TRIED = 16, /* 127.0.0.1 and following: a soft process needs an address of its own */
};

struct candidates {
	struct address addresses[CANDIDATES_MAX];
	size_t count;
};

static const struct endpoint_handlers no_handlers = { 0 };

enum outcome testbed_find_port(const struct testbed *testbed, uint16_t *port)
{
	const struct endpoint_options options = {
		.port_space = PORT_SPACE_TCP,
	};
	struct endpoint *listener;
	enum outcome outcome =
		endpoint_create(ENDPOINT_LISTENER, testbed->channel, &options, &no_handlers, NULL, &listener);

	if (outcome)
		return outcome;
	outcome = endpoint_listen(listener, &testbed->address);
	*port = listener->local.port;
	endpoint_destroy(listener);
	return outcome;
}

static bool needs_no_device(const struct environment *environment)
{
	return !transport_opens_devices(transport_name(environment->transport));
}

static void add_loopback(struct candidates *candidates)
{
	for (uint8_t last = 1; last <= LOOPBACK_TRIED; last++)
		candidates->addresses[candidates->count++] =
			(struct address){ .family = ADDRESS_IP4, .bytes = { 127, 0, 0, last } };
}

static void find_candidates(struct environment *environment, const struct selftest_options *options,
			    struct candidates *candidates)
{
	struct interface_address list[INTERFACE_ADDRESSES_MAX];

	if (options->address) {
		address_parse(options->address, ADDRESS_FORMAT_IP, &candidates->addresses[0]);
		candidates->count = 1;
	} else if (needs_no_device(environment)) {
		add_loopback(candidates);
	} else {
		size_t count = interface_addresses(list);

		for (size_t i = 0; i < count && candidates->count < CANDIDATES_MAX; i++)
			if (!list[i].loopback)
				candidates->addresses[candidates->count++] = list[i].address;
	}
}

static enum outcome try_address(struct testbed *testbed, const struct address *address)
{
	uint16_t port;

	testbed->address = *address;
	testbed->address.port = 0;
	return testbed_find_port(testbed, &port);
}

static enum outcome find_address(struct environment *environment, const struct selftest_options *options,
				 struct testbed *testbed)
{
	struct candidates candidates = { .count = 0 };
	const struct log_sink *sink = environment->log.sink;
	enum outcome outcome = OUTCOME_NO_DEVICE;

	find_candidates(environment, options, &candidates);
	environment->log.sink = &log_discard;
	for (size_t i = 0; outcome && i < candidates.count; i++)
		outcome = try_address(testbed, &candidates.addresses[i]);
	environment->log.sink = sink;
	if (!outcome)
		return OUTCOME_OK;
	/* The error at the requested or first address is the cause: try it again with the log on. */
	if (options->address || needs_no_device(environment))
		return try_address(testbed, &candidates.addresses[0]);
	log_error(&environment->log, NULL, "no address of this host leads to an RDMA device");
	log_hint(&environment->log, "the interface of the device must be up and have an address");
	return OUTCOME_NO_DEVICE;
}

static enum outcome try_transport(struct environment *environment, const struct selftest_options *options,
				  struct testbed *testbed, const char *name, bool quiet)
{
	const struct log_sink *sink = environment->log.sink;
	enum outcome outcome;

	if (quiet)
		environment->log.sink = &log_discard;
	outcome = common_open(&options->common, name, environment);
	if (!outcome)
		outcome = channel_create(environment->transport, &testbed->channel);
	if (!outcome)
		outcome = find_address(environment, options, testbed);
	environment->log.sink = sink;
	if (outcome) {
		transport_close(environment->transport);
		environment->transport = NULL;
	}
	return outcome;
}

enum outcome testbed_open(struct environment *environment, const struct selftest_options *options,
			  struct testbed *testbed)
{
	const char *name = common_transport(&options->common);
	enum outcome outcome;

	if (name)
		return try_transport(environment, options, testbed, name, false);
	testbed->automatic = true;
	if (!try_transport(environment, options, testbed, "verbs", true))
		return OUTCOME_OK;
	outcome = try_transport(environment, options, testbed, "soft", true);
	/* Neither is usable: log the cause of soft, or of verbs if soft is not built in (OUTCOME_USAGE). */
	if (outcome)
		outcome = try_transport(environment, options, testbed, outcome == OUTCOME_USAGE ? "verbs" : "soft",
					false);
	return outcome;
}
