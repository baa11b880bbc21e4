/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets that hold UDP port 4791 of RoCE v2. In a network namespace only one socket can hold the port at an
 * address.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/doctor/doctor.h"

enum {
	ROCE_PORT = 4791,
	LINES_MAX = 1 << 16,
	FIELD_LOCAL = 1, /* of the lines of /proc/net/udp: sl local_address ... */
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
static bool parse_line(char *line, struct address *address)
{
	char *local = NULL, *rest = line, *port;

	for (unsigned i = 0; i <= FIELD_LOCAL; i++)
		local = strtok_r(NULL, " ", &rest);
	if (!local)
		return false;
	port = local + strcspn(local, ":");
	if (strcmp(port, ":12B7") != 0)
		return false;
	*port = 0;
	return parse_host(local, address);
}

/* Adds the sockets of port 4791 in /proc/net/NAME. Returns false if there is no such file. */
static bool read_socket_table(const char *root, const char *name, struct holders *holders)
{
	char line[SYSFS_PATH_SIZE];
	FILE *table = fopen(sysfs_path(line, "%s/proc/net/%s", root, name), "re");
	struct address address;

	if (!table)
		return false;
	for (unsigned i = 0; i < LINES_MAX && holders->count < HOLDERS_MAX && fgets(line, sizeof(line), table); i++) {
		if (!parse_line(line, &address))
			continue;
		holders->any = holders->any || address_is_any(&address);
		holders->addresses[holders->count++] = address;
	}
	fclose(table);
	return true;
}

void udp_read(const char *root, struct holders *holders)
{
	holders->known = read_socket_table(root, "udp", holders);
	read_socket_table(root, "udp6", holders);
}

/*
 * The kernel's soft-RoCE holds the port at the any address: in older kernels in the namespace of process 1 while its
 * module is loaded, in newer ones in each namespace with a device of it.
 */
bool udp_check(struct doctor *doctor)
{
	const struct holders *holders = &doctor->holders;
	bool soft_fails = doctor->soft_failure == FINDING_FAIL;
	const char *remedy = "";
	struct remedy found;
	char list[4 * ADDRESS_TEXT_SIZE] = "", host[ADDRESS_TEXT_SIZE];
	size_t used = 0;

	if (holders->any && sysfs_has("%s/sys/module/rdma_rxe", doctor->root)) {
		found = remedy_find(PROBLEM_UDP_PORT, doctor->facts, doctor->rxe);
		if (soft_fails)
			remedy = found.text;
		finding_add(doctor, soft_fails ? FINDING_FAIL : FINDING_OK, "udp",
			    "this kernel's soft-RoCE%s holds UDP port %d, which --transport soft needs too\n%s",
			    doctor->rxe ? "" : ", or a process (ss -lunp sport = 4791),", ROCE_PORT, remedy);
		return true;
	}
	for (unsigned i = 0; i < holders->count && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "",
					 address_host(&holders->addresses[i], host));
	if (holders->count)
		finding_add(doctor, FINDING_OK, "udp",
			    "UDP port %d is held at %s (ss -lunp sport = %d names the process)", ROCE_PORT, list,
			    ROCE_PORT);
	else if (holders->known)
		finding_add(doctor, FINDING_OK, "udp", "UDP port %d is free", ROCE_PORT);
	return false;
}
