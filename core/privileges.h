/* SPDX-License-Identifier: BSD-2-Clause */
/* The privileges of this process, capabilities(7) and namespaces(7), and dropping those of root. */
#pragma once

#include <stdbool.h>

#include "core/log.h"

enum {
	PRIVILEGE_FILES = 1,   /* CAP_DAC_OVERRIDE: write into other users' directories */
	PRIVILEGE_PORTS = 2,   /* CAP_NET_BIND_SERVICE: listen on ports below 1,024 */
	PRIVILEGE_BUFFERS = 4, /* CAP_NET_ADMIN: buffers of sockets beyond net.core.rmem_max */
};

/*
 * Drops all capabilities except CAP_IPC_LOCK, needed to pin memory beyond RLIMIT_MEMLOCK, and those in kept. Sets
 * no_new_privs, so that execve(2) cannot add any. Does nothing in a process without capabilities.
 */
void privileges_drop(const struct log *log, unsigned kept);

/* Closes all descriptors above the standard streams', up to last. */
void privileges_close(unsigned last);

/* Reports a failed fork(2), with errno, and the process limit if that is the cause. */
void privileges_no_process(const struct log *log, const char *object);

/* Whether this is the initial user namespace, or /proc does not say. */
bool privileges_user_namespace_is_initial(void);
/* Whether the process runs in a container: one of its namespaces is not the initial one. */
bool privileges_in_container(void);
/* Whether /dev is a container's or service's own, without the host's files. */
bool privileges_dev_is_private(void);
/*
 * Whether a capability, such as CAP_IPC_LOCK, is effective. The kernel's RDMA stack ignores those of other user
 * namespaces.
 */
bool privileges_have(unsigned capability);
/* Whether root here could have the capability, and over the host, even if this process has dropped its own. */
bool privileges_may(unsigned capability);
