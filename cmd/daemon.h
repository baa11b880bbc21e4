/* SPDX-License-Identifier: BSD-2-Clause */
/* --daemon: a server in the background, and its parent, which waits until it is ready. */
#pragma once

#include "core/log.h"
#include "core/outcome.h"

/*
 * Call it before a file, loop or device is open: it closes all but the standard descriptors. Only the child returns,
 * with the pipe to its parent: that exits with 0 when the child is ready, or with the child's exit code if the child
 * ends first. OUTCOME_USAGE: this is process 1, whose end would end the child.
 */
enum outcome daemon_begin(const struct log *log, int *parent);

/*
 * Goes into folder, detaches from the terminal and releases the parent. Call it after the last line that the caller is
 * to see.
 */
enum outcome daemon_ready(const struct log *log, int parent, const char *folder);
