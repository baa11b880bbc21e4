/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads files of /sys and /proc. Their paths begin with a root directory, which is "" except in tests. Their contents
 * are not trusted: every read and every list is bounded, and control characters are replaced.
 */
#ifndef CMD_DOCTOR_SYSFS_H
#define CMD_DOCTOR_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum {
	SYSFS_PATH_SIZE = 512,
	SYSFS_NAME_SIZE = 64,
	SYSFS_VALUE_SIZE = 32,
};

/* The names in a directory, numbers in them in numeric order: rxe2 before rxe10. */
struct names {
	char (*name)[SYSFS_NAME_SIZE];
	size_t count;
};

/* Formats a path and returns it. A path that does not fit becomes "", which does not exist. */
const char *sysfs_path(char path[SYSFS_PATH_SIZE], const char *format, ...) __attribute__((format(printf, 2, 3)));

enum sysfs_reading {
	SYSFS_EXISTS = 1,
	SYSFS_LINE,   /* the first line of a file, without leading and trailing blanks */
	SYSFS_NAME,   /* the same, if it is a safe name: without characters that a terminal or a shell interprets */
	SYSFS_TARGET, /* the target of a symbolic link, as it is */
	SYSFS_LINK,   /* the last component of the target, if it is a safe name */
};

/* Reads from the formatted path. Returns false and an empty text if the path has no such value. */
bool sysfs_read(enum sysfs_reading reading, char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#define sysfs_has(...)		      sysfs_read(SYSFS_EXISTS, NULL, 0, __VA_ARGS__)
#define sysfs_line(text, size, ...)   sysfs_read(SYSFS_LINE, text, size, __VA_ARGS__)
#define sysfs_name(text, size, ...)   sysfs_read(SYSFS_NAME, text, size, __VA_ARGS__)
#define sysfs_target(text, size, ...) sysfs_read(SYSFS_TARGET, text, size, __VA_ARGS__)
#define sysfs_link(name, ...)	      sysfs_read(SYSFS_LINK, name, SYSFS_NAME_SIZE, __VA_ARGS__)

/* Opens a file for fgets(), or returns NULL. */
FILE *sysfs_open(const char *path);

/* Empty if the directory does not exist. Leaves out names that are not safe, and those beyond 65,536. */
struct names sysfs_names(const char *path);
void sysfs_names_free(struct names *names);

/* Replaces all bytes but printable ASCII, because a terminal may interpret them. */
void sysfs_clean_text(char *text);

#endif
