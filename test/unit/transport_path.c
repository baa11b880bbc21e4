/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=getifaddrs -Wl,--wrap=freeifaddrs -Wl,--wrap=if_nametoindex -Wl,--wrap=if_indextoname */
/* The source address of a path, on a host with known interfaces. */
#include "transport/backend.h"

#include <ifaddrs.h>
#include <net/if.h>

#include "test/unit/unit.h"

static const struct {
	const char *name, *text;
	unsigned scope;
	bool loopback;
} interfaces[] = {
	{ "lo", "127.0.0.1", 0, true },	     { "eth0", "10.0.0.1", 0, false },
	{ "eth1", "10.0.1.1", 0, false },    { "lo", "::1", 0, true },
	{ "eth0", "2001:db8::1", 0, false }, { "eth1", "2001:db8:1::1", 0, false },
	{ "eth0", "fe80::1", 2, false },     { "eth1", "fe80::2", 3, false },
	{ "eth1:0", "10.0.2.2", 0, false },  { "eth2", "2001:db8:2::1", 0, false },
	{ "eth3", "fe80::3", 4, false },
};

static struct address parsed(const char *text)
{
	struct address address;

	assert_true(address_parse(text, ADDRESS_FORMAT_IP, &address));
	return address;
}

/* Addresses of eth0 before the others, 10.9.0.0 and so on; look-ups of an interface by name. */
static size_t crowd, lookups;

int __wrap_getifaddrs(struct ifaddrs **list)
{
	size_t count = crowd + LENGTH(interfaces);
	struct entry {
		struct ifaddrs entry;
		struct sockaddr_storage storage;
		char name[IF_NAMESIZE];
	} *entries = calloc(count, sizeof(*entries));

	assert_non_null(entries);
	for (size_t i = 0; i < count; i++) {
		size_t index = i - crowd;
		struct address address = parsed(i < crowd ? "10.9.0.0" : interfaces[index].text);

		if (i < crowd) {
			address.bytes[2] = (uint8_t)(i >> 8);
			address.bytes[3] = (uint8_t)i;
		} else {
			address.scope = interfaces[index].scope;
		}
		address_to_socket(&address, &entries[i].storage);
		snprintf(entries[i].name, IF_NAMESIZE, "%s", i < crowd ? "eth0" : interfaces[index].name);
		entries[i].entry = (struct ifaddrs){
			.ifa_next = i + 1 < count ? &entries[i + 1].entry : NULL,
			.ifa_name = entries[i].name,
			.ifa_flags =
				IFF_UP | IFF_RUNNING | (i >= crowd && interfaces[index].loopback ? IFF_LOOPBACK : 0),
			.ifa_addr = (struct sockaddr *)&entries[i].storage,
		};
	}
	*list = &entries->entry;
	return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *list)
{
	free(list);
}

/* en1 is an alternative name, and eth1:0 a label. */
unsigned __wrap_if_nametoindex(const char *name)
{
	lookups++;
	return !strcmp(name, "lo")				   ? 1
	       : !strcmp(name, "eth0")				   ? 2
	       : !strncmp(name, "eth1", 4) || !strcmp(name, "en1") ? 3
								   : 0;
}

char *__wrap_if_indextoname(unsigned index, char name[IF_NAMESIZE])
{
	return strcpy(name, index == 1 ? "lo" : index == 2 ? "eth0" : index == 3 ? "eth1" : "eth3");
}

/* Device rdma1 belongs to eth1. GID index 1 belongs to eth1's address, 2 to both interfaces, none to the label. */
static bool source_fits(struct transport *transport, const struct path_options *wanted, const struct address *source)
{
	if (!wanted->device)
		return source->bytes[2] != 2 &&
		       (wanted->gid_index == 2 || (source->bytes[2] == 1) == (wanted->gid_index == 1));
	return !strcmp(wanted->device, "rdma1") == (source->bytes[2] == 1 || source->bytes[5] == 1);
}

