/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=route_leads_here -Wl,--wrap=interface_addresses,--wrap=interface_list */
/* link: -Wl,--wrap=interface_read -Wl,--wrap=privileges_in_container,--wrap=fopen,--wrap=sysfs_names */
/* doctor's reading of /sys, /proc and /dev, in directory trees that a test creates, some with hostile contents. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "test/unit/doctor_bench.h"

#include "core/privileges.h"

#define DEVICE "sys/class/infiniband/mlx5_0/"
#define PORT   DEVICE "ports/1/"

#define CONTAINED(text) (privileges_in_container() || !privileges_may(CAP_SYS_MODULE) ? "on the host: " text : text)

#define UDP_HEAD "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
#define UDP_LINE(host, inode)                                                                                          \
	"   24: " host ":12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 " inode " 2 0 "   \
	"0\n"

static struct doctor_bench bench;

static struct {
	char root[64];
	bool in_vrf;	 /* the addresses of this host */
	bool has_limits; /* as of a login on no container: etc/security */
	bool has_eth0;	 /* the host has no other interface */
	bool has_crowd;	 /* eth0's address is behind 300 of eth9 */
	unsigned facts;	 /* eth0's */
} tree;

size_t __real_interface_addresses(struct interface_address *list);
struct interface __real_interface_read(const char *name);

/* Without eth0 only the loopback interface's, whatever else this machine has. */
size_t __wrap_interface_addresses(struct interface_address *list)
{
	size_t count = __real_interface_addresses(list), kept = 0;

	for (size_t i = 0; i < count; i++)
		if (!strcmp(list[i].name, "lo"))
			list[kept++] = list[i];
	if (!tree.has_eth0)
		return kept;
	for (size_t i = 0; i < INTERFACE_ADDRESSES_MAX && tree.has_crowd; i++)
		list[i] = (struct interface_address){ .address = { ADDRESS_IP4, .bytes = { 10, 9 } }, .name = "eth9" };
	if (tree.has_crowd)
		return INTERFACE_ADDRESSES_MAX;
	*list = (struct interface_address){ .address = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 1 } },
					    .name = "eth0" };
	return 1;
}

size_t __wrap_interface_list(const char *name, struct interface_address **list)
{
	bool crowd = tree.has_crowd;
	size_t count, kept = 0;

	*list = calloc(INTERFACE_ADDRESSES_MAX, sizeof(**list));
	tree.has_crowd = false;
	count = __wrap_interface_addresses(*list);
	tree.has_crowd = crowd;
	for (size_t i = 0; i < count; i++)
		if (!strcmp((*list)[i].name, name))
			(*list)[kept++] = (*list)[i];
	return kept;
}

struct interface __wrap_interface_read(const char *name)
{
	return tree.has_eth0 ? (struct interface){ .facts = tree.facts, .link_length = 6 }
			     : __real_interface_read(name);
}

bool __real_privileges_in_container(void);
FILE *__real_fopen(const char *path, const char *mode);
struct names __real_sysfs_names(const char *path);

bool __wrap_privileges_in_container(void)
{
	return !tree.has_limits && __real_privileges_in_container();
}

static const char *planted(const char *path, char text[SYSFS_PATH_SIZE])
{
	return strncmp(path, "/etc/security/", 14) ? path : sysfs_path(text, "%s%s", tree.root, path);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	char text[SYSFS_PATH_SIZE];

	return __real_fopen(planted(path, text), mode);
}

struct names __wrap_sysfs_names(const char *path)
{
	char text[SYSFS_PATH_SIZE];

	return __real_sysfs_names(planted(path, text));
}

bool __wrap_route_leads_here(const struct address *address, bool otherwise)
{
	return !tree.in_vrf;
}

/* Creates a file and its directories. */
static void add_bytes(const char *name, const void *bytes, size_t length)
{
	char path[1024];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", tree.root, name);
	for (char *slash = path + strlen(tree.root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		assert_true(!mkdir(path, 0755) || errno == EEXIST);
		*slash = '/';
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, length), length);
	close(fd);
}

static void add(const char *name, const char *text)
{
	add_bytes(name, text, strlen(text));
}

static void add_link(const char *name, const char *target)
{
	char path[1024];

	add(name, "");
	snprintf(path, sizeof(path), "%s/%s", tree.root, name);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(target, path), 0);
}

static int set_up(void **state)
{
	memset(&tree, 0, sizeof(tree));
	snprintf(tree.root, sizeof(tree.root), "/tmp/doctor.XXXXXX");
	assert_non_null(mkdtemp(tree.root));
	doctor_bench_begin(&bench);
	bench.doctor.host = (struct host){
		.root = tree.root, .failure = FINDING_FAIL, .found = finding_found, .unusable = kernel_unusable
	};
	host_read(&bench.doctor.host);
	return 0;
}

/* The tree's present devices, valid until the end of the test. */
static struct device *read_devices(void)
{
	devices_free(bench.doctor.devices);
	host_read(&bench.doctor.host);
	return bench.doctor.devices = devices_read(tree.root);
}

static int delete_file(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	return remove(path);
}

static int tear_down(void **state)
{
	devices_free(bench.doctor.devices);
	doctor_bench_end(&bench);
	nftw(tree.root, delete_file, 8, FTW_DEPTH | FTW_PHYS);
	return 0;
}

/* True if a finding has this status and check, and a text that contains text. */
static bool has_finding(enum finding_status status, const char *check, const char *text)
{
	for (const struct finding *finding = bench.doctor.findings.first; finding; finding = finding->next)
		if (finding->status == status && !strcmp(finding->error.object, check) &&
		    strstr(finding->error.cause, text))
			return true;
	return false;
}

static void assert_found(enum finding_status status, const char *check, const char *text)
{
	if (!has_finding(status, check, text))
		fail_msg("no finding %d of %s has: %s", (int)status, check, text);
}

static void forget_findings(void)
{
	findings_free(&bench.doctor.findings);
	bench.doctor.findings = (struct findings){ .first = NULL };
}

/* With the tree's present devices. */
static void run_check(void (*check)(struct doctor *doctor))
{
	read_devices();
	check(&bench.doctor);
}

/* The same tree with InfiniBand in place of Ethernet has no such warning. */
static void assert_only_on_ethernet(const char *check, const char *text)
{
	forget_findings();
	add(PORT "link_layer", "InfiniBand\n");
	run_check(devices_check);
	assert_false(has_finding(FINDING_WARN, check, text));
}

/* Of the last such finding. */
static const char *remedy_of(const char *check)
{
	const char *remedy = NULL;

	for (const struct finding *finding = bench.doctor.findings.first; finding; finding = finding->next)
		if (!strcmp(finding->error.object, check))
			remedy = finding->error.hint;
	return remedy;
}

/* A card without faults. Its GID table has an empty entry, then a GID of an IPv4 address for RoCE v1 and for v2. */
static void add_card(void)
{
	add(DEVICE "fw_ver", "16.35.2000\n");
	add(DEVICE "node_type", "1: CA\n");
	add(DEVICE "device/net/eth2/mtu", "9000\n");
	add_link(DEVICE "device/driver", "../../../../bus/pci/drivers/mlx5_core");
	add(PORT "state", "4: ACTIVE\n");
	add(PORT "phys_state", "5: LinkUp\n");
	add(PORT "link_layer", "Ethernet\n");
	add(PORT "rate", "100 Gb/sec (4X EDR)\n");
	add(PORT "gids/0", "0000:0000:0000:0000:0000:0000:0000:0000\n");
	add(PORT "gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
	add(PORT "gids/2", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
	add(PORT "gid_attrs/types/1", "IB/RoCE v1\n");
	add(PORT "gid_attrs/types/2", "RoCE v2\n");
	add(PORT "gid_attrs/ndevs/1", "eth2\n");
	add(PORT "gid_attrs/ndevs/2", "eth2\n");
	add("sys/class/infiniband_verbs/uverbs7/ibdev", "mlx5_0\n");
}

TEST(card, set_up, tear_down)
{
	struct address address = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 1 } };
	struct device *device;
	const struct gid *gid;

	add_card();
	device = read_devices();
	assert_non_null(device);
	assert_null(device->next);
	assert_string_equal(device->name, "mlx5_0");
	assert_string_equal(device->driver, "mlx5_core");
	assert_string_equal(device->ports[0].netdev, "eth2");
	assert_string_equal(device->firmware, "16.35.2000");
	assert_int_equal(device->port_count, 1);
	assert_true(device->ports[0].active);
	assert_string_equal(device->ports[0].state, "ACTIVE");
	assert_string_equal(device->ports[0].link_layer, "Ethernet");
	assert_int_equal(device->ports[0].gid_count, 2);
	gid = devices_gid(&device->ports[0], &address);
	assert_non_null(gid);
	assert_int_equal(gid->index, 2);
	assert_string_equal(gid->netdev, "eth2");
	address.bytes[3] = 2;
	assert_null(devices_gid(&device->ports[0], &address));
	assert_ptr_equal(devices_find(device, "mlx5_0"), device);
	assert_null(devices_find(device, "mlx5_1"));
}

