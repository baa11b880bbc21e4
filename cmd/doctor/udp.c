/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets that hold UDP port 4791 of RoCE v2, and their processes. In a network namespace only one socket can hold
 * the port at an address.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/doctor/doctor.h"

enum {
	ROCE_PORT = 4791,
	HOLDERS_MAX = 8,
	LINES_MAX = 1 << 16,
	/* The fields of /proc/net/udp: sl local remote st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode */
	FIELD_LOCAL = 1,
	FIELD_INODE = 9,
	FIELDS,
};

struct holder {
	struct address address;
	char socket[32];	       /* "socket:[INODE]", as /proc/PID/fd names it */
	char process[SYSFS_TEXT_SIZE]; /* "" if unknown */
};

struct holders {
	struct holder holder[HOLDERS_MAX];
	unsigned count;
};

/* "0100007F" or "00000000000000000000000001000000": 32-bit words in host byte order. */
static bool parse_host(const char *text, struct address *address)
{
	size_t words = strlen(text) / 8;

	if (words != 1 && words != 4)
		return false;
	*address = (struct address){ .family = words == 1 ? ADDRESS_IP4 : ADDRESS_IP6, .port = ROCE_PORT };
	for (size_t i = 0; i < words; i++) {
		char digits[9] = "";
		uint32_t word;

		memcpy(digits, text + 8 * i, 8);
		word = (uint32_t)strtoull(digits, NULL, 16);
		memcpy(address->bytes + 4 * i, &word, sizeof(word));
	}
	return true;
}

/* Returns true if the line is one of a socket of port 4791. */
static bool parse_line(char *line, struct holder *holder)
{
	char *fields[FIELDS], *rest = line, *port;

	for (unsigned i = 0; i < FIELDS; i++) {
		fields[i] = strtok_r(NULL, " ", &rest);
		if (!fields[i])
			return false;
	}
	port = fields[FIELD_LOCAL] + strcspn(fields[FIELD_LOCAL], ":");
	if (strcmp(port, ":12B7") != 0)
		return false;
	*port = 0;
	snprintf(holder->socket, sizeof(holder->socket), "socket:[%s]", fields[FIELD_INODE]);
	return parse_host(fields[FIELD_LOCAL], &holder->address);
}

/* Adds the sockets of port 4791 in /proc/net/NAME. Returns false if there is no such file. */
static bool read_socket_table(const char *root, const char *name, struct holders *holders)
{
	char line[SYSFS_PATH_SIZE];
	FILE *table = fopen(sysfs_path(line, "%s/proc/net/%s", root, name), "re");

	if (!table)
		return false;
	for (unsigned i = 0; i < LINES_MAX && holders->count < HOLDERS_MAX && fgets(line, sizeof(line), table); i++)
		holders->count += parse_line(line, &holders->holder[holders->count]);
	fclose(table);
	return true;
}

/* Sets the process of the sockets among its descriptors, if this user may read them. */
static void check_descriptors(const char *root, const char *process, struct holders *holders)
{
	char directory[SYSFS_PATH_SIZE], target[SYSFS_TEXT_SIZE];
	struct names descriptors = sysfs_names(sysfs_path(directory, "%s/proc/%s/fd", root, process));

	for (int i = 0; i < descriptors.count; i++) {
		sysfs_link(target, "%s/%s", directory, descriptors.entries[i]->d_name);
		for (unsigned j = 0; j < holders->count; j++)
			if (!strcmp(target, holders->holder[j].socket))
				strcpy(holders->holder[j].process, process);
	}
	sysfs_names_free(&descriptors);
}

static void find_processes(const char *root, struct holders *holders)
{
	char path[SYSFS_PATH_SIZE];
	struct names names = sysfs_names(sysfs_path(path, "%s/proc", root));

	for (int i = 0; i < names.count && holders->count; i++)
		if (names.entries[i]->d_name[0] <= '9') /* the other names begin with letters */
			check_descriptors(root, names.entries[i]->d_name, holders);
	sysfs_names_free(&names);
}

/* The soft-RoCE module binds its socket to the any address when it is loaded. No process has that socket. */
static bool is_soft_roce(const char *root, const struct holder *holder)
{
	return !*holder->process && address_is_any(&holder->address) && sysfs_has("%s/sys/module/rdma_rxe", root);
}

static void add_process(struct doctor *doctor, const struct holder *holder)
{
	char host[ADDRESS_TEXT_SIZE];
	char name[SYSFS_TEXT_SIZE];

	address_text(&holder->address, host);
	sysfs_line(name, "%s/proc/%s/comm", doctor->root, holder->process);
	if (*holder->process)
		finding_add(doctor, FINDING_OK, "udp", "%s is held by process %s (%s)", host, holder->process, name);
	else
		finding_add(doctor, FINDING_OK, "udp", "%s is held by a process that this user cannot inspect", host);
}

bool udp_check(struct doctor *doctor)
{
	struct holders holders = { .count = 0 };
	bool fails = doctor->soft_failure == FINDING_FAIL;
	bool known = read_socket_table(doctor->root, "udp", &holders);

	read_socket_table(doctor->root, "udp6", &holders);
	find_processes(doctor->root, &holders);
	for (unsigned i = 0; i < holders.count; i++) {
		if (is_soft_roce(doctor->root, &holders.holder[i])) {
			finding_add(doctor, fails ? FINDING_FAIL : FINDING_OK, "udp",
				    "this kernel's soft-RoCE holds UDP port %d, which --transport soft needs too\n%s",
				    ROCE_PORT, fails ? "modprobe -r rdma_rxe, or use another network namespace" : "");
			return true;
		}
		add_process(doctor, &holders.holder[i]);
	}
	if (known && !holders.count)
		finding_add(doctor, FINDING_OK, "udp", "UDP port %d is free", ROCE_PORT);
	return false;
}
