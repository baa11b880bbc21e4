/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel, and its limits for this process: modules, namespaces, cards, device files, locked memory. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cmd/doctor/doctor.h"
#include "core/units.h"

enum {
	LIST_SIZE = 160,
	INDEX_LINES_MAX = 1 << 16,
	STATUS_LINES_MAX = 128,
	CAP_LOCK_MEMORY = 14, /* CAP_IPC_LOCK in <linux/capability.h> */
};

/* The modules of every transport. The path also exists if the module is built into the kernel. */
static const struct {
	char module[10];
	char path[29];
} modules[] = {
	{ "ib_core", "sys/class/infiniband" },
	{ "ib_uverbs", "sys/class/infiniband_verbs" },
	{ "rdma_cm", "sys/class/misc/rdma_cm" },
	{ "rdma_ucm", "sys/class/misc/rdma_cm" },
};

/* A list that does not fit ends in "...". */
static void append_word(char list[LIST_SIZE], const char *separator, const char *word)
{
	char longer[2 * LIST_SIZE];

	snprintf(longer, sizeof(longer), "%s%s%s", list, *list ? separator : "", word);
	log_text(list, LIST_SIZE, "%s", longer);
}

static bool has_module(const char *root, const char *module)
{
	return sysfs_has("%s/sys/module/%s", root, module);
}

/* modules.dep and modules.builtin list modules by path. */
static bool is_indexed(const char *root, const char *index, const char *module)
{
	char path[SYSFS_PATH_SIZE];
	char file[SYSFS_NAME_SIZE];
	char line[SYSFS_PATH_SIZE];
	struct utsname names;
	FILE *stream = NULL;
	bool found = false;

	if (!uname(&names))
		stream = sysfs_open(sysfs_path(path, "%s/lib/modules/%s/%s", root, names.release, index));
	if (!stream)
		return false;
	snprintf(file, sizeof(file), "/%s.ko", module);
	for (unsigned i = 0; i < INDEX_LINES_MAX && !found && fgets(line, sizeof(line), stream); i++)
		found = strstr(line, file);
	fclose(stream);
	return found;
}

bool kernel_may_have(const char *root, const char *module)
{
	return !sysfs_has("%s/sys/module", root) || has_module(root, module) ||
	       is_indexed(root, "modules.dep", module) || is_indexed(root, "modules.builtin", module);
}

/* some: a module is loaded. */
static void add_missing_modules(struct findings *findings, const char *root, enum finding_status failure,
				const char *missing, bool some)
{
	struct utsname names;

	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
		some = some || kernel_may_have(root, modules[i].module);
	if (some || uname(&names))
		finding_add(findings, failure, "modules", finding_remedy(findings, "modprobe -a %s", missing),
			    "not loaded: %s", missing);
	else
		finding_add(findings, failure, "modules",
			    "use a kernel that has them; in a container: modprobe rdma_ucm on the host",
			    "no RDMA modules for this kernel: none loaded, none in /lib/modules/%s", names.release);
}

static void check_modules(struct findings *findings, const char *root, enum finding_status failure)
{
	char loaded[LIST_SIZE] = "";
	char missing[LIST_SIZE] = "";

	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		if (sysfs_has("%s/%s", root, modules[i].path) || has_module(root, modules[i].module))
			append_word(loaded, ", ", modules[i].module);
		else
			append_word(missing, " ", modules[i].module);
	}
	for (unsigned i = 0; i < DRIVER_CARDS + 2; i++)
		if (has_module(root, driver_table[i].module) && !strstr(loaded, driver_table[i].module))
			append_word(loaded, ", ", driver_table[i].module);
	if (*loaded)
		finding_add(findings, FINDING_OK, "modules", NULL, "%s", loaded);
	if (*missing)
		add_missing_modules(findings, root, failure, missing, *loaded);
}

static void check_namespaces(struct findings *findings, const char *root, const struct device *devices)
{
	char mode[SYSFS_NAME_SIZE];

	if (!sysfs_line(mode, sizeof(mode), "%s/sys/module/ib_core/parameters/netns_mode", root))
		return;
	if (*mode == 'Y')
		finding_add(findings, FINDING_OK, "netns", NULL,
			    "shared: every network namespace sees every RDMA device");
	else if (devices)
		finding_add(findings, FINDING_OK, "netns", NULL,
			    "exclusive: this network namespace sees only its own RDMA devices");
	else
		finding_add(findings, FINDING_WARN, "netns",
			    "in the namespace of the device: rdma dev set DEVICE netns NAME",
			    "exclusive: this network namespace has no RDMA device of its own");
}

/* Cards of one PCI driver without an RDMA device. */
struct idle_cards {
	unsigned count;
	char first[SYSFS_NAME_SIZE];
};

static void add_idle_cards(struct findings *findings, const char *root, const struct driver *row,
			   const struct idle_cards *idle)
{
	const char *remedy = "rdma dev show; devlink dev param show (or look in other network namespaces)";
	bool loaded = has_module(root, row->module);

	if (!idle->count || (loaded && !row->always))
		return;
	if (!loaded)
		remedy = finding_remedy(findings, "modprobe %s", row->module);
	finding_add(findings, FINDING_WARN, "card", remedy, "%u %s card%s without an RDMA device (%s%s): %s is %s",
		    idle->count, row->card, units_plural(idle->count), idle->first, idle->count == 1 ? "" : " ...",
		    row->module, loaded ? "loaded" : "not loaded");
}

/* Every Mellanox network card supports RDMA; 0x15b3 is their PCI vendor ID, 0x02 the class of network cards. */
static bool is_mellanox_card(const char *directory)
{
	char vendor[SYSFS_NAME_SIZE];
	char class[SYSFS_NAME_SIZE];

	sysfs_line(vendor, sizeof(vendor), "%s/vendor", directory);
	sysfs_line(class, sizeof(class), "%s/class", directory);
	return !strcmp(vendor, "0x15b3") && !strncmp(class, "0x02", 4);
}