/* The connection manager's default decides which GID of an address a connection uses. */
TEST(roce_version, set_up, tear_down)
{
	const struct address address = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 1 } };
	struct device *device;

	add_card();
	add("sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode", "IB/RoCE v1\n");
	device = read_devices();
	assert_string_equal(devices_gid(device->ports, &address)->type, "IB/RoCE v1");
	strcpy(device->addresses, "10.0.0.1");
	device->address_count = 1;
	device->v1 = device->ports;
	route_report(&bench.doctor);
	assert_found(FINDING_WARN, "address", "10.0.0.1 leads to mlx5_0 over RoCE v1: no");
	assert_string_equal(remedy_of("address"), "cd /sys/kernel/config/rdma_cm && mkdir -p mlx5_0 && echo RoCE v2 "
						  ">mlx5_0/ports/1/default_roce_mode");
	device->ports[0].gid_count = 1;
	forget_findings();
	route_report(&bench.doctor);
	assert_string_equal(remedy_of("address"),
			    "on hosts with v2: cd /sys/kernel/config/rdma_cm && mkdir -p DEVICE && "
			    "echo IB/RoCE v1 >DEVICE/ports/1/default_roce_mode");
	device->v1 = NULL;
	device->roce_v2 = true;
	route_report(&bench.doctor);
	assert_found(FINDING_OK, "address", "10.0.0.1 leads to mlx5_0 over RoCE v2");
}

/* Then no address has a device. */
TEST(roce_version_without_a_gid, set_up, tear_down)
{
	const char *mode = "connections use IB/RoCE v1, and no GID has it";
	const char *fix = "cd /sys/kernel/config/rdma_cm && mkdir -p mlx5_0 && echo RoCE v2 "
			  ">mlx5_0/ports/1/default_roce_mode";

	add_card();
	add("sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode", "IB/RoCE v1\n");
	run_check(devices_check);
	assert_false(has_finding(FINDING_WARN, "gid", mode));
	add(PORT "gid_attrs/types/1", "RoCE v2\n");
	run_check(devices_check);
	assert_found(FINDING_WARN, "gid", mode);
	assert_string_equal(remedy_of("gid"), fix);
	*bench.doctor.devices->ports[0].netdev = '\0'; /* its interface has no fault */
	route_report(&bench.doctor);
	assert_found(FINDING_FAIL, "address", mode);
	assert_string_equal(remedy_of("address"), fix);
	forget_findings();
	bench.doctor.devices->ports[0].gids_left_out = 1;
	devices_check(&bench.doctor);
	assert_false(has_finding(FINDING_WARN, "gid", mode));
}

/* Unreadable files are named, and no conclusions are drawn from them. */
TEST(without_sys, set_up, tear_down)
{
	assert_null(read_devices());
	kernel_check(&bench.doctor);
	assert_null(remedy_of("modules"));
	host_find_none(&bench.doctor.host);
	assert_found(FINDING_FAIL, "sys", "no RDMA device, module or port can be seen in /sys: it is not mounted");
}

/* The connection manager has found a device that /sys does not have. */
TEST(device_without_sys, set_up, tear_down)
{
	struct device *device = devices_need(&bench.doctor.devices, "mlx5_0");

	assert_ptr_equal(devices_need(&bench.doctor.devices, "mlx5_0"), device);
	assert_null(device->next);
	kernel_check(&bench.doctor);
	devices_check(&bench.doctor);
	strcpy(device->addresses, "10.0.0.1");
	device->address_count = 1;
	route_report(&bench.doctor);
	assert_found(FINDING_READ, "device", "mlx5_0: driver unknown");
	assert_found(FINDING_OK, "address", "10.0.0.1 leads to mlx5_0");
	assert_found(FINDING_FAIL, "file", "rdma_cm cannot be used");
	assert_int_equal(bench.doctor.findings.counts[FINDING_FAIL], 1);
}

TEST(nothing, set_up, tear_down)
{
	add("sys/class/misc/null/dev", "1:3\n");
	assert_null(read_devices());
	kernel_check(&bench.doctor);
	assert_found(FINDING_WARN, "modules", "ib_uverbs");
	assert_string_equal(remedy_of("modules"), CONTAINED("modprobe -a ib_core ib_uverbs rdma_cm rdma_ucm"));
	add("proc/sys/kernel/modules_disabled", "1\n");
	host_read(&bench.doctor.host);
	kernel_check(&bench.doctor);
	assert_non_null(strstr(remedy_of("modules"), "after a boot, as kernel.modules_disabled is 1: modprobe "));
	assert_null(remedy_of("file"));
	assert_int_equal(bench.doctor.findings.counts[FINDING_FAIL], 0);
}

/* The path of an index file of this kernel's modules. */
static const char *module_file(char name[256], const char *file)
{
	struct utsname names;

	assert_int_equal(uname(&names), 0);
	snprintf(name, 256, "lib/modules/%s/%s", names.release, file);
	return name;
}

TEST(no_module, set_up, tear_down)
{
	struct host *host = &bench.doctor.host;
	char name[256];

	add("sys/module/ext4/refcnt", "1\n");
	add("sys/class/misc/null/dev", "1:3\n");
	add("lib/modules/other/modules.dep", "kernel/drivers/infiniband/core/ib_core.ko:\n");
	add(module_file(name, "modules.dep"), "kernel/fs/ext4/ext4.ko: kernel/fs/jbd2/jbd2.ko\nx_ib_core.ko:\n");
	kernel_check(&bench.doctor);
	assert_found(FINDING_WARN, "modules", "no RDMA modules for this kernel");
	host_read(host);
	assert_int_equal(host->facts & (FACT_RXE | FACT_SIW), 0);
	add(module_file(name, "modules.builtin"), "kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko\n");
	host_read(host);
	assert_int_equal(host->facts & (FACT_RXE | FACT_SIW), FACT_RXE);
	add("sys/module/siw/refcnt", "1\n");
	host_read(host);
	assert_int_equal(host->facts & (FACT_RXE | FACT_SIW), FACT_RXE | FACT_SIW);
}

/* A card without its RDMA module is no RDMA device: the module is named before software devices are. */
TEST(card_module, set_up, tear_down)
{
	struct host *host = &bench.doctor.host;
	char name[256], path[256];

	add("sys/class/misc/null/dev", "1:3\n");
	add("sys/module/rdma_rxe/refcnt", "1\n");
	add_link("sys/bus/pci/devices/0000:01:00.0/driver", "../../drivers/e1000e");
	add_link("sys/bus/pci/devices/0000:02:00.0/driver", "../../drivers/hns3");
	add("sys/bus/pci/devices/0000:02:00.0/net/eth1/mtu", "1500\n");
	add_link("sys/bus/pci/devices/0000:03:00.0/driver", "../../drivers/mlx5_core");
	add_link("sys/bus/pci/devices/0000:04:00.0/driver", "../../drivers/mlx5_core");
	host_read(host);
	host_find_none(host);
	assert_found(FINDING_FAIL, "verbs",
		     "none in /sys/class/infiniband); modules not loaded: mlx5_ib (card 0000:03:00.0), hns-roce-hw-v2 "
		     "(card eth1)");
	assert_string_equal(remedy_of("verbs"),
			    CONTAINED("modprobe -a mlx5_ib hns-roce-hw-v2; without a device: --transport soft"));
	/* Only some functions of these drivers have RDMA, with an auxiliary device. */
	add("sys/module/hns_roce_hw_v2/refcnt", "0\n");
	add(module_file(name, "modules.builtin"), "kernel/drivers/infiniband/hw/mlx5/mlx5_ib.ko\n");
	add("sys/devices/0000:05:00.0/i40e.iwarp.0/uevent", "");
	add("sys/devices/0000:05:00.0/net/eth2/mtu", "1500\n");
	snprintf(path, sizeof(path), "%s/sys/devices/0000:05:00.0/i40e.iwarp.0", tree.root);
	add_link("sys/bus/auxiliary/devices/i40e.iwarp.0", path);
	host_find_none(host);
	assert_found(FINDING_FAIL, "verbs", "none in /sys/class/infiniband); modules not loaded: irdma (card eth2)");
	host->facts &= ~(unsigned)(FACT_UBUNTU | FACT_CONTAINER);
	host_find_none(host);
	assert_non_null(strstr(remedy_of("verbs"), ": install its package, or boot another kernel; without a "));
	/* Ubuntu has modules missing in modules.dep in a separate package. */
	host->facts = (host->facts | FACT_UBUNTU) & ~(unsigned)FACT_CONTAINER;
	host_find_none(host);
	assert_non_null(strstr(remedy_of("verbs"), "as root: apt install linux-modules-extra-"));
	assert_non_null(strstr(remedy_of("verbs"), "; modprobe -a irdma; without a device: "));
	add(module_file(name, "modules.dep"), "kernel/drivers/infiniband/hw/irdma/irdma.ko.zst:\n");
	host_find_none(host);
	assert_null(strstr(remedy_of("verbs"), "linux-modules-extra"));
	add("sys/module/irdma/refcnt", "0\n");
	host_find_none(host);
	assert_null(strstr(remedy_of("verbs"), "modprobe"));
}

/* Its module is loaded, and has made no device: the firmware is too old, or RoCE is off. */
TEST(card_without_device, set_up, tear_down)
{
	struct host *host = &bench.doctor.host;

	add("sys/class/misc/null/dev", "1:3\n");
	add("sys/module/rdma_rxe/refcnt", "1\n");
	add("sys/module/mlx4_ib/refcnt", "0\n");
	host_read(host);
	host_find_none(host);
	assert_found(FINDING_FAIL, "verbs", "no RDMA device on this machine (none in /sys/class/infiniband)");
	assert_null(strstr(remedy_of("verbs"), "journalctl"));
	add_link("sys/bus/pci/devices/0000:0d:00.0/driver", "../../drivers/mlx4_core");
	host_find_none(host);
	assert_found(FINDING_FAIL, "verbs",
		     "none in /sys/class/infiniband); mlx4_ib is loaded, and the card 0000:0d:00.0 has none");
	assert_non_null(
		strstr(remedy_of("verbs"), "see the kernel's log: journalctl -k -g '\\b(mlx4_core|mlx4_ib)'; "));
	assert_null(strstr(remedy_of("verbs"), "rdma link add"));
	/* Another network namespace may have its device. */
	host->facts |= FACT_EXCLUSIVE;
	host_find_none(host);
	assert_null(strstr(remedy_of("verbs"), "journalctl"));
}

