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

static void assert_rejected(const char *text, enum address_format format)
{
	struct address address;
	struct address before;

	memset(&address, 0xee, sizeof(address));
	before = address;
	assert_false(address_parse(text, format, &address));
	assert_memory_equal(&address, &before, sizeof(address));
}

TEST(ip4)
{
	static const uint8_t bytes[16] = { 10, 0, 0, 1 };
	struct address address = assert_parsed("10.0.0.1", ADDRESS_FORMAT_ANY);

	assert_int_equal(address.family, ADDRESS_IP4);
	assert_int_equal(address.port, 0);
	assert_int_equal(address.scope, 0);
	assert_memory_equal(address.bytes, bytes, sizeof(bytes));
	assert_parsed("10.0.0.1", ADDRESS_FORMAT_IP);
	assert_parsed("10.0.0.1", ADDRESS_FORMAT_IP4);
	assert_rejected("10.0.0.1", ADDRESS_FORMAT_IP6);
	assert_rejected("10.0.0.1", ADDRESS_FORMAT_GID);
	assert_rejected("10.0.0", ADDRESS_FORMAT_ANY);
	assert_rejected("10.0.0.256", ADDRESS_FORMAT_ANY);
	assert_rejected("10.0.0.1 ", ADDRESS_FORMAT_ANY);
	assert_rejected("10.0.0.1:7174", ADDRESS_FORMAT_ANY);
	assert_rejected("", ADDRESS_FORMAT_ANY);
	assert_rejected("localhost", ADDRESS_FORMAT_ANY);
}

TEST(ip6)
{
	struct address address = assert_parsed("fd00::1", ADDRESS_FORMAT_ANY);

	assert_int_equal(address.family, ADDRESS_IP6);
	assert_int_equal(address.bytes[0], 0xfd);
	assert_int_equal(address.bytes[15], 1);
	assert_parsed("::0", ADDRESS_FORMAT_IP);
	assert_parsed("::ffff:10.0.0.1", ADDRESS_FORMAT_IP6);
	assert_rejected("fd00::1", ADDRESS_FORMAT_IP4);
	assert_rejected("fd00:::1", ADDRESS_FORMAT_ANY);
	assert_parsed("[fd00::1]", ADDRESS_FORMAT_ANY);
	assert_rejected("00000000000000000000000000000000000000000000000000001::", ADDRESS_FORMAT_ANY);
}

TEST(scopes)
{
	unsigned index = if_nametoindex("lo");
	char text[ADDRESS_TEXT_SIZE];
	struct address address;

	assert_true(index > 0);
	address = assert_parsed("[fe80::1%lo]", ADDRESS_FORMAT_IP6);
	assert_string_equal(address_host(&address, text), "fe80::1%lo");
	address = assert_parsed("fe80::1%lo", ADDRESS_FORMAT_ANY);
	assert_int_equal(address.scope, index);
	assert_string_equal(address_text(&address, text), "fe80::1%lo");
	address.port = 7174;
	assert_string_equal(address_text(&address, text), "[fe80::1%lo]:7174");
	address = assert_parsed("fe80::1%4000000", ADDRESS_FORMAT_ANY);
	assert_int_equal(address.scope, 4000000);
	assert_string_equal(address_text(&address, text), "fe80::1%4000000");
	address = assert_parsed("ff02::1%lo", ADDRESS_FORMAT_ANY);
	assert_int_equal(address.scope, index);
	/* The source address of a packet has an interface only if it is link-local. */
	address = assert_parsed("2001:db8::1%lo", ADDRESS_FORMAT_ANY);
	assert_int_equal(address.scope, 0);
	assert_rejected("[", ADDRESS_FORMAT_ANY);
	assert_rejected("[]", ADDRESS_FORMAT_ANY);
	assert_rejected("[::1", ADDRESS_FORMAT_ANY);
	assert_rejected("fe80::1%nosuch", ADDRESS_FORMAT_ANY);
	assert_rejected("fe80::1%", ADDRESS_FORMAT_ANY);
	assert_rejected("fe80::1%0", ADDRESS_FORMAT_ANY);
	assert_rejected("fe80::1%-1", ADDRESS_FORMAT_ANY);
	assert_rejected("fe80::1%4294967296", ADDRESS_FORMAT_ANY);
	assert_rejected("fe80::1%1x", ADDRESS_FORMAT_ANY);
	assert_rejected("10.0.0.1%lo", ADDRESS_FORMAT_ANY);
}

