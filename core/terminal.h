/* SPDX-License-Identifier: BSD-2-Clause */
/* Line breaks for a person at a terminal. */
#pragma once

#include <stddef.h>

enum {
	TERMINAL_WIDTH = 80, /* columns of fixed texts, and of a terminal of unknown width */
	TERMINAL_INDENT = 4, /* indent of terminal_wrap()'s continuation lines */
};

/* The terminal's current columns, at least 40; 0 if the descriptor is not a terminal. */
size_t terminal_width(int fd);

/*
 * Returns the length of the words that fit into room, or of the first word if it is longer. Lines end at spaces: only
 * at those after the character, if it is not 0, unless the line would then be too long. A number stays with what
 * follows it, such as its unit, and so does an option.
 */
size_t terminal_line(const char *text, size_t room, char after);

/* Breaks a line in an array of that size into several, if the descriptor is a terminal and the lines fit the array. */
void terminal_wrap(char *line, size_t size, int fd);
