/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/host.h"

#include <arpa/inet.h>
#include <string.h>

#define DIGITS "0123456789"

/* The digits that make a port: fewer are ping's way to count, "rping -c 5 HOST". */
enum {
	PORT_DIGITS = 4
};

/* inet_aton(3) also takes fewer than four numbers, "127.1"; no name has only digits and dots. */
static bool is_malformed_quad(const char *text)
{
	struct in_addr address;

	return strchr(text, '.') && !text[strspn(text, DIGITS ".")] && !inet_aton(text, &address);
}

/* Of an address that did not parse. A name has no colon; an address has none or at least two. */
static enum outcome check_name(const struct log *log, const char *option, const char *text, const char *port_option)
{
	const char *colon = strrchr(text, ':');
	bool has_port = colon && colon[1] && !colon[1 + strspn(colon + 1, DIGITS)];

	if (*text == '-') {
		log_error(log, option, "%s is an option, not an address", text);
		return OUTCOME_USAGE;
	}
	if (is_malformed_quad(text)) {
		log_error(log, option, "%s is not an IPv4 address", text);
		return OUTCOME_USAGE;
	}
	if (!has_port || (strchr(text, ':') != colon && colon[-1] != ']'))
		return OUTCOME_OK;
	log_error(log, option, "%s includes a port", text);
	if (port_option)
		log_hint(log, "give the port separately: %s %s", port_option, colon + 1);
	return OUTCOME_USAGE;
}

enum outcome host_check(const struct log *log, const char *option, const char *text, const struct address *address,
			const char *port_option, bool has_interface)
{
	/* 0 is the any address. */
	if (!text[strspn(text, DIGITS)] && text[strspn(text, "0")]) {
		log_error(log, option, "%s is a number, not an address", text);
		if (port_option)
			log_hint(log, "did you mean %s %s?", strlen(text) < PORT_DIGITS ? "-C" : port_option, text);
		return OUTCOME_USAGE;
	}
	if (!address->family)
		return check_name(log, option, text, port_option);
	if (address_is_link_local(address) && !address->scope && !has_interface) {
		log_error(log, option, "%s is a link-local address and needs an interface: %s%%INTERFACE", text, text);
		return OUTCOME_USAGE;
	}
	if (address_is_multicast(address)) {
		log_error(log, option, "%s is a multicast group, not a host", text);
		return OUTCOME_USAGE;
	}
	return OUTCOME_OK;
}