/* A card that a virtual machine has: no module of this host is missing. Other cards do not count, nor other devices. */
TEST(card_of_virtual_machine, set_up, tear_down)
{
	struct host *host = &bench.doctor.host;

	add("sys/class/misc/null/dev", "1:3\n");
	add_link("sys/bus/pci/devices/0000:01:00.0/driver", "../../drivers/vfio-pci");
	add("sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n");
	add_link("sys/bus/pci/devices/0000:02:00.0/driver", "../../drivers/igb");
	add("sys/bus/pci/devices/0000:02:00.0/class", "0x020000\n");
	host_read(host);
	host_find_none(host);
	assert_found(FINDING_FAIL, "verbs", "no RDMA device on this machine (none in /sys/class/infiniband)");
	assert_false(has_finding(FINDING_FAIL, "verbs", "none in /sys/class/infiniband);"));
	add("sys/bus/pci/devices/0000:03:00.0/class", "0x020700\n");
	host_find_none(host);
	assert_found(FINDING_FAIL, "verbs",
		     "none in /sys/class/infiniband); the network card 0000:03:00.0 has no driver");
	assert_non_null(strstr(remedy_of("verbs"), "modprobe $(cat /sys/bus/pci/devices/0000:03:00.0/modalias); if "));
	add_link("sys/bus/pci/devices/0000:03:00.0/driver", "../../drivers/mlx5_vfio_pci");
	host_find_none(host);
	assert_found(FINDING_FAIL, "verbs",
		     "none in /sys/class/infiniband); mlx5_vfio_pci holds the network card 0000:03:00.0, for a virtual "
		     "machine or DPDK: no RDMA device here");
	assert_non_null(
		strstr(remedy_of("verbs"),
		       "as root on the host: D=0000:03:00.0; cd /sys/bus/pci/devices/$D && echo >driver_override; "
		       "echo $D >driver/unbind; echo $D >/sys/bus/pci/drivers_probe"));
	assert_null(strstr(remedy_of("verbs"), "rdma link add"));
	/* Beside a device, too: others of its functions, or another card's. */
	forget_findings();
	host_find_held(host);
	assert_null(bench.doctor.findings.first);
	host->has_devices = true;
	add_link("sys/bus/pci/devices/0000:03:00.1/driver", "../../drivers/vfio-pci");
	add("sys/bus/pci/devices/0000:03:00.1/class", "0x020700\n");
	host_find_held(host);
	assert_found(FINDING_READ, "pci",
		     "mlx5_vfio_pci holds the network card 0000:03:00.0 and 1 more, for a virtual machine or DPDK: ");
	assert_non_null(strstr(remedy_of("pci"), "D=0000:03:00.0; cd "));
	host->has_devices = false;
	add_link("sys/bus/pci/devices/0000:04:00.0/driver", "../../drivers/mlx5_core");
	host_find_none(host);
	assert_found(FINDING_FAIL, "verbs",
		     "none in /sys/class/infiniband); modules not loaded: mlx5_ib (card 0000:04:00.0)");
}

/* The kernel was updated, and its package has taken the running one's modules away. */
TEST(modules_of_another_kernel, set_up, tear_down)
{
	struct host *host = &bench.doctor.host;
	const char *boot = "boot the kernel of /lib/modules: the running one has no modules there";

	add("sys/module/ext4/refcnt", "1\n");
	add("sys/class/misc/null/dev", "1:3\n");
	add("lib/modules/rdma_rxe.ko", "");
	add_link("sys/bus/pci/devices/0000:03:00.0/driver", "../../drivers/mlx5_core");
	host_read(host);
	host->facts &= ~(unsigned)FACT_CONTAINER;
	host_find_modules(host);
	assert_string_not_equal(remedy_of("modules"), boot);
	add("lib/modules/99.1.0-other/modules.dep", "kernel/drivers/infiniband/core/ib_core.ko:\n");
	host_find_modules(host);
	assert_string_equal(remedy_of("modules"), boot);
	host_find_none(host);
	assert_memory_equal(remedy_of("verbs"), boot, strlen(boot));
	add("sys/module/ib_core/refcnt", "1\n");
	host_find_modules(host);
	assert_string_equal(remedy_of("modules"), boot);
}

/* A kernel with only a part of RDMA; then its other modules are installed. */
TEST(modules_that_this_kernel_lacks, set_up, tear_down)
{
	struct host *host = &bench.doctor.host;
	char name[256];

	add("sys/class/misc/null/dev", "1:3\n");
	add("sys/module/ib_core/refcnt", "1\n");
	add(module_file(name, "modules.dep"), "kernel/drivers/infiniband/core/ib_core.ko:\n");
	host_read(host);
	host->facts = FACT_MODULES;
	host_find_modules(host);
	assert_non_null(strstr(remedy_of("modules"), "not in /lib/modules/"));
	add(module_file(name, "modules.dep"), "kernel/drivers/infiniband/core/rdma_ucm.ko:\n");
	host_find_modules(host);
	assert_non_null(strstr(remedy_of("modules"), "modprobe -a "));
}

#define MODPROBE "modprobe -a ib_core ib_uverbs rdma_cm rdma_ucm"

/* The files of modprobe.d that the first one hides, or that have another name, do not count; nor do those of a
 * container. */
TEST(module_kept_out, set_up, tear_down)
{
	static const struct {
		const char *file, *text, *remedy;
	} rows[] = {
		{ "etc/modprobe.d/a.conf", "# no RDMA\ninstall rdma-cm /bin/false\n",
		  "delete /etc/modprobe.d/a.conf:2 (install rdma-cm /bin/false), then: " MODPROBE },
		{ "usr/lib/modprobe.d/a.conf", "blacklist ib_core\n",
		  "delete /etc/modprobe.d/a.conf:2 (install rdma-cm /bin/false), then: " MODPROBE },
		{ "etc/modprobe.d/a.conf", "install ib_core /sbin/modprobe -i ib_core; logger loaded\n", MODPROBE },
		{ "etc/modprobe.d/b.conf.old", "blacklist ib_core\n", MODPROBE },
		{ "lib/modprobe.d/c.conf", "blacklist ib_core_x\noptions ib_core a=1\n\tblacklist  ib_uverbs # why\n",
		  "delete /lib/modprobe.d/c.conf:3 (\tblacklist  ib_uverbs # why), then: " MODPROBE },
		{ "etc/modprobe.d/d.conf", "blacklist ib_core\nblacklist rdma_ucm\n",
		  "delete /etc/modprobe.d/d.conf:1 (blacklist ib_core), /etc/modprobe.d/d.conf:2 (blacklist rdma_ucm), "
		  "/lib/modprobe.d/c.conf:3 (\tblacklist  ib_uverbs # why), then: " MODPROBE },
	};
	struct host *host = &bench.doctor.host;
	char expected[256];

	add("sys/class/misc/null/dev", "1:3\n");
	for (size_t i = 0; i < LENGTH(rows); i++) {
		add(rows[i].file, rows[i].text);
		host->facts = FACT_MODULES;
		host_find_modules(host);
		snprintf(expected, sizeof(expected), "%s", rows[i].remedy);
		for (char *tab = expected; (tab = strchr(tab, '\t'));)
			*tab = '?';
		assert_string_equal(remedy_of("modules"), expected);
	}
	host->facts |= FACT_CONTAINER;
	host_find_modules(host);
	assert_string_equal(remedy_of("modules"), "on the host: " MODPROBE);
}

#define RXE                                                                                                            \
	"software device: rdma link add rxe0 type rxe netdev eth0 (before Linux 5.17 also: modprobe "                  \
	"rdma_rxe; echo eth0 >/sys/module/rdma_rxe/parameters/add); if it fails: journalctl -k -g rdma_rxe; without "  \
	"a device: --transport soft"

/* The command of the remedy may have failed: the kernel's log says why. */
TEST(failed_software_device, set_up, tear_down)
{
	struct host *host = &bench.doctor.host;

	add("sys/class/misc/null/dev", "1:3\n");
	add("dev/kmsg", "6,1,10,-;rdma_rxe: loaded\n");
	host_read(host);
	host_find_none(host);
	assert_false(has_finding(FINDING_FAIL, "verbs", "log"));
	add("dev/kmsg", "4,1,10,-;rdma_rxe: first\n SUBSYSTEM=x\n3,2,20,-;rdma_rxe: failed to allocate crc algorithm "
			"err:-2\n6,3,30,-;rdma_rxe: loaded\n3,4,40,-;other: rdma_rxe: no\n");
	host_find_none(host);
	assert_found(FINDING_FAIL, "verbs",
		     "none in /sys/class/infiniband); the kernel's log has: rdma_rxe: failed to allocate crc algorithm "
		     "err:-2");
}

