/* SPDX-License-Identifier: BSD-2-Clause */
/* This host's name servers, for a failed look-up's cause: each gets its own query. */
#pragma once

#include <stdbool.h>

#include "core/address.h"

enum {
	NAMESERVERS_MAX = 3 /* the C library reads no more */
};

struct nameservers {
	unsigned count;
	bool none_named; /* /etc/resolv.conf has none */
	struct nameserver {
		struct address address;
		int socket; /* readable when the server, or an ICMP error of its host, has answered */
	} list[NAMESERVERS_MAX];
};

/* Sends a query to each server in /etc/resolv.conf; without any, to 127.0.0.1, as the C library does. */
void nameservers_ask(struct nameservers *servers);

/* Whether the server has sent any answer. Does not wait, and closes the socket. */
bool nameserver_has_answered(struct nameserver *server);
