/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/name_cause.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/address.h"
#include "core/sysfs.h"

#define BLANKS	 " \t\r\n"
#define HOSTS	 "/etc/hosts"
#define NSSWITCH "/etc/nsswitch.conf"

enum {
	LINE_SIZE = 1024
};

static FILE *open_file(const char *root, const char *name)
{
	char path[SYSFS_PATH_SIZE];

	return fopen(sysfs_path(path, "%s%s", root, name), "re");
}

/* Whether the line has that word before any comment. Overwrites the line. */
static bool has_word(char *line, const char *wanted)
{
	char *word;

	line[strcspn(line, "#")] = '\0';
	while ((word = strsep(&line, BLANKS)))
		if (!strcasecmp(word, wanted))
			return true;
	return false;
}

/* Gets the address of the name in /etc/hosts. */
static bool find_host(FILE *file, const char *name, char host[ADDRESS_TEXT_SIZE])
{
	char line[LINE_SIZE], *names;
	struct address address;

	while (fgets(line, sizeof(line), file)) {
		names = line;
		if (address_parse(strsep(&names, BLANKS), ADDRESS_FORMAT_IP, &address) && names &&
		    has_word(names, name)) {
			address_host(&address, host);
			return true;
		}
	}
	return false;
}

/* Without such a line, or such a file, the C library reads /etc/hosts. */
static bool leaves_hosts_out(const char *root)
{
	static const char database[] = "hosts:";
	FILE *file = open_file(root, NSSWITCH);
	char line[LINE_SIZE];
	bool found = false, has_files = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		char *start = line + strspn(line, BLANKS);

		found = !strncmp(start, database, strlen(database));
		has_files = found && has_word(start + strlen(database), "files");
	}
	if (file)
		fclose(file);
	return found && !has_files;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), wanted = strlen(end);

	return length > wanted && !strcasecmp(text + length - wanted, end);
}

/* Pods have the variable, and use the cluster's name server. */
static bool is_of_cluster(const char *name)
{
	return !getenv("KUBERNETES_SERVICE_HOST") &&
	       (strstr(name, ".svc.") || ends_with(name, ".svc") || ends_with(name, ".cluster.local"));
}

bool name_cause(const char *root, const char *name, char text[NAME_CAUSE_SIZE])
{
	FILE *file = open_file(root, HOSTS);
	char host[ADDRESS_TEXT_SIZE];

	*text = '\0';
	if (file && find_host(file, name, host) && leaves_hosts_out(root))
		log_text(text, NAME_CAUSE_SIZE,
			 HOSTS " has it, as %s, but the hosts line of " NSSWITCH " lacks the word files", host);
	else if (!file && errno == EACCES)
		log_text(text, NAME_CAUSE_SIZE, "this user may not read " HOSTS ": chmod 644 " HOSTS);
	else if (is_of_cluster(name))
		log_text(text, NAME_CAUSE_SIZE, "a name of a Kubernetes cluster: known in its pods only");
	if (file)
		fclose(file);
	return *text;
}
