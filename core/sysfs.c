/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/sysfs.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	LINES_MAX = 1 << 16
};

/* Bytes that are not printable ASCII: a terminal may interpret them. */
static void clean_text(char *text)
{
	for (; *text; text++)
		if (*text != '\n' && (*text < ' ' || *text > '~'))
			*text = '?';
}

/* Rejects anything the kernel would not use as a name. */
static bool is_safe_name(const char *name)
{
	size_t length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:@+");

	return length && length < SYSFS_TEXT_SIZE && !name[length] && *name != '.';
}

static ssize_t read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return -1;
	length = read(fd, text, size);
	close(fd);
	return length;
}

bool sysfs_read(enum sysfs_reading reading, char text[SYSFS_TEXT_SIZE], const char *format, ...)
{
	char path[SYSFS_PATH_SIZE], content[SYSFS_PATH_SIZE];
	const char *slash = NULL;
	ssize_t length;
	va_list list;

	va_start(list, format);
	log_text_list(path, sizeof(path), format, list);
	va_end(list);
	if (reading == SYSFS_EXISTS)
		return !access(path, F_OK);
	if (reading == SYSFS_LINK)
		length = readlink(path, content, sizeof(content) - 1);
	else
		length = read_file(path, content, sizeof(content) - 1);
	content[length > 0 ? length : 0] = 0;
	content[strcspn(content, "\n")] = 0;
	if (reading == SYSFS_LINK)
		slash = strrchr(content, '/');
	log_text(text, SYSFS_TEXT_SIZE, "%s", slash ? slash + 1 : content);
	clean_text(text);
	if (reading == SYSFS_NAME && !is_safe_name(text))
		*text = 0;
	return *text;
}

char *sysfs_find(char line[SYSFS_PATH_SIZE], const char *text)
{
	FILE *file = fopen(line, "re");
	char *found = NULL;

	if (!file)
		return NULL;
	for (unsigned i = 0; i < LINES_MAX && !found && fgets(line, SYSFS_PATH_SIZE, file); i++)
		found = strstr(line, text);
	fclose(file);
	return found;
}

static int is_safe_entry(const struct dirent *entry)
{
	return is_safe_name(entry->d_name);
}

struct names sysfs_names(const char *path)
{
	struct names names;

	names.count = scandir(path, &names.entries, is_safe_entry, versionsort);
	if (names.count < 0)
		names = (struct names){ .count = 0 };
	return names;
}

void sysfs_names_free(struct names *names)
{
	for (int i = 0; i < names->count; i++)
		free(names->entries[i]);
	free(names->entries);
}
