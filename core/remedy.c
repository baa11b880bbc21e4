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
#define BEFORE_4_19                                                                                                    \
	": before Linux 4.19 RoCE connects only in the host's network namespace\n"                                     \
	"start the container with --network host, or use a newer kernel"
#define IF_IT_FAILS    "; if it fails: journalctl -k -g "
#define BOOT_INSTALLED "boot the kernel of /lib/modules: the running one has no modules there"
#define LIMITS_OF_JOBS "limits.conf does not apply to jobs: LimitMEMLOCK=infinity for the service "

struct row {
	uint8_t problem; /* enum problem */
	uint32_t able;	 /* without it, or in a container, the remedy is for the host; 0: works here for any user */
	uint32_t needs, lacks; /* enum fact */
	const char *remedy;
};

/* The first row with matching problem and facts applies. */
/* clang-format off */
static const struct row rows[] = {
	{ PROBLEM_FILE, 0, FACT_MISSING | FACT_PRIVATE_DEV, 0,
	  "start the container with the device @ (of a service: PrivateDevices=no)" },
	{ PROBLEM_FILE, FACT_MKNOD, FACT_MISSING | FACT_NUMBER, 0,
	  "as root: mkdir -p /dev/infiniband; mknod -m 666 @ c #" },
	{ PROBLEM_FILE, 0, FACT_STALE | FACT_PRIVATE_DEV, 0, "start the container again with the device @" },
	{ PROBLEM_FILE, FACT_MKNOD, FACT_STALE | FACT_NUMBER, 0, "as root: rm @; mknod -m 666 @ c #" },
	{ PROBLEM_FILE, 0, FACT_REFUSED, 0, "start the container with the device @ (of a service: DeviceAllow=@ rw)" },
	{ PROBLEM_FILE, 0, FACT_FOREIGN, 0, "on the host: chmod a+rw @" },
	{ PROBLEM_FILE, FACT_MKNOD, FACT_NODEV, 0, "as root: mount -o remount,dev $(findmnt -nT @ -o TARGET)" },
	{ PROBLEM_FILE, 0, FACT_LABELLED, 0, "the kernel's log has the rule: journalctl -k -g 'avc|apparmor'" },
	{ PROBLEM_FILE, 0, FACT_FORBIDDEN, FACT_ROOT, "run as root, or grant access: chmod a+rw @" },

	{ PROBLEM_MODULES, 0, FACT_GONE, FACT_CONTAINER, BOOT_INSTALLED },
#if COMMAND_doctor
	{ PROBLEM_NO_MODULES, 0, FACT_GONE, FACT_CONTAINER, BOOT_INSTALLED },
#endif
	{ PROBLEM_MODULES, 0, FACT_UBUNTU | FACT_ABSENT, FACT_CONTAINER,
	  "as root: apt install linux-modules-extra-#; modprobe -a @" },
	{ PROBLEM_MODULES, 0, FACT_ABSENT, FACT_CONTAINER,
	  "not in /lib/modules/#: install its package, or boot another kernel" },
	{ PROBLEM_MODULES, FACT_MODULES, 0, 0, "modprobe -a @" },
	{ PROBLEM_RXE, FACT_MODULES, 0, 0, "modprobe -r rdma_rxe" },
	{ PROBLEM_MEMORY, 0, FACT_MAY_RAISE, 0, "ulimit -l unlimited" },
	{ PROBLEM_MEMORY, 0, FACT_ROOT | FACT_LIMITS, 0, "ulimit -l unlimited" },
#if COMMAND_doctor
	{ PROBLEM_MEMORY, 0, FACT_SLURM, 0,
	  LIMITS_OF_JOBS "slurmd, and PropagateResourceLimitsExcept=MEMLOCK in slurm.conf" },
	{ PROBLEM_MEMORY, 0, FACT_PBS, 0, LIMITS_OF_JOBS "that starts them" },
#endif
	{ PROBLEM_MEMORY, 0, FACT_CONTAINER, 0,
	  "start the container with --ulimit memlock=-1 (Kubernetes: LimitMEMLOCK=infinity for the service containerd)" },
#if COMMAND_doctor
	{ PROBLEM_MEMORY, 0, FACT_ALLOWED, 0,
	  "limits.conf applies only to new logins: log in again; a service needs LimitMEMLOCK=infinity" },
#endif
	{ PROBLEM_MEMORY, 0, 0, 0,
	  "as root: echo '* - memlock unlimited' >/etc/security/limits.d/rdma.conf; then log in again (a service: "
	  "LimitMEMLOCK=infinity)" },

	{ PROBLEM_ADDRESS, 0, FACT_NO_CM, 0,
	  ": its driver does not support the RDMA connection manager\nlibfabric reaches it: fi_pingpong -p efa; its "
	  "security group must allow all traffic to itself, both ways" },
	{ PROBLEM_ADDRESS, 0, FACT_NO_GUID, 0,
	  ": its node GUID is 0\nof a virtual function, on the host: ip link set PF vf N mac MAC (InfiniBand: node_guid "
	  "GUID), then bind its driver again" },
	{ PROBLEM_ADDRESS, 0, FACT_NO_IPOIB, FACT_NAMED,
	  ": it has no network interface (IPoIB)\non the host, as root: modprobe ib_ipoib" },
	{ PROBLEM_ADDRESS, 0, FACT_APART, FACT_NAMED, BEFORE_4_19 },
#if COMMAND_doctor
	{ PROBLEM_ADDRESS, 0, 0, FACT_NAMED, "" },
	{ PROBLEM_ADDRESS, 0, FACT_NAMESAKE, 0, IN_NAMESPACE ", where another one has that name" },
	{ PROBLEM_ADDRESS, 0, FACT_CONTAINER, FACT_HERE | FACT_USABLE,
	  IN_NAMESPACE "\nstart the container with --network host" },
	{ PROBLEM_ADDRESS, 0, 0, FACT_HERE, IN_NAMESPACE },
	{ PROBLEM_ADDRESS, 0, FACT_TUNNEL, 0, ": its interface @ has no link-layer address" },
	{ PROBLEM_ADDRESS, 0, FACT_VRF, 0, ": its interface @ belongs to a VRF" },
	{ PROBLEM_ADDRESS, 0, FACT_ADMIN, FACT_UP | FACT_ADDRESS,
	  IS_DOWN " and has no address\nip link set @ up; " ADD_ADDRESS },
	{ PROBLEM_ADDRESS, 0, FACT_ADMIN, FACT_UP, IS_DOWN "\nip link set @ up" },
	{ PROBLEM_ADDRESS, 0, 0, FACT_UP, IS_DOWN },
	{ PROBLEM_ADDRESS, 0, 0, FACT_LINK, ": its interface @ has no link" },
	{ PROBLEM_ADDRESS, 0, FACT_ADMIN, FACT_ADDRESS, HAS_NO_ADDRESS "\n" ADD_ADDRESS },
	{ PROBLEM_ADDRESS, 0, 0, FACT_ADDRESS, HAS_NO_ADDRESS },
	{ PROBLEM_ADDRESS, 0, FACT_APART, 0, BEFORE_4_19 },

	{ PROBLEM_PORT, 0, FACT_NO_GUID | FACT_INFINIBAND, 0,
	  "on the host: ip link set PF vf N node_guid GUID; the same with port_guid GUID, then with state auto" },
	{ PROBLEM_PORT, 0, FACT_UNMANAGED, 0, "start a subnet manager at this port: opensm -g #" },
	{ PROBLEM_PORT, 0, FACT_INACTIVE, 0,
	  "the subnet manager has not activated it: see its log (sminfo says where it runs)" },
	{ PROBLEM_PORT, 0, FACT_DISABLED, 0,
	  "ibportstate -D 0 # enable; of a virtual function, on the host: ip link set PF vf N state auto" },
	{ PROBLEM_PORT, 0, FACT_SLOW, 0, CHECK_CABLE ": iblinkinfo shows what both ends can do" },
	{ PROBLEM_PORT, 0, FACT_INFINIBAND, 0,
	  CHECK_CABLE ": are both ends InfiniBand (mlxconfig LINK_TYPE_P1)?" },
	{ PROBLEM_PORT, 0, FACT_HERE | FACT_ADMIN, FACT_UP, "ip link set @ up" },
	{ PROBLEM_PORT, 0, FACT_HERE | FACT_UP, FACT_LINK | FACT_TUNNEL, CHECK_CABLE },

	{ PROBLEM_VIRTUAL, 0, 0, 0, "on the host: ip link set PF vf N state auto; then " CHECK_CABLE },

	{ PROBLEM_MODULE_ORDER, FACT_MODULES, 0, 0, "modprobe -r rdma_ucm rdma_cm; modprobe rdma_ucm" },
	{ PROBLEM_NO_MODULES, FACT_MODULES, FACT_CONTAINER, 0, "modprobe rdma_ucm" },
	{ PROBLEM_NO_MODULES, 0, FACT_UBUNTU, 0, "as root: apt install linux-modules-extra-#" },
	{ PROBLEM_NO_MODULES, 0, 0, 0, "use a kernel that has them" },

	{ PROBLEM_NO_DEVICE, 0, FACT_EXCLUSIVE, 0, "" },
	{ PROBLEM_NO_DEVICE, 0, FACT_UBUNTU, FACT_RXE | FACT_SIW | FACT_CONTAINER,
	  "install an RDMA card, or linux-modules-extra-#, which has rdma_rxe and siw" },
	{ PROBLEM_NO_DEVICE, 0, 0, FACT_RXE | FACT_SIW, "install an RDMA card, or a kernel with rdma_rxe or siw" },
	{ PROBLEM_NO_DEVICE, FACT_ADMIN, FACT_RXE | FACT_NAMED | FACT_FIRST_NETWORK, FACT_CONTAINER,
	  "software device: rdma link add rxe0 type rxe netdev @ (before Linux 5.17 also: modprobe rdma_rxe; echo @ "
	  ">/sys/module/rdma_rxe/parameters/add)" IF_IT_FAILS "rdma_rxe" },
	{ PROBLEM_NO_DEVICE, FACT_ADMIN, FACT_SIW | FACT_NAMED | FACT_FIRST_NETWORK, FACT_CONTAINER,
	  "software device: rdma link add siw0 type siw netdev @" IF_IT_FAILS "siw" },

	{ PROBLEM_LOOPBACK, 0, FACT_ADMIN, 0, "ip link set lo up" },
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
	bool admin = privileges_may(CAP_NET_ADMIN) || privileges_have(CAP_NET_ADMIN);

	return (privileges_in_container() ? FACT_CONTAINER : 0) | (privileges_dev_is_private() ? FACT_PRIVATE_DEV : 0) |
	       (admin ? FACT_ADMIN : 0) | (privileges_may(CAP_SYS_MODULE) ? FACT_MODULES : 0) |
	       (privileges_may(CAP_MKNOD) ? FACT_MKNOD : 0) | (privileges_may(CAP_SYS_RESOURCE) ? FACT_LIMITS : 0) |
	       (geteuid() ? 0 : FACT_ROOT);
}

struct remedy remedy_find(enum problem problem, unsigned facts, const char *name, const char *number)
{
	struct remedy remedy = { .text = "" };
	const struct row *row = choose(problem, facts | (name && *name ? FACT_NAMED : 0));
	size_t used;

	if (!row)
		return remedy;
	if (row->able && (!(facts & row->able) || facts & FACT_CONTAINER))
		strcpy(remedy.text, "on the host: ");
	if (facts & FACT_SEALED && *row->remedy && (row->able == FACT_MODULES || problem == PROBLEM_NO_DEVICE))
		strcat(remedy.text, "after a boot, as kernel.modules_disabled is 1: ");
	used = strlen(remedy.text);
	log_fill(remedy.text + used, sizeof(remedy.text) - used, row->remedy, name, number);
	return remedy;
}
