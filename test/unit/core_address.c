/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/unit/unit.h"

#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "core/address.h"
#include "core/interface.h"

static struct address assert_parsed(const char *text, enum address_format format)
{
	struct address address;

	memset(&address, 0xee, sizeof(address));
	assert_true(address_parse(text, format, &address));
	return address;
}

TEST(texts)
{
	static const struct {
		const char *text;
		enum address_format format;
		enum address_family family; /* ADDRESS_NONE: refused */
		const char *host;
	} rows[] = {
		{ "10.0.0.1", ADDRESS_FORMAT_ANY, ADDRESS_IP4, "10.0.0.1" },
		{ "10.0.0.1", ADDRESS_FORMAT_IP, ADDRESS_IP4, "10.0.0.1" },
		{ "10.0.0.1", ADDRESS_FORMAT_IP4, ADDRESS_IP4, "10.0.0.1" },
		{ "10.0.0.1", ADDRESS_FORMAT_IP6, ADDRESS_NONE, "" },
		{ "10.0.0.1", ADDRESS_FORMAT_GID, ADDRESS_NONE, "" },
		{ "10.0.0", ADDRESS_FORMAT_ANY, ADDRESS_NONE, "" },
		{ "10.0.0.256", ADDRESS_FORMAT_ANY, ADDRESS_NONE, "" },
		{ "10.0.0.1 ", ADDRESS_FORMAT_ANY, ADDRESS_NONE, "" },
		{ "10.0.0.1:7174", ADDRESS_FORMAT_ANY, ADDRESS_NONE, "" },
		{ "10.0.0.1%lo", ADDRESS_FORMAT_ANY, ADDRESS_NONE, "" },
		{ "", ADDRESS_FORMAT_ANY, ADDRESS_NONE, "" },
		{ "localhost", ADDRESS_FORMAT_ANY, ADDRESS_NONE, "" },
		{ "0", ADDRESS_FORMAT_ANY, ADDRESS_IP4, "0.0.0.0" },
		{ "0", ADDRESS_FORMAT_IP6, ADDRESS_IP6, "::" },
		{ "0", ADDRESS_FORMAT_GID, ADDRESS_GID, "::" },
		{ "7", ADDRESS_FORMAT_ANY, ADDRESS_NONE, "" },
		{ "fd00::1", ADDRESS_FORMAT_ANY, ADDRESS_IP6, "fd00::1" },
		{ "[fd00::1]", ADDRESS_FORMAT_ANY, ADDRESS_IP6, "fd00::1" },
		{ "::0", ADDRESS_FORMAT_IP, ADDRESS_IP6, "::" },
		{ "::ffff:10.0.0.1", ADDRESS_FORMAT_IP6, ADDRESS_IP6, "::ffff:10.0.0.1" },
		{ "::ffff:10.0.0.1", ADDRESS_FORMAT_ANY, ADDRESS_IP4, "10.0.0.1" },
		{ "::ffff:10.0.0.1", ADDRESS_FORMAT_GID, ADDRESS_GID, "::ffff:10.0.0.1" },
		{ "fd00::1", ADDRESS_FORMAT_IP4, ADDRESS_NONE, "" },
		{ "fd00:::1", ADDRESS_FORMAT_ANY, ADDRESS_NONE, "" },
		{ "00000000000000000000000000000000000000000000000000001::", ADDRESS_FORMAT_ANY, ADDRESS_NONE, "" },
		{ "[fe80::1%lo]", ADDRESS_FORMAT_IP6, ADDRESS_IP6, "fe80::1%lo" },
		{ "fe80::1%lo", ADDRESS_FORMAT_ANY, ADDRESS_IP6, "fe80::1%lo" },
		{ "fe80::1%4000000", ADDRESS_FORMAT_ANY, ADDRESS_IP6, "fe80::1%4000000" },
		{ "ff02::1%lo", ADDRESS_FORMAT_ANY, ADDRESS_IP6, "ff02::1%lo" },
		/* The source address of a packet has an interface only if it is link-local. */
		{ "2001:db8::1%lo", ADDRESS_FORMAT_ANY, ADDRESS_IP6, "2001:db8::1" },
		{ "[", ADDRESS_FORMAT_ANY, ADDRESS_NONE, "" },
		{ "[]", ADDRESS_FORMAT_ANY, ADDRESS_NONE, "" },
		{ "[::1", ADDRESS_FORMAT_ANY, ADDRESS_NONE, "" },
		{ "fe80::1%nosuch", ADDRESS_FORMAT_ANY, ADDRESS_NONE, "" },
		{ "fe80::1%", ADDRESS_FORMAT_ANY, ADDRESS_NONE, "" },
		{ "fe80::1%0", ADDRESS_FORMAT_ANY, ADDRESS_NONE, "" },
		{ "fe80::1%-1", ADDRESS_FORMAT_ANY, ADDRESS_NONE, "" },
		{ "fe80::1%4294967296", ADDRESS_FORMAT_ANY, ADDRESS_NONE, "" },
		{ "fe80::1%1x", ADDRESS_FORMAT_ANY, ADDRESS_NONE, "" },
		{ "fe80::1", ADDRESS_FORMAT_GID, ADDRESS_GID, "fe80::1" },
		{ "fe80::1%lo", ADDRESS_FORMAT_GID, ADDRESS_NONE, "" },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		char text[ADDRESS_TEXT_SIZE], expected[ADDRESS_TEXT_SIZE];
		struct address address, before;

		memset(&before, 0xee, sizeof(before));
		address = before;
		assert_int_equal(address_parse(rows[i].text, rows[i].format, &address), rows[i].family != ADDRESS_NONE);
		if (rows[i].family == ADDRESS_NONE) {
			assert_memory_equal(&address, &before, sizeof(address));
			continue;
		}
		assert_int_equal(address.family, rows[i].family);
		assert_int_equal(address.port, 0);
		assert_string_equal(address_host(&address, text), rows[i].host);
		assert_string_equal(address_text(&address, text), rows[i].host);
		address.port = 7174;
		snprintf(expected, sizeof(expected), address.family == ADDRESS_IP4 ? "%s:7174" : "[%s]:7174",
			 rows[i].host);
		assert_string_equal(address_text(&address, text), expected);
	}
}