/* The same before a card's module, and before that of a software device. */
TEST(device_module_kept_out, set_up, tear_down)
{
	struct host *host = &bench.doctor.host;

	add("sys/module/ext4/refcnt", "1\n");
	add("sys/class/misc/null/dev", "1:3\n");
	add("etc/modprobe.d/a.conf", "install rdma_rxe /bin/true\nblacklist mlx5_ib\n");
	host_read(host);
	host->facts = FACT_MODULES | FACT_ADMIN | FACT_RXE | FACT_FIRST_NETWORK;
	host_find_none(host);
	assert_string_equal(remedy_of("verbs"), "without a device: --transport soft");
	tree.has_eth0 = true;
	host_find_none(host);
	assert_string_equal(remedy_of("verbs"), "delete /etc/modprobe.d/a.conf:1 (install rdma_rxe /bin/true), "
						"then: " RXE);
	add("sys/module/rdma_rxe/refcnt", "1\n");
	host_find_none(host);
	assert_string_equal(remedy_of("verbs"), RXE);
	add_link("sys/bus/pci/devices/0000:03:00.0/driver", "../../drivers/mlx5_core");
	host_find_none(host);
	assert_string_equal(remedy_of("verbs"),
			    "delete /etc/modprobe.d/a.conf:2 (blacklist mlx5_ib), then: modprobe -a mlx5_ib; "
			    "without a device: --transport soft");
}

/* A module in modules.dep can be loaded, also if the line before it is longer than the buffer. */
TEST(module_to_load, set_up, tear_down)
{
	char name[256];
	char index[4 * SYSFS_PATH_SIZE];

	memset(index, 'x', sizeof(index));
	strcpy(index + sizeof(index) - 100, "\nupdates/dkms/ib_core.ko.zst: kernel/net/y.ko.zst\n");
	add("sys/module/ext4/refcnt", "1\n");
	add("sys/class/misc/null/dev", "1:3\n");
	add(module_file(name, "modules.dep"), index);
	kernel_check(&bench.doctor);
	assert_found(FINDING_WARN, "modules", "not loaded: ib_core");
	assert_string_equal(remedy_of("modules"), CONTAINED("modprobe -a ib_core ib_uverbs rdma_cm rdma_ucm"));
}

TEST(missing_module, set_up, tear_down)
{
	add_card();
	add("sys/class/misc/null/dev", "1:3\n");
	run_check(kernel_check);
	assert_found(FINDING_FAIL, "modules", "rdma_cm rdma_ucm");
	assert_found(FINDING_READ, "modules", "ib_core, ib_uverbs");
}

/* InfiniBand's interfaces need a module, too: one command loads all. Alone it is no failure, as GIDs are addresses. */
TEST(missing_module_of_interfaces, set_up, tear_down)
{
	add_card();
	add("sys/class/misc/null/dev", "1:3\n");
	add("sys/module/ib_uverbs/refcnt", "1\n");
	run_check(kernel_check);
	assert_false(has_finding(FINDING_FAIL, "modules", "ib_ipoib"));
	add(PORT "link_layer", "InfiniBand\n");
	run_check(kernel_check);
	assert_found(FINDING_FAIL, "modules", "not loaded: rdma_cm rdma_ucm ib_ipoib");
	assert_string_equal(remedy_of("modules"), CONTAINED("modprobe -a rdma_cm rdma_ucm ib_ipoib"));
	forget_findings();
	add("sys/class/misc/rdma_cm/dev", "10:124\n");
	run_check(kernel_check);
	assert_false(has_finding(FINDING_FAIL, "modules", "ib_ipoib"));
}

/* The last loaded module comes first. Only software devices are waited for. */
TEST(module_order, set_up, tear_down)
{
	add_card();
	add("proc/modules", "ib_uverbs 1 2 rdma_ucm, Live 0x0\nrdma_cm 1 1 rdma_ucm, Live 0x0\n");
	for (unsigned i = 0; i < 3; i++) {
		run_check(kernel_check);
		assert_int_equal(has_finding(FINDING_WARN, "modules", "ib_uverbs was loaded after rdma_cm"), i == 1);
		forget_findings();
		if (i)
			add("proc/modules", "rdma_cm 1 0 - Live 0x0\nib_uverbs 1 2 rdma_ucm, Live 0x0\n");
		else
			add("sys/class/infiniband/rxe0/parent", "d0\n");
	}
}

TEST(exclusive, set_up, tear_down)
{
	add("sys/module/ib_core/parameters/netns_mode", "N\n");
	host_read(&bench.doctor.host);
	kernel_check(&bench.doctor);
	assert_found(FINDING_WARN, "netns", "exclusive");
}

/* One device file is missing, of another kind, another number, or right: /dev/null is one that can be opened. */
TEST(files, set_up, tear_down)
{
	add_card();
	add("sys/class/misc/rdma_cm/dev", "10:124\n");
	run_check(kernel_check);
	assert_found(FINDING_FAIL, "file", "/dev/infiniband/uverbs7 cannot be used (mlx5_0): No such");
	assert_true(bench.doctor.devices->cannot_be_opened);
	assert_found(FINDING_FAIL, "file", "rdma_cm cannot be used (connections): No such file");
	assert_non_null(strstr(remedy_of("file"), "/dev/infiniband/rdma_cm"));
	add("dev/infiniband/uverbs7", "");
	add_link("dev/infiniband/rdma_cm", "/dev/null");
	kernel_check(&bench.doctor);
	assert_found(FINDING_FAIL, "file", "uverbs7 cannot be used (mlx5_0): it is not a device file");
	assert_found(FINDING_FAIL, "file", "rdma_cm cannot be used (connections): its number 1:3 is");
	add_link("dev/infiniband/uverbs7", "/dev/null");
	add("sys/class/misc/rdma_cm/dev", "1:3\n");
	run_check(kernel_check);
	assert_found(FINDING_OK, "file", "uverbs7 can be opened (mlx5_0)");
	assert_found(FINDING_OK, "file", "rdma_cm can be opened (connections)");
	assert_false(bench.doctor.devices->cannot_be_opened);
}

static bool lists_none(const char *file)
{
	return false;
}

/* libibverbs lists no device without a provider: there is none, or one of another version. */
TEST(provider, set_up, tear_down)
{
	char maps[256];

	add_card();
	add("sys/class/infiniband_verbs/uverbs7/dev", "1:3\n");
	add_link("dev/infiniband/uverbs7", "/dev/null");
	read_devices();
	bench.doctor.host.is_listed = lists_none;
	snprintf(maps, sizeof(maps), "55d0-55d1 r-xp 0 fe:00 1 /usr/bin/rping\n7f00-7f01 r-xp 0 fe:00 2   %s/lib/%s\n",
		 tree.root, "libibverbs.so.1.14.44.0");
	add("proc/self/maps", maps);
	kernel_check(&bench.doctor);
	assert_found(FINDING_FAIL, "device", "mlx5_0 has no provider library");
	assert_string_equal(remedy_of("device"),
			    "install its package: ibverbs-providers (Debian), libibverbs (Fedora)");
	add("lib/libibverbs/librxe-rdmav34.so", "");
	add("lib/libibverbs/libmlx5-rdmav59.so", "");
	kernel_check(&bench.doctor);
	assert_found(FINDING_FAIL, "device",
		     "mlx5_0 has no provider library: libibverbs does not load libmlx5-rdmav59.so");
	assert_true(bench.doctor.devices->cannot_be_opened);
}

/* A device that libibverbs does not list, although it has loaded the library. */
static void add_unlisted(const char *device, const char *driver, const char *library)
{
	char path[128], text[512];

	snprintf(path, sizeof(path), "sys/class/infiniband/%s/node_type", device);
	add(path, "1: CA\n");
	snprintf(path, sizeof(path), "sys/class/infiniband/%s/device/driver", device);
	snprintf(text, sizeof(text), "../../../../bus/pci/drivers/%s", driver);
	add_link(path, text);
	add("sys/class/infiniband_verbs/uverbs7/ibdev", device);
	add("sys/class/infiniband_verbs/uverbs7/dev", "1:3\n");
	add_link("dev/infiniband/uverbs7", "/dev/null");
	read_devices();
	bench.doctor.host.is_listed = lists_none;
	snprintf(text, sizeof(text),
		 "7f00-7f01 r-xp 0 fe:00 2   %s/lib/libibverbs.so.1\n"
		 "7f02-7f03 r-xp 0 fe:00 3   %s/lib/%s\n",
		 tree.root, tree.root, library);
	add("proc/self/maps", text);
}

/* Nor one whose loaded provider does not support the kernel's driver: there is nothing to install. */
TEST(provider_of_another_version, set_up, tear_down)
{
	add("lib/libibverbs/libbnxt_re-rdmav34.so", "");
	add("lib/libibverbs/libbnxt_re-rdmav59.so", "");
	add_unlisted("rocep1s0", "bnxt_en", "libibverbs/libbnxt_re-rdmav34.so");
	kernel_check(&bench.doctor);
	assert_found(FINDING_FAIL, "device",
		     "rocep1s0: libbnxt_re-rdmav34.so does not support its kernel driver: their versions differ");
	assert_null(strstr(remedy_of("device"), "ibverbs-providers"));
	add("sys/class/infiniband_verbs/uverbs7/abi_version", "6\n");
	kernel_check(&bench.doctor);
	assert_found(FINDING_FAIL, "device", "kernel driver (abi_version 6): their versions differ");
}

/* The kernel's map has the name of the file that the provider's link leads to. */
TEST(provider_is_a_link, set_up, tear_down)
{
	add_link("lib/libibverbs/libmlx5-rdmav34.so", "../libmlx5.so.1.24");
	add_unlisted("mlx5_0", "mlx5_core", "libmlx5.so.1.24");
	kernel_check(&bench.doctor);
	assert_found(FINDING_FAIL, "device", "mlx5_0: libmlx5-rdmav34.so does not support its kernel driver");
}

