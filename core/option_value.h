/* SPDX-License-Identifier: BSD-2-Clause */
/* A row's texts, and the conversion of its value from text, for the parser and the help. */
#pragma once

#include "core/options.h"

enum {
	OPTION_TEXT_SIZE = 160 /* a label, with its final 0 */
};

/* A field of a row's text; "" for one that a flag does not have. */
const char *option_field(const struct option *row, enum option_field field);

/* "-p, --port" or "--timeout". Returns text. */
const char *option_label(const struct option *row, char text[OPTION_TEXT_SIZE]);

/* The limits of a number; nanoseconds for a duration. */
void option_limits(const struct option *row, int64_t *minimum, int64_t *maximum);

/* Parses a number for an option of that type. Returns false if text is not one. */
bool option_number(enum option_type type, const char *text, int64_t *value);

/* Parses text into the row's member of the options struct. Returns false if it is not a valid value. Not for flags. */
bool option_set(const struct option *row, const char *text, void *options);
