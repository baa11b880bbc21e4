/* SPDX-License-Identifier: BSD-2-Clause */
/* Who holds the UDP port of RoCE v2: in a network namespace only one can, at each address. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "cmd/doctor/doctor.h"

enum {
	ROCE_PORT = 4791,
	HOLDERS_MOST = 8,
	LINES_MOST = 1 << 16,
};

struct holder {
	struct address address;
	uint64_t inode;		       /* of its socket */
	char process[SYSFS_NAME_SIZE]; /* "" if unknown */
};

struct holders {
	struct holder holder[HOLDERS_MOST];
	unsigned count;
};

/* "0100007F", "00000000000000000000000001000000": words in the order of the machine. */
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

/* False if there is no such table: nothing is known then. */
static bool read_table(const char *root, const char *name, struct holders *holders)
{
	char path[SYSFS_PATH_SIZE];
	FILE *table = sysfs_open(sysfs_path(path, "%s/proc/net/%s", root, name));
	char line[SYSFS_PATH_SIZE];

	for (unsigned i = 0; table && i < LINES_MOST && holders->count < HOLDERS_MOST; i++) {
		struct holder *holder = &holders->holder[holders->count];
		char host[33];
		unsigned port;

		if (!fgets(line, sizeof(line), table))
			break;
		/* slot: local remote state queues timer retransmits uid timeout inode */
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

/* Looks at the descriptors of one process, as far as we may. */
static void look_into(const char *root, const char *process, struct holders *holders)
{
	char folder[SYSFS_PATH_SIZE];
	char target[SYSFS_NAME_SIZE];
	char socket[SYSFS_NAME_SIZE];
	struct names descriptors;

	sysfs_path(folder, "%s/proc/%s/fd", root, process);
	descriptors = sysfs_names(folder);
	for (size_t i = 0; i < descriptors.count; i++) {
		sysfs_target(target, sizeof(target), "%s/%s", folder, descriptors.name[i]);
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
			look_into(root, names.name[i], holders);
	sysfs_names_free(&names);
}

/* soft-RoCE binds the any address as soon as its module is loaded, and no process has that socket. */
static bool is_kernel(const char *root, const struct holder *holder)
{
	return !*holder->process && address_is_any(&holder->address) && sysfs_has("%s/sys/module/rdma_rxe", root);
}

static void tell_process(struct findings *findings, const char *root, const struct holder *holder)
{
	char host[ADDRESS_TEXT_SIZE];
	char name[SYSFS_NAME_SIZE];

	address_text(&holder->address, host);
	sysfs_line(name, sizeof(name), "%s/proc/%s/comm", root, holder->process);
	if (*holder->process)
		finding_add(findings, FINDING_OK, "udp", NULL, "%s is held by process %s (%s)", host, holder->process,
			    name);
	else
		finding_add(findings, FINDING_OK, "udp", NULL, "%s is held by a process that we may not look into",
			    host);
}

bool udp_check(struct findings *findings, const char *root, enum finding_status failure)
{
	struct holders holders = { .count = 0 };
	bool loud = failure == FINDING_FAIL;
	bool known = read_table(root, "udp", &holders);

	read_table(root, "udp6", &holders);
	find_processes(root, &holders);
	for (unsigned i = 0; i < holders.count; i++) {
		if (is_kernel(root, &holders.holder[i])) {
			finding_add(findings, loud ? FINDING_FAIL : FINDING_OK, "udp",
				    loud ? "modprobe -r rdma_rxe, or another network namespace" : NULL,
				    "this kernel's soft-RoCE holds UDP port %d, which --transport soft needs too",
				    ROCE_PORT);
			return true;
		}
		tell_process(findings, root, &holders.holder[i]);
	}
	if (known && !holders.count)
		finding_add(findings, FINDING_OK, "udp", NULL, "UDP port %d is free", ROCE_PORT);
	return false;
}