/* Most modules of Ubuntu's kernels are in a separate package. */
TEST(ubuntu, set_up, tear_down)
{
	char remedy[256];
	struct utsname names;

	add("proc/version", "Linux version 6.8.0-1021-aws (buildd@lcy02) (x86_64-linux-gnu-gcc-13 (Ubuntu 13.2.0)\n");
	add("sys/module/ext4/refcnt", "1\n");
	add("sys/class/misc/null/dev", "1:3\n");
	host_read(&bench.doctor.host);
	kernel_check(&bench.doctor);
	assert_int_equal(uname(&names), 0);
	snprintf(remedy, sizeof(remedy), "as root: apt install linux-modules-extra-%s", names.release);
	if (!privileges_in_container())
		assert_string_equal(remedy_of("modules"), remedy);
}

/* The socket on the any address is the kernel's if its module is loaded. A process may hold the port on one address. */
TEST(rxe_elsewhere, set_up, tear_down)
{
	struct doctor *doctor = &bench.doctor;

	add_card();
	add("sys/class/infiniband/rxe0/parent", "lo\n");
	add("sys/class/infiniband/rxe0/ports/1/gids/0", "0000:0000:0000:0000:0000:ffff:7f00:0001\n");
	add("sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0", "lo\n");
	add("sys/class/infiniband/rxe0/ports/1/link_layer", "Ethernet\n");
	read_devices();
	devices_find_rxe(doctor);
	assert_false(doctor->rxe_holds_port || doctor->devices->next->elsewhere);
	add("proc/self/net/udp", UDP_HEAD UDP_LINE("0100007F", "1234"));
	devices_find_rxe(doctor);
	assert_false(doctor->rxe_holds_port || doctor->devices->elsewhere);
	assert_true(doctor->devices->next->elsewhere);
	add("proc/self/net/udp", UDP_HEAD UDP_LINE("0100007F", "1234") UDP_LINE("00000000", "0"));
	devices_find_rxe(doctor);
	assert_false(doctor->rxe_holds_port || doctor->devices->next->elsewhere);
	add("sys/module/rdma_rxe/refcnt", "1\n");
	devices_find_rxe(doctor);
	assert_true(doctor->rxe_holds_port);
}

/*
 * In another user namespace than the initial one, where a child has all capabilities, the limit applies despite
 * CAP_IPC_LOCK.
 */
TEST(locked_memory, set_up, tear_down)
{
	struct rlimit kept, few;
	pid_t child;

	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &kept), 0);
	few = kept;
	few.rlim_cur = 65536;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &few), 0);
	kernel_check(&bench.doctor);
	if (privileges_have(CAP_IPC_LOCK) && privileges_user_namespace_is_initial())
		assert_found(FINDING_READ, "memlock", "any amount of memory may be locked");
	else
		assert_found(FINDING_WARN, "memlock", "at most 64 KiB of memory may be locked");
	child = fork();
	if (!child) {
		if (unshare(CLONE_NEWUSER))
			_exit(0);
		kernel_check(&bench.doctor);
		_exit(privileges_have(CAP_IPC_LOCK) && has_finding(FINDING_WARN, "memlock", "at most 64 KiB") ? 0 : 1);
	}
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &kept), 0);
	assert_int_equal(exit_status(child), 0);
}

/* limits.conf(5): a soft limit alone does not count, and a file of limits.d does. */
static bool limits_are_read(void)
{
	struct rlimit few = { .rlim_cur = 65536, .rlim_max = 65536 };
	const char *later = "limits.conf applies only to new logins";

	tree.has_limits = true;
	if (setrlimit(RLIMIT_MEMLOCK, &few) || unshare(CLONE_NEWUSER))
		return true;
	add("etc/security/limits.conf", "#* hard memlock unlimited\n* soft memlock unlimited\n");
	kernel_check(&bench.doctor);
	if (!strncmp(remedy_of("memlock"), later, strlen(later)))
		return false;
	add("etc/security/limits.d/90-rdma.conf", " *   -  memlock infinity\n");
	kernel_check(&bench.doctor);
	return !strncmp(remedy_of("memlock"), later, strlen(later));
}

TEST(limits_of_logins, set_up, tear_down)
{
	pid_t child = fork();

	if (!child)
		_exit(!limits_are_read());
	assert_int_equal(exit_status(child), 0);
}

/* Facts about an interface and its port. lo exists in every namespace. */
TEST(interface_facts, set_up, tear_down)
{
	static const struct {
		const char *parent, *state, *gid, *netdev;
		unsigned facts;
	} rows[] = {
		{ "none9", "1: DOWN\n", NULL, NULL, 0 },
		{ "lo", "4: ACTIVE\n", NULL, NULL, FACT_HERE | FACT_UP | FACT_LINK | FACT_ADDRESS },
		{ "lo", "4: ACTIVE\n", "0000:0000:0000:0000:0000:ffff:7f00:0001\n", "lo\n",
		  FACT_HERE | FACT_UP | FACT_LINK | FACT_ADDRESS },
		{ "lo", "4: ACTIVE\n", "fe80:0000:0000:0000:0200:00ff:fe00:0000\n", "lo\n",
		  FACT_HERE | FACT_UP | FACT_LINK | FACT_ADDRESS },
		/* The port's interface has other addresses. */
		{ "lo", "4: ACTIVE\n", "0000:0000:0000:0000:0000:ffff:0a00:0001\n", "lo\n", FACT_NAMESAKE },
		{ "lo", "4: ACTIVE\n", "fe80:0000:0000:0000:0200:00ff:fe00:0001\n", "lo\n", FACT_NAMESAKE },
	};
	struct device *devices;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		add("sys/class/infiniband/rxe0/parent", rows[i].parent);
		add("sys/class/infiniband/rxe0/ports/1/state", rows[i].state);
		add("sys/class/infiniband/rxe0/ports/1/link_layer", "Ethernet\n");
		if (rows[i].gid) {
			add("sys/class/infiniband/rxe0/ports/1/gids/0", rows[i].gid);
			add("sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0", rows[i].netdev);
		}
		devices = read_devices();
		assert_int_equal(devices_facts(devices->ports), rows[i].facts);
	}
	add("sys/class/infiniband/rxe0/ports/1/gids/0", rows[2].gid);
	tree.in_vrf = true;
	devices = read_devices();
	assert_int_equal(devices_facts(devices->ports), rows[2].facts | FACT_VRF);
	strcpy(devices->addresses, "fe80::1%lo");
	devices->address_count = 1;
	route_report(&bench.doctor);
	assert_found(FINDING_OK, "address", "fe80::1%lo leads to rxe0");
	devices->link_local = true;
	route_report(&bench.doctor);
	assert_found(FINDING_WARN, "address",
		     "fe80::1%lo leads to rxe0; other addresses of lo do not: it belongs to a VRF");
}

