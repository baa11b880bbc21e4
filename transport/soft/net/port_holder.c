/* SPDX-License-Identifier: BSD-2-Clause */
/* Which process holds UDP port 4791 of an address: the kernel's table names sockets, and a process's descriptors do. */
#include "transport/soft/net/port_holder.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "socket:[NUMBER]" of what is bound to that address; false if the table has none. */
static bool find_socket(const struct address *address, char name[32])
{
	bool four = address->family == ADDRESS_IP4;
	FILE *table = fopen(four ? "/proc/net/udp" : "/proc/net/udp6", "re");
	char line[256], bound[48] = " ";
	bool found = false;

	if (!table)
		return false;
	for (size_t at = 0; at < (four ? 4 : 16); at += 4) {
		uint32_t word; /* in the order of the machine */

		memcpy(&word, address->bytes + at, sizeof(word));
		snprintf(bound + 1 + 2 * at, 9, "%08" PRIX32, word);
	}
	strcat(bound, ":12B7 ");
	while (!found && fgets(line, sizeof(line), table)) {
		const char *rest = strstr(line, bound);
		uint64_t number;

		/* local remote state queues timer retransmits uid timeout inode */
		if (rest && sscanf(rest, "%*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64, &number) == 1) {
			snprintf(name, 32, "socket:[%" PRIu64 "]", number);
			found = true;
		}
	}
	fclose(table);
	return found;
}

static bool has_descriptor(const char *process, const char *name)
{
	char path[64], target[32];
	struct dirent *entry;
	bool found = false;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%.20s/fd", process);
	folder = opendir(path);
	while (folder && !found && (entry = readdir(folder))) {
		ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);

		target[length > 0 ? length : 0] = '\0';
		found = !strcmp(target, name);
	}
	if (folder)
		closedir(folder);
	return found;
}

int soft_port_holder(const struct address *address)
{
	char name[32];
	DIR *folder = find_socket(address, name) ? opendir("/proc") : NULL;
	struct dirent *entry;
	int process = 0;

	while (folder && !process && (entry = readdir(folder)))
		if (entry->d_name[0] > '0' && entry->d_name[0] <= '9' && has_descriptor(entry->d_name, name))
			process = atoi(entry->d_name);
	if (folder)
		closedir(folder);
	return process;
}
