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

/* The path of a file: root, "/", and the rest by the format. Returns path; too long a one leads nowhere. */
const char *machine_path(char path[MACHINE_PATH_SIZE], const char *root, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

bool machine_has(const char *path);

/* Reads the first line of a file, without blanks around it. False, and an empty text, if there is none. */
bool machine_line(const char *path, char *text, size_t size);

/* As machine_line(), of plain names only: what nobody takes for more than letters. */
bool machine_name(const char *path, char *name, size_t size);

/* What a symbolic link points to. False, and an empty text, if it is none. */
bool machine_target(const char *path, char *text, size_t size);

/* The last part of what a symbolic link points to. False, and an empty name, if it is none, or no plain name. */
bool machine_link(const char *path, char name[MACHINE_NAME_SIZE]);

/* Opens a file for reading line by line, or returns NULL. */
FILE *machine_open(const char *path);

/* Empty if there is no such folder. Names that are not plain, and what is beyond a bound, are left out. */
struct names machine_names(const char *path);
void machine_names_free(struct names *names);

/* Replaces what a terminal might take for more than a letter. */
void machine_clean_text(char *text);

#endif
