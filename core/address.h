/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer's address, without socket or verbs types: an IPv4 or IPv6 address or a native GID, and a port. */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sockaddr_storage;

enum address_family {
	ADDRESS_NONE = 0,
	ADDRESS_IP4,
	ADDRESS_IP6,
	ADDRESS_GID,
};

struct address {
	enum address_family family;
	uint8_t bytes[16]; /* network order; IPv4 uses the first four */
	uint16_t port;	   /* host order */
	uint32_t scope;	   /* interface index of a link-local IPv6 address, else 0 */
};

enum {
	ADDRESS_TEXT_SIZE = 80 /* "[fe80::...%interface]:65535" with its final 0 */
};

/* The formats of address_parse() and the resolver. Those of one family are in the order of enum address_family. */
enum address_format {
	ADDRESS_FORMAT_ANY = 0, /* a name, IPv4 or IPv6 */
	ADDRESS_FORMAT_IP,	/* a numeric IPv4 or IPv6 address */
	ADDRESS_FORMAT_IP4,
	ADDRESS_FORMAT_IP6,
	ADDRESS_FORMAT_GID, /* a native GID, written as an IPv6 address */
};

/*
 * Parses a numeric address: "10.0.0.1", "fe80::1%eth0", with ADDRESS_FORMAT_GID "fe80::1"; each also in brackets. "0"
 * is the any address, IPv4's if the format allows it. "::ffff:10.0.0.1", a GID's form in reports, is then 10.0.0.1. The
 * port stays 0. Returns false and leaves *address unchanged if text is not a numeric address of that format.
 */
bool address_parse(const char *text, enum address_format format, struct address *address);

/* Writes "10.0.0.1:7174", "[fd00::1%eth0]:7174", or without a port just the address. Returns text. */
const char *address_text(const struct address *address, char text[ADDRESS_TEXT_SIZE]);

/* As address_text(), without the port. */
const char *address_host(const struct address *address, char text[ADDRESS_TEXT_SIZE]);

/* Converts an IPv4-mapped IPv6 address (RFC 4291, 2.5.5.2), a GID's form, to IPv4. */
void address_unmap(struct address *address);

bool address_is_any(const struct address *address);
bool address_is_loopback(const struct address *address);
bool address_is_multicast(const struct address *address);
bool address_is_link_local(const struct address *address); /* IPv6 only */
bool address_is_broadcast(const struct address *address);  /* 255.255.255.255 */
/* Compares family, bytes and scope, not the port. */
bool address_same_host(const struct address *one, const struct address *other);

/*
 * Conversion to and from sockaddr, IPv4 and IPv6 only. address_to_socket() returns the length, or 0 for another family,
 * which it writes as IPv6. address_from_socket() takes any sockaddr of getifaddrs(3) or getaddrinfo(3): unaligned, and
 * only as long as its family needs.
 */
size_t address_to_socket(const struct address *address, struct sockaddr_storage *socket_address);
bool address_from_socket(const void *socket_address, struct address *address);
