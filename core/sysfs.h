/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads files of /sys and /proc. Their paths begin with a root directory, which is "" except in tests. Their contents
 * are not trusted: every text is bounded, and control characters are replaced.
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>

#include "core/log.h"

enum {
	SYSFS_PATH_SIZE = 512,
	SYSFS_TEXT_SIZE = 64,
};

/* Formats a path and returns it. A path that does not fit ends in "...": it names no other file. */
#define sysfs_path(path, ...) log_text(path, SYSFS_PATH_SIZE, __VA_ARGS__)

enum sysfs_reading {
	SYSFS_EXISTS = 1,
	SYSFS_LINE, /* the first line of a file */
	SYSFS_NAME, /* the same, if it is a safe name: no characters that a terminal or shell interprets */
	SYSFS_LINK, /* the last component of a symbolic link's target */
};

/* Reads from the formatted path. Returns false and an empty text if the path has no such value. */
bool sysfs_read(enum sysfs_reading reading, char text[SYSFS_TEXT_SIZE], const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define sysfs_has(...)	      sysfs_read(SYSFS_EXISTS, NULL, __VA_ARGS__)
#define sysfs_line(text, ...) sysfs_read(SYSFS_LINE, text, __VA_ARGS__)
#define sysfs_name(text, ...) sysfs_read(SYSFS_NAME, text, __VA_ARGS__)
#define sysfs_link(text, ...) sysfs_read(SYSFS_LINK, text, __VA_ARGS__)

/*
 * Reads a file's lines up to the first one that contains text. line has the file's path, and gets the line. Returns the
 * position of text in it, or NULL.
 */
char *sysfs_find(char line[SYSFS_PATH_SIZE], const char *text);

/* The names in a directory, numbers in them in numeric order: rxe2 before rxe10. Unsafe names are left out. */
struct names {
	struct dirent **entries;
	int count; /* 0 if the directory does not exist */
};

struct names sysfs_names(const char *path);
void sysfs_names_free(struct names *names);
