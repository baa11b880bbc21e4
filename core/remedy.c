/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/remedy.h"

#include <linux/capability.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/privileges.h"

#define CHECK_CABLE    "check cable and switch"
#define ADD_ADDRESS    "ip address add ADDRESS/BITS dev @"
#define IN_NAMESPACE   ": its interface @ is in another network namespace"
#define IS_DOWN	       ": its interface @ is down"
#define HAS_NO_ADDRESS ": its interface @ has no address"

struct row {
	enum problem problem;
	unsigned needs, lacks; /* enum fact */
	const char *cause;     /* follows the text of the finding */
	const char *remedy;
	bool host; /* the remedy is for the host of a container */
};

/* The first row of a problem whose facts fit applies. */
/* clang-format off */
static const struct row rows[] = {
	{ PROBLEM_FILE, FACT_MISSING | FACT_CONTAINER, 0, NULL, "start the container with the device @" },
	{ PROBLEM_FILE, FACT_MISSING | FACT_NUMBER, 0, NULL, "as root: mkdir -p /dev/infiniband; mknod -m 666 @ c #" },
	{ PROBLEM_FILE, FACT_STALE | FACT_CONTAINER, 0, NULL, "start the container again with the device @" },
	{ PROBLEM_FILE, FACT_STALE | FACT_NUMBER, 0, NULL, "as root: rm @; mknod -m 666 @ c #" },
	{ PROBLEM_FILE, FACT_REFUSED | FACT_CONTAINER, 0, NULL, "start the container with the device @" },
	{ PROBLEM_FILE, FACT_REFUSED, 0, NULL, "allow it in the unit of the service: DeviceAllow=@ rw" },
	{ PROBLEM_FILE, FACT_NODEV | FACT_CONTAINER, 0, NULL, "start the container with the device @" },
	{ PROBLEM_FILE, FACT_FOREIGN, 0, NULL, "on the host: chmod a+rw @" },
	{ PROBLEM_FILE, FACT_FORBIDDEN, FACT_ROOT, NULL, "run as root, or give this user the right: chmod a+rw @" },

	{ PROBLEM_MODULES, 0, 0, NULL, "modprobe -a @", .host = true },
	{ PROBLEM_MEMORY, FACT_MAY_RAISE, 0, NULL, "ulimit -l unlimited" },
	{ PROBLEM_MEMORY, FACT_CONTAINER, 0, NULL, "start the container with --ulimit memlock=-1" },
	{ PROBLEM_MEMORY, FACT_ROOT, 0, NULL, "ulimit -l unlimited" },
	{ PROBLEM_MEMORY, 0, 0, NULL, "raise memlock in /etc/security/limits.conf (systemd: LimitMEMLOCK=infinity)" },

#if COMMAND_doctor
	{ PROBLEM_ADDRESS, FACT_NO_CM, 0, ": its driver does not support the RDMA connection manager" },
	{ PROBLEM_ADDRESS, 0, FACT_NAMED },
	{ PROBLEM_ADDRESS, FACT_NAMESAKE, 0, IN_NAMESPACE ", where another one has that name" },
	{ PROBLEM_ADDRESS, FACT_CONTAINER, FACT_HERE | FACT_USABLE, IN_NAMESPACE,
	  "start the container with --network host" },
	{ PROBLEM_ADDRESS, 0, FACT_HERE, IN_NAMESPACE },
	{ PROBLEM_ADDRESS, FACT_TUNNEL, 0, ": its interface @ has no link-layer address" },
	{ PROBLEM_ADDRESS, FACT_VRF, 0, ": its interface @ belongs to a VRF" },
	{ PROBLEM_ADDRESS, FACT_ADMIN, FACT_UP | FACT_ADDRESS, IS_DOWN " and has no address",
	  "ip link set @ up; " ADD_ADDRESS },
	{ PROBLEM_ADDRESS, FACT_ADMIN, FACT_UP, IS_DOWN, "ip link set @ up" },
	{ PROBLEM_ADDRESS, 0, FACT_UP, IS_DOWN },
	{ PROBLEM_ADDRESS, 0, FACT_LINK, ": its interface @ has no link", CHECK_CABLE },
	{ PROBLEM_ADDRESS, FACT_ADMIN, FACT_ADDRESS, HAS_NO_ADDRESS, ADD_ADDRESS },
	{ PROBLEM_ADDRESS, 0, FACT_ADDRESS, HAS_NO_ADDRESS },

	{ PROBLEM_PORT, FACT_INFINIBAND | FACT_INIT, 0, NULL, "start a subnet manager: opensm" },
	{ PROBLEM_PORT, FACT_INFINIBAND, 0, NULL, CHECK_CABLE },
	{ PROBLEM_PORT, FACT_HERE | FACT_ADMIN, FACT_UP, NULL, "ip link set @ up" },
	{ PROBLEM_PORT, FACT_HERE | FACT_UP, FACT_LINK | FACT_TUNNEL, NULL, CHECK_CABLE },

	{ PROBLEM_MODULE_ORDER, 0, 0, NULL, "modprobe -r rdma_ucm rdma_cm; modprobe rdma_ucm", .host = true },
	{ PROBLEM_NO_MODULES, FACT_CONTAINER, 0, NULL, "modprobe rdma_ucm", .host = true },
	{ PROBLEM_NO_MODULES, 0, 0, NULL, "use a kernel that has them" },

	{ PROBLEM_NO_DEVICE, 0, FACT_RXE | FACT_SIW, NULL, "install an RDMA card, or a kernel with rdma_rxe or siw" },
	{ PROBLEM_NO_DEVICE, FACT_EXCLUSIVE, 0, NULL, NULL },
	{ PROBLEM_NO_DEVICE, FACT_RXE | FACT_NAMED | FACT_FIRST_NETWORK, FACT_CONTAINER, NULL,
	  "software device: rdma link add rxe0 type rxe netdev @" },
	{ PROBLEM_NO_DEVICE, FACT_SIW | FACT_NAMED | FACT_FIRST_NETWORK, FACT_CONTAINER, NULL,
	  "software device: rdma link add siw0 type siw netdev @" },

	{ PROBLEM_LENGTH, 0, 0, NULL, "compare the MTU of both interfaces and of every switch between them" },
	{ PROBLEM_LOOPBACK, FACT_ADMIN, 0, NULL, "ip link set lo up" },
#endif
};
/* clang-format on */

