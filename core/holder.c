/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/holder.h"

#include <stdio.h>

#include "core/sysfs.h"

/* The link text of a descriptor of the socket; "" for none. /proc has the address as words in host order. */
static void find_socket(const struct address *address, char link[SYSFS_TEXT_SIZE])
{
	const size_t count = address->family == ADDRESS_IP4 ? 1 : 4;
	char line[SYSFS_PATH_SIZE], text[64] = " ", *found;
	uint32_t words[4];
	unsigned long inode;

	memcpy(words, address->bytes, sizeof(words));
	for (size_t i = 0; i < count; i++)
		log_add(text, sizeof(text), "", "%08X", words[i]);
	log_add(text, sizeof(text), ":", "%04X ", address->port);
	found = sysfs_find(sysfs_path(line, "/proc/self/net/udp%s", count == 1 ? "" : "6"), text);
	*link = '\0';
	if (found && sscanf(found, "%*s %*s %*s %*s %*s %*s %*s %*s %lu", &inode) == 1)
		log_text(link, SYSFS_TEXT_SIZE, "socket:[%lu]", inode);
}

static bool process_has(const char *process, const char *link)
{
	char path[SYSFS_PATH_SIZE], target[SYSFS_TEXT_SIZE];
	struct names names = sysfs_names(sysfs_path(path, "/proc/%s/fd", process));
	bool found = false;

	for (int i = 0; i < names.count && !found; i++)
		found = sysfs_link(target, "/proc/%s/fd/%s", process, names.entries[i]->d_name) &&
			!strcmp(target, link);
	sysfs_names_free(&names);
	return found;
}

void holder_find(struct holder *holder, const struct address *address)
{
	char link[SYSFS_TEXT_SIZE], command[SYSFS_TEXT_SIZE], own[SYSFS_TEXT_SIZE], other[SYSFS_TEXT_SIZE];
	struct names processes;

	if (address_same_host(&holder->address, address))
		return;
	*holder = (struct holder){ .address = *address };
	find_socket(address, link);
	processes = *link ? sysfs_names("/proc") : (struct names){ .count = 0 };
	for (int i = 0; i < processes.count && !*holder->text; i++) {
		const char *process = processes.entries[i]->d_name;

		if (!process_has(process, link))
			continue;
		sysfs_line(command, "/proc/%s/comm", process);
		log_text(holder->text, sizeof(holder->text), "PID %s (%s)", process, command);
		holder->is_own = sysfs_link(own, "/proc/self/exe") && sysfs_link(other, "/proc/%s/exe", process) &&
				 !strncmp(own, other, strlen(own));
	}
	sysfs_names_free(&processes);
}
