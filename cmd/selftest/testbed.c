/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Selects transport and address. An address is usable if the backend accepts a listener there, which it reports
 * immediately and without a packet.
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

/* On failure fills *error: with that of the requested or first address, which is the cause. */
static enum outcome find_address(const struct environment *environment, const struct selftest_options *options,
				 struct testbed *testbed, struct error *error)
{
	struct interface_address list[INTERFACE_ADDRESSES_MAX];
	size_t count = find_candidates(environment, options, list);
	enum outcome outcome = OUTCOME_NO_DEVICE;
	char host[ADDRESS_TEXT_SIZE];

	error_clear(error);
	for (size_t i = 0; outcome && i < count; i++) {
		if (!list[i].loopback)
			outcome = try_address(testbed, &list[i].address);
		if (outcome && !error_is_set(error))
			*error = environment->transport->error;
	}
	if (outcome) {
		if (options->address || needs_no_device(environment))
			return outcome;
		error_set(error, NULL, "no address of this host leads to an RDMA device");
		error_hint(error, "the interface of the device must be up and have an address");
		return OUTCOME_NO_DEVICE;
	}
	/* Packets to its own addresses pass the loopback interface. */
	if (!needs_no_device(environment) || !interface_is_down("lo"))
		return OUTCOME_OK;
	error_set(error, address_host(&testbed->address, host),
		  "this host cannot send to itself: the interface lo is down");
	error_hint(error, "ip link set lo up");
	return OUTCOME_NO_DEVICE;
}

static enum outcome try_transport(struct environment *environment, const struct selftest_options *options,
				  struct testbed *testbed, const char *name, struct error *error)
{
	enum outcome outcome = common_open(&options->common, name, environment, error);

	if (outcome)
		return outcome;
	outcome = channel_create(environment->transport, &testbed->channel);
	if (outcome)
		*error = environment->transport->error;
	else
		outcome = find_address(environment, options, testbed, error);
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
	struct error verbs, soft, *error = &verbs;
	enum outcome outcome = try_transport(environment, options, testbed, name ? name : "verbs", error);

	testbed->automatic = !name;
	if (outcome && !name) {
		enum outcome other = try_transport(environment, options, testbed, "soft", &soft);

		/* Neither is usable: the cause is soft's, or verbs' if soft is not built in. */
		if (other != OUTCOME_USAGE) {
			outcome = other;
			error = &soft;
		}
	}
	if (outcome)
		log_report(&environment->log, error);
	return outcome;
}
