/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/address.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/log.h"

/* text is an interface name or index. */
static bool parse_scope(const char *text, uint32_t *scope)
{
	uint64_t number = 0;

	*scope = if_nametoindex(text);
	if (*scope)
		return true;
	for (; *text >= '0' && *text <= '9' && number <= UINT32_MAX; text++)
		number = number * 10 + (uint64_t)(*text - '0');
	*scope = (uint32_t)number;
	return !*text && number && number <= UINT32_MAX;
}

void address_unmap(struct address *address)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	if (address->family != ADDRESS_IP6 || memcmp(address->bytes, prefix, sizeof(prefix)) != 0)
		return;
	address->family = ADDRESS_IP4;
	memmove(address->bytes, address->bytes + 12, 4);
	memset(address->bytes + 4, 0, 12);
}

bool address_parse(const char *text, enum address_format format, struct address *address)
{
	struct address parsed = { .family = ADDRESS_IP4 };
	char host[ADDRESS_TEXT_SIZE], *scope = NULL;
	size_t length, bracket;

	if (!strcmp(text, "0"))
		text = format < ADDRESS_FORMAT_IP6 ? "0.0.0.0" : "::";
	/* "[::1]", as address_text() writes it. */
	length = strlen(text);
	bracket = *text == '[' && text[length - 1] == ']';
	if (length >= sizeof(host))
		return false;
	memcpy(host, text + bracket, length + 1 - bracket);
	host[length - 2 * bracket] = 0;
	length = strcspn(host, "%");
	if (host[length]) {
		host[length] = 0;
		scope = host + length + 1;
	}
	if (host[strcspn(host, ":")])
		parsed.family = ADDRESS_IP6;
	if (inet_pton(parsed.family == ADDRESS_IP4 ? AF_INET : AF_INET6, host, parsed.bytes) != 1)
		return false;
	if (parsed.family == ADDRESS_IP6 && format == ADDRESS_FORMAT_GID)
		parsed.family = ADDRESS_GID;
	if (format < ADDRESS_FORMAT_IP4)
		address_unmap(&parsed);
	if (format >= ADDRESS_FORMAT_IP4 && parsed.family != format - ADDRESS_FORMAT_IP4 + ADDRESS_IP4)
		return false;
	if (scope && (parsed.family != ADDRESS_IP6 || !parse_scope(scope, &parsed.scope)))
		return false;
	/* Like the kernel, ignores the interface of any other address; a packet's address has none. */
	if (!address_is_link_local(&parsed) && !address_is_multicast(&parsed))
		parsed.scope = 0;
	*address = parsed;
	return true;
}

const char *address_host(const struct address *address, char text[ADDRESS_TEXT_SIZE])
{
	char interface[IF_NAMESIZE];
	size_t length;

	if (address->family == ADDRESS_NONE)
		return strcpy(text, "no address");
	inet_ntop(address->family == ADDRESS_IP4 ? AF_INET : AF_INET6, address->bytes, text, ADDRESS_TEXT_SIZE);
	if (!address->scope)
		return text;
	length = strlen(text);
	if (WITH_DIAGNOSTICS && if_indextoname(address->scope, interface))
		log_text(text + length, ADDRESS_TEXT_SIZE - length, "%%%s", interface);
	else
		log_text(text + length, ADDRESS_TEXT_SIZE - length, "%%%" PRIu32, address->scope);
	return text;
}

const char *address_text(const struct address *address, char text[ADDRESS_TEXT_SIZE])
{
	char host[ADDRESS_TEXT_SIZE];

	if (!address->port || !address->family)
		return address_host(address, text);
	return log_text(text, ADDRESS_TEXT_SIZE, address->family == ADDRESS_IP4 ? "%.68s:%u" : "[%.68s]:%u",
			address_host(address, host), address->port);
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

bool address_is_broadcast(const struct address *address)
{
	static const uint8_t ones[4] = { 0xff, 0xff, 0xff, 0xff };

	return address->family == ADDRESS_IP4 && !memcmp(address->bytes, ones, sizeof(ones));
}

bool address_same_host(const struct address *one, const struct address *other)
{
	return one->family == other->family && one->scope == other->scope &&
	       !memcmp(one->bytes, other->bytes, address_length(one));
}

size_t address_to_socket(const struct address *address, struct sockaddr_storage *socket_address)
{
	struct sockaddr_in6 *ip6 = (struct sockaddr_in6 *)socket_address;
	struct sockaddr_in *ip4 = (struct sockaddr_in *)socket_address;

	memset(socket_address, 0, sizeof(*socket_address));
	ip6->sin6_port = htons(address->port); /* where IPv4 has it, too */
	if (address->family == ADDRESS_IP4) {
		ip4->sin_family = AF_INET;
		memcpy(&ip4->sin_addr, address->bytes, sizeof(ip4->sin_addr));
		return sizeof(*ip4);
	}
	ip6->sin6_family = AF_INET6;
	ip6->sin6_scope_id = address->scope;
	memcpy(&ip6->sin6_addr, address->bytes, sizeof(ip6->sin6_addr));
	return address->family == ADDRESS_IP6 ? sizeof(*ip6) : 0;
}

bool address_from_socket(const void *socket_address, struct address *address)
{
	const char *bytes = socket_address;
	struct sockaddr_in start;

	memcpy(&start, bytes, sizeof(start));
	*address = (struct address){ .port = ntohs(start.sin_port) };
	if (start.sin_family == AF_INET) {
		address->family = ADDRESS_IP4;
		memcpy(address->bytes, &start.sin_addr, sizeof(start.sin_addr));
	} else if (start.sin_family == AF_INET6) {
		address->family = ADDRESS_IP6;
		memcpy(address->bytes, bytes + offsetof(struct sockaddr_in6, sin6_addr), sizeof(address->bytes));
		memcpy(&address->scope, bytes + offsetof(struct sockaddr_in6, sin6_scope_id), sizeof(address->scope));
	}
	return address->family != ADDRESS_NONE;
}