TEST(gid)
{
	struct address address = assert_parsed("fe80::1", ADDRESS_FORMAT_GID);
	struct sockaddr_storage socket_address;
	char text[ADDRESS_TEXT_SIZE];

	assert_int_equal(address.family, ADDRESS_GID);
	assert_string_equal(address_text(&address, text), "fe80::1");
	assert_int_equal(address_to_socket(&address, &socket_address), 0);
	assert_rejected("fe80::1%lo", ADDRESS_FORMAT_GID);
}

TEST(formatting)
{
	struct address none = { .family = ADDRESS_NONE };
	struct address address;
	char text[ADDRESS_TEXT_SIZE];

	address = assert_parsed("10.0.0.1", ADDRESS_FORMAT_ANY);
	assert_string_equal(address_text(&address, text), "10.0.0.1");
	address.port = 7174;
	assert_string_equal(address_text(&address, text), "10.0.0.1:7174");
	assert_string_equal(address_host(&address, text), "10.0.0.1");
	address = assert_parsed("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", ADDRESS_FORMAT_ANY);
	address.port = 65535;
	address.scope = UINT32_MAX;
	assert_string_equal(address_text(&address, text), "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535");
	assert_string_equal(address_host(&address, text), "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295");
	assert_string_equal(address_text(&none, text), "no address");
}

TEST(classification)
{
	struct address any4 = assert_parsed("0.0.0.0", ADDRESS_FORMAT_ANY);
	struct address any6 = assert_parsed("::0", ADDRESS_FORMAT_ANY);
	struct address group4 = assert_parsed("239.1.1.1", ADDRESS_FORMAT_ANY);
	struct address group6 = assert_parsed("ff0e::1:1", ADDRESS_FORMAT_ANY);
	struct address group_gid = assert_parsed("ff0e::1:1", ADDRESS_FORMAT_GID);
	struct address host4 = assert_parsed("10.0.0.1", ADDRESS_FORMAT_ANY);
	struct address host6 = assert_parsed("fe80::1", ADDRESS_FORMAT_ANY);
	struct address again = host6;

	assert_true(address_is_any(&any4));
	assert_true(address_is_any(&any6));
	assert_false(address_is_any(&host4));
	assert_false(address_is_any(&host6));
	assert_true(address_is_multicast(&group4));
	assert_true(address_is_multicast(&group6));
	assert_true(address_is_multicast(&group_gid));
	assert_false(address_is_multicast(&host4));
	assert_false(address_is_multicast(&host6));
	again.port = 5;
	assert_true(address_same_host(&host6, &again));
	again.scope = 5;
	assert_false(address_same_host(&host6, &again));
	assert_false(address_same_host(&group6, &group_gid));
	assert_false(address_same_host(&any4, &any6));
}

/* The first and last address of each prefix of RFC 4291 and RFC 5771, and the addresses next to them. */
TEST(prefixes)
{
	static const struct {
		const char *text;
		bool multicast, link_local;
	} rows[] = {
		{ "223.255.255.255", false, false }, { "224.0.0.0", true, false },
		{ "239.255.255.255", true, false },  { "240.0.0.0", false, false },
		{ "169.254.0.1", false, false },     { "fe7f::1", false, false },
		{ "fe80::", false, true },	     { "febf::1", false, true },
		{ "fec0::1", false, false },	     { "fd80::1", false, false },
		{ "ff00::", true, false },	     { "ff80::1", true, false },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct address address = assert_parsed(rows[i].text, ADDRESS_FORMAT_ANY);

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
		/* As getifaddrs(3) has them: no longer than the family needs, and with no other alignment. */
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
