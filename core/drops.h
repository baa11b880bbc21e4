/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's drop counters for this network namespace, for packets received before a process sees them or sent by
 * one. They are read before a run and after a failure: no cost per packet.
 */
#pragma once

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
 * Writes why the kernel has dropped packets since that reading, or that its connection table is full, and a remedy; ""
 * and false if neither is known.
 */
bool drops_since(const struct drops *first, char text[DROPS_SIZE]);
/*
 * For a receiver without a packet: writes how many bytes of multicast packets of that family have reached this host
 * since that reading, which its firewall may have dropped; "" and false if there were fewer.
 */
bool drops_of_groups(const struct drops *first, bool is_ip6, uint64_t least, char text[DROPS_SIZE]);
