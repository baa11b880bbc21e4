/* SPDX-License-Identifier: BSD-2-Clause */
/* What root may do beyond what others may: the capabilities of capabilities(7). */
#ifndef CORE_PRIVILEGES_H
#define CORE_PRIVILEGES_H

#include "core/log.h"

enum {
	PRIVILEGE_FILES = 1, /* CAP_DAC_OVERRIDE: to write into other users' directories */
	PRIVILEGE_PORTS = 2, /* CAP_NET_BIND_SERVICE: to listen on ports below 1,024 */
};

/*
 * Gives up, for good, all capabilities but CAP_IPC_LOCK (memory beyond the limit is pinned with each connection) and
 * what kept says; and what a file that is executed could give (no_new_privs). A process that never had any is left as
 * it is.
 */
void privileges_drop(const struct log *log, unsigned kept);

#endif