/* A GID names the address, which is far behind in the list of all. */
TEST(interface_among_many_addresses, set_up, tear_down)
{
	add("sys/class/infiniband/rxe0/parent", "eth0");
	add("sys/class/infiniband/rxe0/ports/1/link_layer", "Ethernet\n");
	add("sys/class/infiniband/rxe0/ports/1/gids/0", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
	add("sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0", "eth0\n");
	tree.has_eth0 = tree.has_crowd = true;
	tree.facts = INTERFACE_HERE;
	assert_int_equal(devices_facts(read_devices()->ports), FACT_HERE);
	tree.in_vrf = true;
	assert_int_equal(devices_facts(read_devices()->ports), FACT_HERE | FACT_VRF);
}

/* Other networks do not reach it, nor does IPv4. */
TEST(only_a_link_local_address, set_up, tear_down)
{
	struct device *device;

	add("sys/class/infiniband/rxe0/parent", "eth0");
	add("sys/class/infiniband/rxe0/ports/1/link_layer", "Ethernet\n");
	tree.has_eth0 = true;
	device = read_devices();
	strcpy(device->addresses, "fe80::1%eth0");
	device->address_count = 1;
	device->roce_v2 = device->link_local = true;
	bench.doctor.host.facts = FACT_ADMIN;
	tree.facts = INTERFACE_HERE | INTERFACE_ADDRESS;
	route_report(&bench.doctor);
	assert_found(FINDING_OK, "address", "fe80::1%eth0 leads to rxe0 over RoCE v2");
	tree.facts = INTERFACE_HERE;
	route_report(&bench.doctor);
	assert_found(FINDING_WARN, "address",
		     "fe80::1%eth0 leads to rxe0 over RoCE v2, for this link only: eth0 has no other address");
	assert_string_equal(remedy_of("address"), "a client needs its own interface: fe80::1%INTERFACE; or here: ip "
						  "address add ADDRESS/BITS dev eth0");
	bench.doctor.host.facts = 0;
	route_report(&bench.doctor);
	assert_string_equal(remedy_of("address"), "a client needs its own interface: fe80::1%INTERFACE");
}

/* librdmacm knows devices by their GUID, and finds none without. */
TEST(node_without_guid, set_up, tear_down)
{
	add_card();
	add(DEVICE "node_guid", "0000:0000:0000:0000\n");
	run_check(route_report);
	assert_found(FINDING_FAIL, "address", "no address of this host leads to mlx5_0: its node GUID is 0");
	assert_non_null(strstr(remedy_of("address"), "on the host: ip link set PF vf N mac MAC"));
	bench.doctor.devices->address_count = 1;
	route_report(&bench.doctor);
	assert_int_equal(bench.doctor.findings.counts[FINDING_FAIL], 1);
}

/* A container's kernel may know RoCE's interfaces only in its own network namespace. lo exists in every one. */
TEST(network_of_an_old_kernel, set_up, tear_down)
{
	static const char *const others[] = { "sys/module/ib_core/parameters/netns_mode",
					      "proc/sys/net/core/netdev_max_backlog" };

	add_card();
	add(PORT "gid_attrs/ndevs/1", "lo\n");
	add(PORT "gids/1", "0000:0000:0000:0000:0000:ffff:7f00:0001\n");
	add("sys/module/ib_core/refcnt", "1\n");
	add("proc/sys/net/core/somaxconn", "4096\n");
	run_check(route_report);
	assert_true(
		has_finding(FINDING_FAIL, "address",
			    "leads to mlx5_0: before Linux 4.19 RoCE connects only in the host's network namespace"));
	assert_string_equal(remedy_of("address"), "start the container with --network host, or use a newer kernel");
	assert_false(bench.doctor.host.facts & FACT_FIRST_NETWORK);
	for (size_t i = 0; i < LENGTH(others); i++) {
		add(others[i], "Y\n");
		run_check(route_report);
		assert_string_equal(remedy_of("address"), "");
	}
	assert_true(bench.doctor.host.facts & FACT_FIRST_NETWORK);
}

/* The ports of a card without GIDs have their own interfaces; GIDs name a bond instead of its members. */
TEST(interface_of_port, set_up, tear_down)
{
	struct device *devices;

	add_card();
	add(DEVICE "device/net/eth2/dev_port", "0\n");
	add(DEVICE "device/net/eth3/dev_port", "1\n");
	add(DEVICE "ports/2/state", "1: DOWN\n");
	add(PORT "gid_attrs/ndevs/1", "bond0\n");
	devices = read_devices();
	assert_string_equal(devices->ports[0].netdev, "bond0");
	assert_string_equal(devices->ports[1].netdev, "eth3");
	devices_check(&bench.doctor);
	assert_found(FINDING_READ, "device", "on bond0, eth3, firmware");
}

/* One interface of a card with two ports is one port's. */
TEST(interface_of_one_port, set_up, tear_down)
{
	struct device *device;

	add("sys/class/infiniband/mlx4_1/ports/1/state", "4: ACTIVE\n");
	add("sys/class/infiniband/mlx4_1/ports/2/state", "1: DOWN\n");
	add("sys/class/infiniband/mlx4_1/device/net/ib0/dev_port", "0\n");
	device = read_devices();
	assert_string_equal(device->ports[0].netdev, "ib0");
	assert_string_equal(device->ports[1].netdev, "");
	add("sys/class/infiniband/mlx5_1/ports/1/state", "4: ACTIVE\n");
	add("sys/class/infiniband/mlx5_1/device/net/ib1/dev_port", "1\n");
	assert_string_equal(read_devices()->next->ports[0].netdev, "ib1");
}

/* It does not make a device usable. */
TEST(port_that_is_down, set_up, tear_down)
{
	struct transport verbs = { .spin = 0 };

	add_card();
	add(PORT "state", "2: INIT\n");
	add(PORT "link_layer", "InfiniBand\n");
	run_check(devices_check);
	assert_found(FINDING_WARN, "port", "mlx5_0/1: INIT");
	assert_non_null(strstr(remedy_of("port"), "opensm -g 0x"));
	forget_findings();
	add(PORT "gids/1", "0000:0000:0000:0000:0000:0000:0000:0000\n");
	add(PORT "gids/2", "0000:0000:0000:0000:0000:0000:0000:0000\n");
	run_check(devices_check);
	assert_non_null(strstr(remedy_of("port"), "opensm -g GUID"));
	add(PORT "state", "1: DOWN\n");
	run_check(devices_check);
	assert_found(FINDING_WARN, "port", "mlx5_0/1: DOWN");
	bench.doctor.verbs_selected = true;
	bench.doctor.verbs = &verbs;
	bench.run.loop = loop_create();
	doctor_command.interrupt(&bench.doctor, INTERRUPTION_DEADLINE);
	loop_destroy(bench.run.loop);
	assert_non_null(strstr(bench.run.verdict, "ended early, after "));
	assert_non_null(strstr(bench.run.verdict, "; no usable RDMA device"));
}

/* Before the devices are read nothing is known of them, or of failures. */
TEST(ended_early, set_up, tear_down)
{
	bench.doctor.verbs_selected = true;
	bench.run.loop = loop_create();
	doctor_command.interrupt(&bench.doctor, INTERRUPTION_DEADLINE);
	loop_destroy(bench.run.loop);
	assert_string_equal(bench.run.verdict, "ended early, after 0 findings");
}

#define PCIE(name) DEVICE "device/" name

static void set_link(const char *now_speed, const char *now_width, const char *speed, const char *width)
{
	add(PCIE("current_link_speed"), now_speed);
	add(PCIE("current_link_width"), now_width);
	add(PCIE("max_link_speed"), speed);
	add(PCIE("max_link_width"), width);
	add(PORT "rate", "40 Gb/sec (4X QDR)\n");
	run_check(slow_check);
}

/* A PCIe link that is less than the card's own is a warning if its port has more than the link. */
TEST(slow_link, set_up, tear_down)
{
	static const struct {
		const char *speed, *width; /* of 8 GT/s, x8 */
		enum finding_status status;
		const char *text;
	} rows[] = {
		{ "8 GT/s", "8", FINDING_STATUSES, "" },
		{ "8.0 GT/s PCIe", "4", FINDING_WARN,
		  "mlx5_0: PCIe link 8.0 GT/s x4 (32 Gbit/s), of 8.0 GT/s x8 (64 Gbit/s) that" },
		{ "5.0 GT/s PCIe", "8", FINDING_WARN, "mlx5_0: PCIe link 5.0 GT/s x8 (32 Gbit/s), of " },
		{ "2.5 GT/s PCIe", "16", FINDING_WARN, "mlx5_0: PCIe link 2.5 GT/s x16 (32 Gbit/s), of " },
		{ "8.0 GT/s PCIe", "6", FINDING_READ, "mlx5_0: PCIe link 8.0 GT/s x6 (48 Gbit/s), of " },
		{ "Unknown", "0", FINDING_STATUSES, "" }, /* a virtual function */
		/* One of two functions of a port. */
		{ "16.0 GT/s PCIe", "2", FINDING_READ,
		  "mlx5_0: PCIe link 16.0 GT/s x2 (32 Gbit/s), of 16.0 GT/s x2 (32 Gbit/s) that the card can do; "
		  "its ports are faster: another PCIe function" },
		/* The card can do more than its port does, as far as its link shows. */
		{ "8.0 GT/s", "16", FINDING_READ, "mlx5_0: PCIe link 8.0 GT/s x16 (128 Gbit/s), its ports have 40: " },
	};

	add_card();
	for (size_t i = 0; i < LENGTH(rows); i++) {
		bool half = !strcmp(rows[i].width, "2");

		set_link(rows[i].speed, rows[i].width, half ? rows[i].speed : "8.0 GT/s PCIe\n", half ? "2" : "8\n");
		assert_int_equal(!findings_count(&bench.doctor.findings), rows[i].status == FINDING_STATUSES);
		if (rows[i].status != FINDING_STATUSES)
			assert_found(rows[i].status, "pcie", rows[i].text);
		forget_findings();
	}
}

/* No processor that this process may use; one suffices. */
TEST(slow_node, set_up, tear_down)
{
	static const struct {
		const char *node, *processors;
		bool warns;
	} rows[] = {
		{ "1\n", "1020,1022-1023\n", true }, { "1\n", "1020,0-1019\n", false }, { "1\n", "\n", false },
		{ "-1\n", "1020\n", false },	     { "2\n", "1020\n", false },
	};

	add_card();
	for (size_t i = 0; i < LENGTH(rows); i++) {
		add(PCIE("numa_node"), rows[i].node);
		add("sys/devices/system/node/node1/cpulist", rows[i].processors);
		run_check(slow_check);
		assert_int_equal(has_finding(FINDING_WARN, "numa",
					     "mlx5_0 is on NUMA node 1, but this process may not use its processors"),
				 rows[i].warns);
		if (rows[i].warns)
			assert_non_null(strstr(remedy_of("numa"), "taskset -c 1020,1022-1023 "));
		forget_findings();
	}
}

/* A driver's own governor of that name is different. */
TEST(slow_processor, set_up, tear_down)
{
	static const struct {
		const char *governor, *driver, *frequency;
		bool warns;
	} rows[] = {
		{ "powersave\n", "acpi-cpufreq\n", "800000\n", true },
		{ "powersave\n", "intel_cpufreq\n", "800000\n", true },
		{ "powersave\n", "amd-pstate\n", "800000\n", true },
		{ "powersave\n", "intel_pstate\n", "800000\n", false },
		{ "powersave\n", "amd-pstate-epp\n", "800000\n", false },
		{ "powersave\n", "acpi-cpufreq\n", "3000000\n", false },
		{ "schedutil\n", "acpi-cpufreq\n", "800000\n", false },
	};
	char name[256];
	cpu_set_t set;
	unsigned processor = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	while (!CPU_ISSET(processor, &set))
		processor++;
#define FREQUENCY(file, text)                                                                                          \
	snprintf(name, sizeof(name), "sys/devices/system/cpu/cpu%u/cpufreq/" file, processor), add(name, text)
	for (size_t i = 0; i < LENGTH(rows); i++) {
		FREQUENCY("scaling_governor", rows[i].governor);
		FREQUENCY("scaling_driver", rows[i].driver);
		FREQUENCY("scaling_cur_freq", rows[i].frequency);
		FREQUENCY("cpuinfo_max_freq", "3400000\n");
		slow_check(&bench.doctor);
		assert_int_equal(
			has_finding(FINDING_WARN, "cpu", " runs at 800 of 3400 MHz: its governor is powersave"),
			rows[i].warns);
		forget_findings();
	}
}

#define VF_STATE "on the host: ip link set PF vf N state auto; then check cable and switch"

/* Causes of inactive InfiniBand ports: disabled by this host, the cable, or the subnet manager. */
TEST(infiniband_ports, set_up, tear_down)
{
	static const struct {
		const char *guid, *state, *physical, *manager, *rate, *remedy;
	} rows[] = {
		{ "9803", "2: INIT", "5: LinkUp", "0x0", "100 Gb/sec (4X EDR)",
		  "start a subnet manager at this port: opensm -g 0x506b4b0300f5f0a2" },
		{ "9803", "2: INIT", "5: LinkUp", "0x3", "100 Gb/sec (4X EDR)",
		  "the subnet manager has not activated it: see its log (sminfo says where it runs)" },
		{ "9803", "3: ARMED", "5: LinkUp", "0x3", "100 Gb/sec (4X EDR)",
		  "the subnet manager has not activated it: see its log (sminfo says where it runs)" },
		{ "0000", "2: INIT", "5: LinkUp", "0x3", "100 Gb/sec (4X EDR)",
		  "on the host: ip link set PF vf N node_guid GUID; the same with port_guid GUID, then with state "
		  "auto" },
		{ "9803", "1: DOWN", "3: Disabled", "0x3", "2.5 Gb/sec (1X SDR)",
		  "ibportstate -D 0 1 enable; of a virtual function, on the host: ip link set PF vf N state auto" },
		{ "9803", "1: DOWN", "2: Polling", "0x0", "2.5 Gb/sec (1X SDR)",
		  "check cable and switch: are both ends InfiniBand (mlxconfig LINK_TYPE_P1)?" },
		{ "9803", "4: ACTIVE", "5: LinkUp", "0x3", "25 Gb/sec (1X EDR)",
		  "check cable and switch: iblinkinfo shows what both ends can do" },
		{ "9803", "4: ACTIVE", "5: LinkUp", "0x3", "10 Gb/sec (4X SDR)",
		  "check cable and switch: iblinkinfo shows what both ends can do" },
	};
	char guid[64];

	add_card();
	add(PORT "link_layer", "InfiniBand\n");
	add(PORT "gids/0", "fe80:0000:0000:0000:506b:4b03:00f5:f0a2\n");
	add(PORT "gids/3", "0000:0000:0000:0000:0000:0000:0000:0000\n");
	for (size_t i = 0; i < LENGTH(rows); i++) {
		snprintf(guid, sizeof(guid), "0000:0000:0000:%s\n", rows[i].guid);
		add(DEVICE "node_guid", guid);
		add(PORT "state", rows[i].state);
		add(PORT "phys_state", rows[i].physical);
		add(PORT "sm_lid", rows[i].manager);
		add(PORT "rate", rows[i].rate);
		run_check(devices_check);
		assert_int_equal(bench.doctor.findings.counts[FINDING_WARN], i + 1);
		assert_string_equal(remedy_of("port"), rows[i].remedy);
	}
	add(PORT "rate", "100 Gb/sec (4X EDR)");
	run_check(devices_check);
	add(PORT "link_layer", "Ethernet\n");
	add(PORT "rate", "25 Gb/sec (1X EDR)");
	run_check(devices_check);
	assert_int_equal(bench.doctor.findings.counts[FINDING_WARN], LENGTH(rows));
}

/* The host decides about its link, before any cable does. */
TEST(port_of_virtual_function, set_up, tear_down)
{
	static const struct {
		const char *layer, *state, *physical, *guid, *remedy;
		unsigned interface;
	} rows[] = {
		{ "InfiniBand", "1: DOWN", "2: Polling", "9803", VF_STATE, 0 },
		{ "InfiniBand", "1: DOWN", "5: LinkUp", "9803", VF_STATE, 0 },
		{ "InfiniBand", "1: DOWN", "3: Disabled", "9803", VF_STATE, 0 },
		{ "InfiniBand", "1: DOWN", "3: Disabled", "0000", "on the host: ip link set PF vf N node_guid", 0 },
		{ "InfiniBand", "2: INIT", "5: LinkUp", "9803", "start a subnet manager", 0 },
		{ "Ethernet", "1: DOWN", "3: Disabled", "9803", VF_STATE, INTERFACE_HERE | INTERFACE_UP },
		{ "Ethernet", "1: DOWN", "3: Disabled", "9803", "ip link set eth0 up", INTERFACE_HERE },
	};
	char guid[64];

	add_card();
	add(DEVICE "device/physfn/vendor", "0x15b3\n");
	add(PORT "gid_attrs/ndevs/1", "eth0\n");
	tree.has_eth0 = true;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		snprintf(guid, sizeof(guid), "0000:0000:0000:%s\n", rows[i].guid);
		add(DEVICE "node_guid", guid);
		add(PORT "link_layer", rows[i].layer);
		add(PORT "state", rows[i].state);
		add(PORT "phys_state", rows[i].physical);
		tree.facts = rows[i].interface;
		read_devices();
		bench.doctor.host.facts = FACT_ADMIN;
		devices_check(&bench.doctor);
		assert_memory_equal(remedy_of("port"), rows[i].remedy, strlen(rows[i].remedy));
	}
}

