/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routers choose one of several equal paths by a hash of addresses and ports, so that what is broken on one of them
 * meets one connection in a few. With --paths each connection has a port of its own, and what they met is compared.
 */
#ifndef CMD_RPING_PATHS_H
#define CMD_RPING_PATHS_H

#include "cmd/rping/target.h"

enum {
	RPING_WORSE_SIZE = 160
};

/*
 * All targets have ended: prints a table of the paths to each server, and says of each whether it is worse than the
 * others. Returns whether one is; then worse has "; worse than the others: UDP ports 49153, 49154", or of several
 * servers the number.
 */
bool rping_compare_paths(const struct rping_client *client, char worse[RPING_WORSE_SIZE]);

#endif
