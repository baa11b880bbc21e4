/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static bool parse_bytes(const char *text, enum address_family family, struct address *address)
{
	struct address parsed = { .family = family };

	if (inet_pton(family == ADDRESS_IP4 ? AF_INET : AF_INET6, text, parsed.bytes) != 1)
		return false;
	*address = parsed;
	return true;
}

/* text is an interface name or index. */
static bool parse_scope(const char *text, uint32_t *scope)
{
	unsigned long long number;
	char *end;

	*scope = if_nametoindex(text);
	if (*scope)
		return true;
	if (*text < '0' || *text > '9')
		return false;
	number = strtoull(text, &end, 10);
	if (*end || number == 0 || number > UINT32_MAX)
		return false;
	*scope = (uint32_t)number;
	return true;
}

static bool parse_ip6(const char *text, struct address *address)
{
	struct address parsed;
	char number[INET6_ADDRSTRLEN];
	size_t length = strcspn(text, "%");

	if (length >= sizeof(number))
		return false;
	memcpy(number, text, length);
	number[length] = 0;
	if (!parse_bytes(number, ADDRESS_IP6, &parsed))
		return false;
	if (text[length] == '%' && !parse_scope(text + length + 1, &parsed.scope))
		return false;
	/* The kernel, too, ignores the interface of any other address, and the address of a packet has none. */
	if (!address_is_link_local(&parsed) && !address_is_multicast(&parsed))
		parsed.scope = 0;
	*address = parsed;
	return true;
}

bool address_parse(const char *text, enum address_format format, struct address *address)
{
	char inner[ADDRESS_TEXT_SIZE];
	size_t length = strlen(text);

	/* "[::1]", as address_text() writes it. */
	if (*text == '[' && text[length - 1] == ']' && length <= sizeof(inner)) {
		memcpy(inner, text + 1, length - 2);
		inner[length - 2] = 0;
		text = inner;
	}
	switch (format) {
	case ADDRESS_FORMAT_ANY:
	case ADDRESS_FORMAT_IP:
		return parse_bytes(text, ADDRESS_IP4, address) || parse_ip6(text, address);
	case ADDRESS_FORMAT_IP4:
		return parse_bytes(text, ADDRESS_IP4, address);
	case ADDRESS_FORMAT_IP6:
		return parse_ip6(text, address);
	case ADDRESS_FORMAT_GID:
		return parse_bytes(text, ADDRESS_GID, address);
	}
	return false;
}

const char *address_host(const struct address *address, char text[ADDRESS_TEXT_SIZE])
{
	char interface[IF_NAMESIZE];
	size_t length;

	switch (address->family) {
	case ADDRESS_IP4:
		return inet_ntop(AF_INET, address->bytes, text, ADDRESS_TEXT_SIZE);
	case ADDRESS_IP6:
		inet_ntop(AF_INET6, address->bytes, text, ADDRESS_TEXT_SIZE);
		if (!address->scope)
			return text;
		length = strlen(text);
		if (if_indextoname(address->scope, interface))
			snprintf(text + length, ADDRESS_TEXT_SIZE - length, "%%%s", interface);
		else
			snprintf(text + length, ADDRESS_TEXT_SIZE - length, "%%%u", address->scope);
		return text;
	case ADDRESS_GID:
		return inet_ntop(AF_INET6, address->bytes, text, ADDRESS_TEXT_SIZE);
	case ADDRESS_NONE:
		break;
	}
	snprintf(text, ADDRESS_TEXT_SIZE, "no address");
	return text;
}

const char *address_text(const struct address *address, char text[ADDRESS_TEXT_SIZE])
{
	char host[ADDRESS_TEXT_SIZE];

	address_host(address, host);
	if (!address->port || address->family == ADDRESS_NONE)
		memcpy(text, host, sizeof(host));
	else if (address->family == ADDRESS_IP4)
		snprintf(text, ADDRESS_TEXT_SIZE, "%.60s:%u", host, address->port);
	else
		snprintf(text, ADDRESS_TEXT_SIZE, "[%.68s]:%u", host, address->port);
	return text;
}

static size_t address_length(const struct address *address)
{
	return address->family == ADDRESS_IP4 ? 4 : sizeof(address->bytes);
}

bool address_is_loopback(const struct address *address)
{
	static const uint8_t ip6[16] = { [15] = 1 };

	return address->family == ADDRESS_IP4
		       ? address->bytes[0] == 127
		       : address->family == ADDRESS_IP6 && !memcmp(address->bytes, ip6, sizeof(ip6));
}

bool address_is_any(const struct address *address)
{
	static const uint8_t zeros[sizeof(address->bytes)];

	return !memcmp(address->bytes, zeros, address_length(address));
}

bool address_is_multicast(const struct address *address)
{
	if (address->family == ADDRESS_IP4)
		return (address->bytes[0] & 0xf0) == 0xe0;
	return address->family != ADDRESS_NONE && address->bytes[0] == 0xff;
}

bool address_is_link_local(const struct address *address)
{
	return address->family == ADDRESS_IP6 && address->bytes[0] == 0xfe && (address->bytes[1] & 0xc0) == 0x80;
}

bool address_same_host(const struct address *one, const struct address *other)
{
	return one->family == other->family && one->scope == other->scope &&
	       !memcmp(one->bytes, other->bytes, address_length(one));
}

size_t address_to_socket(const struct address *address, struct sockaddr_storage *socket_address)
{
	memset(socket_address, 0, sizeof(*socket_address));
	if (address->family == ADDRESS_IP4) {
		struct sockaddr_in ip4 = { .sin_family = AF_INET, .sin_port = htons(address->port) };

		memcpy(&ip4.sin_addr, address->bytes, sizeof(ip4.sin_addr));
		memcpy(socket_address, &ip4, sizeof(ip4));
		return sizeof(ip4);
	}
	if (address->family == ADDRESS_IP6) {
		struct sockaddr_in6 ip6 = {
			.sin6_family = AF_INET6,
			.sin6_port = htons(address->port),
			.sin6_scope_id = address->scope,
		};

		memcpy(&ip6.sin6_addr, address->bytes, sizeof(ip6.sin6_addr));
		memcpy(socket_address, &ip6, sizeof(ip6));
		return sizeof(ip6);
	}
	return 0;
}

bool address_from_socket(const void *socket_address, struct address *address)
{
	sa_family_t family;

	memcpy(&family, socket_address, sizeof(family));
	if (family == AF_INET) {
		struct sockaddr_in ip4;

		memcpy(&ip4, socket_address, sizeof(ip4));
		*address = (struct address){ .family = ADDRESS_IP4, .port = ntohs(ip4.sin_port) };
		memcpy(address->bytes, &ip4.sin_addr, sizeof(ip4.sin_addr));
		return true;
	}
	if (family == AF_INET6) {
		struct sockaddr_in6 ip6;

		memcpy(&ip6, socket_address, sizeof(ip6));
		*address = (struct address){
			.family = ADDRESS_IP6,
			.port = ntohs(ip6.sin6_port),
			.scope = ip6.sin6_scope_id,
		};
		memcpy(address->bytes, &ip6.sin6_addr, sizeof(ip6.sin6_addr));
		return true;
	}
	return false;
}
