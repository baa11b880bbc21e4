/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/doctor/sysfs.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	NAMES_FIRST = 16,
	NAMES_MAX = 1 << 16,
};

/* A truncated path could name another file: it becomes "". */
static void __attribute__((format(printf, 2, 0))) format_path(char path[SYSFS_PATH_SIZE], const char *format,
							      va_list list)
{
	if (vsnprintf(path, SYSFS_PATH_SIZE, format, list) >= SYSFS_PATH_SIZE)
		*path = 0;
}

const char *sysfs_path(char path[SYSFS_PATH_SIZE], const char *format, ...)
{
	va_list list;

	va_start(list, format);
	format_path(path, format, list);
	va_end(list);
	return path;
}

void sysfs_clean_text(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

/* The kernel's own names are safe. */
static bool is_safe_name(const char *name)
{
	if (!*name || *name == '.' || strlen(name) >= SYSFS_NAME_SIZE)
		return false;
	while (isascii(*name) && (isalnum(*name) || (*name && strchr("_-.:@+", *name))))
		name++;
	return !*name;
}

static void sysfs_read_line(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, size - 1);
	size_t blanks;

	if (fd >= 0)
		close(fd);
	text[length > 0 ? length : 0] = 0;
	text[strcspn(text, "\n")] = 0;
	blanks = strspn(text, " \t");
	memmove(text, text + blanks, strlen(text + blanks) + 1);
	for (blanks = strlen(text); blanks && strchr(" \t", text[blanks - 1]); blanks--)
		text[blanks - 1] = 0;
	sysfs_clean_text(text);
}

static void read_link(const char *path, char *text, size_t size)
{
	ssize_t length = readlink(path, text, size - 1);

	text[length > 0 ? length : 0] = 0;
}

static void keep_last_component(char *text)
{
	const char *slash = strrchr(text, '/');

	if (slash)
		memmove(text, slash + 1, strlen(slash + 1) + 1);
}

bool sysfs_read(enum sysfs_reading reading, char *text, size_t size, const char *format, ...)
{
	char path[SYSFS_PATH_SIZE];
	char target[SYSFS_PATH_SIZE];
	va_list list;

	va_start(list, format);
	format_path(path, format, list);
	va_end(list);
	switch (reading) {
	case SYSFS_EXISTS:
		return !access(path, F_OK);
	case SYSFS_LINE:
	case SYSFS_NAME:
		sysfs_read_line(path, text, size);
		break;
	case SYSFS_TARGET:
		read_link(path, text, size);
		break;
	case SYSFS_LINK:
		read_link(path, target, sizeof(target));
		keep_last_component(target);
		snprintf(text, size, "%.*s", (int)size - 1, target);
		break;
	}
	if ((reading == SYSFS_NAME || reading == SYSFS_LINK) && !is_safe_name(text))
		*text = 0;
	return *text;
}

FILE *sysfs_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

	if (fd >= 0 && !file)
		close(fd);
	return file;
}

/* Returns true if there is space for one more name. */
static bool make_room(struct names *names)
{
	size_t size = names->count ? 2 * names->count : NAMES_FIRST;
	void *larger;

	if (names->count >= NAMES_MAX)
		return false;
	/* The array is full if count is a power of two from NAMES_FIRST on. */
	if (names->count && (names->count < NAMES_FIRST || names->count & (names->count - 1)))
		return true;
	larger = realloc(names->name, size * sizeof(*names->name));
	if (larger)
		names->name = larger;
	return larger;
}

static int compare_names(const void *one, const void *other)
{
	return strverscmp(one, other);
}

struct names sysfs_names(const char *path)
{
	struct names names = { NULL, 0 };
	DIR *directory = opendir(path);
	struct dirent *entry;

	if (!directory)
		return names;
	while ((entry = readdir(directory)))
		if (is_safe_name(entry->d_name)) {
			if (!make_room(&names))
				break;
			strcpy(names.name[names.count++], entry->d_name);
		}
	closedir(directory);
	if (names.count)
		qsort(names.name, names.count, sizeof(*names.name), compare_names);
	return names;
}

void sysfs_names_free(struct names *names)
{
	free(names->name);
}
