/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel drops of all packets of this network namespace before a process sees them, or after it has sent them.
 * Its counters are read before a run and after a failure: nothing per packet.
 */
#ifndef CORE_DROPS_H
#define CORE_DROPS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	DROPS_MULTICAST = 7,
	DROPS_MULTICAST6,
	DROPS_COUNT,
	DROPS_SIZE = 160
};

/* The counters, plus 1; 0: not read. */
struct drops {
	uint64_t counts[DROPS_COUNT];
};

void drops_read(struct drops *drops);
/*
 * Writes by what the kernel has dropped packets since that reading, or that its table of connections is full, and what
 * to do; "" and false if neither is known.
 */
bool drops_since(const struct drops *first, char text[DROPS_SIZE]);
/*
 * Of a receiver to which nothing has come: writes how many bytes of multicast packets of that family have reached this
 * host since that reading, which its firewall may have dropped; "" and false if it were fewer than that.
 */
bool drops_of_groups(const struct drops *first, bool is_ip6, uint64_t least, char text[DROPS_SIZE]);

#endif
