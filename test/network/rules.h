/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of each packet between two queue pairs, whatever the network does. */
#pragma once

#include "transport/soft/wire/packet.h"

enum {
	RULES_READS = 64 /* READ requests kept for each end */
};

/* Initialise to zero. */
struct rules {
	struct {
		uint32_t psn, packets;
	} reads[2][RULES_READS]; /* requested by each end */
	unsigned count[2];
};

/* Checks a packet that the end sends. mtu is the path MTU. A violation ends the program. */
void rules_check(struct rules *rules, unsigned end, const struct packet *packet, uint32_t mtu);
