/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the lines of a text end, for a person at a terminal. */
#ifndef CORE_TERMINAL_H
#define CORE_TERMINAL_H

#include <stddef.h>

enum {
	TERMINAL_WIDTH = 80, /* columns of a text that is the same everywhere, and of a terminal that does not tell */
	TERMINAL_INDENT = 4, /* of the lines that terminal_wrap() makes, but for the first */
};

/* The columns of the terminal as it is now, at least 40; 0 if the descriptor is none. */
size_t terminal_width(int fd);

/*
 * Returns the length of the words of text that fit into room, or of the first one if it is longer. Lines end at spaces,
 * if that character is not 0 at those after it, unless that leaves a line too long.
 */
size_t terminal_line(const char *text, size_t room, char after);

/* Breaks a line in an array of that size into several, if the descriptor is a terminal and they fit there. */
void terminal_wrap(char *line, size_t size, int fd);

#endif