TEST(longest_text)
{
	struct address address = assert_parsed("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", ADDRESS_FORMAT_ANY);
	struct address none = { .family = ADDRESS_NONE };
	struct address gid = assert_parsed("fe80::1", ADDRESS_FORMAT_GID);
	struct sockaddr_storage socket_address;
	char text[ADDRESS_TEXT_SIZE];

	address.port = 65535;
	address.scope = UINT32_MAX;
	assert_string_equal(address_text(&address, text), "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535");
	assert_string_equal(address_text(&none, text), "no address");
	assert_int_equal(address_to_socket(&gid, &socket_address), 0);
}

TEST(same_host)
{
	struct address any4 = assert_parsed("0.0.0.0", ADDRESS_FORMAT_ANY);
	struct address any6 = assert_parsed("::0", ADDRESS_FORMAT_ANY);
	struct address group6 = assert_parsed("ff0e::1:1", ADDRESS_FORMAT_ANY);
	struct address group_gid = assert_parsed("ff0e::1:1", ADDRESS_FORMAT_GID);
	struct address host6 = assert_parsed("fe80::1", ADDRESS_FORMAT_ANY), again = host6;

	again.port = 5;
	assert_true(address_same_host(&host6, &again));
	again.scope = 5;
	assert_false(address_same_host(&host6, &again));
	assert_false(address_same_host(&group6, &group_gid));
	assert_false(address_same_host(&any4, &any6));
}

/* Also the first and last address of each prefix of RFC 4291 and RFC 5771, and the addresses next to them. */
TEST(classification)
{
	static const struct {
		const char *text;
		bool any, multicast, link_local;
		enum address_format format;
	} rows[] = {
		{ "0.0.0.0", true, false, false },    { "::0", true, false, false },
		{ "10.0.0.1", false, false, false },  { "223.255.255.255", false, false, false },
		{ "224.0.0.0", false, true, false },  { "239.255.255.255", false, true, false },
		{ "240.0.0.0", false, false, false }, { "169.254.0.1", false, false, false },
		{ "fe7f::1", false, false, false },   { "fe80::", false, false, true },
		{ "febf::1", false, false, true },    { "fec0::1", false, false, false },
		{ "fd80::1", false, false, false },   { "ff00::", false, true, false },
		{ "ff80::1", false, true, false },    { "ff0e::1:1", false, true, false, ADDRESS_FORMAT_GID },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct address address = assert_parsed(rows[i].text, rows[i].format);

		assert_int_equal(address_is_any(&address), rows[i].any);
		assert_int_equal(address_is_multicast(&address), rows[i].multicast);
		assert_int_equal(address_is_link_local(&address), rows[i].link_local);
	}
}

TEST(socket_addresses)
{
	static const char *const hosts[] = { "10.0.0.1", "fd00::1", "fe80::1%lo" };
	struct sockaddr_storage socket_address;
	struct address address;
	struct address back;
	uint8_t *packed;
	size_t length;

	for (size_t i = 0; i < LENGTH(hosts); i++) {
		address = assert_parsed(hosts[i], ADDRESS_FORMAT_ANY);
		address.port = 7174;
		assert_int_equal(address_to_socket(&address, &socket_address), address.family == ADDRESS_IP4
										       ? sizeof(struct sockaddr_in)
										       : sizeof(struct sockaddr_in6));
		assert_true(address_from_socket(&socket_address, &back));
		assert_true(address_same_host(&back, &address));
		assert_int_equal(back.port, address.port);
		/* As from getifaddrs(3): only as long as the family needs, and with no other alignment. */
		length = address_to_socket(&address, &socket_address);
		packed = malloc(4 + length);
		memcpy(packed + 4, &socket_address, length);
		assert_true(address_from_socket((void *)(packed + 4), &back));
		assert_true(address_same_host(&back, &address));
		free(packed);
	}
	socket_address.ss_family = AF_UNIX;
	assert_false(address_from_socket(&socket_address, &back));
}