static const struct row *choose(enum problem problem, unsigned facts)
{
	for (const struct row *row = rows; row < rows + sizeof(rows) / sizeof(rows[0]); row++)
		if (row->problem == problem && (facts & row->needs) == row->needs && !(facts & row->lacks))
			return row;
	return NULL;
}

static void remedy_write(char text[REMEDY_SIZE], const char *format, const char *name, const char *number)
{
	size_t used = strlen(text);

	for (; format && *format; format++, used = strlen(text)) {
		const char *value = *format == '@' ? name : *format == '#' ? number : NULL;

		log_text(text + used, REMEDY_SIZE - used, "%.*s", value ? REMEDY_SIZE : 1, value ? value : format);
	}
}

unsigned remedy_facts(void)
{
	bool contained = privileges_in_container();

	return (contained ? FACT_CONTAINER : 0) | (!contained || privileges_have(CAP_NET_ADMIN) ? FACT_ADMIN : 0) |
	       (geteuid() ? 0 : FACT_ROOT);
}

struct remedy remedy_find(enum problem problem, unsigned facts, const char *name, const char *number)
{
	struct remedy remedy = { .cause = "" };
	const struct row *row = choose(problem, facts | (name && *name ? FACT_NAMED : 0));

	if (!row)
		return remedy;
	if (row->host && facts & FACT_CONTAINER)
		strcpy(remedy.text, "on the host: ");
	remedy_write(remedy.cause, row->cause, name, number);
	remedy_write(remedy.text, row->remedy, name, number);
	return remedy;
}
