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

/* All paths are made by a printf format, the last parameter; too long a one leads nowhere. */

const char *machine_path(char path[MACHINE_PATH_SIZE], const char *format, ...) __attribute__((format(printf, 2, 3)));
bool machine_has(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reads the first line of a file, without blanks around it. False, and an empty text, if there is none. */
bool machine_line(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* As machine_line(), of plain names only: what neither a terminal nor a shell takes for more than letters. */
bool machine_name(char *name, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* What a symbolic link points to. False, and an empty text, if it is none. */
bool machine_target(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The last part of that. False, and an empty name, if it is none, or no plain name. */
bool machine_link(char name[MACHINE_NAME_SIZE], const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Opens a file for reading line by line, or returns NULL. */
FILE *machine_open(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Empty if there is no such folder. Names that are not plain, and what is beyond a bound, are left out. */
struct names machine_names(const char *format, ...) __attribute__((format(printf, 1, 2)));
void machine_names_free(struct names *names);

/* Replaces what a terminal might take for more than a letter. */
void machine_clean_text(char *text);

#endif
