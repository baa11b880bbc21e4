/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a name has no address, as far as the files say by which the C library looks names up. Asked after a failure. */
#ifndef CORE_NAME_CAUSE_H
#define CORE_NAME_CAUSE_H

#include <stdbool.h>

enum {
	NAME_CAUSE_SIZE = 192
};

/*
 * Writes why: /etc/hosts cannot be read; it has the name, and the look-up leaves it out; only a cluster's own name
 * server knows such a name. root: of /etc, "" except in tests. Writes "" and returns false if the files say nothing.
 */
bool name_cause(const char *root, const char *name, char text[NAME_CAUSE_SIZE]);

#endif
