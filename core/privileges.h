/* SPDX-License-Identifier: BSD-2-Clause */
/* Dropping the privileges of root: capabilities(7). */
#ifndef CORE_PRIVILEGES_H
#define CORE_PRIVILEGES_H

#include "core/log.h"

enum {
	PRIVILEGE_FILES = 1, /* CAP_DAC_OVERRIDE: write into other users' directories */
	PRIVILEGE_PORTS = 2, /* CAP_NET_BIND_SERVICE: listen on ports below 1,024 */
};

/*
 * Drops all capabilities except CAP_IPC_LOCK, which pinning memory beyond RLIMIT_MEMLOCK needs, and those in kept. Sets
 * no_new_privs, so that execve(2) cannot add any. Does nothing in a process without capabilities.
 */
void privileges_drop(const struct log *log, unsigned kept);

#endif
