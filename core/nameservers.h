/* SPDX-License-Identifier: BSD-2-Clause */
/* The name servers of this host, for the cause of a look-up that fails: each gets a query of its own. */
#ifndef CORE_NAMESERVERS_H
#define CORE_NAMESERVERS_H

#include <stdbool.h>

#include "core/address.h"

enum {
	NAMESERVERS_MAX = 3 /* the C library reads no more */
};

struct nameservers {
	unsigned count;
	bool none_named; /* in /etc/resolv.conf */
	struct nameserver {
		struct address address;
		int socket; /* readable when the server, or an ICMP error of its host, has answered */
	} list[NAMESERVERS_MAX];
};

/* Sends a query to each server of /etc/resolv.conf. A host without any has one at 127.0.0.1, as for the C library. */
void nameservers_ask(struct nameservers *servers);

/* Whether the server has answered, whatever. Does not wait, and closes the socket. */
bool nameserver_has_answered(struct nameserver *server);

#endif
