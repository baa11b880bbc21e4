/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of /sys and /proc, below a root that is "" except in tests. Their contents are not trusted: every read and
 * every list has a bound, and control characters are replaced.
 */
#ifndef CMD_DOCTOR_SYSFS_H
#define CMD_DOCTOR_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum {
	SYSFS_PATH_SIZE = 512,
	SYSFS_NAME_SIZE = 64,
};

/* The names in a folder, in the order in which a person counts. */
struct names {
	char (*name)[SYSFS_NAME_SIZE];
	size_t count;
};

/* Makes a path as printf does; too long a one leads nowhere. Returns path. */
const char *sysfs_path(char path[SYSFS_PATH_SIZE], const char *format, ...) __attribute__((format(printf, 2, 3)));

enum sysfs_reading {
	SYSFS_EXISTS = 1,
	SYSFS_LINE,   /* the first line of a file, without blanks around it */
	SYSFS_NAME,   /* that, if it is plain: what neither a terminal nor a shell takes for more than letters */
	SYSFS_TARGET, /* what a symbolic link points to */
	SYSFS_LINK,   /* the last part of that, if it is plain */
};

/* Reads from the path that the format makes. False, and an empty text, if there is nothing of the kind. */
bool sysfs_read(enum sysfs_reading reading, char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#define sysfs_has(...)		      sysfs_read(SYSFS_EXISTS, NULL, 0, __VA_ARGS__)
#define sysfs_line(text, size, ...)   sysfs_read(SYSFS_LINE, text, size, __VA_ARGS__)
#define sysfs_name(text, size, ...)   sysfs_read(SYSFS_NAME, text, size, __VA_ARGS__)
#define sysfs_target(text, size, ...) sysfs_read(SYSFS_TARGET, text, size, __VA_ARGS__)
#define sysfs_link(name, ...)	      sysfs_read(SYSFS_LINK, name, SYSFS_NAME_SIZE, __VA_ARGS__)

/* Opens a file for reading line by line, or returns NULL. */
FILE *sysfs_open(const char *path);

/* Empty if there is no such folder. Names that are not plain, and what is beyond a bound, are left out. */
struct names sysfs_names(const char *path);
void sysfs_names_free(struct names *names);

/* Replaces what a terminal might take for more than a letter. */
void sysfs_clean_text(char *text);

#endif
