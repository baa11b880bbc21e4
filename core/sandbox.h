/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A seccomp filter with a list of allowed system calls, installed once a run is set up. A process cannot remove it.
 * docs/security.md lists what it refuses.
 */
#ifndef CORE_SANDBOX_H
#define CORE_SANDBOX_H

#include <signal.h>
#include <stdbool.h>

#include "core/log.h"
#include "core/outcome.h"

enum {
	SANDBOX_FILES = 1,   /* create, overwrite, rename and remove files */
	SANDBOX_DEVICES = 2, /* open existing files for reading and writing */
};

/* The SIGSYS handler for a refused system call, information->si_syscall. It must not return. */
typedef void sandbox_refused(int number, siginfo_t *information, void *context);

/* Returns true if the filter supports the architecture and the kernel has seccomp filters, else reports an error. */
bool sandbox_is_possible(const struct log *log);

/*
 * Installs the filter: from now on the process may only make the system calls of the list and of grants (SANDBOX_*).
 * Any other call is not executed, and refused is called. Needs no privileges. Sets no_new_privs.
 */
enum outcome sandbox_enter(const struct log *log, unsigned grants, sandbox_refused *refused);

#endif
