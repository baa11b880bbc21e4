/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a name has no address, as far as the C library's look-up files show. Used after a failure. */
#pragma once

#include <stdbool.h>

enum {
	NAME_CAUSE_SIZE = 192
};

/*
 * Writes why: /etc/hosts cannot be read; it has the name, but the look-up skips it; only a cluster's own name server
 * knows such names. root: the directory above /etc, "" except in tests. Writes "" and returns false if the files do not
 * explain it.
 */
bool name_cause(const char *root, const char *name, char text[NAME_CAUSE_SIZE]);
