/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=interface_addresses -Wl,--wrap=if_nametoindex */
/* The source address of a path, on a host with known interfaces. */
#include "transport/backend.h"

#include <net/if.h>

#include "core/interface.h"
#include "test/unit/unit.h"

static const struct {
	const char *name, *text;
	unsigned scope;
	bool loopback;
} interfaces[] = {
	{ "lo", "127.0.0.1", 0, true },	 { "eth0", "10.0.0.1", 0, false },    { "eth1", "10.0.1.1", 0, false },
	{ "lo", "::1", 0, true },	 { "eth0", "2001:db8::1", 0, false }, { "eth1", "2001:db8:1::1", 0, false },
	{ "eth0", "fe80::1", 2, false }, { "eth1", "fe80::2", 3, false },
};

static struct address parsed(const char *text)
{
	struct address address;

	assert_true(address_parse(text, ADDRESS_FORMAT_IP, &address));
	return address;
}

size_t __wrap_interface_addresses(struct interface_address list[INTERFACE_ADDRESSES_MAX])
{
	for (size_t index = 0; index < LENGTH(interfaces); index++) {
		list[index] = (struct interface_address){ .address = parsed(interfaces[index].text),
							  .loopback = interfaces[index].loopback };
		list[index].address.scope = interfaces[index].scope;
		snprintf(list[index].name, sizeof(list[index].name), "%s", interfaces[index].name);
	}
	return LENGTH(interfaces);
}

unsigned __wrap_if_nametoindex(const char *name)
{
	return !strcmp(name, "lo") ? 1 : !strcmp(name, "eth0") ? 2 : !strcmp(name, "eth1") ? 3 : 0;
}

/* Device rdma1 belongs to eth1. GID index 1 belongs to eth1's address, 2 to both interfaces. */
static bool source_fits(struct transport *transport, const struct path_options *wanted, const struct address *source)
{
	if (!wanted->device)
		return wanted->gid_index == 2 || (source->bytes[2] == 1) == (wanted->gid_index == 1);
	return !strcmp(wanted->device, "rdma1") == (source->bytes[2] == 1 || source->bytes[5] == 1);
}

static const struct backend backend = { .source_fits = source_fits };
static struct log test_log;
static struct transport transport = { .backend = &backend, .log = &test_log };
static struct path_options options;
static struct endpoint endpoint = { .transport = &transport, .options = { .path = &options } };

static void set_options(const char *interface, const char *device)
{
	options = (struct path_options)PATH_OPEN;
	options.interface = interface;
	options.device = device;
}

static bool is_given(const char *text)
{
	return text && strcmp(text, "0.0.0.0") != 0;
}

