/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/remedy.h"

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
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
	uint8_t problem;       /* enum problem */
	bool host;	       /* the remedy is for the host of a container */
	uint32_t needs, lacks; /* enum fact */
	const char *remedy;
};

/* The first row of a problem whose facts fit applies. */
/* clang-format off */
static const struct row rows[] = {
	{ PROBLEM_FILE, false, FACT_MISSING | FACT_CONTAINER, 0, "start the container with the device @" },
	{ PROBLEM_FILE, false, FACT_MISSING | FACT_NUMBER, 0, "as root: mkdir -p /dev/infiniband; mknod -m 666 @ c #" },
	{ PROBLEM_FILE, false, FACT_STALE | FACT_CONTAINER, 0, "start the container again with the device @" },
	{ PROBLEM_FILE, false, FACT_STALE | FACT_NUMBER, 0, "as root: rm @; mknod -m 666 @ c #" },
	{ PROBLEM_FILE, false, FACT_REFUSED | FACT_CONTAINER, 0, "start the container with the device @" },
	{ PROBLEM_FILE, false, FACT_REFUSED, 0, "allow it in the unit of the service: DeviceAllow=@ rw" },
	{ PROBLEM_FILE, false, FACT_FOREIGN, 0, "on the host: chmod a+rw @" },
	{ PROBLEM_FILE, false, FACT_FORBIDDEN, FACT_ROOT, "run as root, or give this user the right: chmod a+rw @" },

	{ PROBLEM_MODULES, true, 0, 0, "modprobe -a @" },
	{ PROBLEM_MEMORY, false, FACT_MAY_RAISE, 0, "ulimit -l unlimited" },
	{ PROBLEM_MEMORY, false, FACT_CONTAINER, 0, "start the container with --ulimit memlock=-1" },
	{ PROBLEM_MEMORY, false, FACT_ROOT, 0, "ulimit -l unlimited" },
	{ PROBLEM_MEMORY, false, 0, 0, "raise memlock in /etc/security/limits.conf (systemd: LimitMEMLOCK=infinity)" },

#if COMMAND_doctor
	{ PROBLEM_ADDRESS, false, FACT_NO_CM, 0, ": its driver does not support the RDMA connection manager" },
	{ PROBLEM_ADDRESS, false, 0, FACT_NAMED, "" },
	{ PROBLEM_ADDRESS, false, FACT_NAMESAKE, 0, IN_NAMESPACE ", where another one has that name" },
	{ PROBLEM_ADDRESS, false, FACT_CONTAINER, FACT_HERE | FACT_USABLE,
	  IN_NAMESPACE "\nstart the container with --network host" },
	{ PROBLEM_ADDRESS, false, 0, FACT_HERE, IN_NAMESPACE },
	{ PROBLEM_ADDRESS, false, FACT_TUNNEL, 0, ": its interface @ has no link-layer address" },
	{ PROBLEM_ADDRESS, false, FACT_VRF, 0, ": its interface @ belongs to a VRF" },
	{ PROBLEM_ADDRESS, false, FACT_ADMIN, FACT_UP | FACT_ADDRESS,
	  IS_DOWN " and has no address\nip link set @ up; " ADD_ADDRESS },
	{ PROBLEM_ADDRESS, false, FACT_ADMIN, FACT_UP, IS_DOWN "\nip link set @ up" },
	{ PROBLEM_ADDRESS, false, 0, FACT_UP, IS_DOWN },
	{ PROBLEM_ADDRESS, false, 0, FACT_LINK, ": its interface @ has no link\n" CHECK_CABLE },
	{ PROBLEM_ADDRESS, false, FACT_ADMIN, FACT_ADDRESS, HAS_NO_ADDRESS "\n" ADD_ADDRESS },
	{ PROBLEM_ADDRESS, false, 0, FACT_ADDRESS, HAS_NO_ADDRESS },

	{ PROBLEM_PORT, false, FACT_INFINIBAND | FACT_INIT, 0, "start a subnet manager: opensm" },
	{ PROBLEM_PORT, false, FACT_INFINIBAND, 0, CHECK_CABLE },
	{ PROBLEM_PORT, false, FACT_HERE | FACT_ADMIN, FACT_UP, "ip link set @ up" },
	{ PROBLEM_PORT, false, FACT_HERE | FACT_UP, FACT_LINK | FACT_TUNNEL, CHECK_CABLE },

	{ PROBLEM_MODULE_ORDER, true, 0, 0, "modprobe -r rdma_ucm rdma_cm; modprobe rdma_ucm" },
	{ PROBLEM_NO_MODULES, true, FACT_CONTAINER, 0, "modprobe rdma_ucm" },
	{ PROBLEM_NO_MODULES, false, 0, 0, "use a kernel that has them" },

	{ PROBLEM_NO_DEVICE, false, FACT_EXCLUSIVE, 0, "" },
	{ PROBLEM_NO_DEVICE, false, 0, FACT_RXE | FACT_SIW, "install an RDMA card, or a kernel with rdma_rxe or siw" },
	{ PROBLEM_NO_DEVICE, false, FACT_RXE | FACT_NAMED | FACT_FIRST_NETWORK, FACT_CONTAINER,
	  "software device: rdma link add rxe0 type rxe netdev @" },
	{ PROBLEM_NO_DEVICE, false, FACT_SIW | FACT_NAMED | FACT_FIRST_NETWORK, FACT_CONTAINER,
	  "software device: rdma link add siw0 type siw netdev @" },

	{ PROBLEM_LOOPBACK, false, FACT_ADMIN, 0, "ip link set lo up" },
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

unsigned remedy_facts(void)
{
	bool contained = privileges_in_container();

	return (contained ? FACT_CONTAINER : 0) | (!contained || privileges_have(CAP_NET_ADMIN) ? FACT_ADMIN : 0) |
	       (geteuid() ? 0 : FACT_ROOT);
}

struct remedy remedy_find(enum problem problem, unsigned facts, const char *name, const char *number)
{
	struct remedy remedy = { .text = "" };
	const struct row *row = choose(problem, facts | (name && *name ? FACT_NAMED : 0));
	size_t used;

	if (!row)
		return remedy;
	if (row->host && facts & FACT_CONTAINER)
		strcpy(remedy.text, "on the host: ");
	used = strlen(remedy.text);
	log_fill(remedy.text + used, sizeof(remedy.text) - used, row->remedy, name, number);
	return remedy;
}
