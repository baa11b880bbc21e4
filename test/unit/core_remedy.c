/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of remedies: the row that the facts choose, and no remedy that cannot work. */
#include "test/unit/unit.h"

#include "core/remedy.h"

enum {
	PRESENT = FACT_HERE | FACT_NAMED,
	GOOD = PRESENT | FACT_UP | FACT_LINK | FACT_ADDRESS
};

#define IF_IT_FAILS "; if it fails: journalctl -k -g "
#define OR_PARAMETER                                                                                                   \
	" (before Linux 5.17 also: modprobe rdma_rxe; echo NAME >/sys/module/rdma_rxe/parameters/add)" IF_IT_FAILS     \
	"rdma_rxe"
#define BEFORE_4_19 ": before Linux 4.19 RoCE connects only in the host's network namespace"
#define USE_HOSTS   "start the container with --network host, or use a newer kernel"

static const struct {
	enum problem problem;
	unsigned facts;
	const char *cause, *remedy; /* for an address the cause, then a line feed and the remedy */
} cases[] = {
	{ PROBLEM_NONE, ~0u, "", "" },
	{ PROBLEM_ADDRESS, FACT_NO_CM | GOOD, ": its driver does not support the RDMA connection manager",
	  "libfabric reaches it: fi_pingpong -p efa; its security group must allow all traffic to itself, both ways" },
	{ PROBLEM_ADDRESS, FACT_NO_IPOIB, ": it has no network interface (IPoIB)",
	  "on the host, as root: modprobe ib_ipoib" },
	{ PROBLEM_ADDRESS, FACT_NO_IPOIB | GOOD, "", "" },
	{ PROBLEM_ADDRESS, FACT_NO_GUID | GOOD, ": its node GUID is 0",
	  "of a virtual function, on the host: ip link set PF vf N mac MAC (InfiniBand: node_guid GUID), then bind its "
	  "driver again" },
	{ PROBLEM_ADDRESS, FACT_SEALED, "", "" },
	{ PROBLEM_ADDRESS, FACT_ADMIN, "", "" },
	{ PROBLEM_ADDRESS, FACT_NAMESAKE | FACT_NAMED | FACT_ADMIN,
	  ": its interface NAME is in another network namespace, where another one has that name", "" },
	{ PROBLEM_ADDRESS, FACT_CONTAINER | FACT_NAMED, ": its interface NAME is in another network namespace",
	  "start the container with --network host" },
	{ PROBLEM_ADDRESS, FACT_CONTAINER | FACT_NAMED | FACT_USABLE,
	  ": its interface NAME is in another network namespace", "" },
	{ PROBLEM_ADDRESS, FACT_NAMED | FACT_ADMIN, ": its interface NAME is in another network namespace", "" },
	{ PROBLEM_ADDRESS, GOOD | FACT_TUNNEL, ": its interface NAME has no link-layer address", "" },
	{ PROBLEM_ADDRESS, GOOD | FACT_VRF, ": its interface NAME belongs to a VRF", "" },
	{ PROBLEM_ADDRESS, PRESENT | FACT_ADMIN, ": its interface NAME is down and has no address",
	  "ip link set NAME up; ip address add ADDRESS/BITS dev NAME" },
	{ PROBLEM_ADDRESS, PRESENT | FACT_ADMIN | FACT_ADDRESS, ": its interface NAME is down", "ip link set NAME up" },
	{ PROBLEM_ADDRESS, PRESENT, ": its interface NAME is down", "" },
	{ PROBLEM_ADDRESS, PRESENT | FACT_UP | FACT_ADMIN, ": its interface NAME has no link", "" },
	{ PROBLEM_ADDRESS, PRESENT | FACT_UP | FACT_LINK | FACT_ADMIN, ": its interface NAME has no address",
	  "ip address add ADDRESS/BITS dev NAME" },
	{ PROBLEM_ADDRESS, PRESENT | FACT_UP | FACT_LINK, ": its interface NAME has no address", "" },
	{ PROBLEM_ADDRESS, GOOD | FACT_ADMIN, "", "" },
	{ PROBLEM_ADDRESS, GOOD | FACT_APART, BEFORE_4_19, USE_HOSTS },
	{ PROBLEM_ADDRESS, FACT_APART, BEFORE_4_19, USE_HOSTS },
	{ PROBLEM_ADDRESS, PRESENT | FACT_APART, ": its interface NAME is down", "" },
	{ PROBLEM_PORT, FACT_INFINIBAND | FACT_INACTIVE | FACT_UNMANAGED, "",
	  "start a subnet manager at this port: opensm -g NUMBER" },
	{ PROBLEM_PORT, FACT_INFINIBAND | FACT_INACTIVE, "",
	  "the subnet manager has not activated it: see its log (sminfo says where it runs)" },
	{ PROBLEM_PORT, FACT_INFINIBAND | FACT_INACTIVE | FACT_UNMANAGED | FACT_NO_GUID, "",
	  "on the host: ip link set PF vf N node_guid GUID; the same with port_guid GUID, then with state auto" },
	{ PROBLEM_PORT, FACT_INFINIBAND | FACT_SLOW, "",
	  "check cable and switch: iblinkinfo shows what both ends can do" },
	{ PROBLEM_PORT, FACT_INFINIBAND | PRESENT, "",
	  "check cable and switch: are both ends InfiniBand (mlxconfig LINK_TYPE_P1)?" },
	{ PROBLEM_VIRTUAL, FACT_INFINIBAND, "",
	  "on the host: ip link set PF vf N state auto; then check cable and switch" },
	{ PROBLEM_PORT, PRESENT | FACT_ADMIN, "", "ip link set NAME up" },
	{ PROBLEM_PORT, PRESENT | FACT_NO_GUID, "", "" },
	{ PROBLEM_PORT, PRESENT | FACT_UP, "", "check cable and switch" },
	{ PROBLEM_PORT, PRESENT | FACT_UP | FACT_TUNNEL, "", "" },
	{ PROBLEM_PORT, GOOD | FACT_ADMIN, "", "" },
	{ PROBLEM_PORT, FACT_NAMED | FACT_ADMIN, "", "" },
	{ PROBLEM_MODULES, FACT_MODULES, "", "modprobe -a NAME" },
	{ PROBLEM_MODULES, 0, "", "on the host: modprobe -a NAME" },
	{ PROBLEM_MODULES, FACT_MODULES | FACT_CONTAINER, "", "on the host: modprobe -a NAME" },
	{ PROBLEM_MODULES, FACT_MODULES | FACT_UBUNTU | FACT_ABSENT, "",
	  "as root: apt install linux-modules-extra-NUMBER; modprobe -a NAME" },
	{ PROBLEM_MODULES, FACT_MODULES | FACT_UBUNTU, "", "modprobe -a NAME" },
	{ PROBLEM_MODULES, FACT_MODULES | FACT_ABSENT, "",
	  "not in /lib/modules/NUMBER: install its package, or boot another kernel" },
	{ PROBLEM_MODULES, FACT_UBUNTU | FACT_ABSENT | FACT_CONTAINER, "", "on the host: modprobe -a NAME" },
	{ PROBLEM_MODULES, FACT_MODULES | FACT_SEALED, "",
	  "after a boot, as kernel.modules_disabled is 1: modprobe -a NAME" },
	{ PROBLEM_MODULES, FACT_CONTAINER | FACT_SEALED, "",
	  "on the host: after a boot, as kernel.modules_disabled is 1: modprobe -a NAME" },
	{ PROBLEM_MEMORY, FACT_MAY_RAISE | FACT_SEALED, "", "ulimit -l unlimited" },
	{ PROBLEM_MODULE_ORDER, FACT_MODULES, "", "modprobe -r rdma_ucm rdma_cm; modprobe rdma_ucm" },
	{ PROBLEM_NO_MODULES, FACT_CONTAINER, "", "on the host: modprobe rdma_ucm" },
	{ PROBLEM_NO_MODULES, 0, "", "use a kernel that has them" },
	{ PROBLEM_NO_MODULES, FACT_UBUNTU, "", "as root: apt install linux-modules-extra-NUMBER" },
	{ PROBLEM_NO_DEVICE, FACT_UBUNTU, "",
	  "install an RDMA card, or linux-modules-extra-NUMBER, which has rdma_rxe and siw" },
	{ PROBLEM_MEMORY, FACT_MAY_RAISE | FACT_CONTAINER, "", "ulimit -l unlimited" },
	{ PROBLEM_MEMORY, FACT_CONTAINER, "",
	  "start the container with --ulimit memlock=-1 (Kubernetes: LimitMEMLOCK=infinity for the service "
	  "containerd)" },
	{ PROBLEM_MEMORY, FACT_ROOT | FACT_LIMITS | FACT_CONTAINER, "", "ulimit -l unlimited" },
	{ PROBLEM_MEMORY, FACT_SLURM | FACT_CONTAINER, "",
	  "limits.conf does not apply to jobs: LimitMEMLOCK=infinity for the service slurmd, and "
	  "PropagateResourceLimitsExcept=MEMLOCK in slurm.conf" },
	{ PROBLEM_MEMORY, FACT_PBS | FACT_ALLOWED, "",
	  "limits.conf does not apply to jobs: LimitMEMLOCK=infinity for the service that starts them" },
	{ PROBLEM_MEMORY, FACT_ALLOWED | FACT_CONTAINER, "",
	  "start the container with --ulimit memlock=-1 (Kubernetes: LimitMEMLOCK=infinity for the service "
	  "containerd)" },
	{ PROBLEM_MEMORY, FACT_ALLOWED, "",
	  "limits.conf applies only to new logins: log in again; a service needs LimitMEMLOCK=infinity" },
	{ PROBLEM_MEMORY, FACT_ROOT, "",
	  "as root: echo '* - memlock unlimited' >/etc/security/limits.d/rdma.conf; then log in again (a service: "
	  "LimitMEMLOCK=infinity)" },
	{ PROBLEM_MEMORY, 0, "",
	  "as root: echo '* - memlock unlimited' >/etc/security/limits.d/rdma.conf; then log in again (a service: "
	  "LimitMEMLOCK=infinity)" },
	{ PROBLEM_NO_DEVICE, FACT_NAMED | FACT_FIRST_NETWORK, "",
	  "install an RDMA card, or a kernel with rdma_rxe or siw" },
	{ PROBLEM_NO_DEVICE, FACT_RXE | FACT_NAMED | FACT_FIRST_NETWORK | FACT_EXCLUSIVE, "", "" },
	{ PROBLEM_NO_DEVICE, FACT_RXE | FACT_NAMED | FACT_FIRST_NETWORK, "",
	  "on the host: software device: rdma link add rxe0 type rxe netdev NAME" OR_PARAMETER },
	{ PROBLEM_NO_DEVICE, FACT_RXE | FACT_SIW | FACT_NAMED | FACT_FIRST_NETWORK | FACT_ADMIN, "",
	  "software device: rdma link add rxe0 type rxe netdev NAME" OR_PARAMETER },
	{ PROBLEM_NO_DEVICE, FACT_SIW | FACT_NAMED | FACT_FIRST_NETWORK | FACT_ADMIN, "",
	  "software device: rdma link add siw0 type siw netdev NAME" IF_IT_FAILS "siw" },
	{ PROBLEM_NO_DEVICE, FACT_SIW | FACT_NAMED | FACT_FIRST_NETWORK | FACT_ADMIN | FACT_SEALED, "",
	  "after a boot, as kernel.modules_disabled is 1: software device: rdma link add siw0 type siw netdev "
	  "NAME" IF_IT_FAILS "siw" },
	{ PROBLEM_NO_DEVICE, FACT_RXE | FACT_EXCLUSIVE | FACT_SEALED, "", "" },
	{ PROBLEM_NO_DEVICE, FACT_RXE | FACT_NAMED, "", "" },
	{ PROBLEM_NO_DEVICE, FACT_RXE | FACT_FIRST_NETWORK, "", "" },
	{ PROBLEM_NO_DEVICE, FACT_RXE | FACT_NAMED | FACT_FIRST_NETWORK | FACT_CONTAINER, "", "" },
	{ PROBLEM_LOOPBACK, FACT_ADMIN, "", "ip link set lo up" },
	{ PROBLEM_LOOPBACK, 0, "", "" },
};

TEST(test_rows)
{
	for (size_t i = 0; i < LENGTH(cases); i++) {
		bool named = cases[i].facts & FACT_NAMED || strstr(cases[i].remedy, "NAME");
		const struct remedy remedy = remedy_find(cases[i].problem, cases[i].facts & ~(unsigned)FACT_NAMED,
							 named ? "NAME" : NULL, "NUMBER");
		char text[2 * REMEDY_SIZE];

		snprintf(text, sizeof(text), "%s%s%s", cases[i].cause, *cases[i].cause && *cases[i].remedy ? "\n" : "",
			 cases[i].remedy);
		assert_string_equal(remedy.text, text);
	}
}

TEST(test_long_name)
{
	char name[2 * REMEDY_SIZE];
	struct remedy remedy;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	remedy = remedy_find(PROBLEM_MODULES, FACT_CONTAINER, name, NULL);
	assert_int_equal(strlen(remedy.text), REMEDY_SIZE - 1);
}
