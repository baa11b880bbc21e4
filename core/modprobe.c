/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/modprobe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/sysfs.h"

enum {
	NAMES_SIZE = 256
};

/* A file hides those of its name in later folders. */
static const char folders[][26] = { "/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d",
				    "/usr/lib/modprobe.d", "/lib/modprobe.d" };

void modprobe_name(char *module)
{
	for (char *dash = module; (dash = strchr(dash, '-'));)
		*dash = '_';
}

/* modules: each between blanks. An install line may load the module after something else. */
static bool keeps_out(const char *line, const char *modules)
{
	char word[SYSFS_TEXT_SIZE], name[SYSFS_TEXT_SIZE] = " ";

	if (sscanf(line, " %63s %61s", word, name + 1) != 2)
		return false;
	modprobe_name(name);
	return strstr(modules, strcat(name, " ")) &&
	       (!strcmp(word, "blacklist") ||
		(!strcmp(word, "install") && !strstr(line, "modprobe") && !strstr(line, "insmod")));
}

static void read_rules(const char *root, const char *file, const char *modules, char text[MODPROBE_LINES_SIZE])
{
	char path[SYSFS_PATH_SIZE], *line = NULL;
	FILE *stream = fopen(sysfs_path(path, "%s%s", root, file), "re");
	size_t size = 0;

	for (unsigned number = 1; stream && getline(&line, &size, stream) > 0; number++) {
		line[strcspn(line, "\n")] = '\0';
		if (keeps_out(line, modules))
			log_add(text, MODPROBE_LINES_SIZE, ", ", "%s:%u (%s)", file, number, line);
	}
	free(line);
	if (stream)
		fclose(stream);
}

static bool is_hidden(const char *root, size_t folder, const char *file)
{
	bool hidden = false;

	for (size_t i = 0; i < folder; i++)
		hidden |= sysfs_has("%s%s/%s", root, folders[i], file);
	return hidden;
}

void modprobe_lines(const char *root, const char *modules, char text[MODPROBE_LINES_SIZE])
{
	char list[NAMES_SIZE], path[SYSFS_PATH_SIZE];

	*text = '\0';
	modprobe_name(log_text(list, sizeof(list), " %s ", modules));
	for (size_t folder = 0; folder < sizeof(folders) / sizeof(folders[0]); folder++) {
		struct names names = sysfs_names(sysfs_path(path, "%s%s", root, folders[folder]));

		for (int i = 0; i < names.count; i++) {
			const char *file = names.entries[i]->d_name, *end = strrchr(file, '.');

			if (end && !strcmp(end, ".conf") && !is_hidden(root, folder, file))
				read_rules(root, sysfs_path(path, "%s/%s", folders[folder], file), list, text);
		}
		sysfs_names_free(&names);
	}
}
