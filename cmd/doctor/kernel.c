/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel, and its limits for this process: modules, namespaces, device files, locked memory. */
#include <inttypes.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cmd/doctor/doctor.h"
#include "core/device_file.h"
#include "core/privileges.h"
#include "core/units.h"

#define NETNS_MODE "/sys/module/ib_core/parameters/netns_mode"

enum {
	LIST_SIZE = 512 /* has space for every module */
};

/* The modules that every device needs. The path also exists if the module is built into the kernel. */
static const struct {
	char module[10];
	char path[29];
} modules[] = {
	{ "ib_core", "sys/class/infiniband" },
	{ "ib_uverbs", "sys/class/infiniband_verbs" },
	{ "rdma_cm", "sys/class/misc/rdma_cm" },
	{ "rdma_ucm", "sys/class/misc/rdma_cm" },
};

static void append_word(char list[LIST_SIZE], const char *separator, const char *word)
{
	size_t length = strlen(list);

	log_text(list + length, LIST_SIZE - length, "%s%s", length ? separator : "", word);
}

static bool has_module(const char *root, const char *module)
{
	return sysfs_has("%s/sys/module/%s", root, module);
}

/* modules.dep and modules.builtin list modules by path. */
static bool is_indexed(const char *root, const char *index, const char *module)
{
	char file[SYSFS_TEXT_SIZE], line[SYSFS_PATH_SIZE];
	struct utsname names;

	log_text(file, sizeof(file), "/%s.ko", module);
	if (uname(&names))
		return false;
	sysfs_path(line, "%s/lib/modules/%s/%s", root, names.release, index);
	return sysfs_find(line, file);
}

bool kernel_may_have(const char *root, const char *module)
{
	return !sysfs_has("%s/sys/module", root) || has_module(root, module) ||
	       is_indexed(root, "modules.dep", module) || is_indexed(root, "modules.builtin", module);
}

/* some: a module is loaded. Without a device, missing modules are no failure. */
static void add_missing_modules(struct doctor *doctor, const char *missing, bool some)
{
	enum finding_status failure = doctor->devices ? doctor->verbs_failure : FINDING_WARN;
	struct utsname names;

	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
		some = some || kernel_may_have(doctor->root, modules[i].module);
	if (some || uname(&names))
		finding_add(doctor, failure, "modules", "not loaded: %s\n%s", missing,
			    remedy_find(PROBLEM_MODULES, doctor->facts, missing, NULL).text);
	else
		finding_add(doctor, failure, "modules",
			    "no RDMA modules for this kernel: none loaded, none in /lib/modules/%s\n%s", names.release,
			    remedy_find(PROBLEM_NO_MODULES, doctor->facts, NULL, NULL).text);
}

static void check_modules(struct doctor *doctor)
{
	char loaded[LIST_SIZE] = "";
	char missing[LIST_SIZE] = "";

	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		if (sysfs_has("%s/%s", doctor->root, modules[i].path) || has_module(doctor->root, modules[i].module))
			append_word(loaded, ", ", modules[i].module);
		else
			append_word(missing, " ", modules[i].module);
	}
	if (*loaded)
		finding_add(doctor, FINDING_OK, "modules", "%s", loaded);
	if (*missing)
		add_missing_modules(doctor, missing, *loaded);
}

/*
 * Whether ib_uverbs was loaded after rdma_cm; the last loaded module is the first in the list. The kernel tells the
 * modules of a device's removal in the reverse order.
 */
static bool is_verbs_last(const char *root)
{
	char line[SYSFS_PATH_SIZE];
	FILE *list = fopen(sysfs_path(line, "%s/proc/modules", root), "re");
	bool verbs = false, cm = false;

	while (list && !cm && fgets(line, sizeof(line), list)) {
		verbs = verbs || !strncmp(line, "ib_uverbs ", 10);
		cm = !strncmp(line, "rdma_cm ", 8);
	}
	if (list)
		fclose(list);
	return verbs && cm;
}

/* The drivers of cards take a device from its users; those of software devices wait for them. */
static void check_order(struct doctor *doctor)
{
	const struct device *device = doctor->devices;

	while (device && strcmp(device->driver, "rdma_rxe") != 0 && strcmp(device->driver, "siw") != 0)
		device = device->next;
	if (device && is_verbs_last(doctor->root))
		finding_add(doctor, FINDING_WARN, "modules",
			    "ib_uverbs was loaded after rdma_cm: removing %s waits for its users, without notice to "
			    "them\n%s",
			    device->name, remedy_find(PROBLEM_MODULE_ORDER, doctor->facts, NULL, NULL).text);
}

