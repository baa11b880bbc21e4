/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Selects transport and address. An address is usable if the backend accepts a listener there, which it reports
 * immediately and without a packet. Failures of the attempts are not logged.
 */
#include "cmd/selftest/selftest.h"
#include "core/interface.h"

enum {
	LOOPBACK_TRIED = 16, /* 127.0.0.1 and following: a soft process needs an address of its own */
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

/* Fills list with the addresses to try. Returns their number. */
static size_t find_candidates(const struct environment *environment, const struct selftest_options *options,
			      struct interface_address list[INTERFACE_ADDRESSES_MAX])
{
	list[0] = (struct interface_address){ .loopback = false };
	if (options->address)
		return address_parse(options->address, ADDRESS_FORMAT_IP, &list[0].address);
	if (!needs_no_device(environment))
		return interface_addresses(list);
	for (uint8_t i = 0; i < LOOPBACK_TRIED; i++)
		list[i] = (struct interface_address){ .address = { .family = ADDRESS_IP4,
								   .bytes = { 127, 0, 0, i + 1 } } };
	return LOOPBACK_TRIED;
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
	struct interface_address list[INTERFACE_ADDRESSES_MAX];
	size_t count = find_candidates(environment, options, list);
	const struct log_sink *sink = environment->log.sink;
	enum outcome outcome = OUTCOME_NO_DEVICE;

	environment->log.sink = &log_discard;
	for (size_t i = 0; outcome && i < count; i++)
		if (!list[i].loopback)
			outcome = try_address(testbed, &list[i].address);
	environment->log.sink = sink;
	/* Packets to its own addresses pass the loopback interface. */
	if (!outcome && needs_no_device(environment) && interface_is_down("lo")) {
		char host[ADDRESS_TEXT_SIZE];

		log_error(&environment->log, address_host(&testbed->address, host),
			  "this host cannot send to itself: the interface lo is down");
		log_hint(&environment->log, "ip link set lo up");
		return OUTCOME_NO_DEVICE;
	}
	if (!outcome)
		return OUTCOME_OK;
	/* The error at the requested or first address is the cause: try it again with the log on. */
	if (options->address || needs_no_device(environment))
		return try_address(testbed, &list[0].address);
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
