/* SPDX-License-Identifier: BSD-2-Clause */
/* What root may do beyond what others may: the capabilities of capabilities(7). */
#ifndef CORE_PRIVILEGES_H
#define CORE_PRIVILEGES_H

#include <stdbool.h>

#include "core/log.h"

/*
 * Gives up, for good, all capabilities but CAP_IPC_LOCK (memory beyond the limit is pinned with each connection) and,
 * if files are still to be written, CAP_DAC_OVERRIDE; and what a file that is executed could give (no_new_privs). A
 * process that never had any is left as it is.
 */
void privileges_drop(const struct log *log, bool keep_files);

#endif
