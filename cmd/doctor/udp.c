/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets that hold UDP port 4791 of RoCE v2, and their processes. In a network namespace only one socket can hold
 * the port at an address.
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "cmd/doctor/doctor.h"

enum {
	ROCE_PORT = 4791,
	HOLDERS_MAX = 8,
	LINES_MAX = 1 << 16,
};

struct holder {
	struct address address;
	uint64_t inode;		       /* of the socket */
	char process[SYSFS_NAME_SIZE]; /* "" if unknown */
};

struct holders {
	struct holder holder[HOLDERS_MAX];
	unsigned count;
};

/* "0100007F" or "00000000000000000000000001000000": 32-bit words in host byte order. */
static bool parse_host(const char *text, struct address *address)
{
	size_t words = strlen(text) / 8;

	*address = (struct address){ .family = words == 1 ? ADDRESS_IP4 : ADDRESS_IP6, .port = ROCE_PORT };
	if (words != 1 && words != 4)
		return false;
	for (size_t i = 0; i < words; i++) {
		uint32_t word;

		if (sscanf(text + 8 * i, "%8" SCNx32, &word) != 1)
			return false;
		memcpy(address->bytes + 4 * i, &word, sizeof(word));
	}
	return true;
}

/* Adds the sockets of port 4791 in /proc/net/NAME. Returns false if there is no such file. */
static bool read_socket_table(const char *root, const char *name, struct holders *holders)
{
	char path[SYSFS_PATH_SIZE];
	FILE *table = sysfs_open(sysfs_path(path, "%s/proc/net/%s", root, name));
	char line[SYSFS_PATH_SIZE];

	for (unsigned i = 0; table && i < LINES_MAX && holders->count < HOLDERS_MAX; i++) {
		struct holder *holder = &holders->holder[holders->count];
		char host[33];
		unsigned port;

		if (!fgets(line, sizeof(line), table))
			break;
		/* sl: local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode */
		if (sscanf(line, " %*u: %32[0-9A-Fa-f]:%4x %*s %*s %*s %*s %*s %*s %*s %" SCNu64, host, &port,
			   &holder->inode) != 3)
			continue;
		if (port == ROCE_PORT && parse_host(host, &holder->address))
			holders->count++;
	}
	if (table)
		fclose(table);
	return table;
}

/* Sets the process of the sockets among its descriptors, if this user may read them. */
static void check_descriptors(const char *root, const char *process, struct holders *holders)
{
	char directory[SYSFS_PATH_SIZE];
	char target[SYSFS_NAME_SIZE];
	char socket[SYSFS_NAME_SIZE];
	struct names descriptors;

	sysfs_path(directory, "%s/proc/%s/fd", root, process);
	descriptors = sysfs_names(directory);
	for (size_t i = 0; i < descriptors.count; i++) {
		sysfs_target(target, sizeof(target), "%s/%s", directory, descriptors.name[i]);
		for (unsigned j = 0; j < holders->count; j++) {
			struct holder *holder = &holders->holder[j];

			snprintf(socket, sizeof(socket), "socket:[%" PRIu64 "]", holder->inode);
			if (!strcmp(target, socket))
				strcpy(holder->process, process);
		}
	}
	sysfs_names_free(&descriptors);
}

static void find_processes(const char *root, struct holders *holders)
{
	char path[SYSFS_PATH_SIZE];
	struct names names = sysfs_names(sysfs_path(path, "%s/proc", root));

	for (size_t i = 0; i < names.count && holders->count; i++)
		if (isdigit((unsigned char)names.name[i][0]))
			check_descriptors(root, names.name[i], holders);
	sysfs_names_free(&names);
}

/* The soft-RoCE module binds its socket to the any address when it is loaded. No process has that socket. */
static bool is_soft_roce(const char *root, const struct holder *holder)
{
	return !*holder->process && address_is_any(&holder->address) && sysfs_has("%s/sys/module/rdma_rxe", root);
}

static void add_process(struct findings *findings, const char *root, const struct holder *holder)
{
	char host[ADDRESS_TEXT_SIZE];
	char name[SYSFS_NAME_SIZE];

	address_text(&holder->address, host);
	sysfs_line(name, sizeof(name), "%s/proc/%s/comm", root, holder->process);
	if (*holder->process)
		finding_add(findings, FINDING_OK, "udp", NULL, "%s is held by process %s (%s)", host, holder->process,
			    name);
	else
		finding_add(findings, FINDING_OK, "udp", NULL, "%s is held by a process that this user cannot inspect",
			    host);
}

bool udp_check(struct findings *findings, const char *root, enum finding_status failure)
{
	struct holders holders = { .count = 0 };
	bool fails = failure == FINDING_FAIL;
	bool known = read_socket_table(root, "udp", &holders);

	read_socket_table(root, "udp6", &holders);
	find_processes(root, &holders);
	for (unsigned i = 0; i < holders.count; i++) {
		if (is_soft_roce(root, &holders.holder[i])) {
			finding_add(findings, fails ? FINDING_FAIL : FINDING_OK, "udp",
				    fails ? "modprobe -r rdma_rxe, or use another network namespace" : NULL,
				    "this kernel's soft-RoCE holds UDP port %d, which --transport soft needs too",
				    ROCE_PORT);
			return true;
		}
		add_process(findings, root, &holders.holder[i]);
	}
	if (known && !holders.count)
		finding_add(findings, FINDING_OK, "udp", NULL, "UDP port %d is free", ROCE_PORT);
	return false;
}
