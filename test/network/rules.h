/* SPDX-License-Identifier: BSD-2-Clause */
/* What every packet between two queue pairs is held to, whatever the network does. */
#ifndef TEST_NETWORK_RULES_H
#define TEST_NETWORK_RULES_H

#include "transport/soft/wire/packet.h"

enum {
	RULES_READS = 64 /* remembered of each end */
};

/* All zero at first. */
struct rules {
	struct {
		uint32_t psn, packets;
	} reads[2][RULES_READS]; /* asked for by each end */
	unsigned count[2];
};

/* That end sends the packet, to a queue pair with that path MTU. A violation ends the program. */
void rules_see(struct rules *rules, unsigned end, const struct packet *packet, uint32_t mtu);

#endif
