/* SPDX-License-Identifier: BSD-2-Clause */
/* /proc/net/udp gives the inode of the socket; /proc/PID/fd links to the inodes of a process's sockets. */
#include "transport/soft/net/port_owner.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Sets name to "socket:[INODE]" of the socket bound to address. Returns false if there is none. */
static bool port_owner_find_socket(const struct address *address, char name[32])
{
	bool ip4 = address->family == ADDRESS_IP4;
	FILE *table = fopen(ip4 ? "/proc/net/udp" : "/proc/net/udp6", "re");
	char line[256], pattern[48] = " ";
	bool found = false;

	if (!table)
		return false;
	for (size_t at = 0; at < (ip4 ? 4 : 16); at += 4) {
		uint32_t word; /* the kernel prints addresses as words in host byte order */

		memcpy(&word, address->bytes + at, sizeof(word));
		snprintf(pattern + 1 + 2 * at, 9, "%08" PRIX32, word);
	}
	strcat(pattern, ":12B7 ");
	while (!found && fgets(line, sizeof(line), table)) {
		const char *rest = strstr(line, pattern);
		uint64_t inode;

		/* local remote state queues timer retransmits uid timeout inode */
		if (rest && sscanf(rest, "%*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64, &inode) == 1) {
			snprintf(name, 32, "socket:[%" PRIu64 "]", inode);
			found = true;
		}
	}
	fclose(table);
	return found;
}

static bool port_owner_has_descriptor(const char *process, const char *name)
{
	char path[64], target[32];
	struct dirent *entry;
	bool found = false;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%.20s/fd", process);
	directory = opendir(path);
	while (directory && !found && (entry = readdir(directory))) {
		ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1);

		target[length > 0 ? length : 0] = '\0';
		found = !strcmp(target, name);
	}
	if (directory)
		closedir(directory);
	return found;
}

int soft_port_owner(const struct address *address)
{
	char name[32];
	DIR *directory = port_owner_find_socket(address, name) ? opendir("/proc") : NULL;
	struct dirent *entry;
	int pid = 0;

	while (directory && !pid && (entry = readdir(directory)))
		if (entry->d_name[0] > '0' && entry->d_name[0] <= '9' && port_owner_has_descriptor(entry->d_name, name))
			pid = atoi(entry->d_name);
	if (directory)
		closedir(directory);
	return pid;
}
