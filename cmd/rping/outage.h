/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An outage: with --reconnect, a target without a connection continues, as in ping(8). It is dialled until the run
 * ends, and each ping whose slot passes meanwhile is lost.
 */
#pragma once

#include "cmd/rping/target.h"

/*
 * The connection has failed, or was never made, as error says. Returns false if the target must end. expired: called
 * when no ping is left, or --duration is over.
 */
bool outage_begin(struct target *target, const struct error *error, loop_callback *expired);

/* The target is connected again, or ends: counts the outage's lost pings. A no-op without an outage. */
void outage_end(struct target *target, bool connected);

/* Adds lost pings, if any, to the verdict. */
void outage_add_verdict(struct run *run, const struct ping_counts *counts);