/* Two limited members of a partition do not reach each other. Only InfiniBand uses partitions. */
TEST(partition, set_up, tear_down)
{
	static const struct {
		const char *layer, *key;
		bool warns;
	} rows[] = {
		{ "InfiniBand", "0x7fff", true },
		{ "InfiniBand", "0xffff", false },
		{ "InfiniBand", "0x0000", false },
		{ "Ethernet", "0x7fff", false },
	};

	add_card();
	for (size_t i = 0; i < LENGTH(rows); i++) {
		add(PORT "link_layer", rows[i].layer);
		add(PORT "pkeys/0", rows[i].key);
		run_check(devices_check);
		assert_int_equal(has_finding(FINDING_WARN, "port",
					     "mlx5_0/1: limited member of partition 0x7fff: it reaches only full"),
				 rows[i].warns);
		forget_findings();
	}
	/* The port may be a full member of a partition with another index. */
	add(PORT "link_layer", "InfiniBand");
	add(PORT "pkeys/1", "0x0002\n");
	add(PORT "pkeys/2", "0x8001\n");
	add(PORT "gid_attrs/ndevs/1", "ib0\n");
	run_check(devices_check);
	assert_non_null(strstr(remedy_of("port"),
			       "=full; to use 0x8001: ip link add link ib0 name ib0.8001 type ipoib pkey 0x8001"));
}

/* The vendor's driver may give all packets a traffic class. */
TEST(traffic_class, set_up, tear_down)
{
	add_card();
	add(DEVICE "tc/1/traffic_class", "\n");
	run_check(devices_check);
	assert_false(has_finding(FINDING_READ, "port", "DSCP"));
	add(DEVICE "tc/1/traffic_class", "Global tclass=236\n");
	devices_check(&bench.doctor);
	assert_found(FINDING_READ, "port", "mlx5_0/1: its driver sends with DSCP 59: Global tclass=236 in ");
}

/* The device's interface becomes a port of bond0. */
static void add_to_bond(const char *interface)
{
	char target[256];

	snprintf(target, sizeof(target), "%s/sys/class/net/bond0", tree.root);
	add("sys/class/net/bond0/bonding/slaves", "eth2 eth3\n");
	add_link(interface, target);
}

/* RoCE LAG makes one device of both ports: two devices with one bond have none. */
TEST(bond_of_two_cards, set_up, tear_down)
{
	const char *shared = "mlx5_0 and mlx5_1 share bond0 without RoCE LAG: each works with its own port only";

	add_card();
	add("sys/class/infiniband/mlx5_1/ports/1/link_layer", "Ethernet\n");
	add("sys/class/infiniband/mlx5_1/device/net/eth3/mtu", "1500\n");
	add("sys/class/infiniband/rxe0/parent", "eth2\n");
	add("sys/class/infiniband/rxe0/device/net/eth2/mtu", "1500\n");
	add_to_bond("sys/class/infiniband/rxe0/device/net/eth2/master");
	add_to_bond(DEVICE "device/net/eth2/master");
	run_check(devices_check);
	assert_false(has_finding(FINDING_WARN, "port", "share"));
	add_to_bond("sys/class/infiniband/mlx5_1/device/net/eth3/master");
	run_check(devices_check);
	assert_found(FINDING_WARN, "port", shared);
	assert_false(has_finding(FINDING_WARN, "port", "rxe0"));
	assert_only_on_ethernet("port", "share");
}

/* It has no RoCE LAG, and its link layer is called Ethernet, too. A software device's "device" may be the card. */
TEST(bond_of_iwarp, set_up, tear_down)
{
	static const char *const types[][2] = { { "4: RNIC", "4: RNIC" },
						{ "1: CA", "4: RNIC" },
						{ "4: RNIC", "1: CA" } };

	add_card();
	add("sys/class/infiniband/siw0/ports/1/link_layer", "Ethernet\n");
	add("sys/class/infiniband/siw0/device/net/eth3/mtu", "1500\n");
	add_to_bond(DEVICE "device/net/eth2/master");
	add_to_bond("sys/class/infiniband/siw0/device/net/eth3/master");
	for (size_t i = 0; i < LENGTH(types); i++) {
		add(DEVICE "node_type", types[i][0]);
		add("sys/class/infiniband/siw0/node_type", types[i][1]);
		run_check(devices_check);
		assert_false(has_finding(FINDING_WARN, "port", "share"));
	}
}

