/* SPDX-License-Identifier: BSD-2-Clause */
/* The process that holds a local address's UDP port, as far as /proc shows it. */
#pragma once

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

/* A no-op if that address's holder has been looked up. */
void holder_find(struct holder *holder, const struct address *address);
