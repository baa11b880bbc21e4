/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An outage: with --reconnect, a target without a connection goes on, as ping does. It is dialled until the run ends,
 * and a ping whose slot passes meanwhile is lost.
 */
#ifndef CMD_RPING_OUTAGE_H
#define CMD_RPING_OUTAGE_H

#include "cmd/rping/target.h"

/*
 * The connection has failed, or there has been none, which error says. Returns false if the target is to end. expired:
 * when no ping is left, or the run's --duration is over.
 */
bool outage_begin(struct target *target, const struct error *error, loop_callback *expired);

/* It is connected again, or ends: counts the pings that the outage has taken. Does nothing without an outage. */
void outage_end(struct target *target, bool connected);

/* Adds to the verdict what was lost, if anything. */
void outage_add_verdict(struct environment *environment, const struct ping_counts *counts);

#endif