/* An address would be of no use on a bond's port. */
TEST(bond_without_address, set_up, tear_down)
{
	add("sys/class/infiniband/mlx5_1/ports/1/state", "4: ACTIVE\n");
	add("sys/class/infiniband/mlx5_1/ports/1/link_layer", "Ethernet\n");
	add("sys/class/infiniband/mlx5_1/device/net/eth3/mtu", "1500\n");
	add_to_bond("sys/class/infiniband/mlx5_1/device/net/eth3/master");
	tree.has_eth0 = true;
	tree.facts = INTERFACE_HERE | INTERFACE_UP | INTERFACE_LINK;
	read_devices();
	bench.doctor.host.facts = FACT_ADMIN;
	route_report(&bench.doctor);
	assert_found(FINDING_FAIL, "address", "no address of this host leads to mlx5_1: its interface bond0 has no");
	assert_string_equal(remedy_of("address"), "ip address add ADDRESS/BITS dev bond0");
}

/* Further addresses get no GID. An entry may be free; iWARP's table has one. */
TEST(full_table, set_up, tear_down)
{
	const char *full = "mlx5_0/1: all 3 entries of its table are in use: no further address gets a GID";

	add_card();
	run_check(devices_check);
	assert_false(has_finding(FINDING_WARN, "gid", "in use"));
	add(PORT "gids/0", "fe80:0000:0000:0000:0200:00ff:fe00:0001\n");
	add("sys/class/infiniband/siw0/ports/1/link_layer", "Ethernet\n");
	add("sys/class/infiniband/siw0/ports/1/gids/0", "0200:0000:0001:0000:0200:0000:0001:0000\n");
	run_check(devices_check);
	assert_found(FINDING_WARN, "gid", full);
	assert_false(has_finding(FINDING_WARN, "gid", "siw0"));
	assert_only_on_ethernet("gid", "in use");
}

/* Without RoCE, a card in switchdev mode has an Ethernet port without GIDs. */
TEST(port_without_gids, set_up, tear_down)
{
	add_card();
	add("sys/class/infiniband/mlx5_1/ports/1/state", "4: ACTIVE\n");
	add("sys/class/infiniband/mlx5_1/ports/1/link_layer", "Ethernet\n");
	add("sys/class/infiniband/mlx5_1/ports/1/gids/0", "0000:0000:0000:0000:0000:0000:0000:0000\n");
	add("sys/class/infiniband/mlx5_1/device/net/lo/mtu", "1500\n");
	run_check(route_report);
	assert_found(FINDING_FAIL, "address", "no address of this host leads to mlx5_1: its port has no GID");
	assert_non_null(strstr(remedy_of("address"), "devlink dev eswitch show"));
	assert_false(has_finding(FINDING_FAIL, "address", "mlx5_0: its port has no GID"));
}

/* A card whose interfaces are all elsewhere, as in a pod with the network of another interface, with or without GIDs.
 */
TEST(card_without_interface_here, set_up, tear_down)
{
	static const char *const gids[] = { "0000:0000:0000:0000:0000:0000:0000:0000\n",
					    "0000:0000:0000:0000:0000:ffff:0a00:0001\n" };

	add(PORT "state", "4: ACTIVE\n");
	add(PORT "link_layer", "Ethernet\n");
	add_link(DEVICE "device/driver", "../../../../bus/pci/drivers/mlx5_core");
	for (size_t i = 0; i < LENGTH(gids); i++) {
		add(PORT "gids/0", gids[i]);
		forget_findings();
		read_devices();
		bench.doctor.host.facts = FACT_CONTAINER;
		route_report(&bench.doctor);
		assert_found(
			FINDING_FAIL, "address",
			"no address of this host leads to mlx5_0: no interface of it is in this network namespace");
		assert_memory_equal(remedy_of("address"), "start the container with --network host", 39);
	}
	bench.doctor.host.facts = 0;
	route_report(&bench.doctor);
	assert_string_equal(remedy_of("address"), "");
	add(PORT "link_layer", "InfiniBand\n");
	forget_findings();
	run_check(route_report);
	assert_false(has_finding(FINDING_FAIL, "address", "in this network namespace"));
}

/* The cause of missing addresses is looked for at the active port. */
TEST(port_beside_one_that_is_down, set_up, tear_down)
{
	add_card();
	add(PORT "state", "1: DOWN\n");
	add(DEVICE "device/net/eth2/dev_port", "0\n");
	add(DEVICE "device/net/eth3/dev_port", "1\n");
	add(DEVICE "ports/2/state", "4: ACTIVE\n");
	run_check(route_report);
	assert_found(FINDING_FAIL, "address", "its interface eth3 is in another network namespace");
}

/* Control characters and shell syntax reach neither a terminal nor a path. */
TEST(hostile, set_up, tear_down)
{
	struct device *devices;
	char long_text[5000];

	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = 0;
	add_card();
	add(DEVICE "fw_ver", long_text);
	add(PORT "state", "4: \033[2J\007\200%s%n");
	add_bytes(PORT "rate", "1\0002\n", 4);
	add(PORT "phys_state", "");
	add(PORT "gids/1", "not a GID\n");
	add(PORT "gid_attrs/ndevs/2", "$(reboot)\n");
	add("sys/class/infiniband/a;b/fw_ver", "1\n");
	add("sys/class/infiniband/empty/fw_ver", "");
	add("sys/class/infiniband/file", "");
	add("proc/self/net/udp", UDP_LINE("01", "1") UDP_LINE("zz", "1") UDP_LINE("0100007F0100", "x") "\0\0");
	add("proc/self/maps", long_text);
	add("proc/self/status", long_text);
	devices = read_devices();
	assert_non_null(devices);
	assert_null(devices_find(devices, "a;b"));
	assert_non_null(devices_find(devices, "empty"));
	kernel_check(&bench.doctor);
	devices_check(&bench.doctor);
	devices_find_rxe(&bench.doctor);
	fflush(bench.printed.stream);
	assert_found(FINDING_WARN, "port", "mlx5_0/1: ?[2J??%s%n");
	assert_found(FINDING_READ, "gid", "10.0.0.1");
	assert_null(strstr(bench.output, "reboot"));
	for (size_t i = 0; i < bench.length; i++)
		assert_true((bench.output[i] >= ' ' && bench.output[i] <= '~') || bench.output[i] == '\n');
}

TEST(many, set_up, tear_down)
{
	char name[256];
	struct device *devices;
	unsigned count = 0;

	add_card();
	add(PORT "gids/0", "fe80:0000:0000:0000:0000:0000:0000:0002\n");
	for (unsigned i = 3; i < PORT_GID_TABLE_MAX + 20; i++) {
		snprintf(name, sizeof(name), PORT "gids/%u", i);
		add(name, "fe80:0000:0000:0000:0000:0000:0000:0001\n");
	}
	for (unsigned i = 2; i < 2 * DEVICE_PORTS_MAX; i++) {
		snprintf(name, sizeof(name), DEVICE "ports/%u/state", i);
		add(name, "1: DOWN\n");
	}
	for (unsigned i = 1; i < 2 * DEVICES_MAX; i++) {
		snprintf(name, sizeof(name), "sys/class/infiniband/rxe%u/parent", i);
		add(name, "d0\n");
		snprintf(name, sizeof(name), "sys/class/infiniband/rxe%u/ports/1/state", i);
		add(name, "4: ACTIVE\n");
	}
	devices = read_devices();
	for (const struct device *device = devices; device; device = device->next)
		count++;
	assert_int_equal(count, DEVICES_MAX);
	assert_int_equal(devices->port_count, DEVICE_PORTS_MAX);
	assert_true(devices->ports_left_out);
	assert_int_equal(devices->ports[0].gid_count, PORT_GIDS_MAX);
	assert_int_equal(devices->ports[0].gids_left_out, PORT_GID_TABLE_MAX - PORT_GIDS_MAX);
	assert_false(devices->ports[0].gids_full);
	assert_string_equal(devices->next->name, "rxe1");
	assert_string_equal(devices->next->driver, "rdma_rxe");
	assert_string_equal(devices->next->ports[0].netdev, "d0");
	assert_string_equal(devices->next->next->name, "rxe2");
}

/* core/log.h promises the mark for every text in an error. */
TEST(cut, set_up, tear_down)
{
	char word[2 * ERROR_CAUSE_SIZE];
	struct error *error = &bench.doctor.verbs_error;

	memset(word, 'x', sizeof(word) - 1);
	word[sizeof(word) - 1] = 0;
	finding_add(&bench.doctor, FINDING_WARN, "long", "%s", word);
	assert_string_equal(bench.doctor.findings.last->error.cause + ERROR_CAUSE_SIZE - 5, "x...");
	assert_string_equal(bench.doctor.findings.last->error.hint, "");
	finding_add(&bench.doctor, FINDING_WARN, "long", "short\n%s", word);
	assert_string_equal(bench.doctor.findings.last->error.cause, "short");
	assert_string_equal(bench.doctor.findings.last->error.hint + ERROR_HINT_SIZE - 5, "x...");
	/* Each part fits; together they do not. */
	memcpy(error->object, word, sizeof(error->object) - 1);
	memcpy(error->cause, word, sizeof(error->cause) - 1);
	finding_add_error(&bench.doctor, FINDING_WARN, "long", error);
	assert_string_equal(bench.doctor.findings.last->error.cause + ERROR_CAUSE_SIZE - 5, "x...");
}
