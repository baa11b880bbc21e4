/* SPDX-License-Identifier: BSD-2-Clause */
/* The process that has a UDP port of a local address, as far as /proc shows it to this one. */
#ifndef CORE_HOLDER_H
#define CORE_HOLDER_H

#include "core/address.h"

enum {
	HOLDER_SIZE = 96
};

/* The caller zeroes it. */
struct holder {
	struct address address;
	char text[HOLDER_SIZE]; /* "PID 17 (rping)"; "": unknown */
	bool is_own;		/* it runs this program */
};

/* Does nothing if the holder of that address has been looked up. */
void holder_find(struct holder *holder, const struct address *address);

#endif
