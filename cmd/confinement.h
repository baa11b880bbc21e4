/* SPDX-License-Identifier: BSD-2-Clause */
/* Dropping privileges and, with --sandbox, most system calls. */
#ifndef CMD_CONFINEMENT_H
#define CMD_CONFINEMENT_H

#include "cmd/common.h"

/*
 * Call it before the transport is opened. Drops the privileges of a run that opens a device: the kernel's RDMA rejects
 * writes of a process whose credentials have changed since it opened the device.
 */
void confinement_begin(const struct common_options *options, const struct log *log);

/*
 * Call it when the run listens, is connected or has joined. Drops the privileges of a run that opens no device, and
 * with
 * --sandbox installs the system call filter.
 */
enum outcome confinement_enter(const struct common_options *options, const struct log *log);

#endif
