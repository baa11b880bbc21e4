/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines for a terminal. */
#pragma once

#include <stddef.h>

#include "core/output.h"

/*
 * Prints a text in lines of at most width columns, or in one if that is 0. Lines break as in terminal_line(). Longer
 * words overflow. The caller has printed "used" columns of the first line. Prints nothing if the text is empty.
 */
void wrap_print(struct output *output, size_t width, size_t used, size_t indent, char after, const char *text);
