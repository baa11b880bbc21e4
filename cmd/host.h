/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the address of a host on the command line before it is looked up. */
#ifndef CMD_HOST_H
#define CMD_HOST_H

#include <stdbool.h>

#include "core/address.h"
#include "core/log.h"
#include "core/outcome.h"

/*
 * Checks the value of an option: text, and address as parsed, ADDRESS_NONE if it is not numeric. Reports and returns
 * OUTCOME_USAGE for a bare number (inet_aton(3) takes it), an appended port, a link-local address without its
 * interface, and a multicast group. port_option is the option for the port, or NULL. has_interface: another option
 * names the interface.
 */
enum outcome host_check(const struct log *log, const char *option, const char *text, const struct address *address,
			const char *port_option, bool has_interface);

#endif
