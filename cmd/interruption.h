/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIGINT, SIGTERM, and SIGHUP unless it is ignored: the first one ends the run in order; a later SIGINT or SIGTERM at
 * once, even if a library call blocks.
 */
#ifndef CMD_INTERRUPTION_H
#define CMD_INTERRUPTION_H

#include "core/loop.h"

/* Calls back from the loop, once, for the first signal. */
void interruption_catch(struct loop *loop, struct loop_signal *watcher, loop_callback *callback, void *owner);

/* The run is over: no more call-backs. What is left to do may still be cut short by two signals. */
void interruption_release(struct loop_signal *watcher);

#endif
