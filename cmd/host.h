/* SPDX-License-Identifier: BSD-2-Clause */
/* The address of a host on the command line: what cannot be one is said before anything is looked up. */
#ifndef CMD_HOST_H
#define CMD_HOST_H

#include <stdbool.h>

#include "core/address.h"
#include "core/log.h"
#include "core/outcome.h"

/*
 * Judges what was given to option: text, and address as it was parsed, ADDRESS_NONE if it is no number but perhaps a
 * name. A port behind it (port_option has that, NULL if nothing has), a link-local address without its interface unless
 * another option tells that, and a group are OUTCOME_USAGE after a line on stderr.
 */
enum outcome host_check(const struct log *log, const char *option, const char *text, const struct address *address,
			const char *port_option, bool interface_told);

#endif
