/* SPDX-License-Identifier: BSD-2-Clause */
/* What a run gives up when it is set up: it listens, has connected, or has joined. */
#ifndef CMD_CONFINEMENT_H
#define CMD_CONFINEMENT_H

#include "cmd/common.h"

/* Privileges, and with --sandbox most system calls. */
enum outcome confinement_enter(const struct common_options *options, const struct transport *transport,
			       const struct log *log);

#endif
