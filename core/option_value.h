/* SPDX-License-Identifier: BSD-2-Clause */
/* Conversion of option values from and to text, for the parser and the help. */
#ifndef CORE_OPTION_VALUE_H
#define CORE_OPTION_VALUE_H

#include "core/options.h"

enum {
	OPTION_TEXT_SIZE = 160 /* a label, a value or a range, with its final 0 */
};

/* "-p, --port" or "--timeout". Returns text. */
const char *option_label(const struct option *row, char text[OPTION_TEXT_SIZE]);

/* True if the values of the row are texts, which have no range. */
bool option_takes_text(const struct option *row);

/* A value as on the command line: "5s", "64", "ip6". Returns text. */
const char *option_value_text(const struct option *row, int64_t value, char text[OPTION_TEXT_SIZE]);

/* The valid values of a number or word: "1 to 65535", "one of name, ip, ip6, gid". Returns text. */
const char *option_range_text(const struct option *row, char text[OPTION_TEXT_SIZE]);

/*
 * Parses text into the row's member of the options struct. Returns OUTCOME_OK, or OUTCOME_USAGE after it has reported
 * the error. Not for flags.
 */
enum outcome option_set(const struct option *row, const struct log *log, const char *text, void *options);

#endif