TEST(source_addresses)
{
	static const struct {
		const char *interface, *device, *given;
		enum address_family family;
		const char *source; /* NULL: none is found */
		unsigned scope;
		int64_t gid_index; /* 0: not requested */
		const char *error;
	} rows[] = {
		/* The first address of the family on the interface or device. */
		{ "eth1", NULL, NULL, ADDRESS_IP4, "10.0.1.1", 0 },
		{ "eth1", NULL, NULL, ADDRESS_IP6, "2001:db8:1::1", 0 },
		{ "eth0", NULL, "0.0.0.0", ADDRESS_IP4, "10.0.0.1", 0 },
		{ NULL, "rdma1", NULL, ADDRESS_IP4, "10.0.1.1", 0 },
		{ "eth1", "rdma1", NULL, ADDRESS_IP6, "2001:db8:1::1", 0 },
		{ "eth0", "rdma1", NULL, ADDRESS_IP4, NULL, 0 },
		{ "eth9", NULL, NULL, ADDRESS_IP4, NULL, 0 },
		/* On a loopback interface the backend chooses. */
		{ "lo", NULL, NULL, ADDRESS_IP4, "0.0.0.0", 0 },
		{ "lo", NULL, "127.0.0.7", ADDRESS_IP4, "127.0.0.7", 0 },
		/* A given address must belong to the interface, and gets its scope. */
		{ "eth1", NULL, "10.0.1.1", ADDRESS_IP4, "10.0.1.1", 0 },
		{ "eth0", NULL, "10.0.1.1", ADDRESS_IP4, NULL, 0 },
		{ "eth0", NULL, "127.0.0.7", ADDRESS_IP4, NULL, 0 },
		{ "eth0", NULL, "10.9.9.9", ADDRESS_IP4, NULL, 0 },
		{ "eth1", NULL, "fe80::2", ADDRESS_IP6, "fe80::2", 3 },
		{ "eth1", NULL, "fe80::1", ADDRESS_IP6, NULL, 0 },
		{ NULL, "rdma0", "10.0.1.1", ADDRESS_IP4, NULL, 0 },
		/* A native group may be joined from an IP address. */
		{ "eth1", NULL, "10.0.1.1", ADDRESS_GID, "10.0.1.1", 0 },
		{ "eth0", NULL, "10.0.1.1", ADDRESS_GID, NULL, 0 },
		/* Neither interface nor device is given. */
		{ NULL, NULL, "10.9.9.9", ADDRESS_IP4, "10.9.9.9", 0 },
		/* An index without a device means the only device with it. */
		{ NULL, NULL, NULL, ADDRESS_IP4, "10.0.1.1", 0, 1 },
		{ NULL, NULL, NULL, ADDRESS_IP4, NULL, 0, 2, "belongs to 127.0.0.1 and to 10.0.0.1" },
		{ "eth1", NULL, NULL, ADDRESS_IP4, "10.0.1.1", 0, 2 },
		{ NULL, NULL, "10.0.0.1", ADDRESS_IP4, "10.0.0.1", 0, 2 },
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct address source = { .family = ADDRESS_NONE };
		struct capture capture;
		enum outcome outcome;

		set_options(rows[row].interface, rows[row].device);
		if (rows[row].gid_index)
			options.gid_index = rows[row].gid_index;
		if (rows[row].given)
			source = parsed(rows[row].given);
		source.port = 7;
		capture_begin(&capture);
		outcome = path_find_source(&endpoint, rows[row].family, &source);
		log_report(&test_log, &transport.error);
		error_clear(&transport.error);
		capture_end(&capture);
		assert_int_equal(source.port, 7);
		assert_int_equal(outcome, rows[row].source				 ? OUTCOME_OK
					  : rows[row].error || is_given(rows[row].given) ? OUTCOME_USAGE
											 : OUTCOME_NO_CONNECTION);
		assert_non_null(strstr(capture.text, rows[row].error ? rows[row].error : ""));
		assert_int_equal(*capture.text != '\0', outcome != OUTCOME_OK);
		if (!rows[row].source)
			continue;
		assert_int_equal(source.scope, rows[row].scope);
		if (source.family == ADDRESS_NONE)
			assert_string_equal(rows[row].source, "0.0.0.0");
		else
			assert_memory_equal(source.bytes, parsed(rows[row].source).bytes, sizeof(source.bytes));
	}
}

/* The interface of a listener's address, and of a request. */
TEST(interface_of_address)
{
	static const struct {
		const char *interface, *local;
		unsigned given, scope; /* of the address */
		bool has;
	} rows[] = {
		{ NULL, "10.0.0.1", 0, 0, true },    { "eth0", "10.0.0.1", 0, 0, true },
		{ "eth1", "10.0.0.1", 0, 0, false }, { "eth9", "10.0.0.1", 0, 0, false },
		{ "eth1", "fe80::2", 0, 3, true },   { "eth1", "fe80::2", 2, 2, false },
		{ "eth0", "fe80::2", 0, 2, false },  { "eth0", "2001:db8::1", 0, 0, true },
		{ "lo", "127.0.0.9", 0, 0, true },   { "eth0", "127.0.0.9", 0, 0, false },
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct address local = parsed(rows[row].local);

		set_options(rows[row].interface, NULL);
		local.scope = rows[row].given;
		endpoint.local = local;
		assert_int_equal(path_has_interface(&endpoint), rows[row].has);
		path_find_interface(&endpoint, &local);
		assert_int_equal(local.scope, rows[row].scope);
	}
}
