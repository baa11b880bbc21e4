/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routers choose among equal paths by a hash of addresses and ports, so a fault on one path affects only some
 * connections. With --paths each connection has its own port, and their results are compared.
 */
#pragma once

#include "cmd/rping/target.h"

enum {
	RPING_WORSE_SIZE = 160
};

/*
 * All targets have ended: prints a table of the paths to each server, and marks those worse than the others. Returns
 * whether one is; then worse has "; worse than the others: UDP ports 49153, 49154", or for several servers the number.
 */
bool rping_compare_paths(const struct rping_client *client, char worse[RPING_WORSE_SIZE]);
