/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIGINT, SIGTERM and SIGHUP, the watchdog, and the fatal exit from a signal handler.
 *
 * The first signal starts an orderly shutdown. A later SIGINT or SIGTERM ends the process at once, even if a library
 * call blocks. The watchdog ends the process if the loop is blocked.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/loop.h"

/*
 * True if the signal was already ignored at startup; it stays ignored: SIGHUP by nohup(1), SIGINT and SIGQUIT by a
 * shell that runs the command in a script's background. Only in a build WITH_DIAGNOSTICS.
 */
bool signals_ignored(int number);

/* One watcher, which the handler wakes; without WITH_DIAGNOSTICS one for each signal. */
enum {
	SIGNALS = WITH_DIAGNOSTICS ? 1 : 3
};

/*
 * Calls back from the loop, once, for the first SIGINT, SIGTERM or SIGHUP that is not ignored. The watchdog's limit
 * begins with that signal.
 */
void signals_catch(struct loop *loop, struct loop_signal watchers[SIGNALS], int64_t watchdog, loop_callback *callback,
		   void *context);

/* True after the first one. */
bool signals_received(void);
/* True after SIGXCPU, which counts as such a signal with WITH_EXTRAS: the process has used up its processor time. */
bool signals_out_of_time(void);

/*
 * Waits outside the loop until fd can be read. Returns false at that time of the clock, or after a first signal;
 * without WITH_DIAGNOSTICS that ends the process.
 */
bool signals_wait(int fd, int64_t until);

/* Ends the callbacks. Afterwards the second signal still ends the process. */
void signals_release(struct loop_signal watchers[SIGNALS]);

/*
 * Ends the process with OUTCOME_FAILED and a line on stderr (without WITH_DIAGNOSTICS: by SIGALRM) after nanoseconds
 * plus two to three seconds. Another start replaces the limit. A running alarm(2) of the caller takes its place. Safe
 * in a signal handler.
 */
void watchdog_start(int64_t nanoseconds);

enum fatal_reason {
	FATAL_INTERRUPTED = 0, /* a second Ctrl-C: OUTCOME_INTERRUPTED */
	FATAL_STUCK,	       /* a library call does not return: OUTCOME_FAILED */
	FATAL_MEMORY,	       /* out of memory in the event loop: OUTCOME_INTERNAL */
	FATAL_LOOP,	       /* a system call of the event loop failed: OUTCOME_INTERNAL */
};

/* Prints the reason on stderr and ends the process. Safe in a signal handler. */
_Noreturn void fatal_exit(enum fatal_reason reason);

/* Sets and copies the name that fatal_exit() prints. */
void fatal_exit_name(const char *name);

/* For loop_set_fatal_handlers(). */
void *fatal_allocate(void *memory, long size);
void fatal_loop_error(const char *what);
