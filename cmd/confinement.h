/* SPDX-License-Identifier: BSD-2-Clause */
/* What a run gives up for good: privileges, and with --sandbox most system calls. */
#ifndef CMD_CONFINEMENT_H
#define CMD_CONFINEMENT_H

#include "cmd/common.h"

/*
 * Before the transport is opened. The kernel's RDMA takes nothing from a process that has changed its privileges since
 * it opened a device: what a run on one gives up, it gives up here.
 */
void confinement_begin(const struct common_options *options, const struct log *log);

/* When the run is set up: it listens, has connected, or has joined. */
enum outcome confinement_enter(const struct common_options *options, const struct log *log);

#endif