static void check_cards(struct findings *findings, const char *root)
{
	char path[SYSFS_PATH_SIZE];
	struct idle_cards idle[DRIVER_CARDS] = { { 0 } };
	char directory[SYSFS_PATH_SIZE];
	char card[SYSFS_NAME_SIZE];
	struct names names = sysfs_names(sysfs_path(path, "%s/sys/bus/pci/devices", root));

	for (size_t i = 0; i < names.count; i++) {
		const struct driver *row;

		sysfs_path(directory, "%s/sys/bus/pci/devices/%s", root, names.name[i]);
		if (!sysfs_link(card, "%s/driver", directory) && is_mellanox_card(directory))
			finding_add(findings, FINDING_WARN, "card", "modprobe mlx5_core (older cards: mlx4_core)",
				    "Mellanox card %s has no driver", names.name[i]);
		row = driver_of_card(card);
		if (!row || sysfs_has("%s/infiniband", directory))
			continue;
		if (!idle[row - driver_table].count++)
			strcpy(idle[row - driver_table].first, names.name[i]);
	}
	sysfs_names_free(&names);
	for (unsigned i = 0; i < DRIVER_CARDS; i++)
		add_idle_cards(findings, root, &driver_table[i], &idle[i]);
}

void kernel_check(struct findings *findings, const char *root, const struct device *devices,
		  enum finding_status failure)
{
	struct utsname names;

	if (!uname(&names))
		finding_add(findings, FINDING_OK, "kernel", NULL, "%s %s on %s", names.sysname, names.release,
			    names.machine);
	/* Without a device, missing modules are not an error. */
	check_modules(findings, root, devices ? failure : FINDING_WARN);
	check_namespaces(findings, root, devices);
	check_cards(findings, root);
}

/* Returns 0 or an errno value. Opening also tests the device rules of a container, and does not change the device. */
static int try_device_file(const char *path)
{
	int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* user: the device or the function that needs the file. */
static void check_device_file(struct findings *findings, const char *root, const char *name, const char *user,
			      enum finding_status failure)
{
	char path[SYSFS_PATH_SIZE];
	int error = try_device_file(sysfs_path(path, "%s/dev/infiniband/%s", root, name));
	struct error refusal = { .phase = "" };
	const char *remedy = NULL;

	if (!error) {
		finding_add(findings, FINDING_OK, "file", NULL, "/dev/infiniband/%s can be opened (%s)", name, user);
		return;
	}
	if (error == ENOENT) {
		finding_add(findings, failure, "file", "in a container: pass in /dev/infiniband; else: udevadm trigger",
			    "/dev/infiniband/%s is missing (%s)", name, user);
		return;
	}
	if (error == EACCES)
		remedy = finding_remedy(findings, "run as root, or: chmod a+rw /dev/infiniband/%s", name);
	else if (error == EPERM)
		remedy = "allow the container to use the device";
	log_text(refusal.cause, sizeof(refusal.cause), "/dev/infiniband/%s cannot be opened (%s): %s", name, user,
		 strerror(error));
	snprintf(refusal.code, sizeof(refusal.code), "%d", error);
	finding_add_error(findings, failure, "file", remedy, &refusal);
}

void kernel_check_files(struct findings *findings, const char *root, const struct device *devices,
			enum finding_status failure)
{
	if (!devices)
		return;
	if (!sysfs_has("%s/dev/infiniband", root)) {
		finding_add(findings, failure, "file",
			    "in a container: pass it in (docker: --device /dev/infiniband); else: modprobe ib_uverbs",
			    "/dev/infiniband is missing");
		return;
	}
	for (const struct device *device = devices; device; device = device->next)
		if (*device->verbs)
			check_device_file(findings, root, device->verbs, device->name, failure);
	/* Without its module there is no file either: kernel_check() has added a finding. */
	if (sysfs_has("%s/sys/class/misc/rdma_cm", root))
		check_device_file(findings, root, "rdma_cm", "connections", failure);
}

static bool has_lock_capability(const char *root)
{
	static const char name[] = "CapEff:";
	char path[SYSFS_PATH_SIZE];
	char line[SYSFS_PATH_SIZE];
	FILE *file = sysfs_open(sysfs_path(path, "%s/proc/self/status", root));
	uint64_t effective = 0;

	if (!file)
		return false;
	for (unsigned i = 0; i < STATUS_LINES_MAX && fgets(line, sizeof(line), file); i++)
		if (!strncmp(line, name, sizeof(name) - 1))
			effective = strtoull(line + sizeof(name) - 1, NULL, 16);
	fclose(file);
	return effective >> CAP_LOCK_MEMORY & 1;
}

void kernel_check_memory(struct findings *findings, const char *root)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		return;
	if (limit.rlim_cur == RLIM_INFINITY)
		finding_add(findings, FINDING_OK, "memlock", NULL, "any amount of memory may be locked");
	else if (has_lock_capability(root))
		finding_add(findings, FINDING_OK, "memlock", NULL,
			    "any amount of memory may be locked with CAP_IPC_LOCK (%" PRIu64 " KiB without it)",
			    (uint64_t)limit.rlim_cur / 1024);
	else
		finding_add(findings, FINDING_WARN, "memlock",
			    "ulimit -l unlimited (/etc/security/limits.conf; systemd: LimitMEMLOCK=infinity)",
			    "at most %" PRIu64 " KiB of memory may be locked, and RDMA locks its memory",
			    (uint64_t)limit.rlim_cur / 1024);
}
