/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/host.h"

#include <string.h>

#define DIGITS "0123456789"

/* The digits that make a port: fewer are ping's way to count, "rping -c 5 HOST". */
enum {
	PORT_DIGITS = 4
};

enum outcome host_check(const struct log *log, const char *option, const char *text, const struct address *address,
			const char *port_option, bool has_interface)
{
	/* 0 is the any address. A name has no colon; an address has none or at least two. */
	bool is_number = !text[strspn(text, DIGITS)] && text[strspn(text, "0")];
	const char *colon = address->family ? NULL : strrchr(text, ':');
	const char *number = is_number ? text : NULL, *fault = NULL;

	if (colon && colon[1] && !colon[1 + strspn(colon + 1, DIGITS)] &&
	    (strchr(text, ':') == colon || colon[-1] == ']'))
		number = colon + 1;
	if (number)
		fault = is_number ? "is a number, not an address" : "includes a port";
	else if (address_is_link_local(address) && !address->scope && !has_interface)
		fault = "is a link-local address and needs its interface, ADDRESS%INTERFACE";
	else if (address_is_multicast(address))
		fault = "is a multicast group, not a host";
	if (!fault)
		return OUTCOME_OK;
	log_error(log, option, "%s %s", text, fault);
	if (number && port_option)
		log_hint(log, "did you mean %s %s?", is_number && strlen(text) < PORT_DIGITS ? "-C" : port_option,
			 number);
	return OUTCOME_USAGE;
}
