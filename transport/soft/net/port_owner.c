/* SPDX-License-Identifier: BSD-2-Clause */
/* /proc/net/udp gives the inode of the socket; /proc/PID/fd links to the inodes of a process's sockets. */
#include "transport/soft/net/port_owner.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of a line from the local address on: remote address, state, queues, timer, retransmits, user, time-out, inode. */
static const char *find_inode(const char *text)
{
	for (unsigned field = 0; field < 8; field++) {
		text += strspn(text, " ");
		text += strcspn(text, " ");
	}
	return text + strspn(text, " ");
}

bool soft_port_socket(const struct address *address, char name[PORT_OWNER_NAME_SIZE])
{
	bool ip4 = address->family == ADDRESS_IP4;
	FILE *table = fopen(ip4 ? "/proc/net/udp" : "/proc/net/udp6", "re");
	char line[256], pattern[48] = " ";
	const char *found = NULL;

	if (!table)
		return false;
	for (size_t at = 0; at < (ip4 ? 4 : 16); at += 4) {
		uint32_t word; /* the kernel prints addresses as words in host byte order */

		memcpy(&word, address->bytes + at, sizeof(word));
		snprintf(pattern + 1 + 2 * at, 9, "%08" PRIX32, word);
	}
	strcpy(pattern + strlen(pattern), ":12B7 ");
	while (!found && fgets(line, sizeof(line), table)) {
		const char *local = strchr(line, ':'); /* the header has none */

		if (local && !strncmp(local + 1, pattern, strlen(pattern)))
			found = local + 1;
	}
	fclose(table);
	if (found) {
		found = find_inode(found);
		snprintf(name, PORT_OWNER_NAME_SIZE, "socket:[%.*s]", (int)strcspn(found, " "), found);
	}
	return found;
}

static bool port_owner_has_descriptor(const char *process, const char *name)
{
	char path[64], target[PORT_OWNER_NAME_SIZE];
	struct dirent *entry;
	bool found = false;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%.20s/fd", process);
	directory = opendir(path);
	while (directory && !found && (entry = readdir(directory))) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/%.20s/fd/%.20s", process, entry->d_name);
		length = readlink(path, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = '\0';
		found = !strcmp(target, name);
	}
	if (directory)
		closedir(directory);
	return found;
}

int soft_port_owner(const struct address *address)
{
	char name[PORT_OWNER_NAME_SIZE];
	DIR *directory = soft_port_socket(address, name) ? opendir("/proc") : NULL;
	struct dirent *entry;
	int pid = 0;

	while (directory && !pid && (entry = readdir(directory)))
		if (entry->d_name[0] > '0' && entry->d_name[0] <= '9' && port_owner_has_descriptor(entry->d_name, name))
			pid = (int)strtoull(entry->d_name, NULL, 10);
	if (directory)
		closedir(directory);
	return pid;
}