static const struct backend backend = { .source_fits = source_fits }, deviceless = { .name = "soft" };
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
		{ "en1", NULL, NULL, ADDRESS_IP4, "10.0.1.1", 0 },
		{ "eth1:0", NULL, NULL, ADDRESS_IP4, "10.0.2.2", 0 },
		{ "eth1", NULL, "10.0.2.2", ADDRESS_IP4, "10.0.2.2", 0 },
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
		{ "en1", "10.0.1.1", 0, 0, true },   { "en1", "10.0.0.1", 0, 0, false },
		{ "eth1", "10.0.2.2", 0, 0, true },  { "eth1:0", "10.0.2.2", 0, 0, true },
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

/* Of all addresses, however many; the option's name is looked up once. */
TEST(many_addresses)
{
	struct address source = { .family = ADDRESS_NONE };

	crowd = 300;
	set_options("eth1", NULL);
	assert_int_equal(path_find_source(&endpoint, ADDRESS_IP6, &source), OUTCOME_OK);
	assert_memory_equal(source.bytes, parsed("2001:db8:1::1").bytes, sizeof(source.bytes));
	set_options(NULL, "rdma1");
	assert_int_equal(path_find_source(&endpoint, ADDRESS_IP6, &source), OUTCOME_OK);
	set_options("eth1", NULL);
	endpoint.local = parsed("10.0.1.1");
	lookups = 0;
	assert_true(path_has_interface(&endpoint));
	assert_in_range(lookups, 0, 1);
	endpoint.local = parsed("::");
	assert_true(endpoint_is_reachable(&endpoint, &transport.error));
	crowd = 0;
}

/* Without devices a listener on 0.0.0.0 serves IPv4 only. */
TEST(family_of_listener)
{
	static const struct {
		const struct backend *backend;
		const char *interface, *local;
		bool reachable;
	} rows[] = {
		{ &deviceless, "eth1", "0.0.0.0", true },  { &deviceless, "eth1", "::", true },
		{ &deviceless, "eth2", "0.0.0.0", false }, { &deviceless, "eth2", "::", true },
		{ &deviceless, "eth1:0", "::", true },	   { &backend, "eth2", "0.0.0.0", true },
		{ &deviceless, NULL, "0.0.0.0", true },
	};

	for (size_t row = 0; row < LENGTH(rows); row++) {
		transport.backend = rows[row].backend;
		set_options(rows[row].interface, NULL);
		endpoint.local = parsed(rows[row].local);
		assert_int_equal(endpoint_is_reachable(&endpoint, &transport.error), rows[row].reachable);
		if (!rows[row].reachable)
			assert_string_equal(transport.error.cause,
					    "no IPv4 address of this host belongs to interface eth2");
		error_clear(&transport.error);
	}
	transport.backend = &backend;
}

/* Of link-local addresses only if there are no others. */
TEST(addresses_of_listener)
{
	char text[ENDPOINT_ADDRESSES_SIZE] = "";

	transport.backend = &deviceless;
	endpoint.local = parsed("::");
	set_options("eth1", NULL);
	path_local_addresses(&endpoint, text);
	assert_string_equal(text, " (10.0.1.1, 10.0.2.2, 2001:db8:1::1");
	*text = '\0';
	set_options("eth3", NULL);
	path_local_addresses(&endpoint, text);
	assert_string_equal(text, " (fe80::3%eth3");
	transport.backend = &backend;
}

/* Without a device in the options, too: where the address is instead. */
TEST(hint_at_interfaces)
{
	static const struct {
		const char *source;
		enum address_family family;
		const char *hint;
	} rows[] = {
		{ "10.0.1.1", ADDRESS_IP4, "10.0.1.1 is on eth1" },
		{ NULL, ADDRESS_IP4, "10.0.0.1 is on eth0, 10.0.1.1 is on eth1, 10.0.2.2 is on eth1:0" },
		{ NULL, ADDRESS_IP6, "2001:db8::1 is on eth0, 2001:db8:1::1 is on eth1, 2001:db8:2::1 is on eth2" },
	};

	set_options("eth9", NULL);
	for (size_t row = 0; row < LENGTH(rows); row++) {
		struct address source =
			rows[row].source ? parsed(rows[row].source) : (struct address){ .family = ADDRESS_NONE };

		assert_int_not_equal(path_find_source(&endpoint, rows[row].family, &source), OUTCOME_OK);
		assert_string_equal(transport.error.hint, rows[row].hint);
	}
	error_clear(&transport.error);
}
