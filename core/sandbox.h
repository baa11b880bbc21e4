/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the process may still ask the kernel for once a run is set up: a seccomp filter that can never be taken off
 * again, by a list of what is allowed. docs/security.md says why what is in it.
 */
#ifndef CORE_SANDBOX_H
#define CORE_SANDBOX_H

#include <signal.h>
#include <stdbool.h>

#include "core/log.h"
#include "core/outcome.h"

enum {
	SANDBOX_FILES = 1,   /* create, overwrite, rename and remove files */
	SANDBOX_DEVICES = 2, /* open what is there for reading and writing */
};

/* A system call was refused: information->si_syscall. A signal handler, which must not return. */
typedef void sandbox_refused(int number, siginfo_t *information, void *context);

/* True on a processor that the filter was written for, with a kernel that has filters; else says why not. */
bool sandbox_is_possible(const struct log *log);

/*
 * From here on only what the list and grants (of the above) allow; a call that is not is not carried out, and refused
 * hears of it. Needs no privileges, and gives up those that a file could still give (no_new_privs).
 */
enum outcome sandbox_enter(const struct log *log, unsigned grants, sandbox_refused *refused);

#endif
