/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/doctor/machine.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	NAMES_FIRST = 16,
	NAMES_MOST = 1 << 16,
};

const char *machine_path(char path[MACHINE_PATH_SIZE], const char *root, const char *format, ...)
{
	int used = snprintf(path, MACHINE_PATH_SIZE, "%s/", root);
	int more;
	va_list list;

	va_start(list, format);
	more = vsnprintf(path + used, (size_t)(MACHINE_PATH_SIZE - used), format, list);
	va_end(list);
	if (more >= MACHINE_PATH_SIZE - used)
		path[0] = 0;
	return path;
}

bool machine_has(const char *path)
{
	return !access(path, F_OK);
}

void machine_clean_text(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

/* What neither a terminal nor a shell takes for more than a name. The kernel's own names are like that. */
static bool is_plain(const char *name)
{
	if (!*name || *name == '.' || strlen(name) >= MACHINE_NAME_SIZE)
		return false;
	while (isascii(*name) && (isalnum(*name) || (*name && strchr("_-.:@+", *name))))
		name++;
	return !*name;
}

bool machine_line(const char *path, char *text, size_t size)
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
	machine_clean_text(text);
	return *text;
}

bool machine_name(const char *path, char *name, size_t size)
{
	if (machine_line(path, name, size) && !is_plain(name))
		*name = 0;
	return *name;
}

bool machine_target(const char *path, char *text, size_t size)
{
	ssize_t length = readlink(path, text, size - 1);

	text[length > 0 ? length : 0] = 0;
	return *text;
}

bool machine_link(const char *path, char name[MACHINE_NAME_SIZE])
{
	char target[MACHINE_PATH_SIZE];
	const char *last;

	machine_target(path, target, sizeof(target));
	last = strrchr(target, '/');
	last = last ? last + 1 : target;
	*name = 0;
	if (is_plain(last))
		strcpy(name, last);
	return *name;
}

FILE *machine_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

	if (fd >= 0 && !file)
		close(fd);
	return file;
}

/* True if there is room for one more. */
static bool make_room(struct names *names)
{
	size_t size = names->count ? 2 * names->count : NAMES_FIRST;
	void *larger;

	if (names->count >= NAMES_MOST)
		return false;
	/* Full only at the powers of two from the first size on. */
	if (names->count && (names->count < NAMES_FIRST || names->count & (names->count - 1)))
		return true;
	larger = realloc(names->name, size * sizeof(*names->name));
	if (larger)
		names->name = larger;
	return larger;
}

static int by_count(const void *one, const void *other)
{
	return strverscmp(one, other);
}

struct names machine_names(const char *path)
{
	struct names names = { NULL, 0 };
	DIR *folder = opendir(path);
	struct dirent *entry;

	if (!folder)
		return names;
	while ((entry = readdir(folder)))
		if (is_plain(entry->d_name)) {
			if (!make_room(&names))
				break;
			strcpy(names.name[names.count++], entry->d_name);
		}
	closedir(folder);
	if (names.count)
		qsort(names.name, names.count, sizeof(*names.name), by_count);
	return names;
}

void machine_names_free(struct names *names)
{
	free(names->name);
}
