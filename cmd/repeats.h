/* SPDX-License-Identifier: BSD-2-Clause */
/* A log for the endpoints of one run, which may all fail alike: an error that is the same as the one before is omitted.
 */
#ifndef CMD_REPEATS_H
#define CMD_REPEATS_H

#include "core/log.h"

struct repeats {
	struct log log; /* for the endpoints */
	const struct log *of;
	struct error last;
	bool omitted; /* the last error was the same as the one before: so is its hint */
};

/* The command reports at the end how many have failed. of must outlive the endpoints. */
void repeats_initialise(struct repeats *repeats, const struct log *of);

#endif