static void check_namespaces(struct doctor *doctor)
{
	bool exclusive = doctor->facts & FACT_EXCLUSIVE;

	if (sysfs_has("%s" NETNS_MODE, doctor->root))
		finding_add(doctor, exclusive && !doctor->devices ? FINDING_WARN : FINDING_OK, "netns", "%s",
			    exclusive ? "exclusive: this network namespace sees only its own RDMA devices"
				      : "shared: every network namespace sees every RDMA device");
}

/* Only root may read the namespaces of process 1. */
static bool is_first_network(const char *root)
{
	char own[SYSFS_TEXT_SIZE], first[SYSFS_TEXT_SIZE];

	return !sysfs_link(first, "%s/proc/1/ns/net", root) || !sysfs_link(own, "%s/proc/self/ns/net", root) ||
	       !strcmp(own, first);
}

void kernel_read_facts(struct doctor *doctor)
{
	const char *root = doctor->root;
	char mode[SYSFS_TEXT_SIZE];
	unsigned facts = remedy_facts();

	if (is_first_network(root))
		facts |= FACT_FIRST_NETWORK;
	if (kernel_may_have(root, "rdma_rxe"))
		facts |= FACT_RXE;
	if (kernel_may_have(root, "siw"))
		facts |= FACT_SIW;
	if (sysfs_line(mode, "%s" NETNS_MODE, root) && *mode != 'Y')
		facts |= FACT_EXCLUSIVE;
	doctor->facts = facts;
}

void kernel_check(struct doctor *doctor)
{
	struct utsname names;

	if (!uname(&names))
		finding_add(doctor, FINDING_OK, "kernel", "%s %s on %s", names.sysname, names.release, names.machine);
	check_modules(doctor);
	check_order(doctor);
	check_namespaces(doctor);
}

/* class: the file's directory in /sys; user: the device or the function that needs the file. */
static bool check_device_file(struct doctor *doctor, const char *class, const char *name, const char *user)
{
	char path[SYSFS_PATH_SIZE], number[SYSFS_PATH_SIZE];
	char cause[DEVICE_FILE_TEXT_SIZE];
	struct remedy remedy;
	int error = device_file_check(sysfs_path(path, "%s/dev/infiniband/%s", doctor->root, name),
				      sysfs_path(number, "%s/sys/class/%s/%s/dev", doctor->root, class, name), cause,
				      &remedy);

	if (error)
		finding_add(doctor, doctor->verbs_failure, "file",
			    "/dev/infiniband/%s cannot be used (%s): %s\n%s\n%.0d", name, user, cause, remedy.text,
			    error > 0 ? error : 0);
	else
		finding_add(doctor, FINDING_OK, "file", "/dev/infiniband/%s can be opened (%s)", name, user);
	return !error;
}

void kernel_check_files(struct doctor *doctor)
{
	for (struct device *device = doctor->devices; device; device = device->next)
		device->cannot_be_opened =
			*device->verbs && !check_device_file(doctor, "infiniband_verbs", device->verbs, device->name);
	/* Without its module there is no file either: kernel_check() has added a finding. */
	if (doctor->devices && sysfs_has("%s/sys/class/misc/rdma_cm", doctor->root))
		check_device_file(doctor, "misc", "rdma_cm", "connections");
}

void kernel_check_memory(struct doctor *doctor)
{
	bool privileged = privileges_have(CAP_IPC_LOCK) && privileges_user_namespace_is_initial();
	unsigned facts = doctor->facts;
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		return;
	if (limit.rlim_max == RLIM_INFINITY)
		facts |= FACT_MAY_RAISE;
	if (limit.rlim_cur == RLIM_INFINITY || privileged)
		finding_add(doctor, FINDING_OK, "memlock", "any amount of memory may be locked%s",
			    privileged ? " with CAP_IPC_LOCK" : "");
	else
		finding_add(doctor, FINDING_WARN, "memlock",
			    "at most %" PRIu64 " KiB of memory may be locked, and RDMA locks its memory\n%s",
			    (uint64_t)limit.rlim_cur / 1024, remedy_find(PROBLEM_MEMORY, facts, NULL, NULL).text);
}
