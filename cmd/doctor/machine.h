/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files in which the kernel tells about the machine, below a root that is "" but in tests. Nothing in them is trusted:
 * every read and every list has a bound, and what is read has no byte that could move a cursor.
 */
#ifndef CMD_DOCTOR_MACHINE_H
#define CMD_DOCTOR_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum {
	MACHINE_PATH_SIZE = 512,
	MACHINE_NAME_SIZE = 64,
};

/* The names in a folder, in the order in which a person counts. */
struct names {
	char (*name)[MACHINE_NAME_SIZE];
	size_t count;
};

/* Makes a path as printf does; too long a one leads nowhere. Returns path. */
const char *machine_path(char path[MACHINE_PATH_SIZE], const char *format, ...) __attribute__((format(printf, 2, 3)));

enum machine_reading {
	MACHINE_EXISTS = 1,
	MACHINE_LINE,	/* the first line of a file, without blanks around it */
	MACHINE_NAME,	/* that, if it is plain: what neither a terminal nor a shell takes for more than letters */
	MACHINE_TARGET, /* what a symbolic link points to */
	MACHINE_LINK,	/* the last part of that, if it is plain */
};

/* Reads from the path that the format makes. False, and an empty text, if there is nothing of the kind. */
bool machine_read(enum machine_reading reading, char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#define machine_has(...)		machine_read(MACHINE_EXISTS, NULL, 0, __VA_ARGS__)
#define machine_line(text, size, ...)	machine_read(MACHINE_LINE, text, size, __VA_ARGS__)
#define machine_name(text, size, ...)	machine_read(MACHINE_NAME, text, size, __VA_ARGS__)
#define machine_target(text, size, ...) machine_read(MACHINE_TARGET, text, size, __VA_ARGS__)
#define machine_link(name, ...)		machine_read(MACHINE_LINK, name, MACHINE_NAME_SIZE, __VA_ARGS__)

/* Opens a file for reading line by line, or returns NULL. */
FILE *machine_open(const char *path);

/* Empty if there is no such folder. Names that are not plain, and what is beyond a bound, are left out. */
struct names machine_names(const char *path);
void machine_names_free(struct names *names);

/* Replaces what a terminal might take for more than a letter. */
void machine_clean_text(char *text);

#endif
