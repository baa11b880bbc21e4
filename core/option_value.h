/* SPDX-License-Identifier: BSD-2-Clause */
/* The texts of a row, and the conversion of its value from text, for the parser and the help. */
#ifndef CORE_OPTION_VALUE_H
#define CORE_OPTION_VALUE_H

#include "core/options.h"

enum {
	OPTION_TEXT_SIZE = 160 /* a label, with its final 0 */
};

/* The field of a row's text. */
const char *option_field(const struct option *row, enum option_field field);

/* "-p, --port" or "--timeout". Returns text. */
const char *option_label(const struct option *row, char text[OPTION_TEXT_SIZE]);

/* The limits of a number; nanoseconds for a duration. */
void option_limits(const struct option *row, int64_t *minimum, int64_t *maximum);

/* Parses a number as an option of that type takes it. Returns false if text is none. */
bool option_number(enum option_type type, const char *text, int64_t *value);

/* Parses text into the row's member of the options struct. Returns false if that is no such value. Not for flags. */
bool option_set(const struct option *row, const char *text, void *options);

#endif
