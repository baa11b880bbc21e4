/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of options: from and to the text that a person writes. Shared by the parser and the help. */
#ifndef CORE_OPTION_VALUE_H
#define CORE_OPTION_VALUE_H

#include "core/options.h"

enum {
	OPTION_TEXT_SIZE = 160 /* a label, a value or a range in words, with its final 0 */
};

/* "-p, --port", or without a letter "--timeout". Returns text. */
const char *option_label(const struct option *row, char text[OPTION_TEXT_SIZE]);

/* True of a row whose values are texts, without a range. */
bool option_takes_text(const struct option *row);

/* A value as a person writes it: "5s", "64", "ip6". Returns text. */
const char *option_value_text(const struct option *row, int64_t value, char text[OPTION_TEXT_SIZE]);

/* What an option with a number or word takes: "1 to 65535", "one of name, ip, ip6, gid". Returns text. */
const char *option_range_text(const struct option *row, char text[OPTION_TEXT_SIZE]);

/*
 * Reads text into the row's member of the options struct. Returns OUTCOME_OK, or OUTCOME_USAGE after one line on
 * stderr. Not for flags.
 */
enum outcome option_set(const struct option *row, const struct log *log, const char *text, void *options);

#endif
